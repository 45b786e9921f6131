"""The door: names, objects, messages, and what "auto" would take."""

import dataclasses

import numpy as np
import pytest

from laws_eigen import planted
from orthodrome.eigen import Dense, Eigenpairs, Krylov, choose_solver, leading

MATRIX = planted("slow")[0]


def test_dense_refuses_what_does_not_fit():
    n = 1100
    with pytest.raises(ValueError, match=r"dense solver needs .* the whole 1100 x 1100 .*krylov"):
        leading(np.eye(n), 2, solver="dense", memory_budget="1MiB")
    assert leading(np.eye(n), 2, solver="krylov", memory_budget="1MiB").values.shape == (2,)


class Foreign:
    """All that `leading` asks of a solver."""

    def solve(self, operator, k, *, callback=None):
        pairs = Dense().solve(operator, k, callback=callback)
        return dataclasses.replace(pairs, solver="foreign")


@pytest.mark.parametrize(
    ("solver", "name"),
    [(Dense(), "dense"), (Krylov(tol=1e-9, random_state=0), "krylov"), (Foreign(), "foreign")],
)
def test_solver_objects(solver, name):
    pairs = leading(MATRIX, 3, solver=solver)
    assert isinstance(pairs, Eigenpairs)
    assert pairs.solver == name
    np.testing.assert_allclose(pairs.values, [1, 1 / 2, 1 / 3], atol=1e-9)


@pytest.mark.parametrize(
    ("n", "k", "solver", "word"),
    [
        (150, 2, "dense", "exact"),
        (1000, 1000, "dense", "exact"),
        (1001, 2, "krylov", "few"),
        (10_000, 16, "krylov", "few"),
        (10_000, 2_000, "krylov", "few"),
        (10_000, 2_001, "dense", "20%"),
    ],
)
def test_auto_says_what_it_takes_and_why(n, k, solver, word):
    choice = choose_solver(n, k)
    assert choice.solver == solver
    assert word in choice.reason
    assert str(n) in choice.reason


def test_zeros_print_nothing(capfd):
    pairs = leading(np.zeros((100, 100)), 3, solver="dense")
    np.testing.assert_array_equal(pairs.values, 0)
    assert capfd.readouterr() == ("", "")
