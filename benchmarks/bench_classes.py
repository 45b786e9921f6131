"""How the classifiers grow with the number of classes, at a fixed number of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from harness import Curve, Measured, Method, grow, size

from orthodrome import KernelRidgeRegressionClassifier, PerTurbo

CLASSES = size((250, 500, 1_000, 2_000, 4_000), (10, 20))
N_ROWS = size(8_000, 40)
N_NEW = 1_000


Work = Callable[[], Any]
CLASSIFIERS = (KernelRidgeRegressionClassifier, PerTurbo)


@cache
def rows(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return groups of equal size around random centres."""
    rng = np.random.default_rng(1)
    y = np.arange(N_ROWS) % n_classes
    return 3 * rng.standard_normal((n_classes, 8))[y] + 0.3 * rng.standard_normal((len(y), 8)), y


def fit(Classifier: Any, n_classes: int) -> Work:
    X, y = rows(n_classes)
    return lambda: Classifier(sigmas=None).fit(X, y)


def predict(Classifier: Any, n_classes: int) -> Work:
    X, y = rows(n_classes)
    model = Classifier(sigmas=None).fit(X, y)
    return lambda: model.predict(X[:N_NEW])


def error(result: Any, n_classes: int) -> float:
    """Return the leave-one-out error of a model, or the error of predictions."""
    if isinstance(result, np.ndarray):
        return float(np.mean(result != rows(n_classes)[1][:N_NEW]))
    return 1 - float(result.loo_score_)


def over_classes() -> Curve:
    methods = [
        Method(f"{Classifier.__name__}, {work.__name__}", partial(work, Classifier))
        for Classifier in CLASSIFIERS
        for work in (fit, predict)
    ]
    return grow(
        f"KRRC and PerTurbo over the number of classes, {N_ROWS:,} rows in all",
        methods,
        CLASSES,
        error=error,
        required=0.05,
        longest=60.0,
        note="N is the number of classes. The scale of the kernel is fixed; leave-one-out chooses "
        f"λ or α of 19 values. Predictions are for {N_NEW:,} rows. Error: fraction of rows in the "
        "wrong class, at the worst N.",
    )


def growth(curve: Curve) -> list[Measured]:
    """Compare the most classes with the fewest."""
    return [
        Measured(
            name=f"{each.label}: {each.n[-1]:,} classes compared with {each.n[0]:,}",
            ours_label=f"{each.n[-1]:,} classes",
            theirs_label=f"{each.n[0]:,} classes",
            ours=each.seconds[-1],
            theirs=each.seconds[0],
            target=each.n[-1] / each.n[0],
            note="Both sides are ours, as in the figure. The goal is linear growth: the ratio of "
            "the numbers of classes.",
        )
        for each in curve.series
    ]


def run() -> list[Curve | Measured]:
    curve = over_classes()
    return [curve, *growth(curve)]
