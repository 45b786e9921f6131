"""The protocol of estimators: parameters, frames, seeds, callbacks and workers.

Threads and forked processes are tested for all estimators in tests/hardening.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laws_decomposition import assert_same, every_estimator, training
from optional import optional
from orthodrome import KernelPCA
from orthodrome._core.progress import ProgressBar, reporting
from orthodrome.kernels import Gaussian
from recording import Recorder

pd = optional("pandas")

# ------------------------------------------------------------------ parameters and copies


@every_estimator
def test_grid_search(Estimator):
    X = training()
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    decomposition = Estimator(3, kernel=Gaussian())
    pipeline = make_pipeline(StandardScaler(), decomposition, LogisticRegression())
    step = Estimator.__name__.lower()
    grid = {f"{step}__kernel__sigma": [0.5, 5.0], f"{step}__n_components": [2, 4]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_[1].kernel_.sigma_ in (0.5, 5.0)
    by_score = GridSearchCV(Estimator(), {"n_components": [1, 3, 9]}, cv=3).fit(X)
    assert by_score.best_params_["n_components"] == 9


@every_estimator
def test_parameters_that_do_not_exist(Estimator):
    for kernel, advice in (("gaussian", r"Gaussian\(\)"), ("matern", r"Matern\(\)")):
        with pytest.raises(ValueError, match=f"kernel__sigma cannot be set.*Write kernel={advice}"):
            Estimator(kernel=kernel).set_params(kernel__sigma=2.0)
        with pytest.raises(ValueError, match=advice):
            GridSearchCV(Estimator(kernel=kernel), {"kernel__sigma": [1.0, 2.0]}).fit(training())
    assert Estimator().set_params(kernel=Gaussian(), kernel__sigma=2.0).kernel.sigma == 2.0
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        Estimator().set_params(sigma=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'wide'"):
        Estimator(kernel=Gaussian()).set_params(kernel__wide=2.0)


@every_estimator
def test_data_frames(Estimator):
    frame = pd.DataFrame(training(), columns=list("abcde"), index=np.arange(120) + 7)
    model = Estimator(2).set_output(transform="pandas")
    names = [f"{Estimator.__name__.lower()}{column}" for column in range(2)]
    for output in (model.fit_transform(frame), model.transform(frame)):
        assert list(output.columns) == names
        assert output.index.equals(frame.index)
    assert_same(model.transform(frame).to_numpy(), Estimator(2).fit_transform(training()), 1e-12)
    assert list(model.get_feature_names_out()) == names
    assert list(model.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[list("edcba")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.transform(training())
    with pytest.raises(ValueError, match=r"4 features.*expecting 5 features"):
        Estimator(2).fit(training()).transform(training()[:, :4])


# ------------------------------------------------------------------ seeds, workers


@every_estimator
def test_random_state(Estimator):
    X = training(n=300)

    def embedding(seed):
        return Estimator(3, solver="krylov", random_state=seed).fit_transform(X)

    expected = embedding(5)
    np.testing.assert_array_equal(embedding(5), expected)
    first, second = (embedding(np.random.RandomState(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert_same(embedding(None), expected, 1e-6)
    assert_same(embedding(6), expected, 1e-6)


# ------------------------------------------------------------------ callbacks


def broken(A, B):
    raise RuntimeError("broken kernel")


@pytest.mark.parametrize("options", [{}, {"solver": "krylov"}, {"n_components": 0.9}], ids=str)
@every_estimator
def test_callbacks_follow_the_fit_and_do_not_change_it(Estimator, options):
    recorder, X = Recorder(), training(n=300)
    options = {"n_components": 3, "random_state": 0} | options
    model = Estimator(**options).set_callbacks(recorder)
    np.testing.assert_array_equal(model.fit_transform(X), Estimator(**options).fit_transform(X))
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    steps = events[2:-2]
    assert [kind for kind, _ in steps] == ["begin", "end"] * 20
    names = [name for kind, name in steps if kind == "end"]
    assert (names[0], names[-1]) == ("Gram matrix", "eigenpairs")
    assert not hasattr(model, "_callback_fit_ctx")


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


@every_estimator
def test_verbose_without_rich(Estimator, monkeypatch):
    def missing():
        raise ImportError("rich")

    monkeypatch.setattr("orthodrome._core.progress.ProgressBar", missing)
    monkeypatch.setattr("orthodrome._core.progress.isinstance", lambda *_: False, raising=False)
    with pytest.raises(ImportError, match=r"orthodrome\[cli\]"):
        Estimator(3, verbose=True).fit(training())


def test_verbose_adds_no_second_progress_bar(capsys):
    pytest.importorskip("rich")
    bar = ProgressBar()
    model = KernelPCA(2, verbose=True).set_callbacks(bar)
    model.fit(training(n=30))
    assert model._skl_callbacks == [bar]
    assert capsys.readouterr().out.count("KernelPCA") == 1


def test_reporting_leaves_other_callbacks_alone():
    recorder, reported = Recorder(), []
    model = KernelPCA(2).set_callbacks(recorder)
    with reporting(model, reported.append):
        model.fit(training(n=30))
    assert model._skl_callbacks == [recorder]
    assert recorder.events[-1] == "teardown"
    assert reported[-1] == pytest.approx(1.0)
