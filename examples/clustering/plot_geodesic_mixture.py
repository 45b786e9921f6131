"""
A Gaussian mixture on the sphere
================================

Cluster wines with Gaussians on a sphere, and choose their number by BIC.

:class:`~orthodrome.GeodesicMixture` fits Gaussians on the sphere in feature space, each in the
tangent space of its own mean. A mixture in a single flat space distorts clusters that are far from
its origin.
"""

# %%
# Three long, thin clusters at right angles to each other on the unit sphere. With the linear
# kernel, feature space is the space of the data. In the tangent space of the overall mean the
# clusters are bent, and one Gaussian per cluster fits them badly. On the sphere they are straight.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from orthodrome import GeodesicMixture, plots
from orthodrome.metrics import clustering_error
from orthodrome.sphere import exp, exp_at_pole

rng = np.random.default_rng(0)
X, y = [], np.repeat([0, 1, 2], 150)
for c in range(3):
    here, there, thin = np.roll(np.eye(3), c, axis=1)
    long = (there - thin) / np.sqrt(2)
    across = (there + thin) / np.sqrt(2)
    steps = rng.standard_normal((150, 2)) * [0.35, 0.06]
    X.append(exp(steps @ np.array([long, across]), base_point=here))
X = np.concatenate(X)

model = GeodesicMixture(3, n_modes=2, kernel="linear", random_state=0).fit(X)
tangent = model.pga_.transform(X)
flat = GaussianMixture(3, n_init=5, random_state=0).fit(tangent)
print(f"on the sphere: {clustering_error(y, model.labels_):.1%} in the wrong cluster")
print(
    f"in one tangent space: {clustering_error(y, flat.predict(tangent)):.1%} in the wrong cluster"
)
widths = [np.sqrt(np.linalg.eigvalsh(c)[0]) for c in model.covariances_]
print("widths of the components (true value 0.06):", np.round(widths, 3))
widths = [np.sqrt(np.linalg.eigvalsh(c)[0]) for c in flat.covariances_]
print("and in one tangent space:", np.round(widths, 3))

figure = plt.figure(figsize=(11, 4.6), layout="constrained")
left, right = figure.subplots(1, 2)
plots.sphere(
    exp_at_pole(tangent),
    model.labels_,
    ax=left,
    title="On the sphere",
    legend_title="component",
)
plots.clusters(
    tangent,
    flat.predict(tangent),
    ax=right,
    title="Flat mixture in one tangent space",
)

# %%
# With a Gaussian kernel, the sphere is in feature space. The Bayesian information criterion (BIC)
# chooses the number of components for the wines, which come from three cultivars.

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
models = {k: GeodesicMixture(k, random_state=0).fit(X) for k in range(1, 7)}
bic = [model.bic(X) for model in models.values()]
best = models[1 + int(np.argmin(bic))]
print(
    f"{best.n_components} components, {clustering_error(y, best.labels_):.1%} in the wrong cluster"
)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.plot(list(models), bic, "o-", color=plots.class_style(0)[0])
left.set(xlabel="components", ylabel="BIC (lower is better)", title="Wines")
plots.clusters(
    best.pga_.transform(X),
    best.labels_,
    proba=best.predict_proba(X),
    ax=right,
    title="Best mixture, kernel PGA coordinates",
)
plt.show()

# %%
# The mixture can be sampled. Pre-images of samples are new wines.

wines, kinds = best.sample(300, random_state=0)
print(
    f"{np.mean(best.predict(wines) == kinds):.0%} of sampled wines are assigned to their component"
)

# sphinx_gallery_thumbnail_number = 2
# sphinx_gallery_thumbnail_panel = (2, 2)
