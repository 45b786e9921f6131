"""The base classes of radial kernels, k(x, y) = h(‖x - y‖²), and their bandwidth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..._core.types import Array, Floats
from .._prepared import Prepared, finite_squared_norms
from ..bandwidth import Moments, mean_square, median_distance, numeric_scale, scale_from_rule
from ..base import Kernel
from .distances import paired_squared_distances, squared_distances


def as_float(d2: ArrayLike) -> Array:
    """Return squared distances as float64; float32 is kept."""
    array = np.asarray(d2)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


class Radial(Kernel):
    """Base class of the kernels k(x, y) = h(‖x - y‖²).

    A subclass implements ``profile``, ``profile_derivative`` and ``one_minus``, which are functions
    of the squared distance, and sets the flags ``cusp`` (h'(0) is infinite) and ``decreasing`` (h
    never increases with the distance).
    """

    unit_norm = True
    cusp: bool = False
    decreasing: bool = True

    # ---------------------------------------------------------------- the profile

    def profile(self, d2: ArrayLike) -> Array:
        """Evaluate h at squared distances."""
        raise NotImplementedError

    def profile_derivative(self, d2: ArrayLike) -> Array:
        """Evaluate the derivative of h with respect to the squared distance."""
        raise NotImplementedError

    def one_minus(self, d2: ArrayLike) -> Array:
        """Evaluate 1 - h without cancellation near distance 0."""
        raise NotImplementedError

    # ---------------------------------------------------------------- blocks

    def prepare(self, X: Any) -> Prepared:
        """Subtract the mean of the training data, for accurate distances, and compute norms.

        Sparse points stay sparse if the kernel was fitted to sparse data, whose origin is 0;
        otherwise they are converted to dense arrays.
        """
        if scipy.sparse.issparse(X) and not np.any(self.origin_):
            return Prepared(X.tocsr(), finite_squared_norms(X.tocsr()))
        X = X.toarray() if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
        coordinates = np.subtract(X, self.origin_, order="C", dtype=X.dtype)
        # the subtraction rounds points far from the mean, so differences are computed from X
        return Prepared(coordinates, finite_squared_norms(coordinates), given=X)

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block h(‖a_i - b_j‖²)."""
        block = squared_distances(a, b, out)
        self._apply_profile(block)
        return block

    def diagonal(self, points: Prepared) -> Array:
        """Evaluate h(0) for each point."""
        at_zero = 1.0 if self.unit_norm else float(self.profile(0.0))
        return np.full(len(points), at_zero, dtype=points.dtype)

    def _apply_profile(self, block: Array) -> None:
        """Apply h to squared distances, in place."""
        block[...] = self.profile(block)

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        if scipy.sparse.issparse(X):
            self.origin_ = np.zeros(X.shape[1])
        else:
            with np.errstate(over="ignore"):  # prepare raises an error with the row
                self.origin_ = np.average(X, axis=0, weights=sample_weight).astype(X.dtype)
        self.positive_definite = self._is_definite(X.shape[1])

    def _is_definite(self, _n_features: int) -> bool:
        return True


def _without_overflow(
    function: Callable[[Any, Array], Array],
) -> Callable[[Any, ArrayLike], Array]:
    """Make a function of squared distances use float64 if σ does not fit float32.

    In float32, 1/σ² may be infinite and its product with 0 NaN.
    """

    @wraps(function)
    def wrapper(self: ScaledRadial, d2: ArrayLike) -> Array:
        given = as_float(d2)
        is_float32 = given.dtype == np.float32
        with np.errstate(over="ignore"):
            if not is_float32 or self._fits_float32(float(given.max(initial=0.0))):
                return function(self, given)
            return function(self, given.astype(np.float64)).astype(np.float32)

    return wrapper


class ScaledRadial(Radial):
    """A radial kernel with a scale sigma, a number or a rule."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("profile", "profile_derivative", "one_minus"):
            if name in vars(cls):
                setattr(cls, name, _without_overflow(vars(cls)[name]))

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        super()._resolve(X, sample_weight)
        self.sigma_ = resolve_sigma(self, X, sample_weight)

    def fit_sampled(
        self,
        sample: Any,
        sample_weight: Floats | None,
        moments: Callable[[Floats], Moments],
    ) -> Kernel:
        """Resolve sigma="mean" from moments of all rows, other parameters from the sample."""
        self.fit_validated(sample, sample_weight)
        if getattr(self, "sigma", None) != "mean":
            return self
        found = moments(self._row_near_mean(sample))
        if not scipy.sparse.issparse(sample):
            self.origin_ = found.mean.astype(sample.dtype)
        self.sigma_ = scale_from_rule(
            self,
            sample.dtype,
            mean_square=lambda: found.squared_distance,
            median=lambda: math.nan,  # not used
            resolution=math.sqrt(found.rounding),
        )
        return self

    def _row_near_mean(self, sample: Any) -> Floats:
        """Return the row nearest to the origin: if all points coincide, its distances are 0."""
        if scipy.sparse.issparse(sample):
            return self.origin_
        distances = np.linalg.norm(sample - self.origin_, axis=1)
        return np.asarray(sample[int(np.argmin(distances))], dtype=np.float64)

    def _scale(self) -> float:
        """Return sigma as a number, for a fitted or unfitted kernel."""
        if hasattr(self, "sigma_"):
            return float(self.sigma_)
        if isinstance(self.sigma, str):
            self._ready(None)  # raises NotFittedError
        return numeric_scale(self)

    def _fits_float32(self, largest: float) -> bool:
        """Return whether squared distances up to `largest` can be scaled in float32.

        Numbers between 1e-30 and 1e30 can be multiplied by a few more factors.
        """
        scale = self._scale()
        return 1e-15 < scale < 1e15 and largest <= 1e30 * min(scale, 1.0) ** 2


def resolve_sigma(
    kernel: Any, X: Any, sample_weight: Floats | None, *, resolution: float = 0.0
) -> float:
    """Return ``kernel.sigma`` as a number, computed from X if it is "mean" or "median".

    If all points coincide, the scale is 1. A median of 0 is an error if some points differ.
    Distances up to `resolution` are treated as 0.
    """
    return scale_from_rule(
        kernel,
        X.dtype,
        mean_square=lambda: mean_square(X, sample_weight),
        median=lambda: median_distance(
            lambda i, j: np.sqrt(paired_squared_distances(X, X, i, j)), X.shape[0], sample_weight
        ),
        resolution=resolution,
    )
