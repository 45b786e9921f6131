"""Fits to successive batches: first choose anchors, then add up moments."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._core.checks import check_numbers, check_sample_weight
from .._core.threads import single_threaded_blas
from .._core.types import Floats
from ..coordinates import Anchors, Coordinates
from ..coordinates.blocks import AnchorMap, Block
from ..eigen.features import FeatureMoments, centered_sums
from ..eigen.pairs import orient
from ..kernels import Kernel, Radial
from ..kernels.base import finite_squared_norms
from ..plan import Plan
from ..preimage.manifold import has_fixed_point
from ..preimage.ridge import ridge_from_moments
from ..rows import ArrayRows, Rows
from ..rows.base import rows_named, stacked
from ..sphere.incremental import TangentMoments
from ..sphere.karcher import find_mean
from .fits import attributes_of, find_axes, input_sums
from .geometry import Geometry

# Anchors are chosen once there are this many rows for each.
_ROWS_PER_ANCHOR = 8

# The first sums are centred at the mean of this many points.
_CENTER_SAMPLE = 256

# The base point of the Log maps is the Karcher mean of this many points.
_BASE_SAMPLE = 2048


@dataclass(frozen=True)
class PartialFit:
    """The state after some batches (immutable; adding a batch returns a new object).

    Attributes
    ----------
    n_seen : int
        The number of rows so far.
    rows, weights : tuple of arrays
        Rows that are stored until anchors are chosen from them, and their weights.
    kernel : Kernel or None
        The fitted kernel; None before anchors are chosen.
    anchors : Anchors or None
        The anchors; None before they are chosen.
    moments : FeatureMoments, TangentMoments or None
        The moments of all points: flat, or on the sphere.
    radius : float or None
        The constant k(x, x), by which kernel values are divided; None if not on the sphere.
    """

    n_seen: int = 0
    rows: tuple[Any, ...] = ()
    weights: tuple[Floats, ...] = ()
    kernel: Kernel | None = None
    anchors: Anchors | None = None
    moments: FeatureMoments | TangentMoments | None = None
    radius: float | None = None

    def with_batch(
        self, X: Any, weights: Floats | None, kernel: Kernel, geometry: Geometry, plan: Plan
    ) -> PartialFit:
        """Return the state after another validated batch."""
        n_seen = self.n_seen + X.shape[0]
        if self.anchors is not None:
            if weights is not None and not np.any(weights):
                return replace(self, n_seen=n_seen)
            with rows_named(X, self.n_seen, plan.request.owner):
                moments = self._moments_with(X, weights)
            return replace(self, n_seen=n_seen, moments=moments)
        w = np.ones(X.shape[0]) if weights is None else weights
        with rows_named(X, self.n_seen, plan.request.owner):
            _check_range(clone(kernel), X)
        # copy, because the caller may read the next batch into the same array
        rows, counts = (*self.rows, X.copy()), (*self.weights, w)
        stored = replace(self, n_seen=n_seen, rows=rows, weights=counts)
        is_ready = n_seen >= _rows_before_anchors(kernel, plan) and any(map(np.any, counts))
        return stored.with_anchors(kernel, geometry, plan) if is_ready else stored

    def with_anchors(self, kernel: Kernel, geometry: Geometry, plan: Plan) -> PartialFit:
        """Return the state with a fitted kernel and anchors, chosen from the stored rows."""
        if self.anchors is not None:
            return self
        X, w = stacked(self.rows), np.concatenate(self.weights)
        if not np.any(w):
            raise ValueError(
                f"All rows that {plan.request.owner} was given so far have weight 0. Pass rows of "
                "positive weight to partial_fit."
            )
        fitted = clone(kernel).fit_validated(X, w)
        rows = ArrayRows.of(X, serial=not fitted.threadsafe)
        radius = geometry.radius_of(fitted, rows)
        scale = 1.0 / (radius or 1.0)
        solver = plan.solver
        if isinstance(solver.anchors, str) and solver.anchors == "auto":
            # the anchors stay for all later batches, so they are worth the longer choice
            solver = replace(solver, anchors="rpcholesky")
        anchors = solver.anchors_of(fitted, rows, plan.k, sample_weight=w, scale=scale)
        state = PartialFit(self.n_seen, kernel=fitted, anchors=anchors, radius=radius)
        if geometry.on_sphere:
            sample, counts = rows.spread(_BASE_SAMPLE, w)
            used = counts > 0
            block = state.anchor_map(unit=True).block(rows.take(sample[used]))
            vectors = block.vectors().astype(np.float64)
            unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
            base = find_mean(unit, counts[used], tol=1e-6, max_iter=100)
            state = replace(state, moments=TangentMoments.at(base.point))
        return replace(state, moments=state._moments_with(X, w))

    def anchor_map(self, *, unit: bool) -> AnchorMap:
        """Return the map from rows to features. Anchors must have been chosen."""
        kernel, anchors = cast(Kernel, self.kernel), cast(Anchors, self.anchors)
        dtype = anchors.points.dtype
        given = anchors.prepared(kernel)
        return AnchorMap(kernel, given, anchors.decoder, dtype, unit, self.radius)

    def _moments_with(self, X: Any, weights: Floats | None) -> Any:
        """Return the moments of all rows so far, including a new batch."""
        if isinstance(self.moments, TangentMoments):
            anchor_map, moments = self.anchor_map(unit=True), self.moments
            for start in range(0, X.shape[0], anchor_map.rows_at_once):
                rows = slice(start, start + anchor_map.rows_at_once)
                w = None if weights is None else weights[rows]
                with rows_named(X[rows], start, ""):
                    block = anchor_map.block(X[rows])
                    moments = moments.with_batch(block.vectors(), w, block.lengths)
            return moments
        anchor_map = self.anchor_map(unit=False)
        if self.moments is None:
            center = anchor_map.block(X[:_CENTER_SAMPLE]).vectors().mean(axis=0)
        else:
            center = self.moments.mean
        # round to the precision of the vectors, so that subtraction is exact
        center = center.astype(anchor_map.dtype).astype(np.float64)
        input_center = self._input_center(X)
        batch = ArrayRows.of(X, serial=not anchor_map.kernel.threadsafe)
        points = Coordinates(batch.zip(weights=weights), anchor_map)
        sums = points.reduce(partial(_sums, center, input_center))
        found = FeatureMoments.of_sums(center, sums, input_center)
        return found if self.moments is None else self.moments.with_part(found)

    def _input_center(self, X: Any) -> Floats | None:
        """Return the origin for sums of inputs; None if `inverse_transform` does not need them."""
        kernel: Any = self.kernel
        if not kernel.takes_vectors or has_fixed_point(kernel, X):
            return None
        if scipy.sparse.issparse(X):
            return np.zeros(X.shape[1])
        if isinstance(self.moments, FeatureMoments):
            return np.asarray(self.moments.input_mean)
        return np.asarray(X[:_CENTER_SAMPLE].mean(axis=0, dtype=np.float64))


def _sums(center: Floats, input_center: Floats | None, block: Block) -> Any:
    """Return sums of the features about a center, and of the inputs if they have a center."""
    sums = centered_sums(center, block)
    if input_center is None:
        return sums
    w = np.ones(block.n) if block.weights is None else block.weights
    z = block.vectors() - center.astype(block.dtype)
    return *sums, *input_sums(block.rows, input_center, z, w)


def _check_range(kernel: Kernel, X: Any) -> None:
    """Raise if rows are too large for the kernel. Called before the rows are stored."""
    if not kernel._unresolved():
        kernel.fit_validated(X).prepare(X)
    elif isinstance(kernel, Radial):
        finite_squared_norms(X)


def _rows_before_anchors(kernel: Kernel, plan: Plan) -> int:
    """Return the minimum number of rows that anchors are chosen from.

    It is 0 if the anchors are given and no parameter of the kernel depends on the data.
    """
    if isinstance(plan.solver.anchors, str):
        return _ROWS_PER_ANCHOR * int(plan.solver.max_anchors(plan.k))
    return _ROWS_PER_ANCHOR * len(plan.solver.anchors) if kernel._unresolved() else 0


def add_batches(
    state: PartialFit,
    rows: Rows,
    sample_weight: ArrayLike | None,
    kernel: Kernel,
    geometry: Geometry,
    plan: Plan,
) -> PartialFit:
    """Return the state after adding all blocks of the rows."""
    owner, start = plan.request.owner, 0
    given: Any = sample_weight
    if is_vector := not (given is None or isinstance(given, numbers.Number)):
        given = np.atleast_1d(
            check_numbers(given, "sample_weight", owner, ensure_2d=False, dtype=np.float64)
        )
    for block in rows.blocks(state.n_seen):
        stop = start + block.shape[0]
        block_weights = given[start:stop] if is_vector else given
        weights = check_sample_weight(
            block_weights, stop - start, owner, block.dtype, allow_zeros=True
        )
        with single_threaded_blas():
            state = state.with_batch(block, weights, kernel, geometry, plan)
        start = stop
    if state.n_seen == 0:
        raise ValueError(f"partial_fit of {owner} was given no rows. Pass at least one.")
    if is_vector and len(given) != start:
        raise ValueError(
            f"sample_weight of {owner} must have shape ({start},), one weight per sample; got "
            f"{given.shape}."
        )
    return state


def partial_attributes(
    state: PartialFit, kernel: Kernel, geometry: Geometry, plan: Plan, alpha: float
) -> dict[str, Any]:
    """Return the fitted attributes; choose anchors from the rows so far if there are none."""
    with single_threaded_blas():
        state = state.with_anchors(kernel, geometry, plan)
        moments: Any = state.moments
        anchors: Any = state.anchors
        anchor_map, n = state.anchor_map(unit=geometry.on_sphere), state.n_seen
        origin = geometry.origin_of(moments, plan.request.owner)
        found = find_axes(anchor_map.dtype, origin, geometry, plan.request.n_components, n)
        # the rows are not stored, so signs are chosen with the anchors
        embedding = geometry.embedding(origin, found.axes)(anchor_map.block(anchors.points))
        axes = found.axes * orient(embedding[:, : found.axes.shape[1]])
        attributes = attributes_of(
            replace(found, axes=axes), anchor_map, n, geometry, plan, anchors
        )
        attributes |= {"kernel_": state.kernel, "sample_weight_": None, "_solution_": None}
    if isinstance(moments, FeatureMoments) and moments.cross is not None:
        attributes["_ridge_"] = ridge_from_moments(
            np.asarray(moments.input_mean),
            np.zeros(axes.shape[1]),
            axes.T @ moments.covariance @ axes,
            axes.T @ moments.cross / moments.count,
            alpha,
        )
    return attributes
