"""Matrices of geodesic distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.checks import check_numbers
from .._core.types import Data
from .._core.unit import (
    angles_from_chords,
    angles_from_complements,
    angles_from_cosines,
    check_unit_length,
)
from ..gram.unit import squared_radius
from ..kernels import Precomputed, as_fitted_kernel
from ..kernels._prepared import Prepared, finite_squared_norms
from ..kernels._profiles import has_profile, profile_of, squared_distances_of
from ..kernels.base import rectangular_block
from ..kernels.radial import squared_distances
from .maps import paired_angles

_NEAR = 4  # in units of √eps: chords below this are computed pair by pair
_PAIRS = 65_536  # number of pairs in a batch


def geodesic_distances(X: Data, Y: Data | None = None, *, kernel: Any = None) -> NDArray[Any]:
    r"""Return the geodesic distances between all points of X and of Y.

    Without a kernel the points are unit vectors, and :math:`\theta = 2\operatorname{atan2}(\|x -
    y\|, \|x + y\|)`. With a kernel they are normalised feature vectors. For kernels that are
    functions of a distance (of vectors, shapes or matrices),

    .. math:: \theta = \operatorname{atan2}\left(\sqrt{(1 - k)(1 + k)}, k\right)

    with 1 - k computed without cancellation. This is accurate for near points, where arccos k would
    be 0 (‖x - y‖ < 1e-8 σ). For other kernels the accuracy is that of their values.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Points.
    Y : array-like of shape (n, d), optional
        Points. Default: X.
    kernel : Kernel, str, callable or None, default=None
        The kernel, which is fitted to X if it is not fitted. k(x, x) must be constant. With
        ``"precomputed"``, X is the Gram matrix.

    Returns
    -------
    ndarray of shape (m, n)
        Angles in [0, π].

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian
    >>> geodesic_distances([[0.0], [1e-9]], kernel=Gaussian(sigma=1.0))[0, 1]
    np.float64(1e-09)
    """
    if kernel is None:
        x = _unit_vectors(X, "X")
        y = x if Y is None else _unit_vectors(Y, "Y")
        d, found = x.coordinates.shape[1], y.coordinates.shape[1]
        if d != found:
            raise ValueError(f"Y must have as many columns as X, {d}; got {found}.")
        return _angles_between(x, y)
    fitted = as_fitted_kernel(kernel, X)
    X = fitted.validate(X, reset=False)
    if isinstance(fitted, Precomputed):
        if Y is not None:
            raise ValueError("Y must be None if X is a precomputed Gram matrix.")
        return angles_from_cosines(X / X.dtype.type(squared_radius(np.diagonal(X))))[0]
    Y = X if Y is None else fitted.validate(Y, reset=False)
    x, y = fitted.prepare(X), fitted.prepare(Y)
    radius = squared_radius(fitted.diagonal(x))
    squared_radius(fitted.diagonal(y), radius, what="Y")
    if has_profile(fitted):
        complement = profile_of(fitted).one_minus(squared_distances_of(fitted, x, y))
        return angles_from_complements(complement)[0]
    block = rectangular_block(fitted, x, y)
    block /= block.dtype.type(radius)
    return angles_from_cosines(block)[0]


def _angles_between(x: Prepared, y: Prepared) -> NDArray[Any]:
    """Return the angles between unit vectors."""
    opposite = Prepared(-y.coordinates, y.per_point)
    chords, sums = (np.sqrt(squared_distances(x, z)) for z in (y, opposite))
    angles = angles_from_chords(chords, sums)[0]
    # for near points, errors of squared lengths matter, and squares may underflow
    i, j = np.nonzero(chords <= _NEAR * np.sqrt(np.finfo(chords.dtype).eps))
    for start in range(0, len(i), _PAIRS):
        a, b = i[start : start + _PAIRS], j[start : start + _PAIRS]
        angles[a, b] = paired_angles(x.coordinates[a], y.coordinates[b])
    return angles


def _unit_vectors(X: Data, name: str) -> Prepared:
    array = check_numbers(X, name, "geodesic_distances", dtype=[np.float64, np.float32])
    squares = finite_squared_norms(array)
    check_unit_length(squares, array.dtype, name)
    return Prepared(array, squares)
