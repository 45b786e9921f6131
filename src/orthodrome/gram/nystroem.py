"""Explicit features by the Nyström method: coordinates of all points in the span of a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.checks import check_choice, check_finite_vector, check_positive
from .._core.files import temporary_map
from .._core.memory import format_bytes, parse_bytes
from .._core.threads import VALUE_WORK, run_in_threads
from ..kernels import Kernel, Precomputed
from ..kernels.base import rectangular_block
from .anchors import Anchors
from .factory import check_ready
from .pivots import check_captured
from .sources import OutOfSpanError

__all__ = [
    "NystroemFeatures",
    "OutOfSpanError",
    "check_in_span",
    "nystroem_features",
    "refuse_large_features",
]

Result = TypeVar("Result")

# Kernel values that a thread holds at a time: what fits a cache.
_BLOCK_BYTES = 2**22


def nystroem_features(
    kernel: Kernel,
    X: Any,
    anchors: Anchors,
    *,
    unit: bool = False,
    scale: float = 1.0,
    diagonal: NDArray[np.float64] | None = None,
    memory_budget: str | float = "2GiB",
    storage: str = "auto",
) -> NystroemFeatures:
    """Make the features of all rows by anchors; see :class:`NystroemFeatures`.

    `diagonal` is k(x, x) of the rows, times the scale. If it is given, features that are longer
    raise a ValueError: the kernel is not positive definite.

    ``storage="auto"`` keeps them in memory where they fit the budget, else computes them anew for
    each product (of a callable, which may be slow: keeps them on disk).

    Examples
    --------
    >>> from orthodrome.gram import choose_anchors
    >>> from orthodrome.kernels import Gaussian
    >>> X = np.arange(5.0)[:, None]
    >>> kernel = Gaussian(sigma=1.0).fit(X)
    >>> features = nystroem_features(kernel, X, choose_anchors(kernel, X, 5))
    >>> bool(np.allclose(features.toarray() @ features.toarray().T, kernel(X)))
    True
    """
    owner = "nystroem_features"
    check_ready(kernel, X, owner)
    check_positive(scale, "scale", owner)
    if diagonal is not None:
        diagonal = check_finite_vector(diagonal, X.shape[0], "diagonal", owner)
    check_choice(storage, ("auto", "memory", "disk", "recompute"), "storage", owner)
    values: _Values
    if isinstance(kernel, Precomputed):
        values = _GivenValues(X, anchors.indices, scale)
    else:
        values = _KernelValues(kernel, X, anchors.points, scale)
    needed = X.shape[0] * anchors.decoder.shape[1] * np.dtype(X.dtype).itemsize
    budget = parse_bytes(memory_budget)
    refuse_large_features(X, anchors.decoder.shape[1], memory_budget, storage)
    if storage == "auto":
        beyond = "recompute" if kernel.threadsafe else "disk"
        storage = "memory" if needed <= budget else beyond
    return NystroemFeatures(values, anchors.decoder, unit=unit, storage=storage, diagonal=diagonal)


def refuse_large_features(
    X: Any, n_anchors: int | None, memory_budget: str | float, storage: str
) -> None:
    """Raise if so many features of all rows are to be in memory, and would not fit.

    Before anchors are chosen, which takes long, it is the number asked for that counts (None:
    none was): points of low rank may need fewer, which ``storage="auto"`` waits to see.
    """
    if storage != "memory" or n_anchors is None:
        return
    columns = min(int(n_anchors), X.shape[0])
    needed, budget = X.shape[0] * columns * np.dtype(X.dtype).itemsize, parse_bytes(memory_budget)
    if needed > budget:
        raise ValueError(
            f"storage='memory' does not fit: the features take {format_bytes(needed)}, the budget "
            f"is {format_bytes(budget)}. Raise memory_budget, or take storage='auto'."
        )


class _Values:
    """Kernel values of the points (rows) with the anchors, a block of rows at a time."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    serial: bool = False

    def block(self, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
        raise NotImplementedError

    def of(self, X_new: Any) -> _Values:
        """Return those of other points with the same anchors."""
        raise NotImplementedError


class _KernelValues(_Values):
    def __init__(self, kernel: Kernel, X: Any, anchors: Any, scale: float) -> None:
        self._kernel, self._scale, self._given = kernel, scale, anchors
        self._points, self._anchors = kernel.prepare(X), kernel.prepare(anchors)
        self.shape = (len(self._points), len(self._anchors))
        self.dtype = np.dtype(self._points.dtype)
        self.serial = not kernel.threadsafe

    def block(self, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
        values = rectangular_block(self._kernel, self._points[rows], self._anchors)
        if self._scale != 1.0:
            values *= values.dtype.type(self._scale)
        return values.astype(self.dtype, copy=False)

    def of(self, X_new: Any) -> _KernelValues:
        return _KernelValues(self._kernel, X_new, self._given, self._scale)


class _GivenValues(_Values):
    def __init__(self, matrix: NDArray[Any], columns: Any, scale: float) -> None:
        self._matrix, self._columns = matrix, columns
        self._scale = matrix.dtype.type(scale)
        self.shape = (len(matrix), len(columns))
        self.dtype = matrix.dtype

    def block(self, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
        return self._matrix[rows][:, self._columns] * self._scale

    def of(self, X_new: Any) -> _GivenValues:
        return _GivenValues(X_new, self._columns, float(self._scale))


class NystroemFeatures:
    r"""Features of points by anchors, as a tall matrix of which only products are needed.

    .. math:: F = k(X, L)\,R^{-1}, \qquad K_{mm} = R^\top R, \qquad
        F F^\top = K_{nm} K_{mm}^{-1} K_{mn}

    are the coordinates of the points projected on the span of the anchors. With `unit` each row
    is divided by its length, which puts it back on the sphere.

    Parameters
    ----------
    values : kernel values of points with anchors
        As :func:`nystroem_features` makes them.
    decoder : ndarray of shape (m, r)
        R⁻¹.
    unit : bool, default=False
        Whether rows are divided by their lengths.
    storage : {"memory", "disk", "recompute"}
        Where features live between products.
    diagonal : ndarray of shape (n,), optional
        k(x, x), which no feature vector of a positive definite kernel exceeds.

    Attributes
    ----------
    shape : tuple
        (n, r).
    dtype : dtype
        That of the kernel values.
    """

    def __init__(
        self,
        values: _Values,
        decoder: NDArray[np.float64],
        *,
        unit: bool,
        storage: str,
        diagonal: NDArray[np.float64] | None = None,
    ) -> None:
        self._values = values
        self._diagonal = diagonal
        self.decoder = decoder
        self.unit = unit
        self.storage = storage
        self.shape = (values.shape[0], decoder.shape[1])
        self.dtype = values.dtype
        self._step = rows_per_block(values.shape[1], self.dtype)
        self._stored: NDArray[Any] | None = None
        self._squares: NDArray[np.float64] | None = None
        self._factors: NDArray[np.float64] | None = None
        if unit or storage != "recompute":  # else the first second moment measures them in passing
            self._measure()

    # ------------------------------------------------------------------ the first pass

    def _allocate(self) -> NDArray[Any] | None:
        if self.storage == "recompute":
            return None
        if self.storage == "memory":
            return np.empty(self.shape, dtype=self.dtype)
        return temporary_map("The matrix of features", self.shape, self.dtype)

    def _measure(self) -> None:
        """Compute all features once: their lengths, and themselves where they are kept."""
        stored = self._allocate()
        squares = np.empty(self.shape[0])

        def measure(blocks: Iterator[slice]) -> None:
            for rows in blocks:
                features = self._raw(rows)
                squares[rows] = squared_lengths(features)
                if stored is not None:
                    stored[rows] = self._on_sphere(features, squares, rows)

        self._over_blocks(measure)
        if self.unit:
            check_in_span(squares)
            self._factors = 1.0 / np.sqrt(squares)
        self._stored = stored
        self._keep_squares(squares)

    def _keep_squares(self, squares: NDArray[np.float64]) -> None:
        if self._diagonal is not None:
            check_captured(squares, self._diagonal)
        self._squares = squares

    @property
    def squared_lengths(self) -> NDArray[np.float64]:
        """‖f‖² of each row before it was divided: what the anchors hold of k(x, x)."""
        if self._squares is None:
            self._measure()
        return self._squares  # type: ignore[return-value]  # it was measured

    def _raw(self, rows: slice) -> NDArray[Any]:
        return self._values.block(rows) @ self.decoder.astype(self.dtype, copy=False)

    def _on_sphere(
        self, features: NDArray[Any], squares: NDArray[np.float64], rows: slice
    ) -> NDArray[Any]:
        if not self.unit:
            return features
        check_in_span(squares[rows], rows.start)
        return features / np.sqrt(squares[rows]).astype(self.dtype)[:, None]

    def _over_blocks(self, visit: Callable[[Iterator[slice]], Result]) -> list[Result]:
        """Let each thread visit its blocks of rows: one pass over the data."""
        starts = range(0, self.shape[0], self._step)

        def share(first: int, n_shares: int) -> Result:
            return visit(
                slice(start, min(start + self._step, self.shape[0]))
                for start in starts[first::n_shares]
            )

        work = VALUE_WORK * self.shape[0] * self._values.shape[1]
        return run_in_threads(share, len(starts), serial=self._values.serial, work=work)

    # ------------------------------------------------------------------ products

    def block(self, rows: slice) -> NDArray[Any]:
        """Return the features of these rows."""
        if self._stored is not None:
            return self._stored[rows]
        if not self.unit:
            return self._raw(rows)
        return self._on_sphere(self._raw(rows), self.squared_lengths, rows)

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the features of these rows, in any order."""
        if self._stored is not None:
            return np.asarray(self._stored[indices])
        features = self._values.block(indices) @ self.decoder.astype(self.dtype, copy=False)
        if self._factors is not None:
            features *= self._factors[indices, None].astype(self.dtype)
        return features

    def of(self, X_new: Any) -> NystroemFeatures:
        """Return the features of other points by the same anchors, computed when needed."""
        return NystroemFeatures(
            self._values.of(X_new), self.decoder, unit=self.unit, storage="recompute"
        )

    def apply(self, V: NDArray[Any]) -> NDArray[Any]:
        """Return F V for few columns, in float64."""
        product = np.empty((self.shape[0], V.shape[1]), dtype=np.result_type(V, np.float64))
        coefficients = self.decoder @ V

        def visit(blocks: Iterator[slice]) -> None:
            for rows in blocks:
                if self._stored is not None:
                    product[rows] = self._stored[rows] @ V
                    continue
                # the columns are few: kernel values times R⁻¹V, not features times V
                product[rows] = self._values.block(rows) @ coefficients
                if self._factors is not None:
                    product[rows] *= self._factors[rows, None]

        self._over_blocks(visit)
        return product

    def combine(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return Σ w_n f_n, in float64; of weights in several columns, one row for each.

        Blocks are multiplied in the precision of weights and features, and summed in float64.
        """
        columns = self.shape[1] if self._stored is not None else self._values.shape[1]

        def visit(blocks: Iterator[slice]) -> NDArray[Any]:
            total = np.zeros((*weights.shape[1:], columns), np.result_type(weights, np.float64))
            for rows in blocks:
                w = weights[rows].T
                if self._stored is not None:
                    total += w @ self._stored[rows]
                else:
                    w = w if self._factors is None else w * self._factors[rows]
                    total += w @ self._values.block(rows)
            return total

        total = np.sum(self._over_blocks(visit), axis=0)
        return total if self._stored is not None else total @ self.decoder

    def second_moment(
        self,
        weights: NDArray[np.float64],
        moved: Callable[[slice, NDArray[Any]], NDArray[Any]],
    ) -> NDArray[np.float64]:
        """Return Σ w_n z_n z_nᵀ of features that were moved: ``moved(rows, features)`` gives z.

        Blocks are multiplied in the precision of the features, and summed in float64.
        """
        squares = np.empty(self.shape[0]) if self._squares is None else None

        def visit(blocks: Iterator[slice]) -> NDArray[np.float64]:
            total = np.zeros((self.shape[1], self.shape[1]))
            for rows in blocks:
                features = self.block(rows)
                if squares is not None:
                    squares[rows] = squared_lengths(features)
                z = moved(rows, features) * np.sqrt(weights[rows]).astype(self.dtype)[:, None]
                z = z.astype(self.dtype, copy=False)
                total += z.T @ z
            return total

        total = np.sum(self._over_blocks(visit), axis=0)
        if squares is not None:
            self._keep_squares(squares)
        return total

    def toarray(self) -> NDArray[Any]:
        """Return all features, shape (n, r); only this call makes them."""
        return np.array(self.block(slice(0, self.shape[0])))


def log_maps(
    point: NDArray[np.float64],
    cosines: NDArray[np.float64],
    stretches: NDArray[np.float64],
    dtype: Any,
) -> Callable[[slice, NDArray[Any]], NDArray[Any]]:
    """Return what moves features to the tangent space of a point: rows become s (f - c μ)."""
    mean = point.astype(dtype)
    c, s = (array.astype(dtype)[:, None] for array in (cosines, stretches))
    return lambda rows, block: s[rows] * (block - c[rows] * mean)


def rows_per_block(n_anchors: int, dtype: np.dtype[Any]) -> int:
    """Return how many rows have kernel values with all anchors that fit a cache."""
    width = max(1, n_anchors) * dtype.itemsize
    return int(np.clip(_BLOCK_BYTES // width, 256, 8192))


def squared_lengths(features: NDArray[Any]) -> NDArray[np.float64]:
    """Return ‖f‖² of each row, in float64."""
    return np.einsum("ij,ij->i", features, features, dtype=np.float64)


def check_in_span(squares: NDArray[np.float64], first: int = 0, what: str = "X") -> None:
    """Raise where a point has no part in the span of the anchors, and so no direction there."""
    lost = np.flatnonzero(~(squares > np.finfo(np.float64).tiny))
    if len(lost):
        raise OutOfSpanError(first + int(lost[0]), what)
