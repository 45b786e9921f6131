"""Coordinates and scores of new rows that come in blocks, by kernel PCA and kernel PGA."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gram import RowSource, as_source
from ..gram.dask_blocks import is_dask_array
from ..gram.factory import prepared_points
from .distributed import WithProducts, rows_with_products
from .streams import OF_ROWS

__all__ = ["score_blocks", "transform_blocks"]


@dataclass(frozen=True)
class _Transformed:
    """Coordinates of rows by a fitted estimator."""

    estimator: Any

    def __call__(self, rows: Any, start: int) -> NDArray[Any]:
        return self.estimator._coordinates(rows)


@dataclass(frozen=True)
class _Captured:
    """Sums of the weights, of squared lengths of coordinates, and of squared distances."""

    estimator: Any

    def __call__(self, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
        captured, squares, rounding = self.estimator._captured(rows)
        w = along[0] if along else np.ones(len(captured))
        return w.sum(), w @ captured, w @ squares, w.sum() * rounding


def _coordinates(estimator: Any, rows: Any, start: int) -> NDArray[Any]:
    return _Transformed(estimator)(rows, start)


def _captured(estimator: Any, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
    return _Captured(estimator)(rows, start, *along)


def _for_new_rows(estimator: Any) -> Any:
    """Return a copy of an estimator without what it knows of its training rows.

    Those that new rows are compared with are prepared here, once for all blocks.
    """
    light = copy.copy(estimator)
    for name in (*OF_ROWS, "sample_weight_", "_ridge_"):
        vars(light).pop(name, None)
    if "_mean_coef_" in vars(light):  # of an exact fit it is None, and comes from those rows
        light._mean_coef_ = estimator.mean_
    if estimator.X_fit_ is not None and not is_dask_array(estimator.X_fit_):
        light.X_fit_ = prepared_points(estimator.kernel_, estimator.X_fit_)
    return light


def transform_blocks(estimator: Any, X: Any, owner: Any = None) -> Any:
    """Return the coordinates of rows that come in blocks.

    Where the estimator is a part of another one, that is their `owner`: it knows the names of their
    columns, and is named if they are refused.
    """
    owner = estimator if owner is None else owner
    if is_dask_array(estimator.X_fit_) and is_dask_array(X):
        light = _for_new_rows(estimator)
        rows, products, light = rows_with_products(estimator, light, X, owner)
        return rows.per_row(WithProducts(light, _coordinates), along=(products,))
    source = as_source(X, estimator.kernel_, owner, reset=False)
    return source.per_row(_Transformed(_for_new_rows(estimator)))


def score_blocks(estimator: Any, X: Any, sample_weight: Any) -> tuple[float, float, float]:
    """Return means over rows: of what is captured, of squared distances, and of their rounding."""
    light = _for_new_rows(estimator)
    function: Any = _Captured(light)
    along: tuple[Any, ...] = ()
    source: RowSource
    if is_dask_array(estimator.X_fit_) and is_dask_array(X):
        source, products, light = rows_with_products(estimator, light, X, estimator)
        function, along = WithProducts(light, _captured), (products,)
    else:
        source = as_source(X, estimator.kernel_, estimator, reset=False)
    if sample_weight is not None:
        along = (*along, source.weights(sample_weight, type(estimator).__name__))
    count, *sums = source.sums(function, along=along)
    captured, total, rounding = (float(term / count) for term in sums)
    return captured, total, rounding
