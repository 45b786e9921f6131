"""The weighted Karcher mean on the unit sphere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.checks import (
    check_callback,
    check_integer,
    check_numbers,
    check_positive,
    check_sample_weight,
)
from .._core.status import Status
from .._core.threads import single_threaded_blas
from .._core.types import Callback, Floats
from .._core.unit import check_no_antipodes, check_unit_length
from .._core.warn import warn_user
from ..gram import GramOperator
from ._descent import descend, first_point
from ._points import Coefficients, Coordinates, Space


@dataclass(frozen=True)
class KarcherMean:
    """The weighted Karcher mean of points on the sphere.

    Attributes
    ----------
    point : ndarray of shape (d,) or (n,)
        The mean: coordinates, or coefficients over the n points of the Gram operator.
    cosines : ndarray of shape (n,) or None
        Inner products of the points with the mean; None if the points were read in blocks.
    variance : float
        Σ p_n θ_n², the weighted mean of the squared distances.
    gradient_norm : float
        ‖Σ p_n Log_μ(y_n)‖ at the mean, in radians.
    n_far, n_points : int
        The number of points of positive weight outside the open hemisphere about the mean, and the
        number of all points.
    n_iter : int
        The number of steps. The number of products with the Gram operator is larger by two: one for
        the start and one for the last gradient. It is smaller if coefficients of the mean cancelled
        and the search continued in coordinates.
    status : Status
        How the iteration ended.
    history : tuple of dict
        ``objective`` and ``gradient_norm`` before each step, and at the end.
    """

    point: NDArray[Any]
    cosines: Any
    variance: float
    gradient_norm: float
    n_far: int
    n_points: int
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached, or only rounding errors remained."""
        return self.status.converged


def karcher_mean(
    points: GramOperator | ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    tol: float = 1e-10,
    max_iter: int = 100,
    initial: ArrayLike | None = None,
    callback: Callback | None = None,
) -> KarcherMean:
    r"""Find the weighted Karcher mean of points on the sphere.

    .. math:: \mu = \arg\min_\nu \sum_n p_n\, d_g^2(\nu, y_n), \qquad \sum_n p_n = 1

    (Awate et al., eq. 3; their eqs. 5 and 6 divide by the number of points, not by the sum of the
    weights).
    The negative gradient is :math:`g = \sum_n p_n \operatorname{Log}_\mu(y_n)`. With
    :math:`w_n = p_n \theta_n/\sin\theta_n` and the cosines c it is
    :math:`\sum_n w_n y_n - (w \cdot c)\,\mu`. One product with the Gram matrix gives the gradient,
    its length, and the cosines at every point of the great circle in its direction. The steps are
    conjugate gradients with the exact second derivative along the great circle, shortened until the
    objective does not increase. (``benchmarks/bench_sphere.py`` compares the number of steps with
    that of the paper's method, τ = 1.)

    Parameters
    ----------
    points : GramOperator, or array-like of shape (n, d)
        Unit vectors, given as coordinates or as the operator of their inner products.
    sample_weight : array-like of shape (n,), optional
        Weights. Default: equal.
    tol : float, default=1e-10
        Stop when ‖g‖ <= tol. The iteration also converges when only rounding errors remain.
    max_iter : int, default=100
        The maximum number of steps.
    initial : array-like of shape (d,) or (n,), optional
        The start, as coordinates or coefficients, of any length but 0. Default: the weighted mean
        of the points.
    callback : callable, optional
        Called with each entry of the history.

    Returns
    -------
    KarcherMean
        The mean, the cosines, the variance and the diagnostics.

    Warns
    -----
    UserWarning
        If points lie outside the open hemisphere about the mean, which then may not be unique.
    ConvergenceWarning
        If `max_iter` was reached, or if large coefficients of the mean cancel.

    Raises
    ------
    ValueError
        If points are antipodal to the mean, or if they cancel and have no mean.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", 2014, §4.1; Buss and Fillmore,
    "Spherical averages and applications to spherical splines and interpolation", 2001.

    Examples
    --------
    >>> karcher_mean([[1.0, 0.0], [0.0, 1.0]], [2, 1]).point.round(4)
    array([0.866, 0.5  ])
    """
    check_positive(tol, "tol", "karcher_mean", or_zero=True)
    check_integer(max_iter, "max_iter", "karcher_mean")
    check_callback(callback, "karcher_mean")
    if not isinstance(points, GramOperator):
        points = check_numbers(points, "points", "karcher_mean", dtype=[np.float64, np.float32])
        check_unit_length(np.einsum("ij,ij->i", points, points), points.dtype, "points")
    weights = check_sample_weight(sample_weight, points.shape[0], "karcher_mean")
    result = find_mean(
        points, weights, tol=tol, max_iter=max_iter, initial=initial, callback=callback
    )
    warn_about_mean(result, "karcher_mean:", tol)
    return result


def find_mean(
    points: GramOperator | NDArray[Any],
    weights: Floats | None,
    *,
    tol: float,
    max_iter: int,
    initial: ArrayLike | None = None,
    callback: Callback | None = None,
) -> KarcherMean:
    """Find the Karcher mean as :func:`karcher_mean` does, without input checks and warnings."""
    if isinstance(points, GramOperator):
        space: Space = Coefficients(points)
    else:
        space = Coordinates(points, points.dtype)
    p = np.full(space.n, 1.0 / space.n) if weights is None else weights / weights.sum()
    with single_threaded_blas():
        found = descend(space, p, first_point(space, p, initial), tol, max_iter, callback)
    mean, last = found.mean, found.history[-1]
    cosines = np.where(p > 0, mean.products, 1.0)  # points of weight 0 do not count
    check_no_antipodes(cosines, space.eps, "points")
    return KarcherMean(
        point=mean.vector.astype(space.dtype, copy=False),
        cosines=mean.products,
        variance=last["objective"],
        gradient_norm=last["gradient_norm"],
        n_far=int(np.count_nonzero(cosines <= 0)),
        n_points=space.n,
        n_iter=found.n_iter,
        status=found.status,
        history=found.history,
    )


def warn_about_mean(
    mean: Any, what: str, tol: float | None = None, advice: str | None = None
) -> None:
    """Warn if a mean did not converge, or may not be unique because points are far from it.

    `tol` is the tolerance, if the user can change it. `advice` replaces the advice of MAX_ITER.
    """
    status = mean.status
    if not status.converged:
        detail = f"gradient norm {mean.gradient_norm:.1e} after {mean.n_iter} steps"
        if tol is not None:
            detail = f"{detail}, tol={tol:g}"
        if advice is None or status is not Status.MAX_ITER:
            advice = status.advice
        warn_user(f"{what} {status.value} ({detail}). {advice}", ConvergenceWarning)
    if mean.n_far:
        warn_user(
            f"{mean.n_far} of {mean.n_points} points lie a quarter of a great circle or more "
            "from the Karcher mean, which may therefore not be unique: another start may lead "
            "to another mean.",
            UserWarning,
        )
