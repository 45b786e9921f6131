r"""Gaussian kernels of distances on manifolds: planar shapes and positive definite matrices.

The kernel of two planar shapes, given as landmarks z and w, is a function of their pre-shapes u and
v: the landmarks as complex numbers, centred and scaled to length 1. Most of these kernels are
functions of :math:`|u^* v|`, which does not depend on rotation. Landmarks are arrays of shape
(n, k) complex, (n, k, 2) real, or (n, 2k) flat; see :mod:`orthodrome.spaces`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from .._core.types import Array, Floats, Indices
from .._core.warn import warn_user
from ..spaces import check_spd, spd_exp, spd_log, symmetric_matrices, symmetric_vectors
from ..spaces.shapes import (
    as_complex,
    as_points,
    complex_preshapes,
    mean_preshape,
    preshape,
    rotated_to,
    squared_remainders,
)
from .bandwidth import mean_square, median_distance, scale_from_rule
from .base import ArrayKernel, Kernel, Prepared, block_dtype, loops_for
from .radial import Gaussian, Radial, gaussian, median_of_rows, squared_distances


class DistanceGaussian(Kernel):
    r"""A kernel :math:`\exp(-\rho(x, y)^2 / 2\sigma^2)` with a scale sigma, a number or a rule.

    ``"mean"``: 2σ² is the mean of ρ² over all pairs. ``"median"``: √2 σ is the median of ρ. Papers
    usually write σ² instead of 2σ². Their σ is √2 times this one; the kernel values are the same.
    """

    unit_norm = True
    accepts_sparse = False

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.sigma_ = scale_from_rule(
            self,
            X.dtype,
            mean_square=lambda: self._mean_square(X, sample_weight) / 2,
            median=lambda: self._median(X, sample_weight) / math.sqrt(2),
            resolution=self._resolution(X),
        )

    @abstractmethod
    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        """Return the mean of ρ² over all pairs, 0 if all points coincide."""

    @abstractmethod
    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        """Return the median of ρ over pairs."""

    def _resolution(self, X: Any) -> float:
        """Return the distance up to which points are considered equal."""
        return 0.0


class ExtrinsicGaussian(DistanceGaussian):
    """A Gaussian kernel of Euclidean distances between embedded points.

    A subclass implements ``_embed(X)``, which returns shape (n, n_coordinates).
    """

    @abstractmethod
    def _embed(self, X: Any) -> Array:
        """Return the embedding of validated data."""

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        vectors = self._embed(X)
        super()._resolve(vectors, sample_weight)
        self.kernel_ = Gaussian(self.sigma_).fit_validated(vectors, sample_weight)

    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        return mean_square(X, sample_weight)

    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        return median_of_rows(X, sample_weight)

    def _rescale(self) -> None:
        super()._rescale()
        self.kernel_ = self.kernel_.rescaled(self.sigma_)

    def prepare(self, X: Any) -> Prepared:
        """Embed, then prepare for the kernel on vectors."""
        return self.kernel_.prepare(self._embed(X))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        return self.kernel_.evaluate(a, b, out)


# Number of rows per block in sums over all pairs; with 2,000 points a block has 4 million entries.
_ROWS = 2048

# If 1 - |u*v|² is at most this, it is computed as ‖v - u (u*v)‖². Otherwise cancellation would
# cause relative errors of 2e-12 in float64 and 1e-5 in float32.
_CANCELLATION = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 0.01}

# If √(1 - |u*v|²) is at most this multiple of eps, it is rounding error of the pre-shapes.
_ROUNDING_FACTOR = 8


class ShapeKernel(ArrayKernel):
    """Base class of kernels of landmarks, given as complex, real or flat arrays."""

    def _as_arrays(self, X: Any) -> Array:
        """Return landmarks of shape (n, k, 2)."""
        return as_points(X)

    def as_vectors(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return vectors that represent shapes, and the map from vectors back to landmarks.

        The vectors are pre-shapes rotated to their mean.
        """
        u = complex_preshapes(X)
        u = rotated_to(u, self._center_of(u))
        return np.concatenate([u.real, u.imag], axis=1), _landmarks

    def _center_of(self, u: Array) -> Array:
        """Return the pre-shape to which the pre-shapes u are rotated."""
        return mean_preshape(u)

    def prepare(self, X: Any) -> Prepared:
        """Return pre-shapes, and pre-shapes rotated by 90 degrees, as real vectors."""
        return prepared_preshapes(complex_preshapes(X))


def prepared_preshapes(u: Array) -> Prepared:
    """Return complex pre-shapes as vectors (Re u, Im u) and (Im u, -Re u)."""
    return Prepared(
        np.concatenate([u.real, u.imag], axis=1), np.concatenate([u.imag, -u.real], axis=1)
    )


def squared_sines(a: Prepared, b: Prepared, out: Array | None = None) -> tuple[Array, Array]:
    """Return 1 - |u*v|² and |u*v|² for all pairs of pre-shapes u in a and v in b.

    |u*v|² is computed from two real matrix products. For similar shapes, digits of 1 - |u*v|² would
    cancel, so it is computed as ‖v - u (u*v)‖².
    """
    dtype = block_dtype(a, b)
    left, right, rotated = (
        array.astype(dtype, copy=False) for array in (a.coordinates, b.coordinates, b.per_point)
    )
    columns = np.ascontiguousarray(right.T)
    block = np.matmul(left, columns, out=out)
    other = left @ rotated.T
    if other.shape != block.shape or block.ndim != 2:
        # only a forged model file has such points; the compiled loop does not check bounds
        raise ValueError("The points of the model have inconsistent shapes. Fit the model again.")
    coarse = min(a.dtype, b.dtype, key=lambda precision: precision.itemsize)
    rounding_error = (_ROUNDING_FACTOR * float(np.finfo(coarse).eps)) ** 2
    limits = dtype.type(_CANCELLATION[coarse]), dtype.type(rounding_error)
    loops = loops_for(a, b)
    complements = _plain_complements if loops is None else loops.complements_from_products
    complements(block, other, left, columns, *limits)
    return block, other


def _plain_complements(
    real: Array, imaginary: Array, left: Array, right: Array, threshold: Any, rounding_error: Any
) -> None:
    """Do the same as the compiled loop `complements_from_products`."""
    products = real + 1j * imaginary
    np.minimum(real * real + imaginary * imaginary, 1, out=imaginary)
    np.subtract(1, imaginary, out=real)
    i, j = np.nonzero(real <= threshold)
    if len(i):
        u, v = (
            points[:, : len(right) // 2] + 1j * points[:, len(right) // 2 :]
            for points in (left, right.T)
        )
        remainders = squared_remainders(u, v, products, i, j)
        real[i, j] = np.where(remainders > rounding_error, remainders, 0)


class VeroneseWhitney(ShapeKernel, DistanceGaussian):
    r"""The extrinsic Gaussian kernel of planar shapes, in the Veronese-Whitney embedding.

    .. math:: k([z], [w]) = \exp\Bigl(-\frac{\rho^2}{2\sigma^2}\Bigr), \qquad
        \rho^2 = \|uu^* - vv^*\|_F^2 = 2 (1 - |u^* v|^2),

    with the pre-shapes u of z and v of w. The kernel is positive definite, and does not depend on
    the location, size and rotation of a specimen.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale σ. ``"mean"``: 2σ² is the mean of ρ² over all pairs. ``"median"``: √2 σ is the
        median of ρ over all pairs.

    Attributes
    ----------
    sigma_ : float
        The scale as a number.

    See Also
    --------
    FullProcrustes : The same kernel with another scale.

    Notes
    -----
    Lee and Patrangenaru write σ² instead of 2σ²: their σ is √2 times ours.

    References
    ----------
    Lee and Patrangenaru, "Extrinsic Kernel Ridge Regression Classifier for Planar Kendall Shape
    Space", 2019; Kent, "New directions in shape analysis", 1992.

    Examples
    --------
    >>> from orthodrome.kernels import VeroneseWhitney
    >>> square, kite = [0, 0, 1, 0, 1, 1, 0, 1], [0, 0, 1, 0, 2, 2, 0, 1]
    >>> VeroneseWhitney(sigma=0.5)([square, kite]).round(4)
    array([[1.    , 0.4832],
           [0.4832, 1.    ]])
    """

    # the ratio of ρ² to 1 - |u*v|²
    _factor = 2.0

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        block = squared_sines(a, b, out)[0]
        gaussian(block, self._factor / (2 * self.sigma_**2), loops_for(a, b))
        return block

    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        return self._factor * _mean_complement(X, sample_weight)

    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        return float(np.sqrt(self._factor)) * _median_of(lambda sines: sines, X, sample_weight)


class FullProcrustes(VeroneseWhitney):
    r"""The Gaussian kernel of the full Procrustes distance, :math:`d_F^2 = 1 - |u^* v|^2`.

    .. math:: k([z], [w]) = \exp(-d_F^2 / 2\sigma^2)

    with the pre-shapes u of z and v of w. It equals :class:`VeroneseWhitney` with √2 times this σ.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale σ; "mean" and "median" refer to d_F, as for :class:`VeroneseWhitney`.

    Attributes
    ----------
    sigma_ : float
        The scale as a number.

    Examples
    --------
    >>> from orthodrome.kernels import FullProcrustes
    >>> square, kite = [0, 0, 1, 0, 1, 1, 0, 1], [0, 0, 1, 0, 2, 2, 0, 1]
    >>> FullProcrustes(sigma=0.5 / 2**0.5)([square, kite]).round(4)
    array([[1.    , 0.4832],
           [0.4832, 1.    ]])
    """

    _factor = 1.0


class RiemannianShape(ShapeKernel, DistanceGaussian):
    r"""The Gaussian kernel of geodesic distances in shape space; **not positive definite**.

    .. math:: k([z], [w]) = \exp\Bigl(-\frac{\arccos^2 |u^* v|}{2\sigma^2}\Bigr)

    with the pre-shapes u of z and v of w. It is meant for comparisons. Gram matrices may have
    negative eigenvalues. Estimators then use only the positive eigenvalues or raise an error.
    ``fit`` issues a warning. The kernel is often written with σ² instead of 2σ²; that σ is √2 times
    ours.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale σ; "mean" and "median" refer to arccos|u*v|, as for :class:`VeroneseWhitney`.

    Attributes
    ----------
    sigma_ : float
        The scale as a number.

    Examples
    --------
    >>> from orthodrome.kernels import RiemannianShape
    >>> RiemannianShape().positive_definite
    False
    """

    positive_definite = False

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        super()._resolve(X, sample_weight)
        warn_user(
            "RiemannianShape is not positive definite: Gram matrices may have negative "
            "eigenvalues. Use VeroneseWhitney for a positive definite kernel."
        )

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        block = _squared_angles(*squared_sines(a, b, out))
        gaussian(block, 0.5 / self.sigma_**2, loops_for(a, b))
        return block

    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        return _mean_squared_angle(self.prepare(X), sample_weight)

    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        return _median_of(np.arcsin, X, sample_weight)


class ComplexGaussian(ShapeKernel, ExtrinsicGaussian):
    r"""The Gaussian kernel of pre-shapes rotated to the mean shape.

    .. math:: k([z], [w]) = \exp\Bigl(-\frac{\|\hat u - \hat v\|^2}{2\sigma^2}\Bigr), \qquad
        \hat u = u\, \frac{u^* \mu}{|u^* \mu|},

    with the pre-shapes u of z and v of w, and the extrinsic mean μ of the data to which the kernel
    is fitted. The map to :math:`\hat u` embeds all shapes that are not orthogonal to μ in
    :math:`\mathbb{C}^k`. Lee and Patrangenaru (see :class:`VeroneseWhitney`) mention a complex
    Gaussian kernel but do not define it; this definition is ours.

    Parameters
    ----------
    sigma : float, "mean" or "median", default="mean"
        The scale σ; "mean" and "median" refer to ‖û - v̂‖, as for :class:`VeroneseWhitney`.

    Attributes
    ----------
    sigma_ : float
        The scale as a number.
    mean_ : ndarray of shape (k, 2)
        The mean shape.

    Examples
    --------
    >>> from orthodrome.kernels import ComplexGaussian
    >>> triangles = [[0, 0, 2, 0, 1, 1], [0, 0, 0, 2, -1, 1], [0, 0, 2, 0, 1, 2]]
    >>> ComplexGaussian().fit(triangles)(triangles).round(3)[0]
    array([1.   , 1.   , 0.105])
    """

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        u = complex_preshapes(X)
        center = mean_preshape(u, sample_weight)
        self.mean_ = as_points(center[None])[0]
        super()._resolve(X, sample_weight)

    def _center_of(self, u: Array) -> Array:
        return as_complex(self.mean_[None])[0]

    def _resolution(self, X: Any) -> float:
        # rounding error of the distance between two specimens of the same shape
        return 64 * float(np.finfo(X.dtype).eps)

    def _embed(self, X: Any) -> Array:
        return self.as_vectors(X)[0]

    def prepare(self, X: Any) -> Prepared:
        """Rotate pre-shapes to the mean, then prepare for the kernel on vectors."""
        return ExtrinsicGaussian.prepare(self, X)


class HermitianLinear(ShapeKernel):
    r"""The complex inner product of pre-shapes, :math:`k(z, w) = u^* v`.

    The pre-shapes are u of z and v of w. Only classifiers that use distances to the span of a class
    accept this kernel, because a rotation of a specimen does not change the span of complex
    vectors. The kernel ridge regression classifier with this kernel is the naive ridge regression
    classifier of pre-shapes.

    Examples
    --------
    >>> from orthodrome.kernels import HermitianLinear
    >>> triangle = [0, 0, 2, 0, 1, 1]
    >>> turned = [0, 0, 0, 2, -1, 1]
    >>> HermitianLinear()([triangle], [turned]).round(6)
    array([[0.+1.j]])
    """

    unit_norm = True
    hermitian = True

    def prepare(self, X: Any) -> Prepared:
        """Return complex pre-shapes."""
        return Prepared(complex_preshapes(X))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        return np.matmul(a.coordinates.conj(), b.coordinates.T, out=out)


def _landmarks(vectors: Array) -> Array:
    """Return landmarks of centroid size 1, shape (n, k, 2), from vectors (Re z, Im z)."""
    k = vectors.shape[1] // 2
    return preshape(np.stack([vectors[:, :k], vectors[:, k:]], axis=-1))


def _mean_complement(X: Any, sample_weight: Floats | None) -> float:
    """Return the mean of 1 - |u*v|² over all pairs.

    It follows from the eigenvalues λ of the weighted mean of u u*, which sum to 1.
    """
    u = complex_preshapes(X).astype(np.complex128)
    p = np.ones(len(u)) if sample_weight is None else sample_weight
    eigenvalues = np.linalg.svd(np.sqrt(p / p.sum())[:, None] * u, compute_uv=False) ** 2
    # The mean is 1 - Σ λ². As Σ λ = 1, it equals Σ_{i>1} λ_i (1 + λ_1 - λ_i) without cancellation.
    found = float(eigenvalues[1:] @ (1 + eigenvalues[0] - eigenvalues[1:]))
    return found if found > (64 * np.finfo(X.dtype).eps) ** 2 else 0.0


def _mean_squared_angle(points: Prepared, sample_weight: Floats | None) -> float:
    """Return the mean of arccos²|u*v| over all pairs, computed in blocks of rows."""
    p = np.ones(len(points)) if sample_weight is None else sample_weight
    p = p / p.sum()
    total = 0.0
    for start in range(0, len(points), _ROWS):
        rows = slice(start, start + _ROWS)
        total += float(p[rows] @ (_squared_angles(*squared_sines(points[rows], points)) @ p))
    return total if total > (64 * np.finfo(points.dtype).eps) ** 2 else 0.0


def _squared_angles(sines_squared: Array, cosines_squared: Array) -> Array:
    """Return arccos²|u*v| from 1 - |u*v|² and |u*v|². Both arrays are overwritten."""
    sines = np.sqrt(sines_squared, out=sines_squared)
    cosines = np.sqrt(cosines_squared, out=cosines_squared)
    angles = np.arctan2(sines, cosines, out=sines)  # accurate for small and for large angles
    return np.square(angles, out=angles)


def _median_of(distance: Callable[[Any], Any], X: Any, sample_weight: Any) -> float:
    """Return the median of a distance over pairs; `distance` is a function of √(1 - |u*v|²)."""
    u = complex_preshapes(X)

    def pairwise(i: Indices, j: Indices) -> Array:
        blocks = [slice(start, start + 65_536) for start in range(0, len(i) or 1, 65_536)]
        return np.concatenate([distance(paired_sines(u[i[rows]], u[j[rows]])) for rows in blocks])

    found = median_distance(pairwise, len(u), sample_weight)
    return found if found > 64 * np.finfo(u.dtype).eps else 0.0


def paired_sines(u: Array, v: Array) -> Array:
    """Return √(1 - |u*v|²) for each pair of rows of u and v, accurate also for similar shapes."""
    products = np.einsum("ij,ij->i", u.conj(), v)
    return np.minimum(np.linalg.norm(v - u * products[:, None], axis=1), 1.0)


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


def has_profile(kernel: Kernel) -> bool:
    """Return whether a kernel is a known function of a squared distance."""
    return isinstance(kernel, (Radial, ExtrinsicGaussian, VeroneseWhitney))


def profile_of(kernel: Kernel) -> Radial:
    """Return a radial kernel with the same values: k(x, y) = h(d²) with its profile h.

    d² is the squared distance of :func:`squared_distances_of`; for shapes it is 1 - |u*v|², the
    squared full Procrustes distance.
    """
    if isinstance(kernel, Radial):
        return kernel
    if isinstance(kernel, ExtrinsicGaussian):
        return kernel.kernel_
    if isinstance(kernel, VeroneseWhitney):
        return Gaussian(kernel.sigma_ / np.sqrt(kernel._factor))
    raise TypeError(f"{type(kernel).__name__} is not a function of a distance.")


def squared_distances_of(
    kernel: Kernel, a: Prepared, b: Prepared, out: Array | None = None
) -> Array:
    """Return squared distances between points prepared by a kernel that has a profile."""
    if isinstance(kernel, VeroneseWhitney):
        return squared_sines(a, b, out)[0]
    return squared_distances(a, b, out)
