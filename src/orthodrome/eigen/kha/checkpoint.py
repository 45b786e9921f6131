"""Checkpoint files of Hebbian runs: written atomically, read without pickle."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._core.arrays import Arrays
from ..._core.checks import check_path
from ..._core.files import check_regular_file, write_atomically
from .sweep import State

_FORMAT = "orthodrome hebbian checkpoint 2"
_ARRAYS = ("coefficients", "projections", "log_gains", "eigenvalues")
_COUNTS = ("clock", "n_passes")


@dataclass
class Record:
    """The state of a run between two passes, as stored in a checkpoint.

    Attributes
    ----------
    state : State
        The current state.
    seed : int
        Seed of the orders of visits.
    history : list of dict
        One entry per pass.
    diverged : bool
        Whether the run ended because it diverged.
    """

    state: State
    seed: int
    history: list[dict[str, Any]]
    diverged: bool = False


class Checkpoint:
    """The checkpoint file of a run.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    fingerprint : str
        Digest of data, kernel and parameters. A file with another digest raises a ValueError.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        self.path = check_path(path, "checkpoint", "hebbian")
        self._fingerprint = fingerprint
        folder = self.path.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ValueError(f"checkpoint: {folder} is missing or has no write access.")

    def write(self, record: Record) -> None:
        """Replace the file atomically; if the process is killed, the old file is kept."""
        numbers = dict(vars(record.state))
        arrays = {name: numbers.pop(name) for name in _ARRAYS}
        meta = {
            "format": _FORMAT,
            "fingerprint": self._fingerprint,
            "seed": str(record.seed),  # JSON readers may round large integers
            "history": record.history,
            "diverged": record.diverged,
            "numbers": numbers,
        }
        text = np.array(json.dumps(meta))
        write_atomically(self.path, lambda file: np.savez(file, meta=text, **arrays))

    def read(self, shape: tuple[int, int]) -> Record | None:
        """Return the content of the file, or None if there is no file.

        A file from another run, or with coefficients of another shape, raises a ValueError.
        """
        if not self.path.exists():
            return None
        check_regular_file(self.path)
        try:
            with open(self.path, "rb") as file:
                archive = Arrays(file, os.fstat(file.fileno()).st_size)
                record = self._parse(archive, shape)
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint of hebbian ({error}). Delete it to "
                "start over, or choose another file."
            ) from error
        if record is None:
            raise ValueError(
                f"{self.path} is the checkpoint of another run: its data, kernel or parameters "
                "differ. Delete it to start over, or choose another file."
            )
        return record

    def _parse(self, archive: Arrays, shape: tuple[int, int]) -> Record | None:
        """Return the content, or None if the file is from another run."""
        meta: Any = json.loads(str(archive["meta"]))
        if meta["format"] != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT!r}")
        if meta["fingerprint"] != self._fingerprint:
            return None
        arrays: Any = {name: archive[name] for name in _ARRAYS}
        state = State(**arrays, **meta["numbers"])
        record = Record(state, int(meta["seed"]), list(meta["history"]), meta["diverged"])
        if not _is_consistent(record, shape):
            raise ValueError("its arrays, counts or history are inconsistent")
        return record


def _is_consistent(record: Record, shape: tuple[int, int]) -> bool:
    """Return whether all values have the right types, and all arrays the right shapes."""
    # compiled loops rely on the shapes and do not check them
    state, r = record.state, record.state.log_gains.size
    counts = [getattr(state, name) for name in _COUNTS]
    # NaN and infinity occur if a run diverges
    numbers = [state.damping, *(entry["max_residual"] for entry in record.history)]
    flags = [record.diverged, *(entry["diverged"] for entry in record.history)]
    return (
        all(getattr(state, name).dtype == np.float64 for name in _ARRAYS)
        and state.coefficients.shape == state.projections.shape == shape
        and shape[0] in (r, 2 * r)
        and state.log_gains.shape == state.eigenvalues.shape == (r,)
        and all(type(count) is int and count >= 0 for count in (record.seed, *counts))
        and all(type(number) in (int, float) for number in numbers)
        and all(type(flag) is bool for flag in flags)
    )
