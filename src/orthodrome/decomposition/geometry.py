"""The one difference between kernel PCA and kernel PGA: flat feature space, or its sphere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.types import Floats
from .._core.unit import (
    angles_from_cosines,
)
from ..coordinates import Coordinates
from ..coordinates.blocks import AnchorMap, Block
from ..eigen.components import Components, affine_map, tangent_frame
from ..eigen.features import CenteredSums, FeatureMoments
from ..gram import Centered, GramOperator, Scaled, Tangent
from ..gram.unit import squared_radius
from ..kernels import Kernel, Precomputed
from ..rows import Rows
from ..sphere import exp_at_pole
from ..sphere.karcher import find_mean, warn_about_mean
from ..sphere.newton import LogSums, coordinate_mean

__all__ = ["FLAT", "SPHERE", "Flat", "Origin", "Sphere", "constant"]

# The mean enters every coordinate; float32 points have no more digits than these.
_MEAN_TOL = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-7}


@dataclass(frozen=True)
class Origin:
    """What is known of points with coordinates: where their center is, and how they vary about it.

    Attributes
    ----------
    point : ndarray of shape (m,)
        The mean.
    covariance : ndarray of shape (m, m)
        Of the points, or of their Log maps, about it.
    total : float
        The variance in feature space, what the anchors leave out included.
    term_size : float
        How large the terms are whose differences the covariance is made of.
    count : float
        The sum of the weights.
    trace, left_out : float
        The mean of k(x, x), and what of it the vectors leave out.
    attributes : dict
        What an estimator keeps of it.
    converged : bool
        Whether the search for the mean reached its tolerance.
    """

    point: Floats
    covariance: Floats
    total: float
    term_size: float
    count: float
    trace: float
    left_out: float
    attributes: dict[str, Any] = field(default_factory=dict)
    converged: bool = True

    @property
    def trace_error(self) -> float:
        """The part of the trace that is left out."""
        return max(self.left_out, 0.0) / self.trace if self.trace > 0 else 0.0


@dataclass(frozen=True)
class _Diagonal:
    """k(x, x) of each row of a block."""

    kernel: Kernel

    def __call__(self, rows: Any, start: int, **_columns: Any) -> NDArray[Any]:
        return self.kernel.diagonal(self.kernel.prepare(rows))


@dataclass(frozen=True)
class _DiagonalSums:
    """Sums of 1 and of k(x, x) over a block."""

    kernel: Kernel

    def __call__(self, rows: Any, start: int, **_columns: Any) -> tuple[Any, ...]:
        diagonal = self.kernel.diagonal(self.kernel.prepare(rows)).astype(np.float64)
        return float(len(diagonal)), diagonal.sum()


# ---------------------------------------------------------------------- flat


@dataclass(frozen=True)
class Flat:
    """Points about their mean in feature space: kernel PCA."""

    #: Whether eigenvalues are divided by the sum of the weights.
    variances = False
    on_sphere = False
    #: About how many passes over the coordinates of all rows a fit makes.
    passes = 2

    def wrap(
        self, gram: GramOperator, weights: Floats | None, max_iter: int
    ) -> tuple[Centered, dict[str, Any], bool]:
        """Return the centred Gram matrix, and what an estimator keeps of the mean."""
        centered = Centered(gram, weights)
        if not (np.all(np.isfinite(centered.means)) and np.isfinite(centered.trace())):
            raise ValueError(
                f"Kernel values or their sums overflow in {gram.dtype}; rescale the data, or "
                "choose other parameters of the kernel."
            )
        kept = {
            "_mean_coef_": None,
            "_mean_square": centered.mean_square,
            "_constant_diagonal": constant(gram.diagonal()),
        }
        return centered, kept, True

    def frame_of(self, components: Components, geometry: Centered) -> dict[str, Any]:
        """Return what maps products with the training points to coordinates."""
        matrix, constant = affine_map(geometry, components.coefficients)
        return {"dual_coef_": matrix, "intercept_": constant}

    def radius_of(self, kernel: Kernel, rows: Rows) -> float | None:
        """Return what kernel values are divided by; None, as k(x, x) may be anything."""
        return None

    def look(self, points: Coordinates, max_iter: int) -> Origin:
        """Return the mean and the covariance, by one pass about the mean of a few points."""
        sample = points.sample(_FEW)
        # in the precision of the vectors: what is taken from them is what is added again
        center = (sample.shares @ sample.vectors).astype(points.dtype).astype(np.float64)
        moments = FeatureMoments.of_sums(center, points.reduce(CenteredSums(center)))
        return self.origin(moments)

    def origin(self, moments: FeatureMoments) -> Origin:
        """Return the same from moments."""
        square, trace = float(moments.mean @ moments.mean), moments.trace / moments.count
        size = float(np.sqrt(moments.squared / moments.count))
        return Origin(
            point=moments.mean,
            covariance=moments.covariance,
            total=trace - square,
            term_size=max(size if np.isfinite(size) else trace, square),
            count=moments.count,
            trace=trace,
            left_out=trace - moments.captured / moments.count,
            attributes={"_constant_diagonal": None},
        )

    def axes_of(self, axes: Floats, origin: Origin) -> Floats:
        """Return the axes as they are."""
        return axes

    def embedding(self, origin: Origin, axes: Floats) -> FlatRows:
        """Return the function of blocks that gives coordinates."""
        return FlatRows(axes, -origin.point @ axes)

    def attributes(self, by: AnchorMap, origin: Origin, axes: Floats) -> dict[str, Any]:
        """Return what maps new points to coordinates."""
        dtype, decoder = by.dtype, by.decoder
        return origin.attributes | {
            "dual_coef_": (decoder @ axes).astype(dtype),
            "intercept_": (-origin.point @ axes).astype(dtype),
            "_mean_coef_": decoder @ origin.point,
            "_mean_square": float(origin.point @ origin.point),
        }

    def regressors(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the linear coordinates in feature space that inputs are regressed on."""
        return coordinates

    def expansion(
        self, coordinates: NDArray[Any], dual_coef: NDArray[Any], mean: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the coefficients over the fitted points that coordinates stand for."""
        return coordinates @ dual_coef.T + mean.astype(dual_coef.dtype)


@dataclass(frozen=True)
class FlatRows:
    """Coordinates of a block of points in principal components."""

    axes: Floats
    offset: Floats

    def __call__(self, block: Block) -> Floats:
        """Return the coordinates."""
        return block.products(self.axes) + self.offset

    def signed(self, signs: Floats) -> FlatRows:
        """Return the same with other signs."""
        return FlatRows(self.axes * signs, self.offset * signs)


# ---------------------------------------------------------------------- sphere


@dataclass(frozen=True)
class Sphere:
    """Log maps of points at their Karcher mean: kernel PGA."""

    variances = True
    on_sphere = True
    passes = 8

    def wrap(
        self, gram: GramOperator, weights: Floats | None, max_iter: int
    ) -> tuple[Tangent, dict[str, Any], bool]:
        """Return the Gram matrix of the Log maps, and what an estimator keeps of the mean."""
        radius = squared_radius(gram.diagonal())
        unit = gram if radius == 1.0 else Scaled(gram, 1.0 / radius)
        mean = find_mean(unit, weights, tol=_MEAN_TOL[np.dtype(np.float64)], max_iter=max_iter)
        warn_about_mean(mean, "KernelPGA: the Karcher mean", advice="Raise max_iter.")
        tangent = Tangent(unit, mean.point, mean.cosines)
        kept = {
            "mean_n_iter_": mean.n_iter,
            "mean_gradient_norm_": mean.gradient_norm,
            "mean_": mean.point,
            "mean_cosines_": mean.cosines,
            "_squared_radius": radius,
            # its trace rather than Σ p θ², which feels lengths that are 1 only nearly
            "geodesic_variance_": float(np.average(tangent.diagonal(), weights=weights)),
            "_decoder_": None,
        }
        return tangent, kept, mean.converged

    def frame_of(self, components: Components, geometry: Tangent) -> dict[str, Any]:
        """Return what maps products with the training points to coordinates."""
        return {"dual_coef_": tangent_frame(geometry, components.coefficients)}

    def radius_of(self, kernel: Kernel, rows: Rows) -> float | None:
        """Return the common k(x, x), which kernel values are divided by."""
        if isinstance(kernel, Precomputed):
            return squared_radius(np.diagonal(rows.whole()))
        if kernel.unit_norm:
            return 1.0
        if not rows.lazy:
            return squared_radius(rows.map(_Diagonal(kernel)))
        total, diagonal = rows.reduce(_DiagonalSums(kernel))
        return float(diagonal / total)  # that it is the same for all is checked with the points

    def look(self, points: Coordinates, max_iter: int) -> Origin:
        """Return the Karcher mean and the covariance of the Log maps there."""
        mean = coordinate_mean(points, tol=_MEAN_TOL[points.dtype], max_iter=max_iter)
        warn_about_mean(mean, "KernelPGA: the Karcher mean", advice="Raise max_iter.")
        count, second, angles, stretched, trace, captured = points.reduce(LogSums(mean.point))
        total = float(angles / count)
        return Origin(
            point=mean.point,
            covariance=second / count,
            total=total,
            term_size=float(stretched / count),
            count=float(count),
            trace=float(trace / count),
            left_out=float((trace - captured) / count),
            attributes={
                "mean_n_iter_": mean.n_iter,
                "mean_gradient_norm_": mean.gradient_norm,
                "geodesic_variance_": total,
            },
            converged=mean.converged,
        )

    def axes_of(self, axes: Floats, origin: Origin) -> Floats:
        """Return axes that are orthogonal to the mean; those of no variance need not be."""
        return axes - np.outer(origin.point, origin.point @ axes)

    def embedding(self, origin: Origin, axes: Floats) -> SphereRows:
        """Return the function of blocks that gives coordinates."""
        return SphereRows(np.column_stack([axes, origin.point]))

    def attributes(self, by: AnchorMap, origin: Origin, axes: Floats) -> dict[str, Any]:
        """Return what maps new points to coordinates."""
        dtype, decoder = by.dtype, by.decoder
        return origin.attributes | {
            "mean_": decoder @ origin.point,
            "dual_coef_": (decoder @ axes).astype(dtype),
            "_decoder_": decoder.astype(dtype) if by.unit else None,
        }

    def regressors(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the points of the sphere, which inputs are regressed on."""
        return exp_at_pole(coordinates)

    def expansion(
        self, coordinates: NDArray[Any], dual_coef: NDArray[Any], mean: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the coefficients over the fitted points that coordinates stand for."""
        return exp_at_pole(coordinates) @ np.column_stack([mean, dual_coef]).T


@dataclass(frozen=True)
class SphereRows:
    """Coordinates of a block of points in principal geodesic components; last, their cosines."""

    frame: Floats

    def __call__(self, block: Block) -> Floats:
        """Return the coordinates, and a column of the cosines of the points with the mean."""
        products = block.products(self.frame)
        cosines = products[:, -1]
        _, stretches = angles_from_cosines(cosines)
        return np.column_stack([products[:, :-1] * stretches[:, None], cosines * block.lengths])

    def signed(self, signs: Floats) -> SphereRows:
        """Return the same with other signs."""
        return SphereRows(self.frame * np.append(signs, 1.0))


FLAT, SPHERE = Flat(), Sphere()


def constant(diagonal: NDArray[Any]) -> float | None:
    """Return the common value of a constant diagonal, None if it is not constant."""
    first = float(diagonal[0])
    return first if np.allclose(diagonal, first, rtol=1e-6, atol=0) else None


# Points whose mean is where the others are measured from.
_FEW = 1024
