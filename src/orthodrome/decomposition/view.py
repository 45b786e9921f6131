"""Training points: distinct rows with their Gram matrix, or with coordinates from anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._core.canonical import Canonical
from .._core.status import Status, warn_unless_converged
from .._core.types import Floats
from .._core.unit import squared_radius
from ..base import data_of, fitted_kernel, rows_of
from ..coordinates import Anchors, Coordinates
from ..coordinates.blocks import AnchorMap
from ..coordinates.gram import CoordinateGram
from ..coordinates.pivots import RANK_TOLERANCE
from ..gram import Scaled, gram_operator
from ..kernels import Kernel, Precomputed
from ..plan import Plan
from ..rows import Rows
from .geometry import SPHERE


@dataclass(frozen=True)
class View:
    """Distinct training rows as points of feature space.

    Attributes
    ----------
    canonical : Canonical
        The rows.
    kernel : Kernel
        The fitted kernel.
    plan : Plan
        How the points are represented.
    gram : GramOperator or None
        The Gram matrix of the points, or of their coordinates; None if it is not needed.
    radius : float
        Kernel values are divided by it. On the sphere it is k(x, x), so that points have unit
        length.
    anchors : Anchors or None
        The anchors of the coordinates; None if the points have no coordinates.
    points : Coordinates or None
        The coordinates; None if the kernel's Gram matrix is used instead.
    """

    canonical: Canonical
    kernel: Kernel
    plan: Plan
    gram: Any = None
    radius: float = 1.0
    anchors: Anchors | None = None
    points: Any = None

    @property
    def weights(self) -> Floats:
        """The weights of the points."""
        return self.canonical.weights

    @property
    def definite(self) -> bool:
        """Whether the Gram matrix is known to be positive semidefinite."""
        return self.points is not None or self.kernel.positive_definite

    @cached_property
    def diagonal(self) -> Floats:
        """k(x, x) of the points, divided by the radius."""
        return self.gram.diagonal() if self.points is None else self.points.own

    @cached_property
    def mean_diagonal(self) -> float:
        """The weighted mean of k(x, x)."""
        return float(np.average(self.diagonal, weights=self.weights))

    @cached_property
    def left_out(self) -> Floats:
        """Squared distance of each point from the span of the anchors; 0 without anchors."""
        if self.points is None:
            return np.zeros(len(self.weights))
        return np.maximum(self.diagonal - self.points.captured, 0.0)

    @property
    def trace_error(self) -> float:
        """The weighted sum of `left_out`, as a fraction of the trace."""
        trace = float(self.weights @ np.abs(self.diagonal))
        return float(self.weights @ self.left_out) / trace if trace > 0 else 0.0

    @cached_property
    def status(self) -> Status:
        """CONVERGED if the anchors reach the tolerance, or without a tolerance."""
        if self.anchors is None:
            return Status.CONVERGED
        count = len(self.anchors.decoder)
        return self.plan.solver.status(self.trace_error, count, len(self.weights))

    def warn(self) -> None:
        """Warn if the anchors do not reach the tolerance."""
        if self.anchors is not None:
            warn_if_few_anchors(self.status, self.plan, len(self.anchors.decoder), self.trace_error)

    def sum_uncertainty(self) -> Floats | None:
        r"""Return a bound on the error of weighted row sums if coordinates F replace the kernel.

        The error :math:`E = K - FF^\top` is positive semidefinite, so that
        :math:`|E_{ij}| \le \sqrt{E_{ii} E_{jj}}`. The bound includes rounding errors of F, which
        grow with the condition number of the anchors. Return None if there are no coordinates.
        """
        if self.points is None:
            return None
        missing, present = np.sqrt(self.left_out), np.sqrt(self.points.captured)
        dtype = np.dtype(self.points.dtype)
        digits = float(np.finfo(dtype).eps) / np.sqrt(RANK_TOLERANCE[dtype])
        w = self.weights
        return missing * (w @ missing) + digits * present * (w @ present)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that describe the points used by `transform`."""
        precomputed = isinstance(self.kernel, Precomputed)
        rows, decoder = None, None
        if self.anchors is None:
            points = None if precomputed else data_of(self.canonical)
            columns = self.canonical.index if precomputed else None
        else:
            points, decoder = self.anchors.points, self.anchors.decoder
            if self.anchors.indices is not None:
                rows = self.canonical.index[self.anchors.indices]
            columns = rows if points is None else None
            points = None if points is None else points.copy()
        return {
            "kernel_": self.kernel,
            "X_fit_": points,
            "_columns_": columns,
            "_decoder_": decoder,
            "anchor_indices_": rows,
            "n_anchors_": None if decoder is None else len(decoder),
        }


def fitted_view(
    canonical: Canonical,
    kernel: Kernel,
    plan: Plan,
    *,
    on_sphere: bool = False,
    needs_gram: bool = True,
) -> View:
    """Fit the kernel to canonical rows, and make their Gram matrix or coordinates.

    On the sphere, kernel values are divided by the common k(x, x), which gives points unit length.
    """
    rows = rows_of(canonical, kernel)
    kernel = fitted_kernel(kernel, rows)
    if not needs_gram:
        return View(canonical, kernel, plan)
    if plan.face == "coordinates":
        radius = float(SPHERE.radius_of(kernel, rows) or 1.0) if on_sphere else None
        numbered = replace(plan, solver=plan.solver.with_row_numbers(canonical.inverse))
        given = (rows, kernel, numbered, plan.k, radius)
        anchors, points = points_by_anchors(*given, unit=on_sphere)
        return View(canonical, kernel, plan, CoordinateGram(points), radius or 1.0, anchors, points)
    data, budget = data_of(canonical), plan.request.memory_budget
    gram = gram_operator(kernel, data, memory_budget=budget, storage=plan.storage)
    radius = squared_radius(gram.diagonal()) if on_sphere else 1.0
    unit = gram if radius == 1.0 else Scaled(gram, 1.0 / radius)
    return View(canonical, kernel, plan, unit, radius)


def points_by_anchors(
    rows: Rows, kernel: Kernel, plan: Plan, k: int, radius: float | None, *, unit: bool
) -> tuple[Anchors, Coordinates]:
    """Choose anchors for k components or clusters, and compute coordinates of the rows.

    Kernel values are divided by the radius. `unit` normalises the coordinates.
    """
    scale, weights = 1.0 / (radius or 1.0), rows.columns.get("weights")
    if isinstance(kernel, Precomputed):
        rows = rows.zip(diagonal=np.diagonal(rows.whole()).astype(np.float64) * scale)
    anchors = plan.solver.anchors_of(kernel, rows, k, sample_weight=weights, scale=scale)
    given, dtype = anchors.prepared(kernel), rows.dtype
    anchor_map = AnchorMap(
        kernel, given, anchors.decoder, dtype, unit, radius, explicit=plan.name == "coordinates"
    )
    return anchors, Coordinates(rows, anchor_map).kept(plan.storage, plan.request.memory_budget)


def warn_if_few_anchors(status: Status, plan: Plan, count: int, trace_error: float) -> None:
    """Warn if `count` anchors do not reach the tolerance."""
    warn_unless_converged(
        status,
        f"{plan.request.owner} ({plan.name})",
        f"{count} anchors leave out {trace_error:.1e} of the trace; tol={plan.solver.tol}",
    )
