"""The Krylov solver: seeds, starts, storage, the end of an iteration, its history."""

import sys

import numpy as np
import pytest

from laws_eigen import OPERATORS, check_orthonormal, planted
from laws_sphere import rotation
from orthodrome.eigen import Krylov, leading
from orthodrome.eigen.krylov import smallest_ritz_value
from orthodrome.gram import DenseGram


@pytest.mark.parametrize("n_given", [2, 6, 30])
def test_a_good_start_saves_products(n_given):
    """Fewer, as many, or more vectors than a block is wide."""
    operator = OPERATORS["centered"](np.float64)
    cold = leading(operator, 6, solver="krylov", random_state=0)
    exact = leading(operator, n_given, solver="dense").vectors
    warm = leading(operator, 6, solver="krylov", random_state=0, initial=exact)
    np.testing.assert_allclose(warm.values, cold.values, rtol=1e-8)
    # vectors that have converged leave the block, so that count vectors, not products
    assert warm.history[-1]["basis_size"] <= cold.history[-1]["basis_size"]
    if n_given >= 6:
        assert warm.n_iter < cold.n_iter
    solver = Krylov(random_state=0)  # an object that has no start of its own
    assert leading(operator, 6, solver=solver, initial=exact).n_iter == warm.n_iter
    assert solver.initial is None


def test_max_iter_reached():
    matrix, _, _ = planted("slow")
    entries, options = [], {"tol": 1e-12, "max_iter": 3, "random_state": 0}
    pairs = leading(matrix, 4, solver="krylov", callback=entries.append, **options)
    assert tuple(entries) == pairs.history
    assert not pairs.converged
    assert pairs.status.name == "MAX_ITER"
    assert "max_iter" in pairs.status.advice
    assert pairs.n_iter == 3
    # what it returns is still the best of the basis, with honest residuals
    check_orthonormal(pairs)
    true = np.linalg.norm(matrix @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, true, atol=1e-12)
    assert pairs.residuals.max() > 1e-12


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-10])
def test_the_tolerance_is_kept_and_not_overshot(tol):
    operator = OPERATORS["centered"](np.float64)
    pairs = leading(operator, 5, solver=Krylov(tol=tol, block_size=2, random_state=0))
    assert pairs.residuals.max() <= tol * pairs.values[0]
    assert pairs.history[-2]["max_residual"] > tol


def test_small_problems_go_to_lapack():
    """A Krylov basis that would span the whole space is none."""
    matrix, _, _ = planted("slow")
    assert leading(matrix, 60, solver="krylov").solver == "dense"
    assert leading(matrix, 4, solver="krylov").solver == "krylov"


@pytest.mark.parametrize("block_size", [1, 2, 4])
@pytest.mark.parametrize(
    "values",
    [
        *[np.ones(300), np.zeros(300), np.arange(300) // 150, np.arange(300) // 290, -np.ones(300)],
        np.r_[9.0, 7, 5, 3, 1, np.zeros(295)],
    ],
    ids=["identity", "zero", "half", "ten", "negative", "rank 5"],
)
def test_more_copies_than_a_block_is_wide(values, block_size):
    """An invariant basis has residual 0 and is not the end: fresh directions find the others."""
    pairs = leading(np.diag(values), 12, solver=Krylov(block_size=block_size, random_state=0))
    np.testing.assert_allclose(pairs.values, np.sort(values)[::-1][:12], atol=1e-12)
    check_orthonormal(pairs)


def test_auto_falls_back_to_lapack_for_small_matrices(monkeypatch):
    matrix = np.diag(np.linspace(0, 1, 500))
    monkeypatch.setattr(sys.modules[leading.__module__], "_FEW_PRODUCTS", 5)
    pairs = leading(matrix, 5, random_state=0)
    assert (pairs.solver, pairs.status.name) == ("dense", "CONVERGED")
    np.testing.assert_allclose(pairs.values, np.linspace(0, 1, 500)[:-6:-1], rtol=1e-12)
    for solver in ("auto", "krylov"):  # a given limit is kept
        assert not leading(matrix, 5, solver=solver, max_iter=5, random_state=0).converged


@pytest.mark.parametrize("copies", [7, 8, 9, 20])
def test_copies_among_many_other_values(copies):
    """With the default block, no copy is missed, although no basis is invariant."""
    values = np.r_[9.0, 8.0, np.full(copies, 7.0), np.linspace(6, 0, 698 - copies)]
    pairs = leading(np.diag(values), 16, solver="krylov", random_state=0)
    np.testing.assert_allclose(pairs.values, values[:16], atol=1e-7)
    assert pairs.solver == "krylov"


@pytest.mark.parametrize(("n", "gap", "accuracy"), [(256, 0, 1e-12), (2, 0, 1e-12), (300, 1, 0.02)])
def test_smallest_ritz_value(n, gap, accuracy):
    """Small matrices have the exact value; others need a gap."""
    values = np.linspace(-1, 1, n)
    values[0] -= gap
    turn = rotation(n)
    matrix = DenseGram((turn * values) @ turn.T, check=False)
    assert smallest_ritz_value(matrix) == pytest.approx(-1 - gap, rel=accuracy)
