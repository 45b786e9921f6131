"""Explicit features by the Nyström method: coordinates of all points in the span of a few."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.memory import format_bytes, parse_bytes
from .._core.random import one_seed
from .._core.threads import run_in_threads
from ..kernels import Kernel, Precomputed
from ..kernels.base import rectangular_block
from .factory import gram_operator
from .pivots import PARTS, checked_rows, independent_part, partial_cholesky, pivot_rows

__all__ = ["Landmarks", "NystroemFeatures", "choose_landmarks", "nystroem_features"]

Result = TypeVar("Result")

# Landmarks are chosen among so many rows at the most, or so many for each of them: what is left of
# every candidate has to be kept up to date, which for all rows of large data takes longer than the
# features themselves.
_CANDIDATES = 2**16
_CANDIDATES_PER_LANDMARK = 64
_FACTOR = 2**26  # numbers in their factor: half a gigabyte; whatever the budget, the same landmarks

# Kernel values that a thread holds at a time: what fits a cache.
_BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class Landmarks:
    """A few points, none of which depends on the others, and the map to features by them.

    Attributes
    ----------
    points : validated data of shape (m, ...) or None
        The landmarks; None for a precomputed kernel.
    indices : ndarray of shape (m,) or None
        Which rows of the training data they are; None where they are others.
    decoder : ndarray of shape (m, m)
        R⁻¹ with K_mm = RᵀR, in float64: features are ``k(x, landmarks) @ decoder``.
    """

    points: Any
    indices: NDArray[np.intp] | None
    decoder: NDArray[np.float64]


class Candidates(NamedTuple):
    """The rows among which landmarks are chosen, and how often each counts."""

    rows: NDArray[np.intp] | slice
    weights: NDArray[np.float64]


def choose_landmarks(
    kernel: Kernel,
    X: Any,
    n_landmarks: int,
    *,
    landmarks: Any = "rpcholesky",
    tol: float = 0.0,
    sample_weight: NDArray[np.float64] | None = None,
    scale: float = 1.0,
    random_state: Any = None,
) -> Landmarks:
    """Choose landmarks among the rows of X, or take those that are given.

    Landmarks that depend on the others, copies among them, are left out. Where X has no more rows
    than landmarks are asked for, and there is no `tol`, all of its rows are taken.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel; with :class:`~orthodrome.kernels.Precomputed`, X is the matrix itself.
    X : validated data
        What ``kernel.validate`` returned.
    n_landmarks : int
        The most landmarks; of landmarks that are given all are taken.
    landmarks : {"rpcholesky", "uniform", "k-means++"} or array-like, default="rpcholesky"
        How they are chosen (:func:`partial_cholesky`); or numbers of rows, as integers in one
        dimension; or points.
    tol : float, default=0.0
        Take no more once the trace of what the features leave out is at most tol times the trace.
        (Among the candidates, see the notes; points that are given are all taken.)
    sample_weight : ndarray of shape (n,), optional
        Weights; rows of weight 0 are not chosen.
    scale : float, default=1.0
        What kernel values are multiplied by.
    random_state : int, RandomState, Generator or None
        Source of the draws.

    Returns
    -------
    Landmarks
        The landmarks and the map to features.

    Notes
    -----
    Of more than 65,536 rows (64 per landmark, if that is more; fewer where landmarks are many) so
    many are drawn first, evenly and with the weights, and landmarks are chosen among them: the
    search takes a factor of all candidates.

    Examples
    --------
    >>> from orthodrome.kernels import Linear
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> found = choose_landmarks(Linear().fit(X), X, 6)
    >>> found.points.shape, found.decoder.shape
    ((2, 2), (2, 2))
    """
    precomputed = isinstance(kernel, Precomputed)
    if not isinstance(landmarks, str) and not _are_rows(landmarks):
        if precomputed:
            raise ValueError(
                "Landmarks of a precomputed kernel must be numbers of rows: it has no points."
            )
        points, indices = kernel.validate(landmarks, reset=False), None
    else:
        indices = _chosen_rows(kernel, X, n_landmarks, landmarks, tol, sample_weight, random_state)
        points = None if precomputed else X[indices]
    if precomputed and indices is not None:
        matrix = X[np.ix_(indices, indices)]
    else:
        prepared = kernel.prepare(points)
        matrix = rectangular_block(kernel, prepared, prepared)
    kept, decoder = independent_part(matrix * scale, PARTS[np.dtype(X.dtype)])
    if not len(kept):  # all are 0: one of them stands for it
        kept, decoder = np.zeros(1, dtype=np.intp), np.zeros((1, 1))
    return Landmarks(
        points=None if precomputed else points[kept],
        indices=None if indices is None else indices[kept],
        decoder=decoder,
    )


def _are_rows(landmarks: Any) -> bool:
    return not hasattr(landmarks, "tocsr") and np.asarray(landmarks).ndim == 1


def _chosen_rows(
    kernel: Kernel,
    X: Any,
    count: int,
    landmarks: Any,
    tol: float,
    weights: NDArray[np.float64] | None,
    random_state: Any,
) -> NDArray[np.intp]:
    """Return the rows that are landmarks, before those that depend on others are left out."""
    n = X.shape[0]
    every = np.arange(n) if weights is None else np.flatnonzero(weights)
    if not isinstance(landmarks, str):
        return checked_rows(landmarks, n)
    if len(every) <= count and not tol:
        return every
    random = np.random.default_rng(one_seed(random_state))
    if isinstance(kernel, Precomputed):
        among = Candidates(slice(None), np.ones(n) if weights is None else weights)
        gram = gram_operator(kernel, X)
    else:
        among = _candidates(n, weights, count, random)
        gram = gram_operator(kernel, X[among.rows], storage="recompute")
    if landmarks != "rpcholesky" and not tol:
        chosen = pivot_rows(gram, landmarks, count, among.weights, random)
    else:
        chosen = partial_cholesky(
            gram,
            max_rank=count,
            tol=tol,
            pivots=landmarks,
            sample_weight=among.weights,
            random_state=random,
        ).pivots
    if not len(chosen):
        return every[:1]
    return np.arange(n)[among.rows][chosen]


def _candidates(
    n: int,
    weights: NDArray[np.float64] | None,
    count: int,
    random: np.random.Generator,
) -> Candidates:
    """Return all rows, or some that are drawn evenly over the sum of the weights."""
    most = max(_CANDIDATES, _CANDIDATES_PER_LANDMARK * count)
    most = max(2 * count, min(most, _FACTOR // count))
    given = np.ones(n) if weights is None else weights
    if n <= most:
        return Candidates(slice(None), given)
    sums = np.cumsum(given)
    places = (np.arange(most) + random.random()) / most * sums[-1]
    rows = np.minimum(np.searchsorted(sums, places, side="right"), np.flatnonzero(given)[-1])
    rows, counts = np.unique(rows, return_counts=True)
    return Candidates(rows, counts.astype(np.float64))


def nystroem_features(
    kernel: Kernel,
    X: Any,
    landmarks: Landmarks,
    *,
    unit: bool = False,
    scale: float = 1.0,
    memory_budget: str | float = "2GiB",
    storage: str = "auto",
) -> NystroemFeatures:
    """Make the features of all rows by landmarks; see :class:`NystroemFeatures`.

    ``storage="auto"`` keeps them in memory where they fit the budget, else computes them anew for
    each product (of a callable, which may be slow: keeps them on disk).

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian
    >>> X = np.arange(5.0)[:, None]
    >>> kernel = Gaussian(sigma=1.0).fit(X)
    >>> features = nystroem_features(kernel, X, choose_landmarks(kernel, X, 5))
    >>> bool(np.allclose(features.toarray() @ features.toarray().T, kernel(X)))
    True
    """
    values: _Values
    if isinstance(kernel, Precomputed):
        values = _GivenValues(X, landmarks.indices, scale)
    else:
        values = _KernelValues(kernel, X, landmarks.points, scale)
    needed = X.shape[0] * landmarks.decoder.shape[1] * np.dtype(X.dtype).itemsize
    budget = parse_bytes(memory_budget)
    if storage == "memory" and needed > budget:
        raise ValueError(
            f"storage='memory' does not fit: the features take {format_bytes(needed)}, the budget "
            f"is {format_bytes(budget)}. Raise memory_budget, or take storage='auto'."
        )
    if storage == "auto":
        beyond = "recompute" if kernel.threadsafe else "disk"
        storage = "memory" if needed <= budget else beyond
    return NystroemFeatures(values, landmarks.decoder, unit=unit, storage=storage)


class _Values:
    """Kernel values of the points (rows) with the landmarks, a block of rows at a time."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    serial: bool = False

    def block(self, rows: slice) -> NDArray[Any]:
        raise NotImplementedError


class _KernelValues(_Values):
    def __init__(self, kernel: Kernel, X: Any, landmarks: Any, scale: float) -> None:
        self._kernel, self._scale = kernel, scale
        self._points, self._landmarks = kernel.prepare(X), kernel.prepare(landmarks)
        self.shape = (len(self._points), len(self._landmarks))
        self.dtype = np.dtype(self._points.dtype)
        self.serial = not kernel.threadsafe

    def block(self, rows: slice) -> NDArray[Any]:
        values = rectangular_block(self._kernel, self._points[rows], self._landmarks)
        if self._scale != 1.0:
            values *= values.dtype.type(self._scale)
        return values.astype(self.dtype, copy=False)


class _GivenValues(_Values):
    def __init__(self, matrix: NDArray[Any], columns: Any, scale: float) -> None:
        self._matrix, self._columns = matrix, columns
        self._scale = matrix.dtype.type(scale)
        self.shape = (len(matrix), len(columns))
        self.dtype = matrix.dtype

    def block(self, rows: slice) -> NDArray[Any]:
        return self._matrix[rows][:, self._columns] * self._scale


class NystroemFeatures:
    r"""Features of points by landmarks, as a tall matrix of which only products are needed.

    .. math:: F = k(X, L)\,R^{-1}, \qquad K_{mm} = R^\top R, \qquad
        F F^\top = K_{nm} K_{mm}^{-1} K_{mn}

    are the coordinates of the points projected on the span of the landmarks. With `unit` each row
    is divided by its length, which puts it back on the sphere.

    Parameters
    ----------
    values : kernel values of points with landmarks
        As :func:`nystroem_features` makes them.
    decoder : ndarray of shape (m, r)
        R⁻¹.
    unit : bool, default=False
        Whether rows are divided by their lengths.
    storage : {"memory", "disk", "recompute"}
        Where features live between products.

    Attributes
    ----------
    shape : tuple
        (n, r).
    dtype : dtype
        That of the kernel values.
    """

    def __init__(
        self, values: _Values, decoder: NDArray[np.float64], *, unit: bool, storage: str
    ) -> None:
        self._values = values
        self.decoder = decoder
        self.unit = unit
        self.storage = storage
        self.shape = (values.shape[0], decoder.shape[1])
        self.dtype = values.dtype
        width = max(1, values.shape[1]) * self.dtype.itemsize
        self._step = int(np.clip(_BLOCK_BYTES // width, 256, 8192))
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
        with tempfile.TemporaryFile(prefix="orthodrome-features-") as file:
            return np.memmap(file, dtype=self.dtype, mode="w+", shape=self.shape)

    def _measure(self) -> None:
        """Compute all features once: their lengths, and themselves where they are kept."""
        stored = self._allocate()
        squares = np.empty(self.shape[0])

        def measure(blocks: Iterator[slice]) -> None:
            for rows in blocks:
                features = self._raw(rows)
                squares[rows] = _squared_lengths(features)
                if stored is not None:
                    stored[rows] = self._on_sphere(features, squares, rows)

        self._over_blocks(measure)
        if self.unit:
            check_in_span(squares)
            self._factors = 1.0 / np.sqrt(squares)
        self._stored, self._squares = stored, squares

    @property
    def squared_lengths(self) -> NDArray[np.float64]:
        """‖f‖² of each row before it was divided: what the landmarks hold of k(x, x)."""
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

        return run_in_threads(share, len(starts), serial=self._values.serial)

    # ------------------------------------------------------------------ products

    def block(self, rows: slice) -> NDArray[Any]:
        """Return the features of these rows."""
        if self._stored is not None:
            return self._stored[rows]
        if not self.unit:
            return self._raw(rows)
        return self._on_sphere(self._raw(rows), self.squared_lengths, rows)

    def apply(self, V: NDArray[Any]) -> NDArray[np.float64]:
        """Return F V for few columns, in float64."""
        product = np.empty((self.shape[0], V.shape[1]))
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

    def combine(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ w_n f_n, in float64."""

        def visit(blocks: Iterator[slice]) -> NDArray[np.float64]:
            total = 0.0
            for rows in blocks:
                w = weights[rows]
                if self._stored is not None:
                    total = total + w @ self._stored[rows]
                else:
                    w = w if self._factors is None else w * self._factors[rows]
                    total = total + w @ self._values.block(rows)
            return np.asarray(total, dtype=np.float64)

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
                    squares[rows] = _squared_lengths(features)
                z = moved(rows, features) * np.sqrt(weights[rows]).astype(self.dtype)[:, None]
                z = z.astype(self.dtype, copy=False)
                total += z.T @ z
            return total

        total = np.sum(self._over_blocks(visit), axis=0)
        if squares is not None:
            self._squares = squares
        return total

    def toarray(self) -> NDArray[Any]:
        """Return all features, shape (n, r); only this call makes them."""
        return np.array(self.block(slice(0, self.shape[0])))


def _squared_lengths(features: NDArray[Any]) -> NDArray[np.float64]:
    return np.einsum("ij,ij->i", features, features, dtype=np.float64)


def check_in_span(squares: NDArray[np.float64], first: int = 0, what: str = "X") -> None:
    """Raise where a point has no part in the span of the landmarks, and so no direction there."""
    lost = np.flatnonzero(~(squares > np.finfo(np.float64).tiny))
    if len(lost):
        raise ValueError(
            f"Row {first + int(lost[0])} of {what} is orthogonal to all landmarks: its features "
            "have no direction. Take more landmarks (n_landmarks), a wider kernel, or leave such "
            "rows out."
        )
