"""Probabilities from residuals of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

# Largest ratio of the temperature to the mean difference between two residuals, and of the inverse.
_WIDEST = 1e4


def residual_temperature(
    residuals: NDArray[np.float64], owners: NDArray[np.intp], weights: NDArray[np.float64]
) -> float:
    r"""Return the temperature T of greatest likelihood for :func:`softmax_of_residuals`.

    .. math:: \max_T \sum_i w_i \sum_c t_{ic} \log p_c(x_i), \qquad
        t_{ic} = (1 - \varepsilon)\,[c = y_i] + \varepsilon / C, \quad
        \varepsilon = \frac{2}{\sum_i w_i + 2}

    As in Platt's method, the targets t are not 0 and 1, so that the temperature stays positive for
    classes that are separated without error. The likelihood is concave in 1/T.

    Parameters
    ----------
    residuals : ndarray of shape (n, n_classes)
        Residuals of points that were not used in the fit, such as those left out.
    owners : ndarray of shape (n,)
        The class of each point, a column of `residuals`.
    weights : ndarray of shape (n,)
        Positive weights.

    Returns
    -------
    float
        T > 0, within a factor of 10 000 of the mean difference between the largest and the
        smallest residual of a point; 1 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> residuals = np.array([[0.1, 0.9], [0.8, 0.3], [0.4, 0.5], [0.3, 0.4]])
    >>> T = residual_temperature(residuals, np.array([0, 1, 0, 1]), np.ones(4))
    >>> softmax_of_residuals(residuals, T).round(2)
    array([[0.86, 0.14],
           [0.24, 0.76],
           [0.56, 0.44],
           [0.56, 0.44]])
    """
    p = weights / weights.sum()
    spread = float(p @ (residuals.max(axis=1) - residuals.min(axis=1)))
    if not spread > 0:
        return 1.0
    scaled = (residuals - residuals.min(axis=1, keepdims=True)) / spread
    smoothing = 2 / (float(weights.sum()) + 2)
    own = scaled[np.arange(len(scaled)), owners]
    expected = p @ ((1 - smoothing) * own + smoothing * scaled.mean(axis=1))

    def slope(log_inverse: float) -> float:
        """Return the derivative of the likelihood by 1/T, which falls."""
        chances = softmax(-np.exp(log_inverse) * scaled, axis=1)
        return float(p @ np.einsum("ic,ic->i", chances, scaled)) - float(expected)

    low, high = -np.log(_WIDEST), np.log(_WIDEST)
    if slope(low) <= 0:
        return spread * _WIDEST  # residuals are worse than chance
    if slope(high) >= 0:
        return spread / _WIDEST
    return spread / float(np.exp(brentq(slope, low, high, xtol=1e-10)))


def softmax_of_residuals(residuals: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    r"""Return probabilities :math:`p_c \propto \exp(-r_c / T)`, shape (n, n_classes)."""
    least = residuals.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # the exponential of minus infinity is 0
        return np.asarray(softmax((least - residuals) / temperature, axis=1))
