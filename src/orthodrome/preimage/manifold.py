"""Pre-images under kernels of manifolds: shapes, and matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import scipy.sparse
from numpy.typing import NDArray

from ..kernels import Kernel
from ..kernels._profiles import has_profile
from ..spaces.shapes import as_complex, form_of
from .domains import domain_of
from .radial import Preimages, domain_preimages, most_similar

__all__ = ["as_given", "fixed_point_preimages", "has_fixed_point"]


def has_fixed_point(kernel: Kernel, X: Any) -> bool:
    """Tell whether pre-images under a kernel are found by a fixed point, for dense data."""
    return has_profile(kernel) and not scipy.sparse.issparse(X)


def fixed_point_preimages(
    kernel: Kernel,
    X: NDArray[Any],
    expansions: Callable[[slice], NDArray[Any]],
    n_expansions: int,
    *,
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> Preimages:
    r"""Find pre-images by a fixed point: of vectors, of embedded points, or of shapes.

    The parameters are those of :func:`orthodrome.preimage.radial_preimages`, which it is for radial
    kernels. Under a Gaussian kernel of embedded points (matrices by their logarithms) it is the
    same on those. Under the Veronese-Whitney Gaussian, shapes u that maximise
    :math:`\sum_n \beta_n k(u_n, u)` are leading eigenvectors of
    :math:`\sum_n \beta_n k(u_n, u)\, u_n u_n^*`: a mean shape with other weights each time,
    which is looked for in a few directions at once.

    Returns
    -------
    Preimages
        Points of the form of X: landmarks of centroid size 1, turned to one of their own; matrices.
    """
    return domain_preimages(
        domain_of(kernel, X),
        partial(most_similar, kernel, X),
        expansions,
        n_expansions,
        n_starts=n_starts,
        tol=tol,
        max_iter=max_iter,
    )


def as_given(points: NDArray[Any], X: Any) -> NDArray[Any]:
    """Return points in the form of X: landmarks, (n, k, 2), may have come complex or flat."""
    if points.ndim == 2 or scipy.sparse.issparse(X) or form_of(X) == "points":
        return points
    return as_complex(points) if form_of(X) == "complex" else points.reshape(len(points), -1)
