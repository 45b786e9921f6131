"""Components of batches that come one after the other: anchors first, then moments."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from .._core.checks import check_numbers, check_sample_weight
from .._core.threads import single_threaded_blas
from .._core.types import Floats
from .._core.warn import warn_user
from ..coordinates import Anchors
from ..coordinates.blocks import AnchorMap
from ..eigen import Nystroem
from ..eigen.features import CenteredSums, FeatureMoments
from ..eigen.pairs import orient
from ..kernels import Kernel, Precomputed, Radial
from ..kernels._prepared import finite_squared_norms
from ..plan import Plan, Request
from ..preimage.manifold import has_fixed_point
from ..preimage.ridge import ridge_of_moments
from ..rows import ArrayRows, as_rows, kind_of
from ..rows.base import rows_named, stacked
from ..sphere.incremental import TangentMoments
from ..sphere.karcher import find_mean
from .fits import Found, attributes_of, find_axes
from .geometry import FLAT, Flat, Origin, Sphere

__all__ = [
    "PartialFit",
    "partial_attributes",
    "partial_plan",
    "with_batches",
    "works_on_features",
]

# Rows for each anchor that is asked for, before anchors are chosen among them.
_ROWS_PER_ANCHOR = 8

# Points whose mean is the first that others are measured from.
_FIRST = 256

# Points whose Karcher mean is the base point of sums of Log maps.
_FOR_BASE = 2048

# The angle between the mean of the first rows and that of all, in radians, beyond which there is a
# warning. Eigenvalues were off by a per cent from about 1 rad on, for points spread over wide caps.
_WIDE_DRIFT = 0.5


@dataclass(frozen=True)
class PartialFit:
    """What is known of the batches so far; adding one makes a new object.

    Attributes
    ----------
    n_seen : int
        How many rows there were.
    rows, weights : tuple of arrays
        Rows that wait for anchors to be chosen among them, and their weights.
    kernel : Kernel or None
        The fitted kernel, once there are anchors.
    anchors : Anchors or None
        The anchors.
    moments : FeatureMoments, TangentMoments or None
        The moments of all points: flat, or on the sphere.
    radius : float or None
        What kernel values are divided by, on the sphere.
    """

    n_seen: int = 0
    rows: tuple[Any, ...] = ()
    weights: tuple[Floats, ...] = ()
    kernel: Kernel | None = None
    anchors: Anchors | None = None
    moments: FeatureMoments | TangentMoments | None = None
    radius: float | None = None

    def with_batch(
        self, X: Any, weights: Floats | None, kernel: Kernel, geometry: Flat | Sphere, plan: Plan
    ) -> PartialFit:
        """Return what is known with another validated batch."""
        seen = self.n_seen + X.shape[0]
        if self.anchors is not None:
            if weights is not None and not np.any(weights):
                return replace(self, n_seen=seen)
            with rows_named(X, self.n_seen, plan.request.owner):
                moments = self._moments_with(X, weights)
            return replace(self, n_seen=seen, moments=moments)
        w = np.ones(X.shape[0]) if weights is None else weights
        with rows_named(X, self.n_seen, plan.request.owner):
            _refuse_overflow(clone(kernel), X)
        # copies: the caller may read the next batch into the same array
        rows, counts = (*self.rows, X.copy()), (*self.weights, w)
        waiting = replace(self, n_seen=seen, rows=rows, weights=counts)
        enough = seen >= _rows_before_anchors(kernel, plan) and any(map(np.any, counts))
        return waiting.decided(kernel, geometry, plan) if enough else waiting

    def decided(self, kernel: Kernel, geometry: Flat | Sphere, plan: Plan) -> PartialFit:
        """Return the same with a kernel and anchors, from the rows that wait; then none do."""
        if self.anchors is not None:
            return self
        X, w = stacked(self.rows), np.concatenate(self.weights)
        if not np.any(w):
            raise ValueError(
                f"All rows that {plan.request.owner} has seen have the weight 0; give some with "
                "another one to partial_fit."
            )
        fitted = clone(kernel).fit_validated(X, w)
        rows = ArrayRows.of(X, serial=not fitted.threadsafe)
        radius = geometry.radius_of(fitted, rows)
        scale = 1.0 / (radius or 1.0)
        anchors = plan.solver.anchors_of(fitted, rows, plan.k, sample_weight=w, scale=scale)
        fresh = PartialFit(self.n_seen, kernel=fitted, anchors=anchors, radius=radius)
        if geometry.on_sphere:
            some, counts = rows.spread(_FOR_BASE, w)
            used = counts > 0
            vectors = fresh.by(unit=True).block(rows.take(some[used])).vectors().astype(np.float64)
            unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
            base = find_mean(unit, counts[used], tol=1e-6, max_iter=100)
            fresh = replace(fresh, moments=TangentMoments.at(base.point))
        return replace(fresh, moments=fresh._moments_with(X, w))

    def by(self, *, unit: bool) -> AnchorMap:
        """Return the map to vectors, once there are anchors."""
        if self.kernel is None or self.anchors is None:
            raise ValueError("There are no anchors yet.")
        dtype = self.anchors.points.dtype
        return AnchorMap.by(self.kernel, self.anchors, dtype, unit=unit, radius=self.radius)

    def _moments_with(self, X: Any, weights: Floats | None) -> Any:
        """Return the moments with those of a batch."""
        if isinstance(self.moments, TangentMoments):
            by, moments = self.by(unit=True), self.moments
            for start in range(0, X.shape[0], by.rows_at_once):
                part = slice(start, start + by.rows_at_once)
                w = None if weights is None else weights[part]
                with rows_named(X[part], start, ""):
                    block = by.block(X[part])
                    moments = moments.with_part(block.vectors(), w, block.lengths)
            return moments
        by = self.by(unit=False)
        if self.moments is None:
            center = by.block(X[:_FIRST]).vectors().mean(axis=0)
        else:
            center = self.moments.mean
        # in the precision of the vectors: what is taken from them is what is added again
        center = center.astype(by.dtype).astype(np.float64)
        inputs = self._input_center(X)
        rows = ArrayRows.of(X, serial=not by.kernel.threadsafe).zip(weights=weights)
        found = FeatureMoments.of_sums(center, rows.reduce(_Sums(by, center, inputs)), inputs)
        return found if self.moments is None else self.moments.with_part(found)

    def _input_center(self, X: Any) -> Floats | None:
        """Return where inputs are measured from, None where vectors need not lead back to them."""
        kernel: Any = self.kernel
        if not kernel.takes_vectors or has_fixed_point(kernel, X):
            return None
        if scipy.sparse.issparse(X):
            return np.zeros(X.shape[1])
        if isinstance(self.moments, FeatureMoments):
            return np.asarray(self.moments.input_mean)
        return np.asarray(X[:_FIRST].mean(axis=0, dtype=np.float64))


@dataclass(frozen=True)
class _Sums:
    """Sums for moments of points about a center; with one for the rows, also for both together."""

    by: AnchorMap
    center: Floats
    input_center: Floats | None

    @property
    def rows_at_once(self) -> int:
        return self.by.rows_at_once

    @property
    def work_per_row(self) -> float:
        return self.by.work_per_row

    def __call__(self, rows: Any, start: int, weights: Any = None) -> tuple[Any, ...]:
        block = self.by.block(rows, weights)
        sums = CenteredSums(self.center)(block)
        if self.input_center is None:
            return sums
        w = np.ones(block.n) if weights is None else weights
        z = block.vectors() - self.center.astype(block.dtype)
        sparse = scipy.sparse.issparse(rows)  # differences would not be sparse
        y = rows if sparse else rows.astype(np.float64) - self.input_center
        return *sums, y.T @ w, np.asarray((y.T @ (z * w[:, None])).T)


def _refuse_overflow(kernel: Kernel, X: Any) -> None:
    """Raise if rows are too large for the kernel, before they are stored with others."""
    if not kernel._unresolved():
        kernel.fit_validated(X).prepare(X)
    elif isinstance(kernel, Radial):
        finite_squared_norms(X)


def _rows_before_anchors(kernel: Kernel, plan: Plan) -> int:
    """Return how many rows must have been seen before anchors are chosen among them.

    None wait where the anchors are given and the kernel takes nothing from the data.
    """
    if isinstance(plan.solver.anchors, str):
        return _ROWS_PER_ANCHOR * int(plan.solver.most_anchors(plan.k))
    return _ROWS_PER_ANCHOR * len(plan.solver.anchors) if kernel._unresolved() else 0


def works_on_features(estimator: Any) -> bool:
    """Tell whether the solver of an estimator works on features, or raise to say that it must."""
    if estimator._geometry.on_sphere and getattr(estimator.solver, "sphere", "") == "angles":
        raise AttributeError(
            f"{type(estimator).__name__} has partial_fit for features of unit length: take "
            "sphere='unit'."
        )
    if estimator.solver in ("auto", "nystroem") or isinstance(estimator.solver, Nystroem):
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has partial_fit, which works on features by anchors, with "
        f"solver='nystroem' or 'auto'; solver={estimator.solver!r} needs all rows at once."
    )


def partial_plan(request: Request, kernel: Kernel) -> Plan:
    """Return the plan of `partial_fit`: coordinates by anchors."""
    owner = f"partial_fit of {request.owner}"
    if isinstance(kernel, Precomputed):
        raise ValueError(f"{owner} takes rows of features, not rows of a precomputed Gram matrix.")
    solver = request.resolved(1, 1, "nystroem" if request.solver == "auto" else None)
    if not isinstance(solver, Nystroem):
        raise ValueError(f"{owner} needs solver='nystroem'; got {request.solver!r}.")
    if not isinstance(solver.anchors, str) and np.ndim(solver.anchors) == 1:
        raise ValueError(
            f"{owner} takes anchors as points, or by the name of a rule: batches have no numbers "
            "of rows."
        )
    wanted = request.n_components
    k = wanted if isinstance(wanted, numbers.Integral) else 1
    why = "rows come once"
    return Plan("coordinates", solver.name, solver, int(k), "recompute", 1, 0, why, request)


def with_batches(state: PartialFit, X: Any, sample_weight: Any, estimator: Any) -> PartialFit:
    """Return what is known with the rows of X, which are checked on behalf of an estimator."""
    owner, kernel = type(estimator).__name__, estimator._kernel_object()
    plan = partial_plan(Request.of(estimator), kernel)
    if kind_of(X, kernel) == "dask":
        raise ValueError(f"partial_fit of {owner} takes no dask array; give it to fit.")
    with rows_named(X, state.n_seen, owner):
        rows = as_rows(X, kernel, estimator, reset=state.n_seen == 0, once=True)
    if rows.once and sample_weight is not None:
        raise ValueError(
            f"partial_fit of {owner} takes weights with one array at a time, not with an iterator "
            "of batches."
        )
    given, start = _vector_of_weights(sample_weight, owner), 0
    for block in rows.blocks(state.n_seen):
        stop = start + block.shape[0]
        part = given[start:stop] if isinstance(given, np.ndarray) else given
        if isinstance(rows, ArrayRows):
            part = given
        weights = check_sample_weight(part, block.shape[0], owner, block.dtype, all_zero=True)
        with single_threaded_blas():
            state = state.with_batch(block, weights, kernel, estimator._geometry, plan)
        start = stop
    if state.n_seen == 0:
        raise ValueError(f"partial_fit of {owner} was given no rows.")
    if isinstance(given, np.ndarray) and len(given) != start:
        raise ValueError(
            f"sample_weight of {owner} must have shape ({start},), one weight per sample; got "
            f"{given.shape}."
        )
    return state


def _vector_of_weights(sample_weight: Any, owner: str) -> Any:
    """Return weights that can be cut into those of batches; a number and None as they are."""
    if sample_weight is None or isinstance(sample_weight, numbers.Number):
        return sample_weight
    weights = check_numbers(
        sample_weight, "sample_weight", owner, ensure_2d=False, dtype=np.float64
    )
    if weights.ndim != 1:
        raise ValueError(
            f"sample_weight of {owner} must be one weight per sample; got {weights.shape}."
        )
    return weights


def partial_attributes(
    state: PartialFit, kernel: Kernel, geometry: Flat | Sphere, plan: Plan, alpha: float
) -> dict[str, Any]:
    """Return the fitted attributes; while rows wait for anchors, as if they were all."""
    with single_threaded_blas():
        state = state.decided(kernel, geometry, plan)
        moments: Any = state.moments
        anchors: Any = state.anchors
        by, n = state.by(unit=geometry.on_sphere), state.n_seen
        origin = _origin(moments, plan.request.owner)
        found = find_axes(by, origin, geometry, plan.request.n_components, n)
        # rows are gone: the anchors say what is positive
        embedding = geometry.embedding(origin, found.axes)(by.block(anchors.points))
        signs = orient(embedding[:, : found.axes.shape[1]])
        axes = found.axes * signs
        found = Found(found.variances, axes, origin, found.rounding)
        kept = attributes_of(found, by, n, geometry, plan, anchors)
        kept |= {"kernel_": state.kernel, "sample_weight_": None, "_solution_": None}
    if isinstance(moments, FeatureMoments) and moments.cross is not None:
        kept["_ridge_"] = ridge_of_moments(
            np.asarray(moments.input_mean),
            np.zeros(axes.shape[1]),
            axes.T @ moments.covariance @ axes,
            axes.T @ moments.cross / moments.count,
            alpha,
        )
    return kept


def _origin(moments: FeatureMoments | TangentMoments, owner: str) -> Origin:
    """Return the center of the points and their covariance there, from moments."""
    if isinstance(moments, FeatureMoments):
        return FLAT.origin(moments)
    found = moments.origin()
    if found.drift > _WIDE_DRIFT:
        warn_user(
            f"partial_fit of {owner}: the Karcher mean of all rows lies {found.drift:.2f} rad from "
            "that of the first rows, and the components are an approximation that grows worse with "
            "this angle. Shuffle the rows, or give all of them to fit.",
            UserWarning,
        )
    return Origin(
        point=found.point,
        covariance=found.covariance,
        total=found.total,
        term_size=found.term_size,
        count=moments.count,
        trace=1.0,
        left_out=1.0 - moments.captured / moments.count,
        attributes={
            "mean_n_iter_": found.n_iter,
            "mean_gradient_norm_": found.gradient_norm,
            "mean_drift_": found.drift,
            "geodesic_variance_": found.total,
        },
        converged=found.converged,
    )
