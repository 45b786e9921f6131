"""
Which picture preserves the neighbours?
=======================================

Compare five maps of handwritten digits by the neighbours they preserve.

Every embedding in two dimensions loses something. Neighbourhood preservation counts, for every
point and every κ, how many of its κ nearest neighbours in the data are among the κ nearest in the
picture. The curves show what each method is good for.
"""

# %%
# Five pictures of the same digits: PCA, two methods on the sphere of a Gaussian kernel, and two
# neighbour methods of scikit-learn.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, Isomap

from orthodrome import KernelPGA, KernelPNS, plots
from orthodrome.metrics import coranking_matrix, neighborhood_area, neighborhood_preservation

X, y = load_digits(return_X_y=True)
X, y = X[:250], y[:250]
embeddings = {
    "PCA": PCA(2).fit_transform(X),
    "kernel PGA": KernelPGA(2, random_state=0).fit_transform(X),
    "nested spheres, great": KernelPNS(2).fit_transform(X),
    "Isomap": Isomap(n_neighbors=15, n_components=2).fit_transform(X),
    "t-SNE": TSNE(2, init="pca", random_state=0).fit_transform(X),
}
figure, axes = plt.subplots(1, 5, figsize=(14, 3.2), layout="constrained")
for ax, (name, Z) in zip(axes, embeddings.items(), strict=True):
    for digit in range(10):
        color, marker = plots.class_style(digit)
        ax.scatter(*Z[y == digit].T, s=10, color=color, marker=marker, linewidth=0)
    ax.set(title=name, xticks=[], yticks=[])

# %%
# The left part of each curve shows the nearest few neighbours, the right part the overall
# arrangement. The area weighs all sizes equally: 1 is perfect, 0 is random.

kept = {name: neighborhood_preservation(X, Z) for name, Z in embeddings.items()}
plots.neighborhood(
    kept,
    xscale="log",
    ax=plt.figure(figsize=(6.4, 4.8), layout="constrained").subplots(),
)
for name, curve in kept.items():
    print(
        f"{name:>22}: {curve[9]:.0%} of 10 neighbours kept, {curve[124]:.0%} of 125, "
        f"area {neighborhood_area(curve):.2f}"
    )

# %%
# The co-ranking matrix counts the pairs with rank k in the data and rank l in the picture. A
# perfect picture has all pairs on the diagonal. Pairs above it were torn apart; pairs below it were
# pushed together.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, name in zip(axes, ("PCA", "t-SNE"), strict=True):
    counts = coranking_matrix(X, embeddings[name])
    ax.imshow(counts, cmap="magma_r", vmax=6, extent=(1, 249, 249, 1))
    ax.set(title=name, xlabel="Rank in the picture")
axes[0].set_ylabel("Rank in the data")

plt.show()

# sphinx_gallery_thumbnail_number = 2
