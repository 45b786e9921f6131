"""scikit-learn's own checks for every estimator, with none switched off."""

import pytest
import sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks

from laws_product import estimator_classes
from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelMRCD,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    KernelSpectralClustering,
    NestedSpheresClassifier,
    PerTurbo,
    RobustKernelPCA,
)
from orthodrome.eigen import Hebbian, Krylov, Nystroem
from orthodrome.kernels import Exponential, Gaussian, Normalized, Polynomial
from orthodrome.preprocessing import TableCleaner

# small bases and blocks, so that the small data of these checks are iterated on
SMALL = Krylov(1e-10, block_size=2, max_basis=1)
TWO = {"n_components": 2, "random_state": 0}
RECOMPUTED = {"storage": "recompute", "memory_budget": "1KiB"}
WIDE = Exponential(sigma=2.0)

ESTIMATORS = [
    KernelPCA(),
    KernelPGA(),
    KernelPNS(3, sphere="great"),
    RobustKernelPCA(),
    KernelMRCD(),
    KernelKMeans(),
    HypersphericalKMeans(centers="intrinsic"),
    GeodesicMixture(),
    KernelSpectralClustering(),
    KernelSpectralClustering(2, "nearest_neighbors"),
    PerTurbo(),
    KernelRidgeRegressionClassifier(),
    NestedSpheresClassifier(4, sphere="great"),
    TableCleaner(),
    TableCleaner(text="onehot", missing="mean"),
]
MORE = [
    KernelPCA(solver=Krylov(block_size=2, max_basis=1), **TWO),
    # On data this small, hebbian uses LAPACK and nystroem takes all rows as anchors.
    KernelPCA(solver="hebbian", **TWO),
    KernelPCA(solver="nystroem", n_components=2, storage="recompute"),
    KernelPGA(solver=SMALL, **TWO),
    KernelPGA(solver=Nystroem(sphere="angles"), n_components=2, storage="recompute"),
    KernelPGA(n_components=2, kernel="laplacian", memory_budget="1KiB"),
    KernelPGA(solver="hebbian", **TWO),
    KernelPGA(n_components=0.9, kernel=Gaussian(sigma="median")),
    RobustKernelPCA(2, method="spatial-sign"),
    RobustKernelPCA(2, method="pursuit", center="karcher"),
    RobustKernelPCA(1, WIDE, method="pursuit", p=0.5, center="spatial-median"),
    KernelMRCD("linear", contamination=0.1),
    KernelPNS(),
    KernelPNS(2, solver="nystroem"),
    KernelPNS(2, WIDE, sphere="bic", negligible=1e-3),
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
    HypersphericalKMeans(2, kernel=Normalized(Polynomial()), centers="intrinsic", n_init=2),
    GeodesicMixture(2, covariance_type="tied", mean_update="likelihood", n_init=2),
    GeodesicMixture(2, 0.8, init_params="k-means", assignment="density", random_state=0),
    GeodesicMixture(2, 2, n_anchors=8, n_init=2, **RECOMPUTED),
    GeodesicMixture(2, 2, solver="krylov", n_init=2, **RECOMPUTED),
    GeodesicMixture(2, kernel="cosine", density="von-mises-fisher", n_init=2),  # with partial_fit
    *[
        GeodesicMixture(2, covariance_type=kind, mean_update=update, n_init=2)
        for kind in ("full", "diag", "spherical")
        for update in ("karcher", "likelihood")
    ],
    KernelSpectralClustering(2, laplacian="ncut", solver=SMALL, n_init=2, random_state=0),
    KernelSpectralClustering(2, "gaussian", solver=Hebbian(block_size=4), random_state=0),
    KernelSpectralClustering(3, WIDE, n_init=2, **RECOMPUTED),
    *[
        KernelSpectralClustering(laplacian=laplacian, solver=solver, n_init=2)
        for laplacian in ("njw", "kernel-pca", "ncut")
        for solver in ("dense", "krylov", "hebbian", "nystroem")
    ],
    PerTurbo(alpha=0.0),
    PerTurbo(geodesic=True),
    PerTurbo(geodesic=True, n_components=2),
    PerTurbo(geodesic=True, reference="mean", alpha=0.01, alpha_scale="relative"),
    PerTurbo(WIDE, alphas=[0.01, 0.1], memory_budget="1KiB"),
    KernelRidgeRegressionClassifier(subspace_size=5),
    KernelRidgeRegressionClassifier(class_weight="balanced"),
    KernelRidgeRegressionClassifier(Exponential(), alphas=[0.01, 0.1], memory_budget="1KiB"),
    KernelRidgeRegressionClassifier(alpha=0.01, alpha_scale="relative"),
    KernelRidgeRegressionClassifier(sigmas="auto"),
    NestedSpheresClassifier(),
    NestedSpheresClassifier(16, features="paper", sphere="great"),
    NestedSpheresClassifier(4, Gaussian(sigma=2.0), p="cv", ps=(2.0,), cv=2),
]

# The data of some checks fill the last circle of nested spheres, or have fewer different points
# than clusters: then there are fewer clusters, as in scikit-learn's KMeans.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The points take up:UserWarning",
    "ignore:.*( found 4 of n_clusters=8 clusters|shrank to the floor|lost all points):UserWarning",
)


def needs_dense_rows(estimator):
    """Return whether it computes pre-images, or is a mixture."""
    geodesic = getattr(estimator, "geodesic", False) and estimator.reference == "preimage"
    preimages = geodesic or getattr(estimator, "centers", "") == "preimage"
    return preimages or isinstance(estimator, GeodesicMixture | TableCleaner)


def expected_failures(estimator):
    if getattr(estimator, "density", "") == "von-mises-fisher":
        return {"check_estimators_dtypes": "a row of zeros has no direction"}
    if getattr(estimator, "features", "") == "paper":  # which omit the circle
        reason = "classes of these data follow each other along the circle"
        return {"check_classifiers_train": reason}
    if getattr(estimator, "alpha_scale", "") == "relative" and hasattr(estimator, "class_weight"):
        return {"check_class_weight_classifiers": "weights change α, which is relative"}
    if needs_dense_rows(estimator) and sklearn.__version__ < "1.7":
        reason = "1.6 gives sparse rows although the tags exclude them"
        return {"check_sample_weight_equivalence_on_sparse_data": reason}
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(MORE, expected_failed_checks=expected_failures)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


def test_every_estimator_is_checked():
    assert estimator_classes() == {type(each) for each in ESTIMATORS} - {TableCleaner}


def test_no_tag_switches_a_check_off():
    for estimator in ESTIMATORS + MORE:
        tags = estimator.__sklearn_tags__()
        assert not any((tags._skip_test, tags.no_validation, tags.non_deterministic))
        assert tags.classifier_tags is None or not tags.classifier_tags.poor_score
        assert tags.input_tags.allow_nan == isinstance(estimator, TableCleaner)
        assert tags.input_tags.sparse != needs_dense_rows(estimator)
        if tags.transformer_tags is not None and not isinstance(estimator, TableCleaner):
            assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]


@pytest.mark.parametrize("kind", sorted(estimator_classes(), key=lambda kind: kind.__name__))
def test_tags_depend_on_the_kernel(kind):
    tags = kind(kernel="precomputed").__sklearn_tags__().input_tags
    assert tags.pairwise
    assert tags.sparse == (kind is KernelSpectralClustering)  # graphs
    for kernel in ("veronese_whitney", "hermitian_linear", "log_euclidean"):
        assert not kind(kernel=kernel).__sklearn_tags__().input_tags.sparse
    assert not kind(kernel="nonsense").__sklearn_tags__().input_tags.pairwise
