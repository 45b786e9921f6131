"""scikit-learn's checks of clusterings; none is skipped with scikit-learn 1.7 or newer."""

import pytest
import sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelSpectralClustering,
)
from orthodrome.eigen import Hebbian, Krylov
from orthodrome.kernels import Exponential, Gaussian, Normalized, Polynomial

# small bases and blocks, so that the small data of these checks are iterated on
SMALL = Krylov(1e-10, block_size=2, max_basis=1)
SMALL_BLOCKS = Hebbian(block_size=4)
RECOMPUTED = {"storage": "recompute", "memory_budget": "1KiB"}
WIDE = Exponential(sigma=2.0)

ESTIMATORS = [
    KernelKMeans(),
    HypersphericalKMeans(centers="intrinsic"),
    GeodesicMixture(),
    KernelSpectralClustering(),
    KernelSpectralClustering(2, "nearest_neighbors"),
]
MORE = [
    HypersphericalKMeans(),
    KernelKMeans(2, kernel="poly", init="random", **RECOMPUTED),
    # with less memory, memory-mapped rows are not sorted, which changes the numbers of clusters
    KernelKMeans(3, kernel="linear", n_anchors=5, storage="recompute", memory_budget="4KiB"),
    KernelKMeans(3, kernel="cosine", n_init=2),  # with partial_fit
    HypersphericalKMeans(3, kernel=Gaussian(sigma=2.0), init="bounding-box", n_init=2),
    HypersphericalKMeans(
        3, WIDE, centers="intrinsic", init="farthest-first", n_init=2, **RECOMPUTED
    ),
    HypersphericalKMeans(centers="intrinsic", solver="nystroem", n_init=2),
    GeodesicMixture(2, covariance_type="tied", mean_update="likelihood", n_init=2),
    GeodesicMixture(2, 0.8, init_params="k-means", assignment="density", random_state=0),
    GeodesicMixture(2, 2, n_anchors=8, n_init=2, **RECOMPUTED),
    GeodesicMixture(2, 2, solver="krylov", n_init=2, **RECOMPUTED),
    GeodesicMixture(2, kernel="cosine", density="von-mises-fisher", n_init=2),  # with partial_fit
    KernelSpectralClustering(2, laplacian="ncut", solver=SMALL, n_init=2, random_state=0),
    KernelSpectralClustering(
        2, laplacian="njw", kernel="gaussian", solver=SMALL_BLOCKS, random_state=0
    ),
    KernelSpectralClustering(3, WIDE, n_init=2, **RECOMPUTED),
    HypersphericalKMeans(2, kernel=Normalized(Polynomial()), centers="intrinsic", n_init=2),
    *[
        GeodesicMixture(2, covariance_type=kind, mean_update=update, n_init=2)
        for kind in ("full", "diag", "spherical")
        for update in ("karcher", "likelihood")
    ],
    *[
        KernelSpectralClustering(laplacian=laplacian, solver=solver, n_init=2)
        for laplacian in ("njw", "kernel-pca", "ncut")
        for solver in ("dense", "krylov", "hebbian", "nystroem")
    ],
]

# Some checks have fewer different points than clusters. As in scikit-learn's own KMeans there are
# fewer clusters then, and a warning; components of a mixture shrink.
few = pytest.mark.filterwarnings(
    "ignore:.*( found 4 of n_clusters=8 clusters|shrank to the floor|lost all points):UserWarning"
)


def expected_failures(estimator):
    """A check has a row of zeros, and 1.6 gives sparse rows also to estimators without the tag."""
    if getattr(estimator, "density", "") == "von-mises-fisher":
        return {"check_estimators_dtypes": "a row of zeros has no direction"}
    if getattr(estimator, "centers", "") == "preimage" and sklearn.__version__ < "1.7":
        return {"check_sample_weight_equivalence_on_sparse_data": "pre-images need dense rows"}
    return {}


@few
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@few
@parametrize_with_checks(MORE, expected_failed_checks=expected_failures)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


def test_tags_skip_no_check():
    for estimator in ESTIMATORS + MORE:
        tags = estimator.__sklearn_tags__()
        mixture = isinstance(estimator, GeodesicMixture)
        assert not any((tags._skip_test, tags.no_validation, tags.non_deterministic))
        assert tags.estimator_type == ("density_estimator" if mixture else "clusterer")
        assert not tags.input_tags.allow_nan
        dense = mixture or getattr(estimator, "centers", "") == "preimage"
        assert tags.input_tags.sparse != dense


def test_precomputed_is_tagged():
    kinds = {type(estimator) for estimator in ESTIMATORS}
    for kind in kinds:
        tags = kind(kernel="precomputed").__sklearn_tags__().input_tags
        assert tags.pairwise
        assert tags.sparse == (kind is KernelSpectralClustering)  # graphs
