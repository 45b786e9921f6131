"""Prepared points for kernel blocks, and norms of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._core.checks import RowError
from .._core.types import Array


def squared_norms(X: Any) -> Array:
    """Return the squared length of each row of an array or sparse array, in its dtype."""
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return np.einsum("ij,ij->i", X, X)


def finite_squared_norms(X: Any) -> Array:
    """Return the squared length of each row, or raise if it overflows."""
    with np.errstate(over="ignore"):
        norms = squared_norms(X)
    if not np.all(np.isfinite(norms)):
        row = int(np.flatnonzero(~np.isfinite(norms))[0])
        if np.isnan(norms[row]):
            raise RowError(
                "Row {0} has NaN: remove the row or impute its values. If the data have no NaN, "
                "their differences overflow; rescale the data.",
                row,
            )
        raise RowError(
            f"The values of row {{0}} are so large that their squares overflow in {X.dtype}; "
            "rescale the data.",
            row,
        )
    return norms


def unit_rows(X: Any) -> Any:
    """Return the rows of an array or sparse array divided by their lengths; zero rows stay zero.

    Each row is first divided by a power of two near its largest entry, which is exact, so that no
    square overflows or underflows.
    """
    largest = np.maximum(_dense(X.max(axis=1)), -_dense(X.min(axis=1)))
    powers = -np.frexp(largest)[1]
    if not scipy.sparse.issparse(X):
        scaled = np.ldexp(X, powers[:, None])
        scaled /= _zeros_to_ones(np.sqrt(squared_norms(scaled)))[:, None]
        return scaled
    scaled, counts = X.copy(), np.diff(X.indptr)
    scaled.data = np.ldexp(X.data, np.repeat(powers, counts))
    scaled.data /= np.repeat(_zeros_to_ones(np.sqrt(squared_norms(scaled))), counts)
    return scaled


def _dense(column: Any) -> Array:
    return np.asarray(column.todense() if scipy.sparse.issparse(column) else column).ravel()


def _zeros_to_ones(divisors: Array) -> Array:
    """Return divisors with zeros replaced by 1."""
    return np.where(divisors > 0, divisors, 1).astype(divisors.dtype)


def largest_entry(X: Any) -> float:
    """Return the largest absolute value in an array or sparse array."""
    return max(float(X.max()), -float(X.min()))


def smallest_accurate(dtype: Any) -> float:
    """Return the smallest kernel value with full precision and a finite reciprocal."""
    return 1e4 * float(np.finfo(dtype).tiny)


@dataclass(frozen=True)
class Prepared:
    """Coordinates and quantities computed from each point; sliced by rows like an array."""

    coordinates: Any  # ndarray, sparse array, or another Prepared for wrapped kernels
    per_point: Any = None  # ndarray of squared norms, inverse lengths, …
    given: Any = None  # the points before translation to the kernel's origin

    def __len__(self) -> int:
        if isinstance(self.coordinates, Prepared):
            return len(self.coordinates)
        return int(self.coordinates.shape[0])

    def __getitem__(self, rows: Any) -> Prepared:
        per_point = None if self.per_point is None else self.per_point[rows]
        given = None if self.given is None else self.given[rows]
        return type(self)(self.coordinates[rows], per_point, given)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the coordinates, which kernel blocks share."""
        return np.dtype(self.coordinates.dtype)
