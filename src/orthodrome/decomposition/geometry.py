"""Geometries of feature space: flat for kernel PCA, the unit sphere for kernel PGA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.types import Floats
from .._core.unit import angles_from_cosines, squared_radius
from .._core.warn import warn_user
from ..coordinates import Coordinates
from ..coordinates.blocks import AnchorMap, Block
from ..coordinates.points import Origin
from ..eigen.components import Components, affine_map, tangent_frame
from ..eigen.features import FeatureMoments, centered_sums
from ..gram import Centered, GramOperator, Scaled, Tangent
from ..kernels import Kernel, Precomputed
from ..rows import Rows
from ..sphere import exp_at_pole
from ..sphere.incremental import TangentMoments
from ..sphere.karcher import coordinate_mean, find_mean, log_sums, warn_about_mean

__all__ = ["FLAT", "SPHERE", "Flat", "Geometry", "Origin", "Sphere", "centered", "constant"]

# Tolerance for the gradient at the Karcher mean; float32 points do not allow a smaller one.
_MEAN_TOL = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-7}

# Number of points in a sample. Its mean is subtracted from all points before their products are
# summed to a covariance; this keeps rounding errors small.
_SAMPLE_SIZE = 1024

# partial_fit warns if the angle between the Karcher mean of all rows and that of the first rows is
# larger than this, in radians. For widely spread points, eigenvalues had an error of 1 % at 1 rad.
_MAX_DRIFT = 0.5


def centered(gram: GramOperator, weights: Floats | None) -> Centered:
    """Return the centred Gram matrix; raise if its sums overflow."""
    found = Centered(gram, weights)
    if not (np.all(np.isfinite(found.means)) and np.isfinite(found.trace())):
        raise ValueError(
            f"Kernel values or their sums overflow in {gram.dtype}; rescale the data, or "
            "choose other kernel parameters."
        )
    return found


# ---------------------------------------------------------------------- flat


@dataclass(frozen=True)
class Flat:
    """Flat feature space, with points relative to their mean: kernel PCA."""

    #: Whether eigenvalues are variances, that is, divided by the sum of the weights.
    variances = False
    on_sphere = False
    #: Approximate number of passes over the coordinates of all rows in a fit.
    passes = 2

    def wrap(
        self, gram: GramOperator, weights: Floats | None, max_iter: int
    ) -> tuple[Centered, dict[str, Any], bool]:
        """Return the centred Gram matrix, attributes of the mean, and True: the mean is exact."""
        operator = centered(gram, weights)
        attributes = {
            "_mean_coef_": None,
            "_mean_square": operator.mean_square,
            "_constant_diagonal": constant(gram.diagonal()),
        }
        return operator, attributes, True

    def frame_of(self, components: Components, operator: Centered) -> dict[str, Any]:
        """Return the attributes that map kernel values with the training points to coordinates."""
        matrix, intercept = affine_map(operator, components.coefficients)
        return {"dual_coef_": matrix, "intercept_": intercept}

    def radius_of(self, kernel: Kernel, rows: Rows) -> float | None:
        """Return None: kernel values are not divided by k(x, x)."""
        return None

    def find_origin(self, points: Coordinates, max_iter: int) -> Origin:
        """Return the mean and the covariance, computed in one pass over the points."""
        sample = points.sample(_SAMPLE_SIZE)
        # round to the precision of the vectors, so that subtraction is exact
        center = (sample.weights @ sample.vectors).astype(points.dtype).astype(np.float64)
        moments = FeatureMoments.of_sums(center, points.reduce(partial(centered_sums, center)))
        return self.origin_of(moments)

    def origin_of(self, moments: FeatureMoments, owner: str = "") -> Origin:
        """Return the mean and the covariance from moments."""
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
        """Return the axes unchanged."""
        return axes

    def embedding(self, origin: Origin, axes: Floats) -> Callable[[Block], Floats]:
        """Return the map from blocks of points to coordinates."""
        return partial(_flat_coordinates, axes, -origin.point @ axes)

    def attributes(self, anchor_map: AnchorMap, origin: Origin, axes: Floats) -> dict[str, Any]:
        """Return the attributes that map new points to coordinates."""
        dtype, decoder = anchor_map.dtype, anchor_map.decoder
        return origin.attributes | {
            "dual_coef_": (decoder @ axes).astype(dtype),
            "intercept_": (-origin.point @ axes).astype(dtype),
            "_mean_coef_": decoder @ origin.point,
            "_mean_square": float(origin.point @ origin.point),
        }

    def regressors(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the variables that predict inputs in ridge regression: the coordinates."""
        return coordinates

    def expansion(
        self, coordinates: NDArray[Any], dual_coef: NDArray[Any], mean: NDArray[Any]
    ) -> NDArray[Any]:
        """Return points with given coordinates as linear combinations of the fitted points."""
        return coordinates @ dual_coef.T + mean.astype(dual_coef.dtype)


def _flat_coordinates(axes: Floats, offset: Floats, block: Block) -> Floats:
    """Return the coordinates of a block of points in principal components."""
    return block.products(axes) + offset


# ---------------------------------------------------------------------- sphere


@dataclass(frozen=True)
class Sphere:
    """The unit sphere, with Log maps of points at their Karcher mean: kernel PGA."""

    variances = True
    on_sphere = True
    passes = 8

    def wrap(
        self, gram: GramOperator, weights: Floats | None, max_iter: int
    ) -> tuple[Tangent, dict[str, Any], bool]:
        """Return the Gram matrix of Log maps, attributes of the mean, and whether it converged."""
        radius = squared_radius(gram.diagonal())
        unit = gram if radius == 1.0 else Scaled(gram, 1.0 / radius)
        mean = find_mean(unit, weights, tol=_MEAN_TOL[np.dtype(np.float64)], max_iter=max_iter)
        warn_about_mean(mean, "KernelPGA: the Karcher mean", advice="Raise max_iter.")
        tangent = Tangent(unit, mean.point, mean.cosines)
        attributes = {
            "mean_n_iter_": mean.n_iter,
            "mean_gradient_norm_": mean.gradient_norm,
            "mean_": mean.point,
            "mean_cosines_": mean.cosines,
            "_squared_radius": radius,
            # use the trace: Σ p θ² is less accurate if lengths are only approximately 1
            "geodesic_variance_": float(np.average(tangent.diagonal(), weights=weights)),
            "_decoder_": None,
        }
        return tangent, attributes, mean.converged

    def frame_of(self, components: Components, operator: Tangent) -> dict[str, Any]:
        """Return the attributes that map kernel values with the training points to coordinates."""
        return {"dual_coef_": tangent_frame(operator, components.coefficients)}

    def radius_of(self, kernel: Kernel, rows: Rows) -> float | None:
        """Return the common k(x, x), the divisor of kernel values."""
        if isinstance(kernel, Precomputed):
            return squared_radius(np.diagonal(rows.whole()))
        if kernel.unit_norm:
            return 1.0
        if not rows.lazy:
            return squared_radius(rows.map(partial(_diagonal, kernel)))
        # a sample is enough: AnchorMap.block checks k(x, x) of the other rows
        sample = rows.take(rows.spread(_SAMPLE_SIZE, None)[0])
        return squared_radius(_diagonal(kernel, sample, 0))

    def find_origin(self, points: Coordinates, max_iter: int) -> Origin:
        """Return the Karcher mean and the covariance of the Log maps at the mean."""
        mean = coordinate_mean(points, tol=_MEAN_TOL[points.dtype], max_iter=max_iter)
        warn_about_mean(mean, "KernelPGA: the Karcher mean", advice="Raise max_iter.")
        count, second, angles, squared_ratios, trace, captured = points.reduce(
            partial(log_sums, mean.point)
        )
        total = float(angles / count)
        return Origin(
            point=mean.point,
            covariance=second / count,
            total=total,
            term_size=float(squared_ratios / count),
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

    def origin_of(self, moments: TangentMoments, owner: str) -> Origin:
        """Return the Karcher mean and the covariance from moments; warn if the mean has drifted."""
        found = moments.origin()
        drift = found.attributes["mean_drift_"]
        if drift > _MAX_DRIFT:
            warn_user(
                f"partial_fit of {owner}: the Karcher mean of all rows lies {drift:.2f} rad "
                "from that of the first rows; the larger this angle, the less accurate the "
                "components. Shuffle the rows, or pass all of them to fit.",
                UserWarning,
            )
        return found

    def axes_of(self, axes: Floats, origin: Origin) -> Floats:
        """Return the axes without their components along the mean."""
        return axes - np.outer(origin.point, origin.point @ axes)

    def embedding(self, origin: Origin, axes: Floats) -> Callable[[Block], Floats]:
        """Return the map from blocks of points to coordinates."""
        return partial(_sphere_coordinates, np.column_stack([axes, origin.point]))

    def attributes(self, anchor_map: AnchorMap, origin: Origin, axes: Floats) -> dict[str, Any]:
        """Return the attributes that map new points to coordinates."""
        dtype, decoder = anchor_map.dtype, anchor_map.decoder
        return origin.attributes | {
            "mean_": decoder @ origin.point,
            "dual_coef_": (decoder @ axes).astype(dtype),
            "_decoder_": decoder.astype(dtype) if anchor_map.unit else None,
        }

    def regressors(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the variables that predict inputs in ridge regression: points on the sphere."""
        return exp_at_pole(coordinates)

    def expansion(
        self, coordinates: NDArray[Any], dual_coef: NDArray[Any], mean: NDArray[Any]
    ) -> NDArray[Any]:
        """Return points with given coordinates as linear combinations of the fitted points."""
        return exp_at_pole(coordinates) @ np.column_stack([mean, dual_coef]).T


def _sphere_coordinates(frame: Floats, block: Block) -> Floats:
    """Return coordinates in the columns of `frame`, the last of which is the Karcher mean.

    The others are tangent vectors, and their coordinates those of the Log maps of the points. The
    last coordinate is the inner product of the point with the mean, before normalisation.
    """
    products = block.products(frame)
    cosines = products[:, -1]
    _, angle_ratios = angles_from_cosines(cosines)
    return np.column_stack([products[:, :-1] * angle_ratios[:, None], cosines * block.lengths])


Geometry = Flat | Sphere
FLAT, SPHERE = Flat(), Sphere()


def constant(diagonal: NDArray[Any]) -> float | None:
    """Return the value of a constant diagonal, or None if it is not constant."""
    first = float(diagonal[0])
    return first if np.abs(diagonal - first).max() <= 1e-6 * abs(first) else None


def _diagonal(kernel: Kernel, rows: Any, start: int, **_columns: Any) -> NDArray[Any]:
    """Return k(x, x) of each row of a block."""
    return kernel.diagonal(kernel.prepare(rows))
