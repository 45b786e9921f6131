"""Cluster centres that are inputs: pre-images of Karcher means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Floats, Indices
from .._core.unit import angles_from_complements
from ..kernels import Kernel
from ..sphere.lloyd import Centers, Run
from .fixed_point import Domain, domain_of, fixed_point, negated_squared_angles
from .manifold import best_points

# Once labels no longer change, each centre is searched from this many of its points, to a tolerance
# that suffices to compare the results. Only the best one is iterated to the second tolerance.
_N_STARTS, _SEARCH_TOL, _TOL = 3, 1e-8, 1e-12
_MAX_ITER = 2000  # of a search


@dataclass
class _Preimages:
    """Centres in the domain, and their labels."""

    points: Array
    labels: Indices


class PreimageCenters(Centers):
    r"""Hyperspherical k-means whose centres are pre-images of Karcher means.

    This is Algorithm 2 of Courty, Burger and Marteau, "Geodesic Analysis on the Gaussian RKHS
    Hypersphere", ECML PKDD 2012. While labels change, each iteration moves each centre by one step
    of the fixed-point iteration of :func:`karcher_mean_preimage`. Once they no longer change, the
    fixed point is iterated to convergence from the centre, the mean of the cluster and the points
    of smallest objective; the best result is used.

    If the kernel decreases with the distance, the nearest centre on the sphere is the nearest
    input. ``run.squared`` then contains squared distances between inputs, which differ even if the
    kernel underflows. The inertia is computed on the sphere.

    Parameters
    ----------
    kernel : Kernel
        Fitted, with k(x, x) = 1 and a fixed point (:func:`has_fixed_point`).
    X : ndarray of shape (n, d), or of the shape that the kernel expects
        The data, validated.
    weights : ndarray of shape (n,)
        Weights.
    keep_empty : bool
        Whether the centre of a cluster that loses its points stays where it is. Otherwise the
        cluster has no centre.
    """

    def __init__(
        self, kernel: Kernel, X: Array, weights: Floats, *, keep_empty: bool = False
    ) -> None:
        self.domain = domain_of(kernel, X)
        self.kernel = self.domain.kernel
        self.X = self.domain.points
        self.weights = weights
        self.keep_empty = keep_empty
        eps = float(np.finfo(self.X.dtype).eps)
        self.rounding = 32 * eps * self.domain.largest_square

    def squared_from(self, chosen: Indices) -> Floats:
        """Return the squared angles of all points from some of them, shape (n, m)."""
        squares = self.domain.squares(self.domain.prepared, self.domain.prepared[chosen])
        return self._angles(squares.astype(np.float64)) ** 2

    def nearest(self, chosen: Indices) -> Indices:
        """Return for each point the index of the nearest chosen point."""
        return np.argmin(self.squared(self.X[chosen]), axis=1)

    def squared(self, centers: Array) -> Floats:
        """Return squared distances of inputs or squared angles; both rank centres alike."""
        prepared = self.domain.prepare(centers)
        block = self.domain.squares(self.domain.prepared, prepared).astype(np.float64)
        return block if self.kernel.decreasing else self._angles(block) ** 2

    def inertia(self, run: Run) -> float:
        """Return the weighted sum of squared angles between points and their own centres."""
        squared = run.at_labels(run.squared)
        if self.kernel.decreasing:
            squared = self._angles(squared) ** 2
        return float(self.weights @ squared)

    def advance(self, runs: Sequence[Run]) -> None:
        """Move the centres of each run: one step while labels change, else to convergence."""
        for run in runs:
            sums = run.sums(self.weights)
            p = self.weights / sums[run.labels]
            if run.centers is None:
                points = np.zeros((len(sums), self.X.shape[1]), dtype=self.X.dtype)
                run.centers = _Preimages(points, run.labels)
            run.settled = bool(
                not (run.fresh & (sums > 0)).any()
                and np.array_equal(run.centers.labels, run.labels)
            )
            if run.settled:
                run.settled = self._settle(run, p)
            else:
                self._step(run, p)
            missing = (sums == 0) & (run.fresh | (not self.keep_empty))
            run.centers.labels, run.fresh = run.labels.copy(), missing
            run.squared = self.squared(run.centers.points)
            run.squared[:, missing] = np.inf

    def _step(self, run: Run, p: Floats) -> None:
        """Move each centre by one fixed-point step; fresh centres move to the mean."""
        old = run.centers
        means = self.domain.means(run.scattered(p).T) if run.fresh.any() else old.points
        d2 = self._center_distances(run, old.points)
        _, weights = negated_squared_angles(self.kernel, d2[None], p[None])
        # if the sum is not negative, the objective would increase, or all weights have underflowed
        usable = run.sums(weights[0]) < 0
        targets = self.domain.targets(old.points, run.scattered(weights[0]).T)
        targets = np.where(usable[:, None], targets, old.points)
        before = self._objectives(run, p, d2)
        rounding_error = 16 * np.finfo(np.float64).eps * (1 + before)
        fraction = np.ones(len(targets))
        for _ in range(30):
            new = self.domain.step_toward(old.points, targets, fraction)[0]
            new = np.where(run.fresh[:, None], means, new)
            after = self._objectives(run, p, self._center_distances(run, new))
            worse = ~run.fresh & (after > before + rounding_error)
            if not worse.any():
                break
            fraction[worse] /= 4
        # reject steps without improvement, which would oscillate near a cusp
        idle = ~run.fresh & (after > before - rounding_error)
        old.points = np.where(idle[:, None], old.points, new).astype(self.X.dtype)

    def _settle(self, run: Run, p: Floats) -> bool:
        """Iterate each centre to convergence; return whether all converged."""
        old = run.centers
        means = self.domain.means(run.scattered(p).T)
        points = old.points.copy()
        converged = True
        for cluster in np.unique(run.labels):
            members = np.flatnonzero(run.labels == cluster)
            if len(members) == 1:
                points[cluster] = self.X[members[0]]
                continue
            domain = self.domain.subset(members)
            cluster_p = p[members].astype(self.X.real.dtype)[None]
            starts = np.vstack(
                [points[cluster], means[cluster], best_points(domain, cluster_p, _N_STARTS)]
            )
            ends = fixed_point(
                domain,
                cluster_p,
                starts.astype(self.X.dtype),
                _SEARCH_TOL,
                _MAX_ITER,
                expansion=0,
                objective=negated_squared_angles,
            )
            # of results equal up to rounding error, the first one; the old centre comes first
            slack = 1e-9 * float(np.abs(ends.objective).max())
            best = ends.points[np.argmax(ends.objective >= ends.objective.max() - slack)]
            points[cluster], cluster_converged = self._refine(domain, cluster_p, best)
            converged &= cluster_converged
        old.points = points
        return converged

    def _refine(self, domain: Domain, p: Array, start: Array) -> tuple[Array, bool]:
        """Iterate while steps become shorter; return the last point, and whether it converged.

        Step lengths are more accurate than the objective, which is flat near its optimum. Steps
        that make the objective worse, as near a cusp, are rejected.
        """
        point, best, shortest, floor = start, start, np.inf, -np.inf
        for _ in range(_MAX_ITER):
            squares = domain.paired(domain.points, np.broadcast_to(point, domain.points.shape))
            value, weights = negated_squared_angles(self.kernel, squares[None], p)
            floor = max(floor, float(value[0]) - 1e-12)
            following, length = domain.next_iterate(point, weights[0])
            if not (length < shortest and value[0] >= floor):
                return best, True
            best, shortest = point, length
            if length <= _TOL * float(np.sqrt(squares.mean())):
                return best, True
            point = following
        return best, False

    def _center_distances(self, run: Run, centers: Array) -> Floats:
        """Return the squared distance of each point from the centre of its cluster."""
        return self.domain.paired(self.X, centers[run.labels]).astype(np.float64)

    def _objectives(self, run: Run, p: Floats, d2: Floats) -> Floats:
        """Return Σ p θ² of each cluster."""
        return run.sums(p * self._angles(d2) ** 2)

    def _angles(self, squares: Floats) -> Floats:
        return angles_from_complements(self.kernel.one_minus(squares))[0]
