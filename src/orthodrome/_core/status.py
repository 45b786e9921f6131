"""How an iteration ended, and what to do about it."""

from __future__ import annotations

import enum

from sklearn.exceptions import ConvergenceWarning

from .warn import warn_user


class Status(enum.Enum):
    """The end of an iterative computation; ``advice`` says what helps."""

    CONVERGED = "converged"
    ROUNDING = "stopped where only rounding is left"
    MAX_ITER = "stopped at max_iter"
    CANCELLING = "stopped where large coefficients cancel"
    DIVERGED = "stopped because it diverged"
    FEW_ANCHORS = "stopped at n_anchors"

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached, or no step could come nearer."""
        return not self.advice

    @property
    def advice(self) -> str:
        """What to change for convergence."""
        return _ADVICE.get(self, "")


_ADVICE = {
    Status.MAX_ITER: "Raise max_iter, or loosen tol.",
    Status.CANCELLING: "Give the points as coordinates, or choose another kernel.",
    Status.DIVERGED: "Choose smaller gains, or eta0='auto'.",
    Status.FEW_ANCHORS: "Raise n_anchors, or loosen tol.",
}


def warn_unless_converged(status: Status, what: str, detail: str) -> None:
    """Emit a ConvergenceWarning with cause, detail and advice, unless converged."""
    if not status.converged:
        message = f"{what}: {status.value} ({detail}). {status.advice}"
        warn_user(message, ConvergenceWarning)
