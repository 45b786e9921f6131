"""Why an iteration stopped, and what to do about it."""

from __future__ import annotations

import enum

from sklearn.exceptions import ConvergenceWarning

from .warn import warn_user


class Status(enum.Enum):
    """Reason why an iteration stopped, with ``advice`` on what to change."""

    CONVERGED = "converged"
    ROUNDING = "stopped at the level of rounding errors"
    MAX_ITER = "stopped at max_iter"
    CANCELLING = "stopped because large coefficients cancel"
    DIVERGED = "stopped because it diverged"
    FEW_ANCHORS = "stopped at n_anchors"

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached, or rounding errors prevent further progress."""
        return not self.advice

    @property
    def advice(self) -> str:
        """What to change so that the iteration converges; empty if it has converged."""
        return _ADVICE.get(self, "")


_ADVICE = {
    Status.MAX_ITER: "Raise max_iter, or loosen tol.",
    Status.CANCELLING: "Pass the points as coordinates, or choose another kernel.",
    Status.DIVERGED: "Choose smaller gains, or eta0='auto'.",
    Status.FEW_ANCHORS: "Raise n_anchors, or loosen tol.",
}


class Outcome:
    """Base class of results with the status of an iteration."""

    status: Status

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached, or only rounding errors remained."""
        return self.status.converged


def warn_unless_converged(
    status: Status, what: str, detail: str, advice: str | None = None
) -> None:
    """Emit a ConvergenceWarning with cause, detail and advice, unless converged.

    `advice` replaces that of the status.
    """
    if not status.converged:
        message = f"{what}: {status.value} ({detail}). {advice or status.advice}"
        warn_user(message, ConvergenceWarning)
