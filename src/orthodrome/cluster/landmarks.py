"""Clustering on Nyström features: points that are seen through a few of them, the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.canonical import Canonical
from .._core.status import Status, warn_unless_converged
from ..decomposition import KernelPGA
from ..eigen import Nystroem
from ..gram import (
    DaskFeatures,
    DaskSource,
    FeatureGram,
    GramOperator,
    Landmarks,
    NystroemFeatures,
    choose_landmarks,
    gram_diagonal,
    gram_operator,
    nystroem_features,
)
from ..gram.dask_blocks import is_dask_array
from ..gram.nystroem import refuse_large_features
from ..gram.pivots import PARTS
from ..kernels import Kernel, Precomputed

__all__ = [
    "View",
    "centers_over",
    "forget_landmarks",
    "gram_seen_by",
    "keep_landmarks",
    "new_features",
    "view_of",
]


@dataclass(frozen=True)
class View:
    """Training points as their features.

    Attributes
    ----------
    landmarks : Landmarks
        What the points are seen through.
    features : NystroemFeatures
        Their features.
    diagonal : ndarray of shape (n,)
        k(x, x) itself, divided as kernel values are.
    weights : ndarray of shape (n,)
        Their weights.
    solver : Nystroem
        What chose the landmarks.
    """

    landmarks: Landmarks
    features: NystroemFeatures
    diagonal: NDArray[np.float64]
    weights: NDArray[np.float64]
    solver: Nystroem

    @property
    def gram(self) -> FeatureGram:
        """The Gram matrix of the features."""
        return FeatureGram(self.features)

    @property
    def left_out(self) -> NDArray[np.float64]:
        """What the features leave out of k(x, x), for each point."""
        return np.maximum(self.diagonal - self.features.squared_lengths, 0.0)

    @property
    def trace_error(self) -> float:
        """What they leave out of the trace, relative to it."""
        trace = float(self.weights @ np.abs(self.diagonal))
        return float(self.weights @ self.left_out) / trace if trace > 0 else 0.0

    @property
    def status(self) -> Status:
        """Whether the landmarks reach the tolerance, if there is one."""
        return self.solver.status(self.trace_error, len(self.landmarks.decoder), len(self.weights))

    def warn(self, estimator: Any) -> None:
        """Warn where they do not."""
        warn_unless_converged(
            self.status,
            f"{type(estimator).__name__} ({self.solver.name})",
            f"{len(self.landmarks.decoder)} landmarks leave {self.trace_error:.1e} of the trace, "
            f"tol={self.solver.tol}",
        )

    def sum_uncertainty(self) -> NDArray[np.float64]:
        r"""Return by how much weighted sums of the rows of K may differ from those of FFᵀ.

        What is left out, :math:`E = K - FF^\top`, is positive semidefinite, so that
        :math:`|E_{ij}| \le \sqrt{E_{ii} E_{jj}}`. Features themselves have as many digits as the
        condition number of the landmarks leaves.
        """
        missing, present = np.sqrt(self.left_out), np.sqrt(self.features.squared_lengths)
        dtype = np.dtype(self.features.dtype)
        digits = float(np.finfo(dtype).eps) / np.sqrt(PARTS[dtype])
        w = self.weights
        return missing * (w @ missing) + digits * present * (w @ present)


def view_of(
    estimator: Any,
    kernel: Kernel,
    canonical: Canonical,
    solver: Nystroem,
    k: int,
    *,
    unit: bool = False,
    squared_radius: float = 1.0,
) -> View:
    """Choose landmarks for k clusters, and make the features of the canonical rows."""
    scale = 1.0 / squared_radius
    diagonal = gram_diagonal(kernel, canonical.data).astype(np.float64) * scale
    asked = solver.n_landmarks if solver.tol is None else None
    refuse_large_features(canonical.data, asked, estimator.memory_budget, estimator.storage)
    away = is_dask_array(canonical.data)
    rows = DaskSource.unchecked(canonical.data) if away else canonical.data
    landmarks = solver.landmarks_of(kernel, rows, k, sample_weight=canonical.weights, scale=scale)
    features: NystroemFeatures
    if away:
        features = DaskFeatures(kernel, canonical.data, landmarks, unit=unit, scale=scale)
    else:
        features = nystroem_features(
            kernel,
            canonical.data,
            landmarks,
            unit=unit,
            scale=scale,
            diagonal=diagonal,
            memory_budget=estimator.memory_budget,
            storage=estimator.storage,
        )
    return View(landmarks, features, diagonal, canonical.weights, solver)


def gram_seen_by(
    pga: KernelPGA, canonical: Canonical, *, memory_budget: str | float, storage: str
) -> GramOperator:
    """Return the Gram matrix of the points that an analysis was fitted to.

    Where it has seen them through landmarks, it is that of their features, of unit length.
    """
    kernel, data = pga.kernel_, canonical.data
    if pga.n_landmarks_ is None:
        return gram_operator(kernel, data, memory_budget=memory_budget, storage=storage)
    # points, where there are any: these may be some of the rows only
    chosen = pga.landmark_indices_ if pga.X_fit_ is None else pga.X_fit_
    scale = 1.0 / pga._squared_radius
    landmarks = choose_landmarks(kernel, data, pga.n_landmarks_, landmarks=chosen, scale=scale)
    features = nystroem_features(
        kernel,
        data,
        landmarks,
        unit=True,
        scale=scale,
        memory_budget=memory_budget,
        storage=storage,
    )
    return FeatureGram(features)


def centers_over(coefficients: NDArray[np.float64], view: View | None) -> NDArray[np.float64]:
    """Return coefficients of centres, in rows, over the points that a fit keeps.

    They are given over all training points, in columns; with a view the landmarks are what is kept.
    """
    if view is None:
        return np.ascontiguousarray(coefficients.T)
    return np.asarray(view.features.combine(coefficients) @ view.landmarks.decoder.T)


def keep_landmarks(estimator: Any, view: View, canonical: Canonical) -> None:
    """Set the fitted attributes that new points are seen through; no other row is kept."""
    landmarks = view.landmarks
    given = isinstance(estimator.kernel_, Precomputed)
    rows = None if landmarks.indices is None else canonical.index[landmarks.indices]
    estimator.X_fit_ = None if given else landmarks.points.copy()
    estimator._columns_ = rows if given else None
    estimator._decoder_ = landmarks.decoder
    estimator.landmark_indices_ = rows
    estimator.n_landmarks_ = len(landmarks.decoder)


def forget_landmarks(estimator: Any) -> None:
    """Say that a fit has none."""
    estimator.n_landmarks_ = estimator.landmark_indices_ = estimator._decoder_ = None


def new_features(
    estimator: Any, X: Any, *, unit: bool = False, squared_radius: float = 1.0
) -> NystroemFeatures:
    """Return the features of validated data by the landmarks of a fit."""
    landmarks = Landmarks(estimator.X_fit_, estimator._columns_, estimator._decoder_)
    return nystroem_features(
        estimator.kernel_,
        X,
        landmarks,
        unit=unit,
        scale=1.0 / squared_radius,
        storage="recompute",
    )
