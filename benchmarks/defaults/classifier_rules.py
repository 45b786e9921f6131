"""Try other rules for the scale and α of the classifiers.

The residuals are computed here for all scales and values of α at once, by the formulas of the
classes. The splits are the first ones of ``classification.py``. Run
``python benchmarks/defaults/classifier_rules.py [n_splits]``; it writes
``docs/defaults/classifier_rules.md``.
"""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

import numpy as np
from common import CHOOSE, CONFIRM, markdown_table, mean_and_error, table, write
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

SCALES = 2.0 ** np.arange(-2, 4)
ALPHAS = np.sort(np.append(10.0 ** np.arange(-8, 2), 3 * 10.0 ** np.arange(-8, 1)))
TEMPERATURES = 10.0 ** np.arange(-4.5, 1.1, 0.5)
METHODS = ("KRRC", "PerTurbo")
DEFAULT = "default"

INTRODUCTION = """\
## Other rules for the classifiers

Differences of accuracy from the rule with `kernel="gaussian"`, in percentage points; tables and
splits are those of the section on classification ({n_splits} splits). The rules are:

- a kernel exp(-d/σ) as a further candidate, by leave-one-out accuracy or likelihood;
- the mean of the probabilities of the five likeliest candidates of both kernels;
- an α for each class, changed in turn while leave-one-out accuracy rises;
- logistic regression on the logarithms of the leave-one-out residuals.
"""

CONCLUSION = """\
The gains on the sets to choose on are not confirmed on the others, so we kept the rule."""


class Candidates(NamedTuple):
    """Residuals for scales, values of α, points and classes, and what leave-one-out says."""

    left_out: NDArray
    new: NDArray
    accuracy: NDArray
    likelihood: NDArray
    temperature: NDArray


def residuals(
    train: NDArray, new: NDArray, y: NDArray, *, exponential: bool = False
) -> dict[str, Candidates]:
    """Return leave-one-out residuals, and those of new points, of both methods."""
    own, other = (cdist(points, train, "sqeuclidean") for points in (train, new))
    shape = len(SCALES), len(ALPHAS)
    n_classes = y.max() + 1
    found = {m: [np.empty((*shape, len(d), n_classes)) for d in (own, other)] for m in METHODS}
    for number, scale in enumerate(SCALES):
        squares = [d / (2 * own.mean() * scale**2) for d in (own, other)]
        grams = [np.exp(-np.sqrt(d) if exponential else -d) for d in squares]
        for label in range(n_classes):
            rows = np.flatnonzero(y == label)
            values, vectors = np.linalg.eigh(grams[0][np.ix_(rows, rows)])
            values = np.maximum(values, 0)[:, None]
            inverse = 1 / (values + ALPHAS)
            weights = (values + 2 * ALPHAS) * inverse**2, inverse
            own_entries = vectors**2 @ inverse
            left_out = (
                vectors**2 @ (values * inverse**2) / own_entries**2,
                1 / own_entries - ALPHAS,
            )
            for method, weight, own_class in zip(METHODS, weights, left_out, strict=True):
                for part, gram in zip(found[method], grams, strict=True):
                    part[number, :, :, label] = 1 - ((gram[:, rows] @ vectors) ** 2 @ weight).T
                found[method][0][number, :, rows, label] = own_class
    return {method: judged(*parts, y) for method, parts in found.items()}


def judged(left_out: NDArray, new: NDArray, y: NDArray) -> Candidates:
    """Add the accuracy, and the likelihood at the best temperature."""
    likelihoods = np.array([likelihood(left_out / t, y) for t in TEMPERATURES])
    best = likelihoods.argmax(axis=0)
    accuracy = np.mean(left_out.argmin(axis=-1) == y, axis=-1)
    return Candidates(left_out, new, accuracy, likelihoods.max(axis=0), TEMPERATURES[best])


def likelihood(scaled: NDArray, y: NDArray) -> NDArray:
    logs = log_softmax(-scaled, axis=-1)
    return logs[..., np.arange(len(y)), y].mean(axis=-1)


def last_best(accuracy: NDArray) -> tuple[int, int]:
    """Return the best scale and α; ties go to the largest scale, then to the largest α."""
    scale, alpha = np.argwhere(accuracy >= accuracy.max() - 1e-12)[-1]
    return int(scale), int(alpha)


def mean_of_likeliest(candidates: tuple[Candidates, ...], count: int) -> NDArray:
    """Return the classes with the highest mean probability."""
    likelihoods = np.stack([each.likelihood for each in candidates])
    total = np.zeros(candidates[0].new.shape[2:])
    for flat in np.argsort(-likelihoods, axis=None)[:count]:
        kernel, scale, alpha = np.unravel_index(flat, likelihoods.shape)
        each = candidates[kernel]
        total += softmax(-each.new[scale, alpha] / each.temperature[scale, alpha], axis=-1)
    return total.argmax(axis=-1)


def alpha_of_each_class(each: Candidates, y: NDArray) -> NDArray:
    """Return the classes after coordinate ascent from the default."""
    scale, alpha = last_best(each.accuracy)
    classes = np.arange(each.new.shape[-1])
    chosen, best = np.full(len(classes), alpha), each.accuracy[scale, alpha]
    for _ in range(3):
        for label in classes:
            for trial in range(len(ALPHAS)):
                changed = np.where(classes == label, trial, chosen)
                accuracy = np.mean(each.left_out[scale][changed, :, classes].argmin(axis=0) == y)
                if accuracy > best:
                    chosen, best = changed, accuracy
    return each.new[scale][chosen, :, classes].argmin(axis=0)


def logistic(each: Candidates, y: NDArray) -> NDArray:
    """Return the classes by logistic regression on the residuals of the default."""
    pair = last_best(each.accuracy)
    known, new = (np.log(np.maximum(part[pair], 1e-9)) for part in (each.left_out, each.new))
    mean, spread = known.mean(axis=0), known.std(axis=0) + 1e-9
    model = LogisticRegression(max_iter=300).fit((known - mean) / spread, y)
    return model.predict((new - mean) / spread)


def best_accuracy(candidates: tuple[Candidates, ...]) -> NDArray:
    """Return the classes of the first candidates with the best accuracy."""
    best = max(candidates, key=lambda each: float(each.accuracy.max()))
    return best.new[last_best(best.accuracy)].argmin(axis=-1)


def predictions(train: NDArray, y: NDArray, new: NDArray) -> dict[str, dict[str, NDArray]]:
    """Return the classes of new points by method and rule."""
    gaussian = residuals(train, new, y)
    exponential = residuals(train, new, y, exponential=True)
    found = {}
    for method in METHODS:
        each, both = gaussian[method], (gaussian[method], exponential[method])
        found[method] = {
            DEFAULT: best_accuracy((each,)),
            "both kernels, accuracy": best_accuracy(both),
            "both kernels, likelihood": mean_of_likeliest(both, 1),
            "five likeliest": mean_of_likeliest(both, 5),
            "α for each class": alpha_of_each_class(each, y),
            "logistic regression": logistic(each, y),
        }
    return found


def accuracies(name: str, seed: int) -> list[list[float]]:
    """Return the accuracy of each method and rule on one split."""
    X, y = table(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train, new, known, labels = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=seed
        )
        found = predictions(train, known, new)
    return [[float(np.mean(p == labels)) for p in rules.values()] for rules in found.values()]


def main(n_splits: int) -> None:
    sets = (*CHOOSE, *CONFIRM)
    jobs = [(name, seed) for seed in range(n_splits) for name in sets]
    scores = np.array(Parallel(n_jobs=-1, verbose=10)(delayed(accuracies)(*job) for job in jobs))
    scores = 100 * scores.reshape(n_splits, len(sets), len(METHODS), -1)
    gains = scores[..., 1:] - scores[..., :1]
    n = len(CHOOSE)
    names = (
        *("both kernels, accuracy", "both kernels, likelihood", "five likeliest"),
        *("α for each class", "logistic regression"),
    )
    rows = [
        [
            rule,
            *(
                mean_and_error(gains[:, part, method, number].mean(axis=1), 2)
                for part in (slice(n), slice(n, None))
                for method in range(len(METHODS))
            ),
        ]
        for number, rule in enumerate(names)
    ]
    header = ["rule", *(f"{m}, {part}" for part in ("choose", "confirm") for m in METHODS)]
    lines = [*INTRODUCTION.format(n_splits=n_splits).splitlines(), ""]
    write("classifier_rules", [*lines, *markdown_table(header, rows), "", CONCLUSION])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
