"""scikit-learn's own battery, with nothing switched off."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import KernelSpectralClustering
from orthodrome.eigen import Hebbian, Krylov
from orthodrome.kernels import Exponential

# small bases and blocks, so that the small data of these checks are iterated on
SMALL = Krylov(1e-10, block_size=2, max_basis=1)
SMALL_BLOCKS = Hebbian(block_size=4)

ESTIMATORS = [
    KernelSpectralClustering(),
    KernelSpectralClustering(laplacian="kernel-pca", solver="nystroem", n_init=2),
    KernelSpectralClustering(2, laplacian="ncut", solver=SMALL, n_init=2, random_state=0),
    KernelSpectralClustering(2, laplacian="njw", solver=SMALL_BLOCKS, random_state=0),
    KernelSpectralClustering(
        3, kernel=Exponential(sigma=2.0), storage="recompute", memory_budget="1KiB", n_init=2
    ),
]
MORE = [
    *[
        KernelSpectralClustering(laplacian=laplacian, solver=solver, n_init=2)
        for laplacian in ("njw", "kernel-pca", "ncut")
        for solver in ("dense", "krylov", "hebbian", "nystroem")
        if (laplacian, solver) != ("kernel-pca", "nystroem")
    ],
    *[
        KernelSpectralClustering(2, laplacian=laplacian, solver=SMALL_BLOCKS, random_state=0)
        for laplacian in ("kernel-pca", "ncut")
    ],
]


# Two of the checks ask for eight clusters of four different points: four, and a warning that it is
# so, as from scikit-learn's own KMeans.
four = pytest.mark.filterwarnings("ignore:.* found 4 of n_clusters=8 clusters:UserWarning")


@four
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@four
@parametrize_with_checks(MORE)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS + MORE, ids=repr)
def test_no_tag_switches_a_check_off(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert tags.estimator_type == "clusterer"
    assert tags.input_tags.two_d_array
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert not tags.target_tags.required


def test_small_bases_and_blocks_do_iterate():
    X = np.random.default_rng(0).standard_normal((30, 3))
    for estimator in ESTIMATORS + MORE:
        if isinstance(estimator.solver, (Krylov, Hebbian)):
            assert clone(estimator).fit(X).solver_ == estimator.solver.name


def test_precomputed_is_tagged():
    model = KernelSpectralClustering(kernel="precomputed")
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not model.__sklearn_tags__().input_tags.sparse
