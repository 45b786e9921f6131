"""Points on the sphere, given as coordinates or as a Gram operator, for the Karcher mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._core.threads import VALUE_WORK, run_over_rows
from .._core.types import Floats
from .._core.unit import angles_from_chords, angles_from_cosines
from ..gram import GramOperator
from ..gram.unit import squared_radius

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Vector:
    """A vector and its inner products with all points."""

    vector: Floats
    products: Floats

    def combined(self, a: float, other: Vector, b: float) -> Vector:
        """Return a self + b other."""
        return Vector(a * self.vector + b * other.vector, a * self.products + b * other.products)

    def over(self, length: float) -> Vector:
        """Return self / length."""
        return Vector(self.vector / length, self.products / length)


# Both classes have the attributes `n` (number of points), `size` (length of a vector), `dtype` (of
# the result) and `eps` (machine epsilon of the inner products). `rounding` returns the rounding
# error of ‖g‖² that does not come from g; `growth` returns the factor by which the coefficients of
# the mean have grown.


class Coefficients:
    """Vectors as coefficients over the points of a Gram operator."""

    def __init__(self, gram: GramOperator) -> None:
        self.gram = gram
        self.n = self.size = gram.shape[0]
        self.dtype = np.dtype(np.float64)
        self.eps = float(np.finfo(gram.dtype).eps)
        squared_radius(gram.diagonal(), expected=1.0, what="points")

    def at(self, vector: Floats) -> Vector:
        # with float64 coefficients, sums over a float32 Gram matrix are as exact as its entries
        return Vector(vector, np.asarray(self.gram @ vector, dtype=np.float64))

    combine = at

    def inner(self, a: Vector, b: Vector) -> float:
        return float(a.vector @ b.products)

    def squared_norm(self, a: Vector) -> float:
        square = self.inner(a, a)
        # rounding errors of the products and of the matrix itself
        rounding = 100 * self.rounding(a) + 10 * self.eps * self.n * float(a.vector @ a.vector)
        if square < -rounding:
            raise ValueError(
                f"A vector has the squared length {square:.2g}: the kernel is not positive "
                "definite on these data. Choose another kernel."
            )
        return max(square, 0.0)

    def angles(self, mean: Vector) -> tuple[Floats, Floats]:
        return angles_from_cosines(mean.products)

    def gradient(self, mean: Vector, weights: Floats) -> Vector:
        return self.combine(weights).combined(1.0, mean, -float(weights @ mean.products))

    def rounding(self, gradient: Vector) -> float:
        # cancellation of large coefficients in feature space causes rounding errors
        return _EPS * float(np.abs(gradient.vector).sum())

    def growth(self, mean: Vector, first: Vector) -> float:
        norm, first_norm = (max(1.0, float(np.linalg.norm(v.vector))) for v in (mean, first))
        return norm / first_norm


class Coordinates:
    """Vectors as coordinates; small angles and gradients are computed from differences."""

    def __init__(self, points: NDArray[Any], dtype: Any = np.float64) -> None:
        # Normalise, so that angles from differences and from products agree. Do not divide vectors
        # that have unit length already: the rounding errors would separate near points.
        lengths = np.linalg.norm(points.astype(np.float64, copy=False), axis=1)
        lengths[np.abs(lengths - 1) <= 4 * _EPS] = 1.0
        self.points: Floats = points / lengths[:, None]
        self.n, self.size = points.shape
        self.dtype = np.dtype(dtype)
        self.eps = float(np.finfo(dtype).eps)

    def combine(self, weights: Floats) -> Vector:
        return self.at(weights @ self.points)

    def at(self, vector: Floats) -> Vector:
        return Vector(vector, self.points @ vector)

    def inner(self, a: Vector, b: Vector) -> float:
        return float(a.vector @ b.vector)

    def squared_norm(self, a: Vector) -> float:
        return self.inner(a, a)

    def angles(self, mean: Vector) -> tuple[Floats, Floats]:
        def chords(rows: slice) -> Floats:
            return np.linalg.norm(self.points[rows] - mean.vector, axis=1)

        work = VALUE_WORK * self.points.size
        chord = np.concatenate(run_over_rows(chords, self.n, work=work))
        sums = np.sqrt(np.maximum(4 - chord**2, 0.0))
        far = chord > sums
        sums[far] = np.linalg.norm(self.points[far] + mean.vector, axis=1)
        return angles_from_chords(chord, sums)

    def gradient(self, mean: Vector, weights: Floats) -> Vector:
        # Σ w (y - c μ) is summed as differences y - μ, which are accurate for near points
        def partial_sum(rows: slice) -> Floats:
            return weights[rows] @ (self.points[rows] - mean.vector)

        g = np.sum(run_over_rows(partial_sum, self.n, work=VALUE_WORK * self.points.size), axis=0)
        return self.at(g - (g @ mean.vector) * mean.vector)

    def rounding(self, gradient: Vector) -> float:
        return 0.0

    def growth(self, mean: Vector, first: Vector) -> float:
        return 1.0


#: Points whose Karcher mean is computed.
Space: TypeAlias = Coefficients | Coordinates
