"""Kernels for symmetric positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from .._core.types import Array
from ..spaces import check_spd, spd_exp, spd_log, symmetric_matrices, symmetric_vectors
from .base import ArrayKernel
from .extrinsic import ExtrinsicGaussian


class LogEuclidean(ArrayKernel, ExtrinsicGaussian):
    r"""Gaussian kernel for matrices in the log-Euclidean metric.

    .. math:: k(A, B) = \exp\Bigl(-\frac{\|\log A - \log B\|_F^2}{2\sigma^2}\Bigr)

    It is positive definite, and invariant if all matrices are rotated, multiplied by a common
    factor, or inverted.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale. ``"mean"``: 2σ² is the mean squared distance over all pairs. ``"median"``: √2 σ
        is the median distance.

    Attributes
    ----------
    sigma_ : float
        The scale as a number.

    Notes
    -----
    Jayasumana et al. write σ² instead of 2σ²: their σ is √2 times ours.

    References
    ----------
    Jayasumana, Hartley, Salzmann, Li and Harandi, "Kernel methods on the Riemannian manifold of
    symmetric positive definite matrices", CVPR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.kernels import LogEuclidean
    >>> LogEuclidean(sigma=1.0)([np.eye(2), np.e * np.eye(2)]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    def _as_arrays(self, X: Any) -> Array:
        """Return symmetric positive definite matrices of shape (n, d, d).

        Flat rows of all entries, shape (n, d²), are accepted: estimators for rows, such as
        scikit-learn's ``SVC``, pass matrices in this form.
        """
        return check_spd(_unflattened(X))

    def as_vectors(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return logarithms as vectors, and the map back to matrices."""
        return self._embed(X), lambda vectors: spd_exp(symmetric_matrices(vectors))

    def _embed(self, X: Any) -> Array:
        return symmetric_vectors(spd_log(X))


def _unflattened(X: Any) -> Any:
    """Return rows of d² entries as matrices, other data unchanged."""
    try:
        shape = np.shape(X)
    except ValueError:  # ragged: check_spd raises the error
        return X
    d = math.isqrt(shape[1]) if len(shape) == 2 and not scipy.sparse.issparse(X) else 0
    return np.asarray(X).reshape(-1, d, d) if d and d * d == shape[1] else X
