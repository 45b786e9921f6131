"""Errors against mpmath are within their bounds."""

import importlib

import pytest

from measuring import BOUNDS, MEASUREMENTS

for room in ("sphere", "kernels", "fits", "spectra"):
    importlib.import_module(f"accuracy_{room}")

CASES = [
    pytest.param(
        name,
        precision,
        marks=[pytest.mark.slow] if MEASUREMENTS[name].slow or precision == "float32" else [],
    )
    for name in MEASUREMENTS
    for precision in BOUNDS[name]
]


@pytest.mark.parametrize(("name", "precision"), CASES)
def test_errors_are_within_their_bounds(name, precision):
    assert MEASUREMENTS[name].largest(precision) <= BOUNDS[name][precision]


def test_every_bound_is_measured():
    assert set(BOUNDS) == set(MEASUREMENTS)
