"""Points made ready for many kernel blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["Prepared", "finite_squared_norms", "squared_norms"]


def squared_norms(X: Any) -> NDArray[Any]:
    """Return the squared length of each row of an array or sparse array, in its precision."""
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=X.dtype).ravel()
    return np.einsum("ij,ij->i", X, X)


def finite_squared_norms(X: Any) -> NDArray[Any]:
    """Return the squared length of each row, or raise where it overflows."""
    with np.errstate(over="ignore"):
        norms = squared_norms(X)
    if not np.all(np.isfinite(norms)):
        row = int(np.flatnonzero(~np.isfinite(norms))[0])
        raise ValueError(
            f"The values of row {row} are so large that their squares overflow in {X.dtype}; "
            "rescale the data."
        )
    return norms


@dataclass(frozen=True)
class Prepared:
    """Coordinates and what was computed once from each point; sliced by rows like an array."""

    coordinates: Any  # ndarray, sparse array, or another Prepared for wrapped kernels
    per_point: Any = None  # ndarray of squared norms, inverse lengths, …
    given: Any = None  # the points before their origin was moved, which rounds them

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
        """The precision of the blocks: that of the coordinates."""
        return np.dtype(self.coordinates.dtype)
