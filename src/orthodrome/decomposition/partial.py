"""Kernel PCA of batches that come one after the other: anchors first, then moments."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone

from .._core.checks import check_numbers, numbers_expected
from .._core.threads import VALUE_WORK, run_over_rows, single_threaded_blas
from ..eigen import FeatureMoments, Nystroem, orient
from ..gram import Anchors, CenteredSums, FeatureMap, kind_of
from ..gram.local_sources import zarr_rows
from ..gram.sources import added, block_sums, stacked
from ..kernels import Kernel, Precomputed, Radial
from ..kernels._prepared import finite_squared_norms
from ..preimage import has_fixed_point
from ..preimage.ridge import ridge_of_moments
from .anchors import (
    FeatureFit,
    Traces,
    anchors_for,
    axes_of_moments,
    flat_attributes,
    keep_anchors,
    keep_components,
    most_anchors,
)
from .streams import feature_solver_for_blocks

__all__ = [
    "PartialFit",
    "batches_of",
    "keep_partial_fit",
    "solver_for_batches",
    "works_on_features",
]

# Rows for each anchor that is asked for, before anchors are chosen among them.
_ROWS_PER_ANCHOR = 8

# Features whose mean is the first that others are measured from.
_FIRST = 256


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
    moments : FeatureMoments or None
        The moments of the features of all rows.
    """

    n_seen: int = 0
    rows: tuple[Any, ...] = ()
    weights: tuple[NDArray[np.float64], ...] = ()
    kernel: Kernel | None = None
    anchors: Anchors | None = None
    moments: FeatureMoments | None = None

    def with_batch(
        self, estimator: Any, X: Any, weights: NDArray[np.float64] | None, solver: Nystroem
    ) -> PartialFit:
        """Return what is known with another validated batch."""
        seen = self.n_seen + X.shape[0]
        if self.anchors is not None:
            if weights is not None and not np.any(weights):
                return replace(self, n_seen=seen)
            return replace(self, n_seen=seen, moments=self._moments_with(X, weights))
        w = np.ones(X.shape[0]) if weights is None else weights
        _refuse_overflow(clone(estimator._kernel_object()), X)
        # copies: the caller may read the next batch into the same array
        rows, counts = (*self.rows, X.copy()), (*self.weights, w)
        waiting = replace(self, n_seen=seen, rows=rows, weights=counts)
        enough = seen >= rows_before_anchors(estimator, solver)
        return (
            waiting.decided(estimator, solver) if enough and any(map(np.any, counts)) else waiting
        )

    def decided(self, estimator: Any, solver: Nystroem) -> PartialFit:
        """Return the same with a kernel and anchors, from the rows that wait; then none do."""
        if self.anchors is not None:
            return self
        X, w = stacked(self.rows), np.concatenate(self.weights)
        if not np.any(w):
            raise ValueError(
                f"All rows that {type(estimator).__name__} has seen have the weight 0; give some "
                "with another one to partial_fit."
            )
        kernel = clone(estimator._kernel_object()).fit_validated(X, w)
        anchors = anchors_for(estimator, kernel, X, w, solver, 1.0)
        fresh = PartialFit(self.n_seen, kernel=kernel, anchors=anchors)
        return replace(fresh, moments=fresh._moments_with(X, w))

    @property
    def features(self) -> FeatureMap:
        """The map to features, once there are anchors."""
        if self.kernel is None or self.anchors is None:
            raise ValueError("There are no anchors yet.")
        return FeatureMap.by(self.kernel, self.anchors, unit=False, radius=None)

    def _moments_with(self, X: Any, weights: NDArray[np.float64] | None) -> FeatureMoments:
        features = self.features
        if self.moments is None:
            center = features.features(*features.look(X[:_FIRST]))[0].mean(axis=0)
        else:
            center = self.moments.mean
        # in the precision of the features: what is taken from them is what is added again
        center = center.astype(features.dtype).astype(np.float64)
        inputs = self._input_center(X)
        function = CenteredSums(
            map=features, weighted=weights is not None, center=center, input_center=inputs
        )

        def share(rows: slice) -> Any:
            along = [] if weights is None else [weights[rows]]
            return block_sums(function, None, X[rows], rows.start, along, ())

        serial = not features.kernel.threadsafe
        whole = slice(0, X.shape[0])
        total = None
        work = VALUE_WORK * X.shape[0] * len(features.anchors)
        for part in [share(whole)] if serial else run_over_rows(share, X.shape[0], work=work):
            total = added(total, part)
        found = FeatureMoments.of_sums(center, total, inputs)  # type: ignore[arg-type]  # X has rows
        return found if self.moments is None else self.moments.with_part(found)

    def _input_center(self, X: Any) -> NDArray[np.float64] | None:
        """Return where inputs are measured from, None where features need not lead back to them."""
        kernel = self.features.kernel
        if not kernel.takes_vectors or has_fixed_point(kernel, X):
            return None
        if scipy.sparse.issparse(X):
            return np.zeros(X.shape[1])
        first = X[:_FIRST].mean(axis=0, dtype=np.float64)
        return first if self.moments is None else np.asarray(self.moments.input_mean)


def _refuse_overflow(kernel: Kernel, X: Any) -> None:
    """Raise where rows are too large for the kernel, before they wait beside others."""
    if not kernel._unresolved():
        kernel.fit_validated(X).prepare(X)
    elif isinstance(kernel, Radial):
        finite_squared_norms(X)


def rows_before_anchors(estimator: Any, solver: Nystroem) -> int:
    """Return how many rows must have been seen before anchors are chosen among them.

    None wait where the anchors are given and the kernel takes nothing from the data.
    """
    if isinstance(solver.anchors, str):
        return _ROWS_PER_ANCHOR * most_anchors(estimator, solver)
    if not estimator._kernel_object()._unresolved():
        return 0
    return _ROWS_PER_ANCHOR * len(solver.anchors)


def works_on_features(estimator: Any) -> bool:
    """Tell whether the solver of an estimator works on features, or raise to say that it must."""
    if estimator.solver in ("auto", "nystroem") or isinstance(estimator.solver, Nystroem):
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has partial_fit, which works on features by anchors, with "
        f"solver='nystroem' or 'auto'; solver={estimator.solver!r} needs all rows at once."
    )


def solver_for_batches(estimator: Any, kernel: Kernel) -> Nystroem:
    """Return the solver of `partial_fit`, which works on features; "auto" is that here."""
    owner = f"partial_fit of {type(estimator).__name__}"
    if isinstance(kernel, Precomputed):
        raise ValueError(f"{owner} takes rows of features, not rows of a precomputed Gram matrix.")
    solver = feature_solver_for_blocks(estimator)
    if solver is None:
        raise ValueError(f"{owner} needs solver='nystroem'; got {estimator.solver!r}.")
    if not isinstance(solver.anchors, str) and np.ndim(solver.anchors) == 1:
        raise ValueError(
            f"{owner} takes anchors as points, or by the name of a rule: batches have no numbers "
            "of rows."
        )
    return solver


def batches_of(X: Any, sample_weight: Any, kernel: Kernel, owner: str) -> Iterator[tuple[Any, Any]]:
    """Yield arrays with their weights: X itself, or the batches it has, read one at a time."""
    kind = kind_of(X, kernel)
    if kind == "array":
        yield X, sample_weight
        return
    if kind == "dask":
        raise ValueError(f"partial_fit of {owner} takes no dask array; give it to fit.")
    if kind == "zarr":
        step = zarr_rows(X)
        parts: Any = (np.asarray(X[i : i + step]) for i in range(0, X.shape[0], step))
    else:
        parts = X
    if sample_weight is not None and kind == "once":
        raise ValueError(
            f"partial_fit of {owner} takes weights with one array at a time, not with an iterator "
            "of batches."
        )
    start = 0
    weights = None
    if sample_weight is not None and not isinstance(sample_weight, numbers.Number):
        weights = check_numbers(
            sample_weight, "sample_weight", owner, ensure_2d=False, dtype=np.float64
        )
        if weights.ndim != 1:
            raise ValueError(
                f"sample_weight of {owner} must be one weight per sample; got {weights.shape}."
            )
    for given in parts:
        part = _rows_of(given, owner)
        stop = start + part.shape[0]
        if start == stop:  # as in fit
            continue
        yield part, sample_weight if weights is None else weights[start:stop]
        start = stop
    if weights is not None and len(weights) != start:
        raise ValueError(
            f"sample_weight of {owner} must have shape ({start},), one weight per sample; got "
            f"{weights.shape}."
        )


def _rows_of(batch: Any, owner: str) -> Any:
    """Return a batch as what has a shape, of two dimensions or more, or raise."""
    if not hasattr(batch, "shape"):
        with numbers_expected(batch, "A batch", owner):
            batch = np.asarray(batch)
    if len(batch.shape) < 2:
        raise ValueError(
            f"The batches for {owner} must be arrays of rows, of two dimensions; got one of shape "
            f"{batch.shape}. A single row is batch[None, :]."
        )
    return batch


def keep_partial_fit(estimator: Any, state: PartialFit, solver: Nystroem) -> None:
    """Set the fitted attributes; while rows wait for anchors, as if they were all."""
    with single_threaded_blas():
        state = state.decided(estimator, solver)
        if state.moments is None or state.anchors is None or state.kernel is None:
            raise ValueError("There are no rows yet.")
        features, moments, n = state.features, state.moments, state.n_seen
        found, total, floor = axes_of_moments(moments, features, estimator.n_components, n)
        # rows are gone: the anchors say what is positive
        at_anchors = features.features(*features.look(state.anchors.points))[0]
        signs = orient((at_anchors - moments.mean) @ found.axes)
        axes = found.axes * signs
        kept = flat_attributes(features, moments.mean, axes) | {"_constant_diagonal": None}
        dtype = features.dtype
        fit = FeatureFit(found.variances, axes, None, total, floor, dtype, kept)
        keep_anchors(estimator, state.kernel, state.anchors, None)
        keep_components(estimator, fit, n, moments.count, Traces.of(moments), solver)
    estimator._squared_radius = 1.0
    if moments.input_mean is not None and moments.cross is not None:
        estimator._ridge_ = ridge_of_moments(
            moments.input_mean,
            np.zeros(axes.shape[1]),
            axes.T @ moments.covariance @ axes,
            axes.T @ moments.cross / moments.count,
            estimator.inverse_alpha,
        )
