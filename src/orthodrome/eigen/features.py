"""Principal components of explicit features, from their small covariance matrix."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..gram import NystroemFeatures

__all__ = ["FeatureAxes", "centered_covariance", "feature_axes", "tangent_covariance"]


@dataclass(frozen=True)
class FeatureAxes:
    """Principal axes of features.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Descending; 0 where only rounding was left.
    axes : ndarray of shape (r, k)
        Of unit length in columns; 0 where only rounding was left.
    """

    variances: NDArray[np.float64]
    axes: NDArray[np.float64]


def centered_covariance(
    features: NystroemFeatures, p: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the covariance of features with weights p that add up to 1."""
    mean = features.combine(p)
    shift = mean.astype(features.dtype)
    return mean, features.second_moment(p, lambda _, block: block - shift)


def tangent_covariance(
    features: NystroemFeatures,
    p: NDArray[np.float64],
    mean: NDArray[np.float64],
    cosines: NDArray[np.float64],
    stretches: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the covariance of Log maps at a mean of unit length; rows are s (f - c μ)."""
    point, dtype = mean.astype(features.dtype), features.dtype
    c, s = (array.astype(dtype)[:, None] for array in (cosines, stretches))

    def moved(rows: slice, block: NDArray[Any]) -> NDArray[Any]:
        return s[rows] * (block - c[rows] * point)

    return features.second_moment(p, moved)


def feature_axes(
    covariance: NDArray[np.float64],
    n_components: int | float | None,
    *,
    total: float,
    n: int,
    floor: float,
    eps: float,
) -> FeatureAxes:
    """Return as many axes as are asked for: a number, a fraction of `total`, or all there are.

    A number above the rank is filled with zeros, up to n. `floor` is the size up to which a
    variance may be rounding of the geometry, `eps` the machine epsilon of the features.
    """
    values, axes = scipy.linalg.eigh(covariance)
    values, axes = values[::-1], axes[:, ::-1]
    floor = max(floor, 10 * eps * float(np.abs(values).max()))
    present = values > floor
    values, axes = np.where(present, values, 0.0), axes * present
    if n_components is None:
        count = max(1, int(np.count_nonzero(present)))
    elif isinstance(n_components, numbers.Integral):
        count = min(int(n_components), n)
    else:
        reached = np.flatnonzero(np.cumsum(values) >= float(n_components) * total)
        count = int(reached[0]) + 1 if len(reached) else max(1, int(np.count_nonzero(present)))
    missing = max(0, count - len(values))
    return FeatureAxes(
        np.pad(values[:count], (0, missing)), np.pad(axes[:, :count], [(0, 0), (0, missing)])
    )
