"""scikit-learn's own battery, with nothing switched off."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Krylov, Nystroem
from orthodrome.kernels import Exponential, Gaussian

ESTIMATORS = [
    KernelPCA(),
    # small bases, so that the small data of these checks are iterated on
    KernelPCA(solver=Krylov(block_size=2, max_basis=1), n_components=2, random_state=0),
    # On data as small as those of these checks LAPACK stands in for hebbian. Where it is made to
    # iterate, the checks that compare weights with repetition to 1e-7 fail, as they must: it finds
    # few digits. tests/decomposition/test_decomposition_hebbian.py has its laws.
    KernelPCA(solver="hebbian", n_components=2, random_state=0),
    # on data as few as those of these checks all rows are anchors
    KernelPCA(solver="nystroem", n_components=2, storage="recompute"),
    KernelPCA(n_components=0.9, kernel=Gaussian(sigma="median")),
    KernelPGA(),
    KernelPGA(solver=Krylov(1e-10, block_size=2, max_basis=1), n_components=2, random_state=0),
    KernelPGA(solver=Nystroem(sphere="angles"), n_components=2, storage="recompute"),
    KernelPGA(n_components=2, kernel="laplacian", memory_budget="1KiB"),
    KernelPGA(n_components=2, kernel=Exponential(sigma=2.0)),
]
MORE = [
    KernelPCA(solver="dense"),
    KernelPCA(solver="krylov"),
    KernelPCA(solver=Krylov(block_size=1, max_basis=1), n_components=1, random_state=0),
    KernelPCA(solver="hebbian"),
    KernelPCA(solver="nystroem"),
    KernelPCA(n_components=2, kernel="rbf", storage="recompute"),
    KernelPCA(n_components=2, kernel="linear", memory_budget="1KiB"),
    KernelPCA(n_components=2, kernel=Exponential(sigma=2.0)),
    KernelPGA(solver="dense"),
    KernelPGA(solver="krylov"),
    KernelPGA(solver=Krylov(1e-10, block_size=1, max_basis=1), n_components=1, random_state=0),
    KernelPGA(solver="hebbian"),
    KernelPGA(solver="hebbian", n_components=2, random_state=0),
    KernelPGA(solver="nystroem"),
    KernelPGA(n_components=2, kernel="rbf", storage="recompute"),
    KernelPGA(n_components=0.9, kernel=Gaussian(sigma="median")),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(MORE)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS + MORE, ids=repr)
def test_no_tag_switches_a_check_off(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert tags.input_tags.two_d_array
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
    assert not tags.target_tags.required
    assert not getattr(tags.regressor_tags, "poor_score", False)
    assert not getattr(tags.classifier_tags, "poor_score", False)


def test_small_bases_do_iterate():
    X = np.random.default_rng(0).standard_normal((30, 3))
    for estimator in ESTIMATORS + MORE:
        if isinstance(estimator.solver, Krylov):
            assert clone(estimator).fit(X).solver_ == "krylov"


def test_precomputed_is_tagged():
    assert KernelPCA(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    assert not KernelPCA(kernel="precomputed").__sklearn_tags__().input_tags.sparse
    assert not KernelPCA(kernel="nonsense").__sklearn_tags__().input_tags.pairwise
