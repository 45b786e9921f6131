"""
Kernel PCA that spoilt images move less
=======================================

Squares make far points count most. :class:`~orthodrome.RobustKernelPCA` maximises a smaller power
of the projections instead, so that a few spoilt images do not take the components for themselves.
"""

# %%
# Handwritten zeros and ones, among which every twelfth image is spoilt: its pixels are bright or
# dark at random.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from orthodrome import KernelPCA, RobustKernelPCA, plots

X, y = load_digits(n_class=2, return_X_y=True)
X = X / 16
rng = np.random.default_rng(0)
spoilt = np.zeros(len(X), dtype=bool)
spoilt[::12] = True
noisy = X.copy()
noisy[spoilt] = 3.0 * rng.integers(0, 2, size=(spoilt.sum(), X.shape[1]))
print(f"{spoilt.sum()} of {len(X)} images are spoilt")

# %%
# With the linear kernel feature space is image space, and a component can be looked at: what it
# adds to the mean. Beside the component of the clean images, that of all images by squares (p = 2)
# and by p = 1, about the spatial median, which spoilt images move less than the mean.

clean = KernelPCA(1, "linear").fit(X[~spoilt])
models = {
    "p = 2, mean": RobustKernelPCA(1, "linear", p=2.0).fit(noisy),
    "p = 1, spatial median": RobustKernelPCA(1, "linear", p=1.0, center="spatial-median").fit(
        noisy
    ),
}


def component(model):
    """The first component as an image."""
    return model.dual_coef_[:, 0] @ model.X_fit_


reference = component(clean)
figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, {"clean images": clean, **models}.items(), strict=True):
    image = component(model)
    image = image * np.sign(image @ reference)
    cosine = image @ reference / np.linalg.norm(image) / np.linalg.norm(reference)
    largest = np.abs(image).max()
    ax.imshow(image.reshape(8, 8), cmap="PuOr_r", vmin=-largest, vmax=largest)
    ax.set(title=f"{name}\ncosine {cosine:.2f}", xticks=[], yticks=[])

# %%
# The same in coordinates: zeros and ones fall apart along the component where spoilt images do not
# have it.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    Z = model.transform(X[~spoilt])[:, 0]
    for digit in (0, 1):
        color, _ = plots.palette.class_style(digit)
        ax.hist(Z[y[~spoilt] == digit], bins=30, color=color, alpha=0.7, label=f"digit {digit}")
    ax.set(title=name, xlabel="coordinate of the images that are not spoilt")
axes[0].set_ylabel("images")
axes[0].legend()

# %%
# It is no cure for everything: outliers that agree with each other are a direction of the data, for
# every p.

plt.show()
