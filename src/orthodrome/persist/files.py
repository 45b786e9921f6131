"""Saving a model, and loading what was saved."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._core.checks import check_flag, check_path
from .._core.files import write_atomically
from .allowed import ARRAYS, OBJECTS, SCALARS, SPARSE, names_of
from .archive import check, pack
from .plain import plain_copy
from .shapes import check_parts

__all__ = ["load", "save"]

_ZIP = b"PK\x03\x04"
_TRUSTED = sorted(names_of(OBJECTS | ARRAYS | SCALARS | SPARSE))


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Save an estimator, a denoiser, a kernel or a pipeline to a file that holds data and no code.

    The file is written whole or not at all. It holds the parameters and everything that was
    fitted, which for kernel methods means training rows. What belongs to the session is left out:
    callbacks, progress bars, and the state from which a warm start would go on.

    Parameters
    ----------
    model : estimator, denoiser, kernel, solver or pipeline
        An object of orthodrome, fitted or not, or a scikit-learn ``Pipeline`` of scalers and an
        estimator of orthodrome.
    path : str or path
        The file, by custom ``*.orthodrome``; one that is there is replaced.
    notes : dict, optional
        What to remember beside the model, such as the names of columns: text, numbers, and lists
        and dictionaries of them.

    Raises
    ------
    ValueError
        If the model holds what could not be loaded: a callable kernel, the function of
        :class:`~orthodrome.kernels.Embedded`, a random generator, an object of another class.
        Nothing is written then.
    ImportError
        Without skops: ``pip install 'orthodrome[persist]'``.

    See Also
    --------
    load : the way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from orthodrome import KernelPCA, load, save
    >>> model = KernelPCA(1, kernel="linear").fit([[0.0], [1.0], [3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "line.orthodrome")
    ...     again = load(Path(folder) / "line.orthodrome")
    >>> again.transform([[3.0]]) == model.transform([[3.0]])
    array([[ True]])
    """
    _require_skops()
    target = check_path(path, "path", "save")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is not a folder: make it before saving there.")
    write_atomically(target, packed(model, notes))


def packed(model: Any, notes: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of the file that :func:`save` writes."""
    skops = _require_skops()
    # plain_copy names what is wrong with an estimator of another class
    if type(model) not in OBJECTS and not isinstance(model, BaseEstimator):
        raise ValueError(
            "save takes an estimator, a denoiser, a kernel, a solver or a pipeline; got "
            f"{type(model).__name__}."
        )
    data = pack(skops.dumps(plain_copy(model)), {} if notes is None else notes)
    check(data)  # what is written can be loaded
    return data


def load(path: str | os.PathLike[str], *, with_notes: bool = False) -> Any:
    """Load a model that :func:`save` has written; nothing in the file is run.

    The file is checked from end to end before any object is made: its format and version, sizes,
    digests, and the name of every class against an exact list. Then the parts of the model are
    checked against each other: kinds, shapes, ranges of indices, and that numbers are finite. Other
    wrong numbers are not detected; who can write the file can also write those into it.

    Parameters
    ----------
    path : str or path
        The file.
    with_notes : bool, default=False
        Whether to return the notes as well.

    Returns
    -------
    estimator, or tuple of estimator and dict
        The model, which predicts as the one that was saved; with `with_notes` the notes too.

    Raises
    ------
    ValueError
        If the file is something else, damaged, changed, or written by a newer version, or if parts
        of the model are missing or do not belong together; the message names the file and the
        reason.
    FileNotFoundError, PermissionError, IsADirectoryError
        If it cannot be read.
    ImportError
        Without skops: ``pip install 'orthodrome[persist]'``.

    See Also
    --------
    save : writes the file, with an example.
    """
    skops = _require_skops()
    check_flag(with_notes, "with_notes", "load")
    data = _read(check_path(path, "path", "load"))
    try:
        data, notes = check(data)
        model = skops.loads(data, trusted=_TRUSTED)
        plain_copy(model)  # load refuses all that save refuses
        check_parts(model)
    except (MemoryError, Warning):  # of the machine, and of who made warnings errors
        raise
    except Exception as error:  # of a hostile file anything may come
        known = type(error) is ValueError
        reason = str(error) if known else f"it is damaged ({type(error).__name__}: {error})"
        raise ValueError(f"{path} cannot be loaded as a model: {reason.rstrip('.')}.") from error
    return (model, notes) if with_notes else model


def _read(path: Path) -> bytes:
    """Return a file that begins like a model file, without reading one that does not."""
    with open(path, "rb") as file:
        start = file.read(len(_ZIP))
        if start != _ZIP:
            what = "is empty" if not start else "is no model file of orthodrome"
            if start[:1] == b"\x80":
                what = "looks like a pickle, which can run anything; it is not loaded"
            raise ValueError(
                f"{path} {what}. A model file is written by orthodrome.save(model, path)."
            )
        return start + file.read()


def _require_skops() -> Any:
    """Import and return skops' way of writing models, or say how to install it."""
    try:
        return importlib.import_module("skops.io")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "skops":
            raise
        raise ImportError(
            "Model files need skops: pip install 'orthodrome[persist]'", name="skops"
        ) from error
