"""scikit-learn's own battery for classifiers, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import KernelRidgeRegressionClassifier, NestedSpheresClassifier, PerTurbo
from orthodrome.kernels import Exponential, Gaussian

ESTIMATORS = [
    PerTurbo(),
    KernelRidgeRegressionClassifier(),
    NestedSpheresClassifier(4, sphere="great"),
]
MORE = [
    PerTurbo(alpha=0.0),
    PerTurbo(geodesic=True, n_components=2),
    PerTurbo(geodesic=True, reference="mean", alpha=0.01, alpha_scale="relative"),
    PerTurbo(Exponential(sigma=2.0), alphas=[0.01, 0.1], memory_budget="1KiB"),
    KernelRidgeRegressionClassifier(alpha=0.0),
    KernelRidgeRegressionClassifier(subspace_size=5),
    KernelRidgeRegressionClassifier(class_weight="balanced"),
    KernelRidgeRegressionClassifier(Exponential(), alphas=[0.01, 0.1], memory_budget="1KiB"),
    NestedSpheresClassifier(16, features="paper", sphere="great"),
    PerTurbo(alpha=0.01),
    PerTurbo(alpha=0.01, alpha_scale="relative"),
    PerTurbo(n_components=3, alpha=0.1),
    PerTurbo(geodesic=True),
    PerTurbo(geodesic=True, reference="mean"),
    KernelRidgeRegressionClassifier(alpha=0.01),
    KernelRidgeRegressionClassifier(alpha=0.01, alpha_scale="relative"),
    KernelRidgeRegressionClassifier(sigmas="auto"),
    NestedSpheresClassifier(),
    NestedSpheresClassifier(4, p=1.5, sphere="great"),
    NestedSpheresClassifier(4, Gaussian(sigma=2.0), p="cv", ps=(2.0,), cv=2),
]


def not_promised(estimator):
    """The paper's features leave the circle out; α of 0, or relative, leaves out class weights."""
    if getattr(estimator, "features", "") == "paper":
        reason = "classes of these data lie one after the other along the circle"
        return {"check_classifiers_train": reason}
    if isinstance(estimator, KernelRidgeRegressionClassifier) and (
        estimator.alpha == 0 or estimator.alpha_scale == "relative"
    ):
        return {"check_class_weight_classifiers": "weights change α, which is relative or 0"}
    return {}


# The data of these checks are spread over the whole of the last circle, which is a feature.
spread = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")


@spread
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=not_promised)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@spread
@parametrize_with_checks(MORE, expected_failed_checks=not_promised)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


def test_no_tag_switches_a_check_off():
    for estimator in ESTIMATORS + MORE:
        tags = estimator.__sklearn_tags__()
        assert not any((tags._skip_test, tags.no_validation, tags.non_deterministic))
        assert tags.estimator_type == "classifier"
        assert tags.classifier_tags.multi_class
        assert tags.requires_fit
        assert tags.target_tags.required
        assert tags.input_tags.two_d_array
        unwanted = (
            tags.classifier_tags.poor_score,
            tags.input_tags.pairwise,
            tags.input_tags.allow_nan,
        )
        assert not any(unwanted)
        # A pre-image is a mean of inputs, and takes none that are sparse.
        preimages = getattr(estimator, "geodesic", False) and estimator.reference == "preimage"
        assert tags.input_tags.sparse != preimages


@pytest.mark.parametrize(
    "Classifier", [PerTurbo, KernelRidgeRegressionClassifier, NestedSpheresClassifier]
)
def test_kernels_decide_about_tags(Classifier):
    assert Classifier(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    for kernel in ("precomputed", "veronese_whitney", "hermitian_linear", "log_euclidean"):
        assert not Classifier(kernel=kernel).__sklearn_tags__().input_tags.sparse
