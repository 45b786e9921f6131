"""scikit-learn's own battery for nested spheres as features, with nothing switched off."""

from types import SimpleNamespace

import numpy as np
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": 1e300}, "C of NestedSpheresClassifier must be between .*; got 1e\\+300"),
        ({"p": "cv", "cv": []}, r"must be an integer >= 2, or .* for folds; got \[\]: it has no"),
        ({"p": "cv", "cv": "many"}, "cv of NestedSpheresClassifier must be .*; got 'many': "),
    ],
)
def test_what_is_no_penalty_and_no_fold(options, words):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(ValueError, match=words):
        NestedSpheresClassifier(2, kernel=Gaussian(), **options).fit(X, np.arange(12) % 2)


def test_points_without_a_place_are_not_recognised():
    nowhere = SimpleNamespace(_coordinates=lambda X: np.full((len(X), 3), np.nan))
    labels = np.array([0, 1])
    assert NestedSpheresClassifier()._accuracy(nowhere, None, labels, labels) == 0.0
