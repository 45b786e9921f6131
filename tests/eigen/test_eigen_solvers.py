"""Every solver on every operator and on every planted spectrum."""

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_limits

from laws_eigen import (
    DTYPES,
    NEEDS_WIDE_BLOCK,
    OPERATORS,
    SOLVERS,
    SPECTRA,
    attainable,
    check_invariant,
    check_orthonormal,
    check_residuals,
    check_shapes,
    check_values,
    planted,
)
from orthodrome.eigen import krylov, leading
from orthodrome.gram import tiled

K = 6


@pytest.fixture
def solver(request, monkeypatch):
    """A solver of the grid; some with a basis so small that it is restarted again and again."""
    case = SOLVERS[request.param]
    if case.restarts:
        monkeypatch.setattr(krylov, "_BASIS_BYTES", 0)
    return case.make()


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """Where tests run side by side, threads of small problems only wait for each other."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(autouse=True)
def several_tiles(monkeypatch):
    monkeypatch.setattr(tiled, "TILE", 128)


every_solver = pytest.mark.parametrize("solver", SOLVERS, indirect=True)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)


@pytest.mark.parametrize("operator", OPERATORS)
@every_dtype
@every_solver
def test_solver_on_operator(solver, operator, dtype):
    operator = OPERATORS[operator](dtype)
    matrix = operator.toarray()
    pairs = leading(operator, K, solver=solver)
    check_shapes(pairs, len(matrix), K, dtype)
    assert pairs.solver == solver.name
    check_values(pairs, matrix, attainable(solver, dtype))
    check_orthonormal(pairs)
    check_residuals(pairs, matrix)


def every_solver_on_every_spectrum():
    """All pairs of a spectrum and a solver that takes it."""
    cases = []
    for spectrum in SPECTRA:
        for name, case in SOLVERS.items():
            wide = (case.block_size or K) >= NEEDS_WIDE_BLOCK.get(spectrum, 1)
            if wide and not (case.semidefinite and SPECTRA[spectrum].min() < 0):
                cases.append(pytest.param(spectrum, name, id=f"{spectrum}-{name}"))
    return pytest.mark.parametrize(("spectrum", "solver"), cases, indirect=["solver"])


# A gap separates the leading subspace from the rest.
SEPARATED = ("fast", "slow", "clustered", "large negative")


@every_solver_on_every_spectrum()
def test_solver_on_spectrum(spectrum, solver):
    matrix, values, vectors = planted(spectrum)
    pairs = leading(matrix, K, solver=solver)
    scale, tol = np.abs(values).max(), attainable(solver, np.float64)
    check_shapes(pairs, len(matrix), K, np.float64)
    np.testing.assert_allclose(pairs.values, values[:K], rtol=0, atol=tol * scale)
    check_orthonormal(pairs)
    check_residuals(pairs, matrix)
    if scale > 0:
        check_invariant(pairs, values, vectors, gap=max(1e-3, tol**0.5) * scale, tol=tol)
    if spectrum in SEPARATED:
        gap = values[K - 1] - values[K]
        angle = scipy.linalg.subspace_angles(pairs.vectors, vectors[:, :K]).max()
        assert angle <= 10 * tol * scale / gap


@pytest.mark.parametrize("k", [1, 2, 17, 239, 240])
@pytest.mark.parametrize("solver", ["auto", "dense", "krylov"])
def test_any_number_of_pairs(solver, k):
    matrix, values, _ = planted("slow")
    pairs = leading(matrix, k, solver=solver, random_state=0)
    np.testing.assert_allclose(pairs.values, values[:k], rtol=0, atol=1e-8)
    check_orthonormal(pairs)


@every_dtype
@pytest.mark.parametrize("k", [1, 3])
def test_dense_with_eigenvalues_equal_to_the_last_bit(k, dtype):
    """LAPACK's bisection may return fewer than were asked for; nothing may be missing."""
    for n in (*range(40, 70), 300):
        pairs = leading((np.eye(n) - 1 / n).astype(dtype), k, solver="dense")
        np.testing.assert_allclose(pairs.values, 1.0, rtol=50 * np.finfo(dtype).eps)
        assert len(pairs.values) == k
        check_orthonormal(pairs)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_dense_with_a_decaying_spectrum(copies, k):
    """The first rows of the tridiagonal matrix suffice, unless a copy of a value comes later."""
    values = 0.7 ** np.arange(120.0)
    axes = scipy.linalg.qr(np.random.default_rng(0).standard_normal((120, 120)))[0]
    matrix = np.kron(np.eye(copies), (axes * values) @ axes.T)
    pairs = leading((matrix + matrix.T) / 2, k, solver="dense")
    bound = len(matrix) * np.finfo(np.float64).eps  # as `residuals` says
    np.testing.assert_allclose(pairs.values, np.repeat(values, copies)[:k], rtol=0, atol=bound)
    residuals = matrix @ pairs.vectors - pairs.vectors * pairs.values
    assert np.abs(residuals).max() <= bound
    check_orthonormal(pairs)


def test_dense_with_a_large_value_late_in_the_tridiagonal_matrix():
    """Rows 42 and 43 have an eigenvalue of 1.37 together, but at most 1 alone."""
    k, n = 5, 300
    diagonal, off_diagonal = np.full(n, 0.01), np.zeros(n - 1)
    diagonal[:k] = [1.5, 1.4, 1.3, 1.2, 1.1]
    diagonal[41:43], off_diagonal[41] = (1.0, 0.38), 0.6
    matrix = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    pairs = leading(matrix, k, solver="dense")
    np.testing.assert_allclose(pairs.values, np.linalg.eigvalsh(matrix)[: -k - 1 : -1], rtol=1e-13)
