"""Errors of eigenvalues and of class residuals, for matrices of any condition."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from measuring import measurement
from oracles import (
    digits,
    dot,
    eigenvalues,
    exact,
    gram,
    matrix,
    mpmath,
    smaller,
    squared_distance,
    vector,
)
from orthodrome import KernelPCA, KernelRidgeRegressionClassifier, PerTurbo
from orthodrome.classification.filters import Perturbation, RidgeResidual, class_spectrum
from orthodrome.coordinates import partial_cholesky
from orthodrome.eigen import Krylov, Nystroem, leading
from orthodrome.gram import gram_operator
from orthodrome.kernels import Gaussian

# From well-conditioned matrices to those whose smaller eigenvalues are rounding.
SIGMAS = (0.1, 1.0, 10.0)


def points(n: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(0).uniform(-1, 1, size=(n, 2)).astype(dtype)


def matrix_of(n: int, sigma: float, dtype: Any) -> Any:
    X = points(n, dtype)
    return gram_operator(Gaussian(sigma).fit(X), X)


@cache
def right_values(n: int, sigma: float, dtype: Any) -> list[Any]:
    """Return the eigenvalues of the rounded matrix."""
    with digits(40):
        return eigenvalues(matrix(matrix_of(n, sigma, dtype).toarray()))


@measurement("spectra.dense")
def of_dense(dtype: Any) -> Iterator[Any]:
    for sigma in SIGMAS:
        right = right_values(24, sigma, dtype)
        found = leading(matrix_of(24, sigma, dtype), 24, solver="dense").values
        for value, exactly in zip(found, right, strict=True):
            yield abs(exact(value) - exactly) / right[0]


@measurement("spectra.krylov")
def of_krylov(dtype: Any) -> Iterator[Any]:
    for sigma in SIGMAS:
        right = right_values(24, sigma, dtype)
        solver = Krylov(block_size=2, max_basis=14, random_state=0)
        found = leading(matrix_of(24, sigma, dtype), 3, solver=solver)
        if found.solver != "krylov" or not found.converged:
            yield np.nan
        for value, exactly in zip(found.values, right, strict=False):
            yield abs(exact(value) - exactly) / right[0]


def nystroem_matrix(K: Any, pivots: Any) -> Any:
    """Return K_nm K_mm⁻¹ K_mn."""
    rows = [int(pivot) for pivot in pivots]
    inner = mpmath.matrix([[K[i, j] for j in rows] for i in rows])
    outer = mpmath.matrix([[K[i, j] for i in range(K.rows)] for j in rows])
    return outer.T * inner**-1 * outer


@measurement("spectra.nystroem")
def of_nystroem(dtype: Any) -> Iterator[Any]:
    """Compare with the exact approximation by the same anchors."""
    for sigma in SIGMAS:
        operator = matrix_of(20, sigma, dtype)
        solver = Nystroem(n_anchors=8, random_state=0)
        found = leading(operator, 3, solver=solver).values
        chosen = partial_cholesky(operator, max_rank=8, random_state=0)
        with digits(60):
            approximation = nystroem_matrix(matrix(operator.toarray()), chosen.pivots)
            right = eigenvalues((approximation + approximation.T) / 2)
            for value, exactly in zip(found, right, strict=False):
                yield abs(exact(value) - exactly) / right[0]


def centered(K: Any) -> Any:
    n = K.rows
    means = [mpmath.fsum(K[i, j] for j in range(n)) / n for i in range(n)]
    mean = mpmath.fsum(means) / n
    return mpmath.matrix(
        [[K[i, j] - means[i] - means[j] + mean for j in range(n)] for i in range(n)]
    )


def exact_gram(X: Any, sigma: float) -> Any:
    """Return the exact Gaussian Gram matrix."""
    return gram(
        lambda x, y: mpmath.exp(-squared_distance(x, y) / (2 * exact(sigma) ** 2)),
        [vector(row) for row in X],
    )


@measurement("spectra.anchors")
def of_anchors(dtype: Any) -> Iterator[Any]:
    """Kernel PCA by anchors, relative to n, the trace of K."""
    X = points(20, dtype)
    for sigma in SIGMAS:
        solver = Nystroem(n_anchors=8, random_state=0)
        model = KernelPCA(3, kernel=Gaussian(sigma), solver=solver).fit(X)
        with digits(60):
            K = centered(nystroem_matrix(exact_gram(X, sigma), model.anchor_indices_))
            for value, exactly in zip(model.eigenvalues_, eigenvalues((K + K.T) / 2), strict=False):
                yield abs(exact(value) - exactly) / len(X)


@measurement("spectra.kernel_pca")
def of_kernel_pca(dtype: Any) -> Iterator[Any]:
    """From data to eigenvalues, relative to n, the trace of K."""
    X = points(16, dtype)
    # beyond, all is rounding, with a warning
    for sigma in (*SIGMAS, 1e3, 1e5) if dtype == np.float64 else SIGMAS:
        model = KernelPCA(3, kernel=Gaussian(sigma)).fit(X)
        with digits(60):
            right = eigenvalues(centered(exact_gram(X, sigma)))
            for value, exactly in zip(model.eigenvalues_, right, strict=False):
                yield abs(exact(value) - exactly) / len(X)


# α relative to the trace.
SHIFTS = (1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10)


def ridge_residual(K: Any, cross: Any, own: Any, alpha: Any, *, penalty: bool) -> Any:
    """Return the residual of ridge regression on a class; with the penalty PerTurbo's."""
    coefficients = mpmath.lu_solve(K + alpha * mpmath.eye(K.rows), mpmath.matrix(cross))
    captured = dot(cross, list(coefficients))
    if penalty:
        return own - captured
    return own - 2 * captured + dot(list(coefficients), list(K * coefficients))


def left_out_errors(make: Any, *, penalty: bool) -> Iterator[Any]:
    """Yield relative errors, times α over the trace for the condition of K + α."""
    for sigma in SIGMAS:
        rounded = matrix_of(8, sigma, np.float64).toarray()
        for shift in SHIFTS:
            alpha = shift * len(rounded)
            spectrum = class_spectrum(rounded[None], np.ones((1, len(rounded))))
            found = make().left_out(spectrum, np.array([[alpha]]))[0, :, 0]
            with digits(60):
                K = matrix(rounded)
                for n in range(K.rows):
                    cross = [K[n, j] for j in range(K.rows) if j != n]
                    right = ridge_residual(
                        smaller(K, n), cross, K[n, n], exact(alpha), penalty=penalty
                    )
                    yield abs(exact(found[n]) - right) / right * min(shift, 1.0)


@measurement("spectra.ridge_left_out")
def of_ridge_left_out(dtype: Any) -> Iterator[Any]:
    return left_out_errors(RidgeResidual, penalty=False)


@measurement("spectra.perturbo_left_out")
def of_perturbo_left_out(dtype: Any) -> Iterator[Any]:
    return left_out_errors(Perturbation, penalty=True)


def class_residual_errors(make: Any, *, penalty: bool) -> Iterator[Any]:
    """Yield errors of new points relative to k(x, x), times α over the trace."""
    X = points(16)
    y = np.arange(16) % 2
    new = np.random.default_rng(1).uniform(-1, 1, size=(4, 2))
    for sigma in SIGMAS:
        for shift in SHIFTS:
            alpha = 8 * shift
            found = make(kernel=Gaussian(sigma), alpha=alpha).fit(X, y).class_residuals(new)
            with digits(60):
                for label in (0, 1):
                    rows = X[y == label]
                    K = exact_gram(rows, sigma)
                    for n, x in enumerate(new):
                        both = exact_gram(np.vstack([x[None], rows]), sigma)
                        cross = [both[0, j] for j in range(1, both.rows)]
                        right = ridge_residual(
                            K, cross, mpmath.mpf(1), exact(alpha), penalty=penalty
                        )
                        yield abs(exact(found[n, label]) - right) * min(shift, 1.0)


@measurement("spectra.ridge", slow=True)
def of_ridge(dtype: Any) -> Iterator[Any]:
    return class_residual_errors(KernelRidgeRegressionClassifier, penalty=False)


@measurement("spectra.perturbo", slow=True)
def of_perturbo(dtype: Any) -> Iterator[Any]:
    return class_residual_errors(PerTurbo, penalty=True)
