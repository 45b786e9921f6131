"""What is saved is what is loaded, for every estimator and kernel, and it is plain data."""

import enum
import io
import pickle
import subprocess
import sys
import threading
import tracemalloc
import types
from pathlib import Path

import joblib
import numba.core.dispatcher
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import laws_persist as laws
import orthodrome
import orthodrome.kernels
from orthodrome import KernelPCA, KernelPGA, load, save
from orthodrome.kernels import Embedded, FromCallable, Kernel, Radial
from orthodrome.persist.allowed import OBJECTS


def saved(model, tmp_path) -> Path:
    path = tmp_path / "model.orthodrome"
    save(model, path)
    return path


@pytest.mark.parametrize("name", laws.NAMES)
def test_a_model_is_data_and_gives_the_same_results_again(name, tmp_path):
    """From a model file, and through pickle and joblib."""
    model = laws.fitted(name)
    assert not_data(model, name) == []
    answers = laws.answers(model, name)
    again = load(saved(model, tmp_path))
    assert type(again) is type(model)
    laws.assert_same_answers(laws.answers(again, name), answers)
    assert repr(again) == repr(model)
    for library in (pickle, joblib):
        buffer = io.BytesIO()
        library.dump(model, buffer)
        buffer.seek(0)
        laws.assert_same_answers(laws.answers(library.load(buffer), name), answers)


@pytest.mark.slow
def test_another_process_says_the_same(tmp_path):
    names = {f"{i}.orthodrome": name for i, name in enumerate(laws.NAMES)}
    for file, name in names.items():
        save(laws.fitted(name), tmp_path / file)
    script = """
import pickle, sys
from pathlib import Path
import laws_persist as laws
from orthodrome import load
folder = Path(sys.argv[1])
names = {f"{i}.orthodrome": name for i, name in enumerate(laws.NAMES)}
found = {name: laws.answers(load(folder / file), name) for file, name in names.items()}
(folder / "answers").write_bytes(pickle.dumps(found))
"""
    tests = Path(laws.__file__).parent
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=tests, check=True, timeout=300
    )
    found = pickle.loads((tmp_path / "answers").read_bytes())
    for name in laws.NAMES:
        laws.assert_same_answers(found[name], laws.answers(laws.fitted(name), name))


# The state of a fitted model ---------------------------------------------------------------------

NOT_DATA = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.ModuleType,
    type,
    enum.Enum,
    io.IOBase,
    type(threading.Lock()),
    numba.core.dispatcher.Dispatcher,
    np.random.RandomState,
    np.random.Generator,
)


def not_data(value, where="", seen=None) -> list[str]:
    """Where something below a value is code, an enum or a handle."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return []
    seen[id(value)] = value
    if isinstance(value, NOT_DATA):
        return [f"{where}: {value!r}"]
    if isinstance(value, dict):
        below = [*((f"{where}[{key!r}]", item) for key, item in value.items())]
        below += [(f"key of {where}", key) for key in value]
    elif isinstance(value, (list, tuple, set, frozenset)):
        below = [(f"{where}[{i}]", item) for i, item in enumerate(value)]
    elif isinstance(value, np.ndarray):
        below = [(f"{where}[]", item) for item in value.ravel()] if value.dtype == object else []
    else:
        slots = [s for kind in type(value).__mro__ for s in getattr(kind, "__slots__", ())]
        held = getattr(value, "__dict__", {}) | {s: getattr(value, s, None) for s in slots}
        below = [(f"{where}.{key}", item) for key, item in held.items()]
    return [found for place, item in below for found in not_data(item, place, seen)]


@pytest.mark.parametrize("thing", [print, enum.Enum("E", "A").A, threading.Lock(), np.sin.reduce])
def test_the_walk_finds_what_is_no_data(thing):
    model = KernelPCA()
    model.history_ = [{"deep": (thing,)}]
    assert len(not_data(model)) == 1


def test_the_list_has_every_estimator_and_every_kernel_without_a_function():
    public = {getattr(orthodrome, name) for name in orthodrome.__all__}
    estimators = {kind for kind in public if isinstance(kind, type)}
    kernels = {
        kind
        for kind in vars(orthodrome.kernels).values()
        if isinstance(kind, type) and issubclass(kind, Kernel)
    } - {Kernel, Radial, Embedded, FromCallable}
    assert estimators | kernels <= set(OBJECTS.values())
    assert {Embedded, FromCallable} & set(OBJECTS.values()) == set()


def test_no_class_of_the_list_takes_its_state_by_code_of_its_own():
    """A file's state goes into ``__dict__``, by Python's way or scikit-learn's BaseEstimator's."""
    plain = BaseEstimator.__setstate__
    assert all(getattr(kind, "__setstate__", plain) is plain for kind in OBJECTS.values())
    assert all(kind.__new__ is object.__new__ for kind in OBJECTS.values())


# The file ----------------------------------------------------------------------------------------


def test_the_same_model_gives_the_same_file(tmp_path):
    model = laws.fitted("GeodesicMixture-gaussian")
    first = saved(model, tmp_path).read_bytes()
    assert saved(load(tmp_path / "model.orthodrome"), tmp_path).read_bytes() == first


def test_what_was_shared_is_shared(tmp_path):
    again = load(saved(laws.fitted("GeodesicMixture-gaussian"), tmp_path))
    assert again.kernel_ is again.pga_.kernel_
    spans = load(saved(laws.fitted("PerTurbo-gaussian"), tmp_path))._subspaces_
    assert spans[0].kernel is spans[1].kernel


def test_arrays_of_the_disk_and_locked_ones_become_arrays(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=float, shape=(laws.N, 4))
    X[:] = laws.vectors()[0]
    model = KernelPCA(2).fit(X)
    model.X_fit_ = X  # whatever an estimator keeps of its input
    model.embedding_.setflags(write=False)
    again = load(saved(model, tmp_path))
    assert type(again.X_fit_) is np.ndarray
    assert again.X_fit_.flags.writeable
    assert again.embedding_.flags.writeable
    np.testing.assert_array_equal(again.X_fit_, X)
    again.fit(laws.vectors()[1])


def test_columns_and_settings_stay(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(laws.vectors()[0], columns=list("abcd"))
    model = KernelPGA(2).set_output(transform="pandas").fit(frame)
    again = load(saved(model, tmp_path))
    assert list(again.feature_names_in_) == list("abcd")
    assert again.transform(frame).equals(model.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["b", "a", "c", "d"]])


def test_models_and_kernels_need_not_be_fitted(tmp_path):
    scalers = [scaler() for scaler in (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)]
    for thing in (
        KernelPCA(4, kernel="matern"),
        orthodrome.kernels.Gaussian(2.0),
        orthodrome.PatchDenoiser(6, noise=0.1),
        orthodrome.eigen.Krylov(),
        make_pipeline(*scalers, KernelPGA()),
    ):
        assert repr(load(saved(thing, tmp_path))) == repr(thing)


def test_float32_stays(tmp_path):
    model = KernelPCA(2).fit(laws.vectors()[0].astype(np.float32))
    assert load(saved(model, tmp_path)).embedding_.dtype == np.float32


def test_a_loaded_model_with_warm_start_is_fitted_anew(tmp_path):
    name = "warm hebbian"
    assert laws.fitted(name)._solution_ is not None
    again = load(saved(laws.fitted(name), tmp_path))
    assert not hasattr(again, "_solution_")
    again.fit(laws.data_of(name)[0])
    np.testing.assert_array_equal(again.eigenvalues_, laws.fitted(name).eigenvalues_)


def test_notes_come_back(tmp_path):
    notes = {"columns": ["a", "</script>", "ä"], "n": 3, "label": None, "deep": {"x": [0.1]}}
    save(KernelPCA(), tmp_path / "m", notes=notes)
    model, found = load(tmp_path / "m", with_notes=True)
    assert found == notes
    assert isinstance(model, KernelPCA)
    assert load(saved(model, tmp_path), with_notes=True)[1] == {}


@pytest.mark.parametrize("notes", [{"x": print}, {"x": (1, 2)}, {1: 2}, {"x": np.nan}])
def test_notes_that_would_change_are_refused(notes, tmp_path):
    with pytest.raises(ValueError, match="notes of a model file"):
        save(KernelPCA(), tmp_path / "m", notes=notes)
    assert list(tmp_path.iterdir()) == []


def test_loading_takes_little_more_memory_than_three_times_the_file(tmp_path):
    model = KernelPCA()
    model.more = np.random.default_rng(0).normal(size=(600, 600))
    path = saved(model, tmp_path)
    load(path)
    tracemalloc.start()
    try:
        load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3.3 * path.stat().st_size
