"""
Robust kernel PCA of corrupted images
=====================================

Find components of digits when every twelfth image is corrupted.

Kernel PCA squares distances, so distant points count most. :class:`~orthodrome.RobustKernelPCA`
leaves outliers out, or reduces their influence, so that a few corrupted images do not determine the
components.
"""

# %%
# Handwritten zeros and ones. Every twelfth image is corrupted: its pixels are bright or dark at
# random.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from orthodrome import KernelMRCD, KernelPCA, RobustKernelPCA, plots

X, y = load_digits(n_class=2, return_X_y=True)
X = X / 16
rng = np.random.default_rng(0)
corrupted = np.zeros(len(X), dtype=bool)
corrupted[::12] = True
noisy = X.copy()
noisy[corrupted] = 3.0 * rng.integers(0, 2, size=(corrupted.sum(), X.shape[1]))
print(f"{corrupted.sum()} of {len(X)} images are corrupted")

# %%
# With the linear kernel, feature space is image space, and a component can be shown as an image.
# From left to right: the component of the clean images, and three components of all images. Kernel
# PCA follows the corrupted images. The default method, mrcd, and spatial signs do not.

clean = KernelPCA(1, "linear").fit(X[~corrupted])
models = {
    "kernel PCA": KernelPCA(1, "linear").fit(noisy),
    "mrcd": RobustKernelPCA(1, "linear").fit(noisy),
    "spatial-sign": RobustKernelPCA(1, "linear", method="spatial-sign").fit(noisy),
}


def component(model):
    """The first component as an image."""
    return model.dual_coef_[:, 0] @ model.X_fit_


reference = component(clean)
figure, axes = plt.subplots(1, 4, figsize=(10, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, {"clean images": clean, **models}.items(), strict=True):
    image = component(model)
    image = image * np.sign(image @ reference)
    cosine = image @ reference / np.linalg.norm(image) / np.linalg.norm(reference)
    largest = np.abs(image).max()
    ax.imshow(image.reshape(8, 8), cmap="PuOr_r", vmin=-largest, vmax=largest)
    ax.set(title=f"{name}\ncosine {cosine:.2f}", xticks=[], yticks=[])

# %%
# The coordinates of zeros and ones separate along a robust component. Along the component of kernel
# PCA they do not, because corrupted images determine it.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    Z = model.transform(X[~corrupted])[:, 0]
    for digit in (0, 1):
        color, _ = plots.class_style(digit)
        ax.hist(Z[y[~corrupted] == digit], bins=30, color=color, alpha=0.7, label=f"digit {digit}")
    ax.set(title=name, xlabel="coordinate of clean images")
axes[0].set_ylabel("images")
axes[0].legend()

# %%
# :class:`~orthodrome.KernelMRCD` flags outliers with the covariance that mrcd finds.

flags = KernelMRCD("linear").fit(noisy).predict(noisy)
print(f"flagged: {np.mean(flags[corrupted] == -1):.0%} of the corrupted images,")
print(f"{np.mean(flags[~corrupted] == -1):.0%} of the others")

plt.show()
