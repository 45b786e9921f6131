"""Every error is within its bound, and every bound is near what was seen."""

import numpy as np
import pytest

import accuracy
import measuring

CASES = [
    pytest.param(
        name, precision, id=f"{name}-{precision}", marks=[pytest.mark.slow] if each.slow else []
    )
    for name, each in accuracy.measurements().items()
    for precision in measuring.bounds()[name]["bound"]
]
# How far a bound may be above the largest error seen: other machines round in other ways.
ROOM = 16


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_errors_are_within_their_bounds(name, precision):
    bound = measuring.bounds()[name]["bound"][precision]
    assert accuracy.measurements()[name].largest(measuring.DTYPES[precision]) <= bound


def test_every_bound_is_measured_and_recorded():
    said, record = measuring.bounds(), accuracy.recorded()
    assert set(said) == set(accuracy.measurements())
    assert {name: set(each) for name, each in record.items()} == {
        name: set(each["bound"]) for name, each in said.items()
    }


@pytest.mark.parametrize("name", measuring.bounds())
def test_bounds_say_something(name):
    for precision, bound in measuring.bounds()[name]["bound"].items():
        seen = accuracy.recorded()[name][precision]
        assert seen <= bound <= max(ROOM * seen, 1.0), precision


def test_what_is_no_number_is_beyond_every_bound():
    assert measuring.largest([1.0, np.nan, 2.0]) == np.inf
    with pytest.raises(ValueError, match="nothing was measured"):
        measuring.largest([])
