"""Decompositions as citizens: cloned, pickled, searched, watched, run in threads and children."""

import os
import pickle
import re
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import orthodrome
from laws_decomposition import assert_same, every_estimator, held_out, training
from optional import optional
from orthodrome import KernelPCA, KernelPGA
from orthodrome._core.progress import ProgressBar, reporting
from orthodrome.kernels import Embedded, Gaussian, Normalized, Polynomial

pd = optional("pandas")

# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    "kernel", ["gaussian", Gaussian(sigma=2.0), Normalized(Polynomial(2)), Embedded(np.abs)]
)
@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_pickling_keeps_every_bit(Estimator, kernel, weighted):
    X, new = training(), held_out()
    model = Estimator(3, kernel=kernel).fit(X, sample_weight=np.arange(120.0) if weighted else None)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    np.testing.assert_array_equal(again.score(new), model.score(new))
    Z = model.transform(new[:3])
    np.testing.assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))


@every_estimator
def test_a_clone_is_not_fitted_and_fits_the_same(Estimator):
    X = training(n=600)
    model = Estimator(3, kernel=Gaussian(sigma=2.0), random_state=0).fit(X)
    copy = clone(model)
    assert not hasattr(copy, "kernel_")
    assert copy.kernel is not model.kernel
    np.testing.assert_array_equal(copy.fit_transform(X), model.embedding_)


@every_estimator
def test_refitting_forgets(Estimator):
    model = Estimator(3).fit(training(), sample_weight=np.arange(120))
    fresh = Estimator(3).fit(held_out(d=2))
    again = model.fit(held_out(d=2))
    np.testing.assert_array_equal(again.transform(held_out(d=2)), fresh.transform(held_out(d=2)))
    assert again.n_features_in_ == 2
    assert again.sample_weight_ is None


@every_estimator
def test_grid_search_over_a_parameter_of_the_kernel(Estimator):
    X = training()
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    pipeline = make_pipeline(
        StandardScaler(), Estimator(3, kernel=Gaussian()), LogisticRegression()
    )
    step = Estimator.__name__.lower()
    grid = {f"{step}__kernel__sigma": [0.5, 5.0], f"{step}__n_components": [2, 4]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_[1].kernel_.sigma_ in (0.5, 5.0)


@every_estimator
def test_grid_search_on_the_score_of_the_estimator(Estimator):
    search = GridSearchCV(Estimator(), {"n_components": [1, 3, 9]}, cv=3).fit(training())
    assert search.best_params_["n_components"] == 9


@pytest.mark.parametrize(
    ("kernel", "advice"), [("gaussian", r"Gaussian\(\)"), ("matern", r"Matern\(\)")]
)
@every_estimator
def test_a_name_has_no_parameters(Estimator, kernel, advice):
    with pytest.raises(ValueError, match=f"kernel__sigma cannot be set.*Write kernel={advice}"):
        Estimator(kernel=kernel).set_params(kernel__sigma=2.0)
    with pytest.raises(ValueError, match=advice):
        GridSearchCV(Estimator(kernel=kernel), {"kernel__sigma": [1.0, 2.0]}).fit(training())
    assert Estimator().set_params(kernel=Gaussian(), kernel__sigma=2.0).kernel.sigma == 2.0


@every_estimator
def test_other_unknown_parameters_are_scikit_learns_business(Estimator):
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        Estimator().set_params(sigma=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'wide'"):
        Estimator(kernel=Gaussian()).set_params(kernel__wide=2.0)


# ------------------------------------------------------------------ names and frames


@every_estimator
def test_output_as_a_frame(Estimator):
    frame = pd.DataFrame(training(), columns=list("abcde"), index=np.arange(120) + 7)
    model = Estimator(2).set_output(transform="pandas")
    names = [f"{Estimator.__name__.lower()}{column}" for column in range(2)]
    for output in (model.fit_transform(frame), model.transform(frame)):
        assert list(output.columns) == names
        assert output.index.equals(frame.index)
    assert_same(model.transform(frame).to_numpy(), Estimator(2).fit_transform(training()), 1e-12)
    assert list(model.get_feature_names_out()) == names


@every_estimator
def test_feature_names_are_checked(Estimator):
    frame = pd.DataFrame(training(), columns=list("abcde"))
    model = Estimator(2).fit(frame)
    assert list(model.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[list("edcba")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.transform(training())
    with pytest.raises(ValueError, match=r"4 features.*expecting 5 features"):
        Estimator(2).fit(training()).transform(training()[:, :4])


# ------------------------------------------------------------------ convergence, seeds


@every_estimator
def test_non_convergence_is_one_warning_with_figures_and_advice(Estimator):
    """One from each iteration that was stopped; on the sphere, the mean's is the first."""
    message = (
        rf"{Estimator.__name__} \(krylov\): stopped at max_iter "
        r"\(largest relative residual \d\.\de[+-]\d+, tol=0\)\. Raise max_iter, or loosen tol"
    )
    model = Estimator(5, solver="krylov", tol=0, max_iter=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(training(n=800))
    *before, last = caught
    assert {warning.category for warning in caught} == {ConvergenceWarning}
    assert re.match(message, str(last.message))
    assert last.filename == __file__
    if Estimator is KernelPGA:
        mean = before.pop()
        assert re.match(r"KernelPGA: the Karcher mean .*gradient norm \d.*", str(mean.message))
        assert str(mean.message).endswith("Raise max_iter.")  # tol is the solver's alone
        assert mean.filename == __file__
    assert not before
    assert not model.converged_
    assert model.n_iter_ == 1
    assert np.all(np.isfinite(model.transform(held_out())))


@every_estimator
def test_random_state(Estimator):
    X = training(n=700)
    same = [Estimator(3, random_state=5).fit_transform(X) for _ in "ab"]
    np.testing.assert_array_equal(*same)
    seeded = [Estimator(3, random_state=np.random.RandomState(5)).fit_transform(X) for _ in "ab"]
    np.testing.assert_array_equal(*seeded)
    assert_same(Estimator(3).fit_transform(X), same[0], 1e-6)
    assert_same(Estimator(3, random_state=6).fit_transform(X), same[0], 1e-6)


# ------------------------------------------------------------------ callbacks


class Recorder:
    """The FitCallback protocol, writing down what it is told."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, **_):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, **_):
        self.events.append(("end", context.task_name))


@pytest.mark.parametrize("options", [{}, {"solver": "krylov"}, {"n_components": 0.9}], ids=str)
@every_estimator
def test_callbacks_see_the_fit_from_begin_to_end(Estimator, options):
    recorder = Recorder()
    model = Estimator(**{"n_components": 3, **options}).set_callbacks(recorder)
    model.fit(training(n=600))
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    steps = events[2:-2]
    assert [kind for kind, _ in steps] == ["begin", "end"] * 20
    names = [name for kind, name in steps if kind == "end"]
    assert names[0] == "Gram matrix"
    assert names[-1] == "eigenpairs"
    assert not hasattr(model, "_callback_fit_ctx")


@every_estimator
def test_callbacks_do_not_change_the_result(Estimator):
    X = training(n=600)
    plain = Estimator(3, random_state=0).fit_transform(X)
    watched = Estimator(3, random_state=0).set_callbacks(Recorder()).fit_transform(X)
    np.testing.assert_array_equal(watched, plain)


@every_estimator
def test_a_failing_fit_tears_its_callbacks_down(Estimator):
    def broken(A, B):
        raise RuntimeError("broken kernel")

    recorder = Recorder()
    model = Estimator(3, kernel=broken).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="broken kernel"):
        model.fit(training())
    assert recorder.events == ["setup", ("begin", "fit"), "teardown"]
    assert not hasattr(model, "_callback_fit_ctx")
    assert model._skl_callbacks == [recorder]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("n_callbacks", [0, 1])
@every_estimator
def test_verbose_leaves_no_callback_behind(Estimator, fails, n_callbacks, capsys):
    pytest.importorskip("rich")

    def kernel(A, B):
        if fails:
            raise RuntimeError("broken kernel")
        return Gaussian(sigma=2.0)(A, B)

    recorders = [Recorder() for _ in range(n_callbacks)]
    model = Estimator(3, kernel=kernel, verbose=True).set_callbacks(*recorders)
    if fails:
        with pytest.raises(RuntimeError, match="broken kernel"):
            model.fit(training())
    else:
        model.fit(training())
        assert Estimator.__name__ in capsys.readouterr().out
    assert getattr(model, "_skl_callbacks", []) == recorders
    for recorder in recorders:
        assert recorder.events[0] == "setup"
        assert recorder.events[-1] == "teardown"
    pickle.dumps(clone(model).set_params(kernel="gaussian").fit(training()))


@every_estimator
def test_verbose_without_rich(Estimator, monkeypatch):
    def missing():
        raise ImportError("rich")

    monkeypatch.setattr("orthodrome._core.progress.ProgressBar", missing)
    monkeypatch.setattr("orthodrome._core.progress.isinstance", lambda *_: False, raising=False)
    with pytest.raises(ImportError, match=r"orthodrome\[cli\]"):
        Estimator(3, verbose=True).fit(training())


# ------------------------------------------------------------------ threads and processes


def blas_threads():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


@every_estimator
def test_the_number_of_threads_does_not_matter(Estimator, small_work_in_threads):
    X, new = training(n=1200), held_out()
    results = []
    for limit in (1, 2):
        with threadpool_limits(limit, user_api="blas"):
            model = Estimator(3, random_state=0).fit(X)
            results.append((model.embedding_, model.transform(new)))
    for one, two in zip(*results, strict=True):
        assert_same(one, two, 1e-10)


@every_estimator
def test_fits_in_two_threads_at_once(Estimator):
    data = [training(n=n) for n in (600, 700, 800, 900)]
    alone = [Estimator(3, random_state=0).fit_transform(X) for X in data]
    before = blas_threads()
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda X: Estimator(3, random_state=0).fit_transform(X), data))
    for one, other in zip(alone, together, strict=True):
        assert_same(other, one, 1e-8)
    assert blas_threads() == before


@pytest.mark.slow
def test_fits_in_worker_processes():
    X = training(n=600)
    alone = KernelPCA(3, random_state=0).fit_transform(X)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        results = joblib.Parallel()(
            joblib.delayed(KernelPCA(3, random_state=0).fit_transform)(X) for _ in range(2)
        )
    for result in results:
        assert_same(result, alone, 1e-8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_fits_too():
    """After the parent has used its threads and compiled loops; in a process of its own."""
    script = textwrap.dedent(
        """
        import os, sys
        import numpy as np
        from orthodrome import KernelPCA
        X = np.random.default_rng(0).standard_normal((1200, 4))
        parent = KernelPCA(3, random_state=0).fit_transform(X)
        child = os.fork()
        if child == 0:
            same = np.allclose(KernelPCA(3, random_state=0).fit_transform(X), parent, atol=1e-8)
            os._exit(0 if same else 3)
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    source = Path(orthodrome.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_bar_that_is_there_is_not_joined_by_another(capsys):
    pytest.importorskip("rich")
    bar = ProgressBar()
    model = KernelPCA(2, verbose=True).set_callbacks(bar)
    model.fit(training(n=30))
    assert model._skl_callbacks == [bar]
    assert capsys.readouterr().out.count("KernelPCA") == 1


def test_who_is_told_of_progress_leaves_other_callbacks_alone():
    recorder, told = Recorder(), []
    model = KernelPCA(2).set_callbacks(recorder)
    with reporting(model, told.append):
        model.fit(training(n=30))
    assert model._skl_callbacks == [recorder]
    assert recorder.events[-1] == "teardown"
    assert told[-1] == pytest.approx(1.0)
