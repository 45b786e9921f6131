"""Methods and checks shared by the clustering estimators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.canonical import Canonical
from .._core.checks import rows_renumbered
from .._core.progress import with_callbacks
from .._core.types import Data, Indices
from .._core.warn import warn_user
from ..base import last_fit_kept

#: Fraction of the progress bar for the Gram matrix.
GRAM_FRACTION = 0.2
#: Limit on n_init, because all seeds are drawn up front.
MAX_N_INIT = 10**6


class ClusterFitMixin:
    """Mixin with `fit` and `fit_predict` for estimators with ``labels_``.

    It must precede scikit-learn's mixins, whose ``fit_predict`` returns ``labels_`` without a copy.
    """

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
            Zarr and dask arrays, lists of batches, and re-iterable objects that yield batches are
            read in blocks; see :doc:`/streams`.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the row, and 0 to omitting it. Rows of
            weight 0 are labelled like new points.

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
        """Fit, and set ``labels_``. Not exception-safe; `fit` restores the state."""

    def fit_predict(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Find the clusters and return the label of each training point."""
        return self.fit(X, sample_weight=sample_weight).labels_.copy()


def expand_to_all_rows(
    values: NDArray[Any], canonical: Canonical, predict_new: Callable[[Indices], Any]
) -> NDArray[Any]:
    """Return a value for each training row, given the values of the canonical rows.

    ``predict_new(indices)`` returns the values of rows of weight 0 that equal no canonical row.
    """
    expanded = values[canonical.inverse]
    unmatched = np.flatnonzero(canonical.inverse < 0)
    if len(unmatched):
        with rows_renumbered(unmatched):
            expanded[unmatched] = predict_new(unmatched)
    return expanded


def check_n_clusters(
    canonical: Canonical, n_requested: int, owner: str, name: str = "n_clusters"
) -> int:
    """Return the number of clusters to fit; raise if there are fewer points.

    A row of weight 2 counts as two points.
    """
    n = int(np.count_nonzero(canonical.weights))
    n_samples = max(n, canonical.weights.sum())
    if n_samples < n_requested:
        raise ValueError(
            f"{name}={n_requested} of {owner} must not exceed the number of points of positive "
            f"weight, n_samples={n_samples:g}. Reduce {name}."
        )
    return min(n, int(n_requested))


def warn_if_fewer(n_found: int, n_requested: int, owner: str) -> None:
    """Warn if fewer clusters were found than requested."""
    if n_found < n_requested:
        warn_user(
            f"{owner} found {n_found} of n_clusters={n_requested} clusters: the data have no more "
            "distinct points, or the kernel cannot separate more. Reduce n_clusters, or "
            "choose another scale (sigma) of the kernel.",
            ConvergenceWarning,
        )
