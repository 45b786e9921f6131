"""Every model is plain data, and gives the same results after it was saved and loaded."""

import enum
import io
import pickle
import threading
import types
import warnings

import joblib
import numba.core.dispatcher
import numpy as np
import pytest
from sklearn.base import BaseEstimator

import laws_persist as laws
import orthodrome
import orthodrome.kernels
from orthodrome import KernelKMeans, KernelPCA, KernelPGA, PerTurbo, load, save
from orthodrome._core.kinds import is_dask_array
from orthodrome.kernels import Embedded, FromCallable, Kernel, Radial
from orthodrome.persist.allowed import OBJECTS
from persist import write_models

CASES = write_models.cases()


def loaded(model, folder):
    """Save a model and load it."""
    save(model, folder / "model.orthodrome")
    return load(folder / "model.orthodrome")


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_model_is_data_and_gives_the_same_results_again(name, tmp_path):
    """From a model file, and through pickle and joblib."""
    for part, module in (("dask", "dask"), ("frame", "pandas")):
        if part in name:
            pytest.importorskip(module)
    with warnings.catch_warnings(action="ignore"):
        model, new = CASES[name]()
    assert not_data(model, name) == []
    copies = [loaded(model, tmp_path)]
    for library in (pickle, joblib):
        buffer = io.BytesIO()
        library.dump(model, buffer)
        buffer.seek(0)
        copies.append(library.load(buffer))
    for copy in copies:
        assert type(copy) is type(model)
        assert repr(copy) == repr(model)
        if not name.startswith("unfitted"):
            invertible = write_models.inverts(model, new)
            answers = laws.outputs(model, new, invertible)
            laws.assert_same_answers(laws.outputs(copy, new, invertible), answers)


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


def not_data(value, where="", known=None) -> list[str]:
    """Return where something below a value is code, an enum or a handle."""
    known = {} if known is None else known
    if id(value) in known or is_dask_array(value):  # dask arrays are not saved
        return []
    known[id(value)] = value
    if isinstance(value, NOT_DATA):
        return [f"{where}: {value!r}"]
    if isinstance(value, np.ndarray):
        below = dict(enumerate(value.ravel())) if value.dtype == object else {}
    elif isinstance(value, (list, tuple, set, frozenset)):
        below = dict(enumerate(value))
    elif isinstance(value, dict):
        below = value | {f"key {key!r}": key for key in value}
    else:
        slots = [s for kind in type(value).__mro__ for s in getattr(kind, "__slots__", ())]
        below = getattr(value, "__dict__", {}) | {s: getattr(value, s, None) for s in slots}
    below.pop("_solution_", None)  # the state of warm starts is not saved
    return [x for key, item in below.items() for x in not_data(item, f"{where}.{key}", known)]


def test_every_estimator_and_kernel_without_a_function_is_allowed():
    public = {getattr(orthodrome, name) for name in orthodrome.__all__}
    estimators = {kind for kind in public if isinstance(kind, type)}
    kernels = {
        kind
        for kind in vars(orthodrome.kernels).values()
        if isinstance(kind, type) and issubclass(kind, Kernel)
    } - {Kernel, Radial, Embedded, FromCallable}
    assert estimators | kernels <= set(OBJECTS.values())
    assert {Embedded, FromCallable} & set(OBJECTS.values()) == set()


def test_allowed_classes_do_not_define_how_they_are_restored():
    """A file's state goes into ``__dict__``, by Python's way or scikit-learn's BaseEstimator's."""
    plain = BaseEstimator.__setstate__
    assert all(getattr(kind, "__setstate__", plain) is plain for kind in OBJECTS.values())
    assert all(kind.__new__ is object.__new__ for kind in OBJECTS.values())


# The file ----------------------------------------------------------------------------------------


def test_columns_and_output_settings_are_kept(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(laws.vectors()[0], columns=list("abcd"))
    model = KernelPGA(2).set_output(transform="pandas").fit(frame)
    again = loaded(model, tmp_path)
    assert list(again.feature_names_in_) == list("abcd")
    assert again.transform(frame).equals(model.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_partial_fits_continue_after_loading(kernel, tmp_path):
    X = np.random.default_rng(0).standard_normal((600, 4)) + 3
    model = KernelPGA(2, kernel=kernel, n_anchors=20, random_state=0)
    again = loaded(model.partial_fit(X[:300]), tmp_path).partial_fit(X[300:])
    model.partial_fit(X[300:])
    np.testing.assert_array_equal(again.eigenvalues_, model.eigenvalues_)
    again = loaded(again, tmp_path)
    np.testing.assert_array_equal(again.transform(X[:5]), model.transform(X[:5]))


def test_dask_arrays_with_a_value_per_row_are_not_saved(tmp_path):
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).standard_normal((90, 3))
    blocks, weights = da.from_array(X, chunks=40), da.ones(90, chunks=40)
    few = {"n_anchors": 20, "solver": "nystroem", "random_state": 0}
    model = KernelKMeans(3, n_anchors=20, random_state=0).fit(blocks)
    again = loaded(model, tmp_path)
    assert not hasattr(again, "labels_")
    np.testing.assert_array_equal(again.predict(X), np.asarray(model.labels_))
    model = KernelPCA(2, **few).fit(blocks, sample_weight=weights)
    again = loaded(model, tmp_path)
    assert again.sample_weight_ is None
    assert not hasattr(again, "embedding_")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    model.X_fit_ = blocks
    with pytest.raises(ValueError, match=r"X_fit_ is .*dask.*nystroem"):
        save(model, tmp_path / "m")


def test_notes_are_kept(tmp_path):
    notes = {"columns": ["a", "</script>", "ä"], "n": 3, "label": None, "deep": {"x": [0.1]}}
    for given in (notes, {}, None):
        save(KernelPCA(), tmp_path / "m", notes=given)
        model, found = load(tmp_path / "m", with_notes=True)
        assert found == (given or {})
        assert isinstance(model, KernelPCA)


@pytest.mark.parametrize(
    "notes", [{"x": print}, {"x": (1, 2)}, {1: 2}, {"x": np.nan}, [], [("x", 1)], 3]
)
def test_notes_that_would_change_are_refused(notes, tmp_path):
    with pytest.raises(ValueError, match="notes of a model file"):
        save(KernelPCA(), tmp_path / "m", notes=notes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [">f8", ">f4", "f4", "f2", ">i8", ">U5", "uint64"])
def test_dtypes_are_kept_or_converted(dtype, tmp_path):
    """Byte order becomes native and half precision single; other dtypes stay."""
    X, new, labels = laws.vectors()
    numbers = np.dtype(dtype).kind == "f"
    given = labels if numbers else np.unique(labels, return_inverse=True)[1].astype(dtype)
    model = PerTurbo("gaussian").fit(X.astype(dtype) if numbers else X, given)
    again = loaded(model, tmp_path)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    points, expected = (m._subspaces_[0].points.coordinates.dtype for m in (again, model))
    assert points == expected.newbyteorder("=")
