"""Anchors as a start of other solvers: the same pairs, from fewer products."""

import numpy as np
import pytest

from orthodrome.eigen import Krylov, Nystroem, leading
from orthodrome.gram import Centered, Degree, DenseGram, Tangent, gram_operator
from orthodrome.kernels import Gaussian

K = 4
N = 600


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    centers = 2.5 * rng.standard_normal((12, 5))
    return (centers[rng.integers(12, size=N)] + 0.5 * rng.standard_normal((N, 5))).astype(dtype)


def gram(dtype=np.float64, kernel=None):
    X = data(dtype)
    return gram_operator((kernel or Gaussian()).fit(X), X)


GEOMETRIES = {
    "plain": lambda K: K,
    "centred": Centered,
    "tangent": lambda K: Tangent(K, np.full(N, 1 / np.sqrt(K.toarray().sum()))),
    "graph": lambda K: Degree(K, shift=1.0),
}
every_geometry = pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
every_start = pytest.mark.parametrize(
    "initial",
    ["nystroem", Nystroem(n_anchors=60), Nystroem(n_anchors=3), Nystroem(anchors="uniform")],
    ids=["name", "60", "3", "uniform"],
)


def same_space(one, other, tol):
    sines = np.linalg.norm(one - other @ (other.T @ one), axis=0)
    assert np.all(sines <= tol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_start
@every_geometry
def test_krylov_finds_the_same_pairs(geometry, initial, dtype):
    operator = geometry(gram(dtype))
    exact = leading(operator, K, solver="dense")
    solver = Krylov(initial=initial, random_state=0, max_basis=1)
    found = solver.solve(operator, K)
    assert found.converged
    assert found.solver == "krylov"
    tol = 1e-8 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found.values, exact.values, rtol=tol)
    assert np.all(found.residuals <= 1e-4 * exact.values[0])
    if exact.values[-2] - exact.values[-1] > 1e-3:
        same_space(found.vectors[:, :3], exact.vectors[:, :3], 1e-5 if tol == 1e-8 else 1e-1)
    again = solver.solve(operator, K)
    np.testing.assert_allclose(again.vectors, found.vectors, atol=1e-10)


@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_beyond_the_rank_of_the_anchors_pairs_are_zero(k):
    X = np.random.default_rng(0).standard_normal((50, 3))
    exact = np.linalg.eigvalsh(X @ X.T)[::-1]
    found = Nystroem(n_anchors=9, random_state=0).solve(DenseGram(X @ X.T), k)
    np.testing.assert_allclose(found.values[:3], exact[: min(k, 3)], rtol=1e-10)
    assert np.all(found.values[3:] == 0)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-13)
    assert found.values.shape == found.residuals.shape == (k,)
    assert np.all(found.residuals <= 1e-10 * exact[0])
