"""Stein's unbiased estimate of the error that a denoiser leaves, from the noisy data alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Risk", "Sample", "Trial", "estimate_risk"]


@dataclass(frozen=True)
class Risk:
    r"""Estimated mean squared error of a denoiser f at data y = x + noise.

    With noise of standard deviation s,

    .. math:: R = \tfrac1n \|f(y) - y\|^2 - s^2 + 2 s^2 d, \qquad
        d = \tfrac1n \operatorname{div} f(y)

    has the mean squared error :math:`\|f(y) - x\|^2 / n` for its expectation. Of the blend
    :math:`y + t (f(y) - y)` it is a parabola in t, with its minimum at
    :math:`t = n s^2 (1 - d) / \|f(y) - y\|^2`: where f changes more than the noise accounts for,
    the best blend makes only part of the change. Its mean squared change is at most
    :math:`s^2 (1 - d)`, and its risk at most :math:`s^2`, that of doing nothing.

    Attributes
    ----------
    change : float
        ‖f(y) - y‖²/n.
    divergence : float
        d, the part of the noise that f lets through.
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
        """The fraction t of the change, between 0 and 1, of least estimated risk."""
        wanted = self.noise**2 * (1.0 - self.divergence)
        if wanted <= 0.0:
            return 0.0
        return 1.0 if wanted >= self.change else wanted / self.change

    def at(self, blend: float) -> float:
        """Return the estimated risk of a blend."""
        variance = self.noise**2
        return variance + blend**2 * self.change - 2.0 * blend * variance * (1.0 - self.divergence)


@dataclass(frozen=True)
class Sample:
    """Points that a model is fitted to, and points that it cleans, each of shape (n, d)."""

    training: NDArray[Any]
    queries: NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """Noisy data as they are, and moved by a small vector εb of random signs b.

    All that depends on the data is moved, the training points too: with those held, a small scale
    of the kernel would seem to remove the noise that it copies from them.

    Attributes
    ----------
    plain, moved : Sample
        The points.
    gather : callable
        Makes values (of pixels, say) of the queries; a linear map.
    values, signs : ndarray of shape (k,)
        The noisy values, ``gather(plain.queries)``, and the signs b there.
    epsilon : float
        ε.
    """

    plain: Sample
    moved: Sample
    gather: Callable[[NDArray[Any]], NDArray[Any]]
    values: NDArray[Any]
    signs: NDArray[Any]
    epsilon: float


def estimate_risk(trial: Trial, cleaned: NDArray[Any], moved: NDArray[Any], noise: float) -> Risk:
    r"""Estimate the risk from the cleaned queries of both samples of a trial (Monte Carlo SURE).

    .. math:: d \approx \tfrac{1}{n\epsilon}\, b^\top (f(y + \epsilon b) - f(y)) .

    References
    ----------
    Ramani, Blu and Unser, "Monte-Carlo SURE: a black-box optimization of regularization
    parameters for general denoising algorithms", IEEE Trans. Image Processing 17 (2008).
    """
    f, g = trial.gather(cleaned), trial.gather(moved)
    return Risk(
        change=float(np.mean((f - trial.values) ** 2)),
        divergence=float(np.mean(trial.signs * (g - f))) / trial.epsilon,
        noise=noise,
    )
