"""
Circles within spheres, among outliers
======================================

Principal nested spheres go down by one dimension at a time: the subsphere nearest to the data, the
data projected on it, and so on to a circle and a point on it. A subsphere may be a great one, as
the geodesics of kernel PGA are, or a small one, which bends with the data. With p = 2 the nearest
one is that of least squares; smaller p forgive outliers.
"""

# %%
# Directions near a small circle of the sphere S², of which one in five is anywhere.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from orthodrome import KernelPCA, KernelPNS, RobustKernelPCA, plots
from orthodrome.sphere import nested_spheres

warnings.filterwarnings("ignore", "The points take up")  # they go all the way round

rng = np.random.default_rng(0)
angle = rng.uniform(-np.pi, np.pi, 120)
radius = 0.7 + 0.04 * rng.standard_normal(120)
points = np.column_stack(
    [np.cos(radius), np.sin(radius) * np.cos(angle), np.sin(radius) * np.sin(angle)]
)
outliers = rng.standard_normal((24, 3))
points[:24] = outliers / np.linalg.norm(outliers, axis=1, keepdims=True)

turns = np.linspace(0, 2 * np.pi, 181)[:-1]
circle = np.column_stack([np.cos(turns), np.sin(turns)])
circles = {}
for p in (2.0, 1.0):
    chain = nested_spheres(points, p=p)
    circles[f"p = {p:g}"] = chain.raised(circle)
    print(f"p = {p:g}: radius {chain.radii[0]:.3f}, of the circle that it came from 0.700")

plots.sphere(
    points,
    np.where(np.arange(120) < 24, "anywhere", "near a circle"),
    geodesics=False,
    curves=circles,
    tilt=50,
    ax=plt.figure(figsize=(6.4, 4.8), layout="constrained").subplots(),
    title="The nearest circle",
)

# %%
# Every kernel with constant k(x, x) puts data on a sphere. Its modes of variation, from the circle
# on, hold more of the variance than as many principal components do; but where the data fill more
# than half of that last circle, as here, its share counts the way round as well. Great subspheres
# do not wrap.

X, y = load_iris(return_X_y=True)
models = {
    "nested spheres, small": KernelPNS(2).fit(X),
    "nested spheres, great": KernelPNS(2, sphere="great").fit(X),
    "kernel PCA": KernelPCA(8).fit(X),
}
for name, model in list(models.items())[:2]:
    print(f"{name}: {np.degrees(model.nested_spheres_.wrap):.0f} degrees of the circle")
plots.curves(
    range(1, 9),
    {name: 100 * np.cumsum(model.explained_variance_ratio_[:8]) for name, model in models.items()},
    xlabel="Modes",
    ylabel="Variance (%)",
    ax=plt.figure(figsize=(5.4, 3.8), layout="constrained").subplots(),
    title="Iris, Gaussian kernel",
)

# %%
# The embedding in two dimensions: the data projected on the last subsphere of two dimensions, seen
# from the mean.

species = load_iris().target_names[y]
_, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plots.embedding(model.embedding_[:, :2], species, ax=ax, title=name)

# %%
# The way back: coordinates along the first mode of the great subspheres are points of the sphere
# again, and forward and back is the identity.

great = models["nested spheres, great"]
scores = great.residuals_
back = great.nested_spheres_.points(scores)
print(f"forward and back: {np.abs(back - great.sphere_coordinates_).max():.0e}")

# %%
# Robust kernel PCA is the straight relative: directions of largest dispersion with p < 2. A
# direction planted among gross outliers, each in a direction of its own, is lost by squares and
# kept by p = 1.

Z = 0.1 * rng.standard_normal((200, 100))
Z[:, 0] += 2 * rng.standard_normal(200)
far = rng.standard_normal((40, 100))
Z[:40] = 30 * far / np.linalg.norm(far, axis=1, keepdims=True)
for p in (2.0, 1.0):
    model = RobustKernelPCA(1, "linear", p=p, center="spatial-median").fit(Z)
    direction = model.dual_coef_[:, 0] @ model.X_fit_
    print(f"p = {p:g}: |cosine| to the planted direction {abs(direction[0]):.2f}")

plt.show()
