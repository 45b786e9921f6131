"""Methods and checks shared by the clustering estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.canonical import Canonical
from .._core.types import Data
from .._core.warn import warn_user
from ..base import FitMixin

#: Fraction of the progress bar for the Gram matrix.
GRAM_FRACTION = 0.2
#: Limit on n_init, because all seeds are drawn up front.
MAX_N_INIT = 10**6


class ClusterFitMixin(FitMixin):
    """Methods `fit` and `fit_predict` of estimators with ``labels_``.

    It must precede scikit-learn's mixins, whose ``fit_predict`` returns ``labels_`` without a copy.
    """

    def fit_predict(
        self: Any, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Find the clusters and return the label of each training point."""
        return self.fit(X, sample_weight=sample_weight).labels_.copy()


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


def warn_if_fewer(n_found: int, n_requested: int, owner: str, dtype: Any = np.float64) -> None:
    """Warn if fewer clusters were found than requested; `dtype` is that of the data."""
    if n_found < n_requested:
        advice = "Convert the data to float64, or r" if dtype == np.float32 else "R"
        warn_user(
            f"{owner} found {n_found} of n_clusters={n_requested} clusters: the data have no more "
            f"distinct points, or the kernel cannot separate more. {advice}educe n_clusters, or "
            "choose another scale (sigma) of the kernel.",
            ConvergenceWarning,
        )
