"""scikit-learn's own checks for every decomposition, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import KernelMRCD, KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
from orthodrome.eigen import Krylov, Nystroem
from orthodrome.kernels import Exponential, Gaussian

# The data of these checks cover the whole last circle of nested spheres.
pytestmark = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")

ESTIMATORS = [
    KernelPCA(),
    KernelPGA(),
    KernelPNS(3, sphere="great"),
    RobustKernelPCA(),
    KernelMRCD(),
]
MORE = [
    # Small bases make krylov iterate on the small data of these checks.
    KernelPCA(solver=Krylov(block_size=2, max_basis=1), n_components=2, random_state=0),
    # On data this small, hebbian uses LAPACK and nystroem takes all rows as anchors.
    KernelPCA(solver="hebbian", n_components=2, random_state=0),
    KernelPCA(solver="nystroem", n_components=2, storage="recompute"),
    KernelPGA(solver=Krylov(1e-10, block_size=2, max_basis=1), n_components=2, random_state=0),
    KernelPGA(solver=Nystroem(sphere="angles"), n_components=2, storage="recompute"),
    KernelPGA(n_components=2, kernel="laplacian", memory_budget="1KiB"),
    RobustKernelPCA(2, method="spatial-sign"),
    RobustKernelPCA(2, method="pursuit", center="karcher"),
    RobustKernelPCA(1, Exponential(2.0), method="pursuit", p=0.5, center="spatial-median"),
    KernelMRCD("linear", contamination=0.1),
    KernelPGA(solver="hebbian", n_components=2, random_state=0),
    KernelPGA(n_components=0.9, kernel=Gaussian(sigma="median")),
    KernelPNS(),
    KernelPNS(2, solver="nystroem"),
    KernelPNS(2, Exponential(sigma=2.0), sphere="bic", negligible=1e-3),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(MORE)
def test_more_estimator_checks(estimator, check):
    check(estimator)


def test_no_tag_switches_a_check_off():
    for estimator in ESTIMATORS + MORE:
        tags = estimator.__sklearn_tags__()
        assert not any((tags._skip_test, tags.no_validation, tags.non_deterministic))
        assert tags.input_tags.sparse
        assert not tags.input_tags.allow_nan
        if tags.transformer_tags is not None:
            assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]


def test_a_precomputed_kernel_is_tagged():
    for Estimator in (KernelMRCD, KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA):
        tags = Estimator(kernel="precomputed").__sklearn_tags__().input_tags
        assert tags.pairwise
        assert not tags.sparse
        assert not Estimator(kernel="nonsense").__sklearn_tags__().input_tags.pairwise
