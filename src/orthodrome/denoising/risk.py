"""Stein's unbiased estimate of the error of a denoiser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Risk:
    r"""Estimated mean squared error of a denoiser f at data y = x + noise.

    With noise of standard deviation s,

    .. math:: R = \tfrac1n \|f(y) - y\|^2 - s^2 + 2 s^2 d, \qquad
        d = \tfrac1n \operatorname{div} f(y)

    has the same expectation as the mean squared error :math:`\|f(y) - x\|^2 / n`. For the blend
    :math:`y + t (f(y) - y)` it is a parabola in t with its minimum at
    :math:`t = n s^2 (1 - d) / \|f(y) - y\|^2`: if f changes the data more than the noise explains,
    the best blend makes only part of the change. Its mean squared change is at most
    :math:`s^2 (1 - d)`, and its risk at most :math:`s^2`, the risk of the unchanged data.

    Attributes
    ----------
    change : float
        ‖f(y) - y‖²/n.
    divergence : float
        d, the fraction of the noise that f keeps.
    noise : float
        s, the standard deviation of the noise.

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
        explained = self.noise**2 * (1.0 - self.divergence)
        if explained <= 0.0:
            return 0.0
        return 1.0 if explained >= self.change else explained / self.change

    def at(self, blend: float) -> float:
        """Return the estimated risk of a blend."""
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

    The training points are perturbed too. Otherwise a small bandwidth, which copies noise from the
    training points, would appear to remove it.

    Attributes
    ----------
    original, perturbed : Sample
        The points without and with the perturbation.
    gather : callable
        Linear map from queries to values, such as pixels.
    values, signs : ndarray of shape (k,)
        The noisy values, ``gather(original.queries)``, and the signs b of these values.
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
    r"""Estimate the risk with Monte Carlo SURE from the denoised queries of both samples.

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
