"""Compare clusters and classifiers with scikit-learn's, for the commands cluster and classify."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .._core.types import Array, Floats
from ..spaces import extrinsic_mean, procrustes_align
from .inputs import Data
from .models import Choice

MAJORITY = "majority class"
THIS = "this model"
_CLASSIFIERS = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "support vector machine": SVC(),
}
_MAX_SILHOUETTE_ROWS = 2000


def baseline_features(X: Array, training: Data) -> Floats:
    """Return features for baselines: the columns, or tangent coordinates of landmarks.

    Landmarks are rotated to the mean shape of the training data, projected on the tangent space
    there, and divided by a common factor so that the mean variance is 1.
    """
    if training.kind == "table":
        return np.asarray(X, dtype=np.float64)
    flat = training.X.reshape(len(training), -1)
    mean = extrinsic_mean(flat)

    def tangent(Y: Array) -> Floats:
        aligned = procrustes_align(Y.reshape(len(Y), -1), mean)
        return np.asarray(aligned - np.outer(aligned @ mean, mean), dtype=np.float64)

    scale = float(np.sqrt(np.mean(np.var(tangent(flat), axis=0))))
    return tangent(X) / (scale or 1.0)


# ---------------------------------------------------------------------------- clusterings


def compare_clusterings(
    data: Data, choice: Choice, n_clusters: int, clusters: Array
) -> dict[str, dict[str, float]]:
    """Score the given clusters, and clusters of k-means and a Gaussian mixture.

    Returns
    -------
    dict
        The scores of all clusterings for each criterion: "silhouette", on standardised columns or
        tangent coordinates, and "adjusted_rand" if there are labels. Larger is better. Empty if
        there is a single cluster, because no criterion is then defined.
    """
    if n_clusters < 2 or len(data) < 3:
        return {}
    features = baseline_features(data.X, data)
    common = StandardScaler().fit_transform(features) if data.kind == "table" else features
    used = common if choice.standardize else features
    k_means = KMeans(n_clusters, n_init=10, random_state=choice.seed)
    mixture = GaussianMixture(n_clusters, reg_covar=1e-4, random_state=choice.seed)
    rows = data.sample_rows(_MAX_SILHOUETTE_ROWS, choice.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # users cannot act on warnings about the baselines
        found = {
            THIS: clusters,
            "k-means": k_means.fit_predict(used),
            "Gaussian mixture": mixture.fit_predict(used),
        }
    scores = {"silhouette": {name: _silhouette(common[rows], c[rows]) for name, c in found.items()}}
    if data.labels is not None:
        indices = {name: float(adjusted_rand_score(data.labels, c)) for name, c in found.items()}
        scores["adjusted_rand"] = indices
    return scores


def _silhouette(features: Floats, clusters: Array) -> float:
    """Return the silhouette score; 0 if it is not defined."""
    if not 1 < len(np.unique(clusters)) < len(clusters):
        return 0.0
    return float(silhouette_score(features, clusters))


def clustering_lines(data: Data, scores: dict[str, dict[str, float]]) -> list[str]:
    """Return the scores as text, and whether a baseline is as good."""
    if not scores:
        return []
    features = "standardised columns" if data.kind == "table" else "tangent coordinates"
    titles = {
        "silhouette": f"Silhouette of the {features}",
        "adjusted_rand": "Adjusted Rand index with the labels",
    }
    lines = [f"{titles[name]}: {_listing(values, '.3f')}." for name, values in scores.items()]
    by_labels = "adjusted_rand" in scores
    values = scores["adjusted_rand" if by_labels else "silhouette"]
    gains = {key: value - values[THIS] for key, value in values.items() if key != THIS}
    # the standard error of a fraction of n rows is at most 0.5 / √n
    margin = max(0.01, 0.5 / float(np.sqrt(len(data))))
    better = [key for key, gain in gains.items() if gain > margin]
    equal = [key for key, gain in gains.items() if abs(gain) <= margin]
    criterion = "adjusted Rand index" if by_labels else "silhouette, which favours round clusters"
    return [*lines, f"By the {criterion}: {_verdict(better, equal)}"]


# ---------------------------------------------------------------------------- classifiers


def baseline_predictions(
    data: Data, labels: Array, choice: Choice, tested: Data, folds: StratifiedKFold | None
) -> dict[str, Array]:
    """Return the predictions of each baseline: cross-validated, or for new rows if no folds."""
    names, counts = np.unique(labels, return_counts=True)
    features = baseline_features(data.X, data)
    found = {MAJORITY: np.full(len(tested), names[np.argmax(counts)])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # users cannot act on warnings about the baselines
        for name, classifier in _CLASSIFIERS.items():
            scaling = [StandardScaler()] if choice.standardize else []
            model = make_pipeline(*scaling, clone(classifier))
            if folds is not None:
                found[name] = cross_val_predict(model, features, labels, cv=folds)
            else:
                new = baseline_features(tested.X, data)
                found[name] = model.fit(features, labels).predict(new)
    return found


def classification_lines(labels: Array, predicted: Mapping[str, Array]) -> list[str]:
    """Return the accuracies of baselines as text, and whether one is as good as `THIS`.

    A baseline is as good if its accuracy differs from that of `THIS` by at most two standard errors
    of the difference.
    """
    correct = {name: (each == labels).astype(np.float64) for name, each in predicted.items()}
    ours = correct.pop(THIS)
    better, equal = [], []
    for name, theirs in correct.items():
        difference = theirs - ours
        error = float(np.std(difference)) / np.sqrt(len(labels))
        if abs(difference.mean()) <= 2 * error:
            equal.append(name)
        elif difference.mean() > 0:
            better.append(name)
    accuracies = {name: float(each.mean()) for name, each in correct.items()}
    verdict = _verdict(better, equal)
    return [f"Baselines: {_listing(accuracies, '.1%')}: {verdict}"]


# ---------------------------------------------------------------------------- text


def _listing(values: Mapping[str, float], form: str) -> str:
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def _verdict(better: list[str], equal: list[str]) -> str:
    """Return a sentence that says which baselines are better or as good."""
    parts = []
    for names, verdict in ((better, "better"), (equal, "as good")):
        if names:
            listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
            parts.append(f"{listed} {'is' if len(names) == 1 else 'are'} {verdict}")
    return f"{', '.join(parts)}." if parts else "no baseline is as good."
