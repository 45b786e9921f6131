"""Propose a number of clusters by prediction strength."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from .._core.types import Floats, Indices
from ..plots import curves
from ..plots.report import Picture
from .inputs import Data
from .models import Choice, make_model

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
