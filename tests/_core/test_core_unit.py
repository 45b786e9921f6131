"""Angles of cosines, and cosines beyond 1; accuracy is in tests/accuracy_sphere.py."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome._core.unit import angles_from_cosines


@settings(max_examples=200, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_angles_fall_as_cosines_rise(first, second):
    angles, ratios = angles_from_cosines(np.array(sorted([first, second])))
    assert np.pi >= angles[0] >= angles[1] >= 0
    assert np.all(ratios >= 1 - 1e-15)
    assert ratios[0] >= ratios[1] * (1 - 1e-15)
