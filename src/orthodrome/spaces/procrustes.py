r"""Procrustes distances between planar shapes, and alignment of specimens.

Both depend only on the products :math:`u^* v` of pre-shapes; see :mod:`orthodrome.spaces.shapes`
for the accepted forms of landmarks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._core.checks import as_array, check_choice, check_sample_weight
from .._core.types import Array
from .shapes import (
    centroid_size,
    complex_preshapes,
    form_of,
    in_form,
    mean_preshape,
    rotated_to,
    squared_remainders,
)

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
