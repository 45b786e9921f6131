"""Denoising of motion data with kernel PCA of the frames."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.random import as_random_state
from .._core.types import Indices
from ..base import last_fit_kept
from .base import KernelDenoiser, Sample, Trial, check_values, clean

# The median of |x| for x ~ N(0, 1), and the sum of squared coefficients of the third difference.
_MEDIAN_OF_ABSOLUTE = 0.6744897501960817
_THIRD_DIFFERENCE = 1 + 9 + 9 + 1
# Maximum number of frames for the estimate of the risk.
_TRIAL_FRAMES = 2000


@dataclass(eq=False)
class SequenceDenoiser(KernelDenoiser):
    r"""Remove noise from a sequence of joint positions with kernel PCA.

    Like :class:`PatchDenoiser` it has one method, :meth:`denoise`, stores the chosen parameters in
    attributes that end in ``_``, and is not a scikit-learn estimator.

    A frame is one point, the absolute coordinates of all joints (Schraudolph et al., §5.4). Kernel
    PCA finds the components in which the frames vary; each frame is replaced by the pre-image of
    its projection on these components. The order of the frames matters only for the estimate of the
    noise level. Stein's unbiased risk estimate
    (:class:`~orthodrome.denoising.base.Risk`) selects the other parameters.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components.
    kernel : Kernel, str or callable, default="gaussian"
        The kernel. A scale that is a number, as in ``Gaussian(sigma=1.0)``, is used as it is.
        Otherwise, as in ``Gaussian()`` or "gaussian", the scale is chosen.
    solver : str or solver object, default="auto"
        The eigensolver of :class:`~orthodrome.KernelPCA`. It is used for the
        final fit; candidate parameters are compared with fits by the solver "auto".
    noise : float or "auto", default="auto"
        Standard deviation of the noise, in units of the coordinates. "auto" estimates it from
        third differences in time; the motion must be smooth.
    blend : float in [0, 1] or "auto", default="auto"
        The fraction of the change to make: 1 returns the pre-images, 0 the frames.
    max_train : int, default=1000
        Maximum number of training frames, which are drawn at random.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator for the training frames, the risk estimate and the solver.

    Attributes
    ----------
    noise_, sigma_, n_components_, blend_, risk_, explained_variance_ratio_ :
        As in :class:`PatchDenoiser`.
    model_ : KernelPCA or None
        The fitted model of the frames, flattened to (n_frames, n_joints * n_coordinates).
    solver_, n_iter_, converged_ :
        Attributes of the model; `converged_` is False if a pre-image did not converge.

    Notes
    -----
    Bone lengths are not preserved. If the motion is sampled densely, a low-pass filter removes
    nearly as much noise without a model.

    References
    ----------
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006, §5.4;
    Tangkuampien and Suter, "Human motion de-noising via greedy kernel principal component analysis
    filtering", ICPR 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.denoising import SequenceDenoiser
    >>> t = np.linspace(0, 6 * np.pi, 240)[:, None]
    >>> phases = np.arange(10) / 3
    >>> motion = np.stack([np.cos(t + phases), np.sin(2 * t + phases), 0 * t + phases], axis=2)
    >>> noisy = motion + 0.1 * np.random.default_rng(0).standard_normal(motion.shape)
    >>> cleaned = SequenceDenoiser(random_state=0).denoise(noisy)
    >>> bool(np.mean((cleaned - motion) ** 2) < 0.2 * np.mean((noisy - motion) ** 2))
    True
    """

    n_components: int | str = "auto"
    kernel: Any = "gaussian"

    def denoise(self, frames: ArrayLike) -> NDArray[Any]:
        """Remove noise from a sequence.

        Parameters
        ----------
        frames : array-like of shape (n_frames, n_joints, n_coordinates)
            Positions of the joints without missing values; at least 4 frames.

        Returns
        -------
        ndarray of the same shape
            The denoised frames, float32 if the input is float32, otherwise float64.
        """
        self._check_parameters()
        owner = type(self).__name__
        array = check_values(frames, "frames", owner, (3,))
        if len(array) < 4:
            raise ValueError(f"{owner} needs at least 4 frames; got {len(array)}.")
        points = array.reshape(len(array), -1).astype(np.float64)
        rng = as_random_state(self.random_state, owner)
        with last_fit_kept(self):
            self.noise_ = self._noise_level(lambda: sequence_noise(points))
            n = len(points)
            chosen = np.sort(rng.choice(n, min(n, self.max_train), replace=False))
            model = self._fit(points[chosen], lambda: self._trial(points, chosen, rng), rng)
            if model is not None:
                cleaned, n_unconverged = clean(model, points)
                self._warn_unless_converged(n_unconverged, n)
                points += self.blend_ * (cleaned - points)
            dtype = array.dtype if array.dtype == np.float32 else np.float64
            return points.reshape(array.shape).astype(dtype, copy=False)

    def _trial(self, points: NDArray[Any], chosen: Indices, rng: np.random.RandomState) -> Trial:
        """Return what the risk estimate needs: frames, and the same with a small perturbation."""
        n = len(points)
        queries = np.sort(rng.choice(n, min(n, _TRIAL_FRAMES), replace=False))
        signs = rng.choice([-1.0, 1.0], size=points.shape)
        epsilon = self._epsilon(points)
        perturbed_points = points + epsilon * signs
        original = Sample(points[chosen], points[queries])
        perturbed = Sample(perturbed_points[chosen], perturbed_points[queries])
        values, query_signs = original.queries.ravel(), signs[queries].ravel()
        return Trial(original, perturbed, np.ravel, values, query_signs, epsilon)


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
