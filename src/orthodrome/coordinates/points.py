"""Points as vectors of R^m, read in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from .._core.checks import check_choice, check_finite_vector, check_positive
from .._core.kinds import is_dask_array
from .._core.types import Array, Floats, Indices
from ..gram.factory import check_ready, storage_within
from ..kernels import Kernel, Precomputed
from ..rows import ArrayRows, DaskRows, Rows
from ..rows.dask import in_memory
from .anchors import Anchors
from .blocks import AnchorMap, Block


def anchor_coordinates(
    kernel: Kernel,
    X: Any,
    anchors: Anchors,
    *,
    unit: bool = False,
    scale: float = 1.0,
    diagonal: Floats | None = None,
    memory_budget: str | float = "2GiB",
    storage: str = "auto",
) -> Coordinates:
    """Return coordinates of validated data, computed from anchors.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel.
    X : validated data, or dask array of such rows
        The rows; those of the Gram matrix if the kernel is precomputed.
    anchors : Anchors
        The anchors.
    unit : bool, default=False
        Whether vectors are normalised.
    scale : float, default=1.0
        Factor by which kernel values are multiplied.
    diagonal : ndarray of shape (n,), optional
        k(x, x) of the rows, times the scale; by default it is evaluated. If the squared length of a
        vector exceeds it, the kernel is not positive definite, and a ValueError is raised.
    memory_budget : str or number, default="2GiB"
        Maximum memory of the vectors.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where to store the vectors. "auto" uses memory within the budget; otherwise it recomputes
        them in every pass, or uses disk for kernels given as callables, which may be slow.

    Examples
    --------
    >>> from orthodrome.coordinates import choose_anchors
    >>> from orthodrome.kernels import Gaussian
    >>> X = np.arange(5.0)[:, None]
    >>> kernel = Gaussian(sigma=1.0).fit(X)
    >>> points = anchor_coordinates(kernel, X, choose_anchors(kernel, X, 5))
    >>> bool(np.allclose(points.toarray() @ points.toarray().T, kernel(X)))
    True
    """
    owner = "anchor_coordinates"
    check_ready(kernel, X, owner)
    check_positive(scale, "scale", owner)
    if diagonal is not None:
        diagonal = check_finite_vector(diagonal, X.shape[0], "diagonal", owner)
    check_choice(storage, ("auto", "memory", "disk", "recompute"), "storage", owner)
    if diagonal is None and isinstance(kernel, Precomputed) and X.shape[0] == X.shape[1]:
        diagonal = np.diagonal(X).astype(np.float64) * scale
    rows = _rows(X, kernel)
    given = anchors.prepared(kernel)
    anchor_map = AnchorMap(kernel, given, anchors.decoder, rows.dtype, unit=unit, scale=scale)
    return Coordinates(rows.zip(diagonal=diagonal), anchor_map).kept(storage, memory_budget)


def _rows(X: Any, kernel: Kernel) -> Rows:
    """Return validated data, or a dask array, as rows."""
    return DaskRows.of(X) if is_dask_array(X) else ArrayRows.of(X, serial=not kernel.threadsafe)


@dataclass(frozen=True)
class Sample:
    """Vectors of some points, and their weights, which sum to 1."""

    vectors: Array
    weights: Floats


@dataclass(frozen=True)
class Origin:
    """The mean of points with coordinates, and their covariance about it.

    Attributes
    ----------
    point : ndarray of shape (m,)
        The mean.
    covariance : ndarray of shape (m, m)
        The covariance of the points, or of their Log maps at the mean.
    total : float
        The variance in feature space, including the variance that the anchors do not span.
    term_size : float
        The size of the terms that are subtracted to get the covariance; rounding errors are
        proportional to it.
    count : float
        The sum of the weights.
    trace : float
        The mean of k(x, x).
    left_out : float
        The part of `trace` that the anchors do not span.
    attributes : dict
        Fitted attributes of the mean.
    converged : bool
        Whether the search for the mean reached its tolerance.
    """

    point: Floats
    covariance: Floats
    total: float
    term_size: float
    count: float
    trace: float
    left_out: float
    attributes: dict[str, Any] = field(default_factory=dict)
    converged: bool = True

    @property
    def trace_error(self) -> float:
        """The fraction of the trace that the anchors do not span."""
        return max(self.left_out, 0.0) / self.trace if self.trace > 0 else 0.0


class Coordinates:
    """Points as vectors of R^m, read in blocks from any kind of rows.

    Parameters
    ----------
    rows : Rows
        The data, with the columns ``weights`` and, if known, ``diagonal``, k(x, x), and
        ``captured``, the squared lengths of the vectors before they are normalised.
    by : AnchorMap
        The map from rows to vectors.

    Attributes
    ----------
    shape : tuple
        (n, m).
    dtype : dtype
        The precision of the vectors.
    unit : bool
        Whether the vectors are normalised.
    decoder : ndarray
        The map from kernel values with the anchors to vectors.
    weights : array of shape (n,) or None
        The weights of the points; None if they are equal.
    recomputes : bool
        Whether the vectors are recomputed in every pass.
    """

    def __init__(self, rows: Rows, by: AnchorMap) -> None:
        self.rows, self.by = rows, by
        self.shape = (rows.shape[0], by.decoder.shape[1])
        self.dtype, self.unit, self.decoder = by.dtype, by.unit, by.decoder
        self.weights = rows.columns.get("weights")
        self.recomputes = not by.stored

    # ------------------------------------------------------------------ passes

    def reduce(self, function: Callable[..., tuple[Any, ...]]) -> tuple[Any, ...]:
        """Sum the results of a function over blocks of points, in one pass."""
        return self.rows.reduce(_PointFunction(self.by, function))

    def map(self, function: Callable[[Block], Any], keep: str = "memory") -> Any:
        """Apply a function to blocks of points; return a dask array for lazy rows."""
        return self.rows.map(_PointFunction(self.by, function), keep)

    def kept(self, storage: str, memory_budget: str | float) -> Coordinates:
        """Return the same points with vectors stored, if they fit the budget.

        `storage` is as in :func:`anchor_coordinates`. If the vectors are normalised but not stored,
        their lengths are computed.
        """
        if self.rows.lazy:
            return self
        slow = getattr(self.rows, "serial", False)
        needed = self.shape[0] * self.shape[1] * self.dtype.itemsize
        storage, _ = storage_within(memory_budget, storage, needed, "the features take", slow=slow)
        if storage == "recompute":
            known = not self.unit or "captured" in self.rows.columns
            return self if known else Coordinates(self.rows.zip(captured=self.captured), self.by)
        return self.stored(storage)

    def stored(self, where: str) -> Coordinates:
        """Return the same points with vectors stored in "memory" or on "disk"."""
        vectors, captured, diagonal = self.map(_stored_values, where)
        columns = {"weights": self.weights, "captured": captured, "diagonal": diagonal}
        rows = ArrayRows.of(vectors).zip(**columns)
        return Coordinates(rows, replace(self.by, stored=True))

    # ------------------------------------------------------------------ as a tall matrix

    @property
    def captured(self) -> Floats:
        """Squared lengths of the vectors before they are normalised, (n,)."""
        return self._column("captured")

    @property
    def own(self) -> Floats:
        """k(x, x), scaled like the kernel values, (n,)."""
        return self._column("diagonal")

    def _column(self, name: str) -> Floats:
        known = self.rows.columns.get(name)
        return in_memory(self.map(attrgetter(name))) if known is None else known

    def apply(self, V: Array) -> Array:
        """Return the products of all vectors with a few columns, in float64."""
        return in_memory(self.map(methodcaller("products", V)))

    def combine(self, weights: Array) -> Array:
        """Return Σ w_n f_n in float64; if weights have several columns, one sum (row) for each."""
        return Coordinates(self.rows.zip(given=weights), self.by).reduce(_combined)[0]

    def take(self, indices: Indices) -> Array:
        """Return the vectors of these points, in this order."""
        return np.asarray(self.by.block(self.rows.take(indices)).vectors())

    def toarray(self) -> Array:
        """Return all vectors."""
        return np.asarray(in_memory(self.map(methodcaller("vectors"))))

    def of(self, X_new: Any) -> Coordinates:
        """Map new points in the same way; their vectors are recomputed in every pass."""
        return Coordinates(_rows(X_new, self.by.kernel), replace(self.by, stored=False))

    def sample(self, count: int) -> Sample:
        """Return at most `count` vectors, spread evenly over the weights."""
        numbers, counts = self.rows.spread(count, self.weights)
        return Sample(self.take(numbers), counts / counts.sum())


class _PointFunction:
    """Adapter that maps a block of rows to points and applies a function to them."""

    def __init__(self, anchor_map: AnchorMap, function: Any) -> None:
        self.anchor_map, self.function = anchor_map, function
        self.rows_at_once, self.work_per_row = anchor_map.rows_at_once, anchor_map.work_per_row

    def __call__(self, rows: Any, start: int, **columns: Any) -> Any:
        known = {name: columns.pop(name, None) for name in ("weights", "diagonal", "captured")}
        block = self.anchor_map.block(rows, **known)
        block.rows = rows
        return self.function(block, **columns)


def _combined(block: Block, given: Array) -> tuple[Array]:
    return (block.combine(given),)


def _stored_values(block: Block) -> tuple[Array, Array, Array]:
    diagonal = np.full(block.n, np.nan) if block.diagonal is None else block.diagonal
    return block.vectors(), block.captured, diagonal
