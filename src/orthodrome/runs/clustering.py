"""One clustering of one file of data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.progress import reporting
from ..metrics import clustering_error, variation_of_information
from .inputs import Data, InputError
from .models import Choice, last_step, make_model
from .work import Work, silent

__all__ = ["Agreement", "Clustering", "cluster"]


@dataclass(frozen=True)
class Agreement:
    """How clusters and the labels of the file agree.

    Attributes
    ----------
    counts : ndarray of shape (n_labels, n_clusters)
        How many points of each label are in each cluster.
    labels : tuple of str
        The labels, in the order of the rows of `counts`.
    error : float
        The share of points outside of the best matching of clusters with labels.
    majority_error : float
        That of one cluster of all points.
    variation_of_information : float
        In nats; 0 if clusters and labels are the same partition.
    """

    counts: NDArray[np.int64]
    labels: tuple[str, ...]
    error: float
    majority_error: float
    variation_of_information: float


@dataclass(frozen=True)
class Clustering:
    """What :func:`cluster` has found."""

    data: Data
    choice: Choice
    model: Any
    labels: NDArray[np.intp]
    probabilities: NDArray[np.float64] | None  # of the own cluster of each point
    coordinates: NDArray[np.float64]  # two, to draw the points
    agreement: Agreement | None
    notes: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many points each cluster has."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    @property
    def n_clusters(self) -> int:
        """How many clusters were asked for."""
        return int(next(iter(self.choice.parameters.values())))


def cluster(data: Data, choice: Choice, report: Any = silent) -> Clustering:
    """Cluster the points of a file.

    Parameters
    ----------
    data : Data
        Points of a file; labels, if there are any, are only compared with the clusters.
    choice : Choice
        Which method and kernel, and how many clusters (``parameters``).
    report : callable, optional
        Told how far the work has come.

    Returns
    -------
    clustering : Clustering
        The fitted model and the cluster of each point.
    """
    work = Work(report, clustering=8, picture=2)
    model = make_model(choice, data)
    asked = int(next(iter(choice.parameters.values())))
    if asked > len(data):
        raise InputError(
            f"{data.path}: {asked} clusters (-k) of {len(data)} rows; there cannot be more than "
            "there are rows."
        )
    with work.part("clustering") as advance, reporting(last_step(model), advance):
        model.fit(data.X)
        labels = np.asarray(last_step(model).labels_)
        probabilities = None
        if hasattr(model, "predict_proba"):
            probabilities = np.asarray(model.predict_proba(data.X)).max(axis=1)
    with work.part("picture") as advance:
        coordinates = picture(data, choice, advance)
    found = None if data.labels is None else agreement(data.labels, labels)
    return Clustering(
        data,
        choice,
        model,
        labels,
        probabilities,
        coordinates,
        found,
        tuple(work.notes),
        work.seconds,
    )


def picture(data: Data, choice: Choice, advance: Any) -> NDArray[np.float64]:
    """Two principal components with the same kernel, to draw the points."""
    flat = Choice("kpca", choice.kernel, choice.sigma, choice.standardize, choice.seed)
    model = make_model(flat, data)
    last_step(model).set_params(n_components=min(2, len(data.X)))
    with reporting(last_step(model), advance):
        found = np.asarray(model.fit_transform(data.X))
    missing = 2 - found.shape[1]  # of points that vary in fewer directions
    return np.pad(found, ((0, 0), (0, missing))) if missing else found


def agreement(labels: NDArray[Any], clusters: NDArray[np.intp]) -> Agreement:
    """Count which labels are in which clusters."""
    names, codes = np.unique(labels, return_inverse=True)
    counts = np.zeros((len(names), int(clusters.max()) + 1), dtype=np.int64)
    np.add.at(counts, (codes, clusters), 1)
    return Agreement(
        counts,
        tuple(map(str, names)),
        float(clustering_error(codes, clusters)),
        1 - float(counts.sum(axis=1).max()) / len(labels),
        float(variation_of_information(codes, clusters)),
    )
