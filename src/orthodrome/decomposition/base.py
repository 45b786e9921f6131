"""Solvers and warnings that the kernel decompositions share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.warn import warn_user
from ..base import SAMPLE
from ..eigen import Components, Dense, Eigenpairs, Nystroem, Options, resolve_solver
from ..eigen.krylov import smallest_ritz_value
from ..gram import GramOperator
from ..kernels import Kernel, Precomputed

__all__ = [
    "SAMPLE",
    "feature_solver",
    "refuse_large_matrix",
    "resolved_solver",
    "solver_tolerance",
    "warn_if_indefinite",
    "warn_if_left_out",
    "warn_if_rounding",
]

# What of squared lengths may be rounding.
_LENGTH_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def resolved_solver(
    estimator: Any, n: int, k: int, seed: int | None = None, solver: Any = None
) -> Any:
    """Return the solver object that runs for k pairs of n points: the estimator's, or another.

    With a seed that the estimator drew, it is the source of what is random in it.
    """
    options = Options(
        estimator.tol,
        estimator.max_iter,
        random_state=estimator.random_state if seed is None else seed,
        memory_budget=estimator.memory_budget,
        n_anchors=getattr(estimator, "n_anchors", None),
    )
    exact = not getattr(estimator, "_works_on_features", False)
    wanted = estimator.solver if solver is None else solver
    return resolve_solver(wanted, n, k, options, exact=exact)


def feature_solver(estimator: Any, n: int, k: int) -> Nystroem | None:
    """Return the Nyström solver of an estimator without another one, where it is to be used."""
    options = Options(random_state=estimator.random_state, n_anchors=estimator.n_anchors)
    asked = "dense" if estimator.solver == "exact" else estimator.solver
    found = resolve_solver(asked, n, k, options, exact=False)
    return found if isinstance(found, Nystroem) else None


def solver_tolerance(estimator: Any, n: int, k: int) -> float:
    """Return the tolerance of the solver that runs; LAPACK has none and is as good as any."""
    tol = getattr(resolved_solver(estimator, n, k), "tol", None)
    return 1e-8 if tol is None else float(tol)


def refuse_large_matrix(estimator: Any, n: int, k: int, dtype: Any) -> None:
    """Raise, before the Gram matrix is made, if LAPACK is to have it whole and it would not fit."""
    solver = resolved_solver(estimator, n, k)
    if isinstance(solver, Dense):
        solver.check_memory(n, dtype)


def warn_if_left_out(left_out: float, points: NDArray[np.float64], kernel: Kernel) -> None:
    """Warn where coordinates lack much of the variance, which is near rounding beside lengths."""
    size = float(np.einsum("ij,ij->", points, points))
    if left_out <= _LENGTH_ROUNDING * size and isinstance(kernel, Precomputed):
        return  # rows that differ by rounding, and nobody knows whether the points do
    spread = float(np.sum((points - points.mean(axis=0)) ** 2))
    if left_out > 0.01 * (left_out + spread):
        warn_user(
            f"{left_out / (left_out + spread):.0%} of the variance of {type(kernel).__name__} over "
            "these data is left out: beside the lengths of the points it is near rounding. Choose "
            "a smaller scale (sigma), or centre the data, or pass float64.",
            UserWarning,
        )


def warn_if_indefinite(
    owner: str, components: Components, pairs: Eigenpairs, kernel: Kernel, problem: GramOperator
) -> None:
    """Warn where eigenvalues are negative: the kernel is not positive definite.

    Only the leading eigenvalues are known in general. The others are looked at where the kernel is
    not known to be positive definite.
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


def warn_if_rounding(
    eigenvalues: NDArray[Any],
    rounding: float,
    X: Any,
    kernel: Kernel,
) -> None:
    """Warn where different points have become one: all that is left of them is rounding."""
    if np.any(eigenvalues > 0) or isinstance(kernel, Precomputed):
        return
    difference = X[1:] != X[:-1]
    if difference.nnz if scipy.sparse.issparse(difference) else np.any(difference):
        warn_user(
            f"All components are zero: the variance of {type(kernel).__name__} over these data is "
            f"below rounding, {rounding:.1e}. Choose a smaller scale (sigma), or centre "
            "the data, or pass float64.",
            UserWarning,
        )
