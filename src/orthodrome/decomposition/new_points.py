"""Coordinates of new points in a fitted decomposition, for rows in memory or in blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.kinds import is_dask_array
from .._core.threads import VALUE_WORK
from .._core.types import Floats, Indices
from .._core.unit import (
    angles_from_cosines,
    check_cosines,
    check_no_antipodes,
    squared_angles,
    squared_radius,
)
from ..coordinates.blocks import AnchorMap
from ..gram import cross_operator
from ..gram.dask_gram import DaskCross
from ..gram.wrapped import squared_distance_to_mean
from ..kernels import Kernel, Precomputed
from ..rows import ArrayRows, DaskRows, Rows


@dataclass(frozen=True)
class NewPoints:
    """The map from rows to coordinates; it can be sent to workers.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel.
    points : Prepared, dask array or None
        The fitted points; None for a precomputed kernel.
    columns : ndarray or None
        The columns of a precomputed matrix for the fitted points; None for all.
    dual_coef, mean : ndarrays of shape (n_fit, k), (n_fit,)
        Coefficients of the components, and of the mean, over the fitted points.
    intercept : ndarray of shape (k,) or None
        Constant term of the coordinates in flat feature space; None on the sphere.
    mean_square : float
        The squared length of the mean in flat feature space.
    diagonal : float or None
        k(x, x) of a precomputed kernel, if it is constant.
    radius : float
        The divisor of kernel values on a sphere.
    anchor_map : AnchorMap or None
        The map from rows to normalised features; None without anchors.
    """

    kernel: Kernel
    points: Any
    columns: Indices | None
    dual_coef: NDArray[Any]
    mean: NDArray[Any]
    intercept: NDArray[Any] | None = None
    mean_square: float = 0.0
    diagonal: float | None = None
    radius: float = 1.0
    anchor_map: AnchorMap | None = None

    @property
    def rows_at_once(self) -> int:
        """Number of rows in a block."""
        return 2048 if self.anchor_map is None else self.anchor_map.rows_at_once

    @property
    def work_per_row(self) -> float:
        """Estimated number of multiplications for a row."""
        return float(VALUE_WORK * len(self.dual_coef))

    @property
    def frame(self) -> Floats:
        """Coefficients of the components; the last column is the mean."""
        return np.column_stack([self.dual_coef, self.mean])

    def __call__(self, rows: Any, start: int = 0, products: Any = None) -> NDArray[Any]:
        """Return the coordinates of validated rows."""
        if self.intercept is None:
            coordinates, _ = self._log_maps(rows, products)
            return coordinates.astype(self.dual_coef.dtype, copy=False)
        if products is None:
            products = self._cross(rows, self.dual_coef)
        dtype = np.result_type(rows.dtype, self.dual_coef.dtype)
        k = self.dual_coef.shape[1]
        return products[:, :k].astype(dtype, copy=False) + self.intercept

    def captured(self, rows: Any, products: Any = None) -> tuple[Floats, Floats, float]:
        """Return ‖e(x)‖², the squared distances from the mean, and their rounding error."""
        eps = float(np.finfo(self.dual_coef.dtype).eps)
        if self.intercept is None:
            coordinates, squares = self._log_maps(rows, products)
            return np.einsum("ij,ij->i", coordinates, coordinates), squares, 16 * eps
        products = self._cross(rows, self.frame) if products is None else products
        products = products.astype(np.float64, copy=False)
        coordinates, means = products[:, :-1] + self.intercept, products[:, -1]
        diagonal = self._diagonal(rows)
        squares = squared_distance_to_mean(diagonal, means, self.mean_square)
        size = np.abs(diagonal).max() + 2 * np.abs(means).max() + abs(self.mean_square)
        rounding = float(4 * eps * size)
        return np.einsum("ij,ij->i", coordinates, coordinates), squares, rounding

    def _log_maps(self, rows: Any, products: Any) -> tuple[Floats, Floats]:
        """Return the coordinates of Log maps, and squared distances from the mean."""
        lengths: Any = 1.0
        if self.anchor_map is not None:
            block = self.anchor_map.block(rows)
            products, lengths = block.over_anchors(self.frame), block.lengths
        else:
            if not isinstance(self.kernel, Precomputed):
                squared_radius(self.kernel.diagonal(self.kernel.prepare(rows)), self.radius)
            products = self._cross(rows, self.frame) if products is None else products
            products = products / self.radius
        cosines, eps = products[:, -1], float(np.finfo(self.dual_coef.dtype).eps)
        check_cosines(cosines, eps, "X")
        check_no_antipodes(cosines, eps, "rows of X")
        angles, angle_ratios = angles_from_cosines(cosines)
        # the angle of the point itself, not of its projection onto the span of the anchors
        squares = angles**2 if self.anchor_map is None else squared_angles(cosines * lengths)
        return products[:, :-1] * angle_ratios[:, None], squares

    def _cross(self, rows: Any, V: NDArray[Any]) -> NDArray[Any]:
        """Return the products of the kernel values with the columns of V."""
        rows = rows if self.columns is None else rows[:, self.columns]
        return np.ascontiguousarray(cross_operator(self.kernel, rows, self.points) @ V)

    def _diagonal(self, rows: Any) -> Floats:
        """Return k(x, x) of each row."""
        if not isinstance(self.kernel, Precomputed):
            return self.kernel.diagonal(self.kernel.prepare(rows)).astype(np.float64)
        if self.diagonal is None:
            raise ValueError(
                "score with a precomputed kernel needs k(x, x) of the new points, which is known "
                "only if the training matrix has a constant diagonal. Use another kernel."
            )
        return np.full(rows.shape[0], self.diagonal)


def attach_products(function: NewPoints, rows: Rows) -> tuple[NewPoints, Rows]:
    """Attach products with the fitted points to rows, if the points are a dask array.

    The returned map then does not need the points.
    """
    if not is_dask_array(function.points):
        return function, rows
    if isinstance(rows, DaskRows):
        cross = DaskCross(function.kernel, rows.whole(), function.points)
        products = cross.lazy_product(function.frame)
    elif isinstance(rows, ArrayRows):
        products = cross_operator(function.kernel, rows.whole(), function.points) @ function.frame
    else:
        return function, rows
    k = function.dual_coef.shape[1]
    without_points = replace(
        function, points=(), dual_coef=np.empty((1, k), function.dual_coef.dtype), mean=np.empty(1)
    )
    return without_points, rows.zip(products=products)


class Scores(NewPoints):
    """Sums over a block for `score`: weights, ‖e(x)‖², squared distances, rounding errors."""

    def __call__(self, rows: Any, start: int = 0, products: Any = None, weights: Any = None) -> Any:
        """Return the sums over a block."""
        captured, squares, rounding = self.captured(rows, products)
        w = np.ones(len(captured)) if weights is None else weights
        return w.sum(), w @ captured, w @ squares, w.sum() * rounding
