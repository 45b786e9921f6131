"""The base class of the eigensolvers, which checks their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._core.checks import check_choice
from .._core.parameters import Check


@dataclass(frozen=True)
class Solver:
    """Base of the frozen solver objects; `_PARAMETERS` gives the check of each parameter."""

    name: ClassVar[str]
    _PARAMETERS: ClassVar[dict[str, Check]] = {}

    def __post_init__(self) -> None:
        for name, check in self._PARAMETERS.items():
            check(getattr(self, name), name, f"the {self.name} solver")


def check_initial(value: Any, name: str, owner: str) -> None:
    """Raise if a string is not "nystroem"; other values are checked when used."""
    if isinstance(value, str):
        check_choice(value, ("nystroem",), name, owner)
