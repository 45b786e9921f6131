"""Lloyd's iteration: assign points to the nearest centre, then move centres to the means.

Runs from different starts advance together and share each pass over the Gram matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.status import Status
from .._core.types import Array, Callback, Floats, Indices
from .._core.unit import ANTIPODAL, angles_from_cosines, check_cosines
from ..coordinates.pivots import uniform_rows
from ..gram import GramOperator
from .karcher import bending

NO_MEAN = (
    "The points of a cluster cancel, as antipodal points do, and have no mean. Choose another "
    "init, more clusters or another kernel."
)

# A Karcher mean has converged if the norm of its gradient, in radians, is at most GRADIENT_TOL, or
# has not decreased for PATIENCE iterations.
GRADIENT_TOL, PATIENCE = 1e-10, 3
# Maximum size of a matrix with a column for each cluster of the runs that advance together.
_MAX_ENTRIES = 2**22


@dataclass
class Run:
    """The state of the iteration from one start.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The cluster of each point.
    squared : ndarray of shape (n, k)
        Squared distances from the centres, or an increasing function of them; infinite for empty
        clusters.
    fresh : ndarray of bool of shape (k,)
        Whether the centre of a cluster must be computed anew.
    centers : object
        The centres, in the form of the geometry.
    inertia : float
        The weighted sum of the squared distances between points and the centres of their clusters.
    settled : bool
        Whether the centres have converged for these labels.
    settled_inertia : float
        The inertia when the centres last converged.
    """

    labels: Indices
    squared: Floats
    fresh: Array
    centers: Any = None
    inertia: float = np.inf
    settled: bool = False
    settled_inertia: float = np.inf
    n_iter: int = 0
    status: Status = Status.MAX_ITER
    history: list[dict[str, Any]] = field(default_factory=list)

    def at_labels(self, matrix: Floats) -> Floats:
        """Return ``matrix[i, labels[i]]`` for each row i of an (n, k) matrix."""
        return matrix[np.arange(len(self.labels)), self.labels]

    def sums(self, values: Floats) -> Floats:
        """Return the sums of values over the clusters, shape (k,)."""
        sums = np.bincount(self.labels, values, minlength=self.squared.shape[1])
        return sums.astype(np.float64, copy=False)

    def scattered(self, values: Floats) -> Floats:
        """Return an (n, k) matrix with each value in the column of its cluster, else 0."""
        matrix = np.zeros(self.squared.shape)
        matrix[np.arange(len(self.labels)), self.labels] = values
        return matrix


class Centers(ABC):
    """A geometry in which clusters have centres.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        Weights of the points.
    rounding : float
        Rounding error of squared distances; smaller differences count as ties.
    """

    weights: Floats
    rounding: float

    @abstractmethod
    def squared_from(self, chosen: Indices) -> Floats:
        """Return squared distances between all points and the chosen ones, shape (n, m)."""

    def nearest(self, chosen: Indices) -> Indices:
        """Return, for each point, the index in `chosen` of the nearest chosen point."""
        return np.argmin(self.squared_from(chosen), axis=1)

    @abstractmethod
    def advance(self, runs: Sequence[Run]) -> None:
        """Move the centres of each run towards the means of its points; update distances."""

    def inertia(self, run: Run) -> float:
        """Return the weighted sum of squared distances between points and their centres."""
        return float(self.weights @ run.at_labels(run.squared))


def lloyd(
    geometry: Centers,
    starts: Sequence[Indices],
    k: int,
    *,
    max_iter: int,
    reseed: bool = True,
    callback: Callback | None = None,
) -> list[Run]:
    """Iterate from every start until no label changes and no centre moves.

    A point changes its cluster only if another centre is nearer by more than the rounding error, so
    that ties do not cycle.

    Parameters
    ----------
    geometry : Centers
        The geometry.
    starts : sequence of ndarrays of shape (n,)
        Initial labels.
    k : int
        The number of clusters.
    max_iter : int
        The maximum number of iterations.
    reseed : bool, default=True
        Whether an empty cluster gets a point of another cluster: the one that is farthest from the
        centre of its cluster.
    callback : callable, optional
        Called after each iteration with a dict of ``n_iter``, ``n_done`` (converged runs) and
        ``n_runs``.

    Returns
    -------
    list of Run
        One for each start. Only the best one keeps its distances and centres.
    """
    n = len(geometry.weights)
    group_size = max(1, _MAX_ENTRIES // (n * k))
    runs: list[Run] = []
    for first in range(0, len(starts), group_size):
        group = [
            Run(np.array(labels), np.full((n, k), np.inf), np.ones(k, dtype=bool))
            for labels in starts[first : first + group_size]
        ]
        runs += group
        _iterate(geometry, group, max_iter, reseed, callback)
        best = min(runs, key=lambda run: run.inertia)
        for run in runs:
            if run is not best:  # free memory
                run.squared, run.centers = np.empty((0, k)), None
    return runs


def numbered_by_first(labels: Array) -> tuple[NDArray[np.int32], Indices]:
    """Renumber clusters in order of their first points; also return the old numbers."""
    present, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    return number[inverse], present[order]


def _iterate(
    geometry: Centers, runs: list[Run], max_iter: int, reseed: bool, callback: Callback | None
) -> None:
    """Advance runs together until all have converged."""
    active = list(runs)
    for n_iter in range(1, max_iter + 1):
        geometry.advance(active)
        for run in active:
            run.n_iter = n_iter
            changed = _relabel(geometry, run, reseed)
            run.history.append({"inertia": run.inertia, "n_changed": changed})
            run.status = _status(run, changed)
        active = [run for run in active if not run.status.converged]
        if callback is not None:
            callback({"n_iter": n_iter, "n_done": len(runs) - len(active), "n_runs": len(runs)})
        if not active:
            return
    for run in active:  # stopped by max_iter: assign to the nearest centres
        run.labels = np.argmin(run.squared, axis=1)
        run.inertia = geometry.inertia(run)


def _status(run: Run, changed: int) -> Status:
    """Return CONVERGED if no label changed, ROUNDING if changes did not lower the inertia."""
    if not run.settled:
        return Status.MAX_ITER
    before, run.settled_inertia = run.settled_inertia, run.inertia
    if not changed:
        return Status.CONVERGED
    unchanged = abs(before - run.inertia) <= 1e-9 * abs(run.inertia)
    return Status.ROUNDING if unchanged else Status.MAX_ITER


def _relabel(geometry: Centers, run: Run, reseed: bool) -> int:
    """Assign points to the nearest centres; return the number of changes.

    With `reseed`, empty clusters are filled.
    """
    before, nearest = run.labels, np.argmin(run.squared, axis=1)
    smallest = run.squared[np.arange(len(before)), nearest]
    better = smallest < run.at_labels(run.squared) - geometry.rounding
    run.labels = np.where(better, nearest, before)
    run.inertia = geometry.inertia(run)
    if reseed:
        squared, counted, k = run.at_labels(run.squared), geometry.weights > 0, len(run.fresh)
        for cluster, _ in fill_empty(run.labels, squared, counted, k, geometry.rounding):
            run.fresh[cluster] = True
    return int(np.count_nonzero(run.labels != before))


def fill_empty(
    labels: Indices, squared: Floats, counted: Array, k: int, rounding: float
) -> Iterator[tuple[int, int]]:
    """Move the points farthest from their centres to empty clusters; yield cluster and point.

    `labels` change in place. A point moves if it counts, is not the last one of its cluster, and
    its squared distance exceeds `rounding`.
    """
    sizes = np.bincount(labels[counted], minlength=k)
    for cluster in np.flatnonzero(sizes == 0):
        movable = np.where(counted & (sizes[labels] > 1), squared, -np.inf)
        farthest = int(np.argmax(movable))
        if not movable[farthest] > rounding:
            return  # all movable points coincide with their centres
        sizes[labels[farthest]] -= 1
        labels[farthest], sizes[cluster] = cluster, 1
        yield int(cluster), farthest


class _GramCenters(Centers):
    """Centres as expansions over the points of a Gram operator."""

    def __init__(self, gram: GramOperator, weights: Floats) -> None:
        self.gram = gram
        self.weights = weights
        self.diagonal = gram.diagonal().astype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)
        # rounding error of sums of kernel values
        self.rounding = 32 * self.eps * float(np.abs(self.diagonal).max())

    def advance(self, runs: Sequence[Run]) -> None:
        """Move all centres, with one product with the Gram operator for all runs."""
        # with float64 coefficients, sums over a float32 Gram matrix are as exact as its entries
        combinations = [self._combinations(run) for run in runs]
        products = np.asarray(self.gram @ np.hstack(combinations), dtype=np.float64)
        if not np.all(np.isfinite(products)):
            raise ValueError(
                "Sums of kernel values are NaN or infinite. Choose a kernel with finite values, or "
                "rescale the data."
            )
        blocks = np.split(products, len(runs), axis=1)
        for run, columns, block in zip(runs, combinations, blocks, strict=True):
            self._update(run, columns, block)

    def _combinations(self, run: Run) -> Floats:
        """Return coefficients of combinations of points, here the cluster means, shape (n, k).

        Their inner products with all points are passed to `_update`.
        """
        sums = run.sums(self.weights)[run.labels]
        coefficients = np.divide(self.weights, sums, out=np.zeros_like(sums), where=sums > 0)
        return run.scattered(coefficients)

    @abstractmethod
    def _update(self, run: Run, columns: Floats, products: Floats) -> None:
        """Move the centres and update the distances, from the products of all combinations."""


class FlatCenters(_GramCenters):
    r"""Kernel k-means: centres are means of feature vectors, distances are Euclidean.

    Column c of Z holds the weights of the points in the mean m_c. Then

    .. math:: \|\Phi(x_i) - m_c\|^2 = K_{ii} - 2 (K Z)_{ic} + (Z^\top K Z)_{cc} .

    ``run.centers`` is ``(Z, diag ZᵀKZ)``.
    """

    def squared_from(self, chosen: Indices) -> Floats:
        """Return squared distances between all points and the chosen ones, shape (n, m)."""
        rows = self.gram.rows(chosen).astype(np.float64)
        squares = self.diagonal[chosen, None] - 2 * rows + self.diagonal
        squares[np.arange(len(chosen)), chosen] = 0.0  # exactly
        return np.maximum(squares, 0.0).T

    def _update(self, run: Run, columns: Floats, products: Floats) -> None:
        squares = np.einsum("ic,ic->c", columns, products)
        run.centers = (columns, squares)
        run.squared = self.diagonal[:, None] - 2 * products + squares
        run.squared[:, ~columns.any(axis=0)] = np.inf
        run.settled = True


@dataclass
class _Means:
    """Karcher means during the search: coefficients and cosines, both (n, k).

    `smallest` is the smallest gradient norm since the labels changed; it has not decreased for
    `idle` iterations.
    """

    coefficients: Floats
    cosines: Floats
    gradient_norms: Floats
    labels: Indices
    smallest: float = np.inf
    idle: int = 0


class GeodesicCenters(_GramCenters):
    r"""Intrinsic hyperspherical k-means: centres are Karcher means, distances are angles.

    In each iteration, each mean moves along the great circle in the direction of its negative
    gradient :math:`g_c = \sum_{n \in c} p_n \operatorname{Log}_{\mu_c} y_n`. The length of the move
    is Newton's step, halved until the objective does not increase. One product with the Gram
    matrix gives the gradients of all clusters and the cosines of all points with the new means.
    (For points in a hemisphere the coefficients of the means stay positive and do not cancel.)
    ``run.centers`` holds the coefficients of the means and the norms of their gradients.
    """

    def squared_from(self, chosen: Indices) -> Floats:
        """Return squared distances between all points and the chosen ones, shape (n, m)."""
        squares = angles_from_cosines(self.gram.rows(chosen).astype(np.float64))[0] ** 2
        squares[np.arange(len(chosen)), chosen] = 0.0  # exactly
        return squares.T

    def _combinations(self, run: Run) -> Floats:
        means = super()._combinations(run)
        if run.centers is None:
            n, k = run.squared.shape
            run.centers = _Means(np.zeros((n, k)), np.zeros((n, k)), np.zeros(k), run.labels)
        old = run.centers
        if not np.array_equal(old.labels, run.labels):  # forget old gradient norms
            old.labels, old.smallest, old.idle = run.labels, np.inf, 0
        cosines = run.at_labels(old.cosines)
        _, angle_ratios = angles_from_cosines(cosines)
        # Log is not defined at the antipode
        angle_ratios = np.where(1 + cosines > ANTIPODAL * self.eps, angle_ratios, 0.0)
        return np.where(run.fresh, means, means * angle_ratios[:, None])

    def _update(self, run: Run, columns: Floats, products: Floats) -> None:
        means, empty = run.centers, np.asarray(~columns.any(axis=0))
        first = run.fresh & ~empty
        squares = np.einsum("ic,ic->c", columns[:, first], products[:, first])
        if np.any(squares <= 64 * self.eps):
            raise ValueError(NO_MEAN)
        means.coefficients[:, first] = columns[:, first] / np.sqrt(squares)
        means.cosines[:, first] = products[:, first] / np.sqrt(squares)
        later = ~run.fresh & ~empty
        if later.any():
            self._step(run, later, columns, products)
        means.gradient_norms = np.where(later, means.gradient_norms, np.where(empty, 0.0, np.inf))
        run.fresh = empty.copy()
        worst = np.abs(means.cosines).argmax(axis=1)
        check_cosines(means.cosines[np.arange(len(worst)), worst], self.eps, "the points")
        angles, _ = angles_from_cosines(means.cosines)
        run.squared = np.where(empty, np.inf, angles**2)
        largest = float(means.gradient_norms.max())
        means.idle = 0 if largest < 0.9 * means.smallest else means.idle + 1
        means.smallest = min(means.smallest, largest)
        run.settled = largest <= GRADIENT_TOL or (
            bool(np.isfinite(largest)) and means.idle >= PATIENCE
        )

    def _step(self, run: Run, which: Array, columns: Floats, products: Floats) -> None:
        """Move means along great circles, each by Newton's step."""
        means = run.centers
        level = np.einsum("ic,ic->c", columns, means.cosines)
        gradient = columns - level * means.coefficients
        slopes = products - level * means.cosines
        norms = np.sqrt(np.maximum(np.einsum("ic,ic->c", gradient, slopes), 0.0))
        means.gradient_norms = np.where(which, norms, 0.0)
        moving = which & (norms > 0)
        gradient, slopes = (a / np.where(moving, norms, 1.0) for a in (gradient, slopes))
        # points of clusters that do not move get weight 0
        sums = np.where(moving, run.sums(self.weights), np.inf)
        p, norms = self.weights / sums[run.labels], np.where(moving, norms, 0.0)
        lengths = _step_lengths(run, p, run.at_labels(means.cosines), run.at_labels(slopes), norms)
        cosine, sine = np.cos(lengths), np.where(moving, np.sin(lengths), 0.0)
        means.coefficients = cosine * means.coefficients + sine * gradient
        means.cosines = cosine * means.cosines + sine * slopes


def _step_lengths(run: Run, p: Floats, cosines: Floats, slopes: Floats, norms: Floats) -> Floats:
    """Return Newton's step of each cluster, halved until its objective does not increase."""
    angles, angle_ratios = angles_from_cosines(cosines)
    angle_ratios = np.where(np.isfinite(angle_ratios), angle_ratios, 0.0)
    curvature = run.sums(p * bending(cosines, angle_ratios, slopes))
    steps = np.full(len(norms), np.pi / 4)
    np.divide(norms, curvature, out=steps, where=curvature > 0)
    steps = np.where(norms > 0, np.minimum(steps, np.pi / 2), 0.0)
    before = run.sums(p * angles**2)
    ceiling = before + 16 * np.finfo(np.float64).eps * (1 + before)
    while True:
        t = steps[run.labels]
        angles, _ = angles_from_cosines(np.cos(t) * cosines + np.sin(t) * slopes)
        rising = run.sums(p * angles**2) > ceiling
        if not rising.any():
            return steps
        steps[rising] = np.where(steps[rising] > 1e-16, steps[rising] / 2, 0.0)


# ---------------------------------------------------------------------- initial centres

#: ``squared(indices)`` returns the squared distances between all points and m of them, (n, m).
SquaredDistances = Callable[[Indices], Floats]


def k_means_plus_plus(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw points with probabilities proportional to squared distances from earlier points.

    Of 2 + log k candidates, keep the one that reduces the sum of squares most (Arthur and
    Vassilvitskii, "k-means++: the advantages of careful seeding", 2007).
    """
    chosen = [_draw(weights, random)]
    nearest = squared(np.array(chosen))[:, 0]
    for _ in range(1, k):
        probabilities = weights * np.maximum(nearest, 0.0)
        if not probabilities.any():
            break
        candidates = np.unique([_draw(probabilities, random) for _ in range(2 + int(np.log(k)))])
        distances = np.minimum(squared(candidates), nearest[:, None])
        best = int(np.argmin(weights @ distances))
        chosen.append(int(candidates[best]))
        nearest = distances[:, best]
    return np.array(chosen)


def farthest_first(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw the first point, then repeatedly choose the point farthest from those chosen.

    (Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985.)
    """
    chosen = [_draw(weights, random)]
    nearest = squared(np.array(chosen))[:, 0]
    for _ in range(1, k):
        farthest = int(np.argmax(np.where(weights > 0, nearest, -np.inf)))
        if not nearest[farthest] > 0:
            break
        chosen.append(farthest)
        nearest = np.minimum(nearest, squared(np.array([farthest]))[:, 0])
    return np.array(chosen)


def random_points(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw distinct points, with probabilities proportional to the weights."""
    return uniform_rows(k, weights, random)


#: Functions that choose k points, or fewer if all other points coincide with the chosen ones or
#: have weight 0.
SEEDINGS = {
    "k-means++": k_means_plus_plus,
    "farthest-first": farthest_first,
    "random": random_points,
}


def _draw(weights: Floats, random: np.random.RandomState) -> int:
    """Draw an index with probabilities proportional to the weights."""
    sums = np.cumsum(weights)
    index = int(np.searchsorted(sums, random.uniform() * sums[-1], side="right"))
    return min(index, int(np.flatnonzero(weights)[-1]))
