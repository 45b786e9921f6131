"""The protocol of estimators: parameters and callbacks.

Threads and forked processes are tested for all estimators in tests/hardening.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from laws_decomposition import every_estimator, training
from orthodrome import KernelPCA
from orthodrome._core.progress import ProgressBar
from orthodrome.kernels import Exponential, Gaussian
from recording import Recorder


@every_estimator
def test_grid_search_by_the_name_of_a_kernel(Estimator):
    X, base = training(), Estimator(3)
    names = {"kernel": ["exponential"], "kernel__sigma": [4.0]}
    search = GridSearchCV(base, [{"kernel__sigma": [0.5, 5.0]}, names], cv=3).fit(X)
    objects = {"kernel": [Gaussian(sigma=0.5), Gaussian(sigma=5.0), Exponential(sigma=4.0)]}
    oracle = GridSearchCV(base, objects, cv=3).fit(X)
    for key in ("mean_test_score", "rank_test_score"):
        np.testing.assert_array_equal(search.cv_results_[key], oracle.cv_results_[key])
    found = clone(search.best_estimator_)
    assert repr(found) == repr(oracle.best_estimator_)
    assert base.get_params()["kernel"] == "gaussian"  # only the copies were changed
    assert found.set_params(**found.get_params()).kernel is found.get_params()["kernel"]


@every_estimator
def test_parameters_that_do_not_exist(Estimator):
    with pytest.raises(ValueError, match="kernel__sigma cannot be set while kernel=<function"):
        Estimator(kernel=broken).set_params(kernel__sigma=2.0)
    assert Estimator().set_params(kernel=Gaussian(), kernel__sigma=2.0).kernel.sigma == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        Estimator().set_params(sigma=2.0)
    model = Estimator(kernel="matern")
    with pytest.raises(ValueError, match="Invalid parameter 'wide' for estimator Matern"):
        model.set_params(n_components=2, kernel__wide=2.0)
    assert (model.kernel, model.n_components) == ("matern", None)


def broken(A, B):
    raise RuntimeError("broken kernel")


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("n_callbacks", [0, 1])
@every_estimator
def test_fits_leave_the_callbacks_as_they_were(Estimator, fails, verbose, n_callbacks, capsys):
    pytest.importorskip("rich")
    recorders = [Recorder() for _ in range(n_callbacks)]
    model = Estimator(3, kernel=broken if fails else Gaussian(sigma=2.0), verbose=verbose)
    model.set_callbacks(*recorders)
    if fails:
        with pytest.raises(RuntimeError, match="broken kernel"):
            model.fit(training())
    else:
        model.fit(training())
        assert (Estimator.__name__ in capsys.readouterr().out) == verbose
    assert getattr(model, "_skl_callbacks", []) == recorders
    assert not hasattr(model, "_callback_fit_ctx")
    for recorder in recorders:
        assert recorder.events[0] == "setup"
        assert recorder.events[-1] == "teardown"
        assert (("end", "fit") in recorder.events) != fails
    pickle.dumps(clone(model).set_params(kernel="gaussian").fit(training()))


def test_verbose_adds_no_second_progress_bar(capsys):
    pytest.importorskip("rich")
    bar = ProgressBar()
    model = KernelPCA(2, verbose=True).set_callbacks(bar)
    model.fit(training(n=30))
    assert model._skl_callbacks == [bar]
    assert capsys.readouterr().out.count("KernelPCA") == 1
