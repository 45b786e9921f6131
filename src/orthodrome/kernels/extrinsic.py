r"""Gaussian kernels of distances ρ on manifolds, :math:`\exp(-\rho^2 / 2\sigma^2)`."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from .._core.types import Array, Floats
from ._prepared import Prepared
from .bandwidth import mean_square, scale_from_rule
from .base import Kernel
from .radial import Gaussian, median_of_rows


class DistanceGaussian(Kernel):
    r"""A kernel :math:`\exp(-\rho(x, y)^2 / 2\sigma^2)` with a scale sigma, a number or a rule.

    ``"mean"``: 2σ² is the mean of ρ² over all pairs. ``"median"``: √2 σ is the median of ρ. Papers
    usually write σ² instead of 2σ². Their σ is √2 times this one; the kernel values are the same.
    """

    unit_norm = True
    accepts_sparse = False

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.sigma_ = scale_from_rule(
            self,
            X.dtype,
            mean_square=lambda: self._mean_square(X, sample_weight) / 2,
            median=lambda: self._median(X, sample_weight) / math.sqrt(2),
            resolution=self._resolution(X),
        )

    @abstractmethod
    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        """Return the mean of ρ² over all pairs, 0 if all points coincide."""

    @abstractmethod
    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        """Return the median of ρ over pairs."""

    def _resolution(self, X: Any) -> float:
        """Return the distance up to which points are considered equal."""
        return 0.0


class ExtrinsicGaussian(DistanceGaussian):
    """A Gaussian kernel of Euclidean distances between embedded points.

    A subclass implements ``_embed(X)``, which returns shape (n, n_coordinates).
    """

    @abstractmethod
    def _embed(self, X: Any) -> Array:
        """Return the embedding of validated data."""

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        vectors = self._embed(X)
        super()._resolve(vectors, sample_weight)
        self.kernel_ = Gaussian(self.sigma_).fit_validated(vectors, sample_weight)

    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        return mean_square(X, sample_weight)

    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        return median_of_rows(X, sample_weight)

    def _rescale(self) -> None:
        super()._rescale()
        self.kernel_ = self.kernel_.rescaled(self.sigma_)

    def prepare(self, X: Any) -> Prepared:
        """Embed, then prepare for the kernel on vectors."""
        return self.kernel_.prepare(self._embed(X))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        return self.kernel_.evaluate(a, b, out)
