"""
Classify covariance matrices
============================

Symmetric positive definite matrices, such as the covariances of EEG signals, form a curved space.
The log-Euclidean kernel takes them as arrays of shape (n, d, d) and works with any estimator.
"""

# %%
# Signals of six channels with two rhythms. The class says which rhythm is stronger. Each recording
# gives one covariance matrix.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orthodrome import GeodesicMixture, KernelPGA, KernelRidgeRegressionClassifier, plots
from orthodrome.kernels import LogEuclidean
from orthodrome.metrics import clustering_error
from orthodrome.spaces import log_euclidean_distance, log_euclidean_mean

rng = np.random.default_rng(0)
patterns = rng.standard_normal((2, 6))
y = np.repeat([0, 1], 60)
loudness = np.exp(0.3 * rng.standard_normal((120, 2)))
loudness[np.arange(120), y] *= 2.0
sources = loudness[:, :, None] * rng.standard_normal((120, 2, 250))
signals = np.einsum("nst,sc->nct", sources, patterns) + rng.standard_normal((120, 6, 250))
signals *= np.exp(0.15 * rng.standard_normal((120, 1, 1)))  # amplifiers differ
X = np.einsum("nct,ndt->ncd", signals, signals) / 250
print(f"{len(X)} matrices of shape {X[0].shape}")

means = np.stack([log_euclidean_mean(X[y == kind]) for kind in (0, 1)])
print(f"distance between the class means: {log_euclidean_distance(means)[0, 1]:.2f}")

# %%
# The same kernel object in our classifier and in scikit-learn's support vector machine, which needs
# rows. For comparison, the matrix entries as plain features.

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
# Two clusters without labels, and a picture.

mixture = GeodesicMixture(2, kernel="log_euclidean", n_modes=2, random_state=0).fit(X)
print(f"mixture: {clustering_error(y, mixture.labels_):.1%} in the wrong cluster")

embedding = KernelPGA(2, kernel="log_euclidean", random_state=0).fit(X)
plots.embedding(
    embedding.embedding_,
    np.array(["first rhythm", "second rhythm"])[y],
    ax=plt.figure(figsize=(6.4, 4.8), layout="constrained").subplots(),
    ratios=embedding.explained_variance_ratio_,
    title="Covariance matrices, kernel PGA",
)
plt.show()
