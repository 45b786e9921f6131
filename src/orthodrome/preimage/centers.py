"""Cluster centres that are inputs: pre-images of Karcher means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._core.types import Array, Floats, Indices
from .._core.unit import angles_from_complements
from ..kernels import Kernel
from ..sphere.lloyd import Centers, Run
from .domains import Domain, domain_of
from .fixed_point import fixed_point, negated_squared_angles
from .karcher import best_points

# When labels rest, each centre is searched from so many of its points to the first tolerance, which
# is enough to compare the ends; only the best is followed to the second tolerance.
_N_STARTS, _SEARCH_TOL, _TOL = 3, 1e-8, 1e-12


@dataclass
class _Preimages:
    """Centres in the domain, their labels, and which of them begin at the mean."""

    points: Array
    labels: Indices
    fresh: Array


class PreimageCenters(Centers):
    r"""Hyperspherical k-means of RKHS-GEO, Algorithm 2: centres are pre-images of Karcher means.

    While labels change, each centre takes one step of the fixed point of
    :func:`karcher_mean_preimage` in each iteration. When they rest, the fixed point is iterated to
    its end from the centre, the mean of the cluster and the points of least objective, and the best
    end is taken.

    If the kernel decreases with the distance, the nearest centre on the sphere is the nearest
    input. ``run.squared`` are then squared distances of inputs, which differ even where the kernel
    underflows. The inertia is that of the sphere.

    Parameters
    ----------
    kernel : Kernel
        Fitted, with k(x, x) = 1 and a fixed point (:func:`has_fixed_point`).
    X : ndarray of shape (n, d), or what the kernel takes
        The data, validated.
    weights : ndarray of shape (n,)
        Weights.
    max_iter : int
        The maximum number of iterations of a fixed point.
    """

    def __init__(self, kernel: Kernel, X: Array, weights: Floats, *, max_iter: int = 2000) -> None:
        self.domain = domain_of(kernel, X)
        self.kernel = self.domain.kernel
        self.X = self.domain.points
        self.weights = weights
        self.max_iter = max_iter
        eps = float(np.finfo(self.X.dtype).eps)
        self.rounding = 32 * eps * self.domain.largest_square

    def squared_from(self, chosen: Indices) -> Floats:
        """Return the squared angles of all points from some of them, shape (n, m)."""
        squares = self.domain.squares(self.domain.prepared, self.domain.prepared[chosen])
        return self._angles(squares.astype(np.float64)) ** 2

    def nearest(self, chosen: Indices) -> Indices:
        """Return for each point which of the chosen ones is nearest."""
        return np.argmin(self.squared(self.X[chosen]), axis=1)

    def squared(self, centers: Array) -> Floats:
        """Return squared distances of inputs or squared angles, least at the nearest centre."""
        places = self.domain.prepare(centers)
        block = self.domain.squares(self.domain.prepared, places).astype(np.float64)
        return block if self.kernel.decreasing else self._angles(block) ** 2

    def inertia(self, run: Run) -> float:
        """Return the weighted sum of squared angles between points and their own centres."""
        own = run.own(run.squared)
        return float(self.weights @ (self._angles(own) ** 2 if self.kernel.decreasing else own))

    def advance(self, runs: Sequence[Run]) -> None:
        """Move the centres of each run: one step while labels change, else to the end."""
        for run in runs:
            sums = run.sums(self.weights)
            p = self.weights / sums[run.labels]
            if run.centers is None:
                points = np.zeros((len(sums), self.X.shape[1]), dtype=self.X.dtype)
                run.centers = _Preimages(points, run.labels, np.ones(len(sums), dtype=bool))
            run.settled = bool(
                not (run.centers.fresh & (sums > 0)).any()
                and np.array_equal(run.centers.labels, run.labels)
            )
            if run.settled:
                run.settled = self._settle(run, p)
            else:
                self._step(run, p)
            run.centers.labels, run.centers.fresh = run.labels.copy(), sums == 0
            run.squared = self.squared(run.centers.points)
            run.squared[:, sums == 0] = np.inf

    def _step(self, run: Run, p: Floats) -> None:
        """Move each centre by one step of the fixed point, or to the mean where it is fresh."""
        old = run.centers
        means = self.domain.means(run.scattered(p).T) if old.fresh.any() else old.points
        own = self._own_squares(run, old.points)
        _, pulls = negated_squared_angles(self.kernel, own[None], p[None])
        usable = run.sums(pulls[0]) < 0  # else the step would descend, or everything underflows
        targets = self.domain.targets(old.points, run.scattered(pulls[0]).T)
        targets = np.where(usable[:, None], targets, old.points)
        before = self._objectives(run, p, own)
        rounding = 16 * np.finfo(np.float64).eps * (1 + before)
        fraction = np.ones(len(targets))
        for _ in range(30):
            moved = self.domain.moved(old.points, targets, fraction)[0]
            moved = np.where(old.fresh[:, None], means, moved)
            after = self._objectives(run, p, self._own_squares(run, moved))
            worse = ~old.fresh & (after > before + rounding)
            if not worse.any():
                break
            fraction[worse] /= 4
        # reject steps without gain, which would oscillate near a cusp
        idle = ~old.fresh & (after > before - rounding)
        old.points = np.where(idle[:, None], old.points, moved).astype(self.X.dtype)

    def _settle(self, run: Run, p: Floats) -> bool:
        """Iterate the fixed point of each centre to its end; return whether all converged."""
        old = run.centers
        means = self.domain.means(run.scattered(p).T)
        points = old.points.copy()
        converged = True
        for cluster in np.unique(run.labels):
            members = np.flatnonzero(run.labels == cluster)
            if len(members) == 1:
                points[cluster] = self.X[members[0]]
                continue
            domain, own = self.domain.subset(members), p[members].astype(self.X.real.dtype)[None]
            starts = np.vstack(
                [points[cluster], means[cluster], best_points(domain, own, _N_STARTS)]
            )
            ends = fixed_point(
                domain,
                own,
                starts.astype(self.X.dtype),
                _SEARCH_TOL,
                self.max_iter,
                expansion=0,
                pull=negated_squared_angles,
            )
            # the first of the best up to rounding, which is the old centre if nothing is better
            slack = 1e-9 * float(np.abs(ends.objective).max())
            best = ends.points[np.argmax(ends.objective >= ends.objective.max() - slack)]
            points[cluster], ended = self._followed(domain, own, best)
            converged &= ended
        old.points = points
        return converged

    def _followed(self, domain: Domain, p: Array, start: Array) -> tuple[Array, bool]:
        """Take steps of the fixed point while they shorten; return the end, and if it converged.

        Steps are more accurate than the objective, which is flat near its optimum. Steps that make
        the objective worse, as near a cusp, are not taken.
        """
        point, best, shortest, least = start, start, np.inf, -np.inf
        for _ in range(self.max_iter):
            squares = domain.paired(domain.points, np.broadcast_to(point, domain.points.shape))
            value, pulls = negated_squared_angles(self.kernel, squares[None], p)
            least = max(least, float(value[0]) - 1e-12)
            moved, length = domain.followed(point, pulls[0])
            if not (length < shortest and value[0] >= least):
                return best, True
            best, shortest = point, length
            if length <= _TOL * float(np.sqrt(squares.mean())):
                return best, True
            point = moved
        return best, False

    def _own_squares(self, run: Run, centers: Array) -> Floats:
        """Return the squared distance of each point from the centre of its cluster."""
        return self.domain.paired(self.X, centers[run.labels]).astype(np.float64)

    def _objectives(self, run: Run, p: Floats, own: Floats) -> Floats:
        """Return Σ p θ² of each cluster."""
        return run.sums(p * self._angles(own) ** 2)

    def _angles(self, squares: Floats) -> Floats:
        return angles_from_complements(self.kernel.one_minus(squares))[0]
