"""Estimate the noise level of images and sequences."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The median of |x| for x ~ N(0, 1), and the sum of squared coefficients of the third difference.
_MEDIAN_OF_ABSOLUTE = 0.6744897501960817
_THIRD_DIFFERENCE = 1 + 9 + 9 + 1


def image_noise(image: NDArray[Any]) -> float:
    """Estimate the standard deviation of Gaussian noise in an image.

    scikit-image's ``estimate_sigma`` computes it from the median of the finest wavelet
    coefficients. It treats fine texture as noise, so low levels are overestimated. For several
    channels the root mean square is returned.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        The image, of floating numbers.
    """
    try:
        from skimage.restoration import estimate_sigma

        with warnings.catch_warnings():
            # scikit-image warns about constant channels
            warnings.simplefilter("ignore")
            levels = np.asarray(estimate_sigma(image, channel_axis=-1), dtype=np.float64)
    except ImportError as error:  # scikit-image imports PyWavelets only when it is used
        raise ImportError(
            "noise='auto' needs scikit-image and PyWavelets: pip install 'orthodrome[image]'. Or "
            "pass the standard deviation of the noise, noise=…"
        ) from error
    level = math.sqrt(float(np.mean(np.nan_to_num(levels) ** 2)))
    rounding_error = 16 * float(np.finfo(np.float64).eps) * float(np.abs(image).max())
    return level if level > rounding_error else 0.0


def sequence_noise(frames: NDArray[Any]) -> float:
    r"""Estimate the standard deviation of Gaussian noise in a smooth sequence.

    If the motion is smooth, its third difference is mostly noise, with the variance
    :math:`(1 + 9 + 9 + 1) s^2`; the median of the absolute values is robust to jumps. Coarsely
    sampled motion is treated as noise.

    Parameters
    ----------
    frames : ndarray of shape (n_frames, n_features)
        The sequence, at least 4 frames.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> walk = np.sin(np.linspace(0, 20, 1000))[:, None] + np.arange(6.0)
    >>> round(sequence_noise(walk + 0.1 * rng.standard_normal(walk.shape)), 2)
    0.1
    """
    median = float(np.median(np.abs(np.diff(frames, n=3, axis=0))))
    return median / (_MEDIAN_OF_ABSOLUTE * math.sqrt(_THIRD_DIFFERENCE))
