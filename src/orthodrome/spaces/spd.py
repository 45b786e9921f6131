r"""Symmetric positive definite matrices: logarithm, mean and distance (log-Euclidean).

.. math:: d(A, B) = \|\log A - \log B\|_F

The mean is :math:`\exp` of the mean of logarithms. Error messages number matrices from 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from .._core.checks import RowError, check_numbers, check_sample_weight
from .._core.types import Array
from .shapes import as_dense

# Allowed asymmetry, relative to the largest entry.
_ASYMMETRY = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}


def check_spd(X: ArrayLike, name: str = "X") -> Array:
    """Validate symmetric positive definite matrices.

    Parameters
    ----------
    X : array-like of shape (n, d, d)
        Matrices.
    name : str, default="X"
        The name of X in error messages.

    Returns
    -------
    ndarray of shape (n, d, d)
        float32 or float64; exactly symmetric.

    Examples
    --------
    >>> check_spd([[[2.0, 1.0], [1.0, 2.0]]]).shape
    (1, 2, 2)
    """
    array = _symmetric(X, name)
    _check_positive_definite(np.linalg.eigvalsh(array), name)
    return array


def spd_log(X: ArrayLike) -> Array:
    r"""Return the logarithms :math:`U \log(\Lambda)\, U^\top` of matrices :math:`U \Lambda U^\top`.

    Parameters
    ----------
    X : array-like of shape (n, d, d)
        Symmetric positive definite matrices.

    Returns
    -------
    ndarray of shape (n, d, d)
        Symmetric matrices.

    Examples
    --------
    >>> spd_log([[[1.0, 0.0], [0.0, np.e]]]).round(12)
    array([[[0., 0.],
            [0., 1.]]])
    """
    values, vectors = np.linalg.eigh(_symmetric(X, "X"))
    _check_positive_definite(values, "X")
    return _from_eigenpairs(np.log(values), vectors)


def spd_exp(X: ArrayLike) -> Array:
    """Return the exponentials of symmetric matrices, shape (n, d, d): the inverse of `spd_log`.

    Examples
    --------
    >>> spd_exp(spd_log([[[2.0, 1.0], [1.0, 2.0]]])).round(12)
    array([[[2., 1.],
            [1., 2.]]])
    """
    values, vectors = np.linalg.eigh(_symmetric(X, "X"))
    with np.errstate(over="ignore"):
        powers = np.exp(values)
    if not np.all(np.isfinite(powers)):
        index = int(np.flatnonzero(~np.isfinite(powers).all(axis=1))[0])
        raise ValueError(f"The exponential of matrix {index} of X overflows; rescale the matrix.")
    return _from_eigenpairs(powers, vectors)


def symmetric_vectors(X: ArrayLike) -> Array:
    """Return symmetric matrices as vectors of shape (n, d (d + 1)/2).

    Entries off the diagonal are multiplied by √2, which preserves inner products. float32 is
    kept; other dtypes are converted to float64.

    Examples
    --------
    >>> symmetric_vectors(np.array([[[1.0, 2.0], [2.0, 3.0]]])).round(3)
    array([[1.   , 2.828, 3.   ]])
    """
    array = _symmetric(X, "X")
    rows, columns = np.triu_indices(array.shape[1])
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0)).astype(array.dtype)
    return array[:, rows, columns] * factors


def symmetric_matrices(vectors: ArrayLike) -> Array:
    """Convert vectors to symmetric matrices: the inverse of `symmetric_vectors`.

    float32 is kept; other dtypes are converted to float64.

    Examples
    --------
    >>> symmetric_matrices(symmetric_vectors(np.array([[[1.0, 2.0], [2.0, 3.0]]]))).round(12)
    array([[[1., 2.],
            [2., 3.]]])
    """
    dtypes = [np.float64, np.float32]
    array = check_numbers(vectors, "vectors", "symmetric_matrices", dtype=dtypes)
    length = array.shape[1]
    d = (math.isqrt(8 * length + 1) - 1) // 2
    if d * (d + 1) // 2 != length:
        raise ValueError(
            "vectors of symmetric_matrices must have d (d + 1)/2 entries, 1, 3, 6, 10, …, one for "
            f"each entry of the upper triangle; got {length}."
        )
    rows, columns = np.triu_indices(d)
    factors = np.where(rows == columns, 1.0, np.sqrt(0.5)).astype(array.dtype)
    matrices = np.empty((len(array), d, d), dtype=array.dtype)
    matrices[:, rows, columns] = array * factors
    matrices[:, columns, rows] = matrices[:, rows, columns]
    return matrices


def log_euclidean_mean(X: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    r"""Return :math:`\exp \sum_n p_n \log A_n`, shape (d, d).

    Parameters
    ----------
    X : array-like of shape (n, d, d)
        Symmetric positive definite matrices.
    sample_weight : array-like of shape (n,), optional
        Weights.

    Returns
    -------
    ndarray of shape (d, d)
        The mean.

    Examples
    --------
    >>> log_euclidean_mean([np.eye(2), 4 * np.eye(2)]).round(12)
    array([[2., 0.],
           [0., 2.]])
    """
    logs = spd_log(X)
    weights = check_sample_weight(sample_weight, len(logs), "log_euclidean_mean")
    return spd_exp(np.average(logs, axis=0, weights=weights).astype(logs.dtype)[None])[0]


def log_euclidean_distance(X: ArrayLike, Y: ArrayLike | None = None) -> Array:
    """Return ‖log A - log B‖ for all pairs, shape (n, m).

    Parameters
    ----------
    X, Y : array-like of shape (n, d, d)
        Symmetric positive definite matrices. Y defaults to X.

    Returns
    -------
    ndarray of shape (n, m)
        Distances.

    Examples
    --------
    >>> log_euclidean_distance([np.eye(2)], [np.e * np.eye(2)]).round(6)
    array([[1.414214]])
    """
    a = symmetric_vectors(spd_log(X))
    b = a if Y is None else symmetric_vectors(spd_log(Y))
    if a.shape[1] != b.shape[1]:
        raise ValueError("X and Y have matrices of different sizes.")
    return cdist(a, b).astype(np.result_type(a, b), copy=False)


def _symmetric(X: ArrayLike, name: str) -> Array:
    """Return X as an array of symmetric matrices, or raise."""
    array = as_dense(X, name, "matrices")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got {array.dtype}.")
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or not array.shape[1]:
        raise ValueError(
            f"{name} must be square matrices, shape (n, d, d); got shape {array.shape}."
        )
    if not len(array):
        raise ValueError(f"Found array with 0 sample(s) in {name}; at least one is required.")
    infinite = ~np.isfinite(array).all(axis=(1, 2))
    if infinite.any():
        index = int(np.argmax(infinite))
        raise ValueError(f"Matrix {index} of {name} has entries that are NaN or infinite.")
    transposed = array.transpose(0, 2, 1)
    difference = np.abs(array - transposed).max(axis=(1, 2))
    allowed = _ASYMMETRY[array.dtype] * np.abs(array).max(axis=(1, 2))
    if np.any(difference > allowed):
        index = int(np.argmax(difference > allowed))
        raise ValueError(
            f"Matrix {index} of {name} is not symmetric: it differs from its transpose by up to "
            f"{difference[index]:.2g}. Use (A + A.T) / 2 if this is rounding error."
        )
    return (array + transposed) / 2


def _check_positive_definite(values: Array, name: str) -> None:
    """Raise unless all eigenvalues (ascending) are positive by more than rounding error."""
    floor = values.shape[1] * np.finfo(values.dtype).eps * np.abs(values).max(axis=1)
    invalid = ~(values[:, 0] > floor)
    if invalid.any():
        index = int(np.flatnonzero(invalid)[0])
        raise RowError(
            f"Matrix {{0}} of {name} is not positive definite: its smallest eigenvalue is "
            f"{values[index, 0]:.3g}, its largest {values[index, -1]:.3g}. Shrink covariances "
            "toward a multiple of the identity, or estimate them from more observations.",
            index,
        )


def _from_eigenpairs(values: Array, vectors: Array) -> Array:
    """Return the matrices U diag(values) Uᵀ, exactly symmetric."""
    matrices = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return (matrices + matrices.transpose(0, 2, 1)) / 2
