"""Angles keep their digits from 0 to π, and antipodes are named."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome._core.unit import (
    ANTIPODAL,
    SAME_LENGTH,
    angles_from_cosines,
    angles_from_halves,
    check_cosines,
    check_no_antipodes,
    check_unit_length,
)

DTYPES = [np.float64, np.float32]

# from below the square root of the smallest number to beside π
ANGLES = [1e-300, 1e-160, 1e-30, 1e-16, 1e-8, 1e-4, 0.01, 0.5, 1.0, np.pi / 2, 2.0, 3.0, 3.14159]
ANGLES += [np.pi - 1e-7]


def ratio(angle):
    """θ/sin θ in extended precision."""
    angle = np.longdouble(angle)
    return 1 + angle**2 / 6 if angle < 1e-6 else angle / np.sin(angle)


# From the lengths of difference and sum -----------------------------------------------------------


def halves(angle, dtype):
    """‖a - b‖ and ‖a + b‖ of unit vectors with an angle between them."""
    half = np.longdouble(angle) / 2
    return tuple(np.array([2 * leg]).astype(dtype) for leg in (np.sin(half), np.cos(half)))


@pytest.mark.parametrize(
    ("angle", "dtype"),
    [(angle, dtype) for dtype in DTYPES for angle in ANGLES if angle > np.finfo(dtype).tiny],
)
def test_halves_give_every_angle_to_the_last_digits(angle, dtype):
    angles, ratios = angles_from_halves(*halves(angle, dtype))
    assert angles.dtype == ratios.dtype == dtype
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(angles.astype(float), angle, rtol=4 * eps, atol=0)
    np.testing.assert_allclose(ratios.astype(float), float(ratio(angle)), rtol=8 * eps, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_halves_at_the_ends(dtype):
    angles, ratios = angles_from_halves(
        np.array([0, 2], dtype=dtype), np.array([2, 0], dtype=dtype)
    )
    np.testing.assert_array_equal(angles, np.array([0, np.pi], dtype=dtype))
    np.testing.assert_array_equal(ratios, [1, np.inf])
    assert angles.dtype == ratios.dtype == dtype


# From cosines -------------------------------------------------------------------------------------


def exact(cosines):
    """The angles θ that rounded cosines have, and θ/sin θ, by half angles in extended precision."""
    c = cosines.astype(np.longdouble)
    sine, cosine = np.sqrt((1 - c) / 2), np.sqrt((1 + c) / 2)  # of the half angles
    angles = 2 * np.arctan2(sine, cosine)
    return angles.astype(float), (angles / (2 * sine * cosine)).astype(float)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosines_give_the_angle_that_they_have(dtype):
    finest = np.finfo(dtype).epsneg
    near = np.array([1 - finest, 1 - 2 * finest, 1 - 7 * finest, 1 - 1e-6, 0.99], dtype=dtype)
    cosines = np.concatenate([near, np.linspace(-0.98, 0.98, 50, dtype=dtype), -near])
    angles, ratios = angles_from_cosines(cosines)
    assert angles.dtype == ratios.dtype == dtype
    eps = float(np.finfo(dtype).eps)
    for result, expected in zip((angles, ratios), exact(cosines), strict=True):
        np.testing.assert_allclose(result.astype(float), expected, rtol=8 * eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cosines_beyond_one_are_clipped(dtype):
    angles, ratios = angles_from_cosines(np.array([1, 1.001, 7, -1, -1.001, -7], dtype=dtype))
    np.testing.assert_array_equal(angles, np.array([0, 0, 0, *3 * [np.pi]], dtype=dtype))
    np.testing.assert_array_equal(ratios, [1, 1, 1, np.inf, np.inf, np.inf])


@settings(max_examples=200, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_angles_fall_as_cosines_rise(first, second):
    angles, ratios = angles_from_cosines(np.array(sorted([first, second])))
    assert np.pi >= angles[0] >= angles[1] >= 0
    assert np.all(ratios >= 1 - 1e-15)
    assert ratios[0] >= ratios[1] * (1 - 1e-15)


def test_the_argument_is_kept():
    cosines = np.array([2.0, 0.5])
    cosines.setflags(write=False)
    angles_from_cosines(cosines)
    np.testing.assert_array_equal(cosines, [2.0, 0.5])


# Antipodes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_antipodes_begin_at_a_few_units_in_the_last_place(dtype):
    eps = float(np.finfo(dtype).eps)
    check_no_antipodes(np.array([-1 + 1.1 * ANTIPODAL * eps, 0.0, 1.0]), eps, "points")
    for shift in (0.9 * ANTIPODAL * eps, 0.0, -1e-9):
        with pytest.raises(ValueError, match=r"^1 of the points \(row 1\) is antipodal"):
            check_no_antipodes(np.array([1.0, -1 + shift]), eps, "points")


def test_antipodes_are_counted_and_the_first_named():
    cosines = np.zeros(20)
    cosines[[2, 3, 5, 7]] = -1
    with pytest.raises(ValueError, match=r"^4 of the new points \(row 2, 3, 5, 7\) "):
        check_no_antipodes(cosines, 1e-16, "new points")
    cosines[[11, 13]] = -1
    with pytest.raises(ValueError, match=r"^6 of the new points \(row 2, 3, 5, 7, 11, …\) "):
        check_no_antipodes(cosines, 1e-16, "new points")


def test_no_points_have_no_antipodes():
    check_no_antipodes(np.array([]), 1e-16, "points")


# What is on the sphere ----------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("dtype", "allowed"), [(np.float64, 1e-6), (np.float32, 1.19e-4)])
def test_cosines_exceed_1_by_rounding_alone(dtype, allowed, sign):
    eps = float(np.finfo(dtype).eps)
    check_cosines(np.array([0.2, sign * (1 + 0.9 * allowed), -sign * 0.9]), eps, "points")
    shown = re.escape(f"{sign * (1 + 1.2 * allowed):.8g}")
    message = rf"^The inner product of row 1 of points .* is {shown}, more than 1"
    with pytest.raises(ValueError, match=message):
        check_cosines(np.array([0.2, sign * (1 + 1.2 * allowed), -sign * 0.9]), eps, "points")


def test_cosines_that_are_undefined_are_on_no_sphere():
    with pytest.raises(ValueError, match=r"row 2 of points .* is nan"):
        check_cosines(np.array([0.1, 3.0, np.nan]), 1e-16, "points")
    check_cosines(np.array([]), 1e-16, "points")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_unit_length_follows_the_precision(dtype, sign):
    allowed = SAME_LENGTH[np.dtype(dtype)]
    check_unit_length(np.array([1, 1 + 0.9 * sign * allowed]), dtype, "points")
    with pytest.raises(ValueError, match=r"^points must have unit length; row 1 has length "):
        check_unit_length(
            np.array([1 + sign * allowed / 2, 1 + 1.1 * sign * allowed]), dtype, "points"
        )


@pytest.mark.parametrize(("square", "length"), [(4.0, "2"), (0.25, "0.5"), (0.0, "0")])
def test_another_length_is_said(square, length):
    with pytest.raises(ValueError, match=rf"row 1 has length {length}\. Divide each"):
        check_unit_length(np.array([1.001, square]), np.float64, "points")
