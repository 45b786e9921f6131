"""The command cluster: groups of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.cluster import contingency_matrix

from ..metrics import clustering_error, variation_of_information
from ..plots._matplotlib import house_style
from ..plots.report import Section, Table, Text
from .inputs import Data, InputError
from .models import Choice, last_step, make_model, python_lines
from .pages import How, again, count, opening, scatter, shapes_section
from .results import Report, Result, Work, named_rows, silent

__all__ = ["Agreement", "Clustering", "cluster"]


@dataclass(frozen=True)
class Agreement:
    """How well clusters and labels agree.

    Attributes
    ----------
    counts : ndarray of shape (n_labels, n_clusters)
        The number of points of each label in each cluster.
    labels : tuple of str
        The labels, in the order of the rows of `counts`.
    error : float
        The fraction of points outside of the best matching of clusters with labels.
    majority_error : float
        The same for a single cluster of all points.
    variation_of_information : float
        In nats; 0 if clusters and labels are the same partition.
    """

    counts: NDArray[np.int64]
    labels: tuple[str, ...]
    error: float
    majority_error: float
    variation_of_information: float


@dataclass(frozen=True)
class Clustering(Result):
    """The result of :func:`cluster`."""

    file = "clusters.csv"

    labels: NDArray[np.intp]
    probabilities: NDArray[np.float64] | None  # of each point's own cluster
    coordinates: NDArray[np.float64]  # two, to draw the points
    agreement: Agreement | None

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many points each cluster has."""
        return np.bincount(self.labels, minlength=n_clusters(self.choice))

    def table(self) -> str:
        """Return name, label and cluster of every row, and its probability if known, as CSV."""
        columns: dict[str, Any] = {"cluster": self.labels.tolist()}
        if self.probabilities is not None:
            columns["probability"] = self.probabilities.tolist()
        return named_rows(self.data, columns)

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return facts for JSON, and lines for people."""
        sizes = self.sizes.tolist()
        facts: dict[str, Any] = {"n_rows": len(self.data), "sizes": sizes}
        lines = [
            f"{count(len(self.data), 'row')} in clusters of {', '.join(map(str, sizes))} by "
            f"{self.choice.method}."
        ]
        if self.agreement is not None:
            error, majority = self.agreement.error, self.agreement.majority_error
            facts |= {"error": error, "majority_error": majority}
            lines.append(
                f"{error:.1%} of the rows disagree with the labels (one cluster of all: "
                f"{majority:.1%})."
            )
        return facts, lines

    def sections(self, how: How) -> list[Section]:
        """Return the sections of the page."""
        n, sizes = len(self.labels), self.sizes
        names = np.array([f"cluster {label}" for label in self.labels])
        details: dict[str, NDArray[Any]] = {}
        if self.data.labels is not None:
            details[self.data.label_title] = self.data.labels
        if self.probabilities is not None:
            details["probability"] = self.probabilities
        points = scatter(
            self.data,
            self.coordinates,
            "Every point is a row of the file, coloured by its cluster. The coordinates are those "
            "of kernel PCA with the same kernel.",
            labels=names,
            label_name="cluster",
            details=details,
        )
        rows = [[f"cluster {c}", int(size), f"{size / n:.1%}"] for c, size in enumerate(sizes)]
        table = Table("Clusters", ["cluster", "rows", "fraction"], rows)
        described = f"{len(sizes)} clusters."
        sections = [Section("Clusters", [*opening(self, described), points, table])]
        if self.agreement is not None:
            sections.append(self._agreement(self.agreement))
        if self.data.kind == "shapes":
            with house_style():
                sections.append(shapes_section(self.data, names, "The shapes of each cluster"))
        own = "model" if last_step(self.model) is self.model else "model[-1]"
        use = ("model.fit(data.X)", f"clusters = {own}.labels_")
        return [
            *sections,
            again(self.model, self.seconds, how, python_lines(self.model, how.reading, *use)),
        ]

    def _agreement(self, agreed: Agreement) -> Section:
        named = zip(agreed.labels, agreed.counts.tolist(), strict=True)
        rows = [[name, *counts] for name, counts in named]
        header = [self.data.label_title, *(f"cluster {c}" for c in range(agreed.counts.shape[1]))]
        text = (
            f"Under the best matching of clusters with labels, {agreed.error:.1%} of the rows are "
            f"outside of their cluster; with a single cluster it would be "
            f"{agreed.majority_error:.1%}. Variation of information: "
            f"{agreed.variation_of_information:.3f} nats (0: the same groups). The labels were not "
            "used to find the clusters."
        )
        table = Table("Number of rows of each label in each cluster", header, rows)
        return Section("Clusters and labels", [Text(text), table])


def n_clusters(choice: Choice) -> int:
    """Return how many clusters were asked for."""
    return int(next(iter(choice.parameters.values())))


def cluster(data: Data, choice: Choice, report: Report = silent) -> Clustering:
    """Cluster the rows of a file.

    Parameters
    ----------
    data : Data
        The rows of a file; its labels, if any, are only compared with the clusters.
    choice : Choice
        The method, the kernel and the number of clusters (``parameters``).
    report : callable, optional
        Called with the progress.

    Returns
    -------
    Clustering
        The fitted model and the cluster of each row.
    """
    work = Work(report, clustering=8, picture=2)
    model = make_model(choice, data)
    if n_clusters(choice) > len(data):
        raise InputError(
            f"{data.path}: {n_clusters(choice)} clusters (-k) of {len(data)} rows; there cannot "
            "be more clusters than rows."
        )
    with work.part("clustering", model):
        model.fit(data.X)
        labels = np.asarray(last_step(model).labels_)
        probabilities = None
        if hasattr(model, "predict_proba"):
            probabilities = np.asarray(model.predict_proba(data.X)).max(axis=1)
    two = {"n_components": min(2, len(data))}
    flat = make_model(replace(choice, method="kpca", parameters=two), data)
    with work.part("picture", flat):
        points = np.asarray(flat.fit_transform(data.X))
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # if they vary in one direction
    agreed = None if data.labels is None else agreement(data.labels, labels)
    return Clustering(
        data, choice, model, tuple(work.notes), work.seconds, labels, probabilities, points, agreed
    )


def agreement(labels: NDArray[Any], clusters: NDArray[np.intp]) -> Agreement:
    """Compare clusters with labels."""
    names, codes = np.unique(labels, return_inverse=True)
    counts = np.zeros((len(names), int(clusters.max()) + 1), dtype=np.int64)
    counts[:, np.unique(clusters)] = contingency_matrix(codes, clusters)
    return Agreement(
        counts,
        tuple(map(str, names)),
        float(clustering_error(codes, clusters)),
        1 - float(counts.sum(axis=1).max()) / len(labels),
        float(variation_of_information(codes, clusters)),
    )
