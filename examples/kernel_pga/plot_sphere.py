"""
Directions on a sphere
======================

Compare kernel PCA and kernel PGA on simulated directions of known dimension.

Unit vectors lie on a sphere, and a kernel with k(x, x) = 1 places any data on one. Kernel PCA
measures distances in a straight line, through the sphere. Kernel principal geodesic analysis
measures them along great circles, from the mean on the sphere (the Karcher mean).
"""

# %%
# 200 directions in 100 dimensions, drawn from a von Mises-Fisher distribution on a two-dimensional
# sphere. With the linear kernel, feature space is the space of the data, so the right answer is
# known: two dimensions.

import matplotlib.pyplot as plt
import numpy as np

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_area, neighborhood_preservation

X = make_von_mises_fisher(200, n_dimensions=100, concentration=8, random_state=0)
flat = KernelPCA(kernel="linear").fit(X)
curved = KernelPGA(kernel="linear").fit(X)
print(f"kernel PCA: {flat.n_components_} components, kernel PGA: {curved.n_components_}")

# %%
# The variance explained by each component. Kernel PCA needs a third one, for the curvature.

_, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
plots.spectrum(flat, ax=axes[0], title="Kernel PCA")
plots.spectrum(curved, ax=axes[1], title="Kernel PGA")

# %%
# The sphere that kernel PGA found. The star is the mean. The principal geodesics are the great
# circles through it along which the data vary most. Colours are distances from the mean.

angles = np.degrees(np.arccos(curved.mean_cosines_))
plots.sphere(
    curved.sphere_coordinates_,
    angles,
    ax=plt.figure(figsize=(5.4, 4.6), layout="constrained").subplots(),
    legend_title="degrees from the mean",
)

# %%
# In two dimensions, kernel PCA moves distant points towards the mean. Kernel PGA preserves every
# distance from the mean.

_, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for ax, (name, model) in zip(axes, {"Kernel PCA": flat, "Kernel PGA": curved}.items(), strict=True):
    plots.embedding(
        model.embedding_,
        angles,
        ax=ax,
        ratios=model.explained_variance_ratio_,
        title=name,
        legend_title="degrees from the mean",
    )
    ax.set_aspect("equal", adjustable="datalim")

# %%
# The fraction of the κ nearest neighbours that are preserved. For kernel PGA, neighbours are found
# by straight distances between the coordinates, or by distances along the sphere.

kept = {
    "kernel PCA": neighborhood_preservation(X, flat.embedding_[:, :2]),
    "kernel PGA": neighborhood_preservation(X, curved.embedding_),
    "kernel PGA, geodesic": neighborhood_preservation(X, curved.embedding_, metric="geodesic"),
}
ax = plt.figure(figsize=(5.4, 4.2), layout="constrained").subplots()
plots.neighborhood(kept, xscale="log", ax=ax, title="Two components")
ax.set_ylim(0.9, 1.005)  # not from 0: all three curves are above 0.9
for name, quality in kept.items():
    print(f"{name:>20}: area {neighborhood_area(quality):.3f}")

plt.show()

# sphinx_gallery_thumbnail_number = 2
