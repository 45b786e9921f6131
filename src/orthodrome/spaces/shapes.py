r"""Planar shapes: the forms of landmarks, pre-shapes, the mean, Procrustes distances, alignment.

k landmarks in the plane are k complex numbers z. Without location and size they are a pre-shape,

.. math:: u = \frac{z - \bar z}{\|z - \bar z\|},

and shapes are pre-shapes up to rotation, :math:`\{e^{i\theta} u\}`. Distances between two shapes
depend only on :math:`|u^* v|`. The space of shapes is Kendall's Σ₂ᵏ.

Landmarks may have three forms: complex, (n, k); real, (n, k, 2); and flat, (n, 2k) as x1, y1, x2,
y2, … Results have the form of the input. Errors count specimens and landmarks from 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from .._core.checks import RowError, as_array, check_choice, check_sample_weight
from .._core.types import Array, Floats, Indices
from .._core.warn import warn_user

#: Minimum number of landmarks; with fewer, all shapes are equal.
MIN_LANDMARKS = 3

# Relative gap up to which the two largest eigenvalues of the mean embedding are considered equal.
_TIE = 1e-12


# ---------------------------------------------------------------------------- forms


def as_complex(X: ArrayLike, name: str = "X") -> Array:
    """Validate landmarks of any form and return them as complex numbers.

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks.
    name : str, default="X"
        The name of X in error messages.

    Returns
    -------
    ndarray of shape (n, k), complex
        complex64 if X is float32 or complex64, else complex128.

    Examples
    --------
    >>> as_complex([[0, 0, 1, 0, 0, 1]])
    array([[0.+0.j, 1.+0.j, 0.+1.j]])
    """
    array = _as_array(X, name)
    is_single = array.dtype in (np.float32, np.complex64)
    kind = np.complex64 if is_single else np.complex128
    if not np.iscomplexobj(array):
        real = np.ascontiguousarray(array, dtype=np.float32 if is_single else np.float64)
        array = real.reshape(len(real), math.prod(real.shape[1:])).view(kind)
    z = np.ascontiguousarray(array, dtype=kind)
    _check_landmarks(z, name)
    return z


def as_points(X: ArrayLike, name: str = "X") -> Array:
    """Validate landmarks of any form and return them as (n, k, 2).

    Examples
    --------
    >>> as_points([[0, 0, 1, 0, 0, 1]])
    array([[[0., 0.],
            [1., 0.],
            [0., 1.]]])
    """
    return in_form(as_complex(X, name), "points")


def form_of(X: Any) -> str:
    """Return the form of landmarks: "complex", "points" or "flat"."""
    array = X if hasattr(X, "ndim") else np.asarray(X)
    if array.ndim == 3:
        return "points"
    return "complex" if np.iscomplexobj(array) else "flat"


def as_dense(X: Any, name: str, kind: str) -> Array:
    """Return X as an array; raise if it is sparse, masked or ragged."""
    if scipy.sparse.issparse(X):
        raise TypeError(f"Sparse data was passed for {name}, but {kind} must be dense.")
    return as_array(X, name, f"the {kind}")


def _as_array(X: Any, name: str) -> Array:
    """Return X as an array, or raise if its dtype or shape is not that of landmarks."""
    array = as_dense(X, name, "landmarks")
    if array.dtype.kind not in "fiucb":
        try:
            if array.dtype.kind in "mM":  # NumPy would convert dates silently
                raise TypeError
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must hold numbers; got {array.dtype}.") from None
    flat = array.ndim == 2 and (np.iscomplexobj(array) or array.shape[1] % 2 == 0)
    points = array.ndim == 3 and array.shape[2] == 2 and not np.iscomplexobj(array)
    if not (flat or points):
        raise ValueError(
            f"{name} must be planar landmarks: complex (n, k), real (n, k, 2), or (n, 2k) as x1, "
            f"y1, x2, y2, …; got {array.dtype} of shape {array.shape}."
        )
    return array


def _check_landmarks(z: Array, name: str) -> None:
    n, k = z.shape
    if n == 0:
        raise ValueError(f"Found array with 0 sample(s) in {name}; at least one is required.")
    if k < MIN_LANDMARKS:
        raise ValueError(
            f"{name} has {k} landmarks for each specimen; planar shapes need at least "
            f"{MIN_LANDMARKS}."
        )
    invalid = ~np.isfinite(z)
    if invalid.any():
        specimen, landmark = np.argwhere(invalid)[0]
        raise ValueError(
            f"Landmark {landmark} of specimen {specimen} of {name} is NaN or infinite. Impute "
            "missing landmarks, or remove the specimen."
        )


def in_form(z: Array, form: str) -> Array:
    """Return complex landmarks, (n, k) or (k,), in the form "complex", "points" or "flat"."""
    if form == "complex":
        return z
    real = np.stack([z.real, z.imag], axis=-1)
    return real if form == "points" else real.reshape(*z.shape[:-1], -1)


# ---------------------------------------------------------------------------- pre-shapes


def complex_preshapes(X: ArrayLike, name: str = "X") -> Array:
    """Return pre-shapes as complex numbers, or raise if all landmarks of a specimen coincide."""
    z = as_complex(X, name)
    centered, largest = _centered(z, name)
    with np.errstate(over="ignore"):
        spread = np.abs(z).max(axis=1)
    coincident = ~(largest > 4 * np.finfo(z.dtype).eps * spread)
    if coincident.any():
        raise RowError(
            f"The landmarks of specimen {{0}} of {name} all coincide: it has no shape. Remove it.",
            int(np.argmax(coincident)),
        )
    return centered / np.linalg.norm(centered, axis=1, keepdims=True)


def _centered(z: Array, name: str) -> tuple[Array, Array]:
    """Return centred landmarks divided by their largest absolute value, and that value.

    With this scaling no square overflows or underflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        centered = z - z.mean(axis=1, keepdims=True)
        largest = np.abs(centered).max(axis=1)
    if not np.all(np.isfinite(largest)):
        raise RowError(
            f"The landmarks of specimen {{0}} of {name} are too large: their differences overflow. "
            "Rescale them.",
            int(np.argmin(np.isfinite(largest))),
        )
    # real division: complex division overflows for tiny divisors
    real_view = centered.view(centered.real.dtype)
    real_view /= np.where(largest > 0, largest, 1)[:, None]
    return centered, largest


def preshape(X: ArrayLike) -> Array:
    """Remove location and size.

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks.

    Returns
    -------
    ndarray of the form of X
        Centred landmarks of centroid size 1.

    Examples
    --------
    >>> preshape([[0, 0, 4, 0, 2, 3]]).round(3)
    array([[-0.535, -0.267,  0.535, -0.267,  0.   ,  0.535]])
    """
    return in_form(complex_preshapes(X), form_of(X))


def helmertize(X: ArrayLike) -> Array:
    r"""Remove location with the Helmert matrix, which leaves k - 1 landmarks.

    Row j of the (k - 1) x k matrix has j entries :math:`-1/\sqrt{j(j+1)}`, then one entry
    :math:`j/\sqrt{j(j+1)}`, then zeros. The rows are orthonormal, and orthogonal to constant
    vectors. Size is preserved.

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks.

    Returns
    -------
    ndarray of the form of X, with k - 1 landmarks
        Helmertised landmarks, of the same centroid size.

    Examples
    --------
    >>> helmertize([[0, 0, 2, 0, 1, 3]]).round(3)
    array([[1.414, 0.   , 0.   , 2.449]])
    """
    z = as_complex(X)
    matrix = -scipy.linalg.helmert(z.shape[1]).astype(z.real.dtype)
    return in_form(z @ matrix.T, form_of(X))


def centroid_size(X: ArrayLike) -> Array:
    """Return the root of the sum of squared distances from the centroid, shape (n,).

    Examples
    --------
    >>> centroid_size([[0, 0, 2, 0, 1, 3]]).round(6)
    array([2.828427])
    """
    centered, largest = _centered(as_complex(X), "X")
    return largest * np.linalg.norm(centered, axis=1)


# ---------------------------------------------------------------------------- the mean


def extrinsic_mean(X: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    r"""Return the mean shape of the Veronese-Whitney embedding, :math:`[z] \mapsto uu^*`.

    It is the shape of the leading eigenvector of :math:`\sum_n w_n u_n u_n^*`; the full Procrustes
    mean is the same (Kent 1992).

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks.
    sample_weight : array-like of shape (n,), optional
        Weights.

    Returns
    -------
    ndarray of the form of one specimen
        A pre-shape, rotated to the first specimen of positive weight.

    Warns
    -----
    UserWarning
        If the two largest eigenvalues are equal: the mean is then not defined.

    Examples
    --------
    >>> kites = [[0, 0, 1, 1, 0, 3, -1, 1], [0, 0, 1, 2, 0, 3, -1, 2]]
    >>> extrinsic_mean(kites).round(3) + 0.0  # halfway
    array([ 0.   , -0.588,  0.392,  0.   ,  0.   ,  0.588, -0.392,  0.   ])
    """
    u = complex_preshapes(X)
    weights = check_sample_weight(sample_weight, len(u), "extrinsic_mean")
    return in_form(mean_preshape(u, weights), form_of(X))


def mean_preshape(u: Array, weights: Floats | None = None) -> Array:
    """Return the extrinsic mean of complex pre-shapes.

    Parameters
    ----------
    u : ndarray of shape (n, k), complex
        Pre-shapes.
    weights : ndarray of shape (n,), optional
        Weights.

    Returns
    -------
    ndarray of shape (k,), complex
        A pre-shape.
    """
    w = np.ones(len(u)) if weights is None else weights
    scaled = np.sqrt(w / w.sum())[:, None] * u.astype(np.complex128)
    values, vectors = np.linalg.eigh(scaled.T @ scaled.conj())
    if values[-1] - values[-2] <= _TIE * values[-1]:
        warn_user(
            "The extrinsic mean is not defined: the two largest eigenvalues of the mean embedding "
            "are equal. One of several solutions is returned."
        )
    mean = vectors[:, -1] - vectors[:, -1].mean()
    mean /= np.linalg.norm(mean)
    first = u[int(np.argmax(w > 0))].astype(np.complex128)
    return (mean * phase(np.vdot(mean, first))).astype(u.dtype)


def rotated_to(u: Array, center: Array) -> Array:
    """Return complex pre-shapes rotated so that their products with `center` are positive."""
    return (u * phase(u.conj() @ center)[:, None]).astype(u.dtype, copy=False)


def squared_remainders(u: Array, v: Array, products: Array, i: Indices, j: Indices) -> Floats:
    """Return ‖v_j - u_i p_ij‖² for pairs (i, j) of rows, with the products p = u*v."""
    found, step = np.empty(len(i)), max(1, 2**20 // u.shape[1])
    for start in range(0, len(i), step):
        m, n = i[start : start + step], j[start : start + step]
        residuals = v[n] - u[m] * products[m, n, None]
        found[start : start + step] = (residuals.real**2 + residuals.imag**2).sum(axis=1)
    return found


def phase(product: Any) -> Any:
    """Return z/|z|, or 1 where z is 0."""
    size = np.abs(product)
    return np.where(size > 0, product / np.where(size > 0, size, 1), 1)


# ---------------------------------------------------------------------------- distances


# √(1 - |u*v|²) below this is computed from the vectors: cancellation would cause relative errors of
# 2e-12 in float64 and 1e-5 in float32.
_CANCELLATION = {np.dtype(np.complex128): 0.01, np.dtype(np.complex64): 0.1}


def _sines(X: ArrayLike, Y: ArrayLike | None) -> tuple[Array, Array]:
    """Return √(1 - |u*v|²), accurate even for similar shapes, and |u*v| for all pairs."""
    u = complex_preshapes(X)
    v = u if Y is None else complex_preshapes(Y, "Y")
    if u.shape[1] != v.shape[1]:
        raise ValueError(
            f"X has {u.shape[1]} landmarks and Y has {v.shape[1]}; both must have the same number."
        )
    lower_precision = min(u.dtype, v.dtype, key=lambda precision: precision.itemsize)
    products = u.conj() @ v.T
    cosines = np.minimum(np.abs(products), 1.0)
    sines = np.sqrt((1 - cosines) * (1 + cosines))
    u, v = (vectors.astype(products.dtype, copy=False) for vectors in (u, v))
    i, j = np.nonzero(sines < _CANCELLATION[lower_precision])
    sines[i, j] = np.sqrt(squared_remainders(u, v, products, i, j))
    if Y is None:
        np.fill_diagonal(sines, 0.0)
    return sines, cosines


def procrustes_distance(X: ArrayLike, Y: ArrayLike | None = None, *, kind: str = "full") -> Array:
    r"""Return Procrustes distances between shapes.

    .. math:: d_F = \sqrt{1 - |u^* v|^2}, \qquad d_P = \sqrt{2 (1 - |u^* v|)}

    ``"full"`` minimises over rotations and sizes, ``"partial"`` over rotations of pre-shapes.
    ``"extrinsic"`` is the distance of the Veronese-Whitney embedding, ‖uu* - vv*‖ = √2 d_F.

    Parameters
    ----------
    X, Y : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks. Y defaults to X.
    kind : {"full", "partial", "extrinsic"}, default="full"
        The distance.

    Returns
    -------
    ndarray of shape (n, m)
        Distances.

    Examples
    --------
    >>> square = [0, 0, 1, 0, 1, 1, 0, 1]
    >>> turned = [5, 5, 5, 7, 3, 7, 3, 5]
    >>> procrustes_distance([square], [turned]).round(12)
    array([[0.]])
    """
    check_choice(kind, ("full", "partial", "extrinsic"), "kind", "procrustes_distance")
    sines, cosines = _sines(X, Y)
    if kind == "partial":  # 2 (1 - c) = 2 s² / (1 + c)
        return sines * np.sqrt(2 / (1 + cosines))
    return sines if kind == "full" else np.sqrt(2.0).astype(sines.dtype) * sines


def riemannian_distance(X: ArrayLike, Y: ArrayLike | None = None) -> Array:
    """Return geodesic distances in shape space, arccos|u*v|, between 0 and π/2.

    Parameters
    ----------
    X, Y : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks. Y defaults to X.

    Returns
    -------
    ndarray of shape (n, m)
        Distances.

    Examples
    --------
    >>> equilateral = [0, 0, 2, 0, 1, 3**0.5]
    >>> mirrored = [0, 0, 2, 0, 1, -(3**0.5)]
    >>> riemannian_distance([equilateral], [mirrored]).round(4)
    array([[1.5708]])
    """
    sines, cosines = _sines(X, Y)
    return np.arctan2(sines, cosines)


# ---------------------------------------------------------------------------- alignment


def procrustes_align(
    X: ArrayLike,
    reference: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    size: str = "unit",
) -> Array:
    r"""Rotate specimens to a reference.

    In the plane, generalised Procrustes analysis has a closed form: :math:`u_n e^{i\theta_n}` with
    :math:`e^{i\theta_n} = u_n^* \mu / |u_n^* \mu|` and the extrinsic mean μ as the reference.

    Parameters
    ----------
    X : array-like of shape (n, k) complex, (n, k, 2) or (n, 2k)
        Landmarks.
    reference : array-like, optional
        Landmarks of one specimen, in any form. Default: the :func:`extrinsic_mean` of X.
    sample_weight : array-like of shape (n,), optional
        Weights for the extrinsic mean of X.
    size : {"unit", "full", "own"}, default="unit"
        Centroid size of the result. ``"unit"``: 1. ``"full"``: :math:`|u_n^* \mu|`, which minimises
        the distance from the reference (full Procrustes coordinates). ``"own"``: the original size.

    Returns
    -------
    ndarray in the same form as X
        Aligned specimens, centred.

    Examples
    --------
    >>> square = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    >>> turned = [5.0, 5.0, 5.0, 7.0, 3.0, 7.0, 3.0, 5.0]
    >>> procrustes_align([square, turned], size="own").round(6)
    array([[-0.5, -0.5,  0.5, -0.5,  0.5,  0.5, -0.5,  0.5],
           [-1. , -1. ,  1. , -1. ,  1. ,  1. , -1. ,  1. ]])
    """
    check_choice(size, ("unit", "full", "own"), "size", "procrustes_align")
    u = complex_preshapes(X)
    if reference is None:
        weights = check_sample_weight(sample_weight, len(u), "procrustes_align")
        center = mean_preshape(u, weights)
    else:
        array = as_array(reference, "reference", "procrustes_align")
        center = complex_preshapes(array[None], "reference")[0]
        if len(center) != u.shape[1]:
            raise ValueError(
                f"reference has {len(center)} landmarks, and the specimens have {u.shape[1]}; both "
                "must have the same number."
            )
    aligned = rotated_to(u, center)
    if size == "own":
        aligned *= centroid_size(X)[:, None]
    elif size == "full":
        aligned *= np.abs(u.conj() @ center)[:, None]
    return in_form(aligned, form_of(X))
