"""Robust fits of a subsphere to points on a sphere, and projections on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray

from .._core.types import Floats

#: Smooths the penalty at residual 0 (the paper's ε).
EPSILON = 1e-5

# L-BFGS: tolerances relative to the objective at the start above its minimum ε^(p/2), which suits
# levels with tiny objectives too; and the iterations after which Newton's method takes over.
_FTOL, _GTOL, _MOST_LBFGS = 1e-12, 1e-8, 150
# Newton's method: relative tolerance, the least second derivative relative to reweighted squares,
# and the most coordinates for which it uses eigenvectors near saddles.
_NEWTON_TOL, _LEAST_CURVATURE, _MOST_SADDLES = 1e-12, 0.01, 400
_TINY_ANGLE = 1e-6
_NEAR, _LEAST_SINE = 0.99, 1e-150  # angles with larger cosines come from differences; a sine for 0
_MOST_EXACT = 64  # the most coordinates for which exact principal directions are starts
# Starts through random points: the most coordinates, the number drawn, and the numbers kept for
# p >= 1 and for p < 1, which has more minima.
_MOST_DRAWN, _N_DRAWN, _N_KEPT = 16, 256, (2, 4)


@dataclass(frozen=True)
class Subsphere:
    r"""The points y of a sphere at an angle r from an axis v: arccos⟨v, y⟩ = r.

    Attributes
    ----------
    axis : ndarray of shape (m,)
        v, a unit vector, in the coordinates of the enclosing sphere.
    radius : float
        r, in (0, π/2]. A great subsphere has π/2, and its axis is signed so that the third moment
        of the residuals is positive.
    objective : float
        The weighted mean of the penalties, Σ p_n ((θ_n - r)² + ε)^(p/2).
    n_iter : int
        Iterations of the best search; 0 if nothing was optimised.
    converged : bool
        Whether that search converged.
    """

    axis: Floats
    radius: float
    objective: float
    n_iter: int
    converged: bool = True

    def residuals(self, points: Floats) -> Floats:
        """Return θ - r of points, shape (n,)."""
        return _angles_from(self.axis, points)[0] - self.radius

    def split(self, points: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Project points on the subsphere, in its own coordinates, shape (n, m - 1).

        Also return the residuals, and which points lie on the axis. The projection follows great
        circles through the axis; a point on the axis is mapped to the first coordinate axis.
        """
        turned = reflected(points, self.axis)
        cosines = -turned[:, -1] if self.axis[-1] >= 0 else turned[:, -1].copy()
        turned = turned[:, :-1]
        lengths = np.sqrt(np.einsum("ij,ij->i", turned, turned))
        residuals = np.arctan2(lengths, cosines) - self.radius
        lost = lengths <= 16 * np.finfo(np.float64).eps
        turned[lost] = 0.0
        turned[lost, 0] = lengths[lost] = 1.0
        turned /= lengths[:, None]
        return turned, residuals, lost

    def lift(self, points: Floats, residuals: Floats) -> Floats:
        """Return the points with these projections and residuals. Inverse of :meth:`split`."""
        angles = residuals + self.radius
        last = -np.cos(angles) if self.axis[-1] >= 0 else np.cos(angles)
        return reflected(np.column_stack([np.sin(angles)[:, None] * points, last]), self.axis)


def reflected(points: Floats, axis: Floats) -> Floats:
    """Reflect points so that an axis becomes the last coordinate axis, or its negative.

    The sign is Householder's, which avoids cancellation.
    """
    normal = axis.copy()
    normal[-1] += 1.0 if axis[-1] >= 0 else -1.0
    turned = np.array(points, order="C")
    # BLAS adds the outer product in place, to the transpose
    factors = normal * (-2 / (normal @ normal))
    return scipy.linalg.blas.dger(1.0, factors, points @ normal, a=turned.T, overwrite_a=True).T


def fit_subsphere(
    points: Floats, weights: Floats, *, p: float = 2.0, great: bool = False, max_iter: int = 2000
) -> Subsphere:
    r"""Fit the nearest subsphere to points on a sphere.

    .. math:: \min_{v, r} \sum_n p_n \bigl((\arccos\langle v, y_n\rangle - r)^2
        + \varepsilon\bigr)^{p/2}

    (rkPNS, eqs. 2 to 4), ε = 1e-5. p = 2 is least squares; smaller p are more robust.

    For p = 2 the search is L-BFGS in v (of any length) and r, each coordinate of v in units of the
    spread of the points along it. For p < 2, or if L-BFGS takes very many steps, it is Newton's
    method, with reweighted least squares where second derivatives are not positive. The search
    begins at the directions of least spread. For p < 2, as outliers may disturb these, it also
    begins at the best of many subspheres through random points (up to 16 coordinates). For p < 1,
    which has many minima, each start is also followed through p = 2 and p = 1. The best end is
    returned.

    Parameters
    ----------
    points : ndarray of shape (n, m)
        Unit vectors, m at least 3. With more than 64 coordinates, these should be near the
        principal ones, since the search begins at one of them.
    weights : ndarray of shape (n,)
        Weights.
    p : float in (0, 2], default=2.0
        The power.
    great : bool, default=False
        Whether r is fixed at π/2.
    max_iter : int, default=2000
        The maximum number of iterations of a start.

    Returns
    -------
    Subsphere
        The best end.
    """
    search = _Search(points, weights / weights.sum(), great, max_iter)
    starts = [(axis, search.best_radius(axis)) for axis in search.principal_axes()]
    if p < 2:
        starts += search.through_points(p)
    ends = []
    for axis, radius in starts:
        ends.append(search.run(axis, radius, p))
        if p < 1:
            by_squares = search.run(axis, radius, 2.0)
            by_sizes = search.run(by_squares.axis, by_squares.radius, 1.0)
            ends += [search.run(end.axis, end.radius, p) for end in (by_squares, by_sizes)]
    best = min(ends, key=lambda end: end.objective)
    return folded(best, points, search.share, great)


def folded(found: Subsphere, points: Floats, share: Floats, great: bool) -> Subsphere:
    """Choose the sign of the axis: a radius of at most π/2, or a positive third moment."""
    turn = share @ found.residuals(points) ** 3 < 0 if great else found.radius > np.pi / 2
    if not turn:
        return found
    radius = found.radius if great else np.pi - found.radius
    return replace(found, axis=-found.axis, radius=radius)


class _Search:
    """Searches for the best subsphere, and their starts."""

    def __init__(self, points: Floats, share: Floats, great: bool, max_iter: int) -> None:
        self.points, self.share = points, share
        self.great, self.max_iter = great, max_iter
        self.mean, self.squares = share @ points, share @ points**2
        spread = np.maximum(self.squares - self.mean**2, 0.0)
        least = max(float(spread.min()), 1e-14)
        self.units = 1 / np.sqrt(spread - spread.min() + 0.1 * least)
        self.units /= self.units.max()

    def principal_axes(self) -> list[Floats]:
        """Return the directions of least spread, about the origin and about the mean.

        With many coordinates, return the better of the two nearest coordinate axes.
        """
        m = self.points.shape[1]
        if m > _MOST_EXACT:
            least = {int(np.argmin(self.squares)), int(np.argmin(self.squares - self.mean**2))}
            axes = [np.eye(1, m, i)[0] for i in sorted(least)]
            return [min(axes, key=self._spread_about)]
        second = (self.points * self.share[:, None]).T @ self.points
        starts = [np.linalg.eigh(second)[1][:, 0]]  # for great subspheres
        if self.great:
            return starts
        flat = np.linalg.eigh(second - np.outer(self.mean, self.mean))[1][:, 0]  # for planes
        if abs(flat @ starts[0]) < 0.99:
            starts.append(flat)
        return starts

    def best_radius(self, axis: Floats) -> float:
        """Return the mean angle from an axis, or π/2 for a great subsphere."""
        return np.pi / 2 if self.great else float(self.share @ _angles_from(axis, self.points)[0])

    def _spread_about(self, axis: Floats) -> float:
        """Return the mean squared residual of the subsphere with the best radius."""
        angles, _ = _angles_from(axis, self.points)
        radius = np.pi / 2 if self.great else self.share @ angles
        return float(self.share @ (angles - radius) ** 2)

    def through_points(self, p: float) -> list[tuple[Floats, float]]:
        """Return the best of many subspheres through random points."""
        (n, m), great = self.points.shape, self.great
        size = m - 1 if great else m
        if m > _MOST_DRAWN or n < size:
            return []
        random = np.random.RandomState(0)  # deterministic
        drawn = random.choice(n, (_N_DRAWN, size), p=self.share)
        chosen = self.points[drawn]
        chosen = chosen if great else chosen - chosen.mean(axis=1, keepdims=True)
        axes = np.linalg.svd(chosen, full_matrices=True)[2][:, -1]
        angles, _ = _angles(self.points @ axes.T)
        radii = np.full(_N_DRAWN, np.pi / 2)
        if not great:
            radii = np.array([np.median(angles[rows, i]) for i, rows in enumerate(drawn)])
        values = self.share @ ((angles - radii) ** 2 + EPSILON) ** (p / 2)
        best = np.argsort(values, kind="stable")[: _N_KEPT[p < 1]]
        return [(axes[i], float(radii[i])) for i in best]

    def run(self, axis: Floats, radius: float, p: float) -> Subsphere:
        """Search from an axis and a radius."""
        radius = min(max(radius, _TINY_ANGLE), np.pi - _TINY_ANGLE)
        return self._newton(axis, radius, p) if p < 2 else self._least_squares(axis, radius)

    def _least_squares(self, axis: Floats, radius: float) -> Subsphere:
        """Search by L-BFGS for p = 2, in units of the spread of each coordinate."""
        m = len(axis)
        start = np.zeros(m if self.great else m + 1)
        bounds: list[tuple[float | None, float | None]] = [(None, None)] * m
        if not self.great:
            start[-1] = radius
            bounds.append((_TINY_ANGLE, np.pi - _TINY_ANGLE))
        at_start = _angles_from(axis, self.points)[0] - radius
        unit = max(float(self.share @ at_start**2), 1e-30)

        def value_and_gradient(x: Floats) -> tuple[float, Floats]:
            direction = axis + self.units * x[:m]
            length = float(np.linalg.norm(direction))
            v = direction / length
            angles, sines = _angles_from(v, self.points)
            residuals = angles - (np.pi / 2 if self.great else x[-1])
            slopes = self.share / unit * (2 * residuals)
            gradient = np.empty_like(x)
            # dθ/dv = -y/sin θ, across v
            across = -((slopes / sines) @ self.points)
            across -= (across @ v) * v
            gradient[:m] = self.units * across / length
            if not self.great:
                gradient[-1] = -slopes.sum()
            return float(self.share @ residuals**2) / unit, gradient

        limit = min(self.max_iter, _MOST_LBFGS)
        options = {"maxiter": limit, "ftol": _FTOL, "gtol": _GTOL, "maxcor": 20}
        found = scipy.optimize.minimize(
            value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        end = axis + self.units * found.x[:m]
        end /= np.linalg.norm(end)
        radius = np.pi / 2 if self.great else float(found.x[-1])
        if found.status == 1 and self.max_iter > limit:  # slow: finish with Newton's method
            return self._newton(end, radius, 2.0, int(found.nit))
        objective = float(found.fun) * unit + EPSILON
        return Subsphere(end, radius, objective, int(found.nit), bool(found.status != 1))

    def _newton(self, axis: Floats, radius: float, p: float, n_iter: int = 0) -> Subsphere:
        """Search by Newton's method with a line search, after `n_iter` other iterations."""
        v, r = axis / np.linalg.norm(axis), radius
        angles, sines = _angles_from(v, self.points)
        value = self._excess(angles - r, p)
        converged = value == 0
        while not converged and n_iter < self.max_iter:
            n_iter += 1
            found = None
            for step, slope in self._descents(v, r, angles, sines, p):
                found = self._shortened(v, r, value, step, slope, p)
                if found is not None:
                    break
            if found is None:  # only rounding is left
                converged = True
                break
            lower, v, r, angles, sines = found
            converged = value - lower <= _NEWTON_TOL * value
            value = lower
        return Subsphere(v, r, value + EPSILON ** (p / 2), n_iter, converged)

    def _descents(
        self, v: Floats, r: float, angles: Floats, sines: Floats, p: float
    ) -> Iterator[tuple[Floats, float]]:
        """Yield steps and their slopes: Newton's, then two of reweighted least squares."""
        residuals, sines = angles - r, np.maximum(sines, 1e-12)
        squares = residuals**2
        smooth = squares + EPSILON
        reweighted = p * smooth ** (p / 2 - 1)
        curvature = p * smooth ** (p / 2 - 2) * ((p - 1) * squares + EPSILON)
        curvature = np.maximum(curvature, _LEAST_CURVATURE * reweighted)
        slopes = self.share * reweighted * residuals
        # derivatives of the residuals by v (tangential) and r
        jacobian = np.outer(np.cos(angles), v)
        jacobian -= self.points
        jacobian /= sines[:, None]
        if not self.great:
            jacobian = np.column_stack([jacobian, np.full(len(jacobian), -1.0)])
        gradient = slopes @ jacobian
        # the second derivative of an angle θ by v is cot θ (I - t tᵀ)
        bend = slopes * np.cos(angles) / sines
        for bent, weights in ((bend, curvature), (None, curvature), (None, reweighted)):
            step = _solved(jacobian, gradient, self.share * weights, bent, v)
            if step is not None:
                yield step, float(gradient @ step)

    def _shortened(
        self, v: Floats, r: float, value: float, step: Floats, slope: float, p: float
    ) -> tuple[Any, ...] | None:
        """Shorten a step until the objective falls enough; return its end, or None."""
        length, m = 1.0, len(v)
        while length > 1e-3:
            moved = v + length * step[:m]
            moved /= np.linalg.norm(moved)
            angles, sines = _angles_from(moved, self.points)
            radii = [r]
            if not self.great:
                # the best radius for these angles is often better, as valleys are curved
                weights = self.share * ((angles - r) ** 2 + EPSILON) ** (p / 2 - 1)
                radii = [r + length * float(step[-1]), float(weights @ angles / weights.sum())]
            values = [self._excess(angles - radius, p) for radius in radii]
            best = int(np.argmin(values))
            inside = _TINY_ANGLE <= radii[best] <= np.pi - _TINY_ANGLE
            if inside and values[best] < value + 1e-4 * length * slope:
                return values[best], moved, radii[best], angles, sines
            length /= 3
        return None

    def _excess(self, residuals: Floats, p: float) -> float:
        """Return the mean of (ρ² + ε)^(p/2) - ε^(p/2), without cancellation for small ρ²."""
        if p == 2:
            return float(self.share @ residuals**2)
        growth = np.expm1(p / 2 * np.log1p(residuals**2 / EPSILON))
        return float(self.share @ growth) * EPSILON ** (p / 2)


def _solved(
    jacobian: Floats, gradient: Floats, weights: Floats, bend: Floats | None, v: Floats
) -> Floats | None:
    """Return Newton's step, or None for a large matrix that is not positive definite.

    For smaller matrices, negative eigenvalues are replaced by their absolute values.
    """
    m = len(v)
    across = jacobian[:, :m]
    matrix = np.empty((len(gradient), len(gradient)))
    inner = weights if bend is None else weights - bend
    matrix[:m, :m] = (across * inner[:, None]).T @ across
    if len(gradient) > m:
        matrix[m, :m] = matrix[:m, m] = -(weights @ across)
        matrix[m, m] = weights.sum()
    size = abs(float(np.trace(matrix))) / len(matrix)
    # regularise: with fewer points than coordinates the matrix is singular
    bent = 0.0 if bend is None else float(bend.sum())
    matrix.flat[: m * len(matrix) : len(matrix) + 1] += 1e-10 * size + bent
    matrix[:m, :m] += (size + abs(bent)) * np.outer(v, v)  # the length of v has no effect
    try:
        # a poor step along a nearly flat direction is shortened later
        factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        return -scipy.linalg.cho_solve(factor, gradient, check_finite=False)
    except np.linalg.LinAlgError:
        if len(matrix) > _MOST_SADDLES:
            return None
    # near a saddle: descend along negative second derivatives too
    values, vectors = np.linalg.eigh(matrix)
    sizes = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    return -vectors @ ((vectors.T @ gradient) / sizes)


def _angles_from(axis: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the angles of points from an axis, and their sines, never 0.

    Angles near 0 and π are computed from differences, as cosines lose digits there.
    """
    cosines = points @ axis
    angles, sines = _angles(cosines)
    near = np.abs(cosines) > _NEAR
    if near.any():
        sides = np.sign(cosines[near])
        chords = np.linalg.norm(points[near] - sides[:, None] * axis, axis=1)
        sums = np.sqrt(np.maximum(4 - chords**2, 0.0))
        short = 2 * np.arctan2(chords, sums)
        angles[near] = np.where(sides > 0, short, np.pi - short)
        sines[near] = np.maximum(chords * sums / 2, _LEAST_SINE)
    return angles, sines


def _angles(cosines: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return angles and their sines, never 0."""
    c = np.clip(cosines, -1.0, 1.0)
    sines = np.sqrt((1 - c) * (1 + c))
    return np.arctan2(sines, c), np.maximum(sines, _LEAST_SINE)
