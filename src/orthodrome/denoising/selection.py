"""Choose the kernel scale, the number of components and the blend with the smallest risk.

A blend t between 0 and 1 returns the noisy data plus t times the change made by the denoiser. The
risk is Stein's unbiased estimate of the mean squared error.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..decomposition import KernelPCA
from ..kernels import Kernel
from .cleaning import clean

# A kernel's scale rule computes its scale from the data, for example sigma="median". The candidate
# scales are 2**p times the scale from this rule, for these p. With the largest scale the kernel is
# practically linear, which suits data without nonlinear structure.
_POWERS = range(-4, 4)
_MIN_TOL = 1e-6


@dataclass(frozen=True)
class Risk:
    r"""Estimated mean squared error of a denoiser f at data y = x + noise.

    Let n be the number of values in y and s the standard deviation of the noise. Then

    .. math:: R = \tfrac1n \|f(y) - y\|^2 - s^2 + 2 s^2 d, \qquad
        d = \tfrac1n \operatorname{div} f(y)

    has the same expectation as the mean squared error :math:`\|f(y) - x\|^2 / n`. A blend t makes
    only the fraction t of the change, so the result is :math:`y + t (f(y) - y)`. The risk of this
    result is a parabola in t with its minimum at
    :math:`t = n s^2 (1 - d) / \|f(y) - y\|^2`. If f changes the data more than the noise explains,
    this best t is less than 1. With the best t, the mean squared change of the data is at most
    :math:`s^2 (1 - d)`, and the risk is at most :math:`s^2`, the risk of the unchanged data.

    Attributes
    ----------
    change : float
        The mean squared change, ‖f(y) - y‖²/n.
    divergence : float
        The divergence d. It is the fraction of the noise that f keeps.
    noise : float
        The standard deviation s of the noise.

    References
    ----------
    Stein, "Estimation of the mean of a multivariate normal distribution", Ann. Statist. 9 (1981).

    Examples
    --------
    >>> risk = Risk(change=1.25, divergence=0.1, noise=1.0)
    >>> round(risk.blend, 2), round(risk.at(1.0), 2), round(risk.at(risk.blend), 2)
    (0.72, 0.45, 0.35)
    """

    change: float
    divergence: float
    noise: float

    @property
    def blend(self) -> float:
        """The fraction t of the change, between 0 and 1, with the smallest estimated risk."""
        explained = max(self.noise**2 * (1.0 - self.divergence), 0.0)
        return 1.0 if explained >= self.change else explained / self.change

    def at(self, blend: float) -> float:
        """Return the estimated risk if the fraction `blend` of the change is made."""
        variance = self.noise**2
        return variance + blend**2 * self.change - 2.0 * blend * variance * (1.0 - self.divergence)


@dataclass(frozen=True)
class Sample:
    """Training points of a model and points to denoise, each of shape (n, d)."""

    training: NDArray[Any]
    queries: NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """Noisy data, and the same data perturbed by εb with random signs b.

    The training points are perturbed too. A kernel of small scale copies the noise of the training
    points. If they were not perturbed, such a kernel would seem to remove noise.

    Attributes
    ----------
    original, perturbed : Sample
        The points without and with the perturbation.
    gather : callable
        Linear map from (denoised) queries to values; for image patches, the values are pixels.
    values, signs : ndarray of shape (k,)
        The noisy values, ``gather(original.queries)``, and the sign in b for each of them.
    epsilon : float
        The size ε of the perturbation.
    """

    original: Sample
    perturbed: Sample
    gather: Callable[[NDArray[Any]], NDArray[Any]]
    values: NDArray[Any]
    signs: NDArray[Any]
    epsilon: float


def estimate_risk(
    trial: Trial, original: NDArray[Any], perturbed: NDArray[Any], noise: float
) -> Risk:
    r"""Estimate the risk with Monte Carlo SURE (Stein's unbiased risk estimate).

    `original` and `perturbed` are the denoised queries of the two samples of `trial`. Only the
    divergence d is approximated:

    .. math:: d \approx \tfrac{1}{n\epsilon}\, b^\top (f(y + \epsilon b) - f(y)) .

    References
    ----------
    Ramani, Blu and Unser, "Monte-Carlo SURE: a black-box optimization of regularization
    parameters for general denoising algorithms", IEEE Trans. Image Processing 17 (2008).
    """
    f, g = trial.gather(original), trial.gather(perturbed)
    return Risk(
        change=float(np.mean((f - trial.values) ** 2)),
        divergence=float(np.mean(trial.signs * (g - f))) / trial.epsilon,
        noise=noise,
    )


@dataclass(frozen=True)
class Choice:
    """The chosen kernel, number of components and blend, and their estimated risk."""

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
    """Choose the kernel scale, number of components and blend with the smallest risk.

    The candidate scales are the scale from the kernel's scale rule times powers of 2 from 1/16 to
    8. The search starts with the scale from the rule and moves to neighbouring scales as long as
    the risk decreases. For each scale, it searches the numbers of components in the same way.

    Parameters
    ----------
    trial : Trial
        The data.
    kernel : Kernel
        An unfitted kernel. If its ``sigma`` is the name of a rule, the scale is chosen. If it is a
        number, it is kept.
    noise : float
        Standard deviation of the noise.
    counts : sequence of int
        Numbers of components, ascending.
    blend : float, optional
        The fraction of the change to make. Default: choose the best fraction for each candidate.
    random_state : int, RandomState or None
        Seed or generator for the eigensolver.
    """
    training = trial.original.training
    kernels = _scaled_kernels(kernel, training)
    spread = math.sqrt(float(training.var(axis=0).sum()))
    if spread == 0.0:
        raise ValueError("The squares of the values underflow; rescale the data.")
    # The error of the pre-images must be much smaller than the effect of the perturbation.
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
    """Return pairs (multiple, kernel); the scale is that multiple of the scale from the rule."""
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
            clean(model, sample.queries, n_components=counts[i], tol=tol)[0]
            for model, sample in zip(models, (trial.original, trial.perturbed), strict=True)
        )
        return estimate_risk(trial, original, perturbed, noise)

    return risk


def _descend(cost: Callable[[int], float], start: int, n: int) -> int:
    """Return a local minimiser of `cost` among 0 … n - 1, descending from `start`."""

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
    """Return whether the kernel's scale is computed from data by a rule, such as "median"."""
    return isinstance(getattr(kernel, "sigma", None), str)
