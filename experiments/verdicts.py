"""The rule by which a published result is called reproduced.

It was written before anything was compared by it, and it is the only place where a verdict is made.

- A published **number** agrees with ours if they differ by no more than two standard errors of
  ours, or by no more than the deviation that is printed with it, whichever is more. Where the paper
  has one random draw, the standard error is that of one draw of ours.
- A published **order** (one method better than another) holds if our difference, in that direction,
  is more than two standard errors above zero; it is contradicted if it is as far below; else it is
  open. Where nothing was repeated the standard error is 0, and any difference counts but one of
  the size of rounding, which is none (this exception was made later, and only makes orders open).
  If the method that is to be better diverges in one of the repeats, the order is contradicted, and
  if in one repeat both do, it is open unless another contradicts it (pages.paired; this too was
  added later, for a mean over repeats is not a number then).
- An experiment is *reproduced* if there are published numbers, all agree, and no published order is
  contradicted; it has the *same ordering* if there are published orders and all hold; else it is
  *not reproduced*.
- A quick run is only ever *indicative*, whatever its numbers say.
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
# differences here are between numbers from 1e-3 to 100: less than this is what rounding leaves
ROUNDING = 1e-9


@dataclass(frozen=True)
class Compared:
    """A published number or order, beside ours.

    Attributes
    ----------
    where : str
        The table, figure or section of the paper.
    what : str
        What is counted, and of which data and method.
    kind : {"number", "order"}
        Whether `published` is a number, or an order says that a difference is positive.
    published : float
        The number; NaN for an order.
    deviation : float
        What is printed with it as its deviation; 0 if nothing is.
    ours : float
        Our number, or our difference in the direction of the order.
    error : float
        Its standard error; 0 if nothing was repeated, or if repeats differ by rounding alone.
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
        """A published order: `ours` is how far it holds."""
        return cls(where, what, ORDER, math.nan, 0.0, ours, _without_rounding(error))

    @property
    def finding(self) -> str:
        """Whether they agree, or whether the order holds."""
        allowed = STANDARD_ERRORS * self.error
        if self.kind == NUMBER:
            apart = abs(self.ours - self.published)
            # what a sum in floating point leaves is no difference
            near = apart <= max(allowed, self.deviation) * (1 + 1e-12) + 1e-12
            return AGREES if near else DIFFERS
        allowed = max(allowed, ROUNDING)
        if self.ours > allowed:
            return HOLDS
        return CONTRADICTED if self.ours < -allowed else OPEN


def _without_rounding(error: float) -> float:
    return 0.0 if error < ROUNDING else error


def tally(compared: Sequence[Compared]) -> str:
    """Say how many numbers agree and how many orders hold, are open, or are contradicted."""
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
