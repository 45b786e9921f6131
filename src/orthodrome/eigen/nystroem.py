"""Leading eigenpairs of a Nyström approximation from anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from .._core.checks import check_choice, check_positive
from .._core.parameters import Check, choice, integer, optional, seed
from .._core.status import Status
from .._core.types import Callback, Floats, Indices
from ..coordinates import Anchors, PartialCholesky, choose_anchors, partial_cholesky
from ..coordinates.pivots import check_captured, check_zero_matrix, checked_rows, pilot_size
from ..gram import GramOperator
from .pairs import Eigenpairs, Solver, complete_basis

_ANCHORS = ("auto", "rpcholesky", "uniform", "k-means++")

# Default number of anchors. Features in float32 then take half a gigabyte per 250,000 rows.
_DEFAULT_ANCHORS = 512


def _check_anchors(value: Any, name: str, owner: str) -> None:
    if isinstance(value, str):
        check_choice(value, _ANCHORS, name, owner)


def _check_tol(value: Any, name: str, owner: str) -> None:
    if check_positive(value, name, owner, or_zero=True) >= 1:
        raise ValueError(
            f"{name} of {owner} must be below 1, or no anchor would be chosen; got {value!r}."
        )


@dataclass(frozen=True)
class Nystroem(Solver):
    r"""The Nyström method, which represents points by their similarity to a few anchors.

    :math:`K \approx K_{nm} K_{mm}^{-1} K_{mn} = F F^\top`, with features F, one column per
    anchor. Estimators that work on features (:class:`~orthodrome.KernelPCA`,
    :class:`~orthodrome.KernelPGA`, :class:`~orthodrome.KernelPNS`, and the clustering estimators)
    evaluate only the diagonal of the Gram matrix and the columns of the anchors. Of the training
    data they keep only the anchors.

    Parameters
    ----------
    n_anchors : int, optional
        Maximum number of anchors. Default: 512, or twice the number of pairs if that is more.
    anchors : {"auto", "rpcholesky", "uniform", "k-means++"} or array-like, default="auto"
        How to choose anchors, see :func:`~orthodrome.coordinates.choose_anchors`; or a 1-D array of
        row numbers; or an array of points (in an estimator only). "auto" draws them uniformly where
        that is about as good as rpcholesky, which takes longer; `partial_fit` takes rpcholesky.
    tol : float, optional
        Stop once the trace of the residual, :math:`\operatorname{tr}(K - FF^\top)`, is at most tol
        times the trace of K. Default: use all `n_anchors`.
    sphere : {"unit", "angles"}, default="unit"
        How :class:`~orthodrome.KernelPGA` treats features that are shorter than the points.
        "unit" normalises them, which puts them back on the sphere. "angles" keeps the projections
        of the points on the span of the anchors, with the angles of the points themselves.
    random_state : int, RandomState, Generator or None
        Seed or generator.

    Examples
    --------
    >>> from orthodrome import KernelPCA
    >>> X = np.random.default_rng(0).standard_normal((2000, 3))
    >>> solver = Nystroem(n_anchors=300, tol=1e-3, random_state=0)
    >>> model = KernelPCA(2, solver=solver).fit(X)
    >>> model.solver_, bool(model.n_anchors_ < 300)
    ('nystroem', True)
    """

    n_anchors: int | None = None
    anchors: Any = "auto"
    tol: float | None = None
    sphere: str = "unit"
    random_state: Any = None

    name = "nystroem"

    _PARAMETERS: ClassVar[dict[str, Check]] = {
        "n_anchors": optional(integer()),
        "anchors": _check_anchors,
        "tol": optional(_check_tol),
        "sphere": choice("unit", "angles"),
        "random_state": seed,
    }

    def max_anchors(self, k: int) -> int:
        """Return the maximum number of anchors for k pairs."""
        return max(_DEFAULT_ANCHORS, 2 * k) if self.n_anchors is None else int(self.n_anchors)

    def anchors_of(self, kernel: Any, X: Any, k: int, **options: Any) -> Anchors:
        """Choose anchors for k pairs; see :func:`~orthodrome.coordinates.choose_anchors`."""
        options |= {"anchors": self.anchors, "tol": self.tol or 0.0}
        options |= {"random_state": self.random_state}
        return choose_anchors(kernel, X, self.max_anchors(k), **options)

    def with_row_numbers(self, new_index: Indices) -> Nystroem:
        """Return the solver with each anchor row number replaced by ``new_index[row]``.

        Rows with the new index -1 are dropped, and so are duplicates.
        """
        if isinstance(self.anchors, str) or np.ndim(self.anchors) != 1:
            return self
        found = new_index[checked_rows(self.anchors, len(new_index))]
        found = found[found >= 0]
        first = np.sort(np.unique(found, return_index=True)[1])
        return replace(self, anchors=found[first])

    def status(self, trace_error: float, n_anchors: int, n: int) -> Status:
        """Return CONVERGED if `tol` is reached or not set, or if all n points are anchors."""
        reached = not self.tol or trace_error <= self.tol or n_anchors == n
        return Status.CONVERGED if reached else Status.FEW_ANCHORS

    def solve(self, operator: Any, k: int, *, callback: Callback | None = None) -> Eigenpairs:
        """Return the k leading eigenpairs of the approximation, with zeros beyond its rank.

        The residuals are upper bounds: the norm of K - FFᵀ is at most its trace.
        """
        found = self._factor(operator, self.max_anchors(k))
        n, rank = found.factor.shape
        if not rank:
            check_zero_matrix(operator)
        captured = np.einsum("ij,ij->i", found.factor, found.factor)
        check_captured(captured, operator.diagonal().astype(np.float64))
        vectors, roots, _ = scipy.linalg.svd(found.factor, full_matrices=False)
        values = np.zeros(k, dtype=operator.dtype)
        values[:rank] = roots[:k] ** 2
        left_out = float(np.maximum(found.residual, 0.0).sum())
        entry = {
            "n_anchors": rank,
            "trace_error": found.trace_error,
            "max_residual": left_out / (float(values[0]) or 1.0),
        }
        if callback is not None:
            callback(entry)
        return Eigenpairs(
            values=values,
            vectors=complete_basis(vectors, k).astype(operator.dtype),
            residuals=np.full(k, left_out, dtype=values.dtype),
            n_iter=1,
            status=self.status(found.trace_error, rank, n),
            solver=self.name,
            history=(entry,),
        )

    def starting_vectors(self, operator: GramOperator, count: int) -> Floats:
        """Return approximate leading eigenvectors for another solver to start from, in columns.

        There are `count` of them, or fewer if the anchors have a smaller rank. They are computed
        from the Gram matrix of the factor, which is cheaper than an SVD and sufficiently accurate.
        """
        limit = pilot_size(operator.shape[0], count) if self.n_anchors is None else self.n_anchors
        factor = self._factor(operator, limit).factor
        values, axes = scipy.linalg.eigh(factor.T @ factor, driver="evd")
        kept = np.flatnonzero(values > np.finfo(np.float64).eps * values.max(initial=0.0))
        kept = kept[::-1][:count]
        return np.asarray(factor @ (axes[:, kept] / np.sqrt(values[kept])))

    def _factor(self, operator: GramOperator, max_rank: int) -> PartialCholesky:
        """Return the factor of the approximation with at most `max_rank` anchors."""
        return partial_cholesky(
            operator,
            max_rank=min(operator.shape[0], max_rank),
            tol=self.tol or 0.0,
            pivots=self.anchors,
            random_state=self.random_state,
        )
