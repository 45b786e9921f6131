"""The state of a run in a file: written atomically, read without pickle, refused if not its own."""

from __future__ import annotations

import json
import os
import time
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .sweep import State

__all__ = ["Checkpoint", "Saved"]

_FORMAT = "orthodrome hebbian checkpoint 1"
_ARRAYS = ("coefficients", "projections", "log_gains", "eigenvalues")
_NUMBERS = ("clock", "n_passes", "position", "damping")
# What zipfile, zlib, NumPy and JSON raise on bytes that are not what they look for.
_UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds: the state, that at the start of its pass, and the story so far."""

    state: State
    pass_start: State | None
    seed: int
    history: list[dict[str, Any]]
    pending: dict[str, float] = field(default_factory=dict)
    diverged: bool = False  # and the run ended by that


class Checkpoint:
    """A file that a run is kept in.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    fingerprint : str
        Of data, kernel and parameters; a file with another one is refused.
    seconds : float or None
        None: write after each pass. Else: write when that many seconds have gone by.
    """

    def __init__(self, path: Any, fingerprint: str, seconds: float | None) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ValueError(f"checkpoint must be the name of a file; got {path!r}.")
        self.path = Path(path)
        self._fingerprint = fingerprint
        self._seconds = seconds
        self._written = time.monotonic()
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint: there is no folder {self.path.parent} to write to.")

    def due(self, pass_ended: bool) -> bool:
        """Whether to write now."""
        if self._seconds is None:
            return pass_ended
        return time.monotonic() - self._written >= self._seconds

    def write(self, saved: Saved) -> None:
        """Replace the file as a whole: whoever is killed meanwhile leaves the old one."""
        arrays, numbers = _taken_apart(saved.state, "")
        if saved.pass_start is not None:
            more = _taken_apart(saved.pass_start, "pass_start_")
            arrays, numbers = arrays | more[0], numbers | more[1]
        meta = {
            "format": _FORMAT,
            "fingerprint": self._fingerprint,
            "seed": str(saved.seed),  # more digits than a float of JSON has
            "history": saved.history,
            "pending": saved.pending,
            "diverged": saved.diverged,
            "numbers": numbers,
        }
        temporary = self.path.with_name(f"{self.path.name}.tmp")  # what a kill leaves is reused
        try:
            with open(temporary, "wb") as file:
                np.savez(file, meta=np.array(json.dumps(meta)), **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
        self._written = time.monotonic()

    def read(self) -> Saved | None:
        """Return what the file holds, None if there is none; refuse what is not of this run."""
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                meta = json.loads(str(file["meta"]))
                if meta["format"] != _FORMAT:
                    raise ValueError(meta["format"])
                arrays = {name: file[name] for name in file.files if name != "meta"}
            if meta["fingerprint"] == self._fingerprint:
                return _put_together(meta, arrays)
        except _UNREADABLE as error:
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint of hebbian ({error}); delete it to "
                "start anew, or name another file."
            ) from error
        raise ValueError(
            f"{self.path} is the checkpoint of another run: its data, kernel or parameters differ. "
            "Delete it to start anew, or name another file."
        )


def _taken_apart(state: State, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = {prefix + name: getattr(state, name) for name in _ARRAYS}
    return arrays, {prefix + name: getattr(state, name) for name in _NUMBERS}


def _state(meta: dict[str, Any], arrays: dict[str, Any], prefix: str) -> State:
    parts: dict[str, Any] = {
        name: np.array(arrays[prefix + name], dtype=np.float64) for name in _ARRAYS
    }
    parts |= {name: meta["numbers"][prefix + name] for name in _NUMBERS}
    return State(**parts)


def _put_together(meta: dict[str, Any], arrays: dict[str, Any]) -> Saved:
    started = "pass_start_coefficients" in arrays
    return Saved(
        state=_state(meta, arrays, ""),
        pass_start=_state(meta, arrays, "pass_start_") if started else None,
        seed=int(meta["seed"]),
        history=meta["history"],
        pending=meta["pending"],
        diverged=meta["diverged"],
    )
