"""scikit-learn's checks for classifiers, with none switched off."""

import pytest
import sklearn
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
    KernelRidgeRegressionClassifier(subspace_size=5),
    KernelRidgeRegressionClassifier(class_weight="balanced"),
    KernelRidgeRegressionClassifier(Exponential(), alphas=[0.01, 0.1], memory_budget="1KiB"),
    NestedSpheresClassifier(16, features="paper", sphere="great"),
    PerTurbo(geodesic=True),
    KernelRidgeRegressionClassifier(alpha=0.01, alpha_scale="relative"),
    KernelRidgeRegressionClassifier(sigmas="auto"),
    NestedSpheresClassifier(),
    NestedSpheresClassifier(4, Gaussian(sigma=2.0), p="cv", ps=(2.0,), cv=2),
]


def expected_failures(estimator):
    """The paper's features omit the circle; α of 0, or relative, ignores class weights."""
    if getattr(estimator, "features", "") == "paper":
        reason = "classes of these data follow each other along the circle"
        return {"check_classifiers_train": reason}
    if isinstance(estimator, KernelRidgeRegressionClassifier) and (
        estimator.alpha == 0 or estimator.alpha_scale == "relative"
    ):
        return {"check_class_weight_classifiers": "weights change α, which is relative or 0"}
    dense = not estimator.__sklearn_tags__().input_tags.sparse
    if dense and sklearn.__version__ < "1.7":
        reason = "pre-images need dense rows; 1.6 gives sparse ones although the tags exclude them"
        return {"check_sample_weight_equivalence_on_sparse_data": reason}
    return {}


# The data of these checks fill the whole last circle, which is a feature.
ignore_long_circle = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")


@ignore_long_circle
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@ignore_long_circle
@parametrize_with_checks(MORE, expected_failed_checks=expected_failures)
def test_estimator_checks_of_more(estimator, check):
    check(estimator)


def test_no_tag_switches_a_check_off():
    for estimator in ESTIMATORS + MORE:
        tags = estimator.__sklearn_tags__()
        assert not any((tags._skip_test, tags.no_validation, tags.non_deterministic))
        assert tags.classifier_tags.multi_class
        assert not tags.classifier_tags.poor_score
        assert not tags.input_tags.allow_nan
        # pre-images of sparse data are not supported
        preimages = getattr(estimator, "geodesic", False) and estimator.reference == "preimage"
        assert tags.input_tags.sparse != preimages


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tags_depend_on_the_kernel(estimator):
    Classifier = type(estimator)
    assert Classifier(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
    for kernel in ("precomputed", "veronese_whitney", "hermitian_linear", "log_euclidean"):
        assert not Classifier(kernel=kernel).__sklearn_tags__().input_tags.sparse
