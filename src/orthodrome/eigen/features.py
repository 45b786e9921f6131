"""Moments and principal axes of explicit features."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._core.types import Floats
from ..coordinates.blocks import Block
from .dense import largest_pairs


@dataclass(frozen=True)
class FeatureMoments:
    """Moments of weighted features, which can be merged with those of other rows.

    Attributes
    ----------
    count : float
        The sum of the weights.
    mean : ndarray of shape (r,)
        The mean of the features.
    scatter : ndarray of shape (r, r)
        Σ w (f - mean)(f - mean)ᵀ.
    trace, squared, captured : float
        Σ w k(x, x), Σ w k(x, x)² and Σ w ‖f‖².
    input_mean : ndarray of shape (d,) or None
        The mean x̄ of the input rows, if pre-images are needed.
    cross : ndarray of shape (r, d) or None
        Σ w (f - mean)(x - x̄)ᵀ.

    Examples
    --------
    >>> one = FeatureMoments(1.0, np.zeros(1), np.zeros((1, 1)), 1.0, 1.0, 0.0)
    >>> two = FeatureMoments(3.0, np.full(1, 4.0), np.zeros((1, 1)), 48.0, 768.0, 48.0)
    >>> both = one.with_part(two)
    >>> both.mean, both.covariance
    (array([3.]), array([[3.]]))
    """

    count: float
    mean: Floats
    scatter: Floats
    trace: float
    squared: float
    captured: float
    input_mean: Floats | None = None
    cross: Floats | None = None

    @classmethod
    def of_sums(
        cls, center: Floats, sums: tuple[Floats, ...], input_center: Floats | None = None
    ) -> FeatureMoments:
        """Return moments from the sums of :func:`centered_sums` about a center."""
        count, first, second, trace, squared, captured, *inputs = sums
        shift = first / count
        input_mean = cross = None
        if input_center is not None:
            input_shift = inputs[0] / count
            input_mean = input_center + input_shift
            cross = inputs[1] - count * np.outer(shift, input_shift)
        scatter = second - count * np.outer(shift, shift)
        scalars = (float(trace), float(squared), float(captured))
        return cls(float(count), center + shift, scatter, *scalars, input_mean, cross)

    @property
    def covariance(self) -> Floats:
        """The covariance of the features."""
        return self.scatter / self.count

    def with_part(self, other: FeatureMoments) -> FeatureMoments:
        """Return the moments of all rows of both.

        References
        ----------
        Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
        variances", 1979.
        """
        count = self.count + other.count
        step = other.mean - self.mean
        between = (self.count / count) * other.count
        input_mean = cross = None
        if self.input_mean is not None and other.input_mean is not None:
            input_step = other.input_mean - self.input_mean
            input_mean = self.input_mean + (other.count / count) * input_step
            cross = np.asarray(self.cross) + np.asarray(other.cross)
            cross = cross + between * np.outer(step, input_step)
        return FeatureMoments(
            count=count,
            mean=self.mean + (other.count / count) * step,
            scatter=self.scatter + other.scatter + between * np.outer(step, step),
            trace=self.trace + other.trace,
            squared=self.squared + other.squared,
            captured=self.captured + other.captured,
            input_mean=input_mean,
            cross=cross,
        )


def centered_sums(center: Floats, block: Block) -> tuple[Any, ...]:
    """Return sums over a block of points, for moments about a center near their mean.

    With z = f - center, the terms are w, w z, w z zᵀ, w k(x, x), w k(x, x)² and w ‖f‖².
    """
    w = np.ones(block.n) if block.weights is None else block.weights
    z = block.vectors() - center.astype(block.dtype)
    scaled = z if block.weights is None else z * np.sqrt(w).astype(z.dtype)[:, None]
    with np.errstate(over="ignore"):  # the caller checks that it is finite
        squared = w @ block.diagonal**2
    return w.sum(), w @ z, scaled.T @ scaled, w @ block.diagonal, squared, w @ block.captured


def feature_axes(
    covariance: Floats,
    n_components: float | None,
    *,
    total: float,
    n: int,
    floor: float,
    eps: float,
) -> tuple[Floats, Floats]:
    """Return the leading variances, of shape (k,), and axes, of shape (r, k).

    `n_components` is k (at most n), the fraction of `total` to explain, or None for all nonzero
    variances. Variances are descending; axes are unit columns. A variance of at most `floor`, or 10
    `eps` times the largest, may be a rounding error: it is set to 0, and so is its axis. If k
    exceeds r, zeros are appended. `eps` is the machine epsilon of the features.
    """
    found = None
    if isinstance(n_components, numbers.Integral) and n_components < len(covariance):
        found = largest_pairs(np.array(np.asarray_chkfinite(covariance)), int(n_components))
    if found is None:  # all pairs are wanted, or LAPACK found too few
        found = scipy.linalg.eigh(covariance, driver="evd")
    values, axes = found[0][::-1], found[1][:, ::-1]
    floor = max(floor, 10 * eps * float(np.abs(values).max()))
    nonzero = values > floor
    values, axes = np.where(nonzero, values, 0.0), axes * nonzero
    if n_components is None:
        count = max(1, int(np.count_nonzero(nonzero)))
    elif isinstance(n_components, numbers.Integral):
        count = min(int(n_components), n)
    else:
        reached = np.flatnonzero(np.cumsum(values) >= float(n_components) * total)
        count = int(reached[0]) + 1 if len(reached) else max(1, int(np.count_nonzero(nonzero)))
    missing = max(0, count - len(values))
    values = np.pad(values[:count], (0, missing))
    return values, np.pad(axes[:, :count], [(0, 0), (0, missing)])
