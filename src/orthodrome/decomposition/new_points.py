"""Coordinates of new points by a fitted decomposition, wherever their rows are stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.kinds import is_dask_array
from .._core.threads import VALUE_WORK
from .._core.types import Floats, Indices
from .._core.unit import angles_from_cosines, check_cosines, check_no_antipodes, squared_angles
from ..coordinates.blocks import AnchorMap
from ..gram import cross_operator
from ..gram.centered import squared_distance_to_mean
from ..gram.dask_gram import DaskCross
from ..gram.unit import squared_radius
from ..kernels import Kernel, Precomputed
from ..rows import ArrayRows, DaskRows, Rows


@dataclass(frozen=True)
class NewPoints:
    """The map from rows to coordinates, which is sent to workers.

    Attributes
    ----------
    kernel : Kernel
        The fitted kernel.
    points : Prepared, dask array or None
        The fitted points; None for a precomputed kernel.
    columns : ndarray or None
        The columns of a precomputed matrix that belong to them; None for all.
    dual_coef, mean : ndarrays of shape (n_fit, k), (n_fit,)
        Coefficients over the fitted points of the components, and of the mean.
    intercept : ndarray of shape (k,) or None
        The constant of flat coordinates; None for coordinates of Log maps.
    mean_square : float
        The squared length of a flat mean.
    diagonal : float or None
        k(x, x) of a precomputed kernel, if it is constant.
    radius : float
        The divisor of kernel values on a sphere.
    by : AnchorMap or None
        The map to vectors, if they are normalised.
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
    by: AnchorMap | None = None

    @property
    def rows_at_once(self) -> int:
        """The number of rows in a block."""
        return 2048 if self.by is None else self.by.rows_at_once

    @property
    def work_per_row(self) -> float:
        """An estimate of the multiplications for a row."""
        return float(VALUE_WORK * len(self.dual_coef))

    @property
    def frame(self) -> Floats:
        """The coefficients of the components, and last of the mean."""
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
        """Return ‖e(x)‖² and the squared distance from the mean, per row, and its rounding."""
        eps = float(np.finfo(self.dual_coef.dtype).eps)
        if self.intercept is None:
            coordinates, squares = self._log_maps(rows, products)
            return np.einsum("ij,ij->i", coordinates, coordinates), squares, 16 * eps
        products = self._cross(rows, self.frame) if products is None else products
        products = products.astype(np.float64, copy=False)
        coordinates, means = products[:, :-1] + self.intercept, products[:, -1]
        own = self._own(rows)
        squares = squared_distance_to_mean(own, means, self.mean_square)
        size = np.abs(own).max() + 2 * np.abs(means).max() + abs(self.mean_square)
        rounding = float(4 * eps * size)
        return np.einsum("ij,ij->i", coordinates, coordinates), squares, rounding

    def _log_maps(self, rows: Any, products: Any) -> tuple[Floats, Floats]:
        """Return the coordinates of Log maps, and squared distances from the mean."""
        lengths: Any = 1.0
        if self.by is not None:
            block = self.by.block(rows)
            products, lengths = block.over_anchors(self.frame), block.lengths
        else:
            if not isinstance(self.kernel, Precomputed):
                squared_radius(self.kernel.diagonal(self.kernel.prepare(rows)), self.radius)
            products = self._cross(rows, self.frame) if products is None else products
            products = products / self.radius
        cosines, eps = products[:, -1], float(np.finfo(self.dual_coef.dtype).eps)
        check_cosines(cosines, eps, "X")
        check_no_antipodes(cosines, eps, "rows of X")
        angles, stretches = angles_from_cosines(cosines)
        # the angle of the point itself, not of its projection on the span of the anchors
        squares = angles**2 if self.by is None else squared_angles(cosines * lengths)
        return products[:, :-1] * stretches[:, None], squares

    def _cross(self, rows: Any, V: NDArray[Any]) -> NDArray[Any]:
        """Return the products of kernel values with columns."""
        rows = rows if self.columns is None else rows[:, self.columns]
        return np.ascontiguousarray(cross_operator(self.kernel, rows, self.points) @ V)

    def _own(self, rows: Any) -> Floats:
        if not isinstance(self.kernel, Precomputed):
            return self.kernel.diagonal(self.kernel.prepare(rows)).astype(np.float64)
        if self.diagonal is None:
            raise ValueError(
                "score with a precomputed kernel needs k(x, x) of the new points, which is known "
                "only if the training matrix has a constant diagonal. Fit another kernel."
            )
        return np.full(rows.shape[0], self.diagonal)


def attach_products(function: NewPoints, rows: Rows) -> tuple[NewPoints, Rows]:
    """Attach products with fitted points that are a dask array; blocks then need no points."""
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
    few = replace(
        function, points=(), dual_coef=np.empty((1, k), function.dual_coef.dtype), mean=np.empty(1)
    )
    return few, rows.zip(products=products)


class Scores(NewPoints):
    """Sums of weights, of squared lengths of coordinates, and of squared distances."""

    def __call__(self, rows: Any, start: int = 0, products: Any = None, weights: Any = None) -> Any:
        """Return the sums over a block."""
        captured, squares, rounding = self.captured(rows, products)
        w = np.ones(len(captured)) if weights is None else weights
        return w.sum(), w @ captured, w @ squares, w.sum() * rounding
