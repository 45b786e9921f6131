"""Principal nested spheres: a chain of subspheres of falling dimension, down to a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from .._core.checks import (
    RowError,
    check_callback,
    check_choice,
    check_integer,
    check_numbers,
    check_positive,
    check_power,
    check_sample_weight,
)
from .._core.threads import single_threaded_blas
from .._core.types import Callback, Floats
from .._core.unit import check_unit_length
from .._core.warn import warn_user
from ._subspheres import EPSILON, Subsphere, fit_subsphere, folded, reflected

#: How each subsphere is chosen: small, great, or by a criterion.
CHOICES = ("small", "great", "bic", "test")

_RANK = 1e-12  # directions with a smaller part of the trace are left out
_NO_LENGTH = 1e-12  # projections of unit vectors on the span that are shorter are rounding
_SIGNIFICANCE = 0.05
_EXTREME = 64  # lengths beyond 2 to this power are scaled to avoid over- and underflow
_RENEWED = 0.9  # take new principal coordinates when this fraction of them is left


@dataclass(frozen=True, eq=False)
class NestedSpheres:
    r"""A chain of subspheres :math:`S^{m-2} \supset \dots \supset S^1` and the mean on the circle.

    Attributes
    ----------
    basis : ndarray of shape (d, m)
        Orthonormal basis of the span of the points, by falling second moment.
    subspheres : tuple of Subsphere
        The chain, outermost first, each in the coordinates of the one before.
    mean_angle : float
        The angle of the mean on the circle at the end.
    wrap : float
        The arc of the circle that holds all projected points, in radians. Beyond π the mean need
        not be unique, and the variance of the first mode is inflated.
    orientation : float
        1 or -1, the positive direction on the circle.
    n_lost : int
        The number of projections of points on an axis, which are not defined.
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
    def radii(self) -> Floats:
        """Radii of the subspheres, outermost first, shape (n_modes - 1,)."""
        return np.array([subsphere.radius for subsphere in self.subspheres])

    @property
    def n_iter(self) -> int:
        """The number of iterations over all levels."""
        return sum(subsphere.n_iter for subsphere in self.subspheres)

    @property
    def converged(self) -> bool:
        """Whether the searches of all levels converged."""
        return all(subsphere.converged for subsphere in self.subspheres)

    @cached_property
    def axes(self) -> Floats:
        """Axes of the subspheres in the coordinates of the data, orthonormal, outermost first."""
        axes = np.empty((len(self.subspheres), self.basis.shape[0]))
        frame = self.basis
        for row, subsphere in zip(axes, self.subspheres, strict=True):
            row[:] = frame @ subsphere.axis
            frame = reflected(frame, subsphere.axis)[:, :-1]
        return axes

    @property
    def scales(self) -> Floats:
        """Radii of the spheres relative to the first one: Π sin r over all outer levels.

        Of shape (n_modes,): the circle, then the subspheres, innermost first.
        """
        outer = np.cumprod(np.concatenate([[1.0], np.sin(self.radii)]))
        return outer[::-1].copy()

    @property
    def mean(self) -> Floats:
        """The mean, a unit vector in the coordinates of the data."""
        return self.points(np.zeros((1, self.n_modes)))[0]

    def scores(self, points: ArrayLike) -> Floats:
        """Map points of the sphere to scores, principal modes first.

        The first is the signed angle from the mean on the circle, the others are the signed
        residuals of the subspheres, innermost first; each is scaled by its entry of `scales`.
        Points are projected on the span of the data first.

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

        These are columns of :meth:`scores`, divided by the scale of the last of them: angles on a
        subsphere do not depend on how far down the chain it lies.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Unit vectors.
        n_features : int
            The number of features.
        circle : bool, default=False
            Whether the angle on the circle is the first feature, as in :meth:`scores`. Otherwise
            there are only residuals, as in §VI of the paper on kernel nested spheres.

        Returns
        -------
        ndarray of shape (n, n_features)
            Features, innermost first.
        """
        most = self.n_modes if circle else self.n_modes - 1
        if not 1 <= n_features <= most:
            raise ValueError(f"n_features must be from 1 to {most}; got {n_features}.")
        local, residuals = self._descend(points, 1)
        m = n_features - 1 if circle else n_features
        last = self.radii[len(self.radii) - m :]
        units = np.cumprod(np.concatenate([[1.0], np.sin(last)]))[::-1]
        found = np.column_stack([self._circle(local), *residuals[::-1][:m]]) * units
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
        return self._lifted(local, plain.T[1:])

    def projected(self, points: ArrayLike, dimension: int) -> Floats:
        """Project points on a subsphere, in its own coordinates.

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
        local = _matrix(points, "points", self.n_modes + 1, least=2)
        return self._lifted(local, np.zeros((self.n_modes + 1 - local.shape[1], len(local))))

    def _descend(self, points: ArrayLike, dimension: int) -> tuple[Floats, list[Floats]]:
        """Project points on the subsphere of a dimension; also return the residuals."""
        given = _matrix(points, "points", self.basis.shape[0])
        local, residuals = _in_span(_of_moderate_size(given), self.basis), []
        for subsphere in self.subspheres[: self.n_modes - dimension]:
            local, signed, _ = subsphere.split(local)
            residuals.append(signed)
        return local, residuals

    def _lifted(self, local: Floats, residuals: Floats) -> Floats:
        """Map points of a subsphere to the sphere, with residuals from each larger one."""
        outer = self.subspheres[: len(residuals)]
        for subsphere, signed in zip(outer[::-1], residuals, strict=True):
            local = subsphere.lift(local, signed)
        return local @ self.basis.T

    def _circle(self, local: Floats) -> Floats:
        angle = np.arctan2(local[:, 1], local[:, 0]) - self.mean_angle
        return self.orientation * (np.pi - (np.pi - angle) % (2 * np.pi))


def nested_spheres(
    points: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    p: float = 2.0,
    sphere: str = "small",
    negligible: float = 0.0,
    max_iter: int = 2000,
    callback: Callback | None = None,
) -> NestedSpheres:
    r"""Fit principal nested spheres to points on a sphere, robustly.

    Beginning with the sphere that the points span, each level fits the nearest subsphere
    (:func:`fit_subsphere`) and projects the points on it, down to a circle. The Karcher mean on the
    circle ends the chain.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Unit vectors. n may be smaller than d.
    sample_weight : array-like of shape (n,), optional
        Weights; a weight of 2 is the same as the point given twice.
    p : float in (0, 2], default=2.0
        The power of the residuals in the objective; smaller powers are more robust.
    sphere : {"small", "great", "bic", "test"}, default="small"
        The kind of subspheres. "small": of any radius, as in the paper. "great": great ones only.
        "bic": at each level the one with the lower Bayesian information criterion. "test": a small
        one if a likelihood-ratio test at 5 % rejects the great one.
    negligible : float, default=0.0
        If a coordinate has at most this part of the variance, drop it without optimisation. 0
        optimises every level.
    max_iter : int, default=2000
        The maximum number of iterations of a search; a level takes several for p < 2.
    callback : callable, optional
        Called after each level with ``level``, ``n_levels``, ``radius``, ``objective`` and
        ``n_iter``.

    Returns
    -------
    NestedSpheres
        The chain.

    Warns
    -----
    UserWarning
        If the points cover more than half of the circle at the end.
    ConvergenceWarning
        If a search did not converge within `max_iter` iterations.

    Notes
    -----
    With p = 1, scattered outliers hardly move the fitted circle if the points cover most of it. If
    they cover only an arc, another circle nearer to the outliers may have the lower objective;
    p = 0.5 needs a shorter arc. Outliers that form a group act as data, for every p.

    ``"test"`` is the first of the two tests of R's ``shapes::pns``, at 5 %. The second one, of
    isotropy, after which all levels are great, is not made. An isotropic cloud may therefore be
    fitted by a small subsphere of its own size.

    References
    ----------
    Jung, Dryden and Marron, "Analysis of principal nested spheres", Biometrika 99, 2012; Awate,
    Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016, §IV.

    Examples
    --------
    >>> import numpy as np
    >>> angle = np.linspace(-1, 1, 20)
    >>> circle = np.column_stack([0.6 * np.cos(angle), 0.6 * np.sin(angle), np.full(20, 0.8)])
    >>> chain = nested_spheres(circle)
    >>> np.sin(chain.radii).round(4)  # of the small circle
    array([0.6])
    >>> np.allclose(chain.points(chain.scores(circle)), circle)
    True
    """
    check_power(p, "p", "nested_spheres")
    check_choice(sphere, CHOICES, "sphere", "nested_spheres")
    check_positive(negligible, "negligible", "nested_spheres", or_zero=True)
    check_integer(max_iter, "max_iter", "nested_spheres")
    check_callback(callback, "nested_spheres")
    given = check_numbers(points, "points", "the sphere", dtype=[np.float64, np.float32])
    check_unit_length(np.einsum("ij,ij->i", given, given), given.dtype, "points")
    weights = check_sample_weight(sample_weight, len(given), "nested_spheres")
    weights = np.ones(len(given)) if weights is None else weights
    counting = weights > 0
    local = given[counting].astype(np.float64)
    with single_threaded_blas():
        rule = _Rule(p, sphere, negligible, max_iter)
        try:
            chain = _chain(local, weights[counting], rule, callback)
        except RowError as error:
            raise error.renumbered(np.flatnonzero(counting)) from None
    if chain.wrap > np.pi:
        warn_user(
            f"The points take up {np.rad2deg(chain.wrap):.0f} degrees of the circle at the end of "
            "the chain. Beyond 180 the mean need not be unique, and the variance of the first mode "
            "is inflated. Great subspheres (sphere='great') wrap less.",
            UserWarning,
        )
    unfinished = sum(not subsphere.converged for subsphere in chain.subspheres)
    if unfinished:
        warn_user(
            f"{unfinished} of the {len(chain.subspheres)} subspheres did not converge within "
            f"{max_iter} iterations. Raise max_iter.",
            ConvergenceWarning,
        )
    return chain


@dataclass(frozen=True)
class _Rule:
    """How subspheres are fitted: parameters of :func:`nested_spheres`."""

    p: float
    sphere: str
    negligible: float
    max_iter: int


def _chain(
    points: Floats, weights: Floats, rule: _Rule, callback: Callback | None
) -> NestedSpheres:
    share = weights / weights.sum()
    basis = _span(points, share)
    local = _in_span(points, basis)
    mean = share @ local
    total = float(np.maximum(share @ local**2 - mean**2, 0.0).sum())
    n_levels = basis.shape[1] - 2
    fits: list[Subsphere] = []
    axes = np.empty((n_levels, len(basis)))
    frame, n_lost, renewed, size = basis, 0, np.inf, 1.0
    for level in range(n_levels):
        if local.shape[1] <= _RENEWED * renewed:
            turn = _principal_coordinates(local, share, rule.sphere == "great")
            local, frame, renewed = local @ turn, frame @ turn, local.shape[1]
        found = _fitted(local, weights, rule, rule.negligible * total / size**2)
        fits.append(found)
        axes[level] = frame @ found.axis
        frame = reflected(frame, found.axis)[:, :-1]
        local, _, lost = found.split(local)
        n_lost += int(lost.sum())
        size *= np.sin(found.radius)
        if callback is not None:
            entry = {"level": level + 1, "n_levels": n_levels, "n_iter": found.n_iter}
            callback(entry | {"radius": found.radius, "objective": found.objective})
    subspheres, own = _in_own_coordinates(fits, axes, basis)
    local = local @ (frame.T @ own)
    angles = np.arctan2(local[:, 1], local[:, 0])
    center, wrap = _circular_mean(angles, share)
    around = np.pi - (np.pi - (angles - center)) % (2 * np.pi)
    orientation = 1.0 if share @ around**3 >= 0 else -1.0
    return NestedSpheres(basis, subspheres, center, wrap, orientation, n_lost)


def _matrix(values: ArrayLike, name: str, most: int, least: int | None = None) -> Floats:
    """Return rows of `most` numbers, or of `least` to `most`, or raise."""
    matrix = check_numbers(values, name, "the sphere", dtype=np.float64)
    if not (least or most) <= matrix.shape[1] <= most:
        number = f"from {least} to {most}" if least else most
        raise ValueError(f"{name} must have {number} columns; got {matrix.shape[1]}.")
    return matrix


def _of_moderate_size(points: Floats) -> Floats:
    """Divide points by powers of 2 if their squares would over- or underflow."""
    powers = np.frexp(np.abs(points).max(axis=1))[1]
    powers[np.abs(powers) < _EXTREME] = 0
    return np.ldexp(points, -powers[:, None]) if powers.any() else points


def _in_span(points: Floats, basis: Floats) -> Floats:
    """Project points on the span of a basis and normalise them; return its coordinates.

    Raise if a point is orthogonal to the span, as new points or those of tiny weight may be.
    """
    local = points @ basis
    lengths = np.linalg.norm(local, axis=1)
    row = int(np.argmin(lengths))
    if lengths[row] <= _NO_LENGTH:
        raise RowError(
            "Row {0} of points is orthogonal to the span of the data, without those of negligible "
            "weight. Leave the row out.",
            row,
        )
    return local / lengths[:, None]


def _span(points: Floats, share: Floats) -> Floats:
    """Return at least two directions that the points span, by falling second moment."""
    scaled = np.sqrt(share)[:, None] * points
    # a single point spans one direction; full matrices give a second one
    _, values, rows = np.linalg.svd(scaled, full_matrices=len(points) == 1)
    kept = max(2, int(np.count_nonzero(values**2 > _RANK * (values @ values))))
    if rows.shape[0] < 2:
        raise ValueError("points must have at least 2 coordinates; got 1.")
    return np.ascontiguousarray(rows[:kept].T)


def _principal_coordinates(local: Floats, share: Floats, about_origin: bool) -> Floats:
    """Return the directions of falling spread, about the mean or the origin, as columns.

    In these coordinates a search begins near its end and is well scaled.
    """
    second = (local * share[:, None]).T @ local
    if not about_origin:
        mean = share @ local
        second -= np.outer(mean, mean)
    return np.linalg.eigh(second)[1][:, ::-1]


def _in_own_coordinates(
    fits: list[Subsphere], axes: Floats, basis: Floats
) -> tuple[tuple[Subsphere, ...], Floats]:
    """Express axes in coordinates that depend only on the subspheres before.

    Return the subspheres, and the directions of the circle's coordinates as columns.
    """
    frame, found = basis, []
    for fit, axis in zip(fits, axes, strict=True):
        own = frame.T @ axis
        own /= np.linalg.norm(own)
        found.append(replace(fit, axis=own))
        frame = reflected(frame, own)[:, :-1]
    return tuple(found), frame


def _fitted(local: Floats, weights: Floats, rule: _Rule, negligible: float) -> Subsphere:
    """Fit a subsphere: small, great, or chosen by a criterion.

    A coordinate of negligible variance is cut off without a search. If residuals have the density
    exp(-|ρ/s|^p), their log-likelihood is -(n/p) log Σ|ρ|^p, from which the ratio follows.
    """
    share, coordinate = weights / weights.sum(), None
    if negligible > 0:
        spread = share @ local**2 - (share @ local) ** 2
        coordinate = int(np.argmin(spread)) if spread.min() <= negligible else None

    def fit(great: bool) -> Subsphere:
        if coordinate is not None:
            return _cut_off(local, share, coordinate, rule.p, great)
        return fit_subsphere(local, weights, p=rule.p, great=great, max_iter=rule.max_iter)

    if rule.sphere in ("small", "great"):
        return fit(rule.sphere == "great")
    small, great = fit(False), fit(True)
    n, tiny = float(weights.sum()), np.finfo(np.float64).tiny
    sizes = [weights @ np.abs(found.residuals(local)) ** rule.p for found in (great, small)]
    logs = [np.log(max(float(size), tiny)) for size in sizes]
    ratio = 2 * n / rule.p * float(logs[0] - logs[1])
    limit = np.log(n) if rule.sphere == "bic" else float(chi2.isf(_SIGNIFICANCE, 1))
    return small if ratio > limit else great


def _cut_off(local: Floats, share: Floats, coordinate: int, p: float, great: bool) -> Subsphere:
    """Return the subsphere about a coordinate axis with the mean angle as radius."""
    axis = np.eye(1, local.shape[1], coordinate)[0]
    angles = np.arccos(np.clip(local[:, coordinate], -1.0, 1.0))
    radius = np.pi / 2 if great else float(share @ angles)
    objective = float(share @ ((angles - radius) ** 2 + EPSILON) ** (p / 2))
    return folded(Subsphere(axis, radius, objective, 0), local, share, great)


def _circular_mean(angles: Floats, share: Floats) -> tuple[float, float]:
    """Return the exact Karcher mean of angles, and the arc that holds all of them.

    Cut the circle between two angles and take their ordinary mean, for each of the n cuts; the one
    with the least variance is the Karcher mean.
    """
    order = np.argsort(angles, kind="stable")
    x, w = angles[order], share[order]
    before = np.concatenate([[0.0], np.cumsum(w)[:-1]])  # weight of the angles raised by 2π
    first = np.concatenate([[0.0], np.cumsum(w * x)[:-1]])
    means = w @ x + 2 * np.pi * before
    squares = w @ x**2 + 4 * np.pi * first + 4 * np.pi**2 * before - means**2
    center = float(means[np.argmin(squares)])
    gaps = np.diff(np.concatenate([x, [x[0] + 2 * np.pi]]))
    return float(np.pi - (np.pi - center) % (2 * np.pi)), float(2 * np.pi - gaps.max())
