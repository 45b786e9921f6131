"""scikit-learn's own battery for nested spheres as features, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import NestedSpheresClassifier
from orthodrome.kernels import Gaussian

ESTIMATORS = [
    NestedSpheresClassifier(4, sphere="great"),
    NestedSpheresClassifier(16, features="paper", sphere="great"),
]
SLOW = [
    NestedSpheresClassifier(),
    NestedSpheresClassifier(4, p=1.5, sphere="great"),
    NestedSpheresClassifier(4, Gaussian(sigma=2.0), p="cv", ps=(2.0,), cv=2),
]


def not_promised(estimator):
    """The paper's features leave the circle out, and what it separates; the default does not."""
    reason = "classes of these data lie one after the other along the circle"
    return {"check_classifiers_train": reason} if estimator.features == "paper" else {}


# The data of these checks are spread over the whole of the last circle, which is a feature.
spread = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")


@spread
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=not_promised)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@spread
@parametrize_with_checks(SLOW)
def test_estimator_checks_of_longer_searches(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS + SLOW, ids=repr)
def test_no_tag_switches_a_check_off(estimator):
    tags = estimator.__sklearn_tags__()
    assert not tags._skip_test
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert tags.estimator_type == "classifier"
    assert not tags.classifier_tags.poor_score
    assert tags.classifier_tags.multi_class
    assert tags.input_tags.two_d_array
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required
    assert NestedSpheresClassifier(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
