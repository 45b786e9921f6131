"""What all clusterings share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.canonical import Canonical
from .._core.progress import with_callbacks
from .._core.types import Data
from .._core.warn import warn_user
from ..base import last_fit_kept, rows_renumbered

__all__ = [
    "GRAM_SHARE",
    "MOST_RUNS",
    "FitsClusters",
    "for_all_rows",
    "number_of_clusters",
    "warn_if_fewer",
]

#: Of the progress bar: about what the Gram matrix takes of a fit.
GRAM_SHARE = 0.2
#: The most runs from other starts; the seeds of all are drawn before the first.
MOST_RUNS = 10**6


class FitsClusters:
    """Mixin of estimators with ``labels_``: `fit` and `fit_predict`.

    It comes before scikit-learn's mixins, whose ``fit_predict`` returns ``labels_`` without a copy.
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
        """Fit, and set ``labels_``. Not exception-safe; `fit` restores the state."""

    def fit_predict(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Find the clusters and return the label of each training point."""
        return self.fit(X, sample_weight=sample_weight).labels_.copy()


def for_all_rows(
    values: NDArray[Any], canonical: Canonical, of_new: Callable[[NDArray[np.intp]], Any]
) -> NDArray[Any]:
    """Give each training row the value of its twin among the canonical rows.

    Rows of weight 0 may have none; ``of_new(numbers)`` returns the values of these.
    """
    found = values[canonical.inverse]
    alone = np.flatnonzero(canonical.inverse < 0)
    if len(alone):
        with rows_renumbered(alone):
            found[alone] = of_new(alone)
    return found


def number_of_clusters(
    canonical: Canonical, wanted: int, owner: str, name: str = "n_clusters"
) -> int:
    """Return how many clusters there can be; raise if more are wanted than there are points.

    Rows count as often as their weights say, so that both ways to write copies are the same.
    """
    n = int(np.count_nonzero(canonical.weights))
    n_samples = max(n, canonical.weights.sum())
    if n_samples < wanted:
        raise ValueError(
            f"{name}={wanted} of {owner} must not exceed the number of points of positive weight, "
            f"n_samples={n_samples:g}. Ask for fewer {name[2:]}."
        )
    return min(n, int(wanted))


def warn_if_fewer(n_found: int, wanted: int, owner: str) -> None:
    """Warn if there are fewer clusters than were asked for."""
    if n_found < wanted:
        warn_user(
            f"{owner} found {n_found} of n_clusters={wanted} clusters: there are no more different "
            "points, or the kernel does not distinguish more of them. Ask for fewer clusters, or "
            "choose another scale (sigma) of the kernel.",
            ConvergenceWarning,
        )
