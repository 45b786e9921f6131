"""Kernel PCA and kernel PGA of rows that come in blocks: passes that keep only sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.memory import parse_bytes
from .._core.progress import tracked
from .._core.status import Status
from .._core.threads import single_threaded_blas
from .._core.unit import angles_from_cosines
from ..eigen import FeatureMoments, Nystroem, orient, orient_by_moments
from ..gram import (
    CenteredSums,
    DiagonalSums,
    FeatureMap,
    FrameRows,
    Lengths,
    LogSums,
    NystroemFeatures,
    RowSource,
    as_source,
    fit_kernel,
    kind_of,
    nystroem_features,
)
from ..gram.inputs import is_memory_map
from ..kernels import Kernel, Precomputed
from ..preimage import RidgeMap, decode_components, has_fixed_point
from ..preimage.ridge import ridge_of_moments
from ..sphere.streamed import StreamedMean, streamed_mean
from .anchors import (
    MEAN_TOL,
    FeatureFit,
    Traces,
    anchors_for,
    axes_of,
    axes_of_moments,
    flat_attributes,
    keep_anchors,
    keep_components,
    keep_rows,
    sphere_attributes,
    warn_if_few,
)
from .base import SAMPLE, resolved_solver, warn_if_rounding

__all__ = [
    "OF_ROWS",
    "FeatureStream",
    "StreamFit",
    "comes_in_blocks",
    "coordinates_fit",
    "feature_solver_for_blocks",
    "fit_on_source",
    "pca_of_stream",
    "pga_of_stream",
]

# Of the memory budget: what coordinates of all rows may take, with their eigenvectors, while both
# are computed.
_PART_FOR_ROWS = 0.25

# Fitted attributes with a row or a number for each row.
OF_ROWS = ("embedding_", "eigenvectors_", "mean_cosines_", "sphere_coordinates_")


@dataclass(frozen=True)
class FeatureStream:
    """Features of rows that come in blocks, and a sample of them.

    Attributes
    ----------
    source : RowSource
        The rows.
    map : FeatureMap
        Takes them to features.
    weights : array of shape (n,) or None
        Their weights.
    squares : array of shape (n,) or None
        Squared lengths of the features, before they were divided by them, where they are known.
    sample : NystroemFeatures
        Features of some rows.
    sample_weight : ndarray or None
        Their weights.
    """

    source: RowSource
    map: FeatureMap
    weights: Any
    squares: Any
    sample: NystroemFeatures
    sample_weight: NDArray[np.float64] | None

    @property
    def along(self) -> tuple[Any, ...]:
        """What goes along with the rows."""
        return tuple(array for array in (self.weights, self.squares) if array is not None)

    @property
    def seen(self) -> dict[str, Any]:
        """What functions of blocks are told: the map, and what goes along."""
        return {
            "map": self.map,
            "weighted": self.weights is not None,
            "measured": self.squares is not None,
        }

    @property
    def sample_share(self) -> NDArray[np.float64]:
        """The weights of the sample, over their sum."""
        n = self.sample.shape[0]
        given = np.ones(n) if self.sample_weight is None else self.sample_weight
        return given / given.sum()


@dataclass(frozen=True)
class StreamFit:
    """Components of a stream before their signs are chosen.

    `rows` returns, for each row, coordinates in its first columns; `attributes` makes of the axes
    what an estimator keeps, `beside` names what further columns of `rows` are.
    """

    variances: NDArray[np.float64]
    axes: NDArray[np.float64]
    total: float
    rounding: float
    count: float
    traces: Traces
    rows: Any
    attributes: Any
    beside: str | None = None
    mean: StreamedMean | None = None


def comes_in_blocks(estimator: Any, X: Any, kernel: Kernel) -> bool:
    """Tell whether an estimator is to pass over X in blocks.

    A memory map is read so where the solver works on features; others may need it whole.
    """
    if kind_of(X, kernel) != "array":
        return True
    if not is_memory_map(X) or isinstance(kernel, Precomputed):
        return False
    return estimator._feature_solver(X.shape[0]) is not None


def feature_solver_for_blocks(estimator: Any) -> Nystroem | None:
    """Return the solver if it is the one that works on features; "auto" is that here."""
    asked = "nystroem" if estimator.solver == "auto" else None
    found = resolved_solver(estimator, 1, 1, solver=asked)
    return found if isinstance(found, Nystroem) else None


def fit_on_source(estimator: Any, X: Any, kernel: Kernel, sample_weight: Any) -> None:
    """Fit a spectral decomposition to rows that come in blocks."""
    if isinstance(kernel, Precomputed):
        raise ValueError(
            f"{type(estimator).__name__} takes a precomputed Gram matrix as one array, in memory "
            "or memory-mapped, not in blocks."
        )
    solver = feature_solver_for_blocks(estimator)
    if solver is None:
        raise ValueError(
            f"solver={estimator.solver!r} of {type(estimator).__name__} compares all rows with all "
            f"others, and does not take a {type(X).__name__}, which is read in blocks. Take "
            "solver='nystroem', or give an array in memory or a memory map."
        )
    source = as_source(X, kernel, estimator)
    for name in OF_ROWS:  # of an earlier fit
        vars(estimator).pop(name, None)
    weights = source.weights(sample_weight, type(estimator).__name__)
    with tracked(estimator, bool(estimator.verbose)) as progress, single_threaded_blas():
        numbers, counts = source.spread(SAMPLE, weights)
        sample = source.take(numbers)
        counted = None if weights is None and len(numbers) == source.shape[0] else counts
        along = () if weights is None else (weights,)
        kernel = fit_kernel(kernel, source, sample, counted, along)
        radius = _radius(estimator, kernel, source)
        anchors = anchors_for(estimator, kernel, source, weights, solver, 1.0 / (radius or 1.0))
        unit = estimator._on_sphere and solver.sphere == "unit"
        features = FeatureMap.by(kernel, anchors, unit=unit, radius=radius)
        progress.advance(0.25, "anchors")
        stream = FeatureStream(
            source,
            features,
            weights,
            source.per_row(Lengths(features)) if unit and not source.lazy else None,
            nystroem_features(kernel, sample, anchors, unit=unit, scale=1.0 / (radius or 1.0)),
            counted,
        )
        progress.advance(0.5, "features")
        fit = estimator._fit_of_stream(stream)
        estimator._squared_radius = 1.0 if radius is None else radius
        keep_anchors(estimator, kernel, anchors, weights)
        status, rows = _keep(estimator, fit, stream, solver)
        if not has_fixed_point(kernel, sample):
            estimator._ridge_ = _ridge(estimator, kernel, rows, stream, sample)
    warn_if_rounding(estimator.eigenvalues_, fit.rounding, sample, kernel)
    warn_if_few(estimator, status, solver)


def _radius(estimator: Any, kernel: Kernel, source: RowSource) -> float | None:
    """Return what kernel values are divided by, None where k(x, x) may be any."""
    if not estimator._on_sphere:
        return None
    if kernel.unit_norm:
        return 1.0
    total, diagonal = source.sums(DiagonalSums(kernel))
    return float(diagonal / total)  # that it is the same for all is checked with the features


# ---------------------------------------------------------------------- the two geometries


@dataclass(frozen=True)
class _FlatRows:
    """Coordinates of rows in principal components."""

    frame: FrameRows
    offset: NDArray[np.float64]

    @property
    def rows_at_once(self) -> int:
        return self.frame.rows_at_once

    def __call__(self, rows: Any, start: int, *along: Any) -> NDArray[np.float64]:
        return self.frame(rows, start, *along)[:, :-1] + self.offset

    def signed(self, signs: NDArray[np.float64]) -> _FlatRows:
        """Return the same with other signs."""
        return _FlatRows(self.frame.times(signs), self.offset * signs)


@dataclass(frozen=True)
class _SphereRows:
    """Coordinates of rows in principal geodesic components, and their cosines with the mean."""

    frame: FrameRows

    @property
    def rows_at_once(self) -> int:
        return self.frame.rows_at_once

    def __call__(self, rows: Any, start: int, *along: Any) -> NDArray[np.float64]:
        products = self.frame(rows, start, *along)
        cosines, lengths = products[:, -2], products[:, -1]
        _, stretches = angles_from_cosines(cosines)
        return np.column_stack([products[:, :-2] * stretches[:, None], cosines * lengths])

    def signed(self, signs: NDArray[np.float64]) -> _SphereRows:
        """Return the same with other signs."""
        return _SphereRows(self.frame.times(np.append(signs, 1.0)))


def pca_of_stream(stream: FeatureStream, n_components: int | float | None) -> StreamFit:
    """Return the principal components of features about their mean, by one pass.

    It is what :func:`pca_of_features` returns, from moments about the mean of a sample.
    """
    # in the precision of the features: what is taken from them is what is added again
    center = stream.sample.combine(stream.sample_share).astype(stream.map.dtype)
    center = center.astype(np.float64)
    sums = stream.source.sums(CenteredSums(**stream.seen, center=center), along=stream.along)
    moments = FeatureMoments.of_sums(center, sums)
    found, total, floor = axes_of_moments(moments, stream.map, n_components, stream.source.shape[0])
    return StreamFit(
        variances=found.variances,
        axes=found.axes,
        total=total,
        rounding=floor,
        count=moments.count,
        traces=Traces.of(moments),
        rows=_FlatRows(FrameRows(**stream.seen, frame=found.axes), -moments.mean @ found.axes),
        attributes=lambda axes: flat_attributes(stream.map, moments.mean, axes),
    )


def pga_of_stream(
    stream: FeatureStream, n_components: int | float | None, *, max_iter: int
) -> StreamFit:
    """Return the principal geodesic components of features, by a pass for each step to the mean.

    It is what :func:`pga_of_features` returns.
    """
    mean = streamed_mean(
        stream.source,
        stream.map,
        stream.sample,
        stream.sample_weight,
        weights=stream.weights,
        squares=stream.squares,
        tol=MEAN_TOL[stream.map.dtype],
        max_iter=max_iter,
    )
    sums = stream.source.sums(LogSums(**stream.seen, point=mean.point), along=stream.along)
    count, second, angles, stretched, trace, captured = sums
    total = float(angles / count)
    n, size = stream.source.shape[0], float(stretched / count)
    found, floor = axes_of(stream.map, second / count, n_components, total, size, n)
    # to rounding the axes are orthogonal to the mean; those of no variance need not be
    axes = found.axes - np.outer(mean.point, mean.point @ found.axes)
    frame = FrameRows(**stream.seen, frame=np.column_stack([axes, mean.point]))
    return StreamFit(
        variances=found.variances,
        axes=axes,
        total=total,
        rounding=floor,
        count=float(count),
        traces=Traces(float(trace / count), float((trace - captured) / count)),
        rows=_SphereRows(frame),
        attributes=lambda axes: sphere_attributes(stream.map, mean, axes, total),
        beside="mean_cosines_",
        mean=mean,
    )


# ---------------------------------------------------------------------- what is kept


@dataclass(frozen=True)
class _ThirdMoments:
    """Sums of the third powers of coordinates, and of their moduli."""

    rows: Any
    n_components: int
    weighted: bool

    @property
    def rows_at_once(self) -> int:
        return self.rows.rows_at_once

    def __call__(self, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
        cubes = self.rows(rows, start, *along)[:, : self.n_components] ** 3
        weights = along[0] if self.weighted else np.ones(len(cubes))
        return weights @ cubes, weights @ np.abs(cubes)


def _keep(
    estimator: Any, fit: StreamFit, stream: FeatureStream, solver: Nystroem
) -> tuple[Status, Any]:
    """Choose the signs, and set the fitted attributes; those of rows where they fit.

    Also returned is the function of blocks that gives the coordinates.
    """
    k, n, source = fit.axes.shape[1], stream.source.shape[0], stream.source
    dtype = stream.map.dtype
    table = None
    if source.lazy or not coordinates_fit(estimator, n, k, dtype):
        moments = _ThirdMoments(fit.rows, k, stream.weights is not None)
        sums = source.sums(moments, along=stream.along)
        signs = orient_by_moments(*sums, beside=_of_sample(fit, stream))
    else:
        table = source.per_row(fit.rows, along=stream.along)
        # a column at a time: what is computed of it takes several times its memory
        signs = np.concatenate([orient(table[:, [j]], stream.weights) for j in range(k)])
    axes = fit.axes * signs
    kept = fit.attributes(axes)
    features = FeatureFit(fit.variances, axes, None, fit.total, fit.rounding, dtype, kept)
    status = keep_components(estimator, features, n, fit.count, fit.traces, solver)
    rows = fit.rows.signed(signs)
    if source.lazy:
        table = source.per_row(rows, along=stream.along)
    elif table is not None:
        table[:, :k] *= signs
    if table is not None:
        p = 1.0 / n if stream.weights is None else stream.weights / fit.count
        keep_rows(estimator, replace(features, embedding=table[:, :k]), p)
        if fit.beside is not None:  # a copy, which does not hold all others
            setattr(estimator, fit.beside, table[:, k].copy())
    return status, rows


def coordinates_fit(estimator: Any, n: int, k: int, dtype: np.dtype[Any]) -> bool:
    """Tell whether coordinates and eigenvectors of all rows may be kept.

    What counts is what there is while they are computed, in float64 with a column beside them.
    """
    needed = n * (8 * (k + 1) + 2 * k * dtype.itemsize)
    return needed <= _PART_FOR_ROWS * parse_bytes(estimator.memory_budget)


def _of_sample(fit: StreamFit, stream: FeatureStream) -> NDArray[np.float64]:
    """Return coordinates of the sample, but for positive factors on a sphere."""
    coordinates = stream.sample.apply(fit.axes)
    return coordinates + fit.rows.offset if isinstance(fit.rows, _FlatRows) else coordinates


@dataclass(frozen=True)
class _RidgeSums:
    """Moments of coordinates and inputs about points near their means."""

    rows: Any
    n_components: int
    weighted: bool
    decoder_features: Any
    origin: NDArray[np.float64]
    center: NDArray[np.float64]

    @property
    def rows_at_once(self) -> int:
        return self.rows.rows_at_once

    def __call__(self, rows: Any, start: int, *along: Any) -> tuple[Any, ...]:
        coordinates = self.rows(rows, start, *along)[:, : self.n_components]
        weights = along[0] if self.weighted else np.ones(len(coordinates))
        f = self.decoder_features(coordinates) - self.origin
        sparse = scipy.sparse.issparse(rows)  # measured from 0: differences would not be sparse
        x = rows if sparse else rows.astype(np.float64) - self.center
        weighted = (f * weights[:, None]).T
        return weights.sum(), weights @ f, x.T @ weights, weighted @ f, (x.T @ weighted.T).T


def _ridge(
    estimator: Any, kernel: Kernel, rows: Any, stream: FeatureStream, sample: Any
) -> RidgeMap:
    """Return the map back to inputs by ridge regression of all rows, or of the sample.

    That of shapes and matrices, which become vectors only beside others, is that of the sample.
    """
    alpha, shares = estimator.inverse_alpha, stream.sample_share
    coordinates = estimator._decoder_features(estimator._coordinates(sample).astype(np.float64))
    if not kernel.takes_vectors:
        return decode_components(coordinates, kernel.as_vectors(sample)[0], shares, alpha)
    sparse = scipy.sparse.issparse(sample)
    center = np.zeros(sample.shape[1]) if sparse else shares @ sample
    function = _RidgeSums(
        rows,
        estimator.n_components_,
        stream.weights is not None,
        estimator._decoder_features,
        shares @ coordinates,
        center,
    )
    count, first, mean, second, cross = stream.source.sums(function, along=stream.along)
    shift, moved = first / count, mean / count
    return ridge_of_moments(
        center + moved,
        function.origin + shift,
        second / count - np.outer(shift, shift),
        cross / count - np.outer(shift, moved),
        alpha,
    )
