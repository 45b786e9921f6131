"""Checkpoint files of Hebbian runs: written atomically, read without pickle."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._core.arrays import Arrays
from ..._core.checks import check_path
from ..._core.files import check_regular_file, write_atomically
from .sweep import PHASES, State

_FORMAT = "orthodrome hebbian checkpoint 1"
_ARRAYS = ("coefficients", "projections", "log_gains", "eigenvalues")
_COUNTS = ("clock", "n_passes", "position")
_PREFIXES = {"state": "", "pass_start": "pass_start_"}


@dataclass(frozen=True)
class CheckpointData:
    """The content of a checkpoint.

    Attributes
    ----------
    state, pass_start : State
        The current state, and the state at the start of its pass (None between passes).
    seed : int
        Seed of the orders of visits.
    history : list of dict
        One entry per pass.
    pending : dict
        Seconds and number of clipped steps of the unfinished pass.
    diverged : bool
        Whether the run ended because it diverged.
    """

    state: State
    pass_start: State | None
    seed: int
    history: list[dict[str, Any]]
    pending: dict[str, float] = field(default_factory=dict)
    diverged: bool = False


class Checkpoint:
    """The checkpoint file of a run.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    fingerprint : str
        Digest of data, kernel and parameters; a file with another one raises a ValueError.
    seconds : float or None
        Minimum time between two writes; None writes after each pass.
    """

    def __init__(self, path: Any, fingerprint: str, seconds: float | None) -> None:
        self.path = check_path(path, "checkpoint", "hebbian")
        self._fingerprint, self._seconds = fingerprint, seconds
        self._written = time.monotonic()
        folder = self.path.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ValueError(f"checkpoint: {folder} is missing or has no write access.")

    def due(self, pass_ended: bool) -> bool:
        """Return whether to write now."""
        if self._seconds is None:
            return pass_ended
        return time.monotonic() - self._written >= self._seconds

    def write(self, data: CheckpointData) -> None:
        """Replace the file atomically; if the process is killed, the old file is kept."""
        arrays: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        for which, prefix in _PREFIXES.items():
            state = getattr(data, which)
            for name, value in vars(state).items() if state is not None else ():
                (arrays if name in _ARRAYS else numbers)[prefix + name] = value
        meta = {
            "format": _FORMAT,
            "fingerprint": self._fingerprint,
            "seed": str(data.seed),  # an integer with more digits than a JSON number keeps
            "history": data.history,
            "pending": data.pending,
            "diverged": data.diverged,
            "numbers": numbers,
        }
        text = np.array(json.dumps(meta))
        write_atomically(self.path, lambda file: np.savez(file, meta=text, **arrays))
        self._written = time.monotonic()

    def read(self, shape: tuple[int, int] | None = None) -> CheckpointData | None:
        """Return the content of the file, or None if there is no file.

        A file from another run, or with coefficients of another shape, raises a ValueError.
        """
        if not self.path.exists():
            return None
        check_regular_file(self.path)
        try:
            with open(self.path, "rb") as file:
                archive = Arrays(file, os.fstat(file.fileno()).st_size)
                meta = json.loads(str(archive["meta"])) if "meta" in archive.names else None
                if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
                    raise ValueError(f"its format is not {_FORMAT!r}")
                if meta.get("fingerprint") == self._fingerprint:
                    return _content(meta, archive, shape)
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{self.path} cannot be read as a checkpoint of hebbian ({error}). Delete it to "
                "start over, or choose another file."
            ) from error
        raise ValueError(
            f"{self.path} is the checkpoint of another run: its data, kernel or parameters differ. "
            "Delete it to start over, or choose another file."
        )


def _content(
    meta: dict[str, Any], archive: Arrays, shape: tuple[int, int] | None
) -> CheckpointData:
    """Return the content; raise if entries are missing or inconsistent."""
    # compiled loops rely on the shapes and do not check them
    entries: dict[str, Any] = {"state": None, "pass_start": None}
    try:
        for which, prefix in _PREFIXES.items():
            if which == "state" or prefix + "coefficients" in archive.names:
                arrays: Any = {name: archive[prefix + name] for name in _ARRAYS}
                numbers = {name: meta["numbers"][prefix + name] for name in (*_COUNTS, "damping")}
                entries[which] = State(**arrays, **numbers)
        entries |= {name: meta[name] for name in ("history", "pending", "diverged")}
        data = CheckpointData(**entries, seed=int(meta["seed"]))
    except (LookupError, TypeError) as error:
        raise ValueError(f"an entry is missing: {error}") from error
    states = [state for state in (data.state, data.pass_start) if state is not None]
    if not all(_is_consistent(state, shape) for state in states) or not _is_history(data):
        raise ValueError("its arrays, counts or history are inconsistent")
    return data


def _is_consistent(state: State, shape: tuple[int, int] | None) -> bool:
    """Return whether arrays and counts match each other and the shape of the run."""
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


def _is_history(data: CheckpointData) -> bool:
    """Return whether history, pending values and seed have the types that a run writes."""
    entries, pending = data.history, data.pending
    return (
        isinstance(entries, list)
        and all(isinstance(entry, dict) for entry in entries)
        and all(isinstance(entry.get("diverged"), bool) for entry in entries)
        and all(_is_number(entry.get("max_residual")) for entry in entries)
        and isinstance(pending, dict)
        and pending.keys() in (set(), {*PHASES, "estimate", "clipped"})
        and all(map(_is_number, pending.values()))
        and isinstance(data.diverged, bool)
        and data.seed >= 0
    )


def _is_number(value: Any) -> bool:
    """Return whether a JSON value is a number; NaN and infinity occur if a run diverges."""
    return type(value) in (int, float)
