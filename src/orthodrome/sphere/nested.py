"""Principal nested spheres: a chain of subspheres of decreasing dimension, down to a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from .._core.checks import (
    RowError,
    check_callback,
    check_choice,
    check_integer,
    check_numbers,
    check_positive,
    check_sample_weight,
    rows_renumbered,
)
from .._core.threads import single_threaded_blas
from .._core.types import Array, Callback, Floats
from .._core.unit import check_unit_length
from .._core.warn import warn_user

#: How each subsphere is chosen: always small, always great, or with a criterion.
CHOICES = ("great", "small", "bic", "test")

_RANK = 1e-12  # directions with a smaller fraction of the trace are dropped
_NO_LENGTH = 1e-12  # shorter projections of unit vectors onto the span are rounding errors
_SIGNIFICANCE = 0.05  # level of the likelihood-ratio test
_TINY = float(np.finfo(np.float64).tiny)
_RENEWAL = 0.9  # compute principal coordinates again when this fraction of the dimension remains

#: Smooths the penalty at residual 0 (the paper's ε).
EPSILON = 1e-5

# Newton's method: relative tolerance, and the minimum second derivative relative to that of
# reweighted least squares.
_NEWTON_TOL, _MIN_CURVATURE = 1e-12, 0.01
_MAX_SADDLE_SIZE = 400  # maximum number of coordinates for which eigenvectors are used near saddles
# For p = 2 and more than _MAX_DIRECT coordinates, conjugate gradients find Newton's step. They stop
# when an iteration adds at most the fraction _CONJUGATE_TOL of the decrease.
_MAX_DIRECT, _CONJUGATE_TOL = 100, 1e-3
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
        """Yield steps and their slopes: Newton's step, then those of (reweighted) least squares."""
        residuals, sines = angles - r, np.maximum(sines, 1e-12)
        squares = residuals**2
        smooth = squares + EPSILON
        reweighted = p * smooth ** (p / 2 - 1)
        curvature = p * smooth ** (p / 2 - 2) * ((p - 1) * squares + EPSILON)
        curvature = np.maximum(curvature, _MIN_CURVATURE * reweighted)
        slopes = self.weights * reweighted * residuals
        cosines = np.cos(angles)
        # the second derivative of an angle θ with respect to v is cot θ (I - t tᵀ)
        bend = slopes * cosines / sines
        if p == 2 and len(v) > _MAX_DIRECT:
            negligible = 0.1 * _NEWTON_TOL * float(self.weights @ squares)
            for bends in (bend, np.zeros_like(bend)):
                found = self._conjugate_step(v, sines, slopes, bends, negligible)
                if found[1] < 0:  # rounding errors may spoil steps at negative curvature
                    yield found
            return
        # derivatives of the residuals with respect to v (tangential); for r they are -1
        jacobian = np.outer(cosines, v)
        jacobian -= self.points
        jacobian /= sines[:, None]
        gradient = slopes @ jacobian
        if not self.great:
            gradient = np.append(gradient, -slopes.sum())
        for bent, factors in ((bend, curvature), (None, curvature), (None, reweighted)):
            step = _newton_step(jacobian, gradient, self.weights * factors, bent, v)
            if step is not None:
                yield step, float(gradient @ step)

    def _conjugate_step(
        self, v: Floats, sines: Floats, slopes: Floats, bend: Floats, negligible: float
    ) -> tuple[Floats, float]:
        """Return Newton's step for p = 2 and its slope, without forming the second derivatives.

        Conjugate gradients, scaled with the diagonal of the second derivatives, find the change of
        the axis. The best change of the radius follows. The iteration ends early if the decrease is
        negligible.
        """

        def tangential(vector: Floats) -> Floats:
            return vector - (vector @ v) * v

        points, bent, excess = self.points, float(bend.sum()), float(slopes.sum())
        inner = (2 * self.weights - bend) / sines**2
        gradient = -tangential((slopes / sines) @ points)
        # derivatives of the best radius with respect to v
        pull = np.zeros_like(v) if self.great else -tangential((self.weights / sines) @ points)
        diagonal = np.abs(inner @ points**2 - 2 * pull**2 + bent)
        diagonal += 1e-8 * diagonal.mean()
        residual = excess * pull - gradient
        step, direction = np.zeros_like(v), np.zeros_like(v)
        before, decrease = 1.0, 0.0
        for _ in range(len(v)):
            scaled = tangential(residual / diagonal)
            size = float(residual @ scaled)
            direction = scaled + (size / before) * direction
            before = size
            image = tangential((inner * (points @ direction)) @ points)
            image += bent * direction - 2 * (pull @ direction) * pull
            curvature = float(direction @ image)
            if curvature == 0:
                break
            step += (size / abs(curvature)) * direction  # descend also at negative curvature
            residual -= (size / curvature) * image
            gain = size * (size / abs(curvature))
            decrease += gain
            if not gain > max(_CONJUGATE_TOL * decrease, negligible):
                break
        slope = float(gradient @ step)
        if self.great:
            return step, slope
        change = excess / 2 + float(pull @ step)
        return np.append(step, change), slope - excess * change

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


@dataclass(frozen=True, eq=False)
class NestedSpheres:
    r"""A chain of subspheres :math:`S^{m-2} \supset \dots \supset S^1` and the mean on the circle.

    Attributes
    ----------
    basis : ndarray of shape (d, m)
        Orthonormal basis of the span of the points, in order of decreasing second moment. The last
        `n_outer` columns are the axes of the outer subspheres, which are great.
    subspheres : tuple of Subsphere
        The other subspheres, outermost first. Each is given in the coordinates of the one before.
    mean_angle : float
        The angle of the mean on the last circle.
    wrap : float
        Length of the arc of the last circle that contains all projected points, in radians. Beyond
        π the mean may not be unique, and the variance of the first mode is inflated.
    orientation : float
        1 or -1, the positive direction on the circle.
    n_lost : int
        The number of points that lay on an axis, where the projection is not defined.
    """

    basis: Floats
    subspheres: tuple[Subsphere, ...]
    mean_angle: float
    wrap: float
    orientation: float = 1.0
    n_lost: int = 0

    @property
    def n_modes(self) -> int:
        """The dimension of the sphere: one angle, and one residual for each subsphere."""
        return self.basis.shape[1] - 1

    @property
    def n_outer(self) -> int:
        """The number of outer subspheres, found together as principal directions."""
        return self.n_modes - 1 - len(self.subspheres)

    @property
    def radii(self) -> Floats:
        """Radii of the subspheres, outermost first, shape (n_modes - 1,)."""
        inner = [subsphere.radius for subsphere in self.subspheres]
        return np.array([np.pi / 2] * self.n_outer + inner)

    @property
    def n_iter(self) -> int:
        """The number of iterations, summed over all levels."""
        return sum(subsphere.n_iter for subsphere in self.subspheres)

    @property
    def converged(self) -> bool:
        """Whether the searches of all levels converged."""
        return all(subsphere.converged for subsphere in self.subspheres)

    @cached_property
    def axes(self) -> Floats:
        """Axes of the subspheres in the coordinates of the data, orthonormal, outermost first."""
        n_inner = self.basis.shape[1] - self.n_outer
        frame, axes = self.basis[:, :n_inner], list(self.basis.T[: n_inner - 1 : -1])
        for subsphere in self.subspheres:
            axes.append(frame @ subsphere.axis)
            frame = reflected(frame, subsphere.axis)[:, :-1]
        return np.array(axes).reshape(-1, len(self.basis))

    @property
    def scales(self) -> Floats:
        """Radii of the spheres relative to the first one: Π sin r over all outer levels.

        The shape is (n_modes,). The circle is first, then the subspheres, innermost first.
        """
        outer = np.cumprod(np.concatenate([[1.0], np.sin(self.radii)]))
        return outer[::-1].copy()

    @property
    def mean(self) -> Floats:
        """The mean, a unit vector in the coordinates of the data."""
        return self.points(np.zeros((1, self.n_modes)))[0]

    def scores(self, points: ArrayLike) -> Floats:
        """Map points of the sphere to scores, principal modes first.

        The first score is the signed angle from the mean on the circle. The others are the signed
        residuals from the subspheres, innermost first. Each is multiplied by its entry of
        `scales`. Points are projected onto the span of the data first.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Unit vectors.

        Returns
        -------
        ndarray of shape (n, n_modes)
            Scores.
        """
        return self.features(points, self.n_modes, circle=True)

    def features(self, points: ArrayLike, n_features: int, *, circle: bool = False) -> Floats:
        """Return the innermost residuals of points as features.

        These are columns of :meth:`scores`, divided by the scale of the last of them, so that they
        are angles on that subsphere and do not depend on the outer ones.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Unit vectors.
        n_features : int
            The number of features.
        circle : bool, default=False
            Whether the angle on the circle is the first feature, as in :meth:`scores`. Otherwise
            all features are residuals, as in "Robust Kernel Principal Nested Spheres", §VI.

        Returns
        -------
        ndarray of shape (n, n_features)
            Features, innermost first.
        """
        maximum = self.n_modes if circle else self.n_modes - 1
        if not 1 <= n_features <= maximum:
            raise ValueError(f"n_features must be from 1 to {maximum}; got {n_features}.")
        local, residuals = self._descend(points, 1)
        m = n_features - 1 if circle else n_features
        last = self.radii[len(self.radii) - m :]
        units = np.cumprod(np.concatenate([[1.0], np.sin(last)]))[::-1]
        # signed angles from the mean on the last circle, in (-π, π]
        angle = np.arctan2(local[:, 1], local[:, 0]) - self.mean_angle
        angle = self.orientation * (np.pi - (np.pi - angle) % (2 * np.pi))
        found = np.column_stack([angle, *residuals[::-1][:m]]) * units
        return found if circle else found[:, 1:]

    def points(self, scores: ArrayLike) -> Floats:
        """Map scores to points of the sphere. Inverse of :meth:`scores`.

        Parameters
        ----------
        scores : array-like of shape (n, n_modes)
            Scores.

        Returns
        -------
        ndarray of shape (n, d)
            Unit vectors.
        """
        plain = _matrix(scores, "scores", self.n_modes) / self.scales
        angle = self.orientation * plain[:, 0] + self.mean_angle
        local = np.column_stack([np.cos(angle), np.sin(angle)])
        return self._lift(local, plain.T[1:])

    def projected(self, points: ArrayLike, dimension: int) -> Floats:
        """Project points onto a subsphere; return coordinates on that subsphere.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Unit vectors.
        dimension : int
            The dimension of the subsphere, from 1 (the circle) to `n_modes` (the sphere).

        Returns
        -------
        ndarray of shape (n, dimension + 1)
            Unit vectors.
        """
        check_integer(dimension, "dimension", "NestedSpheres.projected", maximum=self.n_modes)
        return self._descend(points, dimension)[0]

    def raised(self, points: ArrayLike) -> Floats:
        """Map points of a subsphere to the sphere. Inverse of :meth:`projected`.

        Parameters
        ----------
        points : array-like of shape (n, dimension + 1)
            Unit vectors in the coordinates of the subsphere of that dimension.

        Returns
        -------
        ndarray of shape (n, d)
            Unit vectors; their residuals from that subsphere and all larger ones are 0.
        """
        local = _matrix(points, "points", self.n_modes + 1, minimum=2)
        return self._lift(local, np.zeros((self.n_modes + 1 - local.shape[1], len(local))))

    def _descend(self, points: ArrayLike, dimension: int) -> tuple[Floats, list[Floats]]:
        """Project points onto the subsphere of a dimension; also return the residuals."""
        given = _matrix(points, "points", self.basis.shape[0])
        # scale, since squares of huge or tiny numbers would overflow or underflow
        largest = np.abs(given).max(axis=1, keepdims=True)
        local = _project_to_span(given / np.maximum(largest, _TINY), self.basis)
        n_kept = max(dimension + 1, self.basis.shape[1] - self.n_outer)
        local, outer, _ = _split_outer(local, n_kept)
        residuals = list(outer.T[::-1])
        for subsphere in self.subspheres[: n_kept - dimension - 1]:
            local, signed, _ = subsphere.split(local)
            residuals.append(signed)
        return local, residuals

    def _lift(self, local: Floats, residuals: Floats) -> Floats:
        """Map points of a subsphere to the sphere, with given residuals from each larger one."""
        n_inner = max(len(residuals) - self.n_outer, 0)
        for level, signed in enumerate(residuals[:n_inner], start=1):
            local = self.subspheres[n_inner - level].lift(local, signed)
        # each outer residual ρ adds the coordinate -sin ρ and multiplies the others by cos ρ
        outer = residuals[n_inner:].T
        scales = np.cumprod(np.cos(outer)[:, ::-1], axis=1)[:, ::-1]
        scales = np.column_stack([scales, np.ones(len(local))])
        local = np.column_stack([local * scales[:, :1], -np.sin(outer) * scales[:, 1:]])
        return local @ self.basis.T


def nested_spheres(
    points: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    p: float = 2.0,
    sphere: str = "great",
    negligible: float = 0.01,
    max_iter: int = 2000,
    callback: Callback | None = None,
) -> NestedSpheres:
    r"""Fit principal nested spheres to points on a sphere, robustly.

    The first sphere is the one that the points span. Each level fits the nearest subsphere
    (:func:`fit_subsphere`) and projects the points onto it, down to a circle. The last step is the
    Karcher mean on the circle. The outer levels, along principal directions of negligible variance,
    are not fitted one by one: they are great subspheres from one eigenproblem.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Unit vectors. n may be smaller than d.
    sample_weight : array-like of shape (n,), optional
        Weights. A weight of 2 is equivalent to the point given twice.
    p : float in (0, 2], default=2.0
        The power of the residuals in the objective; smaller powers are more robust.
    sphere : {"great", "small", "bic", "test"}, default="great"
        The kind of subspheres. "great": great subspheres only. "small": any radius, as in the
        paper. "bic": at each level the kind with the lower Bayesian information criterion. "test":
        a small subsphere if a likelihood-ratio test at the 5 % level rejects the great one.
    negligible : float, default=0.01
        Principal directions with at most this fraction of the variance are outer levels. 0 fits
        every level, as in the paper.
    max_iter : int, default=2000
        The maximum number of iterations of a search. For p < 2 each level needs several searches.
    callback : callable, optional
        Called after each fitted level with ``level``, ``n_levels``, ``radius``, ``objective`` and
        ``n_iter``.

    Returns
    -------
    NestedSpheres
        The chain.

    Warns
    -----
    UserWarning
        If the points cover more than half of the last circle.
    ConvergenceWarning
        If a search did not converge within `max_iter` iterations.

    Notes
    -----
    With p = 1, scattered outliers hardly move the fitted circle if the points cover most of it. If
    they cover only an arc, another circle nearer to the outliers may have a lower objective; with
    p = 0.5 this happens only for shorter arcs. For every p, a group of outliers acts like data.

    ``"test"`` is the first of the two tests of R's ``shapes::pns``, at the 5 % level. The second
    one, which switches to great subspheres once the points are isotropic, is not implemented. An
    isotropic cloud may therefore be fitted with a small subsphere of the size of the cloud.

    References
    ----------
    Jung, Dryden and Marron, "Analysis of principal nested spheres", Biometrika 99, 2012; Awate,
    Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016, §IV.

    Examples
    --------
    >>> import numpy as np
    >>> angle = np.linspace(-1, 1, 20)
    >>> circle = np.column_stack([0.6 * np.cos(angle), 0.6 * np.sin(angle), np.full(20, 0.8)])
    >>> chain = nested_spheres(circle, sphere="small")
    >>> np.sin(chain.radii).round(4)  # radius of the small circle
    array([0.6])
    >>> np.allclose(chain.points(chain.scores(circle)), circle)
    True
    """
    check_positive(p, "p", "nested_spheres", maximum=2)
    check_choice(sphere, CHOICES, "sphere", "nested_spheres")
    check_positive(negligible, "negligible", "nested_spheres", or_zero=True)
    check_integer(max_iter, "max_iter", "nested_spheres")
    check_callback(callback, "nested_spheres")
    given = check_numbers(points, "points", "nested_spheres", dtype=[np.float64, np.float32])
    check_unit_length(np.einsum("ij,ij->i", given, given), given.dtype, "points")
    weights = check_sample_weight(sample_weight, len(given), "nested_spheres")
    weights = np.ones(len(given)) if weights is None else weights
    counting = weights > 0
    local = given[counting].astype(np.float64)
    with single_threaded_blas():
        fit = partial(_fit_level, p=p, sphere=sphere, max_iter=max_iter)
        with rows_renumbered(np.flatnonzero(counting)):
            chain = _chain(local, weights[counting], fit, sphere == "great", negligible, callback)
    if chain.wrap > np.pi:
        advice = "" if sphere == "great" else " Great subspheres (sphere='great') wrap less."
        warn_user(
            f"The points take up {np.rad2deg(chain.wrap):.0f} degrees of the circle at the end of "
            "the chain. Beyond 180 the mean may not be unique, and the variance of the first mode "
            f"is inflated.{advice}",
            UserWarning,
        )
    n_failed = sum(not subsphere.converged for subsphere in chain.subspheres)
    if n_failed:
        warn_user(
            f"{n_failed} of the {len(chain.subspheres)} subspheres did not converge within "
            f"{max_iter} iterations. Raise max_iter.",
            ConvergenceWarning,
        )
    return chain


def _chain(
    points: Floats,
    weights: Floats,
    fit: Callable[..., Subsphere],
    great: bool,
    negligible: float,
    callback: Callback | None,
) -> NestedSpheres:
    p = weights / weights.sum()
    basis, n_kept = _principal_basis(points, p, negligible)
    local, outer, lost = _split_outer(_project_to_span(points, basis), n_kept)
    basis[:, n_kept:] *= np.where(p @ outer**3 < 0, -1.0, 1.0)
    # Searches run in principal coordinates, which are renewed from time to time. The results are
    # given in coordinates that depend only on the outer subspheres.
    frame = canonical = basis[:, :n_kept]
    subspheres: list[Subsphere] = []
    n_lost, renewed_at, n_levels = int(lost.sum()), np.inf, n_kept - 2
    for level in range(n_levels):
        if local.shape[1] <= _RENEWAL * renewed_at:
            rotation = _principal_coordinates(local, p, great)
            local, frame, renewed_at = local @ rotation, frame @ rotation, local.shape[1]
        found = fit(local, weights)
        axis = canonical.T @ (frame @ found.axis)
        axis /= np.linalg.norm(axis)
        subspheres.append(replace(found, axis=axis))
        canonical = reflected(canonical, axis)[:, :-1]
        frame = reflected(frame, found.axis)[:, :-1]
        local, _, lost = found.split(local)
        n_lost += int(lost.sum())
        if callback is not None:
            entry = {"level": level + 1, "n_levels": n_levels, "n_iter": found.n_iter}
            callback(entry | {"radius": found.radius, "objective": found.objective})
    local = local @ (frame.T @ canonical)
    angles = np.arctan2(local[:, 1], local[:, 0])
    center, wrap = _circular_mean(angles, p)
    scores = np.pi - (np.pi - (angles - center)) % (2 * np.pi)
    orientation = 1.0 if p @ scores**3 >= 0 else -1.0
    return NestedSpheres(basis, tuple(subspheres), center, wrap, orientation, n_lost)


def _matrix(values: ArrayLike, name: str, maximum: int, minimum: int | None = None) -> Floats:
    """Return rows of numbers; raise unless there are `minimum` to `maximum` columns.

    Default of `minimum`: `maximum`.
    """
    matrix = check_numbers(values, name, "NestedSpheres", dtype=np.float64)
    if not (minimum or maximum) <= matrix.shape[1] <= maximum:
        number = f"from {minimum} to {maximum}" if minimum else maximum
        raise ValueError(f"{name} must have {number} columns; got {matrix.shape[1]}.")
    return matrix


def _project_to_span(points: Floats, basis: Floats) -> Floats:
    """Project points onto the span of a basis and normalise them; return coordinates there.

    Raise if a point is orthogonal to the span, as new points or points of tiny weight may be.
    """
    local = points @ basis
    lengths = np.linalg.norm(local, axis=1)
    row = int(np.argmin(lengths))
    if lengths[row] <= _NO_LENGTH:
        raise RowError(
            "Row {0} of points is orthogonal to the span of the data (points of negligible weight "
            "do not count). Leave the row out.",
            row,
        )
    return local / lengths[:, None]


def _split_outer(local: Floats, n_kept: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Project points onto the subsphere of the first coordinates.

    Return the projections, the residuals from the outer subspheres, of shape (n, m - n_kept) and
    innermost first, and a mask of the points without a projection.
    """
    lengths = np.sqrt(np.cumsum(local**2, axis=1))
    residuals = -np.arctan2(local[:, n_kept:], lengths[:, n_kept - 1 : -1])
    inner = local[:, :n_kept].copy()
    lost = normalize(inner, lengths[:, n_kept - 1])
    return inner, residuals, lost


def _principal_basis(points: Floats, p: Floats, negligible: float) -> tuple[Floats, int]:
    """Return a basis of the span, by decreasing second moment, and the number of directions kept.

    The others have at most the fraction `negligible` of the variance. At least two are kept.
    """
    n, d = points.shape
    if d < 2:
        raise ValueError("points must have at least 2 coordinates; got 1.")
    scaled = np.sqrt(p)[:, None] * points
    if n < d:
        # a single point spans one direction; full matrices give a second one
        _, roots, rows = np.linalg.svd(scaled, full_matrices=n == 1)
        values, vectors = np.append(roots**2, 0.0), rows.T
    else:
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        values, vectors = values[::-1], vectors[:, ::-1]
    rank = max(2, int(np.count_nonzero(values > _RANK * values.sum())))
    mean = p @ points
    variance = max(float(values.sum() - mean @ mean), 0.0)
    n_kept = max(2, int(np.count_nonzero(values[:rank] > negligible * variance)))
    return np.ascontiguousarray(vectors[:, :rank]), n_kept


def _principal_coordinates(local: Floats, p: Floats, about_origin: bool) -> Floats:
    """Return directions of decreasing spread, about the mean or the origin, as columns.

    In these coordinates a search starts near its minimum and is well scaled.
    """
    second = (local * p[:, None]).T @ local
    if not about_origin:
        mean = p @ local
        second -= np.outer(mean, mean)
    return np.linalg.eigh(second)[1][:, ::-1]


def _fit_level(
    local: Floats, weights: Floats, *, p: float, sphere: str, max_iter: int
) -> Subsphere:
    """Fit a subsphere: small, great, or chosen with a criterion.

    The likelihood ratio assumes residuals of density exp(-|ρ/s|^p), whose log-likelihood is
    -(n/p) log Σ|ρ|^p.
    """
    fit = partial(fit_subsphere, local, weights, p=p, max_iter=max_iter)
    if sphere in ("small", "great"):
        return fit(great=sphere == "great")
    small, great = fit(great=False), fit(great=True)
    n = float(weights.sum())
    sizes = [weights @ np.abs(found.residuals(local)) ** p for found in (great, small)]
    log_sizes = np.log(np.maximum(sizes, _TINY))
    ratio = 2 * n / p * float(log_sizes[0] - log_sizes[1])
    limit = np.log(n) if sphere == "bic" else float(chi2.isf(_SIGNIFICANCE, 1))
    return small if ratio > limit else great


def _circular_mean(angles: Floats, p: Floats) -> tuple[float, float]:
    """Return the exact Karcher mean of angles, and the length of the arc that contains them.

    Cutting the circle between two neighbouring angles gives an ordinary mean. Of the n means, the
    one with the minimum variance is the Karcher mean.
    """
    order = np.argsort(angles, kind="stable")
    x, w = angles[order], p[order]
    before = np.concatenate([[0.0], np.cumsum(w)[:-1]])  # weight of the angles that 2π is added to
    first = np.concatenate([[0.0], np.cumsum(w * x)[:-1]])
    means = w @ x + 2 * np.pi * before
    squares = w @ x**2 + 4 * np.pi * first + 4 * np.pi**2 * before - means**2
    center = float(means[np.argmin(squares)])
    gaps = np.diff(np.concatenate([x, [x[0] + 2 * np.pi]]))
    return float(np.pi - (np.pi - center) % (2 * np.pi)), float(2 * np.pi - gaps.max())
