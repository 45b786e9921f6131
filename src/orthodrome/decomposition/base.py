"""Solvers and warnings that the kernel decompositions share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.warn import warn_user
from ..eigen import Nystroem, Options, resolve_solver
from ..kernels import Kernel, Precomputed

__all__ = [
    "feature_solver",
    "warn_if_left_out",
]

# What of squared lengths may be rounding.
_LENGTH_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def feature_solver(estimator: Any, n: int, k: int) -> Nystroem | None:
    """Return the Nyström solver of an estimator without another one, where it is to be used."""
    options = Options(random_state=estimator.random_state, n_anchors=estimator.n_anchors)
    asked = "dense" if estimator.solver == "exact" else estimator.solver
    found = resolve_solver(asked, n, k, options, exact=False)
    return found if isinstance(found, Nystroem) else None


def warn_if_left_out(left_out: float, points: NDArray[np.float64], kernel: Kernel) -> None:
    """Warn where coordinates lack much of the variance, which is near rounding beside lengths."""
    size = float(np.einsum("ij,ij->", points, points))
    if left_out <= _LENGTH_ROUNDING * size and isinstance(kernel, Precomputed):
        return  # rows that differ by rounding, and nobody knows whether the points do
    spread = float(np.sum((points - points.mean(axis=0)) ** 2))
    if left_out > 0.01 * (left_out + spread):
        warn_user(
            f"{left_out / (left_out + spread):.0%} of the variance of {type(kernel).__name__} over "
            "these data is left out: beside the lengths of the points it is near rounding. Choose "
            "a smaller scale (sigma), or centre the data, or pass float64.",
            UserWarning,
        )
