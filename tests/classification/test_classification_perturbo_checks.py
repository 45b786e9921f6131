"""scikit-learn's own battery, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome.classification import PerTurbo
from orthodrome.kernels import Exponential

ESTIMATORS = [
    PerTurbo(),
    PerTurbo(alpha=0.0),
    PerTurbo(geodesic=True, n_components=2),
    PerTurbo(geodesic=True, reference="mean", alpha=0.01, alpha_scale="relative"),
    PerTurbo(Exponential(sigma=2.0), alphas=[0.01, 0.1], memory_budget="1KiB"),
]
MORE = [
    PerTurbo(alpha=0.01),
    PerTurbo(alpha=0.01, alpha_scale="relative"),
    PerTurbo(n_components=3, alpha=0.1),
    PerTurbo(geodesic=True),
    PerTurbo(geodesic=True, reference="mean"),
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
    assert tags.requires_fit
    assert tags.estimator_type == "classifier"
    assert not tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    assert tags.input_tags.two_d_array
    # a pre-image is a mean of inputs, and takes none that are sparse
    assert tags.input_tags.sparse != (estimator.geodesic and estimator.reference == "preimage")
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required


def test_precomputed_is_tagged():
    tags = PerTurbo("precomputed").__sklearn_tags__()
    assert tags.input_tags.pairwise
    assert not tags.input_tags.sparse
