r"""Gaussian kernels of distances ρ on manifolds, :math:`\exp(-\rho^2 / \sigma^2)`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from .._core.types import Array, Floats
from ._prepared import Prepared
from .bandwidth import scale_from_rule
from .base import Kernel
from .radial import Gaussian, resolve_sigma


class DistanceGaussian(Kernel):
    r"""A kernel :math:`\exp(-\rho(x, y)^2 / \sigma^2)` with a scale sigma, a number or a rule.

    σ² has no factor 2, as in the literature on these kernels.
    """

    unit_norm = True
    accepts_sparse = False

    def __init__(self, sigma: float | str = "mean") -> None:
        self.sigma = sigma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.sigma_ = scale_from_rule(
            self,
            X.dtype,
            mean_square=lambda: self._mean_square(X, sample_weight),
            median=lambda: self._median(X, sample_weight),
        )

    def _mean_square(self, X: Any, sample_weight: Floats | None) -> float:
        """Return the mean of ρ² over all pairs, 0 if all points coincide."""
        raise NotImplementedError

    def _median(self, X: Any, sample_weight: Floats | None) -> float:
        """Return the median of ρ over pairs."""
        raise NotImplementedError


class ExtrinsicGaussian(DistanceGaussian):
    """A Gaussian kernel of Euclidean distances between embedded points.

    A subclass implements ``_embed(X)``, which returns shape (n, n_coordinates).
    """

    @abstractmethod
    def _embed(self, X: Any) -> Array:
        """Return the embedding of validated data."""

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        vectors = self._embed(X)
        resolution = self._resolution(vectors)
        self.sigma_ = resolve_sigma(self, vectors, sample_weight, resolution=resolution)
        inner = Gaussian(self.sigma_ / np.sqrt(2.0))
        self.kernel_ = inner.fit_validated(vectors, sample_weight)

    def _rescale(self) -> None:
        super()._rescale()
        self.kernel_ = self.kernel_.rescaled(self.sigma_ / np.sqrt(2.0))

    def _resolution(self, vectors: Array) -> float:
        """Return the distance up to which embedded points are considered equal."""
        return 0.0

    def prepare(self, X: Any) -> Prepared:
        """Embed, then prepare for the kernel on vectors."""
        return self.kernel_.prepare(self._embed(X))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        return self.kernel_.evaluate(a, b, out)
