"""
Shapes from landmarks
=====================

Read landmarks of leaves from a TPS file, classify them, and draw their modes.

Landmarks on a leaf, a wing or a skull describe its shape, once position, size and rotation are
removed. Shape kernels do this for every estimator. Landmarks come as arrays of shape (n, k, 2),
complex numbers, flat rows x1, y1, x2, y2, …, or a TPS file.
"""

# %%
# Leaves of passion flowers: fifteen landmarks on each leaf, and three classes of leaves. The data
# are not part of the package; see :func:`orthodrome.datasets.load`. Without them the example uses
# simulated outlines. The leaves are written to a TPS file and read again. The classes are in the
# IDs.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from orthodrome import KernelPGA, KernelRidgeRegressionClassifier, plots
from orthodrome.datasets import load, make_landmark_shapes
from orthodrome.spaces import extrinsic_mean, procrustes_distance, read_tps, write_tps

rng = np.random.default_rng(0)
try:
    passiflora = load("passiflora", download_if_missing=False)
    kinds = passiflora.target_names[passiflora.target]
    chosen = [rng.choice(np.flatnonzero(kinds == kind), 40, replace=False) for kind in "ACF"]
    landmarks, kinds = passiflora.landmarks[np.ravel(chosen)], kinds[np.ravel(chosen)]
except FileNotFoundError:
    print("The leaves are not on this machine: using simulated outlines.")
    landmarks, kinds = make_landmark_shapes(120, variation=0.6, random_state=2)
    landmarks, kinds = 100 * (landmarks - landmarks.min()), np.array(list("ACF"))[kinds]
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "leaves.tps"
    write_tps(file, landmarks, ids=[f"{kind}-{n}" for n, kind in enumerate(kinds)])
    found = read_tps(file)
X = found.landmarks
y = np.array([name.split("-")[0] for name in found.ids])
print(f"{len(X)} leaves of {X.shape[1]} landmarks; the first is {found.ids[0]}")

plots.shapes(X, y, n_columns=3, figure=plt.figure(figsize=(8.4, 3.0)))

# %%
# A mean shape is one leaf of size 1. The kernel ridge regression classifier approximates a new
# shape by the shapes of each class, and chooses the class with the smallest error. Leave-one-out
# chooses bandwidth and ridge.

means = np.stack([extrinsic_mean(X[y == kind]) for kind in "ACF"])
print(f"distance of the mean shapes of A and C: {procrustes_distance(means)[0, 1]:.3f}")

classifier = KernelRidgeRegressionClassifier("veronese_whitney")
scores = cross_val_score(classifier, X, y, cv=5)
classifier.fit(X, y)
print(f"{scores.mean():.1%} accuracy in five folds")
print(f"leave-one-out: {classifier.loo_score_:.1%}, λ = {classifier.alpha_:g}")

# %%
# Kernel PGA of shapes. Pre-images of points along a mode are shapes, which show what the mode
# means.

model = KernelPGA(3, kernel="veronese_whitney", random_state=0).fit(X)
plots.embedding(
    model.embedding_,
    y,
    ax=plt.figure(figsize=(6.4, 4.8), layout="constrained").subplots(),
    ratios=model.explained_variance_ratio_,
    title="Leaves, kernel PGA",
)
plots.shape_modes(model, n_modes=2, figure=plt.figure(figsize=(8.4, 3.6)))

plt.show()

# sphinx_gallery_thumbnail_number = 3
