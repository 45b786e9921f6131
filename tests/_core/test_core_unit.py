"""Angles are accurate from 0 to π, and points off the sphere are named."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome._core.unit import (
    ANTIPODAL,
    LENGTH_TOLERANCE,
    angles_from_chords,
    angles_from_complements,
    angles_from_cosines,
    check_cosines,
    check_no_antipodes,
    check_unit_length,
)

both_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])

# from below the square root of the smallest number to near π
ANGLES = [1e-300, 1e-160, 1e-30, 1e-16, 1e-8, 1e-4, 0.01, 0.5, 1.0, np.pi / 2, 2.0, 3.0, 3.14159]
ANGLES += [np.pi - 1e-7]


def assert_angles(found, angles, ratios, dtype, units=(4, 8)):
    """Compare angles and θ/sin θ, to units in the last place."""
    eps = float(np.finfo(dtype).eps)
    for values, expected, n in zip(found, (angles, ratios), units, strict=True):
        assert values.dtype == dtype
        np.testing.assert_allclose(values.astype(float), expected, rtol=n * eps, atol=0)


@both_dtypes
def test_angles_from_sums_and_differences(dtype):
    angles = np.array([angle for angle in ANGLES if angle > np.finfo(dtype).tiny], np.longdouble)
    halves = [np.asarray(2 * leg(angles / 2), dtype=dtype) for leg in (np.sin, np.cos)]
    ratios = np.where(angles < 1e-6, 1 + angles**2 / 6, angles / np.sin(angles))
    assert_angles(angles_from_chords(*halves), angles.astype(float), ratios.astype(float), dtype)
    ends = angles_from_chords(np.array([0, 2], dtype=dtype), np.array([2, 0], dtype=dtype))
    assert_angles(ends, dtype([0, np.pi]), [1, np.inf], dtype, (0, 0))


@both_dtypes
def test_angles_from_cosines_and_complements(dtype):
    """Of the rounded cosines, by half angles in extended precision."""
    finest = np.finfo(dtype).epsneg
    near = np.array([1 - finest, 1 - 2 * finest, 1 - 7 * finest, 1 - 1e-6, 0.99], dtype=dtype)
    cosines = np.concatenate([near, np.linspace(-0.98, 0.98, 50, dtype=dtype), -near])
    c = cosines.astype(np.longdouble)
    sine, cosine = np.sqrt((1 - c) / 2), np.sqrt((1 + c) / 2)  # of the half angles
    angles = 2 * np.arctan2(sine, cosine)
    exact = angles.astype(float), (angles / (2 * sine * cosine)).astype(float)
    assert_angles(angles_from_cosines(cosines), *exact, dtype, (8, 8))
    small = cosines > 0.9  # where 1 - c is exact
    found = angles_from_complements(1 - cosines[small])
    assert_angles(found, *(each[small] for each in exact), dtype, (8, 8))


@settings(max_examples=200, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_angles_fall_as_cosines_rise(first, second):
    angles, ratios = angles_from_cosines(np.array(sorted([first, second])))
    assert np.pi >= angles[0] >= angles[1] >= 0
    assert np.all(ratios >= 1 - 1e-15)
    assert ratios[0] >= ratios[1] * (1 - 1e-15)


@both_dtypes
def test_antipodes_begin_at_a_few_units_in_the_last_place(dtype):
    eps = float(np.finfo(dtype).eps)
    check_no_antipodes(np.array([-1 + 1.1 * ANTIPODAL * eps, 0.0, 1.0]), eps, "points")
    check_no_antipodes(np.array([]), eps, "points")
    for shift in (0.9 * ANTIPODAL * eps, 0.0, -1e-9):
        with pytest.raises(ValueError, match=r"^1 of the points \(row 1\) is antipodal"):
            check_no_antipodes(np.array([1.0, -1 + shift]), eps, "points")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("dtype", "allowed"), [(np.float64, 1e-6), (np.float32, 1.19e-4)])
def test_cosines_exceed_1_by_rounding_only(dtype, allowed, sign):
    eps = float(np.finfo(dtype).eps)
    check_cosines(np.array([0.2, sign * (1 + 0.9 * allowed), -sign * 0.9]), eps, "points")
    check_cosines(np.array([]), eps, "points")
    for value in (sign * (1 + 1.2 * allowed), np.nan):
        message = rf"^The inner product of row 1 of points .* is {re.escape(f'{value:.8g}')}, more"
        with pytest.raises(ValueError, match=message):
            check_cosines(np.array([0.2, value, -sign * 0.9]), eps, "points")


@pytest.mark.parametrize("sign", [1, -1])
@both_dtypes
def test_unit_length(dtype, sign):
    allowed = LENGTH_TOLERANCE[np.dtype(dtype)]
    check_unit_length(np.array([1, 1 + 0.9 * sign * allowed]), dtype, "points")
    for square, length in ((1 + 1.1 * sign * allowed, ""), (4.0, "2"), (0.25, "0.5"), (0.0, "0")):
        with pytest.raises(ValueError, match=rf"^points must .*; row 1 has length {length}"):
            check_unit_length(np.array([1 + sign * allowed / 2, square]), dtype, "points")
