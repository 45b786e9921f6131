"""
Kernel PCA and PCA of digits
============================

Kernel PCA with the linear kernel is PCA. With a Gaussian kernel whose bandwidth is the root mean
squared distance, the picture of the digits changes little, and the variance is spread over more
components. A kernel is no magic: look before you use one.
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
# The first two components, each point an image.

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
# How much of the variance each component explains. The two are not comparable as figures of merit:
# each is a fraction of the variance in a feature space of its own.

_, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plots.spectrum(model, ax=ax, title=name)

# %%
# Which solver ran, and how often it multiplied with the Gram matrix.

for name, model in models.items():
    print(f"{name}: {model.solver_}, {model.n_iter_} products")

plt.show()
