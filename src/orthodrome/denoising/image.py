"""Denoising of images with kernel PCA of their patches."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_integer
from .._core.random import as_random_state
from .._core.types import Floats, Indices
from ..base import last_fit_kept
from ..decomposition import KernelPCA
from .base import KernelDenoiser, Sample, Trial, check_values, clean


@dataclass(frozen=True)
class PatchGrid:
    r"""A grid of patches, `step` pixels apart, on an extended image.

    Along each axis the image is mirrored at its border, as with mode "symmetric" of ``numpy.pad``.
    This adds ``patch_size - step`` pixels before the image and at least as many after it, so that
    the last patch ends exactly at the edge of the extended image. Therefore each pixel, also at the
    border, is covered by at least :math:`\lfloor p_h/s \rfloor \lfloor p_w/s \rfloor` patches,
    where p_h and p_w are the height and width of a patch and s is the step. The sizes need not be
    multiples of the step. Positions on the grid are numbered row by row from 0.

    Parameters
    ----------
    image_shape : tuple of int
        Height, width and channels.
    patch_size : tuple of int
        Height and width of a patch, at most the height and width of the image.
    step : int
        Pixels between neighbouring patches, at most the smaller side of a patch.

    Examples
    --------
    >>> grid = PatchGrid((5, 7, 1), (3, 3), 2)
    >>> grid.shape
    (3, 4)
    >>> image = np.arange(35.0).reshape(5, 7, 1)
    >>> extended = grid.extend(image)
    >>> patches = grid.extract(extended, grid.positions)
    >>> patches.shape
    (12, 9)
    >>> total = np.zeros_like(extended)
    >>> grid.add(total, patches, grid.positions)
    >>> bool(np.array_equal(grid.average(total), image))
    True
    """

    image_shape: tuple[int, int, int]
    patch_size: tuple[int, int]
    step: int

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns of positions."""
        rows, columns = (
            (sum(self._margins(axis)) + self.image_shape[axis] - self.patch_size[axis]) // self.step
            for axis in (0, 1)
        )
        return rows + 1, columns + 1

    @property
    def positions(self) -> Indices:
        """All positions."""
        return np.arange(self.shape[0] * self.shape[1])

    def _margins(self, axis: int) -> tuple[int, int]:
        """Return how many pixels are added before and after the image along an axis."""
        overlap = self.patch_size[axis] - self.step
        length = overlap + self.image_shape[axis] + overlap
        return overlap, overlap + -(length - self.patch_size[axis]) % self.step

    def extend(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the extended image, shape (rows, columns, channels)."""
        return np.pad(image, (self._margins(0), self._margins(1), (0, 0)), mode="symmetric")

    def extract(self, extended: NDArray[Any], positions: Indices) -> NDArray[Any]:
        """Return a copy of the patches at positions, shape (n_positions, n_features)."""
        windows = sliding_window_view(extended, self.patch_size, axis=(0, 1))
        rows, columns = np.unravel_index(positions, self.shape)
        return windows[self.step * rows, self.step * columns].reshape(len(positions), -1)

    def add(self, total: NDArray[Any], patches: NDArray[Any], positions: Indices) -> None:
        """Add patches at distinct positions to `total`, which has the shape of extended images."""
        stack = patches.reshape(len(positions), -1, *self.patch_size)
        rows, columns = (self.step * index for index in np.unravel_index(positions, self.shape))
        # For one (i, j), pixel (i, j) of each patch lies at a different place, so one += adds all.
        for i, j in np.ndindex(self.patch_size):
            total[rows + i, columns + j] += stack[..., i, j]

    def coverage(self, positions: Indices) -> Floats:
        """Return how many patches cover each pixel of the extended image, as one channel."""
        counts = self.extend(np.zeros((*self.image_shape[:2], 1)))
        self.add(
            counts, np.ones((len(positions), self.patch_size[0] * self.patch_size[1])), positions
        )
        return counts

    def average(self, total: NDArray[Any]) -> NDArray[Any]:
        """Return the image in which each pixel is the average of the patches that cover it.

        `total` is the sum of all patches, made with :meth:`add`.
        """
        (top, _), (left, _) = self._margins(0), self._margins(1)
        inside = (slice(top, top + self.image_shape[0]), slice(left, left + self.image_shape[1]))
        return total[inside] / self.coverage(self.positions)[inside]


_BLOCK_PATCHES = 4096  # patches in memory at once
# The risk is estimated on the whole grid if it has at most _TRIAL_PATCHES patches, otherwise on
# _TRIAL_WINDOWS x _TRIAL_WINDOWS windows.
_TRIAL_PATCHES = 4500
_TRIAL_WINDOWS = 10


@dataclass(eq=False)
class PatchDenoiser(KernelDenoiser):
    r"""Remove noise from an image with kernel PCA of its patches.

    A denoiser has one method, :meth:`denoise`. After a call, attributes that end in ``_`` contain
    the chosen parameters. It is not a scikit-learn estimator: it learns from the image that it
    denoises, so there is no ``fit``. It is a dataclass: ``dataclasses.replace`` returns a copy with
    other parameters.

    Kernel PCA of a sample of the patches finds the components in which they vary most. All patches
    are projected on these components, and the pre-images of the projections are averaged where they
    overlap. This is the experiment of Schraudolph et al. (§5.2) and of Kim et al., with automatic
    parameters: scikit-image estimates the noise level; Stein's unbiased risk estimate
    (:class:`~orthodrome.denoising.base.Risk`) selects the scale of the kernel, the number of
    components and the blend.

    Parameters
    ----------
    patch_size : int or pair of int, default=8
        Height and width of a patch, at least 2.
    step : int, default=2
        Pixels between neighbouring patches, at most the smaller side of a patch.
    n_components : int or "auto", default="auto"
        Number of components.
    kernel : Kernel, str or callable, default="gaussian"
        The kernel. A scale that is a number, as in ``Gaussian(sigma=1.0)``, is used as it is.
        Otherwise, as in ``Gaussian()`` or "gaussian", the scale is chosen.
    solver : str or solver object, default="auto"
        The eigensolver of :class:`~orthodrome.KernelPCA`. It is used for the
        final fit; candidate parameters are compared with fits by the solver "auto".
    noise : float or "auto", default="auto"
        Standard deviation of the noise, in units of the pixel values. "auto" needs scikit-image and
        PyWavelets.
    blend : float in [0, 1] or "auto", default="auto"
        The fraction of the change to make: 1 returns the averaged pre-images, 0 the image.
    max_train : int, default=1000
        Maximum number of training patches, which are drawn at random.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator for the training patches, the risk estimate and the solver.

    Attributes
    ----------
    noise_ : float
        The noise level; NaN if it is neither given nor needed.
    sigma_ : float
        Scale of the kernel; NaN for kernels without one.
    n_components_ : int
        Number of components; 0 if the image was returned unchanged.
    blend_ : float
        The fraction of the change that was made.
    risk_ : float
        The estimated mean squared error of the result; NaN if no parameter had to be chosen.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Explained variance ratios of the training patches in feature space.
    model_ : KernelPCA or None
        The fitted model of the patches, each flattened channel by channel.
    solver_, n_iter_, converged_ :
        Attributes of the model; `converged_` is False if a pre-image did not converge.

    Notes
    -----
    *Border.* The image is mirrored at its edges (the border pixel is repeated), so that pixels at
    the border are covered by as many patches as pixels in the middle.

    *Data type.* Computations are in float64; the result has the dtype of the image. Integers are
    rounded and clipped to the range of their dtype; floats are not clipped. The channels of a
    colour image are denoised together, with one noise level.

    *Scale.* The candidates are 1/16 to 8 times the kernel's default scale. With the largest
    one the kernel is practically linear: compare `sigma_` with the distances between patches to
    see whether the kernel matters.

    *Cost.* A pre-image needs a few passes over the training patches, each O(max_train · d) for
    patches of d numbers. Denoising computes one pre-image for each patch of the image. To choose
    the parameters, each candidate computes two pre-images for each patch of a coarser grid, which
    has at most 4500 patches. For small images, this takes most of the time. Memory: a few copies of
    the image in float64, and a bounded number of patches.

    *What to expect.* The denoiser is meant for Gaussian noise of one level. It is a little better
    than linear PCA of the same patches on most images, and by a larger margin if edges repeat. It
    is worse if the signal is a few bright spots in strong noise. scikit-image's
    ``denoise_nl_means`` is better on most photographs and hundreds of times faster. The estimate of
    the noise level treats fine texture as noise, so low levels are overestimated: pass `noise` if
    you know it.

    References
    ----------
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006, §5.2; Kim, Franz
    and Schölkopf, "Iterative kernel principal component analysis for image modeling", IEEE Trans.
    PAMI 27 (2005); Mika et al., "Kernel PCA and de-noising in feature spaces", NIPS 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import PatchDenoiser
    >>> rows, columns = np.mgrid[:40, :40]
    >>> image = np.sin(rows / 6.0) * (columns > 20)
    >>> noisy = image + 0.2 * np.random.default_rng(0).standard_normal(image.shape)
    >>> denoiser = PatchDenoiser(patch_size=6, noise=0.2, random_state=0)
    >>> cleaned = denoiser.denoise(noisy)
    >>> bool(np.mean((cleaned - image) ** 2) < 0.25 * np.mean((noisy - image) ** 2))
    True
    """

    patch_size: int | tuple[int, int] = 8
    step: int = 2
    n_components: int | str = "auto"
    kernel: Any = "gaussian"

    def denoise(self, image: ArrayLike) -> NDArray[Any]:
        """Remove noise from an image.

        Parameters
        ----------
        image : array-like of shape (height, width) or (height, width, channels)
            The noisy image, of integers or floats.

        Returns
        -------
        ndarray
            The denoised image, of the same shape and dtype; the input is not changed.
        """
        self._check_parameters()
        array = check_values(image, "image", type(self).__name__, (2, 3))
        pixels = array.reshape(*array.shape[:2], -1).astype(np.float64)
        grid = self._grid(pixels.shape)
        rng = as_random_state(self.random_state, type(self).__name__)
        with last_fit_kept(self):
            self.noise_ = self._noise_level(lambda: image_noise(pixels))
            extended, n = grid.extend(pixels), len(grid.positions)
            chosen = np.sort(rng.choice(n, min(n, self.max_train), replace=False))
            training = grid.extract(extended, chosen)
            model = self._fit(training, lambda: self._trial(grid, pixels, chosen, rng), rng)
            if model is None:  # not `pixels`: float64 does not represent every integer
                return np.array(array)
            average, n_unconverged = _clean_patches(model, grid, extended)
            self._warn_unless_converged(n_unconverged, n)
            pixels += self.blend_ * (average - pixels)
            return _as_dtype(pixels, array.dtype).reshape(array.shape)

    def _grid(self, shape: tuple[int, ...]) -> PatchGrid:
        owner = type(self).__name__
        sides: Any = self.patch_size
        if not isinstance(sides, (tuple, list)) and np.ndim(sides) == 0:
            sides = (sides, sides)
        if len(sides) != 2:
            raise ValueError(
                f"patch_size of {owner} must be an integer or (height, width); got {sides!r}."
            )
        height, width = (check_integer(s, "patch_size", owner, minimum=2) for s in sides)
        step = check_integer(self.step, "step", owner)
        if step > min(height, width):
            raise ValueError(
                f"step of {owner} must be at most the smaller side of a patch, "
                f"{min(height, width)}, to cover all pixels; got {step}."
            )
        if shape[0] < height or shape[1] < width:
            raise ValueError(
                f"image of {owner} is {shape[0]} x {shape[1]} pixels, smaller than a patch of "
                f"{height} x {width}; use a smaller patch_size."
            )
        return PatchGrid((shape[0], shape[1], shape[2]), (height, width), step)

    def _trial(
        self,
        grid: PatchGrid,
        pixels: NDArray[Any],
        chosen: Indices,
        rng: np.random.RandomState,
    ) -> Trial:
        """Return a trial with a step of half a patch, in random windows if there are many patches.

        Fewer patches overlap on this grid than in the result, so the risk is slightly too high for
        all candidates.
        """
        signs = rng.choice([-1.0, 1.0], size=pixels.shape)
        epsilon = self._epsilon(pixels.ravel())
        step = max(grid.step, min(grid.patch_size) // 2)
        coarse = PatchGrid(grid.image_shape, grid.patch_size, step)
        positions = _trial_positions(coarse, rng)
        coverage = coarse.coverage(positions)
        height, width = grid.patch_size
        is_covered = coverage[..., 0] >= (height // step) * (width // step)

        def queries(image: NDArray[Any]) -> NDArray[Any]:
            return coarse.extract(coarse.extend(image), positions)

        def gather(patches: NDArray[Any]) -> NDArray[Any]:
            """Return the averages of the patches over the fully covered pixels."""
            total = np.zeros((*coverage.shape[:2], grid.image_shape[2]))
            coarse.add(total, patches, positions)
            return (total[is_covered] / coverage[is_covered]).ravel()

        original, perturbed = (
            Sample(grid.extract(grid.extend(image), chosen), queries(image))
            for image in (pixels, pixels + epsilon * signs)
        )
        values, query_signs = gather(original.queries), gather(queries(signs))
        return Trial(original, perturbed, gather, values, query_signs, epsilon)


def _clean_patches(
    model: KernelPCA, grid: PatchGrid, extended: NDArray[Any]
) -> tuple[NDArray[Any], int]:
    """Return the average of all denoised patches, and how many did not converge."""
    total, n_unconverged = np.zeros_like(extended), 0
    positions = grid.positions
    for first in range(0, len(positions), _BLOCK_PATCHES):
        block = positions[first : first + _BLOCK_PATCHES]
        cleaned, unconverged = clean(model, grid.extract(extended, block))
        grid.add(total, cleaned, block)
        n_unconverged += unconverged
    return grid.average(total), n_unconverged


def _trial_positions(grid: PatchGrid, rng: np.random.RandomState) -> Indices:
    """Return the positions of the patches for the risk estimate.

    These are all positions if there are few. Otherwise divide the image into cells, and return the
    positions in one random window per cell.
    """
    if len(grid.positions) <= _TRIAL_PATCHES:
        return grid.positions
    # long enough that pixels in the middle are fully covered
    lengths = [
        min(2 * -(-side // grid.step) + 2, n)
        for side, n in zip(grid.patch_size, grid.shape, strict=True)
    ]
    chosen = np.zeros(grid.shape, dtype=bool)
    for cell in np.ndindex(_TRIAL_WINDOWS, _TRIAL_WINDOWS):
        top, left = (
            int((n - length) * (position + rng.random_sample()) / _TRIAL_WINDOWS)
            for n, length, position in zip(grid.shape, lengths, cell, strict=True)
        )
        chosen[top : top + lengths[0], left : left + lengths[1]] = True
    return np.flatnonzero(chosen)


def _as_dtype(pixels: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return pixels in a dtype; integers are rounded and clipped to its range."""
    if dtype.kind == "f":
        return pixels.astype(dtype)
    limits = np.iinfo(dtype)
    lowest, highest = float(limits.min), float(limits.max)
    if highest > limits.max:  # conversion to float64 rounds a 64-bit maximum up
        highest = float(np.nextafter(highest, 0.0))
    return np.clip(np.rint(pixels), lowest, highest).astype(dtype)


def image_noise(image: NDArray[Any]) -> float:
    """Estimate the standard deviation of Gaussian noise in an image.

    scikit-image's ``estimate_sigma`` computes it from the median of the finest wavelet
    coefficients. It treats fine texture as noise, so low levels are overestimated. For several
    channels the root mean square is returned.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        The image, of floats.
    """
    try:
        from skimage.restoration import estimate_sigma

        with warnings.catch_warnings():
            # scikit-image warns about constant channels
            warnings.simplefilter("ignore")
            levels = np.asarray(estimate_sigma(image, channel_axis=-1), dtype=np.float64)
    except ImportError as error:  # scikit-image imports PyWavelets only when it is used
        raise ImportError(
            "An estimate of the noise needs scikit-image and PyWavelets: pip install "
            "'orthodrome[image]'. Or give its standard deviation (noise)."
        ) from error
    level = math.sqrt(float(np.mean(np.nan_to_num(levels) ** 2)))
    rounding_error = 16 * float(np.finfo(np.float64).eps) * float(np.abs(image).max())
    return level if level > rounding_error else 0.0
