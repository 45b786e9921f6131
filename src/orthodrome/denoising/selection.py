"""Choose the kernel scale, the number of components and the blend with the smallest risk."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..decomposition import KernelPCA
from ..kernels import Kernel
from .cleaning import clean
from .risk import Risk, Trial, estimate_risk

# Exponents of the candidate scales, as powers of 2 times the scale of the rule. With the largest
# one the kernel is practically linear, for data without nonlinear structure.
_POWERS = range(-4, 4)
_MIN_TOL = 1e-6


@dataclass(frozen=True)
class Choice:
    """A kernel, a number of components, a blend, and their estimated mean squared error."""

    kernel: Kernel
    n_components: int
    blend: float
    risk: float


def choose(
    trial: Trial,
    kernel: Kernel,
    noise: float,
    counts: Sequence[int],
    *,
    blend: float | None = None,
    random_state: Any = None,
) -> Choice:
    """Choose the kernel scale and number of components with the smallest risk.

    Candidate scales are the scale of the kernel's rule times powers of 2 from 1/16 to 8. The search
    descends over the scales, starting with the scale of the rule, and for each scale over the
    numbers of components.

    Parameters
    ----------
    trial : Trial
        The data.
    kernel : Kernel
        An unfitted kernel. Its scale is chosen if it is a rule, and kept if it is a number.
    noise : float
        Standard deviation of the noise.
    counts : sequence of int
        Numbers of components, ascending.
    blend : float, optional
        The fraction of the change to make; default: the best for each candidate.
    random_state : int, RandomState or None
        Seed or generator for the eigensolver.
    """
    training = trial.original.training
    kernels = _scaled_kernels(kernel, training)
    spread = math.sqrt(float(training.var(axis=0).sum()))
    if spread == 0.0:
        raise ValueError("The squares of the values underflow; rescale the data.")
    # much smaller than the perturbation, whose effect is measured
    tol = max(1e-2 * trial.epsilon * math.sqrt(training.shape[1]) / spread, _MIN_TOL)
    best: dict[int, tuple[float, int, Risk]] = {}

    def cost_of_scale(index: int) -> float:
        risk_of = _risks(trial, kernels[index][1], noise, counts, tol, random_state)

        def cost(i: int) -> float:
            risk = risk_of(i)
            return risk.at(risk.blend if blend is None else blend)

        # start with the best number of components of the nearest scale
        nearest = min(best, key=lambda other: abs(other - index), default=None)
        start = len(counts) // 2 if nearest is None else best[nearest][1]
        i = _descend(cost, start, len(counts))
        best[index] = cost(i), i, risk_of(i)
        return best[index][0]

    first = next(index for index, (multiple, _) in enumerate(kernels) if multiple == 1.0)
    index = _descend(cost_of_scale, first, len(kernels))
    estimate, i, risk = best[index]
    return Choice(kernels[index][1], counts[i], risk.blend if blend is None else blend, estimate)


def _scaled_kernels(kernel: Kernel, training: NDArray[Any]) -> list[tuple[float, Kernel]]:
    """Return candidate kernels, each with its multiple of the rule's scale."""
    if not has_scale_rule(kernel):
        return [(1.0, kernel)]
    rule = float(clone(kernel).fit(training).sigma_)
    return [(2.0**p, clone(kernel).set_params(sigma=2.0**p * rule)) for p in _POWERS]


def _risks(
    trial: Trial,
    kernel: Kernel,
    noise: float,
    counts: Sequence[int],
    tol: float,
    random_state: Any,
) -> Callable[[int], Risk]:
    """Fit kernel PCA to both samples; return the risk as a function of the index in `counts`."""
    with warnings.catch_warnings():
        # the risk of candidates that do not converge is estimated too
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [
            KernelPCA(counts[-1], kernel, random_state=random_state).fit(sample.training)
            for sample in (trial.original, trial.perturbed)
        ]

    @cache
    def risk(i: int) -> Risk:
        original, perturbed = (
            clean(model, sample.queries, n_components=counts[i], tol=tol).points
            for model, sample in zip(models, (trial.original, trial.perturbed), strict=True)
        )
        return estimate_risk(trial, original, perturbed, noise)

    return risk


def _descend(cost: Callable[[int], float], start: int, n: int) -> int:
    """Return a local minimum among 0 … n - 1, descending from `start`."""

    @cache
    def value(i: int) -> float:
        return cost(i) if 0 <= i < n else math.inf

    i = start
    step = 1 if value(i + 1) < value(i - 1) else -1
    while value(i + step) < value(i):
        i += step
    return i


def component_counts(maximum: int) -> list[int]:
    """Return numbers of components, about a factor √2 apart, up to `maximum`.

    Examples
    --------
    >>> component_counts(40)
    [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 40]
    """
    powers = range(2 * math.ceil(math.log2(maximum + 1)))
    counts = {round(2 ** (power / 2)) for power in powers}
    return sorted({count for count in counts if count < maximum} | {maximum})


def has_scale_rule(kernel: Kernel) -> bool:
    """Return whether a kernel computes its scale from data."""
    return isinstance(getattr(kernel, "sigma", None), str)
