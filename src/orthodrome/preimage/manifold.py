"""Pre-images of expansions by fixed-point iteration, for vectors, shapes and matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._core.status import Status, warn_unless_converged
from .._core.types import Array
from ..gram import gram_operator
from ..kernels import Kernel, Precomputed, as_kernel
from ..kernels._profiles import has_profile
from ..spaces.shapes import as_complex, form_of
from .domains import Domain, domain_of
from .fixed_point import BLOCK_ELEMENTS, FixedPoint, fixed_point


@dataclass(frozen=True)
class Preimages:
    """Approximate pre-images.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The pre-images; landmarks and matrices have the form of the data.
    similarity : ndarray of shape (m,)
        Σ_n β_n k(x_n, z) at each pre-image z; NaN for the ridge method.
    n_iter : int
        Iterations of the slowest start (1 for the ridge method).
    status : Status
        How the iteration ended.
    method : str
        "fixed-point" or "ridge".
    """

    points: Array
    similarity: Array
    n_iter: int
    status: Status
    method: str

    @property
    def converged(self) -> bool:
        """Whether every pre-image met the tolerance."""
        return self.status.converged


def has_fixed_point(kernel: Kernel, X: Any) -> bool:
    """Return whether pre-images for this kernel and data can use the fixed-point iteration."""
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
    r"""Find pre-images by fixed-point iteration, a bounded number of expansions at a time.

    ``expansions(rows)`` returns the coefficients of a slice of the expansions, shape (m, n). Each
    expansion is iterated from all its starts in one batch, and the best result is kept. The other
    parameters are those of :func:`preimage`.

    For radial kernels this is the fixed point of Mika et al.; for Gaussian kernels of embedded
    points, such as matrices by their logarithms, it is the same on the embedding. For the
    Veronese-Whitney Gaussian, shapes u that maximise :math:`\sum_n \beta_n k(u_n, u)` are leading
    eigenvectors of :math:`\sum_n \beta_n k(u_n, u)\, u_n u_n^*`, which are mean shapes with weights
    that change with each step.

    Returns
    -------
    Preimages
        Points in the form of X; landmarks have centroid size 1 and are rotated to the first of X.
    """
    domain = domain_of(kernel, X)
    n, dtype = len(domain.points), domain.real_dtype
    step = max(1, 4 * BLOCK_ELEMENTS // n)  # finding the starts of a batch needs a pass over K
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
    """Divide huge expansions by powers of 2, which keeps their pre-images; return also these."""
    largest = np.abs(beta).max(axis=1, initial=0.0).astype(np.float64)
    huge = largest > float(np.finfo(dtype).max) ** 0.25
    sizes = np.ldexp(1.0, np.where(huge, np.frexp(largest)[1] - 1, 0))
    if huge.any():
        beta = beta / sizes[:, None]
    return beta.astype(dtype, copy=False), sizes


def _most_similar(kernel: Kernel, X: Array, beta: Array, number: int) -> Array:
    """Return for each expansion the rows of X with the largest Σ_n β_n k(x_n, x), (m, number)."""
    similarity = np.ascontiguousarray((gram_operator(kernel, X, storage="recompute") @ beta.T).T)
    return np.argpartition(-similarity, number - 1, axis=1)[:, :number]


def _means(domain: Domain, beta: Array) -> Array:
    """Return the mean of the data for the positive part of each expansion, shape (m, 1, c)."""
    positive = np.maximum(beta, 0.0)
    totals = positive.sum(axis=1, keepdims=True)
    usable = totals > 0
    weights = np.where(usable, positive / np.where(usable, totals, 1.0), 1.0 / beta.shape[1])
    return domain.means(weights)[:, None].astype(domain.points.dtype, copy=False)


def _best_ends(domain: Domain, beta: Array, starts: Array, tol: float, max_iter: int) -> FixedPoint:
    """Iterate each expansion from all its starts, shape (m, s, c); return the best result."""
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
    """Return points in the form of X: landmarks (n, k, 2) become complex or flat if X is."""
    if points.ndim == 2 or scipy.sparse.issparse(X) or form_of(X) == "points":
        return points
    return as_complex(points) if form_of(X) == "complex" else points.reshape(len(points), -1)
