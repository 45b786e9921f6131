"""Sizes as people write them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orthodrome._core.memory import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GiB", 2 * 2**30),
        ("512MiB", 512 * 2**20),
        ("1.5 kB", 1500),
        ("  3 mb ", 3_000_000),
        (".5KiB", 512),
        ("1TB", 10**12),
        ("2tib", 2 * 2**40),
        ("7", 7),
        ("7B", 7),
        ("1e9", 10**9),
        (1024, 1024),
        (1.9, 1),
        (np.float32(4096), 4096),
        (np.int64(9), 9),
    ],
)
def test_parse(text, expected):
    size = parse_bytes(text)
    assert type(size) is int
    assert size == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 bananas", r"budget has the unknown unit 'bananas'; got '2 bananas'. Write.*512MiB"),
        ("lots", "budget must be a number of bytes or a string such as '2GiB'; got 'lots'"),
        ("", "budget must be a number of bytes or a string"),
        ("-2GiB", "budget must be a number of bytes or a string"),
        (None, "budget must be a number of bytes or a string such as '2GiB'; got None"),
        (True, "budget must be a number of bytes or a string such as '2GiB'; got True"),
        ([1], "budget must be a number of bytes or a string"),
        (0, "budget must be finite and at least one byte; got 0"),
        ("0.1B", "budget must be finite and at least one byte"),
        (-5, "budget must be finite and at least one byte; got -5"),
        (np.inf, "budget must be finite and at least one byte; got inf"),
        (np.nan, "budget must be finite and at least one byte; got nan"),
        (10**400, "budget must be finite and at least one byte; got 1000"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(ValueError, match=message):
        parse_bytes(text, "budget")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1023 * 2**20, "1023 MiB"),
        (3_200_000_000, "2.98 GiB"),
        (2**40, "1 TiB"),
        (2**45, "32 TiB"),
    ],
)
def test_format(size, text):
    assert format_bytes(size) == text


@given(st.integers(1, 2**52))
def test_what_is_written_can_be_read_back(size):
    assert parse_bytes(format_bytes(size)) == pytest.approx(size, rel=0.006)
