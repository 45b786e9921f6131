"""Points made ready for many kernel blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Prepared"]


@dataclass(frozen=True)
class Prepared:
    """Coordinates and what was computed once from each point; sliced by rows like an array."""

    coordinates: Any  # ndarray, sparse array, or another Prepared for wrapped kernels
    per_point: Any = None  # ndarray of squared norms, inverse lengths, …

    def __len__(self) -> int:
        if isinstance(self.coordinates, Prepared):
            return len(self.coordinates)
        return int(self.coordinates.shape[0])

    def __getitem__(self, rows: Any) -> Prepared:
        per_point = None if self.per_point is None else self.per_point[rows]
        return type(self)(self.coordinates[rows], per_point)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the blocks: that of the coordinates."""
        return np.dtype(self.coordinates.dtype)
