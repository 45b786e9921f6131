"""The geodesic kernel: Log maps at a reference."""

import numpy as np
import pytest

from orthodrome.gram import DenseGram, Tangent
from orthodrome.kernels import (
    Cosine,
    Exponential,
    Gaussian,
    Geodesic,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    Wave,
)
from orthodrome.sphere import geodesic_distances

BASES = {
    "gaussian": Gaussian(sigma=1.3),
    "exponential": Exponential(sigma=2.0),
    "matern": Matern(nu=1.5, sigma=1.3),
    "normalized": Normalized(Polynomial(degree=2, gamma=0.2, coef0=1.0)),
    "mean": Gaussian(),
}
every_base = pytest.mark.parametrize("base", BASES.values(), ids=BASES.keys())
X = np.random.default_rng(0).normal(size=(60, 3))
REFERENCE = np.array([0.2, -0.1, 0.4])


@every_base
def test_gram_equals_the_tangent_operator_at_the_reference(base):
    """T = D (K - c cᵀ) D over the data and the reference itself."""
    points = np.vstack([X, REFERENCE])
    kernel, gram = Geodesic(base, REFERENCE).fit(X), DenseGram(base.fit(X)(points))
    expected = Tangent(gram, np.eye(61)[60]).toarray()
    np.testing.assert_allclose(kernel(points), expected, atol=1e-12)
    values = np.linalg.eigvalsh(kernel(X))
    assert values[0] >= -1e-13 * values[-1]
    distances = geodesic_distances(X, REFERENCE[None], kernel=base.fit(X))[:, 0]
    np.testing.assert_allclose(kernel.diag(X), distances**2, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(kernel(X)), distances**2, rtol=1e-12)


@every_base
def test_the_reference_is_mapped_to_zero(base):
    gram = Geodesic(base, X[7]).fit(X)(X)
    np.testing.assert_array_equal(gram[7], 0.0)
    np.testing.assert_array_equal(gram[:, 7], 0.0)
    assert np.count_nonzero(gram.any(axis=1)) == 59


def test_a_constant_diagonal_is_divided_out():
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    directions[directions[:, 0] < 0] *= -1
    reference = np.array([1.0, 0, 0])
    expected = Geodesic(Cosine(), reference)(directions)
    np.testing.assert_allclose(Geodesic(Linear(), 5 * reference)(5 * directions), expected)


def test_a_diagonal_that_is_not_constant_raises():
    with pytest.raises(ValueError, match=r"k\(x, x\) must be the same.*Normalized"):
        Geodesic(Linear(), REFERENCE)(X)
    with pytest.raises(ValueError, match=r"row 0 of reference of Geodesic.*has no direction"):
        Geodesic(Linear(), np.zeros(3))(X)


def test_points_beyond_the_quadrant():
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    far = int(np.count_nonzero(directions[:, 0] < 0))
    with pytest.warns(UserWarning, match=f"{far} of 60 points lie more than a quarter"):
        gram = Geodesic(Linear(), [1.0, 0, 0])(directions)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    with pytest.warns(UserWarning, match="more than a quarter"):
        Geodesic(Wave(sigma=0.3), REFERENCE)(X)
    with pytest.raises(ValueError, match=r"row 1\) is antipodal"):
        Geodesic(Linear(), [1.0, 0, 0])(np.array([[0.6, 0.8, 0], [-1, 0, 0]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reference": [0.0, 1.0]}, r"reference of Geodesic is not a point.*2 features"),
        ({"reference": [0.0, np.nan, 1.0]}, "reference of Geodesic is not a point.*NaN"),
        ({"reference": "x"}, "reference of Geodesic is not a point"),
        ({"reference": [REFERENCE, REFERENCE]}, "reference of Geodesic is not a point"),
        ({"reference": X, "coefficients": np.ones(3)}, "coefficients of Geodesic must be 60"),
        ({"reference": X, "coefficients": np.full(60, np.inf)}, "must be 60 finite"),
        ({"reference": X[:2], "coefficients": [0.0, 0.0]}, "has no length"),
        ({"reference": X[[0, 0]], "coefficients": [1.0, -1.0]}, "has no length"),
        ({"reference": REFERENCE, "kernel": Precomputed()}, "cannot wrap 'precomputed'"),
        ({"reference": REFERENCE, "kernel": "nonsense"}, "Unknown kernel"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Geodesic(**{"kernel": Gaussian(sigma=1.0), **arguments})(X)
