"""Denoise points with kernel PCA: pre-images of projections on the leading components."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..decomposition import KernelPCA
from ..kernels import Radial
from ..preimage.fixed_point import Vectors, fixed_point

_MAX_ITER = 500  # as in preimage
_BLOCK_ELEMENTS = 2**23  # coefficients of expansions in memory: 64 MiB


def clean(
    model: KernelPCA,
    points: NDArray[Any],
    *,
    n_components: int | None = None,
    tol: float = 1e-4,
) -> tuple[NDArray[Any], int]:
    r"""Return pre-images of projections on the leading components, and how many did not converge.

    With coordinates e of a point x, the projection is :math:`\sum_n \beta_n \Phi(x_n)`,
    :math:`\beta = p + A e`, A the model's ``dual_coef_`` and p its ``mean_``. For radial kernels
    the fixed-point iteration of Mika et al. starts at x itself. (``inverse_transform`` has only
    the coordinates and tries several starts; if x is near its pre-image, both results agree.)

    Parameters
    ----------
    model : KernelPCA
        A model fitted without weights.
    points : ndarray of shape (m, d)
        Points to denoise.
    n_components : int, optional
        Number of components to use; default: all.
    tol : float
        The iteration stops when a step is at most tol times the spread of the training points.
    """
    coordinates = model.transform(points)
    r = model.n_components_ if n_components is None else n_components
    if not isinstance(model.kernel_, Radial):
        coordinates[:, r:] = 0.0
        return model.inverse_transform(coordinates), 0
    training = np.asarray(model.X_fit_)  # never None: the kernel is not precomputed
    directions = model.dual_coef_[:, :r].T
    mean = model.mean_.astype(directions.dtype)
    domain, found = Vectors(model.kernel_, training), np.empty_like(points)
    n_unconverged = 0
    step = max(1, _BLOCK_ELEMENTS // len(training))
    for first in range(0, len(points), step):
        rows = slice(first, first + step)
        expansion = coordinates[rows, :r] @ directions + mean
        ends = fixed_point(domain, expansion, points[rows], tol=tol, max_iter=_MAX_ITER)
        found[rows] = ends.points
        n_unconverged += int(np.count_nonzero(~ends.converged))
    return found, n_unconverged
