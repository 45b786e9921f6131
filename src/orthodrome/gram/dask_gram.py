"""Gram matrices of dask arrays, with one task per pair of blocks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._core.kinds import is_dask_array
from .._core.types import Array
from ..kernels.base import TILE, Kernel, block_dtype, rectangular_block
from ..rows.dask import (
    as_dask_array,
    as_row_blocks,
    blocks_of,
    bounds_of,
    computed,
    constant,
    reduced,
    rows_of,
    task,
)
from .base import CrossOperator, GramOperator, as_indices
from .tiled import CrossGram, TiledGram


class DaskGram(GramOperator):
    """The Gram matrix of a fitted kernel on a dask array, evaluated by the workers.

    A product K V runs one task per pair of blocks, which evaluates kernel values tile by tile and
    multiplies them by the rows of V. Blocks are sent between workers, never to the caller.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel.
    X : dask array of shape (n, ...)
        The points, in blocks of rows. Blocks that are not persisted are computed for every product.

    Notes
    -----
    One task computes the products for both (i, j) and (j, i) of a pair of blocks, unless V has so
    many columns that the two results are larger than a block of X.

    Examples
    --------
    >>> import dask.array as da
    >>> from orthodrome.kernels import Linear
    >>> X = da.arange(6, chunks=6).reshape(3, 2).rechunk((2, 2))
    >>> DaskGram(Linear().fit(np.ones((1, 2))), X) @ np.array([1.0, 0.0, 0.0])
    array([1., 3., 5.])
    """

    recomputes = True

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.points = as_row_blocks(X)
        n = self.points.shape[0]
        super().__init__(shape=(n, n), dtype=self.points.dtype)
        self.kernel = kernel
        self._diagonal: Array | None = None

    def _matmat(self, V: Array) -> Array:
        row_size = int(np.prod(self.points.shape[1:])) * self.dtype.itemsize
        if 2 * V.shape[1] * np.result_type(self.dtype, V.dtype).itemsize > row_size:
            return self.cross(self.points) @ V
        V = np.ascontiguousarray(V)
        V_blocks = [constant(V[rows]) for rows in bounds_of(self.points)]
        products = _symmetric_products(constant(self.kernel), blocks_of(self.points), V_blocks)
        return np.concatenate(computed(*products))

    def rows(self, indices: ArrayLike) -> Array:
        """Evaluate rows; their points are sent to all blocks."""
        chosen = as_indices(indices, self.shape[0])
        return self.cross(rows_of(self.points, chosen)).toarray()

    def toarray(self) -> Array:
        """Return the whole matrix, evaluated by the workers."""
        return self.cross(self.points).toarray()

    def diagonal(self) -> Array:
        """Return k(x, x) for each point."""
        if self._diagonal is None:
            kernel, values = constant(self.kernel), task(_diagonal_values)
            found = computed(*[values(kernel, block) for block in blocks_of(self.points)])
            self._diagonal = np.concatenate(found)
        return self._diagonal.copy()

    def cross(self, X_new: Any) -> DaskCross:
        """Return the operator k(X_new, X); X_new is the result of ``kernel.validate``."""
        return DaskCross(self.kernel, X_new, self.points)


class DaskCross(CrossOperator):
    """The rectangular matrix k(X_new, X), where one or both are dask arrays."""

    def __init__(self, kernel: Kernel, new: Any, points: Any) -> None:
        self.new, self.points = (as_row_blocks(X) if is_dask_array(X) else X for X in (new, points))
        dtype = np.result_type(self.new.dtype, self.points.dtype)
        super().__init__(shape=(new.shape[0], points.shape[0]), dtype=dtype)
        self.kernel = kernel

    def _matmat(self, V: Array) -> Array:
        return np.concatenate(computed(*self._blocks_of_product(V)))

    def lazy_product(self, V: Array) -> Any:
        """Return the product with V as a dask array, in the blocks of the new points."""
        dtype = np.result_type(self.dtype, V.dtype)
        return as_dask_array(
            self._blocks_of_product(V),
            [rows.stop - rows.start for rows in _bounds(self.new)],
            np.empty((0, V.shape[1]), dtype=dtype),
        )

    def _blocks_of_product(self, V: Array) -> list[Any]:
        V = np.ascontiguousarray(V)
        V_blocks = [constant(V[rows]) for rows in _bounds(self.points)]
        return _products(constant(self.kernel), _blocks(self.new), _blocks(self.points), V_blocks)

    def rows(self, indices: ArrayLike) -> Array:
        """Evaluate the rows of these new points."""
        chosen = as_indices(indices, self.shape[0])
        new = rows_of(self.new, chosen) if is_dask_array(self.new) else self.new[chosen]
        return DaskCross(self.kernel, new, self.points).toarray()

    def toarray(self) -> Array:
        """Return the whole matrix."""
        rows, columns = _blocks(self.new), _blocks(self.points)
        kernel, values = constant(self.kernel), task(_values)
        tasks = [values(kernel, row, column) for row in rows for column in columns]
        blocks, width = list(computed(*tasks)), len(columns)
        return np.block([blocks[i : i + width] for i in range(0, len(blocks), width)])


def _blocks(X: Any) -> list[Any]:
    return blocks_of(X) if is_dask_array(X) else [constant(X)]


def _bounds(X: Any) -> list[slice]:
    return bounds_of(X) if is_dask_array(X) else [slice(0, X.shape[0])]


def _products(kernel: Any, rows: list[Any], columns: list[Any], V_blocks: list[Any]) -> list[Any]:
    """Return the row blocks of k(rows, columns) V."""
    product = task(_product)
    return [
        reduced([product(kernel, row, *pair) for pair in zip(columns, V_blocks, strict=True)], _sum)
        for row in rows
    ]


def _symmetric_products(kernel: Any, blocks: list[Any], V_blocks: list[Any]) -> list[Any]:
    """Return the row blocks of k(X, X) V, with one task per pair of blocks."""
    diagonal, pair = task(_diagonal_product), task(_pair_products)
    terms = [[diagonal(kernel, block, V)] for block, V in zip(blocks, V_blocks, strict=True)]
    for i in range(len(blocks)):
        for j in range(i + 1, len(blocks)):
            products = pair(kernel, blocks[i], blocks[j], V_blocks[i], V_blocks[j])
            terms[i].append(products[0])
            terms[j].append(products[1])
    return [reduced(term, _sum) for term in terms]


def _sum(*blocks: Array) -> Array:
    return functools.reduce(np.add, blocks)


def _product(kernel: Kernel, rows: Any, columns: Any, V: Array) -> Array:
    return CrossGram(kernel, kernel.prepare(rows), kernel.prepare(columns)) @ V


def _diagonal_product(kernel: Kernel, block: Any, V: Array) -> Array:
    return TiledGram(kernel, block, "recompute") @ V


def _pair_products(
    kernel: Kernel, rows: Any, columns: Any, V_rows: Array, V_columns: Array
) -> tuple[Array, Array]:
    """Return B V_columns and Bᵀ V_rows for B = k(rows, columns), evaluated in tiles."""
    a, b = kernel.prepare(rows), kernel.prepare(columns)
    dtype = block_dtype(a, b)
    scratch = np.empty(TILE * TILE, dtype=dtype)
    result_dtype = np.result_type(dtype, V_rows.dtype)
    above, below = (np.zeros((len(each), V_rows.shape[1]), dtype=result_dtype) for each in (a, b))
    for i in range(0, len(a), TILE):
        for j in range(0, len(b), TILE):
            left, right = a[i : i + TILE], b[j : j + TILE]
            out = scratch[: len(left) * len(right)].reshape(len(left), len(right))
            tile = kernel.evaluate(left, right, out)
            above[i : i + TILE] += tile @ V_columns[j : j + TILE]
            below[j : j + TILE] += tile.T @ V_rows[i : i + TILE]
    return above, below


def _values(kernel: Kernel, rows: Any, columns: Any) -> Array:
    return rectangular_block(kernel, kernel.prepare(rows), kernel.prepare(columns))


def _diagonal_values(kernel: Kernel, block: Any) -> Array:
    return kernel.diagonal(kernel.prepare(block))
