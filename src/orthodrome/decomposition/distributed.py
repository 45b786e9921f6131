"""Exact kernel PCA and kernel PGA of dask arrays: new rows beside training rows that stay away."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gram import DaskCross, DaskSource
from ..gram.dask_blocks import is_dask_array
from ..kernels import Kernel, Precomputed
from .base import resolved_solver

__all__ = ["WithProducts", "fits_exactly", "lazy_rows", "rows_with_products"]


def fits_exactly(estimator: Any, X: Any) -> bool:
    """Tell whether a dask array is to be fitted by a solver that compares all rows with all."""
    if not is_dask_array(X) or estimator.solver == "auto":
        return False
    return getattr(resolved_solver(estimator, 1, 1), "name", "") != "nystroem"


def lazy_rows(estimator: Any, X: Any, kernel: Kernel) -> Any:
    """Return the rows of a dask array as one that is checked when it is computed."""
    if isinstance(kernel, Precomputed):
        raise ValueError(
            f"{type(estimator).__name__} takes a precomputed Gram matrix as one array, in memory "
            "or memory-mapped, not as a dask array."
        )
    return DaskSource(X, kernel, estimator).rows()


@dataclass(frozen=True)
class WithProducts:
    """A function of blocks of an estimator whose products with the training rows are known.

    They go along with the rows, those with the coefficients of the components first, those with the
    mean last. `function` is called as ``function(estimator, rows, start, *along)``.
    """

    estimator: Any
    function: Any

    def __call__(self, rows: Any, start: int, products: NDArray[Any], *along: Any) -> Any:
        """Call the function with an estimator that has the products."""

        def known(X: Any, V: NDArray[Any]) -> NDArray[Any]:
            taken = np.ascontiguousarray(products[:, : V.shape[1]])
            return taken.astype(np.result_type(X.dtype, V.dtype), copy=False)

        knowing = copy.copy(self.estimator)
        knowing._products = known
        return self.function(knowing, rows, start, *along)


def rows_with_products(
    estimator: Any, light: Any, X: Any, owner: Any
) -> tuple[DaskSource, Any, Any]:
    """Return new rows, their products with the training rows, and an estimator that lacks those.

    `light` is the estimator without what it knows of single training rows; its coefficients over
    them are left out here too. On behalf of `owner` the rows are checked.
    """
    source = DaskSource(X, estimator.kernel_, owner, reset=False)
    frame = np.column_stack([estimator.dual_coef_, estimator.mean_])
    products = DaskCross(estimator.kernel_, source.rows(), estimator.X_fit_).lazy_product(frame)
    light.X_fit_ = ()  # not None: there are such rows
    light.dual_coef_ = np.empty((1, frame.shape[1] - 1), dtype=estimator.dual_coef_.dtype)
    for name in ("mean_", "_mean_coef_"):
        if name in vars(light):
            setattr(light, name, np.empty(1))
    return source, products, light
