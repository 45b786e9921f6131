"""Kernels of symmetric positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from .._core.kinds import refuse_unread
from ..spaces import check_spd, spd_exp, spd_log, symmetric_matrices, symmetric_vectors
from .extrinsic import ExtrinsicGaussian

__all__ = ["LogEuclidean"]


class LogEuclidean(ExtrinsicGaussian):
    r"""The Gaussian kernel of matrices in the log-Euclidean metric.

    .. math:: k(A, B) = \exp\Bigl(-\frac{\|\log A - \log B\|_F^2}{\sigma^2}\Bigr)

    It is positive definite, and unchanged by a rotation of all matrices, by a common factor, and by
    inverting all.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale; ``"mean"``: σ² is the mean squared distance over all pairs, ``"median"``: σ is
        the median distance.

    Attributes
    ----------
    sigma_ : float
        The scale as a number.

    References
    ----------
    Jayasumana, Hartley, Salzmann, Li and Harandi, "Kernel methods on the Riemannian manifold of
    symmetric positive definite matrices", CVPR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.kernels import LogEuclidean
    >>> LogEuclidean(sigma=2.0)([np.eye(2), np.e * np.eye(2)]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    takes_vectors = False

    def validate(self, X: Any, *, estimator: Any = None, reset: bool = True) -> Any:
        """Check that X is (n, d, d), each matrix symmetric and positive definite.

        Flat rows of all entries, shape (n, d²), are taken for such matrices: what estimators that
        know only rows, such as scikit-learn's ``SVC``, can hand on. Those of a data frame keep the
        names of their columns.
        """
        owner = self if estimator is None else estimator
        refuse_unread(X, owner)
        matrices = check_spd(_unflattened(X))
        d = matrices.shape[1]
        known = getattr(owner, "n_features_in_", d * d)
        if not reset and known != d * d:
            raise ValueError(
                f"X has matrices of {d} x {d} = {d * d} entries, but {type(owner).__name__} was "
                f"fitted to matrices of {known}."
            )
        rows = X if hasattr(X, "columns") else matrices.reshape(len(matrices), -1)
        validate_data(owner, rows, reset=reset)
        return matrices

    def fit_validated(self, X: Any, sample_weight: NDArray[np.float64] | None = None) -> Any:
        """Resolve the parameters from data that ``validate`` has already returned."""
        super().fit_validated(X, sample_weight)
        self.n_features_in_ = int(np.prod(X.shape[1:]))
        return self

    def as_vectors(
        self, X: NDArray[Any]
    ) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
        """Return logarithms as vectors, and the way back by exponentials."""
        return self._embed(X), lambda vectors: spd_exp(symmetric_matrices(vectors))

    def _embed(self, X: Any) -> NDArray[Any]:
        return symmetric_vectors(spd_log(X))


def _unflattened(X: Any) -> Any:
    """Return rows of d² entries as matrices; anything else as it is."""
    try:
        shape = np.shape(X)
    except ValueError:  # ragged: the check of matrices says so
        return X
    d = math.isqrt(shape[1]) if len(shape) == 2 and not scipy.sparse.issparse(X) else 0
    return np.asarray(X).reshape(-1, d, d) if d and d * d == shape[1] else X
