"""Angles of cosines, and cosines beyond 1; accuracy is in tests/accuracy_sphere.py."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome._core.unit import angles_from_cosines, check_cosines


@settings(max_examples=200, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_angles_fall_as_cosines_rise(first, second):
    angles, ratios = angles_from_cosines(np.array(sorted([first, second])))
    assert np.pi >= angles[0] >= angles[1] >= 0
    assert np.all(ratios >= 1 - 1e-15)
    assert ratios[0] >= ratios[1] * (1 - 1e-15)


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
