"""The weighted Karcher mean on the unit sphere, and moments of Log maps at the mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from .._core.checks import (
    check_callback,
    check_integer,
    check_numbers,
    check_positive,
    check_sample_weight,
)
from .._core.status import Outcome, Status, warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.types import Array, Callback, Floats
from .._core.unit import (
    angles_from_cosines,
    check_cosines,
    check_no_antipodes,
    check_unit_length,
    squared_angles,
)
from .._core.warn import warn_user
from ..coordinates import Coordinates
from ..coordinates.blocks import Block
from ..gram import GramOperator
from ._descent import (
    CoefficientSpace,
    CoordinateSpace,
    Space,
    bend_ratios,
    descend,
    end_of_search,
    first_point,
)
from .maps import geodesic_step

_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # relative rounding error of an objective
_PATIENCE = 3  # stop after this many passes without progress
_SAMPLE_TOL = 1e-6  # tolerance for the mean of the sample, which is only an approximation
_MIN_CURVATURE = 0.1  # lower bound for the mean of θ cot θ in the second derivative

# Size of the sample for the second derivative; larger if coordinates are recomputed in each pass.
_SAMPLE = {True: 4096, False: 2048}


@dataclass(frozen=True)
class KarcherMean(Outcome):
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
        The number of steps. There are two more products with the Gram operator: one for the start
        and one for the last gradient. There are fewer products if coefficients of the mean
        cancelled, because the search then continues in coordinates.
    status : Status
        How the iteration ended.
    history : tuple of dict
        ``objective`` and ``gradient_norm`` before each step, and at the end.
    """

    point: Array
    cosines: Any
    variance: float
    gradient_norm: float
    n_far: int
    n_points: int
    n_iter: int
    status: Status
    history: tuple[dict[str, Any], ...] = field(default=(), repr=False)


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
    warn_about_mean(result, "karcher_mean", tol)
    return result


def find_mean(
    points: GramOperator | Array,
    weights: Floats | None,
    *,
    tol: float,
    max_iter: int,
    initial: ArrayLike | None = None,
    callback: Callback | None = None,
) -> KarcherMean:
    """Find the Karcher mean as :func:`karcher_mean` does, without input checks and warnings."""
    if isinstance(points, GramOperator):
        space: Space = CoefficientSpace(points)
    else:
        space = CoordinateSpace(points, points.dtype)
    p = np.full(space.n, 1.0 / space.n) if weights is None else weights / weights.sum()
    with single_threaded_blas():
        first = first_point(space, p, initial)
        mean, status, record = descend(space, p, first, tol, max_iter, callback)
    last = record.history[-1]
    cosines = np.where(p > 0, mean.products, 1.0)  # points of weight 0 do not count
    check_no_antipodes(cosines, space.eps, "points")
    return KarcherMean(
        point=mean.vector.astype(space.dtype, copy=False),
        cosines=mean.products,
        variance=last["objective"],
        gradient_norm=last["gradient_norm"],
        n_far=int(np.count_nonzero(cosines <= 0)),
        n_points=space.n,
        n_iter=record.n_iter,
        status=status,
        history=tuple(record.history),
    )


def warn_about_mean(
    mean: KarcherMean, what: str, tol: float | None = None, advice: str | None = None
) -> None:
    """Warn if a mean did not converge, or may not be unique because points are far from it.

    `tol` is the tolerance, if the user can change it. `advice` replaces the advice of MAX_ITER.
    """
    detail = f"gradient norm {mean.gradient_norm:.1e} after {mean.n_iter} steps"
    detail += "" if tol is None else f", tol={tol:g}"
    if mean.status is not Status.MAX_ITER:
        advice = None
    warn_unless_converged(mean.status, what, detail, advice)
    if mean.n_far:
        warn_user(
            f"{mean.n_far} of {mean.n_points} points lie a quarter of a great circle or more "
            "from the Karcher mean, which may therefore not be unique: another start may lead "
            "to another mean.",
            UserWarning,
        )


# ---------------------------------------------------------------------- points with coordinates


@dataclass(frozen=True)
class _Evaluation:
    """The objective and its derivatives at a point, computed in one pass."""

    point: Floats
    objective: float
    rounding: float
    level: float  # Σ p θ cot θ
    gradient: Floats
    norm: float
    n_far: int


def coordinate_mean(points: Coordinates, *, tol: float, max_iter: int) -> KarcherMean:
    r"""Find the Karcher mean of points with coordinates.

    The search starts from the mean of a sample. The second derivative of the objective there,

    .. math:: H = \sum_n p_n \Bigl(\frac{1 - \theta_n \cot\theta_n}{\theta_n^2}\, z_n z_n^\top
        + \theta_n \cot\theta_n\, I\Bigr), \qquad z_n = \operatorname{Log}_\mu f_n,

    is used for approximate Newton steps with the gradient over all points. A step that increases
    the objective is halved.

    Parameters
    ----------
    points : Coordinates
        The points; weights are a column of their rows.
    tol : float
        Stop when the norm of the gradient is at most this.
    max_iter : int
        The maximum number of steps.

    Returns
    -------
    KarcherMean
        The mean, without cosines. The number of passes is the number of steps plus one.
    """
    sample = points.sample(_SAMPLE[points.recomputes])
    vectors = sample.vectors.astype(np.float64, copy=False)
    lengths = np.linalg.norm(vectors, axis=1)
    present = lengths > np.finfo(np.float64).tiny  # zero vectors have no direction
    directions, p = vectors[present] / lengths[present, None], sample.weights[present]
    first = find_mean(directions, p, tol=_SAMPLE_TOL, max_iter=max_iter).point.astype(np.float64)
    bend = bending_matrix(vectors, first, sample.weights)
    current = best = _evaluate(points, first)
    evaluations = [current]
    idle, step = 0, np.zeros_like(first)
    while (
        status := end_of_search(best.norm, tol, idle >= _PATIENCE, len(evaluations) > max_iter)
    ) is None:
        if current is best:
            hessian = second_derivative(bend, current.level)
            step = scipy.linalg.solve(hessian, current.gradient, assume_a="pos")
            step -= (step @ current.point) * current.point
        else:
            step /= 2
        current = _evaluate(points, geodesic_step(best.point, step))
        evaluations.append(current)
        tied = abs(current.objective - best.objective) <= best.rounding
        better = current.norm < best.norm if tied else current.objective < best.objective
        if better and not (tied and current.norm >= 0.9 * best.norm):
            idle = 0
        elif not float(best.gradient @ step) > best.rounding:  # otherwise a shorter step may help
            idle += 1
        if better:
            best = current
    return KarcherMean(
        point=best.point,
        cosines=None,
        variance=best.objective,
        gradient_norm=best.norm,
        n_far=best.n_far,
        n_points=points.shape[0],
        n_iter=len(evaluations) - 1,
        status=status,
        history=tuple(
            {"objective": each.objective, "gradient_norm": each.norm} for each in evaluations
        ),
    )


def _evaluate(points: Coordinates, point: Floats) -> _Evaluation:
    total, squares, level, pull, far = points.reduce(partial(pull_sums, point))
    objective, level = float(squares / total), float(level / total)
    gradient = pull / total - level * point
    gradient -= (gradient @ point) * point
    norm, rounding = float(np.linalg.norm(gradient)), _ROUNDING * (1 + objective)
    return _Evaluation(point, objective, rounding, level, gradient, norm, int(far))


def bending_matrix(vectors: Floats, mean: Floats, weights: Floats) -> Floats:
    """Return Σ p (1 - θ cot θ)/θ² z zᵀ, the term of H that is not a multiple of the identity."""
    cosines = vectors @ mean
    angles, angle_ratios = angles_from_cosines(cosines)
    # clip, because θ cot θ goes to -∞ at the antipode
    factors = weights * np.clip(bend_ratios(angles, cosines * angle_ratios), 0.0, 1.0)
    finite = np.isfinite(angle_ratios)
    root = np.sqrt(factors[finite])[:, None]
    z = root * angle_ratios[finite, None] * (vectors[finite] - np.outer(cosines[finite], mean))
    return np.asarray(z.T @ z)


def second_derivative(bend: Floats, level: float) -> Floats:
    """Return H from its two terms; it is positive definite even if `level` is negative."""
    return bend + max(level, _MIN_CURVATURE) * np.eye(len(bend))


# ---------------------------------------------------------------------- sums over blocks


def pull_sums(point: Floats, block: Block) -> tuple[Any, ...]:
    """Return sums over a block, for the gradient of Σ w θ² at a point.

    These are the sums of the weights w, of w θ², w θ cot θ and w f θ/sin θ, and the number of
    points outside the open hemisphere.
    """
    w = np.ones(block.n) if block.weights is None else block.weights
    cosines = block.products(point[:, None])[:, 0]
    check_cosines(cosines, float(np.finfo(block.dtype).eps), "the points")
    angles, angle_ratios = angles_from_cosines(cosines)
    # Log is not defined at the antipode
    pulls = np.multiply(w, angle_ratios, out=np.zeros_like(w), where=np.isfinite(angle_ratios))
    far = np.count_nonzero((cosines <= 0) & (w > 0))
    return w.sum(), w @ angles**2, pulls @ cosines, block.combine(pulls), float(far)


def log_sums(point: Floats, block: Block) -> tuple[Any, ...]:
    """Return sums over a block, for the moments of Log maps z at a point of the sphere.

    These are the sums of the weights w, of w z zᵀ, w θ² (with the angles of the points before
    projection), w (θ/sin θ)², w k(x, x) and w ‖f‖².
    """
    w = np.ones(block.n) if block.weights is None else block.weights
    cosines = block.products(point[:, None])[:, 0]
    check_no_antipodes(cosines, float(np.finfo(block.dtype).eps), "points")
    _, angle_ratios = angles_from_cosines(cosines)
    c, s, mean = (array.astype(block.dtype) for array in (cosines, angle_ratios, point))
    z = block.vectors() - np.multiply.outer(c, mean)
    z *= s[:, None]
    if block.weights is not None:
        z *= np.sqrt(w).astype(block.dtype)[:, None]
    total = w @ squared_angles(cosines * block.lengths, block.diagonal)
    return w.sum(), z.T @ z, total, w @ angle_ratios**2, w @ block.diagonal, w @ block.captured
