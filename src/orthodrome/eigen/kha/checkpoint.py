"""The state of a run in a file: written atomically, read without pickle, identified by its data."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core.arrays import Arrays
from ..._core.checks import check_path
from ..._core.files import refuse_special, write_atomically
from .sweep import PHASES, State

__all__ = ["Checkpoint", "Saved"]

_FORMAT = "orthodrome hebbian checkpoint 1"
_ARRAYS = ("coefficients", "projections", "log_gains", "eigenvalues")
_COUNTS = ("clock", "n_passes", "position")
_PENDING = {*PHASES, "estimate", "clipped"}


@dataclass(frozen=True)
class Saved:
    """The content of a checkpoint: the state now and at the start of its pass, and the history."""

    state: State
    pass_start: State | None
    seed: int
    history: list[dict[str, Any]]
    pending: dict[str, float] = field(default_factory=dict)
    diverged: bool = False  # whether the run ended by that


class Checkpoint:
    """The file of a run.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    fingerprint : str
        Identifies data, kernel and parameters; a file with another one is refused.
    seconds : float or None
        None: write after each pass. Else: write when that many seconds have gone by.
    """

    def __init__(self, path: Any, fingerprint: str, seconds: float | None) -> None:
        self.path = check_path(path, "checkpoint", "hebbian")
        self._fingerprint = fingerprint
        self._seconds = seconds
        self._written = time.monotonic()
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint: there is no folder {self.path.parent} to write to.")
        if not os.access(self.path.parent, os.W_OK):
            raise ValueError(f"checkpoint: the folder {self.path.parent} cannot be written to.")

    def due(self, pass_ended: bool) -> bool:
        """Return whether to write now."""
        if self._seconds is None:
            return pass_ended
        return time.monotonic() - self._written >= self._seconds

    def write(self, saved: Saved) -> None:
        """Replace the file as a whole: if the process is killed, the old one stays."""
        arrays: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        for prefix, state in (("", saved.state), ("pass_start_", saved.pass_start)):
            for name, value in vars(state).items() if state is not None else ():
                kept = arrays if name in _ARRAYS else numbers
                kept[prefix + name] = value
        meta = {
            "format": _FORMAT,
            "fingerprint": self._fingerprint,
            "seed": str(saved.seed),  # more digits than a float of JSON has
            "history": saved.history,
            "pending": saved.pending,
            "diverged": saved.diverged,
            "numbers": numbers,
        }
        text = np.array(json.dumps(meta))
        write_atomically(self.path, lambda file: np.savez(file, meta=text, **arrays))
        self._written = time.monotonic()

    def read(self, shape: tuple[int, int] | None = None) -> Saved | None:
        """Return the content of the file, None if there is none; refuse those of other runs.

        `shape` is that of the coefficients of this run.
        """
        if not self.path.exists():
            return None
        refuse_special(self.path)
        try:
            with open(self.path, "rb") as file:
                archive = Arrays(file, os.fstat(file.fileno()).st_size)
                if "meta" not in archive.names:
                    raise ValueError("it lacks the array meta")
                meta = json.loads(str(archive["meta"]))
                if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
                    raise ValueError(f"its format is not {_FORMAT!r}")
                if meta.get("fingerprint") == self._fingerprint:
                    arrays = {name: archive[name] for name in archive.names if name != "meta"}
                    return _content(meta, arrays, shape)
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint of hebbian ({error}); delete it to "
                "start anew, or name another file."
            ) from error
        raise ValueError(
            f"{self.path} is the checkpoint of another run: its data, kernel or parameters differ. "
            "Delete it to start anew, or name another file."
        )


def _content(meta: dict[str, Any], arrays: dict[str, Any], shape: tuple[int, int] | None) -> Saved:
    """Return the content; raise if parts are missing or inconsistent: compiled loops trust it."""
    try:
        states = {}
        for prefix in ("", "pass_start_") if "pass_start_coefficients" in arrays else ("",):
            parts = {name: arrays[prefix + name] for name in _ARRAYS}
            numbers = {name: meta["numbers"][prefix + name] for name in (*_COUNTS, "damping")}
            states[prefix] = State(**parts, **numbers)
        saved = Saved(
            state=states[""],
            pass_start=states.get("pass_start_"),
            seed=int(meta["seed"]),
            history=meta["history"],
            pending=meta["pending"],
            diverged=meta["diverged"],
        )
    except (LookupError, TypeError) as error:
        raise ValueError(f"it lacks a part: {error}") from error
    if not all(_is_consistent(state, shape) for state in states.values()):
        raise ValueError("its arrays and counts do not go together")
    if not _is_history(saved):
        raise ValueError("its history is not that of a run")
    return saved


def _is_consistent(state: State, shape: tuple[int, int] | None) -> bool:
    """Return whether arrays and counts go with each other, and with the run."""
    found, r = state.coefficients.shape, state.log_gains.size
    counts = [getattr(state, name) for name in _COUNTS]
    return (
        all(getattr(state, name).dtype == np.float64 for name in _ARRAYS)
        and (len(found) == 2 if shape is None else found == shape)
        and found[0] in (r, 2 * r)
        and state.projections.shape == found
        and state.log_gains.shape == state.eigenvalues.shape == (r,)
        and all(type(count) is int and count >= 0 for count in counts)
        and state.position <= found[1]
        and _is_number(state.damping)
    )


def _is_history(saved: Saved) -> bool:
    """Return whether history, times and seed are such as a run writes."""
    entries, pending = saved.history, saved.pending
    return (
        isinstance(entries, list)
        and all(isinstance(entry, dict) for entry in entries)
        and all(isinstance(entry.get("diverged"), bool) for entry in entries)
        and all(_is_number(entry.get("max_residual")) for entry in entries)
        and isinstance(pending, dict)
        and pending.keys() in (set(), _PENDING)
        and all(_is_number(value) for value in pending.values())
        and isinstance(saved.diverged, bool)
        and saved.seed >= 0
    )


def _is_number(value: Any) -> bool:
    """Return whether a value of JSON is a number; NaN and infinity are, in a run that diverged."""
    return type(value) in (int, float)
