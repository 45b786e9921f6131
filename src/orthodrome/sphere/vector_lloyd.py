"""Lloyd's iteration for points with coordinates: one pass and one matrix product per iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from .._core.status import Status
from .._core.types import Array, Callback, Floats
from .._core.unit import ANTIPODAL, angles_from_cosines
from ..coordinates import Coordinates
from ..coordinates.blocks import AnchorMap
from ..rows.dask import in_memory
from .lloyd import GRADIENT_TOL, NO_MEAN, PATIENCE, fill_empty

# Bytes of the products of a block with all centres; they should fit in a cache.
_PRODUCT_BYTES = 2**21
# The search for a Karcher mean divides gradients by the curvature, but by no less than this.
_MIN_CURVATURE = 0.25
# The search for better centres stops after _MAX_FAILURES failed trials in succession. Each trial
# makes _TRIAL_ITER iterations. It fails unless the inertia decreases by the fraction _MIN_GAIN.
_MAX_FAILURES, _TRIAL_ITER, _MIN_GAIN = 2, 2, 1e-5
# Steps that increase the inertia are halved, but not below this fraction.
_MIN_SCALE = 1e-3


@dataclass(frozen=True)
class Assignment:
    """A block function that assigns points to the nearest centres and sums them by cluster.

    Attributes
    ----------
    by : AnchorMap
        The map from rows to vectors.
    centers : ndarray of shape (k, m)
        The centres; unit vectors on the sphere.
    sphere : bool
        Whether distances are angles.
    at_centers : bool
        What is summed on the sphere. If True: each point y times θ/sin θ, which is its Log map at
        the centre plus a multiple of the centre. If False: the points themselves.
    rounding : float
        A point keeps its old label unless another product is larger by more than this.
    target : ndarray of shape (n,) or None
        Where labels are written; None for lazy rows.
    previous : Assignment or None
        For lazy rows, the source of the old labels.
    """

    by: AnchorMap
    centers: Floats
    sphere: bool
    at_centers: bool = False
    rounding: float = 0.0
    target: Array | None = None
    previous: Assignment | None = None

    @property
    def rows_at_once(self) -> int:
        """Maximum number of rows per block."""
        step = _PRODUCT_BYTES // (len(self.centers) * self.by.dtype.itemsize)
        return max(256, min(self.by.rows_at_once, step))

    @property
    def work_per_row(self) -> float:
        """Approximate number of multiplications per row."""
        return self.by.work_per_row + self.centers.size

    def block(self, rows: Any, columns: dict[str, Any]) -> Any:
        """Return rows as a block of points."""
        known = {name: columns.get(name) for name in ("weights", "diagonal", "captured")}
        return self.by.block(rows, **known)

    @property
    def _direct(self) -> bool:
        """Whether vectors are stored or cheap; otherwise, products with the centres are cheaper."""
        return self.by.stored or self.by.explicit

    def nearest(self, block: Any, before: Array | None = None) -> tuple[Array, Floats]:
        """Return labels, and the products of points with their centres (less ‖c‖²/2 if flat)."""
        index = np.arange(block.n)
        if self._direct:
            products = block.vectors() @ self.centers.astype(block.dtype).T
        else:
            products = block.products(self.centers.T)
        if not self.sphere:
            products -= (np.vecdot(self.centers, self.centers) / 2).astype(products.dtype)
        labels = np.argmax(products, axis=1)
        if before is not None:
            better = products[index, labels] > products[index, before] + self.rounding
            labels = np.where(better, labels, before)
        return labels, products[index, labels].astype(np.float64)

    def __call__(self, rows: Any, start: int, **columns: Any) -> tuple[Any, ...]:
        """Return masses, sums, scatters, the number of changed labels, and the trace of a block.

        Scatters are the weighted sums of squared distances of each cluster.
        """
        block = self.block(rows, columns)
        w = np.ones(block.n) if block.weights is None else block.weights
        before = columns.get("labels")
        if self.previous is not None:
            before = self.previous.nearest(block)[0]
        labels, products = self.nearest(block, before)
        if self.target is not None:
            self.target[start : start + block.n] = labels
        factors, trace = w, 0.0
        if self.sphere:
            angles, angle_ratios = angles_from_cosines(products)
            squared = angles**2
            if self.at_centers:  # Log is not defined at the antipode
                limit = ANTIPODAL * float(np.finfo(block.dtype).eps)
                factors = w * np.where(1 + products > limit, angle_ratios, 0.0)
        else:
            squared = np.maximum(block.captured - 2 * products, 0.0)
            trace = w @ block.captured
        changed = block.n if before is None else np.count_nonzero(labels != before)
        masses = np.bincount(labels, w, minlength=len(self.centers))
        scatters = np.bincount(labels, w * squared, minlength=len(self.centers))
        return masses, self._sums(block, labels, factors), scatters, changed, trace

    def _sums(self, block: Any, labels: Array, factors: Floats) -> Array:
        """Return weighted sums of the points of each cluster, shape (k, m)."""
        members = scipy.sparse.csr_array(
            (factors.astype(block.dtype), labels, np.arange(block.n + 1)),
            shape=(block.n, len(self.centers)),
        )
        if self._direct:
            return members.T @ block.vectors()
        return block.combine(members.toarray())

    def labels_and_distances(self, rows: Any, start: int, **columns: Any) -> Floats:
        """Return labels and squared chord lengths from the centres, shape (n, 2)."""
        block = self.block(rows, columns)
        labels, vectors = self.nearest(block)[0], block.vectors()
        differences = vectors - self.centers[labels]
        return np.column_stack([labels, np.vecdot(differences, differences)])


@dataclass(frozen=True)
class VectorRun:
    """The result of Lloyd's iteration from one start.

    Attributes
    ----------
    centers : ndarray of shape (k, m)
        The centres.
    labels : ndarray of shape (n,)
        The cluster of each point.
    masses : ndarray of shape (k,)
        The sum of the weights of each cluster.
    scatters : ndarray of shape (k,)
        The weighted sum of the squared distances between the points and the centre of each cluster.
    n_iter, status, history
        As in :class:`~orthodrome.sphere.lloyd.Run`.
    """

    centers: Floats
    labels: Array
    masses: Floats
    scatters: Floats
    n_iter: int
    status: Status
    history: list[dict[str, Any]]

    @property
    def inertia(self) -> float:
        """The weighted sum of the squared distances between points and their centres."""
        return float(self.scatters.sum())


def lloyd_on_vectors(
    points: Coordinates,
    centers: Floats,
    *,
    sphere: bool,
    max_iter: int,
    reseed: bool = True,
    callback: Callback | None = None,
) -> VectorRun:
    """Iterate from initial centres until no label changes and no centre moves.

    On the sphere, each Karcher mean moves by its negative gradient, divided by the mean curvature
    of its objective. If the inertia increases, the steps are halved. An empty cluster restarts at
    the point that is farthest from its centre, or, without `reseed`, keeps its centre.

    Parameters
    ----------
    points : Coordinates
        The points; unit vectors on the sphere.
    centers : ndarray of shape (k, m)
        Initial centres; unit vectors on the sphere.
    sphere : bool
        Whether centres are Karcher means and distances are angles.
    max_iter, reseed, callback
        As in :func:`~orthodrome.sphere.lloyd.lloyd`.

    Returns
    -------
    VectorRun
        The result. Labels are those of the nearest centres.
    """
    eps = float(np.finfo(points.dtype).eps)
    targets = [None if points.rows.lazy else np.empty(points.shape[0], np.int32) for _ in range(2)]
    current = Assignment(points.by, centers.astype(np.float64), sphere, target=targets[0])
    masses, sums, _, _, trace = points.rows.reduce(current)
    rounding = 16 * eps * (1.0 if sphere else float(trace / masses.sum()))
    status, history, n_iter = Status.MAX_ITER, [], 0
    inertia, scale, smallest_gradient, n_idle, scatters = np.inf, 1.0, np.inf, 0, masses
    while status is Status.MAX_ITER and n_iter < max_iter:
        n_iter += 1
        moved = _moved(current, masses, sums, scale)
        if reseed and not masses.all():
            _fill_empty(points, current, moved, rounding)
        spare = targets[1] if current.target is targets[0] else targets[0]
        previous = current if points.rows.lazy else None
        new = Assignment(points.by, moved, sphere, sphere, rounding, spare, previous)
        found = points.rows.zip(labels=current.target).reduce(new)
        if sphere and found[2].sum() > inertia * (1 + 64 * eps) and scale > _MIN_SCALE:
            scale /= 2
            continue
        current = replace(new, previous=None)
        masses, sums, scatters = found[:3]
        before, inertia, changed = inertia, float(scatters.sum()), int(found[3])
        history.append({"inertia": inertia, "n_changed": changed})
        gradient = 0.0
        if sphere:
            gradient = float(np.linalg.norm(_gradients(moved, masses, sums), axis=1).max())
        if changed:
            smallest_gradient, n_idle = np.inf, 0
        # after several iterations without a smaller gradient, the rest is rounding error
        n_idle = 0 if gradient < 0.9 * smallest_gradient else n_idle + 1
        smallest_gradient = min(smallest_gradient, gradient)
        if gradient <= max(GRADIENT_TOL, 4 * eps) or n_idle >= PATIENCE:
            if not changed:
                status = Status.CONVERGED
            elif abs(before - inertia) <= 1e-9 * abs(inertia):
                status = Status.ROUNDING
        if callback is not None:
            callback({"n_iter": n_iter, "n_done": int(status.converged), "n_runs": 1})
    labels = current.target
    if labels is None:
        labels = _for_all(points, current)[:, 0].astype(np.int32)
    return VectorRun(current.centers, labels, masses, scatters, n_iter, status, history)


def _for_all(points: Coordinates, assignment: Assignment) -> Floats:
    """Return labels and squared distances of all points, shape (n, 2)."""
    return in_memory(points.rows.map(assignment.labels_and_distances))


def _moved(assignment: Assignment, masses: Floats, sums: Floats, scale: float) -> Floats:
    """Return the centres after a step; those of empty clusters do not move."""
    centers, filled = assignment.centers.copy(), masses > 0
    if assignment.at_centers:
        return geodesic_steps(centers, masses, sums, scale)
    means = sums[filled] / masses[filled, None]
    if assignment.sphere:
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        if np.any(lengths**2 <= 64 * float(np.finfo(assignment.by.dtype).eps)):
            raise ValueError(NO_MEAN)
        means /= lengths
    centers[filled] = means
    return centers


def _gradients(centers: Floats, masses: Floats, sums: Floats) -> Floats:
    """Return the mean Log map of each cluster at its centre; 0 for empty clusters."""
    means = sums / np.where(masses > 0, masses, 1.0)[:, None]
    return means - np.vecdot(means, centers)[:, None] * centers


def geodesic_steps(centers: Floats, masses: Floats, sums: Floats, scale: Floats | float) -> Floats:
    """Move unit vectors towards the Karcher means of their clusters.

    Parameters
    ----------
    centers : ndarray of shape (k, m)
        The unit vectors.
    masses, sums : ndarrays of shape (k,) and (k, m)
        Σ w and Σ w (θ/sin θ) y of each cluster, with the angles θ from its centre.
    scale : float or ndarray of shape (k,)
        Factor of the steps.
    """
    m, gradients = centers.shape[1], _gradients(centers, masses, sums)
    # the second derivative of θ²/2 is 1 towards the point, and θ cot θ in the other directions
    transverse = np.vecdot(sums, centers) / np.where(masses > 0, masses, 1.0)
    curvature = np.maximum((1 + (m - 2) * transverse) / max(m - 1, 1), _MIN_CURVATURE)
    lengths = np.linalg.norm(gradients, axis=1)
    angles = np.minimum(scale * lengths / curvature, np.pi / 2)[:, None]
    tangents = gradients / np.where(lengths > 0, lengths, 1.0)[:, None]
    moved = np.cos(angles) * centers + np.sin(angles) * tangents
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def _fill_empty(
    points: Coordinates, assignment: Assignment, centers: Floats, rounding: float
) -> None:
    """Move the centres of empty clusters to the points that are farthest from their centres."""
    labels, squared = _for_all(points, assignment).T
    labels, w = labels.astype(np.intp), in_memory(points.weights)
    counted = np.ones(len(labels), dtype=bool) if w is None else w > 0
    for cluster, farthest in fill_empty(labels, squared, counted, len(centers), rounding):
        centers[cluster] = points.take(np.array([farthest]))[0]


def with_better_centers(points: Coordinates, run: VectorRun) -> VectorRun:
    """Escape from local minima: merge two clusters and split another while this helps.

    The two clusters are those whose merger increases the sum of squares least. The other one has
    the largest mean squared distance; it is split along its first principal component.

    Parameters
    ----------
    points : Coordinates
        The points, in memory.
    run : VectorRun
        The result of :func:`lloyd_on_vectors` with ``sphere=False``.

    Returns
    -------
    VectorRun
        The best run; its iterations need not have converged.
    """
    vectors, failures = points.toarray(), 0
    while len(run.centers) > 2 and failures < _MAX_FAILURES:
        centers, masses = run.centers.copy(), np.maximum(run.masses, np.finfo(np.float64).tiny)
        squares = np.vecdot(centers, centers)
        squared = squares[:, None] + squares - 2 * centers @ centers.T
        costs = squared * (masses[:, None] * masses / (masses[:, None] + masses))
        np.fill_diagonal(costs, np.inf)
        a, b = np.unravel_index(np.argmin(costs), costs.shape)
        spreads = run.scatters / masses
        spreads[[a, b]] = -np.inf
        # after a failure, try the next one
        widest = int(np.argsort(-spreads)[min(failures, len(centers) - 3)])
        members = np.flatnonzero(run.labels == widest)
        halves = _halves(vectors[members].astype(np.float64))
        if not halves.any():
            return run
        centers[b] += masses[a] / (masses[a] + masses[b]) * (centers[a] - centers[b])
        centers[a] = vectors[members[halves]].mean(axis=0)
        centers[widest] = vectors[members[~halves]].mean(axis=0)
        trial = lloyd_on_vectors(points, centers, sphere=False, max_iter=_TRIAL_ITER)
        better = trial.inertia < (1 - _MIN_GAIN) * run.inertia
        run, failures = (trial, 0) if better else (run, failures + 1)
    return run


def _halves(vectors: Floats) -> Array:
    """Return which vectors lie on one side of their mean along the first principal component."""
    centered = vectors - vectors.mean(axis=0) if len(vectors) else vectors
    if len(vectors) < 2 or not centered.any():
        return np.zeros(len(vectors), dtype=bool)
    gram = centered @ centered.T if len(centered) < centered.shape[1] else centered.T @ centered
    axis = np.linalg.eigh(gram)[1][:, -1]
    return np.asarray((axis if len(axis) == len(vectors) else centered @ axis) > 0)
