"""scikit-learn's own battery, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome.classification import KernelRidgeRegressionClassifier
from orthodrome.kernels import Exponential

ESTIMATORS = [
    KernelRidgeRegressionClassifier(),
    KernelRidgeRegressionClassifier(alpha=0.0),
    KernelRidgeRegressionClassifier(subspace_size=5),
    KernelRidgeRegressionClassifier(class_weight="balanced"),
    KernelRidgeRegressionClassifier(Exponential(), alphas=[0.01, 0.1], memory_budget="1KiB"),
]
MORE = [
    KernelRidgeRegressionClassifier(alpha=0.01),
    KernelRidgeRegressionClassifier(alpha=0.01, alpha_scale="relative"),
    KernelRidgeRegressionClassifier(sigmas="auto"),
]


def weights_without_effect(estimator):
    """A class's weight divides λ: it does nothing where λ is 0 or in units of the class itself."""
    if estimator.alpha == 0 or estimator.alpha_scale == "relative":
        return {"check_class_weight_classifiers": "weights change α, which is relative or 0"}
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=weights_without_effect)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(MORE, expected_failed_checks=weights_without_effect)
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
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required


def test_precomputed_is_tagged():
    tags = KernelRidgeRegressionClassifier("precomputed").__sklearn_tags__()
    assert tags.input_tags.pairwise
    assert not tags.input_tags.sparse


@pytest.mark.parametrize("kernel", ["veronese_whitney", "hermitian_linear", "log_euclidean"])
def test_landmarks_and_matrices_are_not_sparse(kernel):
    tags = KernelRidgeRegressionClassifier(kernel).__sklearn_tags__()
    assert not tags.input_tags.sparse
    assert not tags.input_tags.pairwise
