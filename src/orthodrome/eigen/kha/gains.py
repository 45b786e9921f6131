"""Gains of the components in a Hebbian pass, and the visit of a few samples."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..._core.types import Floats

# Automatic gains limit how far a component may rotate in its first pass. The second limit is for
# sorted components (benchmarks/defaults/hebbian.py).
ROTATION = 10.0
SORTED_ROTATION = 9.0
# They also limit how far a sample of average length may move it, before steps are clipped.
STEP = 2.0


class Rule(NamedTuple):
    """How the gains follow from the eigenvalues.

    Attributes
    ----------
    eta0 : float
        The paper's η0; NaN for automatic gains.
    by_eigenvalue : bool
        Whether η0 is divided by the eigenvalues (eq. 12).
    common : float
        Automatic gains: if positive, all components use this fraction of the largest gain. If 0,
        each component has its own gain.
    mean_square : float
        The mean of k'(x, x).
    n_points : int
        The number of samples l.
    period : float
        l in the decay l / (t + l); infinite for constant gains.
    rotation : float
        Automatic gains are at most this number divided by the eigenvalue.
    damping : float
        Factor of automatic gains.
    limited : bool
        Whether steps and log-gains are limited.
    """

    eta0: float
    by_eigenvalue: bool
    common: float
    mean_square: float
    n_points: int
    period: float
    rotation: float
    damping: float
    limited: bool


def set_gains(eigenvalues: Any, rule: Rule, gains: Any) -> None:
    """Set the gains of the components before their decay."""
    if not math.isnan(rule.eta0):
        norm = math.sqrt((eigenvalues * eigenvalues).sum())
        for i in range(len(gains)):
            gains[i] = rule.eta0
            if rule.by_eigenvalue:  # a component of length 0 never changes
                gains[i] = rule.eta0 * norm / eigenvalues[i] if eigenvalues[i] > 0 else 0.0
        return
    left, known, largest, first_cap = rule.mean_square, np.inf, 0.0, 0.0
    for i in range(len(gains)):
        known = min(known, eigenvalues[i])  # estimates may not be descending in early passes
        remaining = max(left, known / rule.n_points)
        cap = STEP / remaining if remaining > 0 else 0.0
        gains[i] = min(rule.rotation / eigenvalues[i], cap) if eigenvalues[i] > 0 else cap
        largest, first_cap = max(largest, gains[i]), cap if i == 0 else first_cap
        left -= known / rule.n_points
    for i in range(len(gains)):
        if rule.common > 0:
            gains[i] = rule.common * min(largest, first_cap)
        gains[i] *= rule.damping


def gains_of(eigenvalues: Floats, rule: Rule) -> Floats:
    """Return the gains of the components before their decay."""
    gains = np.empty(len(eigenvalues))
    set_gains(eigenvalues, rule, gains)
    return gains


@np.errstate(over="ignore", invalid="ignore")  # the caller checks for divergence
def plain_visit(W: Floats, columns: Floats, eigenvalues: Floats, t: int, rule: Rule) -> int:
    """Do the same as the compiled loop `visit_with_gains`, which keeps λ, with NumPy."""
    r, n_clips, lower = len(W), 0, np.tri(len(W))
    times = np.arange(t + 1, t + len(columns) + 1)
    decaying = gains_of(eigenvalues, rule) / (1.0 + times[:, None] / rule.period)
    for j, gains in enumerate(decaying):
        known = W[:, : r + j]
        y = known @ columns[j, : r + j]
        largest = float((gains * np.cumsum(y * y)).max())
        if rule.limited and largest > 1.0:
            gains /= largest
            n_clips += 1
        W[:, r + j] = gains * y
        known -= (np.outer(gains * y, y) * lower) @ known
    return n_clips
