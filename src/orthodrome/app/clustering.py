"""The command cluster: group the rows into clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from .._core.types import Array, Floats, Indices
from ..metrics import clustering_error, variation_of_information
from ..plots import curves
from ..plots.report import Block, Picture, Section, Table, Text
from .baselines import clustering_lines, compare_clusterings
from .inputs import Data
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

MAX_CLUSTERS = 10
# Tibshirani and Walther recommend 0.8 to 0.9. These limits were chosen with seven tables (iris,
# wine, seeds, glass, heart, pima, sonar), where 0.8 often gives too few clusters.
_ENOUGH, _WEAK = 0.77, 0.7
_N_SPLITS = 10
_MAX_ROWS, _N_COORDINATES = 1000, 10


@dataclass(frozen=True)
class Evidence:
    """Prediction strengths for 1, 2, … clusters, with standard errors over splits.

    The upper value of a number of clusters is its strength plus one standard error. The largest
    number with an upper value of at least 0.77 is proposed. If this is 1, but the upper value of 2
    clusters is at least 0.7, 2 is proposed.
    """

    strengths: Floats
    errors: Floats

    @property
    def n_clusters(self) -> int:
        """The proposed number of clusters."""
        upper = self.strengths + self.errors
        found = int(np.flatnonzero(upper >= _ENOUGH)[-1]) + 1  # a single cluster has strength 1
        return 2 if found == 1 and len(upper) > 1 and upper[1] >= _WEAK else found

    def sentence(self) -> str:
        """Return the proposal and its reason."""
        k, largest = self.n_clusters, len(self.strengths)
        if largest == 1:
            return "-k 1 was chosen: the rows are too few or too similar to look for clusters."
        strength = f"{self.strengths[k - 1]:.2f} ± {self.errors[k - 1]:.2f}"
        if k == 1:
            return (
                "-k 1 was chosen: random halves of the rows predict each other's clusters badly "
                f"for 2 to {largest} clusters (prediction strength at most "
                f"{self.strengths[1:].max():.2f}; {_ENOUGH} is enough). Give -k to look for a "
                "fixed number."
            )
        if self.strengths[k - 1] + self.errors[k - 1] < _ENOUGH:
            return (
                f"-k {k} was chosen, but the evidence is weak: random halves of the rows predict "
                f"each other's clusters only in part (prediction strength {strength}; {_ENOUGH} is "
                "enough). The rows may form one group."
            )
        return (
            f"-k {k} was chosen: {k} is the largest number up to {largest} for which two random "
            f"halves of the rows predict each other's clusters (prediction strength {strength}; "
            f"the limit is {_ENOUGH}, less one standard error)."
        )

    def picture(self) -> Picture:
        """Plot the strengths."""
        numbers = np.arange(1, len(self.strengths) + 1)
        lines = {"prediction strength": self.strengths, "enough": np.full(len(numbers), _ENOUGH)}
        listing = ", ".join(f"{n}: {s:.2f}" for n, s in zip(numbers, self.strengths, strict=True))
        return Picture.of(
            curves(numbers, lines, xlabel="number of clusters", ylabel="prediction strength"),
            "number",
            alt=f"Prediction strength for each number of clusters: {listing}.",
            caption="Prediction strength: the fraction of pairs in the same cluster that clusters "
            "of the other half of the rows keep together, for the worst cluster.",
        )


def propose_clusters(data: Data, choice: Choice) -> Evidence:
    """Measure prediction strengths of k-means in coordinates of kernel PCA.

    Uses at most 1,000 rows and 10 coordinates. See Tibshirani and Walther, "Cluster validation by
    prediction strength", Journal of Computational and Graphical Statistics 14, 2005.
    """
    sample = data.take(data.sample_rows(_MAX_ROWS, choice.seed))
    n = len(sample)
    largest = min(MAX_CLUSTERS, n // 4, len(np.unique(sample.X.reshape(n, -1), axis=0)) // 4)
    if largest < 2:
        return Evidence(np.ones(1), np.zeros(1))
    parameters = {"n_components": min(_N_COORDINATES, n)}
    model = make_model(replace(choice, method="kpca", parameters=parameters), sample)
    points = np.asarray(model.fit_transform(sample.X), dtype=np.float64)
    rng = np.random.default_rng(choice.seed)
    orders = [rng.permutation(n) for _ in range(_N_SPLITS)]
    with threadpool_limits(1):  # the problems are too small for several threads
        strengths = np.array(
            [[_strength(points, order, k) for order in orders] for k in range(2, largest + 1)]
        )
    errors = np.std(strengths, axis=1, ddof=1) / np.sqrt(_N_SPLITS)
    return Evidence(np.append(1.0, strengths.mean(axis=1)), np.append(0.0, errors))


def _strength(points: Floats, order: Indices, n_clusters: int) -> float:
    """Return how well clusters of one half of the points predict those of the other half."""
    halves = np.array_split(points[order], 2)
    models = [KMeans(n_clusters, n_init=3, random_state=0).fit(half) for half in halves]
    found = []
    for own, other, half in zip(models, models[::-1], halves, strict=True):
        pairs = contingency_matrix(own.labels_, other.predict(half))
        sizes = pairs.sum(axis=1)
        kept = (pairs * (pairs - 1)).sum(axis=1)
        found.append(np.min(kept / np.maximum(sizes * (sizes - 1), 1)))
    return float(np.mean(found))


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
    k, evidence = parameters.pop("n_clusters", None), None
    if k is None:
        with work.step("number"):
            evidence = propose_clusters(data, choice)
        k = evidence.n_clusters
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
    points = _plane(data, choice, work)
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


def _plane(data: Data, choice: Choice, work: Work) -> Floats:
    """Return two coordinates of each row, by kernel PCA with the same kernel."""
    parameters = {"n_components": min(2, len(data))}
    model = make_model(replace(choice, method="kpca", parameters=parameters), data)
    with work.step("picture", model):
        points = np.asarray(model.fit_transform(data.X))
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))  # there may be only one component


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
