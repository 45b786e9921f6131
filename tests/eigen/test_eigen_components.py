"""From eigenpairs to components: how many there are, what they are, and what is rounding."""

import numpy as np
import pytest

from orthodrome.eigen import leading
from orthodrome.eigen.components import make_components, solve_components, weighted_problem
from orthodrome.gram import Centered, DenseGram

TOLERANCE = {np.float64: 1e-12, np.float32: 2e-5}
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=30).astype(float)


def planted(values, seed=0):
    """An operator with these eigenvalues."""
    n = len(values)
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    matrix = (frame * values) @ frame.T
    return DenseGram((matrix + matrix.T) / 2)


def points(dtype=np.float64, n=30, d=4):
    rng = np.random.default_rng(5)
    return (rng.standard_normal((n, d)) ** 3 * np.linspace(2, 0.5, d)).astype(dtype)


def components_of(X, weights=None, k=4):
    centered = Centered(DenseGram(X @ X.T), weights)
    problem = weighted_problem(centered, weights)
    pairs = leading(problem, k, solver="dense")
    return make_components(pairs, centered, weights, drop_null=False)


@pytest.mark.parametrize("part", [0.01, 0.3, 0.5, 0.7, 0.99])
@pytest.mark.parametrize("below", [0.0, -0.4])
def test_the_fewest_pairs_that_reach_a_part_of_the_trace(part, below):
    """Twice as many are asked for, from those that were found, until their sum is enough."""
    values = np.append(np.linspace(2, 1, 50), np.full(10, below))
    operator, asked = planted(values), []

    def solve(k, initial):
        asked.append((k, None if initial is None else initial.shape[1]))
        return leading(operator, k, solver="dense")

    pairs = solve_components(operator, part, solve)
    count = 1 + np.argmax(np.cumsum(values) >= part * values.sum())
    assert len(pairs.values) == count
    np.testing.assert_allclose(pairs.values, values[:count], rtol=1e-12)
    steps = [(16, None), (32, 16), (60, 32)]
    assert asked == steps[: 1 + np.argmax([k >= count for k, _ in steps])]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_they_are_the_principal_axes_of_the_points(weights, dtype):
    X = points(dtype)
    found = components_of(X, weights)
    w = np.ones(len(X)) if weights is None else weights
    exact = X.astype(np.float64)
    moved = exact - np.average(exact, axis=0, weights=w)
    variances, axes = np.linalg.eigh((moved * w[:, None]).T @ moved)
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype] * variances[-1]}
    np.testing.assert_allclose(found.eigenvalues, variances[::-1], **tolerance)
    np.testing.assert_allclose(
        found.explained_variance_ratio, variances[::-1] / variances.sum(), **tolerance
    )
    own = moved.T @ found.coefficients  # the components as vectors, of unit length
    np.testing.assert_allclose(np.abs(own.T @ axes[:, ::-1]), np.eye(4), **tolerance)
    np.testing.assert_allclose(found.embedding, moved @ own, **tolerance)
    assert np.all(w @ found.embedding.astype(np.float64) ** 3 > 0)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10])
def test_rounding_is_in_proportion_to_the_points(scale, dtype):
    line = points(dtype, n=200, d=1)
    found, scaled = components_of(line), components_of(line * dtype(scale))
    assert found.rounding >= 10 * np.finfo(dtype).eps * found.eigenvalues[0]
    assert scaled.rounding == pytest.approx(scale**2 * found.rounding, rel=1e-6)
    for components in (found, scaled):
        assert np.count_nonzero(components.eigenvalues) == 1
        assert np.all(np.any(components.coefficients != 0, axis=0) == (components.eigenvalues > 0))
