"""How far each component moves at a sample: the gains of the paper, and automatic ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import Floats

if TYPE_CHECKING:
    from .solver import Hebbian

__all__ = ["BOUND", "GAINS", "Gains", "choose_gains"]

#: KHA, KHA/t, KHA/et and KHA-SMD.
GAINS = ("constant", "t", "et", "smd")

# The automatic gains let a component turn by about so much in its first pass,
_TURNS = 10.0
# and a sample of average length move it by at most so much, before the limit on each step.
_STEP = 2.0
# Of KHA-SMD: the gain of the log-gains, and how far these may go. Without a bound they wandered
# off on some data, and the limit on steps then held all components back for the sake of one.
_META = 0.2
BOUND = 1.5
# Of KHA/t and KHA, which have one gain for all components: parts of what the last one needs. That
# of KHA does not decay and settles the error that is left.
_SHARED = {"t": 0.5, "constant": 0.03}


@dataclass(frozen=True)
class Gains:
    r"""A rule for the gains :math:`D_i = e^{\rho_i} \eta_i` of the r components.

    Attributes
    ----------
    kind : {"constant", "t", "et", "smd"}
        KHA, KHA/t, KHA/et or KHA-SMD.
    eta0 : float or None
        The paper's η0; None for the automatic gains, which come with a limit on every step.
    mu, xi : float
        Of KHA-SMD: the gain of its log-gains, and the decay of their memory.
    log_gain : float
        ρ at the start.
    period : float
        The number of samples l in the decay l / (t + l); infinite for constant gains.
    n_points : int
        l.
    mean_square : float
        The mean of k'(x, x), the scale of the automatic gains.
    """

    kind: str
    eta0: float | None
    mu: float
    xi: float
    log_gain: float
    period: float
    n_points: int
    mean_square: float

    @property
    def meta(self) -> bool:
        """Whether stochastic meta-descent adapts the log-gains."""
        return self.kind == "smd"

    @property
    def automatic(self) -> bool:
        """Whether the library chooses the gains; each step is then limited (clipped)."""
        return self.eta0 is None

    def of_pass(self, eigenvalues: Floats, damping: float) -> Floats:
        """Return η of each component at the start of a pass, before its decay.

        The paper's rules are η0 for KHA and KHA/t and eq. (12) for KHA/et and KHA-SMD.
        """
        if self.eta0 is None:
            return damping * self._automatic(eigenvalues)
        if self.kind in ("constant", "t"):
            return np.full(len(eigenvalues), self.eta0)
        gains = np.zeros(len(eigenvalues))  # a component of no length does not move anyway
        scale = self.eta0 * float(np.linalg.norm(eigenvalues))
        return np.divide(scale, eigenvalues, out=gains, where=eigenvalues > 0)

    def _automatic(self, eigenvalues: Floats) -> Floats:
        """Return min(10 / λ_i, 2 / k_i), k_i the mean square that earlier components leave over.

        KHA/t has one gain for all, and the last component needs the largest; KHA, whose gain does
        not decay, takes a part of it.
        """
        known = np.minimum.accumulate(eigenvalues)  # not yet in order, λ may be over-estimated
        left = self.mean_square - np.concatenate([[0.0], np.cumsum(known)[:-1]]) / self.n_points
        left = np.maximum(left, known / self.n_points)
        caps = np.divide(_STEP, left, out=np.zeros_like(left), where=left > 0)
        gains = np.divide(_TURNS, eigenvalues, out=caps.copy(), where=eigenvalues > 0)
        gains = np.minimum(gains, caps)
        if self.kind in _SHARED:
            gains = np.full_like(gains, _SHARED[self.kind] * min(gains.max(), caps[0]))
        return gains


def choose_gains(settings: Hebbian, operator: Any) -> Gains:
    """Return the rule of a solver's settings for this operator."""
    mean_square = float(np.mean(operator.diagonal(), dtype=np.float64))
    automatic = isinstance(settings.eta0, str)
    mu = settings.mu
    if isinstance(mu, str):
        mu = _META / mean_square if mean_square > 0 else 0.0
    n, kind = operator.shape[0], settings.gain
    return Gains(
        kind=kind,
        eta0=None if automatic else float(settings.eta0),
        mu=float(mu),
        xi=float(settings.xi),
        log_gain=0.0 if automatic or kind != "smd" else 1.0,
        period=math.inf if kind == "constant" else float(n),
        n_points=n,
        mean_square=mean_square,
    )
