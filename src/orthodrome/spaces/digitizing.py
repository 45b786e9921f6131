"""Mistakes in digitised landmarks: mirrored specimens, swapped, displaced or missing landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import RBFInterpolator

from .._core.checks import as_array, numbers_expected
from .._core.types import Floats, Indices

# With fewer specimens it is unclear which are typical.
_MIN_SPECIMENS = 5

# A correction is accepted if it reduces the distance from the mean by at least this factor.
_MIN_GAIN = 2.0

# A landmark is suspicious if its residual is more than this many times the usual one, which is the
# average of the median residual of this landmark and that of all landmarks.
_SUSPICIOUS = 6.0

# Maximum number of specimens that are compared with each other to choose the first reference.
_SAMPLE_SIZE = 64

_MEAN_STEPS = 10

# Larger coordinates would overflow.
_LARGEST = 1e300

# Smoothing of splines over specimens of unit size.
_SMOOTHING = 0.1
# Relative singular value below which landmarks are on a line, or in a plane.
_FLAT = 1e-9


@dataclass(frozen=True)
class LandmarkErrors:
    """Probable mistakes in landmarks; specimens and landmarks are numbered from 0.

    Attributes
    ----------
    mirrored : ndarray of int
        Specimens that are typical after a reflection, and far from the mean without it.
    swapped : list of (int, int, int)
        A specimen and two of its landmarks. The specimen is typical if they are exchanged.
    displaced : list of (int, int)
        A specimen and one of its landmarks. The specimen is typical without it.
    outlying : ndarray of int
        Other specimens far from the mean.
    distances : ndarray of shape (n,)
        Full Procrustes distances from the mean of the typical specimens.
    mean : ndarray of shape (k, 2) or (k, 3), or None
        The mean of the typical specimens, centred, with unit size; None if nothing was compared.
    limit : float
        Largest typical distance: the third quartile plus three times the interquartile range, but
        at least twice the median.
    """

    mirrored: Indices
    swapped: list[tuple[int, int, int]]
    displaced: list[tuple[int, int]]
    outlying: Indices
    distances: Floats
    limit: float
    mean: Floats | None = None


def find_landmark_errors(X: ArrayLike) -> LandmarkErrors:
    r"""Find specimens that were probably digitised wrongly.

    Specimens are compared with a robust mean shape, the coordinate-wise median of aligned
    specimens. For specimens far from it, a reflection is tried first. Then, also for specimens with
    a landmark far from its usual place, an exchange of two landmarks and the omission of one are
    tried. The first correction that makes a specimen typical, and at least halves its distance from
    the mean, is reported.

    Parameters
    ----------
    X : array-like of shape (n, k, 2) or (n, k, 3)
        Landmarks, without missing ones.

    Returns
    -------
    LandmarkErrors
        The probable mistakes; none if there are fewer than five specimens.

    Notes
    -----
    If about half of the specimens are mirror images of the others, such as left and right wings,
    the smaller half is reported.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(6, 2)) + 0.05 * random.normal(size=(20, 6, 2))
    >>> X[3] *= [-1, 1]
    >>> X[7, [1, 4]] = X[7, [4, 1]]
    >>> found = find_landmark_errors(X)
    >>> found.mirrored, found.swapped
    (array([3]), [(7, 1, 4)])
    """
    Z = _preshapes(X)
    n = len(Z)
    if n < _MIN_SPECIMENS:
        nothing = np.empty(0, dtype=np.intp)
        return LandmarkErrors(nothing, [], [], nothing, np.zeros(n), np.inf)
    mean = _robust_mean(Z)
    own, reflected = _distances(_products(Z, mean))
    if np.median(own - reflected) > 0:  # most specimens are mirror images of the reference
        mean = mean * _mirror(mean.shape[1])
        own, reflected = reflected, own
    limit = _largest_typical(np.minimum(own, reflected))
    mirrored = (own > limit) & (reflected <= limit) & (own > _MIN_GAIN * reflected)
    swapped, displaced = [], []
    suspicious = _has_suspicious_landmark(Z, mean) | (own > limit)
    for i in np.flatnonzero(suspicious & ~mirrored):
        pair, distance = _best_swap(Z[i], mean)
        if distance <= min(limit, own[i] / _MIN_GAIN):
            swapped.append((int(i), *pair))
            continue
        landmark, distance = _best_omission(Z[i], mean)
        if distance <= min(limit, own[i] / _MIN_GAIN):
            displaced.append((int(i), landmark))
    explained = mirrored.copy()
    explained[[found[0] for found in (*swapped, *displaced)]] = True
    outlying = np.flatnonzero((own > limit) & ~explained)
    found = np.flatnonzero(mirrored)
    return LandmarkErrors(found, swapped, displaced, outlying, own, limit, mean)


def find_mirrored(X: ArrayLike, mean: ArrayLike) -> Indices:
    """Find specimens that are nearer to a mean shape after a reflection.

    Parameters
    ----------
    X : array-like of shape (n, k, 2) or (n, k, 3)
        Landmarks, without missing ones.
    mean : array-like of shape (k, 2) or (k, 3)
        The mean shape of other specimens, such as ``find_landmark_errors(...).mean``.

    Returns
    -------
    ndarray of int
        The specimens for which a reflection at least halves the distance from the mean.

    Examples
    --------
    >>> triangle = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
    >>> find_mirrored([triangle, triangle * [-1, 1]], triangle)
    array([1])
    """
    Z = _preshapes(X)
    own, reflected = _distances(_products(Z, _reference(mean, Z.shape[1:])))
    return np.flatnonzero(own > _MIN_GAIN * reflected)


def reflect_specimens(X: ArrayLike, specimens: ArrayLike) -> Floats:
    """Return a copy of landmarks in which some specimens are reflected.

    Parameters
    ----------
    X : array-like of shape (n, k, 2) or (n, k, 3)
        Landmarks.
    specimens : array-like of int
        The specimens to reflect. Their first coordinate is reflected within its range.

    Returns
    -------
    ndarray of the shape of X
        The landmarks.

    Examples
    --------
    >>> reflect_specimens([[[0, 0], [2, 0], [1, 3]]], [0])
    array([[[2., 0.],
            [0., 0.],
            [1., 3.]]])
    """
    found = _as_landmarks(X, missing=True)
    chosen = as_array(specimens, "specimens", "reflect_specimens")
    is_numbers = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not chosen.size)
    if not (is_numbers and np.isin(chosen, np.arange(len(found))).all()):
        raise ValueError(
            f"specimens of reflect_specimens must be row numbers from 0 to {len(found) - 1}."
        )
    chosen = chosen.astype(np.intp)
    x = found[chosen, :, 0]
    found[chosen, :, 0] = (
        np.nanmin(x, axis=1, keepdims=True) + np.nanmax(x, axis=1, keepdims=True) - x
    )
    return found


def estimate_landmarks(
    X: ArrayLike, *, mean: ArrayLike | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Estimate missing landmarks with thin-plate splines.

    The mean of the complete specimens is fitted to the landmarks of a specimen by rotation and
    scaling, then bent by a thin-plate spline (Gunz et al. 2009). The spline is smoothed. If
    landmarks at an end are missing, this gives smaller errors than interpolation for wings, leaves,
    heads and skulls.

    Parameters
    ----------
    X : array-like of shape (n, k, 2) or (n, k, 3)
        Landmarks; NaN where a landmark is missing.
    mean : array-like of shape (k, 2) or (k, 3), optional
        The mean shape that is bent. Default: the mean of the complete specimens of X.

    Returns
    -------
    landmarks : ndarray of the shape of X
        Landmarks without NaN.
    estimated : ndarray of shape (n, k), bool
        Whether a landmark was estimated.

    Raises
    ------
    ValueError
        If no specimen is complete, or a specimen has too few landmarks for a spline.

    Examples
    --------
    >>> square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])
    >>> X = np.stack([square, 2 * square])
    >>> X[1, 2] = np.nan
    >>> filled, estimated = estimate_landmarks(X)
    >>> filled[1, 2].round(6), estimated.sum()
    (array([2., 2.]), np.int64(1))
    """
    landmarks = _as_landmarks(X, missing=True)
    missing = np.asarray(np.isnan(landmarks).any(axis=2))
    incomplete = np.flatnonzero(missing.any(axis=1))
    if len(incomplete) == len(landmarks) and mean is None:
        raise ValueError(
            "All specimens have missing landmarks; estimating them needs at least one complete "
            "specimen. Leave out landmarks that are missing often."
        )
    if not len(incomplete):
        return landmarks, missing
    if mean is None:
        reference = _robust_mean(_preshapes(landmarks[~missing.any(axis=1)]))
    else:
        reference = _reference(mean, landmarks.shape[1:])
    for i in incomplete:
        present = ~missing[i]
        if present.sum() < reference.shape[1] + 1:
            raise ValueError(
                f"Specimen {i} has {present.sum()} landmarks; estimating the others needs at least "
                f"{reference.shape[1] + 1}. Leave the specimen out."
            )
        landmarks[i, ~present] = _estimated(reference, landmarks[i], present)
    return landmarks, missing


# ---------------------------------------------------------------------------- shapes


def _as_landmarks(X: ArrayLike, *, missing: bool = False) -> Floats:
    """Return landmarks as floats; NaN is allowed only if `missing`."""
    owner = "the landmarks"
    with numbers_expected(X, "X", owner):
        landmarks = np.array(X, dtype=np.float64)
    if landmarks.ndim != 3 or landmarks.shape[2] not in (2, 3) or not landmarks.size:
        raise ValueError(
            f"X must be landmarks of shape (n, k, 2) or (n, k, 3); got {landmarks.shape}."
        )
    if np.iscomplexobj(X) or np.any(np.abs(landmarks) > _LARGEST):
        raise ValueError(f"X must hold real numbers of at most {_LARGEST:g}.")
    if not missing and np.isnan(landmarks).any():
        raise ValueError(
            "X has missing landmarks. Leave out these specimens, or call estimate_landmarks first."
        )
    return landmarks


def _preshapes(X: ArrayLike) -> Floats:
    """Return centred landmarks of unit size."""
    landmarks = _as_landmarks(X)
    landmarks -= landmarks.mean(axis=1, keepdims=True)
    # scaled first, so that squares do not underflow
    largest = np.abs(landmarks).max(axis=(1, 2), keepdims=True)
    landmarks /= np.where(largest > 0, largest, 1.0)
    sizes = np.linalg.norm(landmarks, axis=(1, 2), keepdims=True)
    return landmarks / np.where(sizes > 0, sizes, 1.0)


def _reference(mean: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a given mean shape, centred, with unit size."""
    points = as_array(mean, "mean", "the landmarks")
    if points.shape != shape:
        raise ValueError(f"mean must have the shape of one specimen, {shape}; got {points.shape}.")
    return _preshapes(points[None])[0]


def _mirror(dimension: int) -> Floats:
    """Return the signs of the coordinates in a reflection."""
    return np.array([-1.0] + [1.0] * (dimension - 1))


def _products(Z: Floats, mean: Floats) -> Floats:
    """Return Zᵀ M for each specimen, shape (n, m, m)."""
    return np.einsum("nki,kj->nij", Z, mean)


def _distances(products: Floats) -> tuple[Floats, Floats]:
    """Return the full Procrustes distances from a mean, without and with a reflection."""
    values = np.linalg.svd(products, compute_uv=False)
    signed = np.sign(np.linalg.det(products)) * values[..., -1]
    others = values[..., :-1].sum(axis=-1)
    own, reflected = (np.minimum(others + last, 1.0) for last in (signed, -signed))
    return np.sqrt(1 - own**2), np.sqrt(1 - reflected**2)


def _robust_mean(Z: Floats) -> Floats:
    """Return the coordinate-wise median of aligned specimens; reflections are allowed."""
    random = np.random.default_rng(0)
    sample = Z[random.choice(len(Z), min(_SAMPLE_SIZE, len(Z)), replace=False)]
    distances = [np.median(np.minimum(*_distances(_products(sample, each)))) for each in sample]
    mean = sample[np.argmin(distances)]
    for _ in range(_MEAN_STEPS):
        u, _, vt = np.linalg.svd(_products(Z, mean))
        mean = np.median(Z @ (u @ vt), axis=0)
        mean -= mean.mean(axis=0)
        mean /= np.linalg.norm(mean) or 1.0
    return mean


def _largest_typical(distances: Floats) -> float:
    first, second, third = np.quantile(distances, [0.25, 0.5, 0.75])
    return float(max(third + 3 * (third - first), 2 * second))


# ---------------------------------------------------------------------------- corrections


def _has_suspicious_landmark(Z: Floats, mean: Floats) -> NDArray[np.bool_]:
    """Return, for each specimen, whether any landmark is far from its usual place."""
    u, _, vt = np.linalg.svd(_products(Z, mean))
    residuals = np.linalg.norm(Z @ (u @ vt) - mean, axis=2)
    usual = np.median(residuals, axis=0) + np.median(residuals)
    return np.any(residuals > _SUSPICIOUS * usual / 2, axis=1)


def _best_swap(specimen: Floats, mean: Floats) -> tuple[tuple[int, int], float]:
    """Find the two landmarks whose exchange minimises the distance from the mean.

    Return them and the distance.
    """
    pairs = np.array(list(combinations(range(len(mean)), 2)))
    i, j = pairs.T
    change = (specimen[i] - specimen[j])[:, :, None] * (mean[i] - mean[j])[:, None, :]
    distances, _ = _distances(specimen.T @ mean - change)
    best = int(np.argmin(distances))
    return (int(i[best]), int(j[best])), float(distances[best])


def _estimated(mean: Floats, specimen: Floats, present: NDArray[np.bool_]) -> Floats:
    """Return estimates of the landmarks that are not present."""
    center, target = mean[present].mean(axis=0), specimen[present].mean(axis=0)
    reference = mean[present] - center
    u, values, vt = np.linalg.svd(reference.T @ (specimen[present] - target))
    if values[-1] <= _FLAT * values[0]:  # on a line, or in a plane: a reflection fits as well
        vt[-1] *= np.sign(np.linalg.det(u @ vt))
    aligned = (mean - center) @ (u @ vt) * (values.sum() / np.sum(reference**2)) + target
    lengths = np.linalg.svd(reference, compute_uv=False)
    if lengths[-1] <= _FLAT * lengths[0]:  # no spline is defined by a line or a plane
        return aligned[~present]
    unit = aligned / np.linalg.norm(aligned - aligned.mean(axis=0))
    residuals = specimen[present] - aligned[present]
    spline = RBFInterpolator(
        unit[present], residuals, kernel="thin_plate_spline", smoothing=_SMOOTHING
    )
    return aligned[~present] + spline(unit[~present])


def _best_omission(specimen: Floats, mean: Floats) -> tuple[int, float]:
    """Return the landmark without which the specimen is nearest to the mean, and its distance."""
    distances = []
    for landmark in range(len(mean)):
        rest, reference = (
            _preshapes(np.delete(points, landmark, axis=0)[None]) for points in (specimen, mean)
        )
        distances.append(_distances(_products(rest, reference[0]))[0][0])
    best = int(np.argmin(distances))
    return best, float(distances[best])
