"""Compute pre-images by fixed-point iteration or ridge regression.

An expansion is a linear combination of feature vectors, Σ_n β_n Φ(x_n). Its pre-image is an input z
whose feature vector Φ(z) is near it. The fixed-point iteration runs in the domain of the kernel:
vectors, shapes or matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from .._core.canonical import canonical_rows
from .._core.checks import (
    check_choice,
    check_integer,
    check_numbers,
    check_positive,
    check_sample_weight,
    numbers_expected,
)
from .._core.status import Outcome, Status, warn_unless_converged
from .._core.types import Array, Data, Floats, Indices
from .._core.unit import squared_radius
from ..gram import Scaled, gram_operator
from ..kernels import Geodesic, Kernel, Precomputed, as_fitted_kernel, as_kernel
from ..kernels.manifolds import has_profile
from ..spaces.shapes import as_complex, form_of
from ..sphere import karcher_mean
from .fixed_point import (
    BLOCK_ELEMENTS,
    Domain,
    FixedPoint,
    domain_of,
    fixed_point,
    negated_squared_angles,
)
from .ridge import ridge


@dataclass(frozen=True)
class Preimages(Outcome):
    """Approximate pre-images.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The pre-images. Landmarks and matrices are arrays of the same kind as the data, such as
        (m, k, 2).
    similarity : ndarray of shape (m,)
        Σ_n β_n k(x_n, z) at each pre-image z; NaN for the ridge method.
    n_iter : int
        The largest number of iterations that any start needed (1 for the ridge method).
    status : Status
        Whether the iteration converged.
    method : str
        "fixed-point" or "ridge".
    """

    points: Array
    similarity: Array
    n_iter: int
    status: Status
    method: str


def preimage(
    kernel: Any,
    X: Data,
    coefficients: ArrayLike,
    *,
    method: str = "auto",
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
    alpha: float = 1e-6,
    memory_budget: str | float = "2GiB",
) -> Preimages:
    r"""Find inputs whose feature vectors are near given combinations of feature vectors.

    For each row β of `coefficients`, find an input z with Φ(z) near the expansion
    :math:`\sum_n \beta_n \Phi(x_n)`.

    A radial kernel is a function of the distance, :math:`k(x, z) = h(\|x - z\|^2)`, so ‖Φ(z)‖ is
    constant. The best z then maximises :math:`\rho(z) = \sum_n \beta_n k(x_n, z)`. It is found by
    the fixed-point iteration of Mika et al., here for any function h with a derivative. The
    iteration runs from several starts, and the best result is kept. Gaussian kernels of shapes and
    of matrices have similar iterations; see :func:`fixed_point_preimages`.

    For other kernels, ridge regression predicts inputs from feature vectors. In this regression,
    shapes are represented by pre-shapes rotated to their mean, and matrices by their logarithms.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel. An unfitted kernel is fitted to X.
    X : array-like of shape (n, d), or of the shape that the kernel expects
        The points x_n. Landmarks may have the shape (n, k) complex, (n, k, 2) or (n, 2k). Matrices
        have the shape (n, d, d).
    coefficients : array-like of shape (m, n) or (n,)
        The coefficients β, one row per expansion.
    method : {"auto", "fixed-point", "ridge"}, default="auto"
        "auto" uses the fixed-point iteration if the kernel has one, else ridge regression.
    n_starts : int, default=3
        For the fixed point: the number of training points to start from. The points with the
        largest ρ are chosen. Another start is the mean of X, weighted by the positive part of β.
    tol : float, default=1e-6
        For the fixed point: stop when a step is at most tol times the spread of X. For shapes, step
        and spread are full Procrustes distances.
    max_iter : int, default=500
        For the fixed point: the maximum number of iterations.
    alpha : float, default=1e-6
        For ridge: the penalty, relative to the mean variance of the points in feature space.
    memory_budget : str or number, default="2GiB"
        For ridge: the memory for the n x n system.

    Returns
    -------
    Preimages
        Points, similarity and status. Shapes are landmarks of centroid size 1, in an array of the
        same kind as X: complex, (m, k, 2) or (m, 2k).

    References
    ----------
    Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, "Kernel PCA and de-noising in feature
    spaces", NIPS 1998; Bakır, Weston and Schölkopf, "Learning to find pre-images", NIPS 2003.

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian, VeroneseWhitney
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> preimage(Gaussian(sigma=1.0), X, [0.5, 0.5, 0.0]).points.round(3)
    array([[0.5]])

    A shape between two shapes. The location, size and rotation of a specimen do not matter:

    >>> kites = [[0, 0, 1, 1, 0, 3, -1, 1], [0, 0, 1, 2, 0, 3, -1, 2]]
    >>> preimage(VeroneseWhitney(sigma=1.0), kites, [0.5, 0.5]).points.round(3) + 0.0
    array([[ 0.   , -0.588,  0.392,  0.   ,  0.   ,  0.588, -0.392,  0.   ]])
    """
    check_choice(method, ("auto", "fixed-point", "ridge"), "method", "preimage")
    check_integer(n_starts, "n_starts", "preimage")
    check_integer(max_iter, "max_iter", "preimage")
    check_positive(tol, "tol", "preimage")
    check_positive(alpha, "alpha", "preimage")
    fitted = fitted_kernel(kernel, X, "preimage")
    data = fitted.validate(X, reset=False)
    beta = _check_coefficients(coefficients, data)
    possible = has_fixed_point(fitted, data)
    if method == "ridge" or (method == "auto" and not possible):
        operator = gram_operator(fitted, data, memory_budget=memory_budget)
        dense = data.toarray() if scipy.sparse.issparse(data) else data
        vectors, inverse = fitted.as_vectors(dense)
        points = inverse(ridge(operator, vectors, beta, alpha=alpha, memory_budget=memory_budget))
        unknown = np.full(len(beta), np.nan)
        return Preimages(in_form_of(points, X), unknown, 1, Status.CONVERGED, "ridge")
    if not possible:
        kind = "sparse X and " if scipy.sparse.issparse(data) else ""
        raise ValueError(
            "method='fixed-point' needs dense X and a radial kernel, or a positive definite "
            f"Gaussian kernel of shapes or matrices; got {kind}{type(fitted).__name__}. Use "
            "method='ridge'."
        )
    found = fixed_point_preimages(
        fitted, data, beta.__getitem__, len(beta), n_starts=n_starts, tol=tol, max_iter=max_iter
    )
    return replace(found, points=in_form_of(found.points, X))


def _check_coefficients(coefficients: ArrayLike, X: Any) -> Array:
    with numbers_expected(coefficients, "coefficients", "preimage"):
        rows = np.atleast_2d(coefficients)
    beta = check_numbers(rows, "coefficients", "preimage", dtype=[np.float64, np.float32])
    if beta.shape[1] != X.shape[0]:
        raise ValueError(
            f"coefficients must have one column per row of X, {X.shape[0]}; got {beta.shape[1]}."
        )
    return beta.astype(X.dtype, copy=False)


def has_fixed_point(kernel: Kernel, X: Any) -> bool:
    """Return whether the fixed-point iteration supports this kernel and these data."""
    return has_profile(kernel) and not scipy.sparse.issparse(X)


def fitted_kernel(
    kernel: Any, X: Any, owner: str, sample_weight: ArrayLike | None = None
) -> Kernel:
    """Return a fitted kernel: the given one, or a clone fitted to X."""
    if isinstance(as_kernel(kernel), Precomputed):
        raise ValueError(f"{owner} needs the inputs and a kernel, not a precomputed matrix.")
    return as_fitted_kernel(kernel, X, sample_weight=sample_weight)


def fixed_point_preimages(
    kernel: Kernel,
    X: Array,
    expansions: Callable[[slice], Array],
    n_expansions: int,
    *,
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> Preimages:
    r"""Find pre-images by fixed-point iteration, in batches of expansions.

    ``expansions(rows)`` returns the coefficients of a slice of the expansions, shape (m, n). Each
    expansion is iterated from all its starts, and the best result is kept. The other parameters are
    those of :func:`preimage`.

    For radial kernels this is the fixed-point iteration of Mika et al. Some Gaussian kernels embed
    points in a vector space; matrices, for example, are embedded by their logarithms. For these
    kernels the same iteration runs on the embedded points. For the Veronese-Whitney kernel of
    pre-shapes u_n, a shape u that maximises :math:`\sum_n \beta_n k(u_n, u)` is a leading
    eigenvector of :math:`\sum_n \beta_n k(u_n, u)\, u_n u_n^*`. So each step computes a mean shape,
    with weights :math:`\beta_n k(u_n, u)` that depend on the previous u.

    Returns
    -------
    Preimages
        The pre-images. Landmarks have shape (m, k, 2) and centroid size 1, and are rotated to the
        first specimen of X.
    """
    domain = domain_of(kernel, X)
    n, dtype = len(domain.points), domain.real_dtype
    step = max(1, 4 * BLOCK_ELEMENTS // n)  # each batch needs a pass over the Gram matrix
    points = np.empty((n_expansions, domain.points.shape[1]), dtype=domain.points.dtype)
    similarity = np.empty(n_expansions, dtype=dtype)
    n_iter = n_unconverged = 0
    for first in range(0, n_expansions, step):
        rows = slice(first, min(first + step, n_expansions))
        beta, sizes = _scale_down(expansions(rows), dtype)
        starts = np.concatenate(
            [domain.points[_most_similar(kernel, X, beta, min(n_starts, n))], _means(domain, beta)],
            axis=1,
        )
        ends = _best_ends(domain, beta, starts, tol, max_iter)
        with np.errstate(over="ignore"):
            points[rows], similarity[rows] = ends.points, ends.objective * sizes
        n_iter = max(n_iter, ends.n_iter)
        n_unconverged += int(np.count_nonzero(~ends.converged))
    status = Status.MAX_ITER if n_unconverged else Status.CONVERGED
    detail = f"{n_unconverged} of {n_expansions} pre-images after {n_iter} iterations"
    warn_unless_converged(status, "preimage", detail)
    return Preimages(domain.inputs(points), similarity, n_iter, status, "fixed-point")


def _scale_down(beta: Array, dtype: Any) -> tuple[Array, Array]:
    """Divide rows of huge coefficients by powers of 2; return the rows and the powers.

    The pre-images do not change.
    """
    largest = np.abs(beta).max(axis=1, initial=0.0).astype(np.float64)
    huge = largest > float(np.finfo(dtype).max) ** 0.25
    sizes = np.ldexp(1.0, np.where(huge, np.frexp(largest)[1] - 1, 0))
    if huge.any():
        beta = beta / sizes[:, None]
    return beta.astype(dtype, copy=False), sizes


def _most_similar(kernel: Kernel, X: Array, beta: Array, number: int) -> Array:
    """Return, for each expansion, the indices of the rows x of X with the largest similarity.

    The similarity is Σ_n β_n k(x_n, x). The result has shape (m, number).
    """
    similarity = np.ascontiguousarray((gram_operator(kernel, X, storage="recompute") @ beta.T).T)
    return np.argpartition(-similarity, number - 1, axis=1)[:, :number]


def _means(domain: Domain, beta: Array) -> Array:
    """Return, for each expansion, the mean of the data weighted by the positive part of β.

    The result has shape (m, 1, c), where c is the number of coordinates. If no coefficient is
    positive, all weights are equal.
    """
    positive = np.maximum(beta, 0.0)
    totals = positive.sum(axis=1, keepdims=True)
    usable = totals > 0
    weights = np.where(usable, positive / np.where(usable, totals, 1.0), 1.0 / beta.shape[1])
    return domain.means(weights)[:, None].astype(domain.points.dtype, copy=False)


def _best_ends(domain: Domain, beta: Array, starts: Array, tol: float, max_iter: int) -> FixedPoint:
    """Iterate each of m expansions from its s starts; return the best result of each.

    `starts` has shape (m, s, c), where c is the number of coordinates.
    """
    m, s, c = starts.shape
    search_tol = max(tol, domain.search_tol)
    rows = np.repeat(np.arange(m), s)
    ends = fixed_point(domain, beta, starts.reshape(-1, c), search_tol, max_iter, expansion=rows)
    best = np.arange(m) * s + ends.objective.reshape(m, s).argmax(axis=1)
    if tol >= domain.search_tol or ends.n_iter >= max_iter:
        return replace(
            ends,
            points=ends.points[best],
            objective=ends.objective[best],
            steps=ends.steps[best],
            converged=ends.converged[best] & (tol >= domain.search_tol),
        )
    last = fixed_point(domain, beta, ends.points[best], tol, max_iter - ends.n_iter)
    return replace(last, n_iter=ends.n_iter + last.n_iter)


def in_form_of(points: Array, X: Any) -> Array:
    """Convert landmarks of shape (n, k, 2) to the form of X; return other points unchanged."""
    if points.ndim == 2 or scipy.sparse.issparse(X) or form_of(X) == "points":
        return points
    return as_complex(points) if form_of(X) == "complex" else points.reshape(len(points), -1)


_MAX_CANDIDATES = 512  # number of points among which the best few are chosen as starts
_N_LEAVE_ONE_OUT_STARTS = 2  # extra starts of each leave-one-out pre-image


@dataclass(frozen=True)
class KarcherPreimage(Outcome):
    """The input with the smallest mean squared geodesic distance to the data.

    Attributes
    ----------
    point : ndarray of shape (n_features,), or of the form of one specimen
        The pre-image x̃; landmarks have centroid size 1.
    objective : float
        The weighted mean of the squared distances, Σ p_n arccos² k(x_n, x̃).
    step : float
        The length of the next fixed-point step, relative to the root mean squared distance of the
        data from their mean.
    n_iter : int
        Iterations of the slowest start.
    n_starts : int
        The number of starts.
    status : Status
        How the iteration ended.
    """

    point: Array
    objective: float
    step: float
    n_iter: int
    n_starts: int
    status: Status


def karcher_mean_preimage(
    kernel: Any,
    X: Data,
    sample_weight: ArrayLike | None = None,
    *,
    starts: str | ArrayLike = "few",
    n_starts: int = 5,
    tol: float = 1e-9,
    max_iter: int = 500,
) -> KarcherPreimage:
    r"""Find the input with the smallest mean squared geodesic distance to the data.

    .. math:: \tilde x = \arg\min_x \sum_n p_n \arccos^2 k(x_n, x)

    (Courty et al., eq. 6 and 7). In general the Karcher mean has no pre-image; this is the best
    approximation. It is a fixed point of

    .. math:: x \leftarrow \frac{\sum_n \alpha_n x_n}{\sum_n \alpha_n}, \qquad
        \alpha_n = -p_n \frac{\theta_n}{\sin\theta_n}\, h'(\|x_n - x\|^2)

    with k(x, y) = h(‖x - y‖²) and θ_n = arccos k(x_n, x). This is eq. 9 for the Gaussian kernel,
    where -h' is k / 2σ². (Eq. 8 of the paper has a wrong sign, which does not change its
    solutions.) The iteration runs from several starts, and the best result is kept.

    Matrices are represented by their logarithms. For shapes with the Veronese-Whitney kernel, h is
    a function of :math:`1 - |u_n^* u|^2`, and a step moves to the leading eigenvector of
    :math:`\sum_n \alpha_n u_n u_n^*`, a mean shape with the weights α.

    Parameters
    ----------
    kernel : Kernel or str
        A radial kernel with k(x, x) = 1, or a positive definite Gaussian kernel of shapes or
        matrices. An unfitted kernel is fitted to X.
    X : array-like of shape (n_samples, n_features), or of the shape that the kernel expects
        The data; landmarks may be (n, k) complex, (n, k, 2) or (n, 2k), matrices (n, d, d).
    sample_weight : array-like of shape (n_samples,), optional
        Weights; a weight of 2 is equivalent to repeating the row.
    starts : {"few", "all"} or array-like of the form of X, m rows, default="few"
        ``"few"``: the mean of the data and the `n_starts` points with the smallest objective (among
        at most 512). ``"all"``: the mean and every point, as in Algorithm 1; each iteration then
        needs n² kernel values. An array gives the starts themselves.
    n_starts : int, default=5
        The number of points for ``"few"``.
    tol : float, default=1e-9
        The iteration from a start stops when its step is at most tol times the root mean squared
        distance of X from its mean. Shapes are compared by their full Procrustes distances.
    max_iter : int, default=500
        The maximum number of iterations.

    Returns
    -------
    KarcherPreimage
        The point and its objective.

    Notes
    -----
    If x is equal to a data point, this point has the weight -h'(0), the limit. (The paper omits the
    point.) For kernels with a cusp, such as the exponential, the limit is infinite, and the point
    is omitted. If all weights underflow, a start does not move.

    References
    ----------
    Courty, Burger and Marteau, "Geodesic Analysis on the Gaussian RKHS Hypersphere", ECML PKDD
    2012, §3.1, Algorithm 1.

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian
    >>> X = [[0.0], [1.0], [2.0], [9.0]]
    >>> karcher_mean_preimage(Gaussian(sigma=1.0), X).point.round(3)  # the mean is 3
    array([1.])

    Shapes are returned in the form of the data:

    >>> kites = [[0, 0, 1, 1, 0, 3, -1, 1], [0, 0, 1, 2, 0, 3, -1, 2], [0, 0, 9, 1, 0, 3, -1, 1]]
    >>> found = karcher_mean_preimage("veronese_whitney", kites, [2, 2, 1])
    >>> found.point.shape, found.converged
    ((8,), True)
    """
    check_integer(n_starts, "n_starts", "karcher_mean_preimage")
    check_integer(max_iter, "max_iter", "karcher_mean_preimage")
    check_positive(tol, "tol", "karcher_mean_preimage", or_zero=True)
    fitted, data = _on_sphere(kernel, X, sample_weight)
    weights = check_sample_weight(sample_weight, len(data), "karcher_mean_preimage")
    rows = canonical_rows(data, weights)
    domain = domain_of(fitted, rows.data)
    p = (rows.weights / rows.weights.sum()).astype(domain.real_dtype)[None]
    initial = _starts(fitted, domain, p, starts, n_starts)
    ends = fixed_point(
        domain, p, initial, tol, max_iter, expansion=0, objective=negated_squared_angles
    )
    best = int(np.argmax(ends.objective))
    status = Status.CONVERGED if ends.converged[best] else Status.MAX_ITER
    spread = domain.spread(p[0])
    step = float(ends.steps[best]) / spread if spread > 0 else 0.0
    detail = f"a step of {step:.1e} after {ends.n_iter} iterations, tol={tol:g}"
    warn_unless_converged(status, "karcher_mean_preimage", detail)
    return KarcherPreimage(
        point=in_form_of(domain.inputs(ends.points[best : best + 1]), X)[0],
        objective=-float(ends.objective[best]),
        step=step,
        n_iter=ends.n_iter,
        n_starts=len(initial),
        status=status,
    )


def _on_sphere(kernel: Any, X: Any, sample_weight: ArrayLike | None) -> tuple[Kernel, Array]:
    """Return a fitted kernel that supports the fixed point, and the validated dense data."""
    fitted = fitted_kernel(kernel, X, "karcher_mean_preimage", sample_weight)
    data = fitted.validate(X, reset=False)
    if not (has_fixed_point(fitted, data) and fitted.unit_norm):
        raise ValueError(
            "karcher_mean_preimage needs dense X, and a radial kernel with k(x, x) = 1, such as "
            "Gaussian, or a positive definite Gaussian kernel of shapes or matrices; got "
            f"{type(data).__name__} and {type(fitted).__name__}. For other kernels use the mean "
            "itself: sphere.karcher_mean, or reference='mean' of geodesic_kernel."
        )
    return fitted, data


def _starts(kernel: Kernel, domain: Domain, p: Array, starts: Any, n_starts: int) -> Array:
    X = domain.points
    if not isinstance(starts, str):
        if scipy.sparse.issparse(starts):
            raise ValueError("starts of karcher_mean_preimage must be dense; call toarray().")
        return domain.coordinates(kernel.validate(starts, reset=False))
    check_choice(starts, ("few", "all"), "starts", "karcher_mean_preimage")
    chosen = X if starts == "all" else best_points(domain, p, n_starts)
    return np.vstack([domain.means(p), chosen])


def best_points(domain: Domain, p: Array, n: int) -> Array:
    """Return the n points with the smallest Σ p θ² among at most 512 candidates.

    p has the shape (1, n_points).
    """
    step = -(-len(domain.points) // _MAX_CANDIDATES)
    candidates = domain.points[::step]
    prepared = domain.prepare(candidates)
    values: list[float] = []
    for first in range(0, len(candidates), 64):
        d2 = domain.squares(prepared[first : first + 64], domain.prepared)
        values.extend(negated_squared_angles(domain.kernel, d2, np.repeat(p, len(d2), axis=0))[0])
    return candidates[np.argsort(-np.array(values), kind="stable")[:n]]


def leave_one_out_preimages(
    kernel: Kernel, X: Array, weights: Floats, gram: Floats, reference: Array
) -> Array:
    """Return the leave-one-out pre-images of the Karcher mean.

    Most are near the pre-image of the mean of all points, which is the first start. With a narrow
    kernel, however, there may be as many local optima as points, and the first start may be at the
    omitted point. So the best of the other points are starts as well.

    Parameters
    ----------
    kernel : Kernel
        Fitted, with k(x, x) = 1, for which :func:`has_fixed_point` is true.
    X : ndarray of shape (n, d), or of the shape that the kernel expects
        The points, at least 2, validated.
    weights : ndarray of shape (n,)
        Positive weights.
    gram : ndarray of shape (n, n)
        The Gram matrix of the points.
    reference : ndarray of shape (d,), or one point of the form of X
        The pre-image of the mean of all points.

    Returns
    -------
    ndarray of the shape of X
        Row i is the pre-image without point i, accurate to 1e-4 times the extent of the data.
    """
    domain = domain_of(kernel, X)
    start = domain.coordinates(reference[None])[0]
    preimages = np.empty_like(domain.points)
    squared_angles = np.arccos(np.clip(gram, -1.0, 1.0)) ** 2
    block = max(1, BLOCK_ELEMENTS // (8 * len(X)))
    for first in range(0, len(X), block):
        omitted = np.arange(first, min(first + block, len(X)))
        preimages[omitted] = _without_each(domain, weights, squared_angles, start, omitted)
    return domain.inputs(preimages)


def _without_each(
    domain: Domain, weights: Floats, squared_angles: Floats, reference: Array, omitted: Indices
) -> Array:
    """Return the leave-one-out pre-images for the `omitted` points.

    `squared_angles` are those between all points.
    """
    X, b = domain.points, len(omitted)
    objective = (squared_angles @ weights)[:, None] - squared_angles[:, omitted] * weights[omitted]
    objective[omitted, np.arange(b)] = np.inf
    n_starts = min(_N_LEAVE_ONE_OUT_STARTS, len(X) - 1)
    best = np.argsort(objective, axis=0, kind="stable")[:n_starts]
    starts = np.concatenate([np.repeat(reference[None], b, axis=0), *X[best]])
    p = np.tile(weights, (b, 1))
    p[np.arange(b), omitted] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    p = p.astype(domain.real_dtype)

    def refine(starts: Array, max_iter: int) -> FixedPoint:
        expansion = np.tile(np.arange(b), len(starts) // b)
        # the tolerance is small compared with the effect of omitting a point, about 1/n
        return fixed_point(
            domain, p, starts, 1e-4, max_iter, expansion=expansion, objective=negated_squared_angles
        )

    # a few steps show which start is best
    trial = refine(starts, 3)
    chosen = np.argmax(trial.objective.reshape(-1, b), axis=0)
    return refine(trial.points.reshape(-1, b, X.shape[1])[chosen, np.arange(b)], 100).points


def geodesic_kernel(
    kernel: Any, X: Data, sample_weight: ArrayLike | None = None, *, reference: str = "preimage"
) -> Geodesic:
    """Return the geodesic kernel with a reference point fitted to data.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel with constant k(x, x). An unfitted kernel is fitted to X.
    X : array-like of shape (n_samples, n_features), or of the shape that the kernel expects
        The data.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.
    reference : {"preimage", "mean"}, default="preimage"
        The reference point: the pre-image of the Karcher mean, as in the paper (for
        radial kernels and Gaussian kernels on shapes and matrices), or the mean itself, an
        expansion over the data (for every kernel).

    Returns
    -------
    orthodrome.kernels.Geodesic
        Fitted to X.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((20, 2))
    >>> kernel = geodesic_kernel("gaussian", X)
    >>> bool(np.linalg.eigvalsh(kernel(X)).min() > -1e-12)
    True
    """
    check_choice(reference, ("preimage", "mean"), "reference", "geodesic_kernel")
    fitted = fitted_kernel(kernel, X, "geodesic_kernel", sample_weight)
    data = fitted.validate(X, reset=False)
    if reference == "preimage":
        return Geodesic.of_fitted(fitted, karcher_mean_preimage(fitted, data, sample_weight).point)
    gram = gram_operator(fitted, data)
    radius = squared_radius(gram.diagonal())
    mean = karcher_mean(gram if radius == 1 else Scaled(gram, 1 / radius), sample_weight)
    return Geodesic.of_fitted(fitted, data, mean.point)
