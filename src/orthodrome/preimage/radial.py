"""Pre-images of expansions under radial kernels, by the fixed point of Mika et al."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.status import Status, warn_unless_converged
from .._core.types import Indices
from ..gram import gram_operator
from ..kernels import Kernel, Radial
from .domains import Domain, Vectors
from .fixed_point import BLOCK_ELEMENTS, FixedPoint, climb

__all__ = ["Preimages", "domain_preimages", "most_similar", "radial_preimages"]


@dataclass(frozen=True)
class Preimages:
    """Approximate pre-images.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The pre-images; landmarks and matrices have the form that the data had.
    similarity : ndarray of shape (m,)
        Σ_n β_n k(x_n, z) at the pre-image z of a fixed point; NaN for the ridge method.
    n_iter : int
        Iterations of the slowest start (1 for the ridge method).
    status : Status
        How it ended.
    method : str
        "fixed-point" or "ridge".
    """

    points: NDArray[Any]
    similarity: NDArray[Any]
    n_iter: int
    status: Status
    method: str

    @property
    def converged(self) -> bool:
        """Whether every pre-image met the tolerance."""
        return self.status.converged


def radial_preimages(
    kernel: Radial,
    X: NDArray[Any],
    expansions: Callable[[slice], NDArray[Any]],
    n_expansions: int,
    *,
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> Preimages:
    """Find pre-images by the fixed point, a bounded number of expansions at a time.

    ``expansions(rows)`` returns the coefficients of those expansions, shape (len(rows), n): they
    need never stand in memory all at once. Every expansion is iterated from all its starts in one
    batch, and its best end is kept. The other parameters are those of :func:`preimage`.
    """
    return domain_preimages(
        Vectors(kernel, X),
        partial(most_similar, kernel, X),
        expansions,
        n_expansions,
        n_starts=n_starts,
        tol=tol,
        max_iter=max_iter,
    )


def domain_preimages(
    domain: Domain,
    nearest: Callable[[NDArray[Any], int], Indices],
    expansions: Callable[[slice], NDArray[Any]],
    n_expansions: int,
    *,
    n_starts: int,
    tol: float,
    max_iter: int,
) -> Preimages:
    """Find pre-images in any domain.

    ``nearest(beta, number)`` returns the points of largest ρ, as :func:`most_similar` does.
    """
    n, dtype = len(domain.points), domain.real_dtype
    step = max(1, 4 * BLOCK_ELEMENTS // n)  # the starts of a batch cost a pass over K
    points = np.empty((n_expansions, domain.points.shape[1]), dtype=domain.points.dtype)
    similarity = np.empty(n_expansions, dtype=dtype)
    n_iter = unfinished = 0
    for first in range(0, n_expansions, step):
        rows = slice(first, min(first + step, n_expansions))
        beta, sizes = _without_overflow(expansions(rows), dtype)
        starts = _starts(domain, nearest, beta, min(n_starts, n))
        ends = _best_ends(domain, beta, starts, tol, max_iter)
        with np.errstate(over="ignore"):
            points[rows], similarity[rows] = ends.points, ends.objective * sizes
        n_iter = max(n_iter, ends.n_iter)
        unfinished += int(np.count_nonzero(~ends.converged))
    status = Status.MAX_ITER if unfinished else Status.CONVERGED
    detail = f"{unfinished} of {n_expansions} pre-images after {n_iter} iterations"
    warn_unless_converged(status, "preimage", detail)
    return Preimages(domain.inputs(points), similarity, n_iter, status, "fixed-point")


def _without_overflow(beta: NDArray[Any], dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return huge expansions divided by powers of 2, and these: their pre-images are the same."""
    largest = np.abs(beta).max(axis=1, initial=0.0).astype(np.float64)
    huge = largest > float(np.finfo(dtype).max) ** 0.25
    sizes = np.ldexp(1.0, np.where(huge, np.frexp(largest)[1] - 1, 0))
    if huge.any():
        beta = beta / sizes[:, None]
    return beta.astype(dtype, copy=False), sizes


def _best_ends(
    domain: Domain, beta: NDArray[Any], starts: NDArray[Any], tol: float, max_iter: int
) -> FixedPoint:
    """Iterate each expansion from all its starts, shape (m, s, c), and return its best end."""
    m, s, c = starts.shape
    ends = climb(
        domain,
        beta,
        starts.reshape(-1, c),
        expansion=np.repeat(np.arange(m), s),
        tol=max(tol, domain.search_tol),
        max_iter=max_iter,
    )
    best = np.arange(m) * s + ends.objective.reshape(m, s).argmax(axis=1)
    if tol >= domain.search_tol or ends.n_iter >= max_iter:
        return replace(
            ends,
            points=ends.points[best],
            objective=ends.objective[best],
            steps=ends.steps[best],
            converged=ends.converged[best] & (tol >= domain.search_tol),
        )
    last = climb(domain, beta, ends.points[best], tol=tol, max_iter=max_iter - ends.n_iter)
    return replace(last, n_iter=ends.n_iter + last.n_iter)


def _starts(
    domain: Domain,
    nearest: Callable[[NDArray[Any], int], Indices],
    beta: NDArray[Any],
    n_starts: int,
) -> NDArray[Any]:
    """Return, for each expansion, its most similar training points and a weighted mean."""
    m, n = beta.shape
    positive = np.maximum(beta, 0.0)
    totals = positive.sum(axis=1, keepdims=True)
    positive = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), 1.0 / n)
    starts = np.empty((m, n_starts + 1, domain.points.shape[1]), dtype=domain.points.dtype)
    starts[:, -1] = domain.means(positive)
    starts[:, :n_starts] = domain.points[nearest(beta, n_starts)]
    return starts


def most_similar(kernel: Kernel, X: NDArray[Any], beta: NDArray[Any], number: int) -> Indices:
    """Return, for each expansion, the points of largest Σ_n β_n k(x_n, x), shape (m, number)."""
    similarity = np.ascontiguousarray((gram_operator(kernel, X, storage="recompute") @ beta.T).T)
    return np.argpartition(-similarity, number - 1, axis=1)[:, :number]
