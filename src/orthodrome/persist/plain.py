"""A model as plain data: what a file can hold, or a reason why it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline

from .._core.kinds import is_dask_array
from ..eigen import Hebbian
from ..kernels import Embedded, FromCallable
from .allowed import OBJECTS, SCALARS, SPARSE, is_plain

__all__ = ["plain_copy"]

_PRIMITIVES = (type(None), bool, int, float, str)

# What scikit-learn's callbacks leave on an estimator, and what a warm start goes on from: of the
# session that fitted the model, not of the model.
_OF_THE_SESSION = frozenset(
    (
        "_skl_callbacks",
        "_skl_callbacks_to_teardown",
        "_callback_fit_ctx",
        "_parent_callback_ctx",
        "_solution_",
    )
)

# What a fit to a dask array has for each row, in dask arrays of their own: left out, as it can be
# computed from the rows again. Weights are needed no more.
_OF_ROWS = {"embedding_", "eigenvectors_", "mean_cosines_", "labels_"}

# Parameters that name files which a later fit would read.
_NOT_SET = {Pipeline: "memory", Hebbian: "checkpoint"}


def plain_copy(model: Any) -> Any:
    """Return a copy of a model that shares its arrays and holds nothing but data.

    Callbacks and the state of warm starts are left out, and so is what there is for each row of a
    dask array; memory-mapped arrays are seen as arrays. Arrays get native byte order, and float16
    becomes float32.

    Raises
    ------
    ValueError
        Where something is no data; the message says where it sits and what to do.
    """
    try:
        return _Copier().copy(model, type(model).__name__)
    except RecursionError as error:
        raise ValueError(
            f"{type(model).__name__} refers to itself, or is nested too deeply for a model file."
        ) from error


class _Copier:
    """Copies each object once, so that what was shared stays shared."""

    def __init__(self) -> None:
        # the originals too: an object that is gone might leave its id to another
        self._copied: dict[int, tuple[Any, Any]] = {}

    def copy(self, value: Any, where: str) -> Any:
        if type(value) in _PRIMITIVES or type(value) in SCALARS:
            return value
        if id(value) not in self._copied:
            self._copied[id(value)] = value, self._made(value, where)
        return self._copied[id(value)][1]

    def _made(self, value: Any, where: str) -> Any:
        kind = type(value)
        if kind in (list, tuple):
            return kind([self.copy(item, f"{where}[{i}]") for i, item in enumerate(value)])
        if kind is dict:
            _check_keys(value, where)
            return {key: self.copy(item, f"{where}[{key!r}]") for key, item in value.items()}
        if kind in (np.ndarray, np.memmap):
            return _plain_array(np.asarray(value), where)
        if kind in SPARSE:
            return _plain_sparse(value, where)
        if kind in OBJECTS:
            return self._object(value, where)
        raise ValueError(_refusal(value, where))

    def _object(self, value: Any, where: str) -> Any:
        kind = type(value)
        unset = _NOT_SET.get(kind)
        if unset is not None and getattr(value, unset, None) is not None:
            raise ValueError(
                f"{where}.{unset} is {getattr(value, unset)!r}, a place whose files a later fit "
                f"would read; a model file does not carry it. Set {unset}=None."
            )
        made: Any = object.__new__(kind)
        for name, item in vars(value).items():
            if is_dask_array(item) and name in _OF_ROWS:
                continue
            if is_dask_array(item) and name == "sample_weight_":
                item = None
            if name not in _OF_THE_SESSION:
                made.__dict__[name] = self.copy(item, f"{where}.{name}")
        return made


def _check_keys(value: dict[Any, Any], where: str) -> None:
    for key in value:
        if type(key) not in (str, int):
            raise ValueError(
                f"{where} has the key {key!r} of type {type(key).__name__}; a model file holds "
                "dictionaries whose keys are str or int."
            )


def _plain_array(array: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    if array.dtype != object:
        return _plain_numbers(array, where)
    if array.ndim != 1 or any(type(item) not in _PRIMITIVES for item in array):
        raise ValueError(
            f"{where} is an array of objects; a model file holds such arrays only where they are "
            "one-dimensional lists of text and numbers, such as names of columns."
        )
    return array


def _plain_numbers(array: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    """Return an array of numbers or text with a dtype that a model file holds."""
    dtype = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype.newbyteorder("=")
    if not is_plain(dtype):
        raise ValueError(
            f"{where} is an array of dtype {array.dtype}; a model file holds text, integers, and "
            "real and complex numbers of single and double precision."
        )
    return array.astype(dtype, copy=False)


def _plain_sparse(matrix: Any, where: str) -> Any:
    parts = (_plain_numbers(part, where) for part in (matrix.data, matrix.indices, matrix.indptr))
    return type(matrix)(tuple(parts), shape=matrix.shape)


def _refusal(value: Any, where: str) -> str:
    """Say why a value cannot be in a model file, and what to do about it."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, (Embedded, FromCallable)):
        return (
            f"{where} is {kind.__name__}, which calls a function, and a model file holds no "
            "functions. Fit with a kernel of orthodrome.kernels or kernel='precomputed', or "
            "pickle the model for yourself."
        )
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return (
            f"{where} is a random generator, which a model file does not hold. Set a number "
            "instead, such as random_state=0: the fitted values stay as they are."
        )
    if callable(value) and not hasattr(value, "get_params"):
        return (
            f"{where} is {getattr(value, '__name__', name)!r}, a function or class, and a model "
            "file holds data alone. Use a named option, or pickle the model for yourself."
        )
    if is_dask_array(value):
        return (
            f"{where} is a dask array, whose rows are elsewhere; a model file holds its data. Fit "
            "with solver='nystroem', which keeps anchors alone, or pickle the model for yourself."
        )
    if scipy.sparse.issparse(value):
        return f"{where} is of the sparse format {value.format}; a model file holds CSR: .tocsr()."
    return (
        f"{where} is of class {name}, which is not among those that a model file may hold: "
        "orthodrome's own estimators, denoisers, kernels and solvers (not subclasses of them), and "
        "scikit-learn's Pipeline and scalers. Pickle the model for yourself."
    )
