"""
Circles among outliers
======================

Fit circles and components to directions and irises with outliers.

Principal nested spheres reduce the dimension one by one. Each level fits the nearest subsphere and
projects the data onto it, down to a circle and a point. Great subspheres pass through the centre,
like the geodesics of kernel PGA. Small subspheres have any radius, and bend with the data. p = 2 is
least squares; a smaller p is less sensitive to outliers.
"""

# %%
# Directions near a small circle on the sphere S². One in five is an outlier.

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
    chain = nested_spheres(points, p=p, sphere="small")
    circles[f"p = {p:g}"] = chain.raised(circle)
    print(f"p = {p:g}: radius {chain.radii[0]:.3f}, true radius 0.700")

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
# Every kernel with constant k(x, x) places data on a sphere. The first modes of nested spheres
# explain more variance than as many principal components. With small subspheres, be careful: here
# the data fill more than half of the last circle, and their spread around it counts as variance.
# With great subspheres this does not happen.

X, y = load_iris(return_X_y=True)
models = {
    "nested spheres, small": KernelPNS(2, sphere="small").fit(X),
    "nested spheres, great": KernelPNS(2).fit(X),
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
# The embedding in two dimensions: the data projected on the last two-dimensional subsphere, seen
# from the mean.

species = load_iris().target_names[y]
_, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plots.embedding(model.embedding_[:, :2], species, ax=ax, title=name)

# %%
# The coordinates of all modes together map back to the points of the sphere, without loss.

great = models["nested spheres, great"]
scores = great.residuals_
back = great.nested_spheres_.points(scores)
print(f"forward and back: {np.abs(back - great.sphere_coordinates_).max():.0e}")

# %%
# Robust kernel PCA finds straight directions instead of circles. These data have one main direction
# and scattered outliers. Least squares (p = 2) misses the direction. Both p = 1 and the default
# method find it.

Z = 0.1 * rng.standard_normal((200, 100))
Z[:, 0] += 2 * rng.standard_normal(200)
far = rng.standard_normal((40, 100))
Z[:40] = 30 * far / np.linalg.norm(far, axis=1, keepdims=True)
pursuit = {"method": "pursuit", "center": "spatial-median"}
for options in ({"p": 2.0} | pursuit, {"p": 1.0} | pursuit, {"method": "mrcd"}):
    model = RobustKernelPCA(1, "linear", **options).fit(Z)
    direction = model.dual_coef_[:, 0] @ model.X_fit_
    print(f"{options}: |cosine| to the planted direction {abs(direction[0]):.2f}")

plt.show()
