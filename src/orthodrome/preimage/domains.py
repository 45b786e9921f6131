"""Where the points of a fixed point live, and how it moves there: vectors, and shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._core.types import Indices
from ..kernels import ComplexGaussian, Kernel, Radial, VeroneseWhitney
from ..kernels._prepared import Prepared
from ..kernels._profiles import profile_of, squares_of
from ..kernels.extrinsic import ExtrinsicGaussian
from ..kernels.shapes import paired_sines, prepared_preshapes
from ..spaces import as_points
from ..spaces.shapes import complex_preshapes, rotated_to

__all__ = ["Domain", "Shapes", "Vectors", "domain_of", "leading"]

# Directions in which a fixed point of shapes looks for its next step: with 3, shapes of 100
# landmarks need about as many steps as with the eigenvector itself.
_DIRECTIONS = 3
# And in which a mean shape to begin at is looked for.
_MEAN_DIRECTIONS = 8


class _Points(ABC):
    """Data as points of the space in which a fixed point moves.

    Attributes
    ----------
    kernel : Radial
        Its profile, of the squared distances here, is the kernel of the data.
    points : ndarray of shape (n, c)
        The data here.
    prepared : Prepared
        The same, for many blocks of distances.
    """

    kernel: Radial
    points: NDArray[Any]
    prepared: Prepared

    @abstractmethod
    def paired(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return squared distances of rows from rows, shape (n,)."""

    @abstractmethod
    def means(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return means of the data under rows of weights, which sum to 1, shape (m, c)."""

    @property
    def real_dtype(self) -> np.dtype[Any]:
        """The precision of distances."""
        return self.points.real.dtype

    def spread(self, p: NDArray[Any]) -> float:
        """Return the root mean squared distance of the data from their mean, weights p."""
        mean = np.broadcast_to(self.means(p[None]), self.points.shape)
        return float(np.sqrt(p @ self.paired(self.points, mean)))

    @cached_property
    def extent(self) -> float:
        """The spread of the data, without weights."""
        n = len(self.points)
        return self.spread(np.full(n, 1.0 / n))


class Vectors(_Points):
    """Vectors, or what is embedded among them.

    Parameters
    ----------
    kernel : Radial
        Fitted.
    points : ndarray of shape (n, d)
        The data.
    embed, back : callable, optional
        From inputs to vectors and back; default: they are the same.
    unit : bool, default=False
        Whether all vectors have length 1. Means of them are shorter, and are normalised.
    """

    search_tol = 0.0  # every start is followed to the end

    def __init__(
        self,
        kernel: Radial,
        points: NDArray[Any],
        embed: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        back: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        *,
        unit: bool = False,
    ) -> None:
        self.kernel = kernel
        self.points = points
        self.embed, self.back, self.unit = embed, back, unit
        self.prepared = kernel.prepare(points)

    def subset(self, rows: Indices) -> Self:
        """Return the domain of some of the data."""
        return type(self)(self.kernel, self.points[rows], self.embed, self.back, unit=self.unit)

    def prepare(self, z: NDArray[Any]) -> Prepared:
        """Make points ready for many blocks of distances."""
        return self.kernel.prepare(z)

    def squares(self, a: Prepared, b: Prepared) -> NDArray[Any]:
        """Return squared distances, shape (m, n)."""
        return squares_of(self.kernel, a, b)

    def paired(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return squared distances of rows from rows, shape (n,)."""
        difference = a - b
        return np.einsum("ij,ij->i", difference, difference)

    def means(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return means of the data under rows of weights, which sum to 1, shape (m, d)."""
        return self._on(weights @ self.points)

    def targets(self, z: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        """Return the weighted means, or, where weights have the wrong sign, away from them."""
        total, size = weights.sum(axis=1), np.abs(weights).sum(axis=1)
        usable = (np.abs(total) > 1e-12 * size) & (size > 0)
        # from the origin of the kernel, which keeps digits when the data lie far from 0
        sums = weights @ self.prepared.coordinates
        mean = sums / np.where(usable, total, 1.0)[:, None] + self.kernel.origin_
        toward = np.where(usable, -np.sign(total), 0.0)[:, None]
        return self._on(z + toward * (mean - z))

    def moved(
        self, z: NDArray[Any], targets: NDArray[Any], fraction: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return each z moved by a fraction of the way to its target, and how far."""
        step = fraction[:, None] * (targets - z)
        return self._on(z + step), np.linalg.norm(step, axis=1)

    def followed(self, z: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[Any], float]:
        """Return where the fixed point leads from one z, and how far, to all digits."""
        total = float(weights.sum())
        if not total < 0:
            return z, 0.0
        step = weights @ (self.points - z) / total
        if self.unit:
            step = self._on((z + step)[None])[0] - z
        return z + step, float(np.linalg.norm(step))

    def coordinates(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return validated inputs as vectors, shape (m, d)."""
        return inputs if self.embed is None else self.embed(inputs)

    def inputs(self, z: NDArray[Any]) -> NDArray[Any]:
        """Return vectors as inputs, of the form and precision of validated data."""
        return z if self.back is None else self.back(z)

    @property
    def largest_square(self) -> float:
        """What the rounding of squared distances is relative to."""
        return float(self.prepared.per_point.max()) if self.kernel.decreasing else 1.0

    def limit(self, tol: float) -> float:
        """Return the length of a step that is tol times the extent of the data."""
        rounding = 4 * float(np.finfo(self.points.dtype).eps * np.abs(self.points).max())
        # points that coincide to rounding have no scale: a step of rounding is none
        return tol * self.extent if self.extent > rounding else rounding

    def _on(self, z: NDArray[Any]) -> NDArray[Any]:
        """Normalise vectors, where all have length 1."""
        if not self.unit:
            return z
        lengths = np.linalg.norm(z, axis=1, keepdims=True)
        return z / np.where(lengths > 0, lengths, 1).astype(z.dtype)


class Shapes(_Points):
    r"""Planar shapes under the Veronese-Whitney kernel, as pre-shapes in complex128.

    The squared distance is :math:`1 - |u^* v|^2`. A sum of functions φ of those, with weights β, is
    stationary at eigenvectors of :math:`A = -\sum_n \beta_n \varphi'_n\, u_n u_n^*`, the leading
    one where it is largest and β is positive. That need not be found to the end in every step: the
    best u in the span of u, Au and A²u is as good, at a price of nk rather than nk² + k³. From u to
    there :math:`u^* A u` rises all along, and so the sum rises if the step is short enough.

    Parameters
    ----------
    kernel : VeroneseWhitney
        Fitted.
    u : ndarray of shape (n, k), complex128
        Pre-shapes.
    dtype : dtype
        The precision of the data.
    """

    search_tol = 1e-3  # tells the starts apart; only the best is followed farther
    largest_square = 1.0

    def __init__(self, kernel: VeroneseWhitney, u: NDArray[Any], dtype: Any) -> None:
        self.shape_kernel = kernel
        self.kernel = profile_of(kernel)
        self.points = u
        self.dtype = dtype
        self.prepared = self.prepare(u)

    def subset(self, rows: Indices) -> Self:
        """Return the domain of some of the data."""
        return type(self)(self.shape_kernel, self.points[rows], self.dtype)

    def prepare(self, z: NDArray[Any]) -> Prepared:
        """Make points ready for many blocks of distances."""
        return prepared_preshapes(z)

    def squares(self, a: Prepared, b: Prepared) -> NDArray[Any]:
        """Return squared full Procrustes distances, shape (m, n)."""
        return squares_of(self.shape_kernel, a, b)

    def paired(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return squared distances of rows from rows, shape (n,)."""
        return paired_sines(a, b) ** 2

    def means(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return mean shapes, about; they are for starts. Shape (m, k)."""
        begin = self.points[np.argmax(weights, axis=1)]
        return leading(self.points, weights, begin, _MEAN_DIRECTIONS)

    def targets(self, z: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        """Return the best shape in a few directions from each z, turned to it."""
        found = leading(self.points, -weights, z, _DIRECTIONS)
        return found * _turns(found, z)[:, None]

    def moved(
        self, z: NDArray[Any], targets: NDArray[Any], fraction: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return each z moved by a fraction of the way to its target, and how far."""
        there = z + fraction[:, None] * (targets - z)
        lengths = np.linalg.norm(there, axis=1, keepdims=True)
        there = there / np.where(lengths > 0, lengths, 1.0)
        return there, paired_sines(z, there)

    def followed(self, z: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[Any], float]:
        """Return where the fixed point leads from one z, and how far."""
        if not weights.sum() < 0:
            return z, 0.0
        target = self.targets(z[None], weights[None])
        return target[0], float(paired_sines(z[None], target)[0])

    def limit(self, tol: float) -> float:
        """Return the length of a step that is tol times the extent of the data, or rounding."""
        return max(tol * self.extent, 64 * float(np.finfo(self.points.dtype).eps))

    def coordinates(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return landmarks as pre-shapes, shape (m, k)."""
        return complex_preshapes(inputs).astype(np.complex128)

    def inputs(self, z: NDArray[Any]) -> NDArray[Any]:
        """Return pre-shapes as landmarks of size 1, turned to one of the data, shape (m, k, 2)."""
        return as_points(rotated_to(z, self.points[0])).astype(self.dtype, copy=False)


#: Where a fixed point moves.
Domain: TypeAlias = Vectors | Shapes


def domain_of(kernel: Kernel, X: NDArray[Any]) -> Domain:
    """Return where the fixed point of a fitted kernel moves, for validated data.

    See :func:`orthodrome.preimage.has_fixed_point`.
    """
    if isinstance(kernel, Radial):
        return Vectors(kernel, X)
    if isinstance(kernel, ExtrinsicGaussian):
        vectors, back = kernel.as_vectors(X)
        unit = isinstance(kernel, ComplexGaussian)
        return Vectors(kernel.kernel_, vectors, kernel._embed, back, unit=unit)
    if isinstance(kernel, VeroneseWhitney):
        return Shapes(kernel, complex_preshapes(X).astype(np.complex128), X.dtype)
    raise TypeError(f"{type(kernel).__name__} has no fixed point.")


def leading(
    u: NDArray[Any], weights: NDArray[Any], begin: NDArray[Any], n_directions: int
) -> NDArray[Any]:
    r"""Return unit vectors of large :math:`v^* A v`, :math:`A = \sum_n w_n u_n u_n^*`, from others.

    The largest in the span of b, Ab, A²b, … (Lanczos), for each row of weights and its b.

    Parameters
    ----------
    u : ndarray of shape (n, k), complex
        Pre-shapes.
    weights : ndarray of shape (m, n)
        Of any sign.
    begin : ndarray of shape (m, k), complex
        Unit vectors b; a row of zeros stays one.
    n_directions : int
        The dimension of the span, at most k - 1.

    Returns
    -------
    ndarray of shape (m, k), complex
        Unit vectors.
    """
    m, k = begin.shape
    size = min(n_directions, k - 1)  # landmarks about their centroid have no more
    conjugate = np.ascontiguousarray(u.conj().T)
    basis = np.zeros((m, size, k), dtype=begin.dtype)
    images = np.zeros_like(basis)
    total = np.abs(weights).sum(axis=1)  # no eigenvalue is larger
    basis[:, 0] = begin
    for j in range(size):
        images[:, j] = (basis[:, j] @ conjugate * weights) @ u
        if j + 1 < size:
            basis[:, j + 1] = _next_direction(basis[:, : j + 1], images[:, j], total)
    form = np.einsum("mik,mjk->mij", basis.conj(), images)
    # a direction that is none has the least value of all, whatever the signs
    missing = ~basis.any(axis=2)
    form[:, range(size), range(size)] -= 2 * total[:, None] * missing
    best = np.linalg.eigh((form + form.conj().transpose(0, 2, 1)) / 2)[1][:, :, -1]
    found = np.einsum("mj,mjk->mk", best, basis)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    usable = (lengths[:, 0] > 0) & (total > 0)
    return np.where(usable[:, None], found / np.where(lengths > 0, lengths, 1.0), begin)


def _next_direction(basis: NDArray[Any], image: NDArray[Any], total: NDArray[Any]) -> NDArray[Any]:
    """Return what an image has beyond a basis, of length 1, or 0 where that is rounding."""
    for _ in range(2):  # once leaves rounding of the first, larger one
        image = _beyond(basis, image)
    lengths = np.linalg.norm(image, axis=1)
    kept = lengths > 64 * np.finfo(lengths.dtype).eps * total
    # of what is hardly more than rounding, the centroid and the basis are left once more
    image = _beyond(basis, image / np.where(kept, lengths, 1.0)[:, None])
    return np.where(kept[:, None], image, 0.0)


def _beyond(basis: NDArray[Any], image: NDArray[Any]) -> NDArray[Any]:
    """Return images about their centroids, without their parts along a basis."""
    image = image - image.mean(axis=1, keepdims=True)
    return image - np.einsum("mj,mjk->mk", np.einsum("mjk,mk->mj", basis.conj(), image), basis)


def _turns(found: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of length 1 that turn rows to others."""
    products = np.einsum("ij,ij->i", found.conj(), z)
    sizes = np.abs(products)
    return np.where(sizes > 0, products / np.where(sizes > 0, sizes, 1.0), 1.0)
