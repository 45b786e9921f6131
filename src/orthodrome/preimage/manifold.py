"""Pre-images under kernels of manifolds: shapes, and matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.status import Status, warn_unless_converged
from ..kernels import Kernel, Radial, VeroneseWhitney
from ..kernels._prepared import Prepared
from ..kernels.extrinsic import ExtrinsicGaussian
from ..kernels.shapes import paired_sines, prepared_preshapes
from ..spaces import as_points
from ..spaces.shapes import complex_preshapes, rotated_to
from .fixed_point import FixedPoint
from .radial import Preimages, most_similar, radial_preimages

__all__ = ["fixed_point_preimages", "has_fixed_point"]

# Complex numbers of a batch: 64 MiB.
_BATCH = 2**22


def has_fixed_point(kernel: Kernel, X: Any) -> bool:
    """Tell whether pre-images under a kernel are found by a fixed point, for dense data."""
    return isinstance(
        kernel, (Radial, ExtrinsicGaussian, VeroneseWhitney)
    ) and not scipy.sparse.issparse(X)


def fixed_point_preimages(
    kernel: Kernel,
    X: NDArray[Any],
    expansions: Callable[[slice], NDArray[Any]],
    n_expansions: int,
    *,
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
    stacklevel: int = 4,
) -> Preimages:
    r"""Find pre-images by a fixed point: of vectors, of embedded points, or of shapes.

    The parameters are those of :func:`orthodrome.preimage.radial_preimages`, which it is for radial
    kernels. Under a Gaussian kernel of embedded points (matrices by their logarithms) it is the
    same on those. Under the Veronese-Whitney Gaussian, shapes u that maximise
    :math:`\sum_n \beta_n k(u_n, u)` are leading eigenvectors of
    :math:`\sum_n \beta_n k(u_n, u)\, u_n u_n^*`: a mean shape with other weights each time.

    Returns
    -------
    Preimages
        Points of the form of X: landmarks of centroid size 1, turned to one of their own; matrices.
    """
    of_vectors = partial(
        radial_preimages, n_starts=n_starts, tol=tol, max_iter=max_iter, stacklevel=stacklevel
    )
    if isinstance(kernel, Radial):
        return of_vectors(kernel, X, expansions, n_expansions)
    if isinstance(kernel, ExtrinsicGaussian):
        vectors, back = kernel.as_vectors(X)
        found = of_vectors(kernel.kernel_, vectors, expansions, n_expansions)
        return replace(found, points=back(found.points))
    if not isinstance(kernel, VeroneseWhitney):
        raise TypeError(f"{type(kernel).__name__} has no fixed point.")
    return _shape_preimages(
        kernel,
        X,
        expansions,
        n_expansions,
        n_starts=n_starts,
        tol=tol,
        max_iter=max_iter,
        stacklevel=stacklevel,
    )


def _shape_preimages(
    kernel: VeroneseWhitney,
    X: NDArray[Any],
    expansions: Callable[[slice], NDArray[Any]],
    n_expansions: int,
    *,
    n_starts: int,
    tol: float,
    max_iter: int,
    stacklevel: int,
) -> Preimages:
    u = complex_preshapes(X).astype(np.complex128)
    n, k = u.shape
    n_starts = min(n_starts, n)
    step = max(1, _BATCH // ((n_starts + 1) * (n + k * k)))
    points = np.empty((n_expansions, k), dtype=np.complex128)
    similarity = np.empty(n_expansions)
    n_iter = unfinished = 0
    for first in range(0, n_expansions, step):
        rows = slice(first, min(first + step, n_expansions))
        beta = expansions(rows).astype(np.float64)
        m = len(beta)
        starts = np.empty((m, n_starts + 1, k), dtype=np.complex128)
        # all kernel values the same: where a very large scale would lead
        starts[:, -1] = _leading(u, beta)
        starts[:, :n_starts] = u[most_similar(kernel, X, beta, n_starts)]
        ends = _climb(kernel, u, np.repeat(beta, n_starts + 1, axis=0), starts, tol, max_iter)
        best = np.arange(m) * (n_starts + 1) + ends.objective.reshape(m, -1).argmax(axis=1)
        points[rows], similarity[rows] = ends.points[best], ends.objective[best]
        n_iter = max(n_iter, ends.n_iter)
        unfinished += int(np.count_nonzero(~ends.converged[best]))
    status = Status.MAX_ITER if unfinished else Status.CONVERGED
    detail = f"{unfinished} of {n_expansions} pre-images after {n_iter} iterations"
    warn_unless_converged(status, "preimage", detail, stacklevel=stacklevel)
    turned = rotated_to(points, u[0])
    found = as_points(turned).astype(X.dtype, copy=False)
    return Preimages(found, similarity.astype(X.dtype), n_iter, status, "fixed-point")


def _leading(u: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[Any]:
    """Return the leading eigenvector of Σ w_n u_n u_n* for each row of weights, shape (m, k)."""
    matrices = np.einsum("mn,ni,nj->mij", weights, u, u.conj(), optimize=True)
    return np.linalg.eigh(matrices)[1][:, :, -1]


def _climb(
    kernel: VeroneseWhitney,
    u: NDArray[Any],
    beta: NDArray[np.float64],
    starts: NDArray[Any],
    tol: float,
    max_iter: int,
) -> FixedPoint:
    """Iterate from all starts at once, with β of each, until steps are at most tol or rounding."""
    shapes = prepared_preshapes(u)
    tol = max(tol, 64 * float(np.finfo(np.float64).eps))
    ends = starts.reshape(len(beta), -1).copy()
    steps = np.full(len(beta), np.inf)
    active = np.arange(len(beta))
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        moved = _leading(u, _weights(kernel, shapes, beta[active], ends[active]))
        steps[active] = paired_sines(ends[active], moved)
        ends[active] = moved
        active = active[steps[active] > tol]
    objective = _weights(kernel, shapes, beta, ends).sum(axis=1)
    return FixedPoint(ends, objective, steps, n_iter, steps <= tol)


def _weights(
    kernel: VeroneseWhitney, shapes: Prepared, beta: NDArray[np.float64], points: NDArray[Any]
) -> NDArray[np.float64]:
    """Return β_n k(u_n, u) for a row of β for each u, shape (m, n)."""
    return beta * kernel.evaluate(prepared_preshapes(points), shapes)
