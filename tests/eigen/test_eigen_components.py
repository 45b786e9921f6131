"""From eigenpairs to components: how many there are, what they are, and what is rounding."""

import numpy as np
import pytest

from orthodrome.eigen import leading
from orthodrome.eigen.components import solve_components
from orthodrome.eigen.pairs import orient
from orthodrome.gram import DenseGram


def planted(values, seed=0):
    """An operator with these eigenvalues."""
    n = len(values)
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    matrix = (frame * values) @ frame.T
    return DenseGram((matrix + matrix.T) / 2)


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


@pytest.mark.parametrize("first", [-3.0, 3.0])
def test_the_sign_of_symmetric_columns_is_that_of_the_first_of_the_largest(first):
    column = np.array([1.0, first, -1.0, -first])[:, None]
    assert orient(column) == np.sign(first)
    # rounding of the other entries changes nothing
    assert orient(column * (1 + 1e-12 * np.arange(4)[::-1, None])) == np.sign(first)
