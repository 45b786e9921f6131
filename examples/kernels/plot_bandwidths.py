"""
What the bandwidth does
=======================

See how the bandwidth of a kernel changes a map of digits.

A radial kernel with k(x, x) = 1 places every row on a sphere. Its scale σ decides how far around
the sphere the data spread. With a large σ they lie in a small, nearly flat cap, and every method is
close to its linear version. With a small σ all points are at right angles to each other, and no
point has near neighbours. Useful values lie between.
"""

# %%
# Radial kernels by distance, with σ = 1. Kernels with a corner at 0 (exponential, spherical)
# separate very close points. The wave kernel has negative values.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.kernels import (
    Exponential,
    Gaussian,
    Matern,
    RationalQuadratic,
    Spherical,
    Wave,
    mean_squared_distance,
)

distance = np.linspace(0, 4, 201)
kernels = {
    "Gaussian": Gaussian(sigma=1.0),
    "Matérn, ν = 3/2": Matern(nu=1.5, sigma=1.0),
    "exponential": Exponential(sigma=1.0),
    "rational quadratic": RationalQuadratic(sigma=1.0),
    "spherical": Spherical(sigma=1.0),
    "wave": Wave(sigma=1.0),
}
plots.curves(
    distance,
    {name: kernel([[0.0]], distance[:, None])[0] for name, kernel in kernels.items()},
    xlabel="Distance over σ",
    ylabel="k",
    markers=False,
    ax=plt.figure(figsize=(6.4, 4.2), layout="constrained").subplots(),
)

# %%
# Digits with Gaussian kernels. The default ``sigma="mean"`` is the root of the mean squared
# distance; σ is a multiple of it here. The angles from the Karcher mean say how far the data
# spread. With this kernel they are at most 90°.

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
scale = np.sqrt(mean_squared_distance(X))
factors = (0.2, 0.5, 1.0, 4.0)
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
for ax, factor in zip(axes, factors, strict=True):
    model = KernelPGA(2, Gaussian(factor * scale), random_state=0).fit(X)
    angles = np.degrees(np.arccos(model.mean_cosines_))
    print(
        f"σ = {factor:g} times the rule: {angles.min():.0f}° to {angles.max():.0f}° from the mean, "
        f"two components hold {model.explained_variance_ratio_.sum():.0%}"
    )
    for digit in range(10):
        color, marker = plots.class_style(digit)
        ax.scatter(*model.embedding_[y == digit].T, s=12, color=color, marker=marker, linewidth=0)
    ax.set(title=f"σ = {factor:g} times the rule", xlabel="Component 1", aspect="equal")
    ax.set_adjustable("datalim")
axes[0].set_ylabel("Component 2")

# %%
# With a small σ, a picture may show a few similar points, and all others in one heap. Two
# components are then too few: the smaller σ is, the more components explain half of the variance.

for factor in factors:
    model = KernelPCA(0.5, Gaussian(factor * scale), random_state=0).fit(X)
    print(
        f"σ = {factor:g} times the rule: half of the variance in {model.n_components_} components"
    )

plt.show()

# sphinx_gallery_thumbnail_number = 1
