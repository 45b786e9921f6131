"""
The class that a point perturbs the least
=========================================

The feature vectors of a class span a subspace. :class:`~orthodrome.PerTurbo` measures how far a new
point is from the span of each class, and takes the nearest. There is nothing to train but an
eigendecomposition of each class's own Gram matrix, and the same one tells how well every point of
the class is explained by the others: regularisation is chosen by exact leave-one-out, for the price
of a single fit.
"""

# %%
# Two half-moons. The darker the blue (or the red), the surer the classifier; far from all data both
# classes are equally far.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.datasets import load_wine, make_moons
from sklearn.model_selection import GridSearchCV, train_test_split

from orthodrome import PerTurbo, plots
from orthodrome.kernels import Gaussian

X, y = make_moons(200, noise=0.25, random_state=0)
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 121), np.linspace(-1.6, 2.1, 91)), axis=-1)
colors = [plots.palette.class_style(c)[0] for c in (0, 1)]
shades = LinearSegmentedColormap.from_list("classes", [colors[0], "white", colors[1]])
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
for ax, geodesic in zip(axes, (False, True), strict=True):
    model = PerTurbo(Gaussian(sigma=0.7), geodesic=geodesic).fit(X, y)
    probability = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
    ax.contourf(*grid.transpose(2, 0, 1), probability, 20, cmap=shades, vmin=0, vmax=1, alpha=0.5)
    for c in (0, 1):
        color, marker = plots.palette.class_style(c)
        ax.scatter(*X[y == c].T, s=16, color=color, marker=marker, linewidth=0, label=f"class {c}")
    name = "along the sphere" if geodesic else "straight"
    ax.set(
        title=f"{name}: α = {model.alpha_:.2g}, {model.loo_score_:.1%} right, left out",
        xlabel="first coordinate",
    )
axes[0].set_ylabel("second coordinate")
axes[1].legend()

# %%
# α is chosen by leave-one-out on its own; the scale of the kernel by an ordinary grid search.
# Wines, as they come, in units that have nothing to do with each other:

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
        f"{search.score(test, y_test):.1%} of the test wines right"
    )
plt.show()
