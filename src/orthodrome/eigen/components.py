"""Principal components from eigenpairs of a centred or tangent Gram matrix."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core.status import warn_unless_converged
from .._core.types import Array, Floats
from .._core.warn import warn_user
from ..gram import Centered, GramOperator, Tangent, Weighted
from ..kernels import Kernel, Precomputed
from .krylov import smallest_ritz_value
from .pairs import Eigenpairs, orient


@dataclass(frozen=True)
class Components:
    """Principal components in feature space.

    Attributes
    ----------
    eigenvalues : ndarray of shape (k,)
        Descending; 0 if within rounding error.
    eigenvectors : ndarray of shape (n, k)
        Eigenvectors of the (weighted) centred or tangent Gram matrix, with fixed signs.
    embedding : ndarray of shape (n, k)
        Coordinates of the n points.
    explained_variance_ratio : ndarray of shape (k,)
        Eigenvalues divided by the trace.
    coefficients : ndarray of shape (n, k)
        Coefficients of the components, which have unit length, over the centred or tangent points.
    rounding : float
        Eigenvalues up to this value may be rounding errors.
    """

    eigenvalues: Array
    eigenvectors: Array
    embedding: Array
    explained_variance_ratio: Array
    coefficients: Array
    rounding: float


def weighted_problem(gram: GramOperator, weights: Floats | None) -> GramOperator:
    """Return W^½ G W^½, whose spectrum is that of G with each row repeated w times."""
    return gram if weights is None else Weighted(gram, np.sqrt(weights))


def solve_components(
    problem: GramOperator,
    n_components: int | float | None,
    solve: Callable[[int, Array | None], Eigenpairs],
) -> Eigenpairs:
    """Compute the requested pairs: a number, a fraction of the trace, or all.

    ``solve(k, initial)`` computes k pairs, starting from approximate vectors if given. For a
    fraction, k is doubled until the eigenvalues sum to at least that fraction of the trace.
    """
    n = problem.shape[0]
    if n_components is None:
        return solve(n, None)
    if isinstance(n_components, numbers.Integral):
        return solve(min(int(n_components), n), None)
    goal = n_components * max(problem.trace(), 0.0)
    k, initial = min(16, n), None
    while True:
        pairs = solve(k, initial)
        reached = np.cumsum(np.maximum(pairs.values, 0.0, dtype=np.float64)) >= goal
        if reached.any():
            return pairs.first(int(np.argmax(reached)) + 1)
        if k == n:
            return pairs
        k, initial = min(2 * k, n), pairs.vectors


def make_components(
    pairs: Eigenpairs, gram: Centered | Tangent, weights: Floats | None, *, drop_null: bool
) -> Components:
    r"""Turn eigenpairs :math:`(\lambda_q, a_q)` into components of unit length in feature space.

    Let z_n be the centred or tangent points, G their Gram matrix, and
    :math:`\beta_q = W^{1/2} a_q / \sqrt{\lambda_q}`. The component is
    :math:`\sum_n \beta_{qn} z_n`, and the coordinates of the points are :math:`G \beta_q`.
    Pairs whose eigenvalue is within rounding error are dropped with `drop_null`, but at least one
    pair is kept. Without it, they become columns of zeros.
    """
    # Eigenvalues up to `floor` may be rounding errors. The error of the solver is a few units in
    # the last place of the largest eigenvalue. The entries of G are differences of larger numbers,
    # and their errors are proportional to those (`term_size`). Independent errors of entries change
    # eigenvalues in proportion to √n. Errors of the means or cosines are common to a row; they
    # change eigenvalues in proportion to n.
    n, eps = gram.shape[0], float(np.finfo(pairs.values.dtype).eps)
    count = n if weights is None else float(weights.sum())
    units = eps / np.sqrt(n) + float(np.finfo(np.float64).eps)
    gram_error = 10 * gram.term_size(weights) * count * units
    solver_error = 10 * eps * float(np.abs(pairs.values).max())
    floor = max(solver_error, gram_error)
    if drop_null:
        pairs = pairs.first(max(1, int(np.count_nonzero(pairs.values > floor))))
    dtype = pairs.values.dtype
    values = np.where(pairs.values > floor, pairs.values, 0).astype(dtype)
    roots = np.sqrt(values)
    if pairs.coefficients is not None:
        beta = pairs.coefficients * (roots > 0)
    else:
        beta = pairs.vectors * np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
    if weights is None:
        embedding = pairs.vectors * roots
    else:  # avoids division by the root of a weight, which may be 0
        beta = beta * np.sqrt(weights).astype(dtype)[:, None]
        embedding = gram @ beta
    signs = orient(embedding, weights).astype(dtype)
    beta *= signs
    total = weighted_problem(gram, weights).trace()
    ratio = values / total if total > 0 else np.zeros_like(values)
    return Components(
        eigenvalues=values,
        eigenvectors=pairs.vectors * signs,
        embedding=np.ascontiguousarray(embedding * signs),
        explained_variance_ratio=ratio.astype(dtype),
        coefficients=beta,
        rounding=floor,
    )


def affine_map(centered: Centered, coefficients: Array) -> tuple[Array, Array]:
    r"""Return the map from k(x, X) to the coordinates of x on components of centred points.

    With the centred k', :math:`\sum_n \beta_n k'(x_n, x)` is an affine map of k(x, X). Its matrix
    is :math:`\beta - p\,\mathbf 1^\top\beta` and its constant
    :math:`s\,\mathbf 1^\top\beta - m^\top\beta`, with p, m and s of
    :class:`~orthodrome.gram.Centered`.
    """
    dtype = coefficients.dtype
    sums = coefficients.sum(axis=0, dtype=np.float64)
    matrix = coefficients - np.outer(centered.weights, sums)
    constant = centered.mean_square * sums - centered.means @ coefficients
    return matrix.astype(dtype), constant.astype(dtype)


def tangent_frame(tangent: Tangent, coefficients: Array) -> Array:
    r"""Return components of the tangent space as combinations of the points on the sphere.

    :math:`v = \sum_n \beta_n \operatorname{Log}_\mu y_n` has the coefficients
    :math:`D\beta - (c^\top D \beta)\,\xi` over the points y; the coordinate of any y on the sphere
    is then :math:`\langle \operatorname{Log}_\mu y, v \rangle = \langle y, v \rangle
    \,\theta/\sin\theta`. D, c and ξ are those of :class:`~orthodrome.gram.Tangent`.
    """
    scaled = coefficients * tangent.stretches[:, None]
    radial = tangent.cosines @ scaled
    return (scaled - np.outer(tangent.base_point, radial)).astype(coefficients.dtype)


def warn_if_indefinite(
    owner: str, components: Components, pairs: Eigenpairs, kernel: Kernel, problem: GramOperator
) -> None:
    """Warn if eigenvalues are negative: the kernel is not positive definite.

    In general only the leading eigenvalues are known. If the kernel is not known to be positive
    definite, the smallest one is estimated.
    """
    smallest, largest = pairs.smallest, float(components.eigenvalues[0])
    if smallest is None and not kernel.positive_definite and pairs.solver == "dense":
        smallest = smallest_ritz_value(problem)
    total = float(components.explained_variance_ratio.sum(dtype=np.float64))
    negative = smallest is not None and smallest < -max(components.rounding, 1e-5 * largest)
    if not negative and total <= 1 + 1e-6:
        return
    name = "The matrix" if isinstance(kernel, Precomputed) else type(kernel).__name__
    known = f", for instance {smallest:.3g} (the largest is {largest:.3g})" if negative else ""
    warn_user(
        f"{name} is not positive definite on these data: {owner} has found negative "
        f"eigenvalues{known}. Their components are left out. "
        "explained_variance_ratio_ divides by the sum of all eigenvalues, negative ones included, "
        "so the ratios are too large and may add up to more than 1.",
        UserWarning,
    )


def warn_unless_solved(pairs: Eigenpairs, owner: str, tol: float) -> None:
    """Warn if an eigensolver did not reach its tolerance."""
    warn_unless_converged(
        pairs.status,
        f"{owner} ({pairs.solver})",
        f"largest relative residual {pairs.history[-1]['max_residual']:.1e}, tol={tol:g}",
    )
