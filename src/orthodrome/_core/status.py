"""How an iteration ended, in a form that says what to do next."""

from __future__ import annotations

import enum

from sklearn.exceptions import ConvergenceWarning

from .warn import warn_user

__all__ = ["Status", "warn_unless_converged"]


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
        """Whether the requested tolerance was reached, or no step could come nearer."""
        return self in (Status.CONVERGED, Status.ROUNDING)

    @property
    def advice(self) -> str:
        """What a caller can do about it."""
        return {
            Status.CONVERGED: "",
            Status.ROUNDING: "",
            Status.MAX_ITER: "Raise max_iter, or loosen tol.",
            Status.CANCELLING: "Give the points as coordinates, or choose another kernel.",
            Status.DIVERGED: "Choose smaller gains, or eta0='auto'.",
            Status.FEW_ANCHORS: "Raise n_anchors, or loosen tol.",
        }[self]


def warn_unless_converged(status: Status, what: str, detail: str) -> None:
    """Emit one ConvergenceWarning with cause, figures and advice, unless converged."""
    if not status.converged:
        warn_user(
            f"{what}: {status.value} ({detail}). {status.advice}",
            ConvergenceWarning,
        )
