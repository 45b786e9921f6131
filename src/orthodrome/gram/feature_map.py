"""Features of rows by anchors, a block at a time, and the sums that methods make of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.unit import angles_from_cosines, check_cosines, check_no_antipodes, squared_angles
from ..kernels import Kernel
from ..kernels._prepared import Prepared
from ..kernels.base import rectangular_block
from .anchors import Anchors
from .nystroem import check_in_span, rows_per_block, squared_lengths
from .pivots import check_captured
from .unit import squared_radius

__all__ = [
    "CenteredSums",
    "DiagonalSums",
    "FeatureMap",
    "FrameRows",
    "Lengths",
    "LogSums",
    "PullSums",
]


@dataclass(frozen=True)
class FeatureMap:
    """The map from rows to features by anchors: what :class:`NystroemFeatures` is made of.

    Attributes
    ----------
    kernel : Kernel
        A fitted kernel.
    anchors : Prepared
        The anchors, prepared by it.
    decoder : ndarray of shape (m, r)
        R⁻¹.
    dtype : dtype
        The precision of the features.
    unit : bool
        Whether features are divided by their lengths.
    radius : float or None
        What k(x, x) must be, and is divided out; None allows any.
    """

    kernel: Kernel
    anchors: Prepared
    decoder: NDArray[Any]
    dtype: np.dtype[Any]
    unit: bool = False
    radius: float | None = None

    @classmethod
    def by(
        cls, kernel: Kernel, anchors: Anchors, *, unit: bool, radius: float | None
    ) -> FeatureMap:
        """Make the map by anchors of points."""
        points = anchors.points
        return cls(kernel, kernel.prepare(points), anchors.decoder, points.dtype, unit, radius)

    @property
    def rows_at_once(self) -> int:
        """How many rows are looked at together: what fits a cache."""
        return rows_per_block(len(self.anchors), self.dtype)

    def look(self, rows: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return kernel values of rows with the anchors, and k(x, x); both over the radius."""
        points = self.kernel.prepare(rows)
        diagonal = self.kernel.diagonal(points)
        if self.radius is not None:
            squared_radius(diagonal, self.radius)
        elif not np.all(np.isfinite(diagonal)):
            row = int(np.flatnonzero(~np.isfinite(diagonal))[0])
            raise ValueError(
                f"Kernel values overflow in {diagonal.dtype} at row {row}; rescale the data, or "
                "choose other parameters of the kernel."
            )
        values = rectangular_block(self.kernel, points, self.anchors)
        if self.radius is not None and self.radius != 1.0:
            values *= values.dtype.type(1.0 / self.radius)
        own = diagonal.astype(np.float64) / (self.radius or 1.0)
        return values.astype(self.dtype, copy=False), own

    def features(
        self, values: NDArray[Any], own: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the features that belong to kernel values, and their squared lengths before.

        `own` is k(x, x): features of a positive definite kernel are not longer.
        """
        features = values @ self.decoder.astype(self.dtype, copy=False)
        squares = squared_lengths(features)
        check_captured(squares, own)
        if self.unit:
            check_in_span(squares)
            features /= np.sqrt(squares).astype(self.dtype)[:, None]
        return features, squares

    def lengths(
        self, values: NDArray[Any], own: NDArray[np.float64], squares: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | float:
        """Return what features are divided by, from squared lengths if those are known."""
        if not self.unit:
            return 1.0
        if squares is None:
            squares = self.features(values, own)[1]
        return np.sqrt(squares)


@dataclass(frozen=True)
class _OfFeatures:
    """A function of blocks that looks at features.

    What goes along with the rows are the weights, if it is `weighted`, and the squared lengths of
    the features, if they were `measured` before.
    """

    map: FeatureMap
    weighted: bool = False
    measured: bool = False

    @property
    def rows_at_once(self) -> int:
        return self.map.rows_at_once

    def _along(self, rows: Any, along: tuple[Any, ...]) -> tuple[Any, NDArray[np.float64] | None]:
        """Return the weights, and the squared lengths or None."""
        weights = along[0] if self.weighted else np.ones(rows.shape[0])
        return weights, along[-1] if self.measured else None

    def _second_moment(self, z: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any]:
        if self.weighted:
            z = z * np.sqrt(weights).astype(z.dtype)[:, None]
        return z.T @ z


@dataclass(frozen=True)
class DiagonalSums:
    """Sums of the weights and of k(x, x)."""

    kernel: Kernel

    def __call__(self, rows: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        """Return the sums over a block."""
        diagonal = self.kernel.diagonal(self.kernel.prepare(rows)).astype(np.float64)
        if weights is None:
            return float(len(diagonal)), diagonal.sum()
        return weights.sum(), weights @ diagonal


class Lengths(_OfFeatures):
    """Squared lengths of the features of each row, before they are divided by them."""

    def __call__(self, rows: Any, start: int) -> NDArray[np.float64]:
        """Return a number for each row of a block."""
        return self.map.features(*self.map.look(rows))[1]


@dataclass(frozen=True, kw_only=True)
class CenteredSums(_OfFeatures):
    """Moments of features about a center near their mean, for principal components.

    The sums are those of the weights w, of w z and w z zᵀ with z the features from the center, of
    w k(x, x) and of its square, and of w ‖f‖². With a center for the rows x themselves, also of w y
    and w z yᵀ with y the rows from there (sparse rows: from 0).
    """

    center: NDArray[np.float64]
    input_center: NDArray[np.float64] | None = None

    def __call__(self, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
        """Return the sums over a block."""
        w, _ = self._along(rows, along)
        values, diagonal = self.map.look(rows)
        features, squares = self.map.features(values, diagonal)
        z = features - self.center.astype(self.map.dtype)
        second = self._second_moment(z, w)
        sums = (w.sum(), w @ z, second, w @ diagonal, w @ diagonal**2, w @ squares)
        return sums if self.input_center is None else sums + self._with_inputs(rows, z, w)

    def _with_inputs(
        self, rows: Any, z: NDArray[Any], w: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        sparse = scipy.sparse.issparse(rows)  # differences would not be sparse
        y = rows if sparse else rows.astype(np.float64) - self.input_center
        return y.T @ w, np.asarray((y.T @ (z * w[:, None])).T)


@dataclass(frozen=True, kw_only=True)
class PullSums(_OfFeatures):
    """What pulls a point of the sphere towards the mean of features.

    The sums are those of the weights w, of w θ², of w θ cot θ, of w k(x, ·) θ/sin θ with all
    anchors (divided by lengths), and the number of points outside the open hemisphere.
    """

    point: NDArray[np.float64]

    def __call__(self, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
        """Return the sums over a block."""
        w, squares = self._along(rows, along)
        values, own = self.map.look(rows)
        lengths = self.map.lengths(values, own, squares)
        wide = values.astype(np.float64, copy=False)
        cosines = wide @ (self.map.decoder @ self.point) / lengths
        eps = float(np.finfo(self.map.dtype).eps)
        check_cosines(cosines, eps, "the points")
        angles, stretches = angles_from_cosines(cosines)
        # an antipode pulls in every direction, and so in none
        pulls = np.multiply(w, stretches, out=np.zeros_like(w), where=np.isfinite(stretches))
        far = np.count_nonzero((cosines <= 0) & (w > 0))
        return w.sum(), w @ angles**2, pulls @ cosines, (pulls / lengths) @ wide, float(far)


@dataclass(frozen=True, kw_only=True)
class LogSums(_OfFeatures):
    """Moments of Log maps of features at a point, for principal geodesic components.

    The sums are those of the weights w, of w z zᵀ with z the Log maps, of w θ² with the angles of
    the points themselves, of w (θ/sin θ)², of w k(x, x) and of w ‖f‖².
    """

    point: NDArray[np.float64]

    def __call__(self, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
        """Return the sums over a block."""
        w, _ = self._along(rows, along)
        values, diagonal = self.map.look(rows)
        features, squares = self.map.features(values, diagonal)
        lengths = np.sqrt(squares) if self.map.unit else 1.0
        wide = values.astype(np.float64, copy=False)
        cosines = wide @ (self.map.decoder @ self.point) / lengths
        check_no_antipodes(cosines, float(np.finfo(self.map.dtype).eps), "points")
        _, stretches = angles_from_cosines(cosines)
        z = self._logs(features, cosines, stretches)
        total = w @ squared_angles(cosines * lengths, diagonal)
        second = self._second_moment(z, w)
        return w.sum(), second, total, w @ stretches**2, w @ diagonal, w @ squares

    def _logs(
        self,
        features: NDArray[Any],
        cosines: NDArray[np.float64],
        stretches: NDArray[np.float64],
    ) -> NDArray[Any]:
        """Return s (f - c μ), in place."""
        c, s, point = (array.astype(self.map.dtype) for array in (cosines, stretches, self.point))
        features -= np.multiply.outer(c, point)
        features *= s[:, None]
        return features


@dataclass(frozen=True, kw_only=True)
class FrameRows(_OfFeatures):
    """Inner products of features with the columns of a frame, in float64, for each row.

    The last column is the length of the features before they were divided by it, or 1.
    """

    frame: NDArray[np.float64]

    def __call__(self, rows: Any, start: int, *along: Any) -> NDArray[np.float64]:
        """Return inner products and lengths, for each row of a block."""
        _, squares = self._along(rows, along)
        values, own = self.map.look(rows)
        lengths = np.broadcast_to(self.map.lengths(values, own, squares), values.shape[0])
        products = values.astype(np.float64, copy=False) @ (self.map.decoder @ self.frame)
        return np.column_stack([products / lengths[:, None], lengths])

    def times(self, factors: NDArray[np.float64]) -> FrameRows:
        """Return the same for columns that are multiplied by these numbers."""
        return replace(self, frame=self.frame * factors)
