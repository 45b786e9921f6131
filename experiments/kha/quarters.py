"""Quarters of a noisy image, their windows, and the kernel PCA of these (KHA paper, §5.2)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from common import Problem, load
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from orthodrome.eigen import Krylov
from orthodrome.gram import Centered, DenseGram
from orthodrome.kernels import Gaussian
from orthodrome.preimage.domains import Vectors
from orthodrome.preimage.fixed_point import fixed_point

WINDOW, STEP, N_COMPONENTS, SIGMA = 11, 2, 20, 1.0
# 3,844 is 62², and 62 windows two pixels apart cover 133 pixels: five more than a quarter has
BEFORE, AFTER = 2, 3
QUARTERS = ("upper left", "upper right", "lower left", "lower right")

Image = NDArray[np.float64]


def picture(side: int) -> Image:
    """The middle of the cameraman, between 0 and 1."""
    image = np.asarray(load("camera_256").image, dtype=np.float64) / 255
    first = (len(image) - side) // 2
    return image[first : first + side, first : first + side]


def with_noise(clean: Image, level: float, seed: int) -> Image:
    """Add Gaussian noise, not clipped."""
    return clean + level * np.random.default_rng(seed).standard_normal(clean.shape)


def quarter_of(image: Image, quarter: int) -> Image:
    """One of the four quarters, row by row."""
    half, (row, column) = len(image) // 2, divmod(quarter, 2)
    return image[row * half : (row + 1) * half, column * half : (column + 1) * half]


def windows_of(image: Image) -> Image:
    """The windows of a square image extended by mirroring, the border pixel repeated."""
    extended = np.pad(image, (BEFORE, AFTER), mode="symmetric")
    windows = sliding_window_view(extended, (WINDOW, WINDOW))[::STEP, ::STEP]
    return windows.reshape(-1, WINDOW * WINDOW)


def image_of(windows: Image, side: int) -> Image:
    """The average of overlapping windows, without the extension."""
    extended = side + BEFORE + AFTER
    total, n_over = np.zeros((2, extended, extended))
    n = round(math.sqrt(len(windows)))
    stack = windows.reshape(n, n, WINDOW, WINDOW)
    reach = (n - 1) * STEP + 1
    for i, j in itertools.product(range(WINDOW), repeat=2):
        there = slice(i, i + reach, STEP), slice(j, j + reach, STEP)
        total[there] += stack[..., i, j]
        n_over[there] += 1
    inside = slice(BEFORE, BEFORE + side)
    return total[inside, inside] / n_over[inside, inside]


class Quarter:
    """A quarter of the noisy image: its windows, and the problem of their kernel PCA."""

    def __init__(self, side: int, level: float, seed: int, quarter: int) -> None:
        whole = picture(side)
        self.level, self.seed, self.name = level, seed, QUARTERS[quarter]
        self.clean = quarter_of(whole, quarter)
        self.noisy = quarter_of(with_noise(whole, level, seed), quarter)
        self.windows = windows_of(self.noisy)
        self.kernel = Gaussian(SIGMA).fit(self.windows)
        matrix = Centered(DenseGram(self.kernel(self.windows))).toarray()
        matrix = (matrix + matrix.T) / 2
        operator = DenseGram(matrix, check=False)
        pairs = Krylov(tol=1e-10, random_state=0).solve(operator, N_COMPONENTS)
        self.exact = (pairs.vectors / np.sqrt(pairs.values)).T
        left = float(np.sum(matrix**2) - np.sum(pairs.values**2))
        self.problem = Problem(
            name=self.name,
            operator=operator,
            n_components=N_COMPONENTS,
            minimal=math.sqrt(left),
            eigenvalues=pairs.values,
            mean_square=float(np.trace(matrix)) / len(matrix),
        )
        self.signal = float(whole.var())

    def cleaned(self, coefficients: NDArray[Any]) -> Image:
        """Pre-images of the windows projected on components, averaged; as they come (eq. 22).

        With c = AᵀAK'e_i of a window, its projection is Σ β_n Φ(x_n), β = c - mean(c) + 1/l.
        """
        projections = (self.problem.operator @ coefficients.T).T
        found = np.empty_like(self.windows)
        for rows in np.array_split(np.arange(len(found)), max(1, len(found) // 1000)):
            expansion = projections[:, rows].T @ coefficients
            expansion += 1 / len(found) - expansion.mean(axis=1, keepdims=True)
            domain = Vectors(self.kernel, self.windows)
            ends = fixed_point(domain, expansion, self.windows[rows], tol=1e-4, max_iter=500)
            found[rows] = ends.points
        return image_of(found, len(self.noisy))
