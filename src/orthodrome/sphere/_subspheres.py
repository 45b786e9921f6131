"""Robust fits of subspheres to points on a sphere, and projections onto them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._core.types import Array, Floats

#: Smooths the penalty at residual 0 (the paper's ε).
EPSILON = 1e-5

# Newton's method: relative tolerance, and the minimum second derivative relative to that of
# reweighted least squares.
_NEWTON_TOL, _MIN_CURVATURE = 1e-12, 0.01
_MAX_SADDLE_SIZE = 400  # maximum number of coordinates for which eigenvectors are used near saddles
_TINY_ANGLE = 1e-6  # minimum angle between a radius and 0 or π
_NEAR = 0.99  # angles with larger cosines are computed from differences
_MIN_SINE = 1e-150  # replaces a sine of 0
_MAX_EXACT = 64  # maximum number of coordinates for which exact principal directions are starts
# Starts through random points: maximum number of coordinates, number of candidates, and the numbers
# of them that are used for p >= 1 and for p < 1, which has more minima.
_MAX_RANDOM, _N_CANDIDATES, _N_STARTS = 16, 256, (2, 4)


@dataclass(frozen=True)
class Subsphere:
    r"""The points y of a sphere at an angle r from an axis v: arccos⟨v, y⟩ = r.

    Attributes
    ----------
    axis : ndarray of shape (m,)
        v, a unit vector, in the coordinates of the enclosing sphere.
    radius : float
        r, in (0, π/2]. For a great subsphere it is π/2, and the sign of the axis is chosen so that
        the third moment of the residuals is positive.
    objective : float
        The weighted mean of the penalties, Σ p_n ((θ_n - r)² + ε)^(p/2).
    n_iter : int
        Number of iterations of the best search; 0 without a search.
    converged : bool
        Whether that search converged.
    """

    axis: Floats
    radius: float
    objective: float
    n_iter: int
    converged: bool = True

    def residuals(self, points: Floats) -> Floats:
        """Return the residuals θ - r of points, shape (n,)."""
        return _angles_from(self.axis, points)[0] - self.radius

    def split(self, points: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Project points onto the subsphere, along great circles through the axis.

        Return coordinates on the subsphere, of shape (n, m - 1), the residuals, and a mask of the
        points on the axis. Their projection is not defined; they are mapped to the first
        coordinate axis.
        """
        turned = reflected(points, self.axis)
        cosines = -turned[:, -1] if self.axis[-1] >= 0 else turned[:, -1].copy()
        turned = turned[:, :-1]
        lengths = np.sqrt(np.einsum("ij,ij->i", turned, turned))
        residuals = np.arctan2(lengths, cosines) - self.radius
        lost = normalize(turned, lengths)
        return turned, residuals, lost

    def lift(self, points: Floats, residuals: Floats) -> Floats:
        """Return the points with these projections and residuals. Inverse of :meth:`split`."""
        angles = residuals + self.radius
        last = -np.cos(angles) if self.axis[-1] >= 0 else np.cos(angles)
        return reflected(np.column_stack([np.sin(angles)[:, None] * points, last]), self.axis)


def normalize(vectors: Floats, lengths: Floats) -> NDArray[np.bool_]:
    """Divide vectors by their lengths, in place; return a mask of the zero vectors.

    Vectors that are zero up to rounding errors are replaced with the first coordinate axis.
    """
    lost = lengths <= 16 * np.finfo(np.float64).eps
    vectors[lost] = np.eye(1, vectors.shape[1])
    vectors /= np.where(lost, 1.0, lengths)[:, None]
    return lost


def reflected(points: Floats, axis: Floats) -> Floats:
    """Reflect points so that an axis becomes the last coordinate axis, or its negative.

    The sign is that of Householder reflections, which avoids cancellation.
    """
    normal = axis.copy()
    normal[-1] += 1.0 if axis[-1] >= 0 else -1.0
    turned = np.array(points, order="C")
    # BLAS adds the outer product to the transpose, in place
    factors = normal * (-2 / (normal @ normal))
    return scipy.linalg.blas.dger(1.0, factors, points @ normal, a=turned.T, overwrite_a=True).T


def fit_subsphere(
    points: Floats, weights: Floats, *, p: float = 2.0, great: bool = False, max_iter: int = 2000
) -> Subsphere:
    r"""Fit the nearest subsphere to points on a sphere.

    .. math:: \min_{v, r} \sum_n p_n \bigl((\arccos\langle v, y_n\rangle - r)^2
        + \varepsilon\bigr)^{p/2}

    with ε = 1e-5 (Awate, Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", 2016, eqs. 2
    to 4). p = 2 is least squares; smaller p are more robust.

    The search uses Newton's method, with reweighted least squares where second derivatives are not
    positive. It starts from the directions of minimum spread. For p < 2 outliers may disturb these,
    so it also starts from the best of many subspheres through random points (up to 16 coordinates).
    For p < 1, which has many minima, it also starts from the best subspheres for p = 2 and p = 1.
    The best result is returned.

    Parameters
    ----------
    points : ndarray of shape (n, m)
        Unit vectors, m at least 3. With more than 64 coordinates, the search starts from a
        coordinate axis, so the coordinates should be near principal ones.
    weights : ndarray of shape (n,)
        Weights.
    p : float in (0, 2], default=2.0
        The power.
    great : bool, default=False
        Whether r is fixed at π/2.
    max_iter : int, default=2000
        The maximum number of iterations from each start.

    Returns
    -------
    Subsphere
        The best subsphere.
    """
    search = _Search(points, weights / weights.sum(), great, max_iter)
    starts = [(axis, search.best_radius(axis)) for axis in search.principal_axes()]
    if p < 2:
        starts += search.through_points(p)
    if p < 1:
        squared = search.run(*starts[0], 2.0)
        absolute = search.run(squared.axis, squared.radius, 1.0)
        starts += [(end.axis, end.radius) for end in (squared, absolute)]
    ends = [search.run(axis, radius, p) for axis, radius in starts]
    best = min(ends, key=lambda end: end.objective)
    skewness = float(search.weights @ best.residuals(points) ** 3)
    flip = skewness < 0 if great else best.radius > np.pi / 2
    return replace(best, axis=-best.axis, radius=np.pi - best.radius) if flip else best


class _Search:
    """Searches for the best subsphere from several starts; the weights have sum 1."""

    def __init__(self, points: Floats, weights: Floats, great: bool, max_iter: int) -> None:
        self.points, self.weights = points, weights
        self.great, self.max_iter = great, max_iter
        self.mean, self.squares = weights @ points, weights @ points**2

    def principal_axes(self) -> list[Floats]:
        """Return the directions of minimum spread, about the origin and about the mean.

        With many coordinates, return one coordinate axis: the better one of the two with minimum
        spread about the origin and about the mean.
        """
        m = self.points.shape[1]
        if m > _MAX_EXACT:
            best = {int(np.argmin(self.squares)), int(np.argmin(self.squares - self.mean**2))}
            axes = [np.eye(1, m, i)[0] for i in sorted(best)]
            angles = [_angles_from(v, self.points)[0] - self.best_radius(v) for v in axes]
            return [axes[int(np.argmin([self._excess(each, 2) for each in angles]))]]
        second = (self.points * self.weights[:, None]).T @ self.points
        starts = [np.linalg.eigh(second)[1][:, 0]]  # fits great subspheres
        if self.great:
            return starts
        flat = np.linalg.eigh(second - np.outer(self.mean, self.mean))[1][:, 0]  # fits planes
        if abs(flat @ starts[0]) < 0.99:
            starts.append(flat)
        return starts

    def best_radius(self, axis: Floats) -> float:
        """Return the mean angle from an axis, or π/2 for a great subsphere."""
        return np.pi / 2 if self.great else float(self.weights @ _angles_from(axis, self.points)[0])

    def through_points(self, p: float) -> list[tuple[Floats, float]]:
        """Return the best of many subspheres through random points."""
        (n, m), great = self.points.shape, self.great
        size = m - 1 if great else m
        if m > _MAX_RANDOM or n < size:
            return []
        random = np.random.RandomState(0)  # the result is deterministic
        indices = random.choice(n, (_N_CANDIDATES, size), p=self.weights)
        chosen = self.points[indices]
        chosen = chosen if great else chosen - chosen.mean(axis=1, keepdims=True)
        axes = np.linalg.svd(chosen, full_matrices=True)[2][:, -1]
        angles, _ = _angles(self.points @ axes.T)
        radii = np.full(_N_CANDIDATES, np.pi / 2)
        if not great:
            radii = np.array([np.median(angles[rows, i]) for i, rows in enumerate(indices)])
        values = self.weights @ ((angles - radii) ** 2 + EPSILON) ** (p / 2)
        best = np.argsort(values, kind="stable")[: _N_STARTS[p < 1]]
        return [(axes[i], float(radii[i])) for i in best]

    def run(self, axis: Floats, radius: float, p: float) -> Subsphere:
        """Search from an axis and a radius, with Newton's method and a line search."""
        v, r = axis / np.linalg.norm(axis), min(max(radius, _TINY_ANGLE), np.pi - _TINY_ANGLE)
        angles, sines = _angles_from(v, self.points)
        value = self._excess(angles - r, p)
        n_iter, converged = 0, value == 0
        while not converged and n_iter < self.max_iter:
            n_iter += 1
            steps = self._descent_steps(v, r, angles, sines, p)
            searches = (self._line_search(v, r, value, *step, p) for step in steps)
            found = next((each for each in searches if each is not None), None)
            if found is None:  # only rounding errors remain
                converged = True
                break
            lower, v, r, angles, sines = found
            converged = value - lower <= _NEWTON_TOL * value
            value = lower
        return Subsphere(v, r, value + EPSILON ** (p / 2), n_iter, converged)

    def _descent_steps(
        self, v: Floats, r: float, angles: Floats, sines: Floats, p: float
    ) -> Iterator[tuple[Floats, float]]:
        """Yield steps and their slopes: Newton's step, then two of reweighted least squares."""
        residuals, sines = angles - r, np.maximum(sines, 1e-12)
        squares = residuals**2
        smooth = squares + EPSILON
        reweighted = p * smooth ** (p / 2 - 1)
        curvature = p * smooth ** (p / 2 - 2) * ((p - 1) * squares + EPSILON)
        curvature = np.maximum(curvature, _MIN_CURVATURE * reweighted)
        slopes = self.weights * reweighted * residuals
        # derivatives of the residuals with respect to v (tangential); for r they are -1
        cosines = np.cos(angles)
        jacobian = np.outer(cosines, v)
        jacobian -= self.points
        jacobian /= sines[:, None]
        gradient = slopes @ jacobian
        if not self.great:
            gradient = np.append(gradient, -slopes.sum())
        # the second derivative of an angle θ with respect to v is cot θ (I - t tᵀ)
        bend = slopes * cosines / sines
        for bent, factors in ((bend, curvature), (None, curvature), (None, reweighted)):
            step = _newton_step(jacobian, gradient, self.weights * factors, bent, v)
            if step is not None:
                yield step, float(gradient @ step)

    def _line_search(
        self, v: Floats, r: float, value: float, step: Floats, slope: float, p: float
    ) -> tuple[Any, ...] | None:
        """Shorten a step until the objective decreases sufficiently.

        Return the objective, axis, radius, angles and sines at the end, or None if no
        length suffices.
        """
        length, m = 1.0, len(v)
        while length > 1e-3:
            axis = v + length * step[:m]
            axis /= np.linalg.norm(axis)
            angles, sines = _angles_from(axis, self.points)
            radii = [r]
            if not self.great:
                # the best radius for these angles is often better, because valleys are curved
                factors = self.weights * ((angles - r) ** 2 + EPSILON) ** (p / 2 - 1)
                radii = [r + length * float(step[-1]), float(factors @ angles / factors.sum())]
            values = [self._excess(angles - radius, p) for radius in radii]
            best = int(np.argmin(values))
            inside = _TINY_ANGLE <= radii[best] <= np.pi - _TINY_ANGLE
            if inside and values[best] < value + 1e-4 * length * slope:
                return values[best], axis, radii[best], angles, sines
            length /= 3
        return None

    def _excess(self, residuals: Floats, p: float) -> float:
        """Return the mean of (ρ² + ε)^(p/2) - ε^(p/2), without cancellation for small ρ²."""
        if p == 2:
            return float(self.weights @ residuals**2)
        growth = np.expm1(p / 2 * np.log1p(residuals**2 / EPSILON))
        return float(self.weights @ growth) * EPSILON ** (p / 2)


def _newton_step(
    jacobian: Floats, gradient: Floats, weights: Floats, bend: Floats | None, v: Floats
) -> Floats | None:
    """Return Newton's step.

    If the matrix of second derivatives is not positive definite, use the absolute values of its
    eigenvalues, or return None if it is large.
    """
    m = len(v)
    matrix = np.empty((len(gradient), len(gradient)))
    inner = weights if bend is None else weights - bend
    matrix[:m, :m] = (jacobian * inner[:, None]).T @ jacobian
    if len(gradient) > m:
        matrix[m, :m] = matrix[:m, m] = -(weights @ jacobian)
        matrix[m, m] = weights.sum()
    size = abs(float(np.trace(matrix))) / len(matrix)
    # regularise, as the matrix is singular with fewer points than coordinates
    bent = 0.0 if bend is None else float(bend.sum())
    matrix.flat[: m * len(matrix) : len(matrix) + 1] += 1e-10 * size + bent
    matrix[:m, :m] += (size + abs(bent)) * np.outer(v, v)  # the length of v has no effect
    try:
        # the line search shortens steps along nearly flat directions
        factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        return -scipy.linalg.cho_solve(factor, gradient, check_finite=False)
    except np.linalg.LinAlgError:
        if len(matrix) > _MAX_SADDLE_SIZE:
            return None
    # near a saddle, descend also in directions of negative curvature
    values, vectors = np.linalg.eigh(matrix)
    sizes = np.maximum(np.abs(values), 1e-8 * np.abs(values).max())
    return -vectors @ ((vectors.T @ gradient) / sizes)


def _angles_from(axis: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return the angles between points and an axis, and their sines, which are never 0.

    Angles near 0 and π are computed from differences, since cosines are inaccurate there.
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
        sines[near] = np.maximum(chords * sums / 2, _MIN_SINE)
    return angles, sines


def _angles(cosines: Array) -> tuple[Floats, Floats]:
    """Return angles and their sines, which are never 0."""
    c = np.clip(cosines, -1.0, 1.0)
    sines = np.sqrt((1 - c) * (1 + c))
    return np.arctan2(sines, c), np.maximum(sines, _MIN_SINE)
