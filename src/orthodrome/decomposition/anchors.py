"""Kernel PCA and kernel PGA on Nyström features: nothing of the size n x n, and no row kept."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.progress import tracked
from .._core.status import Status, warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.unit import angles_from_cosines, check_no_antipodes, squared_angles
from ..eigen import (
    FeatureAxes,
    FeatureMoments,
    Nystroem,
    centered_covariance,
    feature_axes,
    orient,
    tangent_covariance,
)
from ..gram import (
    Anchors,
    FeatureMap,
    NystroemFeatures,
    gram_diagonal,
    nystroem_features,
)
from ..gram.nystroem import refuse_large_features
from ..kernels import Kernel, Precomputed
from ..preimage import RidgeMap, decode_components, has_fixed_point
from ..sphere.karcher import KarcherMean, find_mean
from .base import warn_if_rounding

__all__ = [
    "FeatureFit",
    "Traces",
    "anchors_for",
    "axes_of",
    "axes_of_moments",
    "fit_on_features",
    "flat_attributes",
    "keep_anchors",
    "keep_components",
    "keep_rows",
    "most_anchors",
    "pca_of_features",
    "pga_of_features",
    "sphere_attributes",
    "warn_if_few",
]

# Of the progress bar: about what anchors and their features take of a fit.
_FEATURES_SHARE = 0.5

# The mean to rounding, as over the Gram matrix; float32 features have no more digits than these.
MEAN_TOL = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-7}


@dataclass(frozen=True)
class FeatureFit:
    """Components of features, and what a decomposition keeps of them.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Descending.
    axes : ndarray of shape (r, k)
        The components in the coordinates of the features, with their signs.
    embedding : ndarray of shape (n, k) or None
        Coordinates of the points, where they are kept.
    total : float
        The variance in feature space, what the anchors leave out included.
    rounding : float
        Up to which size a variance may be rounding.
    dtype : dtype
        The precision of the features, and of what is kept.
    kept : dict
        Fitted attributes.
    """

    variances: NDArray[np.float64]
    axes: NDArray[np.float64]
    embedding: NDArray[Any] | None
    total: float
    rounding: float
    dtype: np.dtype[Any]
    kept: dict[str, Any] = field(default_factory=dict)


def fit_on_features(
    estimator: Any, X: Any, weights: NDArray[np.float64] | None, solver: Nystroem
) -> None:
    """Fit a spectral decomposition; the anchors are all that it keeps of the data."""
    n = X.shape[0]
    p = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    with tracked(estimator, bool(estimator.verbose)) as progress, single_threaded_blas():
        kernel = estimator._fit_kernel(X, weights)
        diagonal = gram_diagonal(kernel, X)
        radius = estimator._squared_radius_of(diagonal)
        asked = solver.n_anchors if solver.tol is None else None
        refuse_large_features(X, asked, estimator.memory_budget, estimator.storage)
        anchors = anchors_for(estimator, kernel, X, weights, solver, 1.0 / radius)
        own = diagonal.astype(np.float64) / radius
        features = nystroem_features(
            kernel,
            X,
            anchors,
            unit=estimator._on_sphere and solver.sphere == "unit",
            scale=1.0 / radius,
            diagonal=own,
            memory_budget=estimator.memory_budget,
            storage=estimator.storage,
        )
        progress.advance(_FEATURES_SHARE, "features")
        fit = estimator._fit_of_features(features, own, p)
    estimator._squared_radius = radius
    keep_anchors(estimator, kernel, anchors, weights)
    count = float(n if weights is None else weights.sum())
    traces = Traces(float(p @ own), float(p @ (own - features.squared_lengths)))
    status = keep_components(estimator, fit, n, count, traces, solver)
    keep_rows(estimator, fit, p)
    if not isinstance(kernel, Precomputed):
        coordinates = estimator._decoder_features(estimator.embedding_)
        alpha = estimator.inverse_alpha
        estimator._ridge_ = _ridge_map(kernel, X, coordinates, weights, alpha)
    warn_if_rounding(estimator.eigenvalues_, fit.rounding, X, kernel)
    warn_if_few(estimator, status, solver)


def warn_if_few(estimator: Any, status: Status, solver: Nystroem) -> None:
    """Warn where the anchors leave out more than was asked for."""
    warn_unless_converged(
        status,
        f"{type(estimator).__name__} ({solver.name})",
        f"{estimator.n_anchors_} anchors leave {estimator.history_[0]['trace_error']:.1e} of "
        f"the trace, tol={solver.tol}",
    )


def anchors_for(
    estimator: Any,
    kernel: Kernel,
    X: Any,
    weights: NDArray[np.float64] | None,
    solver: Nystroem,
    scale: float,
) -> Anchors:
    """Choose the anchors of an estimator among rows, in memory or in blocks."""
    k = _integer_components(estimator)
    return solver.anchors_of(kernel, X, k, sample_weight=weights, scale=scale)


def most_anchors(estimator: Any, solver: Nystroem) -> int:
    """Return how many anchors an estimator may have."""
    return solver.most_anchors(_integer_components(estimator))


def _integer_components(estimator: Any) -> int:
    wanted = estimator.n_components
    return int(wanted) if isinstance(wanted, numbers.Integral) else 1


def keep_anchors(estimator: Any, kernel: Kernel, anchors: Anchors, weights: Any) -> None:
    """Set what an estimator keeps of the data: the anchors."""
    precomputed = isinstance(kernel, Precomputed)
    estimator.kernel_ = kernel
    estimator.sample_weight_ = weights
    estimator.X_fit_ = None if precomputed else anchors.points.copy()
    estimator._columns_ = anchors.indices if precomputed else None
    estimator.anchor_indices_ = anchors.indices
    estimator.n_anchors_ = len(anchors.decoder)
    estimator._ridge_ = estimator._solution_ = None


@dataclass(frozen=True)
class Traces:
    """The mean of k(x, x), and what of it the features leave out."""

    trace: float
    left_out: float

    @classmethod
    def of(cls, moments: FeatureMoments) -> Traces:
        """Take them from moments of features."""
        trace = moments.trace / moments.count
        return cls(trace, trace - moments.captured / moments.count)

    @property
    def error(self) -> float:
        """The part that is left out."""
        return max(self.left_out, 0.0) / self.trace if self.trace > 0 else 0.0


def keep_components(
    estimator: Any, fit: FeatureFit, n: int, count: float, traces: Traces, solver: Nystroem
) -> Status:
    """Set the fitted attributes that are not about rows; `count` is the sum of the weights.

    Eigenvalues are sums, or variances where the estimator has those.
    """
    dtype, left_out = fit.dtype, max(traces.left_out, 0.0)
    sums = 1.0 if estimator._eigenvalues_are_variances else count
    estimator.eigenvalues_ = (fit.variances * sums).astype(dtype)
    ratio = fit.variances / fit.total if fit.total > 0 else np.zeros_like(fit.variances)
    estimator.explained_variance_ratio_ = ratio.astype(dtype)
    estimator.n_components_ = len(fit.variances)
    estimator.solver_, estimator.n_iter_ = solver.name, 1
    estimator.residuals_ = np.full(len(fit.variances), left_out * sums, dtype=dtype)
    largest = float(fit.variances[0])
    entry = {"n_anchors": estimator.n_anchors_, "trace_error": traces.error}
    entry["max_residual"] = left_out / largest if largest > 0 else 0.0
    estimator.history_ = [entry]
    for name, value in fit.kept.items():
        setattr(estimator, name, value)
    status = solver.status(traces.error, estimator.n_anchors_, n)
    estimator.converged_ = status.converged and estimator._mean_converged
    return status


def keep_rows(estimator: Any, fit: FeatureFit, p: Any) -> None:
    """Set the coordinates of the training rows, and the eigenvectors that belong to them.

    p is a number where it is the same for all of them. What is a dask array stays one.
    """
    embedding: Any = fit.embedding  # it is kept here
    roots = np.sqrt(fit.variances)
    lengths = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    shares = np.sqrt(p)[:, None] if np.ndim(p) else np.sqrt(p)
    if isinstance(embedding, np.ndarray):  # with nothing of their size beside them
        vectors = np.empty(embedding.shape, dtype=fit.dtype)
        np.multiply(embedding, lengths, out=vectors, casting="same_kind")
        vectors *= shares
        estimator.eigenvectors_ = vectors
        estimator.embedding_ = np.ascontiguousarray(embedding, dtype=fit.dtype)
        return
    estimator.eigenvectors_ = (shares * embedding * lengths).astype(fit.dtype)
    estimator.embedding_ = embedding.astype(fit.dtype)


def pca_of_features(
    features: NystroemFeatures,
    diagonal: NDArray[np.float64],
    p: NDArray[np.float64],
    n_components: int | float | None,
) -> FeatureFit:
    r"""Return the principal components of features about their mean.

    The total variance is :math:`\sum_n p_n k(x_n, x_n) - \|\bar f\|^2`, with the kernel's own
    diagonal.
    """
    mean, covariance = centered_covariance(features, p)
    square = float(mean @ mean)
    total = float(p @ diagonal) - square
    size = max(float(np.abs(diagonal).max()), square)
    found, floor = axes_of(features, covariance, n_components, total, size)
    embedding = features.apply(found.axes) - mean @ found.axes
    signs = orient(embedding, p)
    axes = found.axes * signs
    kept = flat_attributes(features, mean, axes)
    return FeatureFit(found.variances, axes, embedding * signs, total, floor, features.dtype, kept)


def pga_of_features(
    features: NystroemFeatures,
    diagonal: NDArray[np.float64],
    p: NDArray[np.float64],
    n_components: int | float | None,
    *,
    max_iter: int,
) -> tuple[FeatureFit, KarcherMean]:
    r"""Return the principal geodesic components of features, and their mean.

    The inner products of the points themselves with the mean, which lies in the span of the
    anchors, are known. So is, then, the total variance; and features that were not brought to
    unit length are Log maps of the points projected on the span, with the angles of the points.
    """
    mean = find_mean(features, p, tol=MEAN_TOL[features.dtype], max_iter=max_iter)
    eps = float(np.finfo(features.dtype).eps)
    cosines = mean.cosines
    check_no_antipodes(cosines, eps, "points")
    _, stretches = angles_from_cosines(cosines)
    covariance = tangent_covariance(features, p, mean.point, cosines, stretches)
    own = cosines * np.sqrt(features.squared_lengths) if features.unit else cosines
    total = float(p @ squared_angles(own, diagonal))
    term_size = float(p @ stretches**2)
    found, floor = axes_of(features, covariance, n_components, total, term_size)
    # to rounding the axes are orthogonal to the mean; those of no variance need not be
    axes = found.axes - np.outer(mean.point, mean.point @ found.axes)
    embedding = features.apply(axes) * stretches[:, None]
    signs = orient(embedding, p)
    axes = axes * signs
    kept = sphere_attributes(features, mean, axes, total) | {"mean_cosines_": own}
    embedding *= signs
    fit = FeatureFit(found.variances, axes, embedding, total, floor, features.dtype, kept)
    return fit, mean


def flat_attributes(
    features: Any, mean: NDArray[np.float64], axes: NDArray[np.float64]
) -> dict[str, Any]:
    """Return what maps new points to principal components of features."""
    return {
        "dual_coef_": (features.decoder @ axes).astype(features.dtype),
        "intercept_": (-mean @ axes).astype(features.dtype),
        "_mean_coef_": features.decoder @ mean,
        "_mean_square": float(mean @ mean),
    }


def sphere_attributes(
    features: Any, mean: Any, axes: NDArray[np.float64], total: float
) -> dict[str, Any]:
    """Return what maps new points to principal geodesic components of features."""
    return {
        "mean_": features.decoder @ mean.point,
        "mean_n_iter_": mean.n_iter,
        "mean_gradient_norm_": mean.gradient_norm,
        "_mean_converged": mean.converged,
        "geodesic_variance_": total,
        "dual_coef_": (features.decoder @ axes).astype(features.dtype),
        "_decoder_": features.decoder.astype(features.dtype) if features.unit else None,
    }


def axes_of(
    features: Any,
    covariance: NDArray[np.float64],
    n_components: int | float | None,
    total: float,
    term_size: float,
    n: int | None = None,
) -> tuple[FeatureAxes, float]:
    """Return the axes, and the size below which a variance is rounding of terms of that size."""
    n = features.shape[0] if n is None else n
    eps, shared = (float(np.finfo(kind).eps) for kind in (features.dtype, np.float64))
    floor = 10 * term_size * (eps / np.sqrt(n) + shared)
    found = feature_axes(covariance, n_components, total=total, n=n, floor=floor, eps=eps)
    return found, floor


def axes_of_moments(
    moments: FeatureMoments, features: FeatureMap, n_components: int | float | None, n: int
) -> tuple[FeatureAxes, float, float]:
    """Return the principal axes of features about their mean, the total variance, and the floor.

    The size of the terms is that in the mean square; where all are known, the largest is taken.
    """
    square = float(moments.mean @ moments.mean)
    total = moments.trace / moments.count - square
    size = max(float(np.sqrt(moments.squared / moments.count)), square)
    found, floor = axes_of(features, moments.covariance, n_components, total, size, n)
    return found, total, floor


def _ridge_map(
    kernel: Kernel,
    X: Any,
    coordinates: NDArray[Any],
    weights: NDArray[np.float64] | None,
    alpha: float,
) -> RidgeMap | None:
    """Return the map back to inputs that takes all training data, where there is no fixed point."""
    if has_fixed_point(kernel, X):
        return None
    vectors = X if scipy.sparse.issparse(X) else kernel.as_vectors(X)[0]
    ones = np.ones(len(coordinates)) if weights is None else weights
    return decode_components(coordinates, vectors, ones, alpha)
