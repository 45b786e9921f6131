"""The methods and checks that all clusterings share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.canonical import Canonical
from .._core.progress import with_callbacks
from .._core.types import Data
from .._core.warn import warn_user
from ..base import last_fit_kept, rows_renumbered

#: Fraction of the progress bar for the Gram matrix.
GRAM_SHARE = 0.2
#: The largest n_init; the seeds of all runs are drawn before the first.
MOST_RUNS = 10**6


@dataclass(frozen=True)
class ClusterFit:
    """The result of a fit.

    Attributes
    ----------
    attributes : dict
        Fitted attributes by name.
    labels : ndarray of shape (m,)
        The clusters of the distinct rows.
    embedding : ndarray of shape (m, k) or None
        Their embedding, in spectral clustering.
    """

    attributes: dict[str, Any]
    labels: NDArray[np.int32]
    embedding: NDArray[Any] | None = None


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
            Zarr and dask arrays, lists of batches, and objects that yield batches anew in every
            pass are read in blocks, see :doc:`/streams`.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is the same as the row written twice, 0 as the row left out (its
            label is then that of a new point).

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
    """Return the value of each training row, given those of the canonical rows.

    ``of_new(numbers)`` returns the values of rows of weight 0 that equal no canonical row.
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
    """Return the number of clusters to look for; raise if more are wanted than there are points.

    A row of weight 2 counts twice.
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
    """Warn if there are fewer clusters than requested."""
    if n_found < wanted:
        warn_user(
            f"{owner} found {n_found} of n_clusters={wanted} clusters: the data have no more "
            "distinct points, or the kernel does not distinguish more. Reduce n_clusters, or "
            "choose another scale (sigma) of the kernel.",
            ConvergenceWarning,
        )
