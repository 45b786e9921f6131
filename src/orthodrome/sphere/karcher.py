"""The weighted Karcher mean on the unit sphere, and moments of Log maps at the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from .._core.checks import (
    check_callback,
    check_finite_vector,
    check_integer,
    check_numbers,
    check_positive,
    check_sample_weight,
)
from .._core.status import Outcome, Status, warn_unless_converged
from .._core.threads import VALUE_WORK, run_over_rows, single_threaded_blas
from .._core.types import Array, Callback, Floats
from .._core.unit import (
    ANTIPODAL,
    angles_from_chords,
    angles_from_cosines,
    check_cosines,
    check_no_antipodes,
    check_unit_length,
    squared_angles,
    squared_radius,
)
from .._core.warn import warn_user
from ..coordinates import Coordinates, pivoted_cholesky
from ..coordinates.blocks import Block
from ..gram import GramOperator
from .maps import geodesic_step

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 16 * _EPS  # relative rounding error of an objective
_ORTHOGONAL = 0.2  # restart if gradients overlap by a larger fraction (Powell)
_PATIENCE = 10  # stop after this many iterations without progress
# Maximum number of times that the mean is recomputed from Σ w y, and the minimum w · c for it.
_MAX_RECOMPUTED, _MIN_LEVEL = 3, 0.25
_MIN_STEP = 1e-18  # shorter steps are not tried
_CANCELLING = 8.0  # treat coefficients of the mean as cancelling if they grew by a larger factor
# Maximum rank and maximum number of entries of the Cholesky factor, whose rows are coordinates.
_MAX_RANK, _MAX_FACTOR = 512, 2**23
_MAX_IDLE_PASSES = 3  # stop after this many passes without progress
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
    if isinstance(points, GramOperator):
        squared_radius(points.diagonal(), expected=1.0, what="points")
    else:
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
        space: _Points = _CoefficientSpace(points)
    else:
        space = _CoordinateSpace(points, points.dtype)
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
class _Pass:
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
    current = best = _evaluate_pass(points, first)
    evaluations = [current]
    idle, step = 0, np.zeros_like(first)
    while (
        status := end_of_search(
            best.norm, tol, idle >= _MAX_IDLE_PASSES, len(evaluations) > max_iter
        )
    ) is None:
        if current is best:
            hessian = second_derivative(bend, current.level)
            step = scipy.linalg.solve(hessian, current.gradient, assume_a="pos")
            step -= (step @ current.point) * current.point
        else:
            step /= 2
        current = _evaluate_pass(points, geodesic_step(best.point, step))
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


def _evaluate_pass(points: Coordinates, point: Floats) -> _Pass:
    total, squares, level, pull, far = points.reduce(partial(pull_sums, point))
    objective, level = float(squares / total), float(level / total)
    gradient = pull / total - level * point
    gradient -= (gradient @ point) * point
    norm, rounding = float(np.linalg.norm(gradient)), _ROUNDING * (1 + objective)
    return _Pass(point, objective, rounding, level, gradient, norm, int(far))


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


@dataclass(frozen=True)
class Vector:
    """A vector and its inner products with all points."""

    vector: Floats
    products: Floats

    def combined(self, a: float, other: Vector, b: float) -> Vector:
        """Return a self + b other."""
        return Vector(a * self.vector + b * other.vector, a * self.products + b * other.products)

    def over(self, length: float) -> Vector:
        """Return self / length."""
        return Vector(self.vector / length, self.products / length)


class _Space:
    """Points on the sphere, given as coordinates or as a Gram operator.

    Subclasses have the attributes `n` (number of points), `size` (length of a vector), `dtype` (of
    the result) and `eps` (machine epsilon of the inner products).
    """

    def inner(self, a: Vector, b: Vector) -> float:
        """Return the inner product of two vectors."""
        return float(a.vector @ b.vector)

    def squared_norm(self, a: Vector) -> tuple[float, float]:
        """Return ‖a‖², at least 0, and its rounding error from cancelling coefficients."""
        return self.inner(a, a), 0.0

    def coefficient_norm(self, mean: Vector) -> float:
        """Return the norm of the coefficients, but at least 1; 1 for coordinates."""
        return 1.0


class _CoefficientSpace(_Space):
    """Vectors as coefficients over the points of a Gram operator."""

    def __init__(self, gram: GramOperator) -> None:
        self.gram = gram
        self.n = self.size = gram.shape[0]
        self.dtype = np.dtype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)

    def at(self, vector: Floats) -> Vector:
        # with float64 coefficients, sums over a float32 Gram matrix are as exact as its entries
        # SciPy's checks in `gram @ vector` take as long as small products
        products = self.gram._matmat(vector[:, None])[:, 0]
        return Vector(vector, np.asarray(products, dtype=np.float64))

    combine = at

    def inner(self, a: Vector, b: Vector) -> float:
        return float(a.vector @ b.products)

    def squared_norm(self, a: Vector) -> tuple[float, float]:
        square = self.inner(a, a)
        rounding = _EPS * float(np.abs(a.vector).sum())
        # allow also for rounding errors of the products and of the matrix
        if square < -100 * rounding - 10 * self.eps * self.n * float(a.vector @ a.vector):
            raise ValueError(
                f"A vector has the squared length {square:.2g}: the kernel is not positive "
                "definite on these data. Choose another kernel."
            )
        return max(square, 0.0), rounding

    def angles(self, mean: Vector) -> tuple[Floats, Floats]:
        return angles_from_cosines(mean.products)

    def gradient(self, mean: Vector, weights: Floats) -> Vector:
        return self.combine(weights).combined(1.0, mean, -float(weights @ mean.products))

    def coefficient_norm(self, mean: Vector) -> float:
        return max(1.0, float(np.linalg.norm(mean.vector)))


class _CoordinateSpace(_Space):
    """Vectors as coordinates; small angles and gradients are computed from differences."""

    def __init__(self, points: Array, dtype: Any = np.float64) -> None:
        # Normalise, so that angles from differences and from products agree. Do not divide vectors
        # that have unit length already: the rounding errors would separate near points.
        lengths = np.linalg.norm(points.astype(np.float64, copy=False), axis=1)
        lengths[np.abs(lengths - 1) <= 4 * _EPS] = 1.0
        self.points: Floats = points / lengths[:, None]
        self.n, self.size = points.shape
        self.dtype = np.dtype(dtype)
        self.eps = float(np.finfo(dtype).eps)

    def combine(self, weights: Floats) -> Vector:
        return self.at(weights @ self.points)

    def at(self, vector: Floats) -> Vector:
        return Vector(vector, self.points @ vector)

    def angles(self, mean: Vector) -> tuple[Floats, Floats]:
        def chords(rows: slice) -> Floats:
            return np.linalg.norm(self.points[rows] - mean.vector, axis=1)

        work = VALUE_WORK * self.points.size
        chord = np.concatenate(run_over_rows(chords, self.n, work=work))
        sums = np.sqrt(np.maximum(4 - chord**2, 0.0))
        far = chord > sums
        sums[far] = np.linalg.norm(self.points[far] + mean.vector, axis=1)
        return angles_from_chords(chord, sums)

    def gradient(self, mean: Vector, weights: Floats) -> Vector:
        # Σ w (y - c μ) is summed as differences y - μ, which are accurate for near points
        def partial_sum(rows: slice) -> Floats:
            return weights[rows] @ (self.points[rows] - mean.vector)

        g = np.sum(run_over_rows(partial_sum, self.n, work=VALUE_WORK * self.points.size), axis=0)
        for _ in range(2):  # the first leaves a rounding error that matters for small gradients
            g = g - (g @ mean.vector) * mean.vector
        return self.at(g)


#: Points whose Karcher mean is computed.
_Points: TypeAlias = _CoefficientSpace | _CoordinateSpace


def first_point(space: _Points, p: Floats, initial: ArrayLike | None) -> Vector:
    """Return `initial`, or else the weighted mean of the points, normalised."""
    if initial is None:
        first = space.combine(p)
        square, _ = space.squared_norm(first)
        if not square > 64 * space.eps:
            raise ValueError(
                "The weighted mean of the points is 0 up to rounding errors: they cancel, as "
                "antipodal points do, and have no unique mean. Leave points out, weight them, or "
                "choose another kernel."
            )
        return first.over(np.sqrt(square))
    vector = check_finite_vector(initial, space.size, "initial", "karcher_mean")
    first = space.at(vector / max(float(np.abs(vector).max()), np.finfo(np.float64).tiny))
    square = space.inner(first, first)
    if not square > 64 * space.eps * float(np.abs(first.vector).sum()) ** 2 / space.size:
        raise ValueError("initial of karcher_mean is 0 up to rounding errors. Give another start.")
    return first.over(np.sqrt(square))


@dataclass
class Record:
    """History of a descent."""

    callback: Callback | None
    history: list[dict[str, Any]] = field(default_factory=list)
    n_iter: int = 0
    n_recomputed: int = 0
    idle: int = 0
    lowest: float = np.inf
    smallest: float = np.inf
    is_reported: bool = False

    def add(self, current: _Evaluation) -> None:
        """Add an iteration; count those without progress."""
        progress = current.norm < 0.9 * self.smallest or current.ceiling < self.lowest
        self.idle = 0 if progress else self.idle + 1
        self.lowest = min(self.lowest, current.objective)
        self.smallest = min(self.smallest, current.norm)
        if not self.is_reported:
            self.history.append({"objective": current.objective, "gradient_norm": current.norm})
            if self.callback is not None:
                self.callback(self.history[-1])
        self.is_reported = False


def descend(
    space: _Points, p: Floats, first: Vector, tol: float, max_iter: int, callback: Callback | None
) -> tuple[Vector, Status, Record]:
    """Minimise Σ p θ² from a unit vector.

    Coefficients over linearly dependent points are not unique. For widely spread points they can
    grow from step to step, until cancellation leaves only rounding errors. If that happens and the
    rank is low, the descent continues in coordinates.
    """
    record = Record(callback)
    mean, status = _conjugate_gradients(space, p, first, tol, max_iter, record)
    if status is not Status.CANCELLING or not isinstance(space, _CoefficientSpace):
        return mean, status, record
    # the last point has been reported
    record = Record(callback, record.history, record.n_iter, is_reported=True)
    limit, max_rank = 32 * space.eps, min(_MAX_RANK, max(1, _MAX_FACTOR // space.n))
    factor, residual = pivoted_cholesky(space.gram, tol=limit, max_rank=max_rank)
    if residual <= limit:
        coordinates = _CoordinateSpace(factor, space.gram.dtype)
        start = _normalized(coordinates, coordinates.at(mean.vector @ factor))
        mean, status = _conjugate_gradients(coordinates, p, start, tol, max_iter, record)
        # the smallest coefficients that give this point
        smallest = np.linalg.lstsq(factor.T, mean.vector, rcond=None)[0].astype(np.float64)
        return Vector(smallest, mean.products), status, record
    # the rank is too high: continue as far as rounding errors allow
    mean, status = _conjugate_gradients(space, p, mean, tol, max_iter, record)
    exact = space.at(mean.vector)
    error = max(abs(space.inner(exact, exact) - 1), record.history[-1]["gradient_norm"])
    return mean, Status.CANCELLING if status.converged and error > 1e-6 else status, record


def _normalized(space: _Points, vector: Vector) -> Vector:
    """Return a vector divided by its length; raise if its squared length is not positive."""
    square = space.inner(vector, vector)
    if not square > 0:
        raise ValueError(
            "The search for the mean reached a vector without length: the kernel is not positive "
            "definite on these points, or they cancel. Choose another kernel, or leave points out."
        )
    return vector.over(float(np.sqrt(square)))


class _Evaluation(NamedTuple):
    """The objective and its gradient g at a point.

    `angle_ratios` are θ / sin θ. `square` is ‖g‖², and `rounding` is its rounding error.
    """

    angle_ratios: Floats
    objective: float
    gradient: Vector
    square: float
    rounding: float

    @property
    def norm(self) -> float:
        """Return √(‖g‖² + rounding), the norm of the gradient with its rounding error."""
        return float(np.sqrt(self.square + self.rounding))

    @property
    def ceiling(self) -> float:
        """Return the largest objective that differs from this one only by rounding errors."""
        return self.objective + _ROUNDING * (1 + self.objective)


def _evaluate(
    space: _Points, p: Floats, mean: Vector, angles: Floats, ratios: Floats
) -> _Evaluation:
    check_cosines(mean.products, space.eps, "the points")
    # Log is not defined at the antipode
    ratios = np.where(1 + mean.products > ANTIPODAL * space.eps, ratios, 0.0)
    g = space.gradient(mean, p * ratios)
    return _Evaluation(ratios, float(p @ angles**2), g, *space.squared_norm(g))


def _conjugate_gradients(
    space: _Points, p: Floats, first: Vector, tol: float, max_iter: int, record: Record
) -> tuple[Vector, Status]:
    """Minimise with the method of Polak and Ribière, and Powell's restart.

    Stop if the coefficients of the mean cancel, unless this continues an earlier descent.
    """
    may_cancel = record.is_reported
    mean, search, limit = first, None, _CANCELLING * space.coefficient_norm(first)
    current = _evaluate(space, p, mean, *space.angles(mean))
    while True:
        record.add(current)
        status = end_of_search(
            current.norm, tol, record.idle >= _PATIENCE, record.n_iter >= max_iter
        )
        if status is None and not may_cancel and space.coefficient_norm(mean) > limit:
            status = Status.CANCELLING
        if status is not None:
            return mean, status
        if current.square < 100 * current.rounding:
            level = float((p * current.angle_ratios) @ mean.products)
            if level > _MIN_LEVEL and record.n_recomputed < _MAX_RECOMPUTED:
                # Replace the mean with the direction of Σ w y. Both are equal where the gradient is
                # 0, and the coefficients of the gradient then converge to 0. The error of the mean
                # is multiplied by at most 1 / level - 1.
                mean, search = _normalized(space, current.gradient.combined(1.0, mean, level)), None
                current = _evaluate(space, p, mean, *space.angles(mean))
                record.n_recomputed += 1
                record.n_iter += 1
                continue
            if not may_cancel or current.square <= current.rounding:
                return mean, Status.ROUNDING if may_cancel else Status.CANCELLING
        search = _next_search(space, current, search)
        direction = search.direction
        step = _newton_step(p, mean, current, direction, space.inner(direction, current.gradient))
        while step > _MIN_STEP:  # move along the great circle
            cosine, sine = math.cos(step), math.sin(step)
            moved = _normalized(space, mean.combined(cosine, direction, sine))
            angles, ratios = space.angles(moved)
            if float(p @ angles**2) <= current.ceiling:
                break
            step /= 2
        else:
            return mean, Status.ROUNDING
        # transport the direction
        search = search._replace(direction=direction.combined(cosine, mean, -sine))
        mean, current = moved, _evaluate(space, p, moved, angles, ratios)
        record.n_iter += 1


def end_of_search(norm: float, tol: float, is_idle: bool, is_last: bool) -> Status | None:
    """Return the status of a search that ends at this gradient norm, or None if it continues."""
    if norm <= tol:
        return Status.CONVERGED
    if is_idle:
        return Status.ROUNDING
    return Status.MAX_ITER if is_last else None


class _Search(NamedTuple):
    """A unit search direction, its length before normalisation, and the gradient at its start."""

    direction: Vector
    length: float
    gradient: Vector
    norm: float


def _next_search(space: _Points, current: _Evaluation, last: _Search | None) -> _Search:
    """Return the next direction, from the gradient and the last direction (transported)."""
    gradient, norm = current.gradient, current.norm
    # only an inner product with the last gradient is used, so it need not be transported
    overlap = np.inf if last is None else space.inner(gradient, last.gradient)
    if last is not None and abs(overlap) <= _ORTHOGONAL * norm**2:
        beta = max((norm**2 - overlap) / last.norm**2, 0.0)
        candidate = gradient.combined(1.0, last.direction, beta * last.length)
        square = space.inner(candidate, candidate)
        if square > 0 and space.inner(candidate, gradient) > 0.1 * norm * np.sqrt(square):
            length = float(np.sqrt(square))
            return _Search(candidate.over(length), length, gradient, norm)
    return _Search(gradient.over(norm), norm, gradient, norm)


def bending(cosines: Floats, angle_ratios: Floats, slopes: Floats) -> Floats:
    r"""Return half the second derivative of each θ² along a great circle.

    At :math:`\cos t\,\mu + \sin t\,d` the cosines are :math:`\cos t\,c + \sin t\,q`, with slopes q
    at t = 0, where the result is
    :math:`(1 - c\,\theta/\sin\theta)\,q^2/\sin^2\theta + c\,\theta/\sin\theta`.
    """
    level = cosines * angle_ratios  # θ cot θ
    squared_sines = (1 - cosines) * (1 + cosines)
    bend = np.zeros_like(level)  # the value at θ = 0 does not matter, as q² is at most sin²θ
    np.divide(1 - level, squared_sines, out=bend, where=squared_sines > 1e-8)
    return bend * slopes**2 + level


def bend_ratios(angles: Floats, levels: Floats) -> Floats:
    """Return (1 - θ cot θ)/θ² from θ and θ cot θ; the value at θ = 0 is 1/3."""
    squares = angles**2
    ratios = np.full_like(levels, 1 / 3)
    np.divide(1 - levels, squares, out=ratios, where=squares > 1e-6)
    return ratios


def _newton_step(
    p: Floats, mean: Vector, current: _Evaluation, direction: Vector, slope: float
) -> float:
    """Return the length of Newton's step, at most π/2; π/4 if the curvature is not positive."""
    curvature = float(p @ bending(mean.products, current.angle_ratios, direction.products))
    return min(slope / curvature, math.pi / 2) if curvature > 0 else math.pi / 4
