"""scikit-learn's own battery for kernel principal nested spheres, with nothing switched off."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from orthodrome import KernelPNS
from orthodrome.kernels import Exponential

ESTIMATORS = [
    KernelPNS(3, sphere="great"),
    KernelPNS(2, n_anchors=6, random_state=0),
]
SLOW = [
    KernelPNS(),
    KernelPNS(2, p=1.0),
    KernelPNS(2, solver="nystroem"),
    KernelPNS(2, Exponential(sigma=2.0), sphere="bic", negligible=1e-3),
]

# The data of these checks are spread over the whole of the last circle.
spread = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")


@spread
@parametrize_with_checks(ESTIMATORS)
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
    assert tags.input_tags.two_d_array
    assert tags.input_tags.sparse
    assert not tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan
    assert KernelPNS(kernel="precomputed").__sklearn_tags__().input_tags.pairwise
