"""Models with a part that does not fit the others are refused, or raise our own errors."""

import linecache
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

import laws_persist as laws
from orthodrome import load
from orthodrome._core.checks import RowError
from orthodrome.persist import archive
from orthodrome.persist.allowed import OBJECTS

skops_io = pytest.importorskip("skops.io")

REMOVED = object()

#: Changes after which the file is one that an older version may have written.
VALID = {
    ("Pipeline.steps", "list", "one fewer"),
    ("MaxAbsScaler.clip", "bool", "removed"),  # which older versions of scikit-learn have not
}


# Changes to one place ----------------------------------------------------------------------------


def changed_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield values of another shape, dtype, range or kind, by what was done."""
    if isinstance(value, np.ndarray):
        yield from _changed_shapes(value)
        yield from _changed_kinds(value)
    elif isinstance(value, (list, tuple)) and len(value):
        yield "one fewer", value[:-1]
        yield "one more", value + value[-1:]
        yield "none", type(value)()
    elif scipy.sparse.issparse(value):
        yield "no last row", value[:-1]
        yield "no last column", value[:, :-1]
        yield "complex", value.astype(complex)
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
        for kind in (complex, str, bool):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield f"{kind.__name__}", value.astype(kind)
    if value.dtype.kind in "iu":
        yield "float", value + 0.5
        yield "beyond the end", value + 10**6
        yield "negative", value - 10**6
    if value.dtype.kind == "f":
        yield "integers", np.ones(value.shape, dtype=np.int64)


Put = Callable[[Any], Callable[[], None]]  # puts a value in a place and returns how to undo it


def places(value: Any, name: str, put: Put | None = None) -> Iterator[tuple[str, Any, Put]]:
    """Yield name, value and setter of everything that a model holds."""
    if put is not None:
        yield name, value, put
    if type(value) in OBJECTS:
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


def damaged(model: Any, seen: set[tuple[str, ...]], every: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yield files of the model with one place changed, other than those that were seen before."""
    for name, value, put in places(model, type(model).__name__):
        of = f"{value.dtype.kind}{value.ndim}" if hasattr(value, "ndim") else type(value).__name__
        for change, new in changed_values(value):
            case = (name, of, change)
            if case in seen or case in VALID:
                continue
            seen.add(case)
            if len(seen) % every:
                continue
            undo = put(new)
            try:
                yield f"{name} ({of}): {change}", archive.pack(skops_io.dumps(model), {})
            finally:
                undo()


# The law -----------------------------------------------------------------------------------------


def fault(data: bytes, path: Path, new: Any, invertible: bool) -> str:
    """Return what is wrong with how a damaged file is treated, '' if nothing is."""
    path.write_bytes(data)
    try:
        model = load(path)
    except ValueError as error:
        expected = f"{path} cannot be loaded as a model: "
        return "" if str(error).startswith(expected) else f"load: {error}"
    try:
        laws.outputs(model, new, invertible)
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


def faults(fixtures: Any, folder: Path, every: int = 1) -> tuple[int, dict[str, str]]:
    """Return the number of cases, one of `every` being tried, and the faults by case."""
    count, found, seen = 0, {}, set()
    for param in fixtures:
        stored = laws.stored_answers(*param.values)
        if "parameters" in stored:
            continue
        new = laws.new_rows(stored)
        model = laws.loaded(*param.values, folder)
        for case, data in damaged(model, seen, every):
            count += 1
            wrong = fault(data, folder / "damaged.orthodrome", new, "inverse_transform" in stored)
            if wrong:
                found[f"{param.values[1]}: {case}"] = wrong
    return count, found


@pytest.mark.parametrize(
    ("step", "every"),
    [(12, 5), pytest.param(1, 1, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_damaged_models_raise_our_errors(step, every, tmp_path):
    count, found = faults(laws.FIXTURES[::step], tmp_path, every)
    assert count > 200
    assert found == {}
