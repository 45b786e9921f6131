"""The state of a run in a file: written atomically, read without pickle, refused if not its own."""

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
_NUMBERS = ("clock", "n_passes", "position", "damping")
_COUNTS = _NUMBERS[:3]
_PENDING = {*PHASES, "estimate", "clipped"}


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
        self.path = check_path(path, "checkpoint", "hebbian")
        self._fingerprint = fingerprint
        self._seconds = seconds
        self._written = time.monotonic()
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint: there is no folder {self.path.parent} to write to.")
        if not os.access(self.path.parent, os.W_OK):
            raise ValueError(f"checkpoint: the folder {self.path.parent} cannot be written to.")

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
        words = np.array(json.dumps(meta))
        write_atomically(self.path, lambda file: np.savez(file, meta=words, **arrays))
        self._written = time.monotonic()

    def read(self, shape: tuple[int, int] | None = None) -> Saved | None:
        """Return what the file holds, None if there is none; refuse what is not of this run.

        `shape` is that of the coefficients of this run, where it is known.
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
                    return _put_together(meta, arrays, shape)
        except (OSError, ValueError, RecursionError) as error:
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


def _put_together(
    meta: dict[str, Any], arrays: dict[str, Any], shape: tuple[int, int] | None
) -> Saved:
    """Return what was written; raise where parts are missing or do not belong together."""
    started = "pass_start_coefficients" in arrays
    try:
        saved = Saved(
            state=_state(meta, arrays, ""),
            pass_start=_state(meta, arrays, "pass_start_") if started else None,
            seed=int(meta["seed"]),
            history=meta["history"],
            pending=meta["pending"],
            diverged=meta["diverged"],
        )
    except (LookupError, TypeError) as error:
        raise ValueError(f"it lacks a part: {error}") from error
    for state in (saved.state, saved.pass_start):
        if state is not None:
            _check_state(state, shape)
    _check_story(saved)
    return saved


def _state(meta: dict[str, Any], arrays: dict[str, Any], prefix: str) -> State:
    parts: dict[str, Any] = {name: arrays[prefix + name] for name in _ARRAYS}
    if any(part.dtype != np.float64 for part in parts.values()):
        raise ValueError("its arrays are not of 64-bit numbers")
    parts |= {name: meta["numbers"][prefix + name] for name in _NUMBERS}
    return State(**parts)


def _check_state(state: State, shape: tuple[int, int] | None) -> None:
    """Raise unless the arrays go with each other, and with the run."""
    coefficients, vectors = state.coefficients, (state.log_gains, state.eigenvalues)
    fits = coefficients.ndim == 2 and coefficients.shape == state.projections.shape
    fits = fits and (shape is None or coefficients.shape == shape)
    fits = fits and all(vector.ndim == 1 for vector in vectors)
    fits = fits and len(state.eigenvalues) == len(state.log_gains)
    if not fits or len(coefficients) not in (len(state.log_gains), 2 * len(state.log_gains)):
        raise ValueError("the shapes of its arrays do not go together")
    counts = [getattr(state, name) for name in _COUNTS]
    if any(type(count) is not int or count < 0 for count in counts):
        raise ValueError("its counts of samples and passes are none")
    if state.position > coefficients.shape[1] or not _is_number(state.damping):
        raise ValueError("its counts of samples and passes are none")


def _check_story(saved: Saved) -> None:
    """Raise unless history, times and seed are such as a run writes."""
    entries = saved.history if isinstance(saved.history, list) else [None]
    pending = saved.pending if isinstance(saved.pending, dict) else {"": 0.0}
    if (
        not all(isinstance(entry, dict) and _is_entry(entry) for entry in entries)
        or (pending and pending.keys() != _PENDING)
        or not all(_is_number(value) for value in pending.values())
        or not isinstance(saved.diverged, bool)
        or saved.seed < 0
    ):
        raise ValueError("its history is not that of a run")


def _is_entry(entry: dict[str, Any]) -> bool:
    return isinstance(entry.get("diverged"), bool) and _is_number(entry.get("max_residual"))


def _is_number(value: Any) -> bool:
    """Whether a value of JSON is a number; in a run that diverged NaN and infinity are too."""
    return type(value) in (int, float)
