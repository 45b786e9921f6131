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
from sklearn.base import clone

from .._core.checks import (
    check_choice,
    check_integer,
    check_numbers,
    check_positive,
    numbers_expected,
)
from .._core.status import Outcome, Status, warn_unless_converged
from .._core.types import Array, Data
from ..gram import gram_operator
from ..kernels import Kernel, Precomputed, as_kernel
from ..kernels.manifolds import has_profile
from ..spaces.shapes import as_complex, form_of
from .domains import Domain, domain_of
from .fixed_point import BLOCK_ELEMENTS, FixedPoint, fixed_point
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
    resolved = as_kernel(kernel)
    if isinstance(resolved, Precomputed):
        raise ValueError(f"{owner} needs the inputs and a kernel, not a precomputed matrix.")
    if resolved.__sklearn_is_fitted__():
        return resolved
    return clone(resolved).fit(X, sample_weight=sample_weight)


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
