"""
k-means on the sphere of a kernel
=================================

k-means that outliers hardly change, on points in the plane and on wines.

A Gaussian kernel places every row on a sphere in feature space. k-means on this sphere uses Karcher
means as centres: the points with the smallest mean squared geodesic distance. An outlier pulls an
ordinary mean without limit. On the sphere its distance is at most a right angle, so that it hardly
counts.
"""

# %%
# One centre first. Two thirds of the points lie in a crescent; the others are scattered. The
# surface shows the mean squared geodesic distance from each place of the plane to all points. With
# a small σ it follows the crescent. With a large σ it is a bowl around the mean.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

from orthodrome import HypersphericalKMeans, KernelKMeans, plots
from orthodrome.kernels import Gaussian
from orthodrome.metrics import clustering_error
from orthodrome.preimage import karcher_mean_preimage
from orthodrome.sphere import geodesic_distances

rng = np.random.default_rng(0)
moons, moon = make_moons(400, noise=0.08, random_state=0)
X = np.vstack([moons[moon == 0], rng.uniform([-2, -1], [3, 2], size=(100, 2))])
figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
sides = np.linspace(-2.2, 3.2, 121), np.linspace(-1.5, 2.5, 121)
places = np.stack(np.meshgrid(*sides), axis=-1)
for ax, sigma in zip(axes, (0.25, 0.6, 5.0), strict=True):
    kernel = Gaussian(sigma=sigma).fit(X)
    objective = np.mean(geodesic_distances(places.reshape(-1, 2), X, kernel=kernel) ** 2, axis=1)
    surface = ax.contourf(*sides, objective.reshape(121, 121), levels=14, cmap="Greys")
    figure.colorbar(surface, ax=ax, label="Mean squared distance (rad²)")
    ax.scatter(*X.T, s=8)
    ax.plot(*X.mean(axis=0), "rs", label="mean")
    ax.plot(*karcher_mean_preimage(kernel, X).point, "k*", ms=14, label="Karcher pre-image")
    ax.set(title=f"σ = {sigma}", aspect="equal")
axes[0].legend()

# %%
# Four groups with outliers, some of them outside the picture. k-means places centres on outliers.
# :class:`~orthodrome.HypersphericalKMeans` does not, if σ is about the size of a group. As in
# k-means, each point belongs to the nearest centre; only the centres differ.

X, y = make_blobs(300, centers=[[-4, 0], [0, 4], [4, 0], [0, -4]], cluster_std=0.7, random_state=0)
X = np.vstack([X, rng.uniform(-25, 25, size=(40, 2))])
kernel = Gaussian(sigma=1.5)
models = {
    "k-means": KMeans(4, n_init=10, random_state=0),
    "hyperspherical k-means": HypersphericalKMeans(4, kernel, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X)
    error = clustering_error(y, model.labels_[: len(y)])
    print(f"{name}: {error:.1%} of the grouped points in the wrong cluster")
    plots.clusters(X, model.labels_, centers=model.cluster_centers_, ax=ax)
    ax.set(title=f"{name}: {error:.1%} wrong", xlim=(-14, 14), ylim=(-14, 14))

# %%
# Real data: the 178 wines of scikit-learn, standardised, with 20 outliers. k-means again gives
# clusters to the outliers. All methods with a Gaussian kernel find the three cultivars. The centres
# of the first are inputs, as in k-means. The others have centres in feature space.

X, y = load_wine(return_X_y=True)
X = np.vstack([StandardScaler().fit_transform(X), rng.uniform(-15, 15, size=(20, 13))])
kernel = Gaussian(sigma=3.0)
models = {
    "k-means": KMeans(3, n_init=10, random_state=0),
    "hyperspherical k-means": HypersphericalKMeans(3, kernel, random_state=0),
    "intrinsic centres": HypersphericalKMeans(3, kernel, centers="intrinsic", random_state=0),
    "kernel k-means": KernelKMeans(3, kernel, random_state=0),
}
for name, model in models.items():
    error = clustering_error(y, model.fit(X).labels_[: len(y)])
    print(f"{name}: {error:.1%} of the wines in the wrong cluster")
plt.show()

# sphinx_gallery_thumbnail_number = 2
# sphinx_gallery_thumbnail_panel = (2, 2)
