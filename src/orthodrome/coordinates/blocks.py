"""Map blocks of rows to vectors, with anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._core.checks import RowError
from .._core.threads import VALUE_WORK
from .._core.types import Array, Floats
from .._core.unit import squared_radius
from ..kernels import Kernel
from ..kernels.base import COMPILED_PAIRS, Prepared, rectangular_block
from .anchors import COMPILED_VALUES
from .pivots import check_captured, times_decoder

# Bytes of kernel values per block and thread; they should fit in a cache.
_BLOCK_BYTES = 2**21


@dataclass(frozen=True)
class AnchorMap:
    r"""The map given by anchors: :math:`f(x) = R^{-\top} k(L, x)`, with :math:`k(L, L) = R^\top R`.

    The vectors are the coordinates of the points projected on the span of the anchors. With `unit`
    they are normalised, which puts them back on the sphere.

    Attributes
    ----------
    kernel : Kernel
        A fitted kernel.
    anchors : Prepared or ndarray
        The anchors, prepared by the kernel; for a precomputed kernel, their columns in its matrix.
    decoder : ndarray of shape (m, m)
        R⁻¹, an upper triangle.
    dtype : dtype
        The precision of the vectors.
    unit : bool
        Whether vectors are normalised.
    radius : float or None
        The required k(x, x), by which kernel values are divided; None allows any value.
    scale : float
        Another factor by which kernel values are multiplied.
    explicit : bool
        Whether the kernel's own coordinates are used. The anchors are then the standard basis.
    stored : bool
        Whether the rows are already the vectors.
    """

    kernel: Kernel
    anchors: Any
    decoder: Floats
    dtype: np.dtype[Any]
    unit: bool = False
    radius: float | None = None
    scale: float = 1.0
    explicit: bool = False
    stored: bool = False

    @property
    def rows_at_once(self) -> int:
        """Maximum number of rows per block, so that a block fits in the cache."""
        width = max(1, len(self.anchors)) * self.dtype.itemsize
        return int(np.clip(_BLOCK_BYTES // width, 256, 8192))

    @property
    def work_per_row(self) -> float:
        """Approximate number of multiplications per row."""
        return float((16 if self.stored else VALUE_WORK) * len(self.anchors))

    def block(
        self, rows: Any, weights: Any = None, diagonal: Any = None, captured: Any = None
    ) -> Any:
        """Return rows as a block of points; `diagonal` and `captured` may be given if known."""
        if self.stored:
            return Block(rows, weights, diagonal, captured, self.unit)
        scale = self.scale / (self.radius or 1.0)
        if not isinstance(self.anchors, Prepared):  # rows of a Gram matrix
            values = rows[:, self.anchors] * rows.dtype.type(scale)
            values = values.astype(self.dtype, copy=False)
            return AnchorBlock(self, values, weights, diagonal, captured)
        points = self.kernel.prepare(rows)
        if diagonal is None:
            found = self.kernel.diagonal(points)
            if self.radius is not None:
                squared_radius(found, self.radius)
            elif not np.all(np.isfinite(found)):
                row = int(np.flatnonzero(~np.isfinite(found))[0])
                raise RowError("Kernel values overflow at row {0} of X; rescale the data.", row)
            diagonal = found.astype(np.float64) * scale
        if self.explicit:
            given = points.coordinates
            values = given.toarray() if scipy.sparse.issparse(given) else given
        else:
            if len(points) * len(self.anchors) >= COMPILED_VALUES:  # probably one of many blocks
                points = points.among(COMPILED_PAIRS)
            values = rectangular_block(self.kernel, points, self.anchors)
        if scale != 1.0:
            values = values * values.dtype.type(scale)
        return AnchorBlock(self, values.astype(self.dtype, copy=False), weights, diagonal, captured)


class Block:
    """Points of one block as vectors of R^m.

    Attributes
    ----------
    n : int
        Number of points.
    dtype : dtype
        The precision of the vectors.
    weights : ndarray of shape (n,) or None
        Weights of the points.
    diagonal : ndarray of shape (n,) or None
        k(x, x), scaled like the kernel values; None if unknown.
    captured : ndarray of shape (n,)
        Squared lengths of the vectors before they are normalised.
    lengths : ndarray of shape (n,) or 1.0
        Factors by which the vectors were divided.
    rows : array or None
        The rows that the points were computed from; None if they are not known.
    """

    rows: Any = None

    def __init__(
        self, vectors: Array, weights: Any, diagonal: Any, captured: Any, unit: bool
    ) -> None:
        self._values, self._unit = vectors, unit
        self.n, self.dtype = len(vectors), vectors.dtype
        self.weights, self.diagonal, self._captured = weights, diagonal, captured

    # not functools.cached_property, which locks on Python 3.11

    @property
    def captured(self) -> Floats:
        """Squared lengths of the vectors before they are normalised."""
        return self._captured

    @property
    def lengths(self) -> Any:
        """Factors by which the vectors were divided."""
        return np.sqrt(self.captured) if self._unit else 1.0

    def vectors(self) -> Array:
        """Return the vectors, shape (n, m)."""
        return self._values

    def products(self, V: Array) -> Floats:
        """Return the products of the vectors with the columns of V, in float64."""
        return np.asarray(self._values @ V, dtype=np.result_type(V, np.float64))

    def __matmul__(self, V: Array) -> Floats:
        return self.products(V)

    def combine(self, weights: Array) -> Array:
        """Return the weighted sum of the vectors, or one sum for each column of 2-D weights."""
        return np.asarray(weights.T @ self._values)


class AnchorBlock(Block):
    """Points given by their kernel values with the anchors.

    The vectors are values @ decoder, which is computed only when needed. For a product with few
    columns V, values @ (decoder @ V) is cheaper.
    """

    def __init__(
        self, anchor_map: AnchorMap, values: Array, weights: Any, diagonal: Any, captured: Any
    ) -> None:
        super().__init__(values, weights, diagonal, captured, anchor_map.unit)
        self._decoder = anchor_map.decoder
        self._projected: Any = None
        if anchor_map.explicit:  # the decoder is a multiple of the identity
            self._projected = values * values.dtype.type(self._decoder[0, 0])

    @property
    def _unnormalized(self) -> Array:
        if self._projected is None:
            self._projected = times_decoder(self._values, self._decoder)
        return self._projected

    @property
    def captured(self) -> Floats:
        """Squared lengths of the vectors before they are normalised."""
        if self._captured is None:
            vectors = self._unnormalized
            squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
            if self.diagonal is not None:
                check_captured(squares, self.diagonal)
            if self._unit:
                check_in_span(squares)
            self._captured = squares
        return self._captured

    def vectors(self) -> Array:
        """Return the vectors, shape (n, m)."""
        vectors = self._unnormalized
        return vectors / self.lengths.astype(self.dtype)[:, None] if self._unit else vectors

    def products(self, V: Array) -> Floats:
        """Return the products of the vectors with the columns of V, in float64."""
        return self.over_anchors(self._decoder @ V)

    def over_anchors(self, coefficients: Array) -> Floats:
        """Return products with linear combinations of the anchors, one per column."""
        products = self._values.astype(np.float64, copy=False) @ coefficients
        if self._unit:
            products /= self.lengths[:, None]
        return products

    def combine(self, weights: Array) -> Array:
        """Return the weighted sum of the vectors, or one sum for each column of 2-D weights."""
        values = self._values.astype(np.float64, copy=False)
        return ((weights.T / self.lengths) @ values) @ self._decoder


def check_in_span(squares: Floats) -> None:
    """Raise if a point is orthogonal to the span of the anchors."""
    outside = np.flatnonzero(~(squares > np.finfo(np.float64).tiny))
    if len(outside):
        raise RowError(
            "Row {0} of X is orthogonal to all anchors, so its features are 0. Use more anchors "
            "(n_anchors) or a wider kernel, or remove such rows.",
            int(outside[0]),
        )
