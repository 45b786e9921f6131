"""Models with one damaged part are refused, or their methods raise our own errors."""

import linecache
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import InvalidParameterError

import laws_persist as laws
from orthodrome import KernelKMeans, KernelPCA, PerTurbo, load
from orthodrome._core.checks import RowError
from orthodrome.eigen import Dense, Hebbian, Krylov, Nystroem
from orthodrome.kernels import Cosine, Kernel, Precomputed
from orthodrome.kernels._prepared import Prepared
from orthodrome.persist import nodes
from orthodrome.persist.allowed import OBJECTS, is_plain
from orthodrome.persist.parts import check_parts, table_of

CLASSES = frozenset(OBJECTS.values())

REMOVED = object()

#: Changes after which the file is one that an older version may have written.
VALID = {
    ("Pipeline.steps", "list", "one fewer"),
    ("MaxAbsScaler.clip", "bool", "removed"),  # which older versions of scikit-learn have not
}


# Changes to one place ----------------------------------------------------------------------------


def changed_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield values of another shape, dtype, range or kind, with a name of the change."""
    if isinstance(value, np.ndarray):
        yield from _changed_shapes(value)
        yield from _changed_kinds(value)
    elif isinstance(value, (list, tuple)) and len(value):
        yield "one fewer", value[:-1]
        yield "one more", value + value[-1:]
        yield "none", type(value)()
    elif scipy.sparse.issparse(value):
        yield "dense", value.toarray()
        yield "no last row", value[:-1]
        yield "no last column", value[:, :-1]
        yield "complex", value.astype(complex)
    elif isinstance(value, bool):
        yield "not", not value
    elif isinstance(value, (int, float)):
        yield from (("zero", type(value)(0)), ("negative", -1 - abs(value)))
        yield from (("NaN", math.nan), ("infinite", math.inf), ("half", np.float16(0.5)))
    elif isinstance(value, Kernel):
        yield "unfitted", clone(value)
        if hasattr(value, "n_features_in_"):
            size = value.n_features_in_
            yield "another kernel", Cosine().fit(np.ones((1, size)))
            yield "another size", Cosine().fit(np.ones((1, size + 1)))
            yield "precomputed", Precomputed().fit(np.eye(size))
    yield "removed", REMOVED
    for label, other in (("None", None), ("a number", 3.5), ("text", "x"), ("a list", [1, 2])):
        if type(other) is not type(value):
            yield label, other


def _changed_shapes(value: Any) -> Iterator[tuple[str, Any]]:
    yield "another axis", value[..., None]
    if value.size:
        yield "empty", value[:0]
        yield "no last row", value[:-1]
        yield "row twice", np.concatenate([value, value[-1:]])
    if value.ndim > 1:
        yield "no last column", value[..., :-1]
        yield "flat", value.ravel()
        if value.shape[0] != value.shape[1]:
            yield "transposed", value.swapaxes(0, 1)


def _changed_kinds(value: Any) -> Iterator[tuple[str, Any]]:
    if value.dtype.kind in "fiuc":
        for kind in ("complex128", "str", "bool", "float32", "complex64", "int8", "uint64"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield kind, value.astype(kind)
        yield "byte order", value.astype(value.dtype.newbyteorder())
    if value.dtype.kind in "iu":
        yield "float", value + 0.5
        yield "beyond the end", value + 10**6
        yield "negative", value - 10**6
    if value.dtype.kind in "fc":
        with np.errstate(over="ignore"):
            yield from ((kind, value.real.astype(kind)) for kind in ("float16", "longdouble"))
        yield "integers", np.ones(value.shape, dtype=np.int64)
        yield "negated", -1 - value
        yield "zeros", np.zeros_like(value)
        for number in (np.nan, np.inf):
            changed = value.copy()
            changed[(-1,) * value.ndim if value.size else ...] = number
            yield f"one {number}", changed


Put = Callable[[Any], Callable[[], None]]  # puts a value in a place and returns how to undo it


def places(value: Any, name: str, put: Put | None = None) -> Iterator[tuple[str, Any, Put]]:
    """Yield name, value and setter of everything that a model holds."""
    if put is not None:
        yield name, value, put
    if type(value) in CLASSES:
        held, name = vars(value), type(value).__name__
    elif isinstance(value, (dict, list)):
        held = value
    elif isinstance(value, tuple) and put is not None:
        for number, item in enumerate(value[:2]):
            yield from places(item, f"{name}[]", _tuple_setter(value, number, put))
        return
    else:
        return
    for key in range(min(len(held), 2)) if isinstance(held, list) else list(held):
        below = f"{name}[]" if isinstance(held, list) else f"{name}.{key}"
        yield from places(held[key], below, _setter(held, key))


def _setter(held: Any, key: Any) -> Put:
    def put(new: Any) -> Callable[[], None]:
        before = held.copy()
        if new is REMOVED:
            held.pop(key)
        else:
            held[key] = new

        def undo() -> None:
            held.clear()
            held.extend(before) if isinstance(held, list) else held.update(before)

        return undo

    return put


def _tuple_setter(items: tuple[Any, ...], number: int, outer: Put) -> Put:
    def put(new: Any) -> Callable[[], None]:
        kept = () if new is REMOVED else (new,)
        return outer((*items[:number], *kept, *items[number + 1 :]))

    return put


def damaged(
    model: Any, tried: set[tuple[str, ...]], every: int = 1, all_dtypes: bool = False
) -> Iterator[str]:
    """Change one place of the model at a time, in ways that were not tried before."""
    for name, value, put in places(model, type(model).__name__):
        of = f"{value.dtype.kind}{value.ndim}" if hasattr(value, "ndim") else type(value).__name__
        for change, new in changed_values(value):
            case = (name, of, change)
            numbers = isinstance(new, np.ndarray) and new.dtype != object
            if numbers and not is_plain(new.dtype) and not all_dtypes:  # no file holds it
                continue
            if case in tried or case in VALID:
                continue
            tried.add(case)
            if len(tried) % every:
                continue
            undo = put(new)
            try:
                yield f"{name} ({of}): {change}"
            finally:
                undo()


# The law -----------------------------------------------------------------------------------------


def fault(model: Any, new: Any, invertible: bool) -> str:
    """Return what is wrong with how a damaged model is treated, '' if nothing is."""
    try:
        model = copied(model, {})  # methods may change it
        check_parts(model)
    except Exception:  # load turns all into a ValueError
        return ""
    return fault_in_use(model, new, invertible)


def copied(value: Any, known: dict[int, Any]) -> Any:
    """Return a copy that shares arrays; raise if a file could not hold it."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, dict):
        made = {key: copied(item, known) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        made = type(value)(copied(item, known) for item in value)
    elif type(value) in CLASSES:
        made = object.__new__(type(value))
        made.__dict__.update(copied(vars(value), known))
        if type(value).__module__.startswith("orthodrome."):
            nodes.check_parameters(made)
    else:
        made = value
    known[id(value)] = made
    return made


def fault_in_use(model: Any, new: Any, invertible: bool) -> str:
    """Return an error of the model's methods that is not ours, '' if there is none."""
    try:
        laws.outputs(model, new, invertible)
        if hasattr(model, "_partial_"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.partial_fit(new)
    except (ValueError, NotFittedError) as error:
        return "" if type(error) in OURS and _raised_in_python(error) else repr(error)
    except Exception as error:
        return repr(error)
    return ""


OURS = (ValueError, NotFittedError, InvalidParameterError, RowError)


def _raised_in_python(error: BaseException) -> bool:
    """Whether a raise statement made the error, and no compiled function of NumPy."""
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename
    raised = linecache.getline(file, trace.tb_lineno).strip().startswith("raise ")
    return raised and ("orthodrome" in file or "sklearn" in file)


def models(fixtures: Any, folder: Path) -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield name, model, new rows, and whether it inverts, of the fitted fixtures."""
    for param in fixtures:
        stored = laws.stored_answers(*param.values)
        if "parameters" not in stored:
            model, new = laws.loaded(*param.values, folder), laws.new_rows(stored)
            yield param.values[1], model, new, "inverse_transform" in stored


@pytest.mark.parametrize(
    ("step", "every", "least"),
    [(3, 6, 1000), pytest.param(1, 1, 5000, marks=pytest.mark.slow)],
    ids=["sample", "all"],
)
def test_damaged_models_raise_our_errors(step, every, least, tmp_path):
    """All changes of all models, or one in six of those that differ in every third model."""
    count, found, tried = 0, {}, set()
    for name, model, new, invertible in models(laws.FIXTURES[::step], tmp_path):
        for case in damaged(model, set() if every == 1 else tried, every):
            count += 1
            wrong = fault(model, new, invertible)
            if wrong:
                found[f"{name}: {case}"] = wrong
    assert count > least
    assert found == {}


def pipeline(*steps: Any) -> Pipeline:
    made = Pipeline([("a", KernelPCA())])
    made.steps = list(steps)
    return made


def indices_only() -> KernelKMeans:
    model = KernelKMeans()
    model.labels_ = np.zeros(3, dtype=np.int64)
    return model


def unknown_covariances() -> Any:
    model = copied(laws.fitted("GeodesicMixture-gaussian"), {})
    vars(model._mixture_)["kind"] = "round"
    return model


def point_chosen_twice() -> Any:
    model = copied(laws.fitted("alpha given"), {})
    chosen = model._later_["training"].chosen
    chosen[0] = np.zeros_like(chosen[0])
    return model


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (pipeline, r"Pipeline\.steps is not a list"),
        (lambda: pipeline(("a",)), r"steps\[0\] is not a pair"),
        (lambda: pipeline(("a", PerTurbo()), ("b", KernelPCA())), r"steps\[0\] .*transform"),
        (indices_only, "labels_ has indices"),
        (unknown_covariances, "unknown kind 'round'"),
        (point_chosen_twice, "has an index twice"),
    ],
)
def test_parts_that_do_not_belong_together_are_named(make, reason):
    with pytest.raises(ValueError, match=reason):
        check_parts(make())


#: Classes without a table: solvers are parameters, checked by the next fit; `check_parts` compares
#: prepared points with those of the kernel, and visits the steps of a pipeline.
WITHOUT_TABLE = {Dense, Hebbian, Krylov, Nystroem, Pipeline, Prepared}


def test_every_class_has_a_table():
    common = table_of(BaseEstimator).keys()
    assert {kind for kind in CLASSES if table_of(kind).keys() <= common} == WITHOUT_TABLE


def test_damaged_files_raise_our_errors(tmp_path):
    path = tmp_path / "damaged.orthodrome"
    loaded = refused = 0
    tried: set[tuple[str, ...]] = set()
    for _, model, new, invertible in models(laws.FIXTURES[::40], tmp_path):
        for case in damaged(model, tried, every=40, all_dtypes=True):
            try:
                path.write_bytes(laws.packed_unchecked(model))
            except ValueError:  # not saved
                continue
            try:
                found = load(path)
            except ValueError as error:
                message = str(error)
            else:
                message = fault_in_use(found, new, invertible)
                loaded += 1
            assert message == "" or message.startswith(f"{path} cannot be loaded"), case
            refused += message != ""
    assert min(loaded, refused) > 10
