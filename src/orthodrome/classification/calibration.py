"""Class probabilities from residuals."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from .._core.types import Floats, Indices

# The temperature is within this factor of the mean range of the residuals.
_MAX_RATIO = 1e4


def residual_temperature(residuals: Floats, owners: Indices, weights: Floats) -> float:
    r"""Return the maximum-likelihood temperature T for :func:`softmax_of_residuals`.

    .. math:: \max_T \sum_i w_i \sum_c t_{ic} \log p_c(x_i), \qquad
        t_{ic} = (1 - \varepsilon)\,[c = y_i] + \varepsilon / C, \quad
        \varepsilon = \frac{2}{\sum_i w_i + 2}

    As in Platt's method, the targets t are smoothed, so that the temperature stays positive if the
    classes are separated without error. The likelihood is concave in 1/T.

    Parameters
    ----------
    residuals : ndarray of shape (n, n_classes)
        Residuals of points that were left out of the fit.
    owners : ndarray of shape (n,)
        Class of each point, as a column index of `residuals`.
    weights : ndarray of shape (n,)
        Positive weights.

    Returns
    -------
    float
        T > 0, within a factor of 10 000 of the mean difference between the largest and the
        smallest residual of a point; 1 if that difference is 0.

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
    true_class = scaled[np.arange(len(scaled)), owners]
    expected = p @ ((1 - smoothing) * true_class + smoothing * scaled.mean(axis=1))

    def slope(log_inverse: float) -> float:
        """Return the derivative of the likelihood with respect to 1/T, a decreasing function."""
        probabilities = softmax(-np.exp(log_inverse) * scaled, axis=1)
        return float(p @ np.einsum("ic,ic->i", probabilities, scaled)) - float(expected)

    low, high = -np.log(_MAX_RATIO), np.log(_MAX_RATIO)
    if slope(low) <= 0:
        return spread * _MAX_RATIO  # residuals are worse than chance
    if slope(high) >= 0:
        return spread / _MAX_RATIO
    return spread / float(np.exp(brentq(slope, low, high, xtol=1e-10)))


def softmax_of_residuals(residuals: Floats, temperature: float) -> Floats:
    r"""Return probabilities :math:`p_c \propto \exp(-r_c / T)`, shape (n, n_classes)."""
    smallest = residuals.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # the exponential of minus infinity is 0
        return np.asarray(softmax((smallest - residuals) / temperature, axis=1))
