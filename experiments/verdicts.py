"""The rule that decides whether a published result is reproduced.

The rule was written before any comparison, and all verdicts are made here.

- A published **number** agrees with ours if they differ by at most two standard errors of ours, or
  by at most the deviation that is printed with it, whichever is larger. If the paper has a single
  random draw, the standard error is that of one of our draws.
- A published **order** (one method better than another) holds if our difference, in that direction,
  is more than two standard errors above zero. It is contradicted if the difference is more than two
  standard errors below zero, and open otherwise. Without repeats the standard error is 0, and any
  difference larger than rounding error counts. (The exception for rounding errors was added later;
  it can only make orders open.) If the method that should be better diverges in a repeat, the order
  is contradicted. If both methods diverge in a repeat, it is open, unless another repeat
  contradicts it. (See pages.paired; added later, because the mean over repeats is then undefined.)
- An experiment is *reproduced* if there are published numbers, all agree, and no published order is
  contradicted. It has the *same ordering* if there are published orders and all hold. Otherwise it
  is *not reproduced*.
- The verdict on a quick run is always *indicative*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "AGREES",
    "CONTRADICTED",
    "DIFFERS",
    "HOLDS",
    "INDICATIVE",
    "NOT_REPRODUCED",
    "OPEN",
    "REPRODUCED",
    "SAME_ORDERING",
    "STANDARD_ERRORS",
    "Compared",
    "tally",
    "verdict",
]

NUMBER, ORDER = "number", "order"
AGREES, DIFFERS = "agrees", "differs"
HOLDS, CONTRADICTED, OPEN = "holds", "contradicted", "open"
REPRODUCED, SAME_ORDERING, NOT_REPRODUCED = "reproduced", "same ordering", "not reproduced"
INDICATIVE = "indicative"

STANDARD_ERRORS = 2.0
# compared numbers are between 1e-3 and 100, so smaller differences are rounding errors
ROUNDING = 1e-9


@dataclass(frozen=True)
class Compared:
    """A published number or order, and ours.

    Attributes
    ----------
    where : str
        The table, figure or section of the paper.
    what : str
        The quantity, the data and the method.
    kind : {"number", "order"}
        Whether `published` is a number, or an order says that a difference is positive.
    published : float
        The number; NaN for an order.
    deviation : float
        The printed deviation; 0 if there is none.
    ours : float
        Our number, or our difference in the direction of the order.
    error : float
        Its standard error; 0 without repeats, or if repeats differ only by rounding errors.
    """

    where: str
    what: str
    kind: str
    published: float
    deviation: float
    ours: float
    error: float

    @classmethod
    def number(
        cls, where: str, what: str, published: float, deviation: float, ours: float, error: float
    ) -> Compared:
        """A published number."""
        return cls(where, what, NUMBER, published, deviation, ours, _without_rounding(error))

    @classmethod
    def order(cls, where: str, what: str, ours: float, error: float) -> Compared:
        """A published order; `ours` is the difference in its direction."""
        return cls(where, what, ORDER, math.nan, 0.0, ours, _without_rounding(error))

    @property
    def finding(self) -> str:
        """Whether they agree, or whether the order holds."""
        allowed = STANDARD_ERRORS * self.error
        if self.kind == NUMBER:
            apart = abs(self.ours - self.published)
            # ignore rounding errors of sums
            near = apart <= max(allowed, self.deviation) * (1 + 1e-12) + 1e-12
            return AGREES if near else DIFFERS
        allowed = max(allowed, ROUNDING)
        if self.ours > allowed:
            return HOLDS
        return CONTRADICTED if self.ours < -allowed else OPEN


def _without_rounding(error: float) -> float:
    return 0.0 if error < ROUNDING else error


def tally(compared: Sequence[Compared]) -> str:
    """Return how many numbers agree, and how many orders hold, are open or contradicted."""
    parts = []
    for kind, good, name in ((NUMBER, AGREES, "numbers agree"), (ORDER, HOLDS, "orders hold")):
        found = [each.finding for each in compared if each.kind == kind]
        if found:
            parts.append(f"{found.count(good)} of {len(found)} {name}")
    for finding in (OPEN, CONTRADICTED):
        if n := sum(each.finding == finding for each in compared):
            parts.append(f"{n} {finding}")
    return ", ".join(parts) or "nothing published to compare with"


def verdict(compared: Sequence[Compared], *, quick: bool) -> str:
    """Return the verdict on an experiment."""
    if quick:
        return INDICATIVE
    numbers = [each for each in compared if each.kind == NUMBER]
    orders = [each for each in compared if each.kind == ORDER]
    against = any(each.finding == CONTRADICTED for each in orders)
    if numbers and not against and all(each.finding == AGREES for each in numbers):
        return REPRODUCED
    if orders and all(each.finding == HOLDS for each in orders):
        return SAME_ORDERING
    return NOT_REPRODUCED
