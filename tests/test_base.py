"""The table of parameters of each estimator."""

import pytest

import orthodrome
from orthodrome.base import KernelEstimator

ESTIMATORS = [
    found
    for found in (getattr(orthodrome, name) for name in orthodrome.__all__)
    if isinstance(found, type) and issubclass(found, KernelEstimator)
]
# Checked by the kernel, or by rules that need another parameter.
ELSEWHERE = {"kernel", "init"}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_has_a_check(estimator):
    names = set(estimator._get_param_names())
    assert set(estimator._PARAMETERS) == names - ELSEWHERE


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_defaults_pass_and_errors_name_parameter_and_estimator(estimator):
    estimator()._check_parameters()
    for name in set(estimator._PARAMETERS) - {"cv"}:  # scikit-learn checks objects that split
        with pytest.raises(ValueError, match=rf"^{name} of {estimator.__name__} "):
            estimator(**{name: object()})._check_parameters()
