"""Points of one length, and what Tangent refuses; the operators' own laws are in laws_gram."""

import numpy as np
import pytest

from laws_sphere import DTYPES, cap
from orthodrome.gram import Centered, Combined, DenseGram, Scaled, Tangent, squared_radius

# The squared radius -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [1.0, 0.25, 1e-30, 3e20])
def test_a_constant_is_returned(value, dtype):
    diagonal = np.full(7, value, dtype=dtype)
    radius = squared_radius(diagonal)
    assert isinstance(radius, float)
    np.testing.assert_allclose(radius, float(diagonal[0]), rtol=1e-15)


@pytest.mark.parametrize(("dtype", "allowed"), [(np.float64, 2e-6), (np.float32, 2e-5)])
@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_a_constant_to_rounding_is_averaged(dtype, allowed, scale):
    """The tolerance is relative, and follows the precision of the values."""
    within = scale * np.array([1 + 0.9 * allowed, 1, 1, 1 - 0.9 * allowed])
    np.testing.assert_allclose(squared_radius(within.astype(dtype)), scale, rtol=allowed / 10)
    with pytest.raises(ValueError, match="must be the same"):
        squared_radius((scale * np.array([1, 1 + 1.6 * allowed, 1, 1])).astype(dtype))


def test_different_lengths_name_both_rows_and_the_remedy():
    message = r"it is 9 at row 2 of X and 0.5 at row 4\. Normalise .*kernel=Normalized\(kernel\)"
    with pytest.raises(ValueError, match=message):
        squared_radius(np.array([1.0, 1.0, 9.0, 1.0, 0.5]))


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_no_length_names_the_row_and_counts(value):
    diagonal = np.array([1.0, 1.0, value, 1.0, value])
    message = rf"^k\(x, x\) is {value:g} at row 2 of new points \(2 such rows\)"
    with pytest.raises(ValueError, match=message):
        squared_radius(diagonal, what="new points")


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_overflow_names_the_row(value):
    with pytest.raises(ValueError, match=r"^k\(x, x\) overflows at row 3 of X"):
        squared_radius(np.array([1.0, 0.0, 1.0, value]))


def test_the_expected_length():
    assert squared_radius(np.array([2.0, 2.0]), expected=2.0) == 2.0
    assert squared_radius(np.array([2.0, 2.0 + 1e-6]), expected=2.0) == 2.0
    with pytest.raises(ValueError, match=r"is 3 at row 1 of Z and not 2\. "):
        squared_radius(np.array([2.0, 3.0, 2.5]), expected=2.0, what="Z")
    with pytest.raises(ValueError, match="must be the same"):  # constant, but another one
        squared_radius(np.array([3.0, 3.0]), expected=2.0)


# What Tangent refuses -----------------------------------------------------------------------------


def at_first_point(Y):
    return Tangent(DenseGram(Y @ Y.T), np.eye(len(Y))[0])


@pytest.mark.parametrize("shape", [(4,), (6,), (5, 1), (1, 5), ()])
def test_tangent_needs_one_coefficient_per_point(shape):
    Y = cap(5, 3, 1.0)
    with pytest.raises(ValueError, match=r"base_point of Tangent must be 5 finite real numbers"):
        Tangent(DenseGram(Y @ Y.T), np.ones(shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tangent_names_antipodes(dtype):
    Y = cap(5, 3, 1.0)
    Y[[2, 4]] = -Y[0]
    with pytest.raises(ValueError, match=r"^2 of the points \(row 2, 4\) are antipodal"):
        at_first_point(Y.astype(dtype))


def test_tangent_names_antipodes_among_new_points():
    Y = cap(5, 3, 1.0)
    new = np.vstack([Y[1:4], -Y[0]])
    cross = at_first_point(Y).cross(new @ Y.T)
    with pytest.raises(ValueError, match=r"^1 of the new points \(row 3\) is antipodal"):
        cross @ np.ones(5)
    with pytest.raises(ValueError, match=r"^1 of the new points \(row 0\) is antipodal"):
        cross.rows([3])
    assert np.all(np.isfinite(cross.rows([0, 1, 2])))


def test_tangent_takes_cosines_that_are_known():
    Y = cap(8, 3, 1.0)
    fresh = at_first_point(Y)
    known = Tangent(DenseGram(Y @ Y.T), fresh.base_point, Y @ Y[0])
    np.testing.assert_allclose(known.toarray(), fresh.toarray(), atol=1e-14)
    np.testing.assert_allclose(known.angles, np.arccos(np.clip(Y @ Y[0], -1, 1)), atol=1e-7)


def test_lengths_that_differ_little_are_told_apart_in_the_message():
    with pytest.raises(ValueError, match=r"it is 1\.000006 at row 2 of X and 1 at row 0\. "):
        squared_radius(np.array([1.0, 1.0, 1.000006]))
    with pytest.raises(ValueError, match=r"it is 1 at row 0 of X and not 1\.000006\. "):
        squared_radius(np.ones(2), expected=1.000006)


def test_tangent_needs_points_of_unit_length():
    Y = cap(5, 3, 1.0)
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
        with pytest.raises(ValueError, match=r"must have unit length; its square is \d\.\d"):
            Tangent(gram, np.sqrt(1 + off) * first)


def test_coefficients_that_cancel_enlarge_the_terms():
    """The same base point from large coefficients has the rounding of those."""
    Y = cap(5, 3, 1.0)[[0, 1, 1, 2, 3, 4]]
    gram = DenseGram(Y @ Y.T)
    plain, large = np.eye(6)[0], np.array([1.0, 300.0, -300.0, 0, 0, 0])
    ratio = Tangent(gram, large).term_size() / Tangent(gram, plain).term_size()
    assert ratio == pytest.approx(np.linalg.norm(large), rel=1e-6)
    with pytest.raises(ValueError, match=r"its square is 1\.44\. Divide it by its length"):
        Tangent(gram, 1.2 * plain)


def test_terms_of_wrapped_operators():
    """A difference of large terms is rounded as they are, whatever is wrapped around it."""
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
    assert Combined(centred, weights).term_size() == pytest.approx(4 * terms)
    mixing = np.array([[1.0, -2.0] + [0.0] * 28])
    assert Combined(centred, mixing).term_size() == pytest.approx(9 * terms)
    assert Combined(gram, weights).term_size() == 0


# Points that coincide -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", ["centred", "tangent"])
def test_products_of_coincident_points_do_not_have_the_rounding_of_the_matrix(
    make, weighted, dtype
):
    """K V has n terms of size 1 in each entry; their rounding must not be left of 0."""
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


# What is no Gram matrix ---------------------------------------------------------------------------


def _with(value, place=(3, 3)):
    K = np.eye(12)
    K[place] = value
    return K


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (_with(np.nan), r"entry \(3, 3\) is nan"),
        (_with(np.nan, (3, 4)), r"entry \(3, 4\) is nan"),
        (_with(np.inf), r"entry \(3, 3\) is inf"),
        (_with(1.7e308), r"sums overflow in float64; rescale"),
        (np.eye(12) + 0j, "must be real"),
        ([[1.0, 0.0], [0.0]], "must hold numbers"),
        (np.ma.masked_equal(np.eye(12), 1.0), "masked"),
    ],
    ids=["nan", "nan beside", "inf", "huge", "complex", "ragged", "masked"],
)
def test_matrices_that_no_points_have_are_refused(matrix, words):
    with pytest.raises(ValueError, match=words):
        DenseGram(matrix)
