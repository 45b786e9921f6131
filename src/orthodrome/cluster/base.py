"""What clusterings share, and what those with centres do."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical
from .._core.checks import check_choice
from .._core.parameters import integer
from .._core.progress import Progress, tracked, with_callbacks
from .._core.random import several_seeds
from .._core.status import warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.types import Data
from .._core.warn import warn_user
from ..base import (
    SOLVER_PARAMETERS,
    KernelEstimator,
    canonical_of,
    data_of,
    fitted_kernel,
    last_fit_kept,
    nystroem_or,
    rows_of,
    rows_renumbered,
)
from ..coordinates import CoordinateGram
from ..decomposition.view import View, fitted_points
from ..gram import GramOperator, gram_operator
from ..kernels import Kernel, Precomputed
from ..plan import Plan, Request, make_plan
from ..rows import DaskRows, Rows, as_rows
from ..sphere.lloyd import Centers, Run, lloyd, numbered_by_first
from ..sphere.seeding import SEEDINGS

__all__ = ["MOST_RUNS", "CenterClustering", "FitsClusters", "number_of_clusters", "warn_if_fewer"]

# Of the progress bar: about what the Gram matrix takes of a fit.
_GRAM_SHARE = 0.2
# Rows among which starts are looked for where vectors are computed anew in every pass.
_SAMPLE = 8192
# Runs from other starts: more would not end, and the seeds of all are drawn before the first.
MOST_RUNS = 10**6


class FitsClusters:
    """Mixin of estimators with ``labels_``: how they are fitted, whatever they do then in `_fit`.

    It comes before scikit-learn's mixins, whose ``fit_predict`` would hand out ``labels_`` itself.
    """

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
            Rows in blocks are taken too, see :doc:`/streams`: zarr and dask arrays, lists of
            batches, and objects that yield batches anew in every pass.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is the same as the row written twice, 0 as the row left out (it
            then gets its label as a new point does).

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, sample_weight)
        return self

    @abstractmethod
    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Fit, and set ``labels_``; what fails on the way may leave anything behind."""

    def fit_predict(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Find the clusters and return the label of each training point."""
        return self.fit(X, sample_weight=sample_weight).labels_.copy()

    def __sklearn_is_fitted__(self) -> bool:
        # a fit that fails after its input was checked leaves n_features_in_ and nothing else
        return hasattr(self, "kernel_")


class CenterClustering(
    FitsClusters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, KernelEstimator
):
    """What k-means in any geometry shares: starts, Lloyd's iteration, labels, new points.

    A subclass says in which geometry (`_geometry`), how far all points are from given inputs
    (`_squared_from_inputs`), what to keep of the centres (`_keep`), and how far new points are from
    those (`_squared_distances`).
    """

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_clusters": integer(),
        "n_init": integer(maximum=MOST_RUNS),
        "max_iter": integer(),
        "solver": nystroem_or("exact"),
    }

    n_clusters: int
    solver: Any
    n_anchors: int | None
    init: Any
    n_init: int
    max_iter: int
    storage: str
    random_state: Any

    # Of fits on features; else there are none.
    n_anchors_: int | None = None
    anchor_indices_: NDArray[np.intp] | None = None
    _decoder_: NDArray[np.float64] | None = None

    # ------------------------------------------------------------------ what a subclass supplies

    @abstractmethod
    def _geometry(
        self, kernel: Kernel, canonical: Canonical, plan: Plan, k: int
    ) -> tuple[Centers, View | None]:
        """Return where the centres live, and the points as vectors where they are."""

    @abstractmethod
    def _squared_from_inputs(self, geometry: Any, inputs: NDArray[Any]) -> NDArray[np.float64]:
        """Return the squared distances of all points from inputs, shape (n, m)."""

    @abstractmethod
    def _keep(
        self, geometry: Any, centers: Any, kept: NDArray[np.intp], view: View | None
    ) -> float:
        """Set the fitted attributes that belong to the centres of the clusters kept.

        Return what the inertia lacks: vectors know nothing of what they leave out.
        """

    @abstractmethod
    def _distances(self) -> Any:
        """Return the function of blocks that gives squared distances from the centres."""

    def _order(self) -> Any:
        """Return the same, or what grows with it, to find the nearest centre."""
        return self._distances()

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Fit; what fails on the way may leave anything behind."""
        self._check_parameters()
        kernel = self._kernel_object()
        rows = as_rows(X, kernel, self).weighted(sample_weight, type(self).__name__)
        self._check_kernel(kernel, rows)
        canonical = canonical_of(rows, kernel)
        k = number_of_clusters(self, canonical)
        plan = self._plan(rows_of(canonical, kernel), kernel, k)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            with rows_renumbered(canonical.index):
                self.kernel_ = fitted_kernel(kernel, rows_of(canonical, kernel))
                geometry, view = self._geometry(self.kernel_, canonical, plan, k)
            starts = self._starts(geometry, canonical, k, view)
            progress.advance(_GRAM_SHARE, "Gram matrix" if view is None else "features")
            with rows_renumbered(canonical.index):
                best = self._best(geometry, starts, k, progress)
        labels, kept = numbered_by_first(best.labels)
        self.__dict__.update(fitted_points(canonical, self.kernel_, view))
        missing = self._keep(geometry, best.centers, kept, view)
        self.inertia_ = best.inertia + missing
        self.n_iter_ = best.n_iter
        self.converged_ = best.status.converged and (view is None or view.status.converged)
        self.history_ = [entry | {"inertia": entry["inertia"] + missing} for entry in best.history]
        self.labels_ = labels[canonical.inverse]
        alone = np.flatnonzero(canonical.inverse < 0)
        if len(alone):
            with rows_renumbered(alone):
                self.labels_[alone] = nearest(self._order()(rows.take(alone), 0))
        if isinstance(rows, DaskRows):
            self.labels_ = rows.as_dask(self.labels_)
        self._warn(best, len(kept), view)

    def _plan(self, rows: Rows, kernel: Kernel, k: int) -> Plan:
        """Decide between the Gram matrix and vectors."""
        solver = "dense" if self.solver == "exact" else self.solver
        return make_plan(rows, kernel, Request.of(self, solver=solver, n_components=k))

    def _best(
        self, geometry: Centers, starts: list[NDArray[np.intp]], k: int, progress: Progress
    ) -> Run:
        """Run Lloyd's iteration from all starts, and return the run of least inertia."""

        def report(entry: dict[str, Any]) -> None:
            done = entry["n_done"] / entry["n_runs"]
            progress.advance(_GRAM_SHARE + (1 - _GRAM_SHARE) * done, "k-means")

        runs = lloyd(geometry, starts, k, max_iter=self.max_iter, callback=report)
        progress.advance(1.0, "k-means")
        return min(runs, key=lambda run: run.inertia)

    def _gram(self, kernel: Kernel, canonical: Canonical, plan: Plan) -> GramOperator:
        budget, storage = self.memory_budget, plan.storage
        return gram_operator(kernel, data_of(canonical), memory_budget=budget, storage=storage)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.init, str):
            check_choice(self.init, self._inits(), "init", type(self).__name__)

    def _inits(self) -> tuple[str, ...]:
        return tuple(SEEDINGS)

    def _check_kernel(self, kernel: Kernel, rows: Rows) -> None:
        """Raise where the kernel, or its data, cannot be used."""

    def _starts(
        self, geometry: Centers, canonical: Canonical, k: int, view: View | None
    ) -> list[NDArray[np.intp]]:
        """Return the labels that each run begins with."""
        if not isinstance(self.init, str):
            inputs = self._given_centers(canonical)
            return [np.argmin(self._squared_from_inputs(geometry, inputs), axis=1)]
        seeds = several_seeds(self.random_state, self.n_init, type(self).__name__)
        randoms = [np.random.RandomState(seed) for seed in seeds]
        if view is not None and view.points.recomputes and isinstance(canonical.data, Rows):
            return _starts_from_sample(geometry, view, k, SEEDINGS[self.init], randoms)
        return [self._start(geometry, canonical, k, random) for random in randoms]

    def _start(
        self, geometry: Centers, canonical: Canonical, k: int, random: np.random.RandomState
    ) -> NDArray[np.intp]:
        seeding = SEEDINGS[self.init]
        return geometry.nearest(seeding(geometry.squared_from, canonical.weights, k, random))

    def _given_centers(self, canonical: Canonical) -> NDArray[Any]:
        owner = type(self).__name__
        if isinstance(self.kernel_, Precomputed):
            raise ValueError(
                f"init of {owner} must be one of {', '.join(map(repr, self._inits()))} where the "
                "kernel is precomputed: it does not know inputs."
            )
        # the kernel was fitted to rows without names; those of a frame of centres are not asked for
        given = self.init.to_numpy() if hasattr(self.init, "to_numpy") else self.init
        try:
            inputs = self.kernel_.validate(given, reset=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"init of {owner} has no centres of the data: {error}") from None
        if inputs.shape[0] != self.n_clusters:
            raise ValueError(
                f"init of {owner} must have n_clusters={self.n_clusters} rows; got "
                f"{inputs.shape[0]}."
            )
        return inputs[: len(canonical.weights)]

    def _warn(self, best: Run, n_found: int, view: View | None) -> None:
        owner = type(self).__name__
        if view is not None:
            view.warn()
        warn_if_fewer(self, n_found)
        moved = best.history[-1]["n_changed"]
        warn_unless_converged(
            best.status,
            owner,
            f"{moved} of {len(best.labels)} different points changed their cluster in iteration "
            f"{best.n_iter}",
        )

    # ------------------------------------------------------------------ new data

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the cluster of each point: that of the nearest centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples). There k(x, x), which is not known, is taken to
            be the mean of the training diagonal; labels do not depend on it, but distances in
            feature space do.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return self._new_rows(X).map(_Of(nearest, self._order()))

    def _new_rows(self, X: Any) -> Rows:
        return as_rows(X, self.kernel_, self, reset=False)

    def transform(self, X: Data) -> NDArray[Any]:
        """Return the distance of each point from each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Distances.
        """
        check_is_fitted(self)
        return self._new_rows(X).map(_Of(_roots, self._distances()))

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the weighted sum of squared distances from the nearest centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            At most 0; `inertia_` with its sign turned for the training data.
        """
        check_is_fitted(self)
        rows = self._new_rows(X)
        weights = rows.weights(sample_weight, type(self).__name__)
        return -float(rows.zip(weights=weights).reduce(_Inertia(self._distances()))[0])

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(frozen=True)
class _Of:
    """What is made of squared distances, as a function of blocks of rows."""

    function: Any
    distances: Any

    @property
    def rows_at_once(self) -> int:
        return self.distances.rows_at_once

    def __call__(self, rows: Any, start: int) -> NDArray[Any]:
        found = self.function(self.distances(rows, start))
        return found if found.dtype == np.int32 else found.astype(rows.dtype, copy=False)


@dataclass(frozen=True)
class _Inertia:
    """The sum of weighted squared distances from the nearest centres."""

    distances: Any

    @property
    def rows_at_once(self) -> int:
        return self.distances.rows_at_once

    def __call__(self, rows: Any, start: int, weights: Any = None) -> tuple[Any]:
        squares = self.distances(rows, start).min(axis=1)
        return (squares.sum() if weights is None else weights @ squares,)


def nearest(distances: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the number of the nearest centre."""
    return np.argmin(distances, axis=1).astype(np.int32)


def _roots(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.maximum(distances, 0.0))


def _starts_from_sample(
    geometry: Any,
    view: View,
    k: int,
    seeding: Any,
    randoms: list[np.random.RandomState],
) -> list[NDArray[np.intp]]:
    """Choose starts among a sample of the rows; one pass gives the nearest start of each row."""
    rows = view.points.rows
    numbers, counts = rows.spread(_SAMPLE, view.weights)
    sample = view.points.of(rows.take(numbers)).stored("memory")
    few = type(geometry)(CoordinateGram(sample), counts)
    chosen = [seeding(few.squared_from, counts, k, random) for random in randoms]
    vectors = sample.take(np.concatenate(chosen)).astype(np.float64)
    products = view.points.apply(vectors.T)
    squares = np.einsum("ij,ij->i", vectors, vectors)
    bounds = np.cumsum([0, *map(len, chosen)])
    return [
        np.argmin(squares[a:b] - 2 * products[:, a:b], axis=1)
        for a, b in itertools.pairwise(bounds)
    ]


def number_of_clusters(estimator: Any, canonical: Canonical, name: str = "n_clusters") -> int:
    """Return how many clusters there can be; raise before any work where that makes no sense.

    Rows count as often as their weights say, so that both ways to write copies are the same.
    """
    n, wanted = int(np.count_nonzero(canonical.weights)), int(getattr(estimator, name))
    n_samples = max(n, canonical.weights.sum())
    if n_samples < wanted:
        raise ValueError(
            f"{name}={wanted} of {type(estimator).__name__} must not exceed the number of points "
            f"of positive weight, n_samples={n_samples:g}. Ask for fewer {name[2:]}."
        )
    return min(n, wanted)


def warn_if_fewer(estimator: Any, n_found: int) -> None:
    """Warn where there are fewer clusters than were asked for."""
    if n_found < estimator.n_clusters:
        warn_user(
            f"{type(estimator).__name__} found {n_found} of n_clusters={estimator.n_clusters} "
            "clusters: there are no more different points, or the kernel does not tell more of "
            "them apart. Ask for fewer clusters, or choose another scale (sigma) of the kernel.",
            ConvergenceWarning,
        )
