"""
Classify textures by covariance matrices
========================================

Classify photographs of grass and gravel by covariance matrices of patches.

A patch of a photograph can be described by a covariance matrix: how brightness and its derivatives
vary together within the patch. Covariance matrices are symmetric positive definite and form a
curved space. The log-Euclidean kernel takes them as arrays of shape (n, d, d) and works with any
estimator. Covariances of EEG channels are used in the same way.
"""

# %%
# Photographs of grass and gravel that ship with scikit-image. Each is cut into 64 patches of 64 x
# 64 pixels. Each patch gives the covariance matrix of five quantities per pixel: brightness and its
# first and second derivatives in both directions.

import matplotlib.pyplot as plt
import numpy as np
import skimage.data
from scipy.ndimage import gaussian_filter
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orthodrome import GeodesicMixture, KernelPGA, KernelRidgeRegressionClassifier, plots
from orthodrome.kernels import LogEuclidean
from orthodrome.metrics import clustering_error
from orthodrome.spaces import log_euclidean_distance, log_euclidean_mean

SIZE = 64
photographs = {"grass": skimage.data.grass(), "gravel": skimage.data.gravel()}


def covariances(image):
    """Return one covariance matrix per patch, scaled so that the contrast does not matter."""
    orders = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2)]
    channels = np.stack([gaussian_filter(image.astype(float), 1, order=order) for order in orders])
    n = len(image) // SIZE
    patches = channels.reshape(5, n, SIZE, n, SIZE).transpose(1, 3, 0, 2, 4).reshape(n * n, 5, -1)
    matrices = np.stack([np.cov(patch) for patch in patches])
    return matrices / matrices[:, :1, :1]


X = np.concatenate([covariances(image) for image in photographs.values()])
y = np.repeat(list(photographs), len(X) // 2)
print(f"{len(X)} matrices of shape {X[0].shape}")

figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for ax, (name, image) in zip(axes, photographs.items(), strict=True):
    ax.imshow(image[: 3 * SIZE, : 3 * SIZE], cmap="gray")
    ax.set_title(f"{name}: 9 of 64 patches")
    ax.set(xticks=[SIZE, 2 * SIZE], yticks=[SIZE, 2 * SIZE], xticklabels=[], yticklabels=[])
    ax.grid(color="white", linewidth=1.5)

means = np.stack([log_euclidean_mean(X[y == name]) for name in photographs])
print(f"distance between the mean matrices: {log_euclidean_distance(means)[0, 1]:.2f}")

# %%
# The same kernel works in our classifier and in scikit-learn's support vector machine, which needs
# the matrices as rows. The last model uses the entries of the matrices as ordinary features.

flat = X.reshape(len(X), -1)
sigma = LogEuclidean().fit(X).sigma_
models = {
    "kernel ridge, log-Euclidean": (KernelRidgeRegressionClassifier("log_euclidean"), X),
    "support vectors, log-Euclidean": (SVC(kernel=LogEuclidean(sigma)), flat),
    "support vectors, entries": (make_pipeline(StandardScaler(), SVC()), flat),
}
for name, (model, data) in models.items():
    print(f"{name}: {cross_val_score(model, data, y, cv=5).mean():.1%} accuracy")

# %%
# Two clusters, found without labels, and a map. Each point of the map is the matrix of one patch,
# placed by the first two components of kernel PGA.

mixture = GeodesicMixture(2, kernel="log_euclidean", n_modes=2, random_state=0).fit(X)
print(f"mixture: {clustering_error(y, mixture.labels_):.1%} in the wrong cluster")

embedding = KernelPGA(2, kernel="log_euclidean", random_state=0).fit(X)
plots.embedding(
    embedding.embedding_,
    y,
    ax=plt.figure(figsize=(6.4, 4.8), layout="constrained").subplots(),
    ratios=embedding.explained_variance_ratio_,
    title="Patches of grass and gravel",
)
plt.show()

# sphinx_gallery_thumbnail_number = 2
