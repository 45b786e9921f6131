"""Training rows as clusterings see them: distinct rows, and their coordinates by anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.canonical import Canonical
from .._core.status import Status, warn_unless_converged
from ..base import data_of, rows_of
from ..coordinates import AnchorMap, Anchors, CoordinateGram, Coordinates
from ..coordinates.pivots import PARTS
from ..coordinates.points import refuse_large_coordinates
from ..gram import gram_diagonal
from ..kernels import Kernel, Precomputed
from ..plan import Plan

__all__ = ["View", "fitted_points", "view_of"]


def fitted_points(canonical: Canonical, kernel: Kernel, view: View | None) -> dict[str, Any]:
    """Return the fitted attributes that new points are compared with: anchors, or all points."""
    if view is not None:
        return view.attributes(canonical)
    precomputed = isinstance(kernel, Precomputed)
    return {
        "X_fit_": None if precomputed else data_of(canonical),
        "_columns_": canonical.index if precomputed else None,
        "_decoder_": None,
        "anchor_indices_": None,
        "n_anchors_": None,
    }


@dataclass(frozen=True)
class View:
    """Training points as vectors.

    Attributes
    ----------
    anchors : Anchors
        What the points are seen through.
    points : Coordinates
        The points.
    diagonal : ndarray of shape (n,)
        k(x, x) itself, divided as kernel values are.
    weights : ndarray of shape (n,)
        Their weights.
    plan : Plan
        What chose the anchors.
    """

    anchors: Anchors
    points: Coordinates
    diagonal: NDArray[np.float64]
    weights: NDArray[np.float64]
    plan: Plan

    @property
    def gram(self) -> CoordinateGram:
        """The Gram matrix of the vectors."""
        return CoordinateGram(self.points)

    @property
    def left_out(self) -> NDArray[np.float64]:
        """What the vectors leave out of k(x, x), for each point."""
        return np.maximum(self.diagonal - self.points.captured, 0.0)

    @property
    def trace_error(self) -> float:
        """What they leave out of the trace, relative to it."""
        trace = float(self.weights @ np.abs(self.diagonal))
        return float(self.weights @ self.left_out) / trace if trace > 0 else 0.0

    @property
    def status(self) -> Status:
        """Whether the anchors reach the tolerance, if there is one."""
        count = len(self.anchors.decoder)
        return self.plan.solver.status(self.trace_error, count, len(self.weights))

    def warn(self) -> None:
        """Warn where they do not."""
        warn_unless_converged(
            self.status,
            f"{self.plan.request.owner} ({self.plan.name})",
            f"{len(self.anchors.decoder)} anchors leave {self.trace_error:.1e} of the trace, "
            f"tol={self.plan.solver.tol}",
        )

    def sum_uncertainty(self) -> NDArray[np.float64]:
        r"""Return by how much weighted sums of the rows of K may differ from those of FFᵀ.

        What is left out, :math:`E = K - FF^\top`, is positive semidefinite, so that
        :math:`|E_{ij}| \le \sqrt{E_{ii} E_{jj}}`. Vectors themselves have as many digits as the
        condition number of the anchors leaves.
        """
        missing, present = np.sqrt(self.left_out), np.sqrt(self.points.captured)
        dtype = np.dtype(self.points.dtype)
        digits = float(np.finfo(dtype).eps) / np.sqrt(PARTS[dtype])
        w = self.weights
        return missing * (w @ missing) + digits * present * (w @ present)

    def combine(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return combinations of all points, in columns, as coefficients over the anchors."""
        return np.asarray(self.points.combine(coefficients) @ self.anchors.decoder.T)

    def attributes(self, canonical: Canonical) -> dict[str, Any]:
        """Return the fitted attributes that new points are seen through."""
        points, indices = self.anchors.points, self.anchors.indices
        rows = None if indices is None else canonical.index[indices]
        return {
            "X_fit_": None if points is None else points.copy(),
            "_columns_": rows if points is None else None,
            "_decoder_": self.anchors.decoder,
            "anchor_indices_": rows,
            "n_anchors_": len(self.anchors.decoder),
        }


def view_of(
    canonical: Canonical, kernel: Kernel, plan: Plan, k: int, *, radius: float | None = None
) -> View:
    """Choose anchors for k clusters, and see the canonical rows through them.

    With a radius, which kernel values are divided by, the vectors have unit length.
    """
    request, rows, scale = plan.request, rows_of(canonical, kernel), 1.0 / (radius or 1.0)
    if isinstance(kernel, Precomputed):
        rows = rows.zip(own=gram_diagonal(kernel, canonical.data).astype(np.float64) * scale)
    solver = plan.solver.renumbered(canonical.inverse)
    if solver.n_anchors is not None and solver.tol is None and not rows.lazy:
        refuse_large_coordinates(
            rows.shape[0], solver.n_anchors, rows.dtype, request.memory_budget, request.storage
        )
    weights = canonical.weights
    anchors = solver.anchors_of(kernel, rows, k, sample_weight=weights, scale=scale)
    unit, own = radius is not None, plan.name == "coordinates"
    by = AnchorMap.by(kernel, anchors, rows.dtype, unit=unit, radius=radius, own=own)
    points = Coordinates(rows, by).kept(request.storage, request.memory_budget)
    return View(anchors, points, points.own, weights, plan)
