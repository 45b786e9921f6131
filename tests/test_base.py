"""The table of parameters of each estimator."""

import inspect
import re

import pytest
from sklearn import cluster, decomposition, mixture
from sklearn.base import clone

import orthodrome
from orthodrome.base import KernelEstimator
from orthodrome.kernels import Gaussian

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


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_unknown_parameters_get_advice(estimator):
    name = estimator.__name__
    with pytest.raises(TypeError, match=rf"^{name}: .*'gamma'.*Gaussian\(sigma=.*sqrt\(1 / \(2"):
        estimator(gamma=0.5)
    with pytest.raises(ValueError, match=rf"'gamma' for estimator {name}.*Gaussian\(sigma="):
        estimator().set_params(gamma=0.5)
    with pytest.raises(TypeError, match=rf"^{name}: .*'wide'.*parameters are: .*kernel, "):
        estimator(wide=1)
    with pytest.raises(TypeError, match=rf"^{name}: too many positional arguments"):
        estimator(*range(20))
    assert "kernel" in inspect.signature(estimator).parameters  # also after the decoration
    assert repr(clone(estimator(kernel="rbf"))) == f"{name}(kernel='rbf')"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (orthodrome.KernelPCA, decomposition.KernelPCA),
        (orthodrome.KernelSpectralClustering, cluster.SpectralClustering),
        (orthodrome.KernelKMeans, cluster.KMeans),
        (orthodrome.GeodesicMixture, mixture.GaussianMixture),
    ],
)
def test_parameters_of_scikit_learn_exist_or_get_advice(ours, theirs):
    own = set(inspect.signature(ours).parameters)
    for name in set(inspect.signature(theirs).parameters) - own:
        with pytest.raises(
            TypeError, match=f"^{ours.__name__}: .*'{name}'. (Use|Omit|Param)"
        ) as caught:
            ours(**{name: 1})
        used = re.findall(r"[Uu]se (\w+)", str(caught.value))
        assert own.issuperset(used), caught.value


def test_subclasses_may_have_parameters_of_their_own():
    class Mine(orthodrome.KernelPCA):
        def __init__(self, gamma=1.0, **others):
            super().__init__(kernel=Gaussian(sigma=gamma), **others)
            self.gamma = gamma

    assert Mine(gamma=2.0, tol=0.1).kernel.sigma == 2.0
    with pytest.raises(TypeError, match=r"^Mine: .*'eigen_solver'"):
        Mine(eigen_solver="arpack")
