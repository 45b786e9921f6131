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
from .._core.unit import angles_from_cosines, check_no_antipodes
from ..eigen import (
    FeatureAxes,
    Nystroem,
    centered_covariance,
    feature_axes,
    orient,
    tangent_covariance,
)
from ..gram import (
    Landmarks,
    NystroemFeatures,
    choose_landmarks,
    gram_diagonal,
    nystroem_features,
)
from ..kernels import Kernel, Precomputed
from ..preimage import RidgeMap, decode_components, has_fixed_point
from ..sphere.karcher import KarcherMean, find_mean
from .base import CALLER_OF_FIT, warn_if_rounding

__all__ = ["FeatureFit", "fit_on_features", "pca_of_features", "pga_of_features", "squared_angles"]

# Of the progress bar: about what landmarks and their features take of a fit.
_FEATURES_SHARE = 0.5

# The mean to rounding, as over the Gram matrix; float32 features have no more digits than these.
_MEAN_TOL = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-7}


@dataclass(frozen=True)
class FeatureFit:
    """Components of features, and what a decomposition keeps of them.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Descending.
    axes : ndarray of shape (r, k)
        The components in the coordinates of the features, with their signs.
    embedding : ndarray of shape (n, k)
        Coordinates of the points.
    total : float
        The variance in feature space, what the landmarks leave out included.
    rounding : float
        Up to which size a variance may be rounding.
    dtype : dtype
        The precision of the features, and of what is kept.
    kept : dict
        Fitted attributes.
    """

    variances: NDArray[np.float64]
    axes: NDArray[np.float64]
    embedding: NDArray[np.float64]
    total: float
    rounding: float
    dtype: np.dtype[Any]
    kept: dict[str, Any] = field(default_factory=dict)


def fit_on_features(
    estimator: Any, X: Any, weights: NDArray[np.float64] | None, solver: Nystroem
) -> None:
    """Fit a spectral decomposition; the landmarks are all that it keeps of the data."""
    n = X.shape[0]
    p = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    with tracked(estimator, bool(estimator.verbose)) as progress, single_threaded_blas():
        kernel = estimator._fit_kernel(X, weights)
        diagonal = gram_diagonal(kernel, X)
        radius = estimator._squared_radius_of(diagonal)
        landmarks = _landmarks(estimator, kernel, X, weights, solver, 1.0 / radius)
        features = nystroem_features(
            kernel,
            X,
            landmarks,
            unit=estimator._on_sphere and solver.sphere == "unit",
            scale=1.0 / radius,
            memory_budget=estimator.memory_budget,
            storage=estimator.storage,
        )
        progress.advance(_FEATURES_SHARE, "features")
        own = diagonal.astype(np.float64) / radius
        fit = estimator._fit_of_features(features, own, p)
    estimator._squared_radius = radius
    _keep_landmarks(estimator, kernel, landmarks, weights)
    left_out = max(float(p @ (own - features.squared_lengths)), 0.0)
    status = _keep_components(estimator, fit, weights, p, left_out, float(p @ own), solver)
    if not isinstance(kernel, Precomputed):
        coordinates = estimator._decoder_features(estimator.embedding_)
        alpha = estimator.inverse_alpha
        estimator._ridge_ = _ridge_map(kernel, X, coordinates, weights, alpha)
    caller = CALLER_OF_FIT + 1
    warn_if_rounding(estimator.eigenvalues_, fit.rounding, X, kernel, stacklevel=caller)
    warn_unless_converged(
        status,
        f"{type(estimator).__name__} ({solver.name})",
        f"{estimator.n_landmarks_} landmarks leave {left_out / float(p @ own):.1e} of the trace, "
        f"tol={solver.tol}",
        stacklevel=caller,
    )


def _landmarks(
    estimator: Any,
    kernel: Kernel,
    X: Any,
    weights: NDArray[np.float64] | None,
    solver: Nystroem,
    scale: float,
) -> Landmarks:
    wanted = estimator.n_components
    k = int(wanted) if isinstance(wanted, numbers.Integral) else 1
    return choose_landmarks(
        kernel,
        X,
        solver.most_landmarks(k),
        landmarks=solver.landmarks,
        tol=solver.tol or 0.0,
        sample_weight=weights,
        scale=scale,
        random_state=solver.random_state,
    )


def _keep_landmarks(
    estimator: Any, kernel: Kernel, landmarks: Landmarks, weights: NDArray[np.float64] | None
) -> None:
    precomputed = isinstance(kernel, Precomputed)
    estimator.kernel_ = kernel
    estimator.sample_weight_ = weights
    estimator.X_fit_ = None if precomputed else landmarks.points.copy()
    estimator._columns_ = landmarks.indices if precomputed else None
    estimator.landmark_indices_ = landmarks.indices
    estimator.n_landmarks_ = len(landmarks.decoder)
    estimator._ridge_ = estimator._solution_ = None


def _keep_components(
    estimator: Any,
    fit: FeatureFit,
    weights: NDArray[np.float64] | None,
    p: NDArray[np.float64],
    left_out: float,
    trace: float,
    solver: Nystroem,
) -> Status:
    """Set the fitted attributes, with sums for variances where the estimator has those."""
    n, dtype = len(p), fit.dtype
    count = float(n if weights is None else weights.sum())
    sums = 1.0 if estimator._eigenvalues_are_variances else count
    roots = np.sqrt(fit.variances)
    estimator.eigenvalues_ = (fit.variances * sums).astype(dtype)
    lengths = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    estimator.eigenvectors_ = (np.sqrt(p)[:, None] * fit.embedding * lengths).astype(dtype)
    estimator.embedding_ = fit.embedding.astype(dtype)
    ratio = fit.variances / fit.total if fit.total > 0 else np.zeros_like(fit.variances)
    estimator.explained_variance_ratio_ = ratio.astype(dtype)
    estimator.n_components_ = len(fit.variances)
    estimator.solver_, estimator.n_iter_ = solver.name, 1
    estimator.residuals_ = np.full(len(roots), left_out * sums, dtype=dtype)
    error = left_out / trace if trace > 0 else 0.0
    largest = float(fit.variances[0])
    entry = {"n_landmarks": estimator.n_landmarks_, "trace_error": error}
    entry["max_residual"] = left_out / largest if largest > 0 else 0.0
    estimator.history_ = [entry]
    for name, value in fit.kept.items():
        setattr(estimator, name, value)
    status = solver.status(error, estimator.n_landmarks_, n)
    estimator.converged_ = status.converged and estimator._mean_converged
    return status


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
    found, floor = _axes(features, covariance, n_components, total, size)
    embedding = features.apply(found.axes) - mean @ found.axes
    signs = orient(embedding, p)
    axes = found.axes * signs
    kept = {
        "dual_coef_": (features.decoder @ axes).astype(features.dtype),
        "intercept_": (-mean @ axes).astype(features.dtype),
        "_mean_coef_": features.decoder @ mean,
        "_mean_square": square,
    }
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
    landmarks, are known. So is, then, the total variance; and features that were not brought to
    unit length are Log maps of the points projected on the span, with the angles of the points.
    """
    mean = find_mean(features, p, tol=_MEAN_TOL[features.dtype], max_iter=max_iter)
    eps = float(np.finfo(features.dtype).eps)
    cosines = mean.cosines
    check_no_antipodes(cosines, eps, "points")
    _, stretches = angles_from_cosines(cosines)
    covariance = tangent_covariance(features, p, mean.point, cosines, stretches)
    own = cosines * np.sqrt(features.squared_lengths) if features.unit else cosines
    total = float(p @ squared_angles(own, diagonal))
    found, floor = _axes(features, covariance, n_components, total, float(p @ stretches**2))
    # to rounding the axes are orthogonal to the mean; those of no variance need not be
    axes = found.axes - np.outer(mean.point, mean.point @ found.axes)
    embedding = features.apply(axes) * stretches[:, None]
    signs = orient(embedding, p)
    axes = axes * signs
    kept = {
        "mean_": features.decoder @ mean.point,
        "mean_cosines_": own,
        "mean_n_iter_": mean.n_iter,
        "mean_gradient_norm_": mean.gradient_norm,
        "_mean_converged": mean.converged,
        "geodesic_variance_": total,
        "dual_coef_": (features.decoder @ axes).astype(features.dtype),
        "_decoder_": features.decoder.astype(features.dtype) if features.unit else None,
    }
    embedding *= signs
    fit = FeatureFit(found.variances, axes, embedding, total, floor, features.dtype, kept)
    return fit, mean


def squared_angles(
    cosines: NDArray[np.float64], diagonal: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """Return θ² from cosines of points whose squared lengths may be 1 only nearly."""
    _, stretches = angles_from_cosines(cosines)
    return np.asarray(np.maximum(diagonal - cosines**2, 0.0) * stretches**2)


def _axes(
    features: NystroemFeatures,
    covariance: NDArray[np.float64],
    n_components: int | float | None,
    total: float,
    term_size: float,
) -> tuple[FeatureAxes, float]:
    """Return the axes, and the size below which a variance is rounding of terms of that size."""
    n = features.shape[0]
    eps, shared = (float(np.finfo(kind).eps) for kind in (features.dtype, np.float64))
    floor = 10 * term_size * (eps / np.sqrt(n) + shared)
    found = feature_axes(covariance, n_components, total=total, n=n, floor=floor, eps=eps)
    return found, floor


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
