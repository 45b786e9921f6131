"""Gains of the Kernel Hebbian Algorithm: those of the paper, and automatic ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.types import Floats

if TYPE_CHECKING:
    from .solver import Hebbian

#: KHA, KHA/t, KHA/et and KHA-SMD.
GAINS = ("constant", "t", "et", "smd")

# Limits of automatic gains: how far a component may rotate in its first pass,
_ROTATION = 10.0
# and how far a sample of average length may move it, before steps are limited.
_STEP = 2.0
# KHA-SMD: the gain of the log-gains, and their bound. Without a bound they diverged on some data,
# and the limit on steps then slowed down all components because of one.
_META_GAIN = 0.2
BOUND = 1.5
# KHA/t and KHA use one gain for all components: this fraction of the gain of the last one. The gain
# of KHA does not decay, so it determines the final error.
_COMMON_FRACTION = {"t": 0.5, "constant": 0.03}


class Gains:
    r"""Gains :math:`D_i = e^{\rho_i} \eta_i` of the components, from the settings of a solver.

    Attributes
    ----------
    kind : {"constant", "t", "et", "smd"}
        KHA, KHA/t, KHA/et or KHA-SMD.
    eta0 : float or None
        The paper's η0; None for automatic gains, for which each step is limited.
    mu, xi : float
        KHA-SMD: the gain of the log-gains, and the decay of their memory.
    log_gain : float
        Initial ρ.
    period : float
        Number of samples l in the decay l / (t + l); infinite for constant gains.
    n_points : int
        l.
    mean_square : float
        The mean of k'(x, x), the scale of the automatic gains.
    """

    def __init__(self, settings: Hebbian, operator: Any) -> None:
        self.kind, self.xi, self.n_points = settings.gain, float(settings.xi), operator.shape[0]
        self.mean_square = float(np.mean(operator.diagonal(), dtype=np.float64))
        self.eta0 = None if isinstance(settings.eta0, str) else float(settings.eta0)
        if isinstance(settings.mu, str):
            self.mu = _META_GAIN / self.mean_square if self.mean_square > 0 else 0.0
        else:
            self.mu = float(settings.mu)
        self.log_gain = 1.0 if self.meta and not self.automatic else 0.0
        self.period = math.inf if self.kind == "constant" else float(self.n_points)

    @property
    def meta(self) -> bool:
        """Whether stochastic meta-descent adapts the log-gains."""
        return self.kind == "smd"

    @property
    def automatic(self) -> bool:
        """Whether the library chooses the gains; each step is then limited (clipped)."""
        return self.eta0 is None

    def of_pass(self, eigenvalues: Floats, damping: float) -> Floats:
        """Return η of each component at the start of a pass, before decay.

        The paper's rules are η0 for KHA and KHA/t and eq. (12) for KHA/et and KHA-SMD.
        """
        if self.eta0 is None:
            return damping * self._automatic(eigenvalues)
        if self.kind in ("constant", "t"):
            return np.full(len(eigenvalues), self.eta0)
        gains = np.zeros(len(eigenvalues))  # a component of length 0 never changes
        scale = self.eta0 * float(np.linalg.norm(eigenvalues))
        return np.divide(scale, eigenvalues, out=gains, where=eigenvalues > 0)

    def _automatic(self, eigenvalues: Floats) -> Floats:
        """Return min(10 / λ_i, 2 / k_i); k_i is the mean square without the earlier components.

        KHA and KHA/t use one gain for all components, a fraction of the largest.
        """
        known = np.minimum.accumulate(eigenvalues)  # λ may be overestimated before it is in order
        residual = self.mean_square - np.concatenate([[0.0], np.cumsum(known)[:-1]]) / self.n_points
        residual = np.maximum(residual, known / self.n_points)
        caps = np.divide(_STEP, residual, out=np.zeros_like(residual), where=residual > 0)
        gains = np.divide(_ROTATION, eigenvalues, out=caps.copy(), where=eigenvalues > 0)
        gains = np.minimum(gains, caps)
        if self.kind in _COMMON_FRACTION:
            gains = np.full_like(gains, _COMMON_FRACTION[self.kind] * min(gains.max(), caps[0]))
        return gains
