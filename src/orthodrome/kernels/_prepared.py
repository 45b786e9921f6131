"""Prepared points for kernel blocks, and norms of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from .._core.checks import RowError
from .._core.types import Array

# Kernel values of fewer pairs of points are computed with NumPy. Compiled loops are faster, but the
# first one costs 0.4 s for numba, and up to 1 s more if it is not in the cache.
COMPILED_PAIRS = 2**24


def squared_norms(X: Any) -> Array:
    """Return the squared length of each row of an array or sparse array, in its dtype."""
    return row_norms(X, squared=True)


def finite_squared_norms(X: Any) -> Array:
    """Return the squared length of each row, or raise if it overflows."""
    with np.errstate(over="ignore"):
        norms = squared_norms(X)
    if not np.all(np.isfinite(norms)):
        raise RowError(
            f"Row {{0}} has NaN or values so large that their squares overflow in {X.dtype}; "
            "remove or rescale it.",
            int(np.argmin(np.isfinite(norms))),
        )
    return norms


def unit_rows(X: Any) -> Any:
    """Return the rows of an array or sparse array divided by their lengths; zero rows stay zero.

    Each row is first divided by a power of two near its largest entry, which is exact, so that no
    square overflows or underflows. (scikit-learn's ``normalize`` regards rows
    shorter than 1e-15 as zero.)
    """
    sparse = scipy.sparse.issparse(X)
    largest = abs(X).max(axis=1)
    powers = -np.frexp(np.ravel(largest.toarray() if sparse else largest))[1]
    if not sparse:
        return normalize(np.ldexp(X, powers[:, None]), copy=False)
    scaled = X.copy()
    scaled.data = np.ldexp(X.data, np.repeat(powers, np.diff(X.indptr)))
    return normalize(scaled, copy=False)


def largest_entry(X: Any) -> float:
    """Return the largest absolute value in an array or sparse array."""
    return max(float(X.max()), -float(X.min()))


def smallest_accurate(dtype: Any) -> float:
    """Return the smallest kernel value with full precision and a finite reciprocal."""
    return 1e4 * float(np.finfo(dtype).tiny)


def inner_products(a: Prepared, b: Prepared, out: Array | None = None) -> Array:
    """Return inner products of the rows of two prepared sets."""
    if scipy.sparse.issparse(a.coordinates) or scipy.sparse.issparse(b.coordinates):
        products = a.coordinates @ b.coordinates.T
        return products.toarray() if scipy.sparse.issparse(products) else np.asarray(products)
    return np.matmul(a.coordinates, b.coordinates.T, out=out)


@dataclass(frozen=True)
class Prepared:
    """Coordinates and quantities computed from each point; sliced by rows like an array."""

    coordinates: Any  # ndarray, sparse array, or another Prepared for wrapped kernels
    per_point: Any = None  # ndarray of squared norms, inverse lengths, …
    given: Any = None  # the points before translation to the kernel's origin
    n_all: int = 0  # the number of points of which these are a part, if there are more

    def __len__(self) -> int:
        if isinstance(self.coordinates, Prepared):
            return len(self.coordinates)
        return int(self.coordinates.shape[0])

    def __getitem__(self, rows: Any) -> Prepared:
        per_point = None if self.per_point is None else self.per_point[rows]
        given = None if self.given is None else self.given[rows]
        return type(self)(self.coordinates[rows], per_point, given, max(self.n_all, len(self)))

    def among(self, n_all: int) -> Self:
        """Return the same points as a part of `n_all` points."""
        inner = self.coordinates
        inner = inner.among(n_all) if isinstance(inner, Prepared) else inner
        return replace(self, coordinates=inner, n_all=n_all)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the coordinates, which kernel blocks share."""
        return np.dtype(self.coordinates.dtype)


def loops_for(a: Prepared, b: Prepared) -> Any:
    """Return the module of compiled loops if there are many pairs of points, otherwise None."""
    many = max(len(a), a.n_all) * max(len(b), b.n_all) >= COMPILED_PAIRS
    return import_module("._loops", __package__) if many else None
