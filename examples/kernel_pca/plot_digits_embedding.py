"""
Kernel PCA and PCA of digits
============================

Compare PCA and kernel PCA on handwritten digits.

Kernel PCA with the linear kernel is PCA. With a Gaussian kernel and the default bandwidth, the
picture of the digits changes little, and the variance is spread over more components. A kernel does
not always help: compare before you use one.
"""

# %%
# The data are 8 x 8 images of handwritten digits that ship with scikit-learn.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from orthodrome import KernelPCA, plots
from orthodrome.kernels import Gaussian, Linear

X, y = load_digits(return_X_y=True)
models = {
    "Linear kernel (PCA)": KernelPCA(20, Linear(), random_state=0).fit(X),
    "Gaussian kernel": KernelPCA(20, Gaussian(sigma="mean"), random_state=0).fit(X),
}

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
# The variance explained by each component. The two figures cannot be compared: each is a fraction
# of the variance in its own feature space.

_, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plots.spectrum(model, ax=ax, title=name)

# %%
# The solver, and its number of products with the Gram matrix.

for name, model in models.items():
    print(f"{name}: {model.solver_}, {model.n_iter_} products")

plt.show()

# sphinx_gallery_thumbnail_panel = (1, 2)
