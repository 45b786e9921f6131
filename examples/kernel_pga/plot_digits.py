"""
Kernel PGA of digits
====================

Compare kernel PCA and kernel PGA on handwritten digits.

A polynomial kernel does not place data on a sphere. ``Normalized(kernel)``, which divides it by
√(k(x, x) k(y, y)), does. The digits lie so far from their mean that the curvature of the sphere
matters, although not much.
"""

# %%
# The data are 8 x 8 images of handwritten digits that ship with scikit-learn. Both methods use the
# same kernel.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.kernels import Normalized, Polynomial
from orthodrome.metrics import neighborhood_area, neighborhood_preservation

X, y = load_digits(return_X_y=True)
X, y = X[:1000] / 16, y[:1000]
kernel = Normalized(Polynomial(degree=10))
models = {
    "kernel PCA": KernelPCA(10, kernel, random_state=0).fit(X),
    "kernel PGA": KernelPGA(10, kernel, random_state=0).fit(X),
}
angles = np.degrees(np.arccos(models["kernel PGA"].mean_cosines_))
print(f"distance from the mean: {angles.min():.0f}° to {angles.max():.0f}°")

# %%
# The first two components. Each point is an image.

_, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plots.embedding(
        model.embedding_,
        y,
        ax=ax,
        ratios=model.explained_variance_ratio_,
        title=name,
        legend_title="digit",
    )

# %%
# The same two geodesic components as points on a sphere.

plots.sphere(
    KernelPGA(2, kernel, random_state=0).fit(X).sphere_coordinates_,
    y,
    ax=plt.figure(figsize=(5.8, 4.8), layout="constrained").subplots(),
    legend_title="digit",
)

# %%
# The fraction of the κ nearest neighbours in feature space that ten components preserve. The area
# summarises the curve: 1 is perfect, 0 is random. The gain is real but small.

kept = {
    name: neighborhood_preservation(X, model.embedding_, kernel=kernel)
    for name, model in models.items()
}
kept["kernel PGA, geodesic"] = neighborhood_preservation(
    X, models["kernel PGA"].embedding_, kernel=kernel, metric="geodesic"
)
plots.neighborhood(
    kept,
    xscale="log",
    ax=plt.figure(figsize=(5.4, 4.2), layout="constrained").subplots(),
    title="Digits, ten components",
)
for name, quality in kept.items():
    print(f"{name:>20}: area {neighborhood_area(quality):.3f}")

# %%
# Pre-images along the first geodesic, from one end through the mean to the other.

model = models["kernel PGA"]
ends = np.abs(model.embedding_[:, 0]).max()
walk = np.zeros((9, 10))
walk[:, 0] = np.linspace(-ends, ends, 9)
figure = plt.figure(figsize=(6, 1.1), layout="constrained")
plots.images(
    {"along the first geodesic": model.inverse_transform(walk)},
    shape=(8, 8),
    limits=(0, 1),
    figure=figure,
)

plt.show()

# sphinx_gallery_thumbnail_panel = (2, 2)
