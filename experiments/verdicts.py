"""The rule that compares published results with ours. All verdicts are made here.

An experiment has three verdicts: on the numbers of the paper's **own** method, on the paper's
comparisons (**orders**: one method is better than another), and on its **baselines**.

- A number is *reached* if it differs from ours by at most two standard errors and the printed
  rounding. The standard error has two parts: ours, and the paper's. The paper's is its printed
  deviation over the root of its number of repeats; without a printed deviation it is the deviation
  of one of our repeats. Otherwise our number *exceeds* it, or is *short* of it. If neither larger
  nor smaller is better, it *differs*. A baseline is as printed, *stronger* or *weaker*.
- An order *holds* if our difference is more than two standard errors above zero, it is
  *contradicted* if it is more than two below, and *open* otherwise. If the better method diverges
  in a repeat, the order is contradicted. If both diverge, it is open.
- If the paper does not give a condition, all plausible variants are run. The variant with which
  most results agree is named (of equals the one with the fewest that disagree, then the one whose
  numbers are nearest), and the number of variants is next to it.

A first rule, written before any result, gave one verdict for all numbers of an experiment together,
and used only our standard error. It was changed after the first results were seen: most of its
verdicts "not reproduced" came from baselines that are better here than printed, and from papers
that print no error. The page says so.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

OWN, BASELINE, ORDER = "own", "baseline", "order"
REACHED, EXCEEDED, SHORT, DIFFERS = "reached", "exceeded", "short", "differs"
SAME, STRONGER, WEAKER = "as printed", "stronger", "weaker"
HOLDS, OPEN, CONTRADICTED = "holds", "open", "contradicted"
AGREEING = (REACHED, EXCEEDED, SAME, HOLDS)
DISAGREEING = (SHORT, DIFFERS, CONTRADICTED)
OF_BASELINE = {REACHED: SAME, EXCEEDED: STRONGER, SHORT: WEAKER, DIFFERS: DIFFERS}

STANDARD_ERRORS = 2.0
# compared numbers are between 1e-3 and 100, so smaller differences are rounding errors
ROUNDING = 1e-9


@dataclass(frozen=True)
class Sample:
    """Repeats of a measurement; `values` are empty if only the moments were kept."""

    mean: float
    deviation: float = 0.0
    n: int = 1
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        """Return the sample of these values; -inf or else NaN or inf if one of them is that."""
        own = np.asarray(values, dtype=float)
        if np.isfinite(own).all():
            deviation = float(own.std(ddof=1)) if len(own) > 1 else 0.0
            mean = float(own.mean())
        else:
            mean, deviation = (-math.inf if np.any(own == -math.inf) else float(own.max())), 0.0
        return cls(mean, 0.0 if deviation < ROUNDING else deviation, len(own), tuple(own.tolist()))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(self.n)

    def __sub__(self, other: Sample) -> Sample:
        """Return the difference: within repeats if both have the same number of them."""
        if self.values and len(self.values) == len(other.values):
            pairs = zip(self.values, other.values, strict=True)
            return Sample.of([math.nan if a == b == math.inf else a - b for a, b in pairs])
        error = math.hypot(self.error, other.error)
        n = min(self.n, other.n)
        return Sample(self.mean - other.mean, error * math.sqrt(n), n)

    def map(self, function: Callable[[Any], Any]) -> Sample:
        """Apply a function to an array of all values, or for moments a linear one."""
        if self.values:
            return Sample.of(function(np.array(self.values)))
        slope = abs(function(1.0) - function(0.0))
        return Sample(float(function(self.mean)), slope * self.deviation, self.n)


@dataclass(frozen=True)
class Compared:
    """A published number or order, and ours.

    Attributes
    ----------
    role : {"own", "baseline", "order"}
        A number of the paper's own method, one of a baseline, or an order.
    what : str
        The data and the method.
    ours : Sample
        Our number, or our difference in the direction of the order.
    where : str
        The table, figure or section of the paper.
    unit : str
        The quantity; comparisons of the same one share a plot.
    published, rounding, theirs : float
        The printed number, half a unit of its last digit, and its standard error (NaN: not known).
    better : {1, -1, 0}
        Whether larger numbers are better, or smaller ones, or neither.
    """

    role: str
    what: str
    ours: Sample
    where: str = ""
    unit: str = ""
    published: float = math.nan
    rounding: float = 0.0
    theirs: float = math.nan
    better: int = 1

    @property
    def allowed(self) -> float:
        """The largest difference that is explained by errors."""
        if self.role == ORDER:
            return max(STANDARD_ERRORS * self.ours.error, ROUNDING)
        theirs = self.ours.deviation if math.isnan(self.theirs) else self.theirs
        return STANDARD_ERRORS * math.hypot(self.ours.error, theirs) + self.rounding + ROUNDING

    @property
    def apart(self) -> float:
        """Our number less the published one, or our gain."""
        return self.ours.mean - (0.0 if self.role == ORDER else self.published)

    @property
    def finding(self) -> str:
        """The verdict on this number or order."""
        if self.role == ORDER:
            if self.apart > self.allowed:
                return HOLDS
            return CONTRADICTED if self.apart < -self.allowed else OPEN
        if abs(self.apart) <= self.allowed:
            found = REACHED
        elif not self.better:
            found = DIFFERS
        else:
            found = EXCEEDED if self.better * self.apart > 0 else SHORT
        return OF_BASELINE[found] if self.role == BASELINE else found


PRINTED = re.compile(r"(-?\d+(?:\.(\d+))?)(?: \(([\d.]+)\))?")


def number(
    printed: str, what: str, ours: Sample, *, own: bool, repeats: int = 1, **more: Any
) -> Compared:
    """Compare a number as it is printed, such as "65.1 (0.5)", the deviation of so many repeats."""
    match = PRINTED.fullmatch(printed)
    if match is None:
        raise ValueError(f"{printed!r} is not a number such as '65.1' or '65.1 (0.5)'.")
    value, decimals, deviation = match.groups()
    theirs = math.nan if deviation is None else float(deviation) / math.sqrt(repeats)
    rounding = 0.5 * 10.0 ** -len(decimals or "")
    role = OWN if own else BASELINE
    return Compared(
        role, what, ours, published=float(value), rounding=rounding, theirs=theirs, **more
    )


def order(what: str, gain: Sample, **more: Any) -> Compared:
    """Compare an order with our difference in its direction."""
    return Compared(ORDER, what, gain, **more)


def fit(compared: Sequence[Compared]) -> tuple[int, int, float]:
    """Return how well a variant fits: results that agree, those that do not, and the distance."""
    findings = [each.finding for each in compared]
    apart = [abs(each.apart) / each.allowed for each in compared if each.role != ORDER]
    disagreeing = sum(finding in DISAGREEING for finding in findings)
    return sum(finding in AGREEING for finding in findings), -disagreeing, -sum(apart)


def counts(compared: Sequence[Compared], role: str) -> Counter[str]:
    """Return how often each finding comes up in a role."""
    return Counter(each.finding for each in compared if each.role == role)


def in_plural(word: str, n: int) -> str:
    """Return a finding as the verb of one or several results."""
    return word if n == 1 else {HOLDS: "hold", DIFFERS: "differ"}.get(word, word)


def verdicts(compared: Sequence[Compared]) -> dict[str, str]:
    """Return the verdict for each role, "" where nothing is published."""
    own, orders, baselines = (counts(compared, role) for role in (OWN, ORDER, BASELINE))
    reached = own[REACHED] + own[EXCEEDED]
    text = ""
    if own:
        more = f", {own[EXCEEDED]} of them exceeded" if own[EXCEEDED] else ""
        text = f"{reached} of {own.total()} numbers reached{more}"
        for word in (SHORT, DIFFERS):
            gaps = [abs(e.apart) for e in compared if e.role == OWN and e.finding == word]
            most = f"by {'up to ' * (len(gaps) > 1)}{max(gaps, default=0.0):.2g}"
            most = "diverges" if most.endswith("inf") else most
            text += f"; {len(gaps)} {in_plural(word, len(gaps))} ({most})" if gaps else ""
    said = {OWN: text}
    for role, found, words in (
        (ORDER, orders, (HOLDS, OPEN, CONTRADICTED)),
        (BASELINE, baselines, (SAME, STRONGER, WEAKER, DIFFERS)),
    ):
        said[role] = ", ".join(
            f"{found[word]} {in_plural(word, found[word])}" for word in words if found[word]
        )
    return said
