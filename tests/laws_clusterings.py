"""All clusterings by name, for tests that hold for each of them."""

from typing import Any

import pytest
from numpy.typing import NDArray

from laws_cluster import LAPLACIANS
from laws_kmeans import KINDS
from laws_kmeans import estimator as k_means
from orthodrome import GeodesicMixture, KernelSpectralClustering
from orthodrome.kernels import Gaussian

CLUSTERINGS = [*KINDS, *LAPLACIANS, "mixture"]
every_clustering = pytest.mark.parametrize("kind", CLUSTERINGS)
hard = pytest.mark.parametrize("kind", [*KINDS, *LAPLACIANS])


def estimator(kind: str, n_clusters: int = 3, **options: Any) -> Any:
    """The estimator of a name, with a fixed scale and few starts."""
    options = {"kernel": Gaussian(sigma=1.5), "n_init": 2, "random_state": 0, **options}
    if kind in KINDS:
        return k_means(kind, n_clusters, **options)
    if kind == "mixture":
        return GeodesicMixture(n_clusters, 2, **options)
    return KernelSpectralClustering(n_clusters, laplacian=kind, **options)


def placed(model: Any, X: Any) -> NDArray:
    """Return distances, coordinates or probabilities of points."""
    names = ("transform", "embed", "predict_proba")
    return next(getattr(model, name)(X) for name in names if hasattr(model, name))
