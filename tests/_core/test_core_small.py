"""Sizes in bytes, seeds, the description of the machine, and the place of warnings."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orthodrome import KernelPCA
from orthodrome._core.memory import format_bytes, parse_bytes
from orthodrome.eigen import Krylov

SIZES = {
    **{"2GiB": 2 * 2**30, "512MiB": 512 * 2**20, "1.5 kB": 1500, "  3 mb ": 3_000_000},
    **{".5KiB": 512, "1TB": 10**12, "2tib": 2 * 2**40, "7": 7, "7B": 7, "1e9": 10**9},
    **{1024: 1024, 1.9: 1, np.float32(4096): 4096, np.int64(9): 9},
}
BAD_SIZES = [
    ("2 bananas", "budget has the unknown unit 'bananas'; got '2 bananas'"),
    *((bad, "budget must be a number of bytes") for bad in ("lots", "", "-2GiB", None, True, [1])),
    *((bad, "budget must be finite and at least one") for bad in (0, "0.1B", -5, np.inf, 10**400)),
    (np.nan, "budget must be"),
]
TEXTS = {
    **{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1023 * 2**20: "1023 MiB"},
    **{3_200_000_000: "2.98 GiB", 2**40: "1 TiB", 2**45: "32 TiB"},
}


def test_sizes():
    for text, expected in SIZES.items():
        assert type(parse_bytes(text)) is int
        assert parse_bytes(text) == expected, text
    for bad, message in BAD_SIZES:
        with pytest.raises(ValueError, match=message):
            parse_bytes(bad, "budget")
    for size, text in TEXTS.items():
        assert format_bytes(size) == text


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_warnings_point_at_the_line_of_the_user(steps, method):
    model = KernelPCA(2, solver=Krylov(tol=1e-15, max_iter=1, block_size=2, max_basis=1))
    with pytest.warns(ConvergenceWarning) as caught:
        getattr(make_pipeline(*steps, model) if steps else model, method)(
            np.random.default_rng(0).normal(size=(60, 3))
        )
    assert {warning.filename for warning in caught} == {__file__}
