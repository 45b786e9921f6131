"""
What a bandwidth does
=====================

A radial kernel with k(x, x) = 1 puts every datum on a sphere, and its scale σ decides how far
around the sphere the data reach. With a large σ they huddle in a small cap that is nearly flat, and
every method is close to its linear relative. With a small one all of them are at right angles to
each other, and nothing is near anything. What is of use lies between.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# The radial kernels over the distance, each with σ = 1. Those with a corner at 0 (exponential,
# spherical) tell very near points apart; the wave has negative values.

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
# Digits under Gaussian kernels. The rule ``sigma="mean"`` is the root of the mean squared distance;
# here σ is a multiple of it. The angles from the Karcher mean say how far around the sphere the
# data reach: 90° is as far as they get with this kernel.

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
        color, marker = plots.palette.class_style(digit)
        ax.scatter(*model.embedding_[y == digit].T, s=12, color=color, marker=marker, linewidth=0)
    ax.set(title=f"σ = {factor:g} times the rule", xlabel="Component 1", aspect="equal")
    ax.set_adjustable("datalim")
axes[0].set_ylabel("Component 2")

# %%
# With a small σ a picture may show a few points that are near each other, and all others as one
# heap. How many components hold half of the variance tells it as well.

for factor in factors:
    model = KernelPCA(0.5, Gaussian(factor * scale), random_state=0).fit(X)
    print(
        f"σ = {factor:g} times the rule: half of the variance in {model.n_components_} components"
    )

plt.show()
