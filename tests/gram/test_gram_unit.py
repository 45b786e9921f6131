"""Points of equal length, and input that Tangent rejects; laws_gram has laws of operators."""

import numpy as np
import pytest

from laws_sphere import DTYPES, cap
from orthodrome._core.unit import squared_radius
from orthodrome.gram import Centered, DenseGram, Scaled, Tangent, Weighted


@pytest.mark.parametrize(("dtype", "allowed"), [(np.float64, 2e-6), (np.float32, 2e-5)])
@pytest.mark.parametrize("scale", [1.0, 0.25, 1e-30, 3e20])
def test_a_diagonal_constant_up_to_rounding_is_averaged(dtype, allowed, scale):
    """The tolerance is relative, and follows the precision of the values."""
    exact = np.full(7, scale, dtype=dtype)
    assert squared_radius(exact) == pytest.approx(float(exact[0]), rel=1e-15)
    within = scale * np.array([1 + 0.9 * allowed, 1, 1, 1 - 0.9 * allowed])
    assert squared_radius(within.astype(dtype)) == pytest.approx(scale, rel=allowed / 10)
    assert squared_radius(exact, expected=float(exact[0])) == exact[0]
    with pytest.raises(ValueError, match="must be the same"):
        squared_radius((scale * np.array([1, 1 + 1.6 * allowed, 1, 1])).astype(dtype))


@pytest.mark.parametrize(
    ("diagonal", "options", "message"),
    [
        (
            [1, 1, 9, 1, 0.5],
            {},
            r"is 9 at row 2 of X and 0.5 at row 4\. Norm.*Normalized\(kernel\)",
        ),
        ([2, 3, 2.5], {"expected": 2.0, "what": "Z"}, r"is 3 at row 1 of Z and not 2\. "),
        ([1, 1, 0, 1, 0], {"what": "Z"}, r"^k\(x, x\) is 0 at row 2 of Z \(2 such rows\)"),
        ([1, 1, -0.5, 1], {}, r"^k\(x, x\) is -0.5 at row 2 of X"),
        ([1, 1, 1, np.inf], {}, r"^k\(x, x\) is inf at row 3 of X"),
    ],
)
def test_errors_name_rows_of_other_lengths(diagonal, options, message):
    with pytest.raises(ValueError, match=message):
        squared_radius(np.array(diagonal, dtype=float), **options)


def at_first_point(Y):
    return Tangent(DenseGram(Y @ Y.T), np.eye(len(Y))[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_tangent_names_antipodes(dtype):
    Y = cap(5, 3, 1.0)
    cross = at_first_point(Y).cross(np.vstack([Y[1:4], -Y[0]]) @ Y.T)
    for use, row in ((lambda: cross @ np.ones(5), 3), (lambda: cross.rows([3]), 0)):
        with pytest.raises(ValueError, match=rf"^1 of the new points \(row {row}\) is antipodal"):
            use()
    assert np.all(np.isfinite(cross.rows([0, 1, 2])))
    Y[[2, 4]] = -Y[0]
    with pytest.raises(ValueError, match=r"^2 of the points \(row 2, …\) are antipodal"):
        at_first_point(Y.astype(dtype))


def test_tangent_takes_known_cosines_and_needs_points_of_unit_length():
    Y = cap(8, 3, 1.0)
    fresh = at_first_point(Y)
    known = Tangent(DenseGram(Y @ Y.T), fresh.base_point, Y @ Y[0])
    np.testing.assert_allclose(known.toarray(), fresh.toarray(), atol=1e-14)
    Y[3] *= 1.001
    with pytest.raises(ValueError, match=r"k\(x, x\) must be the same .* at row 3 of points"):
        at_first_point(Y)


@pytest.mark.parametrize(("dtype", "allowed"), [(np.float64, 1e-6), (np.float32, 1e-3)])
@pytest.mark.parametrize("sign", [1, -1])
def test_tangent_needs_a_base_point_of_unit_length(dtype, allowed, sign):
    """The tolerance is that of its square, and follows the precision of the operator."""
    Y = cap(5, 3, 1.0)
    gram = DenseGram((Y @ Y.T).astype(dtype))
    first = np.eye(5)[0]
    Tangent(gram, np.sqrt(1 + 0.9 * sign * allowed) * first)
    for off in (1.1 * sign * allowed, 0.05 * sign):
        with pytest.raises(ValueError, match=r"unit length; its square is \d\.\d+\. Divide it"):
            Tangent(gram, np.sqrt(1 + off) * first)


def test_coefficients_that_cancel_enlarge_the_terms():
    """Large coefficients have large rounding errors."""
    Y = cap(5, 3, 1.0)[[0, 1, 1, 2, 3, 4]]
    gram = DenseGram(Y @ Y.T)
    plain, large = np.eye(6)[0], np.array([1.0, 300.0, -300.0, 0, 0, 0])
    ratio = Tangent(gram, large).term_size() / Tangent(gram, plain).term_size()
    assert ratio == pytest.approx(np.linalg.norm(large), rel=1e-6)


def test_terms_of_wrapped_operators():
    """Rounding errors are those of the largest terms, in every wrapper."""
    X = np.random.default_rng(0).standard_normal((30, 3)) + 100
    gram = DenseGram(X @ X.T)
    assert gram.term_size() == 0
    assert gram.rounding() == 0
    centred = Centered(gram)
    terms = centred.term_size()
    assert np.diagonal(gram.matrix).max() <= terms <= 2 * np.diagonal(gram.matrix).max()
    assert centred.rounding() == pytest.approx(16 * np.finfo(float).eps * terms)
    assert Scaled(centred, 3.0).term_size() == pytest.approx(3 * terms)
    weights = np.linspace(0, 2, 30)
    assert Weighted(centred, weights).term_size() == pytest.approx(4 * terms)
    assert Weighted(gram, weights).term_size() == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", ["centred", "tangent"])
def test_products_of_equal_points_are_zero(make, weighted, dtype):
    """The n terms of size 1 in each entry of K V must cancel before they are rounded."""
    n, rng = 400, np.random.default_rng(0)
    gram = DenseGram(np.ones((n, n), dtype=dtype))
    weights = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    share = weights / weights.sum()
    geometry = Centered(gram, weights) if make == "centred" else Tangent(gram, share)
    V = (1 + 0.1 * rng.standard_normal((n, 3))).astype(dtype)
    assert np.abs(geometry @ V).max() <= 0.1 * np.finfo(dtype).eps * np.abs(gram @ V).max()
    assert np.abs(geometry.cross(np.ones((2, n), dtype=dtype)) @ V).max() <= (
        np.finfo(dtype).eps * np.abs(gram @ V).max()
    )
