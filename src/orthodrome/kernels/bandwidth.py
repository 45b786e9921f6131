"""Rules that compute a kernel's scale σ from data, without N² memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._core.checks import check_integer, check_numbers, check_positive, check_sample_weight
from .._core.types import Array, Floats, Indices

# With at most this many pairs the median is exact; otherwise a sample with a fixed seed is used.
_MAX_PAIRS = 2_000_000
_SEED = 0
_MAX_WEIGHT = 1e100


class Moments(NamedTuple):
    """The mean of all rows, and the mean of ‖x_i - x_j‖² over all pairs with its rounding error."""

    mean: Floats
    squared_distance: float
    rounding: float


def mean_squared_distance(X: Any, sample_weight: Floats | None = None) -> float:
    r"""Return the weighted mean of ‖x_i - x_j‖² over all N² pairs, i = j included.

    .. math:: \sum_{ij} p_i p_j \|x_i - x_j\|^2 = 2 \operatorname{tr} \operatorname{cov}_p(x),

    computed in O(N d). Since pairs i = j are included, a weight of 2 is equivalent to
    repeating the row.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        The points.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights, not all zero.

    Examples
    --------
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    2.0
    """
    owner = "mean_squared_distance"
    points = check_numbers(X, "X", owner, accept_sparse="csr", dtype=[np.float64, np.float32])
    weights = check_sample_weight(sample_weight, points.shape[0], owner)
    with np.errstate(over="ignore", invalid="ignore"):
        found = mean_square(points, weights)
    if not np.isfinite(found):
        raise ValueError(f"Squared distances between rows of X of {owner} overflow; rescale them.")
    return found


def mean_square(X: Any, sample_weight: Floats | None = None) -> float:
    """Return the mean squared distance over all pairs of validated data; it may be infinite."""
    n_samples = X.shape[0]
    w = np.ones(n_samples) if sample_weight is None else sample_weight
    p = w / w.sum()
    if scipy.sparse.issparse(X):
        kept = X[np.flatnonzero(p)]
        if not (kept.max(axis=0) - kept.min(axis=0)).count_nonzero():  # all rows are equal
            return 0.0
        center = np.asarray(X.T @ p).ravel()
        # E‖x - c‖² = E‖x‖² - ‖c‖²: centred data would not be sparse
        squared_lengths = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        return float(max(2.0 * (p @ squared_lengths - center @ center), 0.0))
    # subtract a row of the data, so that the result is exactly 0 if all points coincide
    reference = X[np.argmax(p > 0)]
    blocks = [slice(start, start + 4096) for start in range(0, n_samples, 4096)]
    center, total = np.zeros(X.shape[1]), 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # callers check the result
        for rows in blocks:
            center += p[rows] @ np.subtract(X[rows], reference, dtype=np.float64)
        for rows in blocks:
            difference = np.subtract(X[rows], reference, dtype=np.float64) - center
            total += float(p[rows] @ np.einsum("ij,ij->i", difference, difference))
    if total == 0.0 and np.any(X[p > 0] != reference):
        raise ValueError(
            "The rows of X differ by so little that their squared differences underflow; "
            "rescale the data."
        )
    return 2.0 * total


def median_distance(
    pairwise: Callable[[Indices, Indices], Array],
    n_samples: int,
    sample_weight: Floats | None = None,
) -> float:
    """Return the weighted median of the distances over pairs of rows.

    A row of weight w stands for w copies: a pair of rows counts w_i w_j times, and the w(w - 1)/2
    pairs of copies have distance 0. For more than two million pairs the median is computed from a
    random sample of pairs with a fixed seed.

    Parameters
    ----------
    pairwise : callable
        ``pairwise(i, j)`` returns the distances between rows i and j, elementwise.
    n_samples : int
        Number of rows.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights.
    """
    if not callable(pairwise):
        raise ValueError(f"pairwise of median_distance must be callable; got {pairwise!r}.")
    check_integer(n_samples, "n_samples", "median_distance")
    weights = check_sample_weight(sample_weight, n_samples, "median_distance")
    w = np.ones(n_samples) if weights is None else weights
    if w.max() > _MAX_WEIGHT:  # products of larger weights overflow
        w = w / w.max() * _MAX_WEIGHT
    kept = np.flatnonzero(w > 0)
    if len(kept) * (len(kept) - 1) // 2 <= _MAX_PAIRS:
        first, second = np.triu_indices(len(kept), k=1)
        i, j = kept[first], kept[second]
        distances = pairwise(i, j)
        n_copy_pairs = np.maximum(w[kept] * (w[kept] - 1) / 2, 0.0)
        distances = np.concatenate([distances, np.zeros(len(kept))])
        counts = np.concatenate([w[i] * w[j], n_copy_pairs])
        return _weighted_median(distances, counts)
    rng = np.random.default_rng(_SEED)
    cumulative = np.cumsum(w) / w.sum()
    drawn = np.searchsorted(cumulative, rng.random((2, _MAX_PAIRS)), side="right")
    i, j = np.minimum(drawn, n_samples - 1)
    # a draw with i = j is a pair of copies with probability (w - 1)/w; otherwise it is discarded
    different = i != j
    same = i[~different]
    copies = rng.random(len(same)) < (w[same] - 1) / w[same]
    distances = pairwise(i[different], j[different])
    return float(np.median(np.concatenate([distances, np.zeros(np.count_nonzero(copies))])))


def _weighted_median(values: Array, counts: Floats) -> float:
    """Return ``np.median`` of values repeated `counts` times."""
    total = counts.sum()
    if total <= 0:
        return 0.0
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(counts[order])
    # with total = 2m the two middle values are the m-th and the (m+1)-th
    lower, upper = (total - 1) / 2, total / 2
    middle = np.searchsorted(cumulative, [lower, upper], side="right")
    return float(np.mean(values[order[np.minimum(middle, len(values) - 1)]], dtype=np.float64))


def numeric_scale(kernel: Any) -> float:
    """Return ``kernel.sigma`` as a float, or raise if it is not a valid number."""
    scale = check_positive(kernel.sigma, "sigma", type(kernel).__name__)
    return _checked_scale(scale, kernel, np.float64)


def _checked_scale(scale: float, kernel: Any, dtype: Any) -> float:
    """Return a scale, or raise if its square overflows or underflows in this dtype."""
    smallest = 10 * math.sqrt(np.finfo(dtype).tiny)
    largest = 0.1 * math.sqrt(np.finfo(np.float64).max)
    if smallest <= scale <= largest:
        return scale
    problem = "underflows" if scale < smallest else "overflows"
    raise ValueError(
        f"sigma={kernel.sigma!r} of {type(kernel).__name__} is {scale:g}, whose square {problem} "
        f"in {np.dtype(dtype)}; rescale the data."
    )


def scale_from_rule(
    kernel: Any,
    dtype: Any,
    *,
    mean_square: Callable[[], float],
    median: Callable[[], float],
    resolution: float = 0.0,
) -> float:
    """Return ``kernel.sigma`` as a number, computed from distances if it is a rule.

    If all points coincide, it is 1. A median of 0 is an error if some points differ.

    Parameters
    ----------
    kernel : Kernel
        A kernel with ``sigma``: a number, "mean" or "median".
    dtype : dtype
        The dtype of the data.
    mean_square : callable
        Returns the mean squared distance over all pairs.
    median : callable
        Returns the median distance.
    resolution : float, default=0
        Means and medians of at most this are treated as 0.
    """
    sigma, owner = kernel.sigma, type(kernel).__name__
    if not isinstance(sigma, str):
        return numeric_scale(kernel)
    if sigma not in ("mean", "median"):
        raise ValueError(
            f"sigma of {owner} must be a positive number, 'mean' or 'median'; got {sigma!r}."
        )
    scale = math.sqrt(mean_square()) if sigma == "mean" else median()
    if not scale <= resolution:
        return _checked_scale(scale, kernel, dtype)
    if sigma == "median" and math.sqrt(mean_square()) > resolution:
        raise ValueError(
            f"sigma='median' of {owner} is 0: more than half of the pairs coincide. Use "
            "sigma='mean' or a number."
        )
    return 1.0
