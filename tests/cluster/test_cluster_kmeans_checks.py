"""scikit-learn's own battery for k-means, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import HypersphericalKMeans, KernelKMeans
from orthodrome.kernels import Exponential, Gaussian, Normalized, Polynomial

ESTIMATORS = [
    KernelKMeans(),
    KernelKMeans(2, kernel="poly", init="random", storage="recompute", memory_budget="1KiB"),
    KernelKMeans(3, kernel="linear", n_anchors=5, storage="recompute", memory_budget="1KiB"),
    HypersphericalKMeans(3, kernel=Gaussian(sigma=2.0), init="bounding-box", n_init=2),
    HypersphericalKMeans(centers="intrinsic"),
    HypersphericalKMeans(
        3,
        kernel=Exponential(sigma=2.0),
        centers="intrinsic",
        init="farthest-first",
        n_init=2,
        storage="recompute",
        memory_budget="1KiB",
    ),
    HypersphericalKMeans(centers="intrinsic", solver="nystroem", n_init=2),
]
MORE = [
    KernelKMeans(3, kernel="linear", init="farthest-first", n_init=2),
    KernelKMeans(solver="nystroem", n_init=2),
    HypersphericalKMeans(),
    HypersphericalKMeans(2, init="random", n_init=2, random_state=0),
    HypersphericalKMeans(2, kernel=Normalized(Polynomial()), centers="intrinsic", n_init=2),
]


# Some of the checks ask for eight clusters of four different points: four, and a warning that it is
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
    assert tags.input_tags.sparse == (getattr(estimator, "centers", "") != "preimage")
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert not tags.target_tags.required
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]


def test_precomputed_is_tagged():
    for model in (
        KernelKMeans(kernel="precomputed"),
        HypersphericalKMeans(kernel="precomputed", centers="intrinsic"),
    ):
        assert model.__sklearn_tags__().input_tags.pairwise
        assert not model.__sklearn_tags__().input_tags.sparse
