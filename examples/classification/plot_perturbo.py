"""
Classify by distance to class subspaces
=======================================

A classifier that needs no tuning, on half-moons and wines.

The feature vectors of a class span a subspace. :class:`~orthodrome.PerTurbo` measures the distance
of a new point to the subspace of each class and chooses the nearest. Training is one
eigendecomposition per class. The same decomposition gives exact leave-one-out errors, which choose
the regularisation.
"""

# %%
# Two half-moons. Darker colours mean higher probability. Far from all data, both classes are
# equally probable.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.datasets import load_wine, make_moons
from sklearn.model_selection import GridSearchCV, train_test_split

from orthodrome import PerTurbo, plots
from orthodrome.kernels import Gaussian

X, y = make_moons(200, noise=0.25, random_state=0)
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 121), np.linspace(-1.6, 2.1, 91)), axis=-1)
colors = [plots.class_style(c)[0] for c in (0, 1)]
shades = LinearSegmentedColormap.from_list("classes", [colors[0], "white", colors[1]])
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
for ax, geodesic in zip(axes, (False, True), strict=True):
    model = PerTurbo(Gaussian(sigma=0.7), geodesic=geodesic).fit(X, y)
    probability = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
    ax.contourf(*grid.transpose(2, 0, 1), probability, 20, cmap=shades, vmin=0, vmax=1, alpha=0.5)
    for c in (0, 1):
        color, marker = plots.class_style(c)
        ax.scatter(*X[y == c].T, s=16, color=color, marker=marker, linewidth=0, label=f"class {c}")
    name = "geodesic" if geodesic else "plain"
    ax.set(
        title=f"{name}: α = {model.alpha_:.2g}, leave-one-out {model.loo_score_:.1%}",
        xlabel="first coordinate",
    )
axes[0].set_ylabel("second coordinate")
axes[1].legend()

# %%
# A fit chooses α by leave-one-out. Here a grid search chooses the scale of the kernel as well. The
# columns of the wines are not standardised, so the grid covers a wide range of scales.

X, y = load_wine(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
for geodesic in (False, True):
    search = GridSearchCV(
        PerTurbo(Gaussian(), geodesic=geodesic),
        {"kernel__sigma": np.geomspace(10, 10_000, 13)},
        cv=5,
    ).fit(train, y_train)
    print(
        f"geodesic={geodesic}: σ = {search.best_params_['kernel__sigma']:.0f}, "
        f"{search.score(test, y_test):.1%} accuracy on test wines"
    )
plt.show()

# sphinx_gallery_thumbnail_panel = (1, 2)
