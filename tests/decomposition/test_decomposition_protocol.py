"""KernelPCA as a citizen: cloned, pickled, searched, watched, run in threads and children."""

import os
import pickle
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import orthodrome
from laws_decomposition import assert_same, held_out, training
from orthodrome import KernelPCA
from orthodrome.kernels import Embedded, Gaussian, Normalized, Polynomial

# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    "kernel", ["gaussian", Gaussian(sigma=2.0), Normalized(Polynomial(2)), Embedded(np.abs)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_pickling_keeps_every_bit(kernel, weighted):
    X, new = training(), held_out()
    pca = KernelPCA(3, kernel=kernel).fit(X, sample_weight=np.arange(120.0) if weighted else None)
    again = pickle.loads(pickle.dumps(pca))
    np.testing.assert_array_equal(again.transform(new), pca.transform(new))
    np.testing.assert_array_equal(again.score(new), pca.score(new))
    Z = pca.transform(new[:3])
    np.testing.assert_array_equal(again.inverse_transform(Z), pca.inverse_transform(Z))


def test_a_clone_is_not_fitted_and_fits_the_same():
    X = training(n=600)
    pca = KernelPCA(3, kernel=Gaussian(sigma=2.0), random_state=0).fit(X)
    copy = clone(pca)
    assert not hasattr(copy, "kernel_")
    assert copy.kernel is not pca.kernel
    np.testing.assert_array_equal(copy.fit_transform(X), pca.embedding_)


def test_refitting_forgets():
    pca = KernelPCA(3).fit(training(), sample_weight=np.arange(120))
    fresh = KernelPCA(3).fit(held_out(d=2))
    again = pca.fit(held_out(d=2))
    np.testing.assert_array_equal(again.transform(held_out(d=2)), fresh.transform(held_out(d=2)))
    assert again.n_features_in_ == 2
    assert again.sample_weight_ is None


def test_grid_search_over_a_parameter_of_the_kernel():
    X = training()
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    pipeline = make_pipeline(
        StandardScaler(), KernelPCA(3, kernel=Gaussian()), LogisticRegression()
    )
    grid = {"kernelpca__kernel__sigma": [0.5, 5.0], "kernelpca__n_components": [2, 4]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_[1].kernel_.sigma_ in (0.5, 5.0)


def test_grid_search_on_the_score_of_the_estimator():
    search = GridSearchCV(KernelPCA(), {"n_components": [1, 3, 9]}, cv=3).fit(training())
    assert search.best_params_["n_components"] == 9


@pytest.mark.parametrize(
    ("kernel", "advice"), [("gaussian", r"Gaussian\(\)"), ("matern", r"Matern\(\)")]
)
def test_a_name_has_no_parameters(kernel, advice):
    with pytest.raises(ValueError, match=f"kernel__sigma cannot be set.*Write kernel={advice}"):
        KernelPCA(kernel=kernel).set_params(kernel__sigma=2.0)
    with pytest.raises(ValueError, match=advice):
        GridSearchCV(KernelPCA(kernel=kernel), {"kernel__sigma": [1.0, 2.0]}).fit(training())
    assert KernelPCA().set_params(kernel=Gaussian(), kernel__sigma=2.0).kernel.sigma == 2.0


def test_other_unknown_parameters_are_scikit_learns_business():
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        KernelPCA().set_params(sigma=2.0)
    with pytest.raises(ValueError, match="Invalid parameter 'wide'"):
        KernelPCA(kernel=Gaussian()).set_params(kernel__wide=2.0)


# ------------------------------------------------------------------ names and frames


def test_output_as_a_frame():
    frame = pd.DataFrame(training(), columns=list("abcde"), index=np.arange(120) + 7)
    pca = KernelPCA(2).set_output(transform="pandas")
    for output in (pca.fit_transform(frame), pca.transform(frame)):
        assert list(output.columns) == ["kernelpca0", "kernelpca1"]
        assert output.index.equals(frame.index)
    assert_same(pca.transform(frame).to_numpy(), KernelPCA(2).fit_transform(training()), 1e-12)
    assert list(pca.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]


def test_feature_names_are_checked():
    frame = pd.DataFrame(training(), columns=list("abcde"))
    pca = KernelPCA(2).fit(frame)
    assert list(pca.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        pca.transform(frame[list("edcba")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        pca.transform(training())
    with pytest.raises(ValueError, match=r"4 features.*expecting 5 features"):
        KernelPCA(2).fit(training()).transform(training()[:, :4])


# ------------------------------------------------------------------ convergence, seeds


def test_non_convergence_is_one_warning_with_figures_and_advice():
    message = (
        r"KernelPCA \(krylov\): stopped at max_iter "
        r"\(largest relative residual \d\.\de[+-]\d+, tol=0\)\. Raise max_iter, or loosen tol"
    )
    pca = KernelPCA(5, solver="krylov", tol=0, max_iter=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pca.fit(training(n=800))
    assert [warning.category for warning in caught] == [ConvergenceWarning]
    with pytest.warns(ConvergenceWarning, match=message):
        pca.fit(training(n=800))
    assert not pca.converged_
    assert pca.n_iter_ == 1
    assert np.all(np.isfinite(pca.transform(held_out())))


def test_random_state():
    X = training(n=700)
    same = [KernelPCA(3, random_state=5).fit_transform(X) for _ in "ab"]
    np.testing.assert_array_equal(*same)
    seeded = [KernelPCA(3, random_state=np.random.RandomState(5)).fit_transform(X) for _ in "ab"]
    np.testing.assert_array_equal(*seeded)
    assert_same(KernelPCA(3).fit_transform(X), same[0], 1e-6)
    assert_same(KernelPCA(3, random_state=6).fit_transform(X), same[0], 1e-6)


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
def test_callbacks_see_the_fit_from_begin_to_end(options):
    recorder = Recorder()
    pca = KernelPCA(**{"n_components": 3, **options}).set_callbacks(recorder)
    pca.fit(training(n=600))
    events = recorder.events
    assert events[:2] == ["setup", ("begin", "fit")]
    assert events[-2:] == [("end", "fit"), "teardown"]
    steps = events[2:-2]
    assert [kind for kind, _ in steps] == ["begin", "end"] * 20
    names = [name for kind, name in steps if kind == "end"]
    assert names[0] == "Gram matrix"
    assert names[-1] == "eigenpairs"
    assert not hasattr(pca, "_callback_fit_ctx")


def test_callbacks_do_not_change_the_result():
    X = training(n=600)
    plain = KernelPCA(3, random_state=0).fit_transform(X)
    watched = KernelPCA(3, random_state=0).set_callbacks(Recorder()).fit_transform(X)
    np.testing.assert_array_equal(watched, plain)


def test_a_failing_fit_tears_its_callbacks_down():
    def broken(A, B):
        raise RuntimeError("broken kernel")

    recorder = Recorder()
    pca = KernelPCA(3, kernel=broken).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="broken kernel"):
        pca.fit(training())
    assert recorder.events == ["setup", ("begin", "fit"), "teardown"]
    assert not hasattr(pca, "_callback_fit_ctx")
    assert pca._skl_callbacks == [recorder]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("n_callbacks", [0, 1])
def test_verbose_leaves_no_callback_behind(fails, n_callbacks, capsys):
    pytest.importorskip("rich")

    def kernel(A, B):
        if fails:
            raise RuntimeError("broken kernel")
        return A @ B.T

    recorders = [Recorder() for _ in range(n_callbacks)]
    pca = KernelPCA(3, kernel=kernel, verbose=True).set_callbacks(*recorders)
    if fails:
        with pytest.raises(RuntimeError, match="broken kernel"):
            pca.fit(training())
    else:
        pca.fit(training())
        assert "KernelPCA" in capsys.readouterr().out
    assert getattr(pca, "_skl_callbacks", []) == recorders
    for recorder in recorders:
        assert recorder.events[0] == "setup"
        assert recorder.events[-1] == "teardown"
    pickle.dumps(clone(pca).set_params(kernel="linear").fit(training()))


def test_verbose_without_rich(monkeypatch):
    def missing():
        raise ImportError("rich")

    monkeypatch.setattr("orthodrome._core.progress.ProgressBar", missing)
    monkeypatch.setattr("orthodrome._core.progress.isinstance", lambda *_: False, raising=False)
    with pytest.raises(ImportError, match=r"orthodrome\[cli\]"):
        KernelPCA(3, verbose=True).fit(training())


# ------------------------------------------------------------------ threads and processes


def blas_threads():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


def test_the_number_of_threads_does_not_matter():
    X, new = training(n=1200), held_out()
    results = []
    for limit in (1, 2):
        with threadpool_limits(limit, user_api="blas"):
            pca = KernelPCA(3, random_state=0).fit(X)
            results.append((pca.embedding_, pca.transform(new)))
    for one, two in zip(*results, strict=True):
        assert_same(one, two, 1e-10)


def test_fits_in_two_threads_at_once():
    data = [training(n=n) for n in (600, 700, 800, 900)]
    alone = [KernelPCA(3, random_state=0).fit_transform(X) for X in data]
    before = blas_threads()
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda X: KernelPCA(3, random_state=0).fit_transform(X), data))
    for one, other in zip(alone, together, strict=True):
        assert_same(other, one, 1e-8)
    assert blas_threads() == before


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
