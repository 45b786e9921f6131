"""
Denoise digits by pre-images
============================

Clean noisy handwritten digits with PCA and kernel PCA.

A noisy image is projected on the leading components of clean images. This removes most of the
noise. The way back from feature space is a *pre-image*: the image whose feature vector is nearest
to the projection.
"""

# %%
# Clean digits for training, and noisy ones to clean.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from orthodrome import KernelPCA, plots

X, y = load_digits(return_X_y=True)
train, test, _, y_test = train_test_split(
    X / 16, y, train_size=1000, test_size=300, stratify=y, random_state=0
)
noisy = test + 0.25 * np.random.default_rng(0).standard_normal(test.shape)

# %%
# With the linear kernel, ``inverse_transform`` is that of PCA. With a radial kernel, it finds
# pre-images. A Gaussian kernel can keep more components before they also reproduce the noise.

cleaned = {}
for kernel, n_components in [("linear", 16), ("gaussian", 64)]:
    model = KernelPCA(n_components, kernel, random_state=0).fit(train)
    cleaned[kernel] = model.inverse_transform(model.transform(noisy))

first = [int(np.flatnonzero(y_test == digit)[0]) for digit in range(10)]
rows = {
    "noisy": noisy[first],
    "PCA, 16 components": cleaned["linear"][first],
    "kernel PCA, 64 components": cleaned["gaussian"][first],
    "original": test[first],
}
figure = plt.figure(figsize=(6, 4), layout="constrained")
plots.images(rows, shape=(8, 8), limits=(0, 1), figure=figure)

# %%
# The mean squared error, compared with the originals.

for name, images in {"noisy": noisy, **cleaned}.items():
    print(f"{name:>8}: {np.mean((images - test) ** 2):.4f}")

plt.show()
