"""The command cluster: group the rows into clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.cluster import contingency_matrix

from .._core.types import Array, Floats
from ..metrics import clustering_error, variation_of_information
from ..plots.report import Block, Section, Table, Text
from .baselines import clustering_lines, compare_clusterings
from .cluster_number import Evidence, propose_clusters
from .inputs import Data, InputError
from .models import MAX_EXACT_ROWS, Choice, anchor_notes, last_step, make_model
from .results import (
    Report,
    Result,
    Work,
    count,
    opening,
    scatter,
    shapes_section,
    size,
    table_and_model,
)


def cluster(data: Data, choice: Choice, report: Report | None = None) -> Result:
    """Cluster the rows of a file.

    Parameters
    ----------
    data : Data
        The rows of a file. Labels, if any, are compared with the clusters, not used to fit.
    choice : Choice
        The method, the kernel and the number of clusters (``parameters["n_clusters"]``). Without
        a number, one is proposed.
    report : callable, optional
        Called with the progress.

    Returns
    -------
    Result
        The fitted model, the table of clusters and the report page.
    """
    # the steps with their expected times, relative to each other
    work = Work(report, number=2, method=4, clustering=8, baselines=1, picture=2)
    parameters = dict(choice.parameters)
    k, evidence = _number_of_clusters(data, choice, parameters.pop("n_clusters", None), work)
    parameters["n_components" if choice.method == "mixture" else "n_clusters"] = k
    fitted = None
    if choice.method == "auto":
        with work.step("method"):
            method, fitted, reason = _automatic_method(data, replace(choice, parameters=parameters))
            choice = replace(choice, method=method)
            work.notes.append(reason)
    model = make_model(replace(choice, parameters=parameters), data) if fitted is None else fitted
    with work.step("clustering", model):
        if fitted is None:
            model.fit(data.X)
        work.notes += anchor_notes(model, len(data))
        clusters = np.asarray(last_step(model).labels_)
        table: dict[str, Iterable[Any]] = {"cluster": clusters.tolist()}
        if hasattr(model, "predict_proba"):
            table["probability"] = np.asarray(model.predict_proba(data.X)).max(axis=1).tolist()
    with work.step("baselines"):
        scores = compare_clusterings(data, choice, k, clusters)
    plot_parameters = {"n_components": min(2, len(data))}
    kpca = make_model(replace(choice, method="kpca", parameters=plot_parameters), data)
    with work.step("picture", kpca):
        points = np.asarray(kpca.fit_transform(data.X))
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # there may be only one component
    sizes = np.bincount(clusters, minlength=k).tolist()
    facts: dict[str, Any] = {"n_rows": len(data), "sizes": sizes, **scores}
    lines = [
        f"{count(len(data), data.noun)} in {count(k, 'cluster')} of size"
        f"{'s' if k > 1 else ''} {', '.join(map(str, sizes))} (method: {choice.method})."
    ]
    if evidence is not None:
        facts["prediction_strength"] = evidence.strengths.tolist()
        lines.append(evidence.sentence())
    if data.labels is not None:
        facts |= _disagreement(data.labels, clusters)
        lines.append(
            "Clusters and labels disagree for {error:.1%} of the rows (with a single cluster: "
            "{majority_error:.1%}).".format(**facts)
        )
    answer = f"{size(data)} form {count(k, 'cluster')}"
    if data.labels is not None:
        answer += f"; they agree with the labels for {1 - facts['error']:.1%} of the rows"
    comparison = clustering_lines(data, scores)
    lines += comparison
    files = table_and_model("clusters.csv", data, table, model, data)
    sections = partial(_sections, data, work, points, table, facts, comparison, evidence)
    estimator = "model" if last_step(model) is model else "model[-1]"
    python = ["model.fit(data.X)", f"clusters = {estimator}.labels_"]
    return Result(model, work, f"{answer}.", facts, lines, sections, python, files)


def _number_of_clusters(
    data: Data, choice: Choice, k: int | None, work: Work
) -> tuple[int, Evidence | None]:
    """Return the given number of clusters, or a proposed number with its evidence."""
    if k is None:
        with work.step("number"):
            evidence = propose_clusters(data, choice)
        return evidence.n_clusters, evidence
    if k > len(data):
        raise InputError(
            f"{data.path}: -k {k} exceeds the number of rows ({len(data)}). Use a smaller -k."
        )
    return k, None


def _automatic_method(data: Data, choice: Choice) -> tuple[str, Any, str]:
    """Return the method for --method auto, its model if it is fitted, and a note with the reason.

    Use spectral clustering if KernelSpectralClustering prefers a graph of shared neighbours to a
    Gaussian kernel. Otherwise use kernel k-means, which is better for round clusters; see
    docs/defaults/clustering.md.
    """
    reasons = {
        "the data are landmarks": data.kind == "shapes",
        "a kernel or bandwidth was given": choice.kernel is not None or choice.sigma is not None,
        "there is a single cluster": choice.parameters["n_clusters"] < 2,
        f"there are more than {MAX_EXACT_ROWS} rows": len(data) > MAX_EXACT_ROWS,
    }
    reason = next((text for text, holds in reasons.items() if holds), None)
    if reason is not None:
        return "kernel-kmeans", None, f"Method: kernel k-means, because {reason}."
    model = make_model(replace(choice, method="spectral"), data).fit(data.X)
    found = last_step(model).kernel_choice_
    if found["kernel"] == "gaussian":
        return "kernel-kmeans", None, f"Method: kernel k-means, because {found['reason']}."
    return "spectral", model, f"Method: spectral clustering, because {found['reason']}."


def _disagreement(labels: Array, clusters: NDArray[np.intp]) -> dict[str, float]:
    """Return the error of the clusters, and the error if all rows were in one cluster."""
    largest = int(np.unique(labels, return_counts=True)[1].max())
    return {
        "error": float(clustering_error(labels, clusters)),
        "majority_error": 1 - largest / len(labels),
    }


def _sections(
    data: Data,
    work: Work,
    points: Floats,
    table: dict[str, Any],
    facts: dict[str, Any],
    comparison: list[str],
    evidence: Evidence | None,
) -> list[Section]:
    """Return the sections of the page."""
    names = np.array([f"cluster {label}" for label in table["cluster"]])
    details = {data.label_title: data.labels, "probability": table.get("probability")}
    plot = scatter(
        data,
        points,
        f"Each point is a {data.noun}, coloured by its cluster. The coordinates come from kernel "
        "PCA with the same kernel.",
        labels=names,
        label_name="cluster",
        details={name: column for name, column in details.items() if column is not None},
    )
    n, sizes = len(data), facts["sizes"]
    rows = [[f"cluster {c}", each, f"{each / n:.1%}"] for c, each in enumerate(sizes)]
    size_table = Table("Clusters", ["cluster", "rows", "fraction"], rows)
    first = opening(data, work, f"{count(len(sizes), 'cluster')}.")
    sections = [Section("Clusters", [plot, *first, *map(Text, comparison), size_table])]
    if evidence is not None:
        blocks: list[Block] = [Text(evidence.sentence()), evidence.picture()]
        sections.append(Section("Number of clusters", blocks))
    if data.labels is not None:
        sections.append(_agreement(data, data.labels, np.array(table["cluster"]), facts))
    return sections + shapes_section(data, names, "The shapes of each cluster")


def _agreement(
    data: Data, labels: Array, clusters: NDArray[np.intp], facts: dict[str, Any]
) -> Section:
    """Return the section that compares clusters with labels."""
    header = [data.label_title, *(f"cluster {c}" for c in np.unique(clusters))]
    counts = contingency_matrix(labels, clusters).tolist()
    rows = [[str(name), *row] for name, row in zip(np.unique(labels), counts, strict=True)]
    text = (
        "Under the best matching of clusters to labels, the cluster and the label of "
        f"{facts['error']:.1%} of the rows disagree. If all rows were in a single cluster, "
        f"{facts['majority_error']:.1%} would. Variation of information: "
        f"{variation_of_information(labels, clusters):.3f} nats (0: identical groups). "
        "The labels were not used for clustering."
    )
    table = Table("Number of rows of each label in each cluster", header, rows)
    return Section("Clusters and labels", [Text(text), table])
