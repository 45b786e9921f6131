"""
Bandwidth and ridge by leave-one-out
====================================

Choose two parameters of a classifier by exact leave-one-out, on wines.

:class:`~orthodrome.KernelRidgeRegressionClassifier` has two parameters: the kernel bandwidth and
the ridge parameter. Exact leave-one-out chooses both. It costs one eigendecomposition per class and
bandwidth, however many values of the ridge parameter are compared.
"""

# %%
# Standardised wines. Each cell of the figure is a full leave-one-out run: each wine is classified
# by all others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from orthodrome import KernelRidgeRegressionClassifier
from orthodrome.kernels import Gaussian

X, y = load_wine(return_X_y=True)
scaled = StandardScaler().fit_transform(X)
model = KernelRidgeRegressionClassifier(
    Gaussian(), sigmas=np.geomspace(0.5, 20, 18), alphas=np.geomspace(1e-6, 10, 22)
).fit(scaled, y)
print(
    f"σ = {model.kernel_.sigma_:.2g}, λ = {model.alpha_:.2g}: "
    f"leave-one-out accuracy {model.loo_score_:.1%}"
)

_, ax = plt.subplots(figsize=(6.6, 4.4), layout="constrained")
drawn = ax.pcolormesh(model.sigmas_, model.alphas_, model.loo_scores_.T, cmap="cividis")
ax.plot(model.kernel_.sigma_, model.alpha_, "*", color="white", markeredgecolor="black", ms=16)
ax.set(
    xscale="log", yscale="log", xlabel="bandwidth σ", ylabel="ridge λ",
    title="Leave-one-out accuracy of wines (star: chosen)",
)  # fmt: skip
plt.colorbar(drawn, ax=ax, label="accuracy")

# %%
# The best of many leave-one-out scores is too optimistic. For a fair estimate, each fold of a
# cross-validation chooses the parameters again. A support vector machine with a grid search is
# shown for comparison.

candidates = {
    "kernel ridge, leave-one-out": make_pipeline(
        StandardScaler(), KernelRidgeRegressionClassifier()
    ),
    "support vectors, grid search": GridSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__gamma": np.geomspace(1e-3, 1, 6), "svc__C": np.geomspace(0.1, 100, 4)},
        cv=5,
    ),
}
for name, candidate in candidates.items():
    print(f"{name}: {cross_val_score(candidate, X, y, cv=5).mean():.1%} accuracy")

# %%
# The residual of a wine is what a class cannot explain. The class with the smallest residual wins.
# Probabilities come from the same numbers.

residuals = model.class_residuals(scaled[[0, 70, 150]])
for kind, row, probability in zip(
    y[[0, 70, 150]], residuals, model.predict_proba(scaled[[0, 70, 150]]), strict=True
):
    left, probable = np.array2string(row, precision=1), np.round(probability, 2)
    print(f"a wine of kind {kind}: residuals {left}, probabilities {probable}")

plt.show()
