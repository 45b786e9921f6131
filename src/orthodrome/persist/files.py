"""Save and load models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._core.checks import check_flag, check_path
from .._core.files import write_atomically
from .archive import pack, unpack
from .parts import check_parts

_ZIP = b"PK\x03\x04"


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Save a model to a file that holds data and no code.

    The file is written atomically. It holds the parameters and all fitted attributes, which for
    kernel methods include training rows. Callbacks, progress bars and the state of warm starts are
    not saved.

    Parameters
    ----------
    model : estimator, denoiser, kernel, solver or pipeline
        An object of orthodrome, fitted or not, or a scikit-learn ``Pipeline`` of scalers and an
        estimator of orthodrome.
    path : str or path
        The file, usually named ``*.orthodrome``. An existing file is replaced.
    notes : dict, optional
        Data to store with the model, such as column names: strings, numbers, and lists and
        dictionaries of them.

    Raises
    ------
    ValueError
        If the model holds a value that cannot be saved: a callable kernel, the function of
        :class:`~orthodrome.kernels.Embedded`, a random generator, or an object of an unsupported
        class. No file is written.

    See Also
    --------
    load : Load the file.

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
    target = check_path(path, "path", "save")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is not a folder. Create it first.")
    write_atomically(target, pack(model, notes))


def load(path: str | os.PathLike[str], *, with_notes: bool = False) -> Any:
    """Load a model from a file written by :func:`save`; no code in the file is run.

    Format, version, sizes, hashes and array headers are checked before use, and only listed classes
    are accepted. Then the fitted attributes are checked for consistency: types, shapes, ranges of
    indices, and finite numbers. Other wrong numbers are not detected, so do not rely on predictions
    of models from untrusted sources.

    Parameters
    ----------
    path : str or path
        The file.
    with_notes : bool, default=False
        Whether to return the notes as well.

    Returns
    -------
    estimator, or tuple of estimator and dict
        The model, with the same predictions as the saved one; if `with_notes`, also the notes.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged or changed, or was written by a newer version,
        or if fitted attributes are missing or inconsistent. The message names the file and the
        reason.
    FileNotFoundError, PermissionError, IsADirectoryError
        If the file cannot be read.

    See Also
    --------
    save : Write the file; with an example.
    """
    check_flag(with_notes, "with_notes", "load")
    data = _read(check_path(path, "path", "load"))
    try:
        model, notes = unpack(data)
        check_parts(model)
    except (MemoryError, Warning):  # not caused by the file
        raise
    except Exception as error:  # a hostile file may cause any error
        known = type(error) is ValueError
        reason = str(error) if known else f"it is damaged ({type(error).__name__}: {error})"
        raise ValueError(f"{path} cannot be loaded as a model: {reason.rstrip('.')}.") from error
    return (model, notes) if with_notes else model


def _read(path: Path) -> bytes:
    """Return the content of a file; raise a ValueError unless it begins like a model file."""
    with open(path, "rb") as file:
        start = file.read(len(_ZIP))
        if start != _ZIP:
            what = "is empty" if not start else "is not a model file of orthodrome"
            if start[:1] == b"\x80":
                what = "looks like a pickle, which is not loaded because it could run code"
            raise ValueError(
                f"{path} {what}. Use orthodrome.save(model, path) to write a model file."
            )
        return start + file.read()
