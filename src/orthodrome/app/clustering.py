"""The command cluster: group the rows into clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.cluster import contingency_matrix

from ..metrics import clustering_error, variation_of_information
from ..plots.report import Section, Table, Text
from .inputs import Data, InputError
from .models import Choice, last_step, make_model
from .pages import count, opening_blocks, scatter, shapes_section
from .results import Report, Result, Work, silent


@dataclass(frozen=True)
class Agreement:
    """Agreement between clusters and labels.

    Attributes
    ----------
    names : tuple of str
        The labels.
    counts : ndarray of shape (n_labels, n_clusters)
        Number of rows of each label in each cluster.
    error : float
        Fraction of rows that disagree with the best matching of clusters to labels.
    majority_error : float
        The same with all rows in a single cluster.
    information : float
        Variation of information, in nats; 0 if clusters and labels are the same partition.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    error: float
    majority_error: float
    information: float


@dataclass(frozen=True)
class Clustering(Result):
    """The result of :func:`cluster`."""

    file = "clusters.csv"

    labels: NDArray[np.intp]
    probabilities: NDArray[np.float64] | None  # probability of the assigned cluster
    coordinates: NDArray[np.float64]  # two columns, for the scatter plot
    agreement: Agreement | None

    @property
    def sizes(self) -> list[int]:
        """Number of rows in each cluster."""
        return np.bincount(self.labels, minlength=n_clusters(self.choice)).tolist()

    def columns(self) -> dict[str, Iterable[Any]]:
        """Return the cluster of each row, and its probability if the method has one."""
        columns: dict[str, Iterable[Any]] = {"cluster": self.labels.tolist()}
        if self.probabilities is not None:
            columns["probability"] = self.probabilities.tolist()
        return columns

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return the summary as a dict for JSON and as lines of text."""
        facts: dict[str, Any] = {"n_rows": len(self.data), "sizes": self.sizes}
        sizes = ", ".join(map(str, self.sizes))
        rows, clusters = count(len(self.data), "row"), count(len(self.sizes), "cluster")
        kind = "size" if len(self.sizes) == 1 else "sizes"
        lines = [f"{rows} in {clusters} of {kind} {sizes} (method: {self.choice.method})."]
        if self.agreement is not None:
            error, majority = self.agreement.error, self.agreement.majority_error
            facts |= {"error": error, "majority_error": majority}
            lines.append(
                f"Clusters and labels disagree for {error:.1%} of the rows (with a single cluster: "
                f"{majority:.1%})."
            )
        return facts, lines

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        names = np.array([f"cluster {label}" for label in self.labels])
        details = {self.data.label_title: self.data.labels, "probability": self.probabilities}
        points = scatter(
            self.data,
            self.coordinates,
            "Each point is a row of the file, coloured by its cluster. The coordinates come from "
            "kernel PCA with the same kernel.",
            labels=names,
            label_name="cluster",
            details={name: column for name, column in details.items() if column is not None},
        )
        n, sizes = len(self.labels), self.sizes
        rows = [[f"cluster {c}", size, f"{size / n:.1%}"] for c, size in enumerate(sizes)]
        table = Table("Clusters", ["cluster", "rows", "fraction"], rows)
        blocks = [*opening_blocks(self, f"{count(len(sizes), 'cluster')}."), points, table]
        sections = [Section("Clusters", blocks)]
        if self.agreement is not None:
            sections.append(self._agreement(self.agreement))
        if self.data.kind == "shapes":
            sections.append(shapes_section(self.data, names, "The shapes of each cluster"))
        return sections

    def _agreement(self, found: Agreement) -> Section:
        header = [self.data.label_title, *(f"cluster {c}" for c in range(found.counts.shape[1]))]
        table_rows = zip(found.names, found.counts.tolist(), strict=True)
        rows = [[name, *counts] for name, counts in table_rows]
        text = (
            "With the best matching of clusters to labels, they disagree for "
            f"{found.error:.1%} of the rows; with a single cluster it would be "
            f"{found.majority_error:.1%}. Variation of information: {found.information:.3f} nats "
            "(0: identical groups). The labels were not used for clustering."
        )
        table = Table("Number of rows of each label in each cluster", header, rows)
        return Section("Clusters and labels", [Text(text), table])

    def python(self, testing: str) -> list[str]:
        """Return Python code that fits the model."""
        estimator = "model" if last_step(self.model) is self.model else "model[-1]"
        return ["model.fit(data.X)", f"clusters = {estimator}.labels_"]


def n_clusters(choice: Choice) -> int:
    """Return the number of clusters, the first parameter of a choice."""
    return int(next(iter(choice.parameters.values())))


def cluster(data: Data, choice: Choice, report: Report = silent) -> Clustering:
    """Cluster the rows of a file.

    Parameters
    ----------
    data : Data
        The rows of a file. Labels, if any, are compared with the clusters, not used to fit.
    choice : Choice
        The method, the kernel and the number of clusters (the first of ``parameters``).
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
            f"{data.path}: -k {n_clusters(choice)} exceeds the number of rows ({len(data)}). Use a "
            "smaller -k."
        )
    with work.step("clustering", model):
        model.fit(data.X)
        probabilities = None
        if hasattr(model, "predict_proba"):
            probabilities = np.asarray(model.predict_proba(data.X)).max(axis=1)
    plot_parameters = {"n_components": min(2, len(data))}
    kpca = make_model(replace(choice, method="kpca", parameters=plot_parameters), data)
    with work.step("picture", kpca):
        points = np.asarray(kpca.fit_transform(data.X))
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # kernel PCA may find only one
    labels = np.asarray(last_step(model).labels_)
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
        tuple(map(str, names)),
        counts,
        float(clustering_error(codes, clusters)),
        1 - float(counts.sum(axis=1).max()) / len(labels),
        float(variation_of_information(codes, clusters)),
    )
