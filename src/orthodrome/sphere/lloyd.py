"""Lloyd's iteration: assign points to the nearest centre, move centres to the means.

Several starts run together, so that they share each pass over the Gram matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.status import Status
from .._core.types import Callback, Floats, Indices
from .._core.unit import ANTIPODAL, angles_from_cosines, check_cosines
from ..gram import GramOperator
from ._descent import bending

# A mean rests if its gradient, in radians, is at most this, or has not fallen so many times.
_GRADIENT_TOL, _PATIENCE = 1e-10, 3
_MOST_NUMBERS = 2**22  # of a matrix with the clusters of all runs as columns; else fewer runs


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
    centers : object
        The centres, in the form of the geometry.
    inertia : float
        The weighted sum of the squared distances of the points from their own centres.
    settled : bool
        Whether the centres are at rest for these labels.
    at_rest : float
        The inertia when the centres were last settled.
    """

    labels: Indices
    squared: Floats
    centers: Any = None
    inertia: float = np.inf
    settled: bool = False
    at_rest: float = np.inf
    n_iter: int = 0
    status: Status = Status.MAX_ITER
    history: list[dict[str, Any]] = field(default_factory=list)

    def own(self, matrix: Floats) -> Floats:
        """Return from each row of an (n, k) matrix the entry of its cluster."""
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
        Squared distances that differ by less are equal.
    """

    weights: Floats
    rounding: float

    @abstractmethod
    def squared_from(self, chosen: Indices) -> Floats:
        """Return the squared distances of all points from some of them, shape (n, m)."""

    def nearest(self, chosen: Indices) -> Indices:
        """Return for each point which of the chosen ones is nearest."""
        return np.argmin(self.squared_from(chosen), axis=1)

    @abstractmethod
    def advance(self, runs: Sequence[Run]) -> None:
        """Move the centres of each run towards the means of its points; update distances."""

    def inertia(self, run: Run) -> float:
        """Return the weighted sum of the squared distances of points from their own centres."""
        return float(self.weights @ run.own(run.squared))

    def begin_anew(self, run: Run, cluster: int) -> None:
        """Forget the centre of a cluster that was empty and got a single point."""
        run.centers.fresh[cluster] = True


def lloyd(
    geometry: Centers,
    starts: Sequence[Indices],
    k: int,
    *,
    max_iter: int,
    callback: Callback | None = None,
) -> list[Run]:
    """Iterate from every start until no label changes and no centre moves.

    A point changes its cluster only if another centre is nearer by more than rounding, so that ties
    do not cycle. An empty cluster gets the point that is farthest from its own centre.

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
    callback : callable, optional
        Called after each iteration with its number and the numbers of finished and all runs.

    Returns
    -------
    list of Run
        One for each start. Only the first of least inertia keeps distances and centres.
    """
    n = len(geometry.weights)
    at_once = max(1, _MOST_NUMBERS // (n * k))
    runs: list[Run] = []
    for first in range(0, len(starts), at_once):
        group = [
            Run(np.array(labels), np.full((n, k), np.inf))
            for labels in starts[first : first + at_once]
        ]
        runs += group
        _iterate(geometry, group, max_iter, callback)
        best = min(runs, key=lambda run: run.inertia)
        for run in runs:
            if run is not best:  # free memory
                run.squared, run.centers = np.empty((0, k)), None
    return runs


def numbered_by_first(labels: NDArray[Any]) -> tuple[NDArray[np.int32], Indices]:
    """Number clusters by their first points; also return their old numbers in that order."""
    present, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    return number[inverse], present[order]


def _iterate(geometry: Centers, runs: list[Run], max_iter: int, callback: Callback | None) -> None:
    """Advance runs together until all have converged."""
    active = list(runs)
    for n_iter in range(1, max_iter + 1):
        geometry.advance(active)
        for run in active:
            run.n_iter = n_iter
            changed = _relabel(geometry, run)
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
    """Return whether a run has converged: nothing moves, or labels change without gain."""
    if not run.settled:
        return Status.MAX_ITER
    before, run.at_rest = run.at_rest, run.inertia
    if not changed:
        return Status.CONVERGED
    same = abs(before - run.inertia) <= 1e-9 * abs(run.inertia)
    return Status.ROUNDING if same else Status.MAX_ITER


def _relabel(geometry: Centers, run: Run) -> int:
    """Assign points to their nearest centres and fill empty clusters; return the changes."""
    before, nearest = run.labels, np.argmin(run.squared, axis=1)
    least = run.squared[np.arange(len(before)), nearest]
    better = least < run.own(run.squared) - geometry.rounding
    run.labels = np.where(better, nearest, before)
    own = run.own(run.squared)
    run.inertia = geometry.inertia(run)
    counted = geometry.weights > 0
    sizes = np.bincount(run.labels[counted], minlength=run.squared.shape[1])
    for cluster in np.flatnonzero(sizes == 0):
        movable = np.where(counted & (sizes[run.labels] > 1), own, -np.inf)
        farthest = int(np.argmax(movable))
        if not movable[farthest] > geometry.rounding:
            break  # all movable points coincide with their centres
        sizes[run.labels[farthest]] -= 1
        sizes[cluster] = 1
        run.labels[farthest], own[farthest] = cluster, 0.0
        geometry.begin_anew(run, int(cluster))
    return int(np.count_nonzero(run.labels != before))


class _GramCenters(Centers):
    """Centres as expansions over the points of a Gram operator."""

    def __init__(self, gram: GramOperator, weights: Floats) -> None:
        self.gram = gram
        self.weights = weights
        self.diagonal = gram.diagonal().astype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)
        # of sums of kernel values
        self.rounding = 32 * self.eps * float(np.abs(self.diagonal).max())

    def advance(self, runs: Sequence[Run]) -> None:
        """Move all centres, with one product with the Gram operator for all runs."""
        # float64 weights: sums over a float32 Gram matrix are then as exact as its entries
        wanted = [self._wanted(run) for run in runs]
        products = np.asarray(self.gram @ np.hstack(wanted), dtype=np.float64)
        if not np.all(np.isfinite(products)):
            raise ValueError(
                "Sums of kernel values are NaN or infinite. Choose a kernel with finite values, or "
                "rescale the data."
            )
        parts = np.split(products, len(runs), axis=1)
        for run, columns, part in zip(runs, wanted, parts, strict=True):
            self._take(run, columns, part)

    def _wanted(self, run: Run) -> Floats:
        """Return weights of combinations of points whose inner products are needed, (n, k).

        Here these are the means of the clusters.
        """
        sums = run.sums(self.weights)[run.labels]
        shares = np.divide(self.weights, sums, out=np.zeros_like(sums), where=sums > 0)
        return run.scattered(shares)

    @abstractmethod
    def _take(self, run: Run, columns: Floats, products: Floats) -> None:
        """Move the centres and update the distances, with these products."""


class FlatCenters(_GramCenters):
    r"""Kernel k-means: centres are means of feature vectors, distances are Euclidean.

    With the weights of the points in the means as columns of Z,

    .. math:: \|\Phi(x_i) - m_c\|^2 = K_{ii} - 2 (K Z)_{ic} + (Z^\top K Z)_{cc} .

    ``run.centers`` is ``(Z, diag ZᵀKZ)``.
    """

    def squared_from(self, chosen: Indices) -> Floats:
        """Return the squared distances of all points from some of them, shape (n, m)."""
        rows = self.gram.rows(chosen).astype(np.float64)
        squares = self.diagonal[chosen, None] - 2 * rows + self.diagonal
        squares[np.arange(len(chosen)), chosen] = 0.0  # exactly
        return np.maximum(squares, 0.0).T

    def begin_anew(self, run: Run, cluster: int) -> None:
        """Do nothing: centres have no state."""

    def _take(self, run: Run, columns: Floats, products: Floats) -> None:
        squares = np.einsum("ic,ic->c", columns, products)
        run.centers = (columns, squares)
        run.squared = self.diagonal[:, None] - 2 * products + squares
        run.squared[:, ~columns.any(axis=0)] = np.inf
        run.settled = True


@dataclass
class _Means:
    """Karcher means during the search: coefficients and cosines, both (n, k).

    `fresh` columns begin at the normalised mean of the points. `smallest` is the least gradient
    since the labels changed; it has not fallen for `idle` iterations.
    """

    coefficients: Floats
    cosines: Floats
    fresh: NDArray[np.bool_]
    gradient_norms: Floats
    labels: Indices
    smallest: float = np.inf
    idle: int = 0


class GeodesicCenters(_GramCenters):
    r"""Intrinsic hyperspherical k-means: centres are Karcher means, distances are angles.

    In each iteration all means take a step along their gradient
    :math:`g_c = \sum_{n \in c} p_n \operatorname{Log}_{\mu_c} y_n`, of the length of Newton's step
    along that great circle, halved until the objective does not rise. One product with the Gram
    matrix gives the gradients of all clusters and the cosines of all points with the new means.
    (On the hemisphere the coefficients of the means stay positive, so that nothing cancels.)
    ``run.centers`` holds the coefficients of the means and the norms of their gradients.
    """

    def squared_from(self, chosen: Indices) -> Floats:
        """Return the squared distances of all points from some of them, shape (n, m)."""
        squares = angles_from_cosines(self.gram.rows(chosen).astype(np.float64))[0] ** 2
        squares[np.arange(len(chosen)), chosen] = 0.0  # exactly
        return squares.T

    def _wanted(self, run: Run) -> Floats:
        means = super()._wanted(run)
        if run.centers is None:
            n, k = run.squared.shape
            run.centers = _Means(
                np.zeros((n, k)), np.zeros((n, k)), np.ones(k, dtype=bool), np.zeros(k), run.labels
            )
        old = run.centers
        if not np.array_equal(old.labels, run.labels):  # other means, other gradients
            old.labels, old.smallest, old.idle = run.labels, np.inf, 0
        own = run.own(old.cosines)
        _, stretches = angles_from_cosines(own)
        # Log is not defined at the antipode
        stretches = np.where(1 + own > ANTIPODAL * self.eps, stretches, 0.0)
        return np.where(old.fresh, means, means * stretches[:, None])

    def _take(self, run: Run, columns: Floats, products: Floats) -> None:
        means, empty = run.centers, np.asarray(~columns.any(axis=0))
        first = means.fresh & ~empty
        self._place(means, first, columns, products)
        later = ~means.fresh & ~empty
        if later.any():
            self._step(run, later, columns, products)
        means.gradient_norms = np.where(later, means.gradient_norms, np.where(empty, 0.0, np.inf))
        means.fresh = empty.copy()
        worst = np.abs(means.cosines).argmax(axis=1)
        check_cosines(means.cosines[np.arange(len(worst)), worst], self.eps, "the points")
        angles, _ = angles_from_cosines(means.cosines)
        run.squared = np.where(empty, np.inf, angles**2)
        largest = float(means.gradient_norms.max())
        means.idle = 0 if largest < 0.9 * means.smallest else means.idle + 1
        means.smallest = min(means.smallest, largest)
        run.settled = largest <= _GRADIENT_TOL or (
            bool(np.isfinite(largest)) and means.idle >= _PATIENCE
        )

    def _place(
        self, means: _Means, which: NDArray[np.bool_], columns: Floats, products: Floats
    ) -> None:
        """Begin at the normalised means of the points."""
        squares = np.einsum("ic,ic->c", columns[:, which], products[:, which])
        if np.any(squares <= 64 * self.eps):
            raise ValueError(
                "The points of a cluster cancel, as antipodal points do, and have no mean. Choose "
                "another init, more clusters or another kernel."
            )
        means.coefficients[:, which] = columns[:, which] / np.sqrt(squares)
        means.cosines[:, which] = products[:, which] / np.sqrt(squares)

    def _step(self, run: Run, which: NDArray[np.bool_], columns: Floats, products: Floats) -> None:
        """Move means along great circles."""
        means = run.centers
        level = np.einsum("ic,ic->c", columns, means.cosines)
        gradient = columns - level * means.coefficients
        slopes = products - level * means.cosines
        norms = np.sqrt(np.maximum(np.einsum("ic,ic->c", gradient, slopes), 0.0))
        means.gradient_norms = np.where(which, norms, 0.0)
        moving = which & (norms > 0)
        gradient, slopes = (a / np.where(moving, norms, 1.0) for a in (gradient, slopes))
        sums = np.where(moving, run.sums(self.weights), np.inf)  # others have weight 0
        p, norms = self.weights / sums[run.labels], np.where(moving, norms, 0.0)
        lengths = _step_lengths(run, p, run.own(means.cosines), run.own(slopes), norms)
        cosine, sine = np.cos(lengths), np.where(moving, np.sin(lengths), 0.0)
        means.coefficients = cosine * means.coefficients + sine * gradient
        means.cosines = cosine * means.cosines + sine * slopes


def _step_lengths(run: Run, p: Floats, cosines: Floats, slopes: Floats, norms: Floats) -> Floats:
    """Return Newton's step of each cluster, halved while its objective rises."""
    angles, stretches = angles_from_cosines(cosines)
    stretches = np.where(np.isfinite(stretches), stretches, 0.0)
    curvature = run.sums(p * bending(cosines, stretches, slopes))
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
