"""
Ellipses along a geodesic
=========================

Draw covariance matrices as ellipses, and follow a component of kernel PGA.

A covariance matrix can be drawn as an ellipse. Pre-images of points along a component of kernel PGA
are matrices again, so that a component can be drawn. The example also compares means of matrices:
the arithmetic mean has a larger area than any of the matrices.
"""

# %%
# Ellipses of equal area that turn and stretch together.

import matplotlib.pyplot as plt
import numpy as np

from orthodrome import KernelPGA, plots
from orthodrome.spaces import log_euclidean_mean, spd_exp, spd_log

rng = np.random.default_rng(0)
turn = rng.uniform(-0.2, 1.8, 150)
stretch = 0.9 + 0.15 * rng.standard_normal(150)
rotation = np.stack([np.cos(turn), -np.sin(turn), np.sin(turn), np.cos(turn)], axis=-1)
rotation = rotation.reshape(-1, 2, 2)
axes_squared = np.exp(np.stack([stretch, -stretch], axis=-1))
X = np.einsum("nij,nj,nkj->nik", rotation, axes_squared, rotation)


def outline(matrix):
    """The ellipse of a covariance matrix, as two rows of coordinates."""
    angles = np.linspace(0, 2 * np.pi, 100)
    return np.linalg.cholesky(matrix) @ [np.cos(angles), np.sin(angles)]


blue, orange = (plots.class_style(kind)[0] for kind in (0, 1))
means = {"of the logarithms": log_euclidean_mean(X), "of the entries": X.mean(axis=0)}
figure, axes = plt.subplots(1, 2, figsize=(8.4, 4), layout="constrained", sharey=True)
for ax, (name, mean) in zip(axes, means.items(), strict=True):
    for matrix in X[:40]:
        ax.plot(*outline(matrix), color="0.8", linewidth=0.8)
    ax.plot(*outline(mean), color=orange, linewidth=2.5)
    area = np.sqrt(np.linalg.det(mean))
    ax.set(title=f"Mean {name}\n{area:.2f} times the area", aspect="equal")

# %%
# The first component of kernel PGA with the log-Euclidean kernel, from one end to the other: the
# ellipses turn.

model = KernelPGA(2, kernel="log_euclidean", random_state=0).fit(X)
steps = np.zeros((7, 2))
steps[:, 0] = np.linspace(*np.quantile(model.embedding_[:, 0], [0.02, 0.98]), 7)
ellipses = model.inverse_transform(steps)
figure, axes = plt.subplots(1, 7, figsize=(11, 1.9), layout="constrained", sharex=True, sharey=True)
for ax, matrix, step in zip(axes, ellipses, steps[:, 0], strict=True):
    ax.plot(*outline(matrix), color=blue, linewidth=2)
    ax.set(title=f"{step:+.2f}", aspect="equal", xticks=[], yticks=[])
areas = np.sqrt(np.linalg.det(ellipses))
print(f"areas along the component: {areas.min():.2f} to {areas.max():.2f}")

# %%
# The embedding is an arc, because the ellipses differ mainly by their rotation angle. Colours show
# this angle.

plots.embedding(
    model.embedding_,
    np.degrees(turn),
    ax=plt.figure(figsize=(6.2, 4.4), layout="constrained").subplots(),
    ratios=model.explained_variance_ratio_,
    legend_title="turned by, degrees",
)
print(f"log and exp undo each other: {np.abs(spd_exp(spd_log(X)) - X).max():.0e}")

plt.show()

# sphinx_gallery_thumbnail_panel = (1, 2)
