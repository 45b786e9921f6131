"""
Curved and nested groups
========================

Cluster rings, half-moons and handwritten digits by a graph of similarities.

k-means separates groups by straight lines. Spectral clustering connects similar points in a graph;
eigenvectors of the graph are nearly constant on each connected group. This example compares three
ways to use eigenvectors, on rings and half-moons, and ends with handwritten digits.
"""

# %%
# σ is about the distance between neighbours, so that points across the gap are not connected.
# ``"njw"`` and ``"ncut"`` use eigenvectors of the graph; ``"kernel-pca"`` uses those of the centred
# Gram matrix, which are directions of large variance and not necessarily groups.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles, make_moons

from orthodrome import KernelSpectralClustering, plots
from orthodrome.kernels import Gaussian
from orthodrome.metrics import clustering_error, variation_of_information

data = {
    "rings": make_circles(500, factor=0.45, noise=0.05, random_state=0),
    "half-moons": make_moons(500, noise=0.06, random_state=0),
}
methods = {"k-means": KMeans(2, n_init=10, random_state=0)}
for laplacian in ("njw", "ncut", "kernel-pca"):
    methods[laplacian] = KernelSpectralClustering(
        2, Gaussian(sigma=0.1), laplacian=laplacian, random_state=0
    )

# %%
# Variation of information measures the distance between a clustering and the true classes: 0 is
# perfect, and 2 log 2 = 1.39 is what two unrelated halves give.

figure, grid = plt.subplots(
    len(data), len(methods), figsize=(12, 6), layout="constrained", sharex="row", sharey="row"
)
for axes, (name, (X, y)) in zip(grid, data.items(), strict=True):
    for ax, (method, model) in zip(axes, methods.items(), strict=True):
        labels = model.fit_predict(X)
        distance = variation_of_information(y, labels)
        print(f"{name:>10}, {method:>10}: variation of information {distance:.2f}")
        for cluster in range(2):
            color, marker = plots.class_style(cluster)
            ax.scatter(*X[labels == cluster].T, s=9, color=color, marker=marker, linewidth=0)
        ax.set(title=f"{method}: {distance:.2f}", aspect="equal")
    axes[0].set_ylabel(f"{name}\nsecond coordinate")
for ax in grid[-1]:
    ax.set_xlabel("first coordinate")
figure.suptitle("Clusters, and their variation of information from the true classes (nats)")

# %%
# Why it works: the second eigenvector of the graph has one value on each half-moon, which is easy
# for k-means. The first component of kernel PCA is large only at the end of one moon, where many
# points are similar.

X, y = data["half-moons"]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2), layout="constrained", sharey=True)
for ax, (method, column) in zip(axes, {"ncut": 1, "kernel-pca": 0}.items(), strict=True):
    values = methods[method].fit(X).embedding_[:, column]
    drawn = ax.scatter(*X.T, c=values, s=12, cmap="cividis")
    figure.colorbar(drawn, ax=ax, shrink=0.7, label=f"column {column + 1} of the embedding")
    ax.set(title=method, xlabel="first coordinate", aspect="equal")
axes[0].set_ylabel("second coordinate")

# %%
# New points are embedded by the Nyström extension, from their similarities to the training points,
# and assigned to the nearest centre. The border follows the gap.

model = methods["njw"].fit(X)
x1, x2 = np.meshgrid(np.linspace(-1.6, 2.6, 300), np.linspace(-1.1, 1.6, 200))
found = model.predict(np.column_stack([x1.ravel(), x2.ravel()]))
colors = [plots.class_style(cluster)[0] for cluster in range(2)]
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.contourf(x1, x2, found.reshape(x1.shape), levels=[-0.5, 0.5, 1.5], colors=colors, alpha=0.25)
for cluster in range(2):
    color, marker = plots.class_style(cluster)
    ax.scatter(*X[model.labels_ == cluster].T, s=9, color=color, marker=marker, linewidth=0)
ax.set(
    title="The cluster of every point of the plane",
    xlabel="first coordinate",
    ylabel="second coordinate",
    aspect="equal",
)

# %%
# Real data: handwritten digits of scikit-learn. By default the graph is chosen from the data. The
# map shows two of the eigenvectors that k-means then groups.

X, y = load_digits(return_X_y=True)
X, y = X[:800] / 16, y[:800]
model = KernelSpectralClustering(10, random_state=0).fit(X)
labels = KMeans(10, n_init=10, random_state=0).fit_predict(X)
print(f"k-means: {clustering_error(y, labels):.1%} of the digits in the wrong cluster")
print(f"spectral: {clustering_error(y, model.labels_):.1%}")
plots.embedding(
    model.embedding_[:, 1:3],
    y,
    ax=plt.figure(figsize=(6.4, 4.8), layout="constrained").subplots(),
    title="Digits: two eigenvectors of the graph",
    legend_title="digit",
)

plt.show()

# sphinx_gallery_thumbnail_number = 3
