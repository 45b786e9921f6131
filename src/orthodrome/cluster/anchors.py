"""Clustering on Nyström features: points that are seen through a few of them, the anchors."""

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
    Anchors,
    DaskFeatures,
    DaskSource,
    FeatureGram,
    GramOperator,
    NystroemFeatures,
    choose_anchors,
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
    "forget_anchors",
    "gram_seen_by",
    "keep_anchors",
    "new_features",
    "view_of",
]


@dataclass(frozen=True)
class View:
    """Training points as their features.

    Attributes
    ----------
    anchors : Anchors
        What the points are seen through.
    features : NystroemFeatures
        Their features.
    diagonal : ndarray of shape (n,)
        k(x, x) itself, divided as kernel values are.
    weights : ndarray of shape (n,)
        Their weights.
    solver : Nystroem
        What chose the anchors.
    """

    anchors: Anchors
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
        """Whether the anchors reach the tolerance, if there is one."""
        return self.solver.status(self.trace_error, len(self.anchors.decoder), len(self.weights))

    def warn(self, estimator: Any) -> None:
        """Warn where they do not."""
        warn_unless_converged(
            self.status,
            f"{type(estimator).__name__} ({self.solver.name})",
            f"{len(self.anchors.decoder)} anchors leave {self.trace_error:.1e} of the trace, "
            f"tol={self.solver.tol}",
        )

    def sum_uncertainty(self) -> NDArray[np.float64]:
        r"""Return by how much weighted sums of the rows of K may differ from those of FFᵀ.

        What is left out, :math:`E = K - FF^\top`, is positive semidefinite, so that
        :math:`|E_{ij}| \le \sqrt{E_{ii} E_{jj}}`. Features themselves have as many digits as the
        condition number of the anchors leaves.
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
    """Choose anchors for k clusters, and make the features of the canonical rows."""
    scale = 1.0 / squared_radius
    diagonal = gram_diagonal(kernel, canonical.data).astype(np.float64) * scale
    asked = solver.n_anchors if solver.tol is None else None
    refuse_large_features(canonical.data, asked, estimator.memory_budget, estimator.storage)
    away = is_dask_array(canonical.data)
    rows = DaskSource.unchecked(canonical.data) if away else canonical.data
    anchors = solver.anchors_of(kernel, rows, k, sample_weight=canonical.weights, scale=scale)
    features: NystroemFeatures
    if away:
        features = DaskFeatures(kernel, canonical.data, anchors, unit=unit, scale=scale)
    else:
        features = nystroem_features(
            kernel,
            canonical.data,
            anchors,
            unit=unit,
            scale=scale,
            diagonal=diagonal,
            memory_budget=estimator.memory_budget,
            storage=estimator.storage,
        )
    return View(anchors, features, diagonal, canonical.weights, solver)


def gram_seen_by(
    pga: KernelPGA, canonical: Canonical, *, memory_budget: str | float, storage: str
) -> GramOperator:
    """Return the Gram matrix of the points that an analysis was fitted to.

    Where it has seen them through anchors, it is that of their features, of unit length.
    """
    kernel, data = pga.kernel_, canonical.data
    if pga.n_anchors_ is None:
        return gram_operator(kernel, data, memory_budget=memory_budget, storage=storage)
    # points, where there are any: these may be some of the rows only
    chosen = pga.anchor_indices_ if pga.X_fit_ is None else pga.X_fit_
    scale = 1.0 / pga._squared_radius
    anchors = choose_anchors(kernel, data, pga.n_anchors_, anchors=chosen, scale=scale)
    features = nystroem_features(
        kernel,
        data,
        anchors,
        unit=True,
        scale=scale,
        memory_budget=memory_budget,
        storage=storage,
    )
    return FeatureGram(features)


def centers_over(coefficients: NDArray[np.float64], view: View | None) -> NDArray[np.float64]:
    """Return coefficients of centres, in rows, over the points that a fit keeps.

    They are given over all training points, in columns; with a view the anchors are what is kept.
    """
    if view is None:
        return np.ascontiguousarray(coefficients.T)
    return np.asarray(view.features.combine(coefficients) @ view.anchors.decoder.T)


def keep_anchors(estimator: Any, view: View, canonical: Canonical) -> None:
    """Set the fitted attributes that new points are seen through; no other row is kept."""
    anchors = view.anchors
    given = isinstance(estimator.kernel_, Precomputed)
    rows = None if anchors.indices is None else canonical.index[anchors.indices]
    estimator.X_fit_ = None if given else anchors.points.copy()
    estimator._columns_ = rows if given else None
    estimator._decoder_ = anchors.decoder
    estimator.anchor_indices_ = rows
    estimator.n_anchors_ = len(anchors.decoder)


def forget_anchors(estimator: Any) -> None:
    """Say that a fit has none."""
    estimator.n_anchors_ = estimator.anchor_indices_ = estimator._decoder_ = None


def new_features(
    estimator: Any, X: Any, *, unit: bool = False, squared_radius: float = 1.0
) -> NystroemFeatures:
    """Return the features of validated data by the anchors of a fit."""
    anchors = Anchors(estimator.X_fit_, estimator._columns_, estimator._decoder_)
    return nystroem_features(
        estimator.kernel_,
        X,
        anchors,
        unit=unit,
        scale=1.0 / squared_radius,
        storage="recompute",
    )
