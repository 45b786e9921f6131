"""scikit-learn's own battery, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import GeodesicMixture
from orthodrome.kernels import Exponential

ESTIMATORS = [
    GeodesicMixture(),
    GeodesicMixture(2, covariance_type="tied", mean_update="likelihood", n_init=2),
    GeodesicMixture(2, 0.8, init_params="k-means", assignment="density", random_state=0),
    GeodesicMixture(2, 2, n_anchors=8, storage="recompute", memory_budget="1KiB", n_init=2),
    GeodesicMixture(2, 2, solver="krylov", storage="recompute", memory_budget="1KiB", n_init=2),
]
MORE = [
    *[
        GeodesicMixture(2, covariance_type=kind, mean_update=update, n_init=2)
        for kind in ("full", "tied", "diag", "spherical")
        for update in ("karcher", "likelihood")
        if (kind, update) != ("tied", "likelihood")
    ],
    GeodesicMixture(3, 2, Exponential(sigma=2.0), init_params="random", random_state=0),
    GeodesicMixture(2, 2, solver="nystroem", n_init=2),
]


# Some checks have fewer different points than components, or as many: what is left shrinks.
shrinks = pytest.mark.filterwarnings("ignore:.*(shrank to the floor|lost all points):UserWarning")


@shrinks
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@shrinks
@parametrize_with_checks(MORE)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS + MORE, ids=repr)
def test_no_tag_switches_a_check_off(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert tags.estimator_type == "density_estimator"
    assert tags.input_tags.two_d_array
    assert not tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert not tags.target_tags.required


def test_precomputed_is_tagged():
    model = GeodesicMixture(kernel="precomputed")
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not model.__sklearn_tags__().input_tags.sparse
