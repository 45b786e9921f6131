"""Absurd values for parameters, tried in limited children, and checks of the outcome."""

import contextlib
import dataclasses
import functools
import io
import math
import signal
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse

import orthodrome
from bounded import MEBIBYTE, TooSlow, in_child
from orthodrome.gram import CrossOperator, GramOperator
from orthodrome.kernels import Gaussian

PACKAGE = str(Path(orthodrome.__file__).parent)
SECONDS_EACH = 5.0  # CPU time of a fit to a few points
#: Values for every parameter. Some are valid for some parameters.
ABSURD = {
    "a word": "no-such-thing",
    "no letters": "",
    "another's word": "auto",
    "bytes": b"auto",
    "nan": math.nan,
    "inf": math.inf,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "1e300": 1e300,
    "a million millions": 10**12,
    "beyond 64 bits": 10**30,
    "beyond floats": 10**400,
    "True": True,
    "None": None,
    "1j": 1j,
    "an empty list": [],
    "a list": [1, 2],
    "a dictionary": {"a": 1},
    "an array": np.array([1.0, math.nan]),
    "a class": Gaussian,
    "a function": len,
    "an object": object(),
}
#: Functions of the caller may raise anything. An error about coefficients names the reference.
ALLOWED = {
    ("kernel", "a function"),
    ("function", "a function"),
    ("function", "a class"),
    ("coefficients", ""),
}


def complaints_of(parameters, use, owner):
    """Try every absurd value of each parameter, and return complaints."""
    found = []
    for parameter in parameters:
        for word, value in ABSURD.items():
            text = complaint(functools.partial(use, parameter, value), parameter, owner)
            if text and not {(parameter, word), (parameter, "")} & ALLOWED:
                found.append(f"{parameter} = {word}: {text}")
    return found


def assert_no_complaints(work):
    def bounded():
        signal.signal(signal.SIGPROF, too_slow)
        with quiet():
            return work()

    outcome = in_child(bounded, seconds=120, more_memory=512 * MEBIBYTE)
    assert outcome.code == 0, f"the process ended with {outcome.code}"
    assert not outcome.result, "\n".join(outcome.result)


@contextlib.contextmanager
def quiet():
    """Without warnings, and without progress bars."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def too_slow(*_):
    raise TooSlow


def attempted(action):
    """Return the result of an action, or its error, which must be one of this library."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        try:
            found, error = action(), None
        except Exception as caught:
            found, error = None, caught
    foreign = [str(each.message) for each in shown if not issubclass(each.category, UserWarning)]
    assert not foreign, foreign
    if error is not None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        own = isinstance(error, (ValueError, TypeError)) and _is_own(error, last, None, None)
        if not own or len(str(error).split()) < 4:
            raise AssertionError(f"{type(error).__name__} of {last.filename}: {error}") from error
    return found, error


def complaint(use, parameter=None, owner=None, refusals=(ValueError, TypeError)):
    """Return what is wrong with the use of a value, or None.

    A value may be used: then results are finite, and only this library warns. Or it is refused by a
    ValueError or TypeError of this library that names the parameter and its owner; the nystroem
    solver may stand for an estimator. A missing package is an error that says how to install it.
    Without a parameter, any error of this library or of scikit-learn's array checks is accepted.
    """
    signal.setitimer(signal.ITIMER_PROF, SECONDS_EACH)
    try:
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            found = use()
        signal.setitimer(signal.ITIMER_PROF, 0)
        foreign = [each for each in shown if not issubclass(each.category, UserWarning)]
        if foreign:
            return f"{foreign[0].category.__name__}: {foreign[0].message}"
        return None if is_finite(found) else "used, and the result is not finite"
    except refusals as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if _is_own(error, last, parameter, owner):
            return None
        return f"{type(error).__name__} at {last.filename}:{last.lineno}: {str(error)[:200]}"
    except ImportError as error:
        return None if "pip install 'orthodrome[" in str(error) else str(error)
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return f"{type(error).__name__} at {place}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _is_own(error, place, parameter, owner):
    """Return whether an error is of this library and names the parameter and its owner."""
    own = place.filename.startswith(PACKAGE)
    if isinstance(error, OSError):
        return own or bool(error.filename)
    if parameter is None:  # from a raise statement
        own = own or "sklearn/utils/" in place.filename
        return own and (place.line or "").startswith("raise")
    words = str(error)
    named = parameter.lower() in words.lower()
    named = named and any(each in words for each in (owner, "the nystroem solver"))
    return own and (named or "overflow" in words)


def is_finite(answer):
    """Return whether all numbers of a result are finite; other objects are ignored."""
    if isinstance(answer, GramOperator | CrossOperator):
        return is_finite([answer @ np.ones(answer.shape[1]), answer.rows([0])])
    if dataclasses.is_dataclass(answer):
        return is_finite([getattr(answer, field.name) for field in dataclasses.fields(answer)])
    if isinstance(answer, Mapping):
        return is_finite(list(answer.values()))
    if isinstance(answer, list | tuple):
        return all(map(is_finite, answer))
    if isinstance(answer, np.ndarray | np.generic | float | complex):
        array = np.asarray(answer)
        return array.dtype.kind not in "fc" or bool(np.all(np.isfinite(array)))
    return True


def odd_arrays(good):
    """Return odd replacements of an array of numbers, by name."""
    wide = good.astype(np.result_type(good.dtype, np.float64))
    first = (0,) * good.ndim
    return {
        "NaN": _with(wide, first, math.nan),
        "infinite": _with(wide, first, math.inf),
        "zeros": np.zeros_like(wide),
        "negative": -wide,
        "no rows": wide[:0],
        "one row": wide[:1],
        "a row too few": wide[:-1],
        "no columns": wide[..., :0],
        "a column too few": wide[..., :-1],
        "an axis less": wide[0],
        "an axis more": wide[None],
        "its list": wide.tolist(),
        "ragged": [*wide[:-1].tolist(), [1.0]] if good.ndim > 1 else [[1.0], [1.0, 2.0]],
        "texts": good.astype(str),
        "plain objects": np.full(good.shape, object()),
        "None among them": _with(wide.astype(object), first, None),
        "dates": np.zeros(good.shape, dtype="datetime64[D]"),
        "complex": wide + 1j,
        "bool": good > 0,
        "float16": _cast(wide, np.float16),
        "float32": _cast(wide, np.float32),
        "big-endian": wide.astype(wide.dtype.newbyteorder(">")),
        "uint64": np.full(good.shape, 2**63, dtype=np.uint64),
        "1e300": 1e300 * wide,
        "1e-300": 1e-300 * wide,
        "denormal": 1e-320 * wide,
        "sparse": scipy.sparse.csr_array(np.atleast_2d(wide.reshape(len(good), -1))),
        "masked": np.ma.masked_array(wide, wide == wide[first]),
        "read-only": _read_only(wide),
    }


def _with(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


def _cast(array, dtype):
    if array.dtype.kind == "c":
        dtype = {np.float16: np.complex64, np.float32: np.complex64}.get(dtype, np.clongdouble)
    return array.astype(dtype)


def _read_only(array):
    kept = array.copy()
    kept.flags.writeable = False
    return kept
