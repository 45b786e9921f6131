"""What clusterings share, and what those with centres do."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.checks import check_choice, check_sample_weight
from .._core.parameters import integer
from .._core.progress import tracked, with_callbacks
from .._core.random import several_seeds
from .._core.status import warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.types import Data
from .._core.warn import warn_user
from ..base import SOLVER_PARAMETERS, KernelEstimator, last_fit_kept, nystroem_or, rows_named_in
from ..decomposition.base import feature_solver
from ..eigen import Nystroem
from ..gram import GramOperator, cross_operator, gram_operator
from ..kernels import Kernel, Precomputed
from ..sphere.lloyd import Centers, Run, lloyd, numbered_by_first
from ..sphere.seeding import SEEDINGS
from .anchors import View, forget_anchors, keep_anchors, view_of

__all__ = ["MOST_RUNS", "CenterClustering", "FitsClusters", "number_of_clusters", "warn_if_fewer"]

# Of the progress bar: about what the Gram matrix takes of a fit.
_GRAM_SHARE = 0.2
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
            `GeodesicMixture` and `KernelSpectralClustering` also take dask arrays.
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
    def _geometry(self, kernel: Kernel, canonical: Canonical, view: View | None) -> Centers:
        """Return where the centres live; with a view, among the features."""

    @abstractmethod
    def _squared_from_inputs(self, geometry: Any, inputs: NDArray[Any]) -> NDArray[np.float64]:
        """Return the squared distances of all points from inputs, shape (n, m)."""

    @abstractmethod
    def _keep(
        self, geometry: Any, centers: Any, kept: NDArray[np.intp], view: View | None
    ) -> float:
        """Set the fitted attributes that belong to the centres of the clusters kept.

        Return what the inertia lacks: features know nothing of what they leave out.
        """

    @abstractmethod
    def _squared_distances(self, X: Any) -> NDArray[np.float64]:
        """Return the squared distances of validated data from the centres."""

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Fit; what fails on the way may leave anything behind."""
        self._check_parameters()
        kernel = self._kernel_object()
        X = kernel.validate(X, estimator=self)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
        self._check_kernel(kernel, X)
        precomputed = isinstance(kernel, Precomputed)
        canonical = (canonical_gram if precomputed else canonical_rows)(X, weights)
        k = number_of_clusters(self, canonical)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            geometry, view = self._prepared_geometry(X, weights, canonical, k)
            starts = self._starts(geometry, canonical, k)
            progress.advance(_GRAM_SHARE, "Gram matrix" if view is None else "features")
            with rows_named_in(lambda: None, canonical.index):
                runs = lloyd(
                    geometry,
                    starts,
                    k,
                    max_iter=self.max_iter,
                    callback=lambda entry: progress.advance(
                        _GRAM_SHARE + (1 - _GRAM_SHARE) * entry["n_done"] / entry["n_runs"],
                        "k-means",
                    ),
                )
            best = min(runs, key=lambda run: run.inertia)
            progress.advance(1.0, "k-means")
        labels, kept = numbered_by_first(best.labels)
        self.X_fit_ = None if precomputed else canonical.data
        self._columns_ = canonical.index if precomputed else None
        if view is None:
            forget_anchors(self)
        else:
            keep_anchors(self, view, canonical)
        missing = self._keep(geometry, best.centers, kept, view)
        self.inertia_ = best.inertia + missing
        self.n_iter_ = best.n_iter
        self.converged_ = best.status.converged and (view is None or view.status.converged)
        self.history_ = [entry | {"inertia": entry["inertia"] + missing} for entry in best.history]
        self.labels_ = labels[canonical.inverse]
        alone = np.flatnonzero(canonical.inverse < 0)
        if len(alone):
            self.labels_[alone] = self._nearest(X[alone])
        self._warn(best, len(kept), view)

    def _prepared_geometry(
        self, X: Any, weights: NDArray[np.float64] | None, canonical: Canonical, k: int
    ) -> tuple[Centers, View | None]:
        """Fit the kernel; return the geometry of the canonical rows, and their features if any."""
        n = len(canonical.weights)
        solver = feature_solver(self, n, k)
        with rows_named_in(lambda: self._fit_kernel(X, weights).prepare(X), canonical.index):
            self.kernel_ = self._fit_kernel(canonical.data, canonical.weights)
            view = None if solver is None else self._view(canonical, solver, k)
            return self._geometry(self.kernel_, canonical, view), view

    def _view(self, canonical: Canonical, solver: Nystroem, k: int) -> View | None:
        """Return the points as their features."""
        return view_of(self, self.kernel_, canonical, solver, k)

    def _gram(self, kernel: Kernel, data: Any) -> GramOperator:
        return gram_operator(kernel, data, memory_budget=self.memory_budget, storage=self.storage)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.init, str):
            check_choice(self.init, self._inits(), "init", type(self).__name__)

    def _inits(self) -> tuple[str, ...]:
        return tuple(SEEDINGS)

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        """Raise where the kernel, or its data, cannot be used."""

    def _starts(self, geometry: Centers, canonical: Canonical, k: int) -> list[NDArray[np.intp]]:
        """Return the labels that each run begins with."""
        if not isinstance(self.init, str):
            inputs = self._given_centers(canonical)
            return [np.argmin(self._squared_from_inputs(geometry, inputs), axis=1)]
        seeds = several_seeds(self.random_state, self.n_init, type(self).__name__)
        return [self._start(geometry, canonical, k, np.random.RandomState(seed)) for seed in seeds]

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
            view.warn(self)
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
        return self._nearest(self.kernel_.validate(X, estimator=self, reset=False))

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
        X = self.kernel_.validate(X, estimator=self, reset=False)
        return np.sqrt(np.maximum(self._squared_distances(X), 0.0)).astype(X.dtype, copy=False)

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
        X = self.kernel_.validate(X, estimator=self, reset=False)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
        nearest = self._squared_distances(X).min(axis=1)
        return -float(nearest.sum() if weights is None else weights @ nearest)

    def _nearest(self, X: Any) -> NDArray[np.int32]:
        return np.argmin(self._squared_distances(X), axis=1).astype(np.int32)

    def _products(self, X: Any) -> NDArray[np.float64]:
        """Return the inner products of validated data with the centres."""
        X = X if self._columns_ is None else X[:, self._columns_]
        operator = cross_operator(self.kernel_, X, self.X_fit_)
        return np.asarray(operator @ self.cluster_centers_.T, dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def number_of_clusters(estimator: Any, canonical: Canonical, name: str = "n_clusters") -> int:
    """Return how many clusters there can be; raise before any work where that makes no sense.

    Rows count as often as their weights say, so that both ways to write copies are the same.
    """
    n, wanted = len(canonical.weights), int(getattr(estimator, name))
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
