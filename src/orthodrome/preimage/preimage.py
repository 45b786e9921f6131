"""Pre-images of expansions in feature space: the door to both methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from .._core.checks import check_choice, check_integer, check_positive
from .._core.status import Status, warn_unless_converged
from .._core.types import Data
from ..gram import gram_operator
from ..kernels import Kernel, Precomputed, Radial, as_fitted_kernel, as_kernel
from .fixed_point import BLOCK_ELEMENTS, fixed_point
from .ridge import ridge

__all__ = ["Preimages", "preimage", "radial_preimages"]


@dataclass(frozen=True)
class Preimages:
    """Approximate pre-images.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The pre-images.
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
    r"""Find inputs whose feature vectors are near given expansions.

    For each row β of `coefficients`, look for z with Φ(z) near :math:`\sum_n \beta_n \Phi(x_n)`.
    For radial kernels ‖Φ(z)‖ is constant and the best z maximises
    :math:`\rho(z) = \sum_n \beta_n k(x_n, z)`; the fixed point of Mika et al., with the derivative
    of the profile in place of the Gaussian's, is iterated from several starts at once and the best
    is kept. For the other kernels the inputs are regressed on their feature vectors.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel; it is fitted to X unless it is fitted already.
    X : array-like of shape (n, d)
        The points of the expansions.
    coefficients : array-like of shape (m, n) or (n,)
        One expansion per row.
    method : {"auto", "fixed-point", "ridge"}, default="auto"
        "auto" is the fixed point for radial kernels and ridge for the others.
    n_starts : int, default=3
        Fixed point: how many training points, those of largest ρ, to start from, beside the
        weighted mean of X under the positive part of β.
    tol : float, default=1e-6
        Fixed point: stop when a step is at most tol times the spread of X.
    max_iter : int, default=500
        Fixed point: the most iterations.
    alpha : float, default=1e-6
        Ridge: penalty relative to the mean feature-space variance.
    memory_budget : str or number, default="2GiB"
        Ridge: what the n x n system may take.

    Returns
    -------
    Preimages
        Points, similarity, status.

    References
    ----------
    Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, "Kernel PCA and de-noising in feature
    spaces", NIPS 1998; Bakır, Weston and Schölkopf, "Learning to find pre-images", NIPS 2003.

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> preimage(Gaussian(sigma=1.0), X, [0.5, 0.5, 0.0]).points.round(3)
    array([[0.5]])
    """
    check_choice(method, ("auto", "fixed-point", "ridge"), "method", "preimage")
    check_integer(n_starts, "n_starts", "preimage")
    check_integer(max_iter, "max_iter", "preimage")
    check_positive(tol, "tol", "preimage")
    check_positive(alpha, "alpha", "preimage")
    fitted = _fitted(kernel, X)
    X = fitted.validate(X, reset=False)
    beta = _check_coefficients(coefficients, X)
    if method == "auto":
        dense = not scipy.sparse.issparse(X)
        method = "fixed-point" if isinstance(fitted, Radial) and dense else "ridge"
    if method == "ridge":
        inputs = X.toarray() if scipy.sparse.issparse(X) else X
        operator = gram_operator(fitted, X, memory_budget=memory_budget)
        points = ridge(operator, inputs, beta, alpha=alpha, memory_budget=memory_budget)
        unknown = np.full(len(beta), np.nan)
        return Preimages(points, unknown, 1, Status.CONVERGED, method)
    if not isinstance(fitted, Radial):
        raise ValueError(
            f"The fixed point needs a radial kernel and {type(fitted).__name__} is none; take "
            "method='ridge'."
        )
    if scipy.sparse.issparse(X):
        raise ValueError("The fixed point needs dense X: call X.toarray(), or take method='ridge'.")
    return radial_preimages(
        fitted,
        X,
        lambda rows: beta[rows],
        len(beta),
        n_starts=n_starts,
        tol=tol,
        max_iter=max_iter,
        stacklevel=4,
    )


def _fitted(kernel: Any, X: Any) -> Kernel:
    if isinstance(as_kernel(kernel), Precomputed):
        raise ValueError(
            "preimage needs the inputs and a kernel to evaluate; 'precomputed' gives neither."
        )
    return as_fitted_kernel(kernel, X)


def _check_coefficients(coefficients: ArrayLike, X: Any) -> NDArray[Any]:
    beta = check_array(
        np.atleast_2d(coefficients), dtype=[np.float64, np.float32], input_name="coefficients"
    )
    if beta.shape[1] != X.shape[0]:
        raise ValueError(
            f"coefficients must have one column per row of X, {X.shape[0]}; got {beta.shape[1]}."
        )
    return beta.astype(X.dtype, copy=False)


def radial_preimages(
    kernel: Radial,
    X: NDArray[Any],
    expansions: Callable[[slice], NDArray[Any]],
    n_expansions: int,
    *,
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
    stacklevel: int = 3,
) -> Preimages:
    """Find pre-images by the fixed point, a bounded number of expansions at a time.

    ``expansions(rows)`` returns the coefficients of those expansions, shape (len(rows), n): they
    need never stand in memory all at once. Every expansion is iterated from all its starts in one
    batch, and its best end is kept. The other parameters are those of :func:`preimage`.
    """
    step = max(1, 4 * BLOCK_ELEMENTS // len(X))  # the starts of a batch cost a pass over K
    points = np.empty((n_expansions, X.shape[1]), dtype=X.dtype)
    similarity = np.empty(n_expansions, dtype=X.dtype)
    n_iter = unfinished = 0
    for first in range(0, n_expansions, step):
        rows = slice(first, min(first + step, n_expansions))
        beta = expansions(rows).astype(X.dtype, copy=False)
        starts = _starts(kernel, X, beta, n_starts)  # (m, s, d)
        m, s, d = starts.shape
        ends = fixed_point(
            kernel,
            X,
            beta,
            starts.reshape(-1, d),
            expansion=np.repeat(np.arange(m), s),
            tol=tol,
            max_iter=max_iter,
        )
        best = np.arange(m) * s + ends.objective.reshape(m, s).argmax(axis=1)
        points[rows], similarity[rows] = ends.points[best], ends.objective[best]
        n_iter = max(n_iter, ends.n_iter)
        unfinished += int(np.count_nonzero(~ends.converged[best]))
    status = Status.MAX_ITER if unfinished else Status.CONVERGED
    detail = f"{unfinished} of {n_expansions} pre-images after {n_iter} iterations"
    warn_unless_converged(status, "preimage", detail, stacklevel=stacklevel)
    return Preimages(points, similarity, n_iter, status, "fixed-point")


def _starts(kernel: Radial, X: NDArray[Any], beta: NDArray[Any], n_starts: int) -> NDArray[Any]:
    """Return, for each expansion, its most similar training points and a weighted mean."""
    m, n = beta.shape
    n_starts = min(n_starts, n)
    positive = np.maximum(beta, 0.0)
    totals = positive.sum(axis=1, keepdims=True)
    positive = np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), 1.0 / n)
    starts = np.empty((m, n_starts + 1, X.shape[1]), dtype=X.dtype)
    starts[:, -1] = positive @ X
    similarity = np.ascontiguousarray((gram_operator(kernel, X, storage="recompute") @ beta.T).T)
    best = np.argpartition(-similarity, n_starts - 1, axis=1)[:, :n_starts]
    starts[:, :n_starts] = X[best]
    return starts
