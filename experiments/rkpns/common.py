"""What the experiments of the rkPNS paper share: the kernels, and the way to `pages`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from warnings import catch_warnings, filterwarnings

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # where pages.py is; scripts import this module before it

import pages

from orthodrome.kernels import Gaussian, Kernel, Normalized, Polynomial

publish = partial(pages.publish, HERE)

GAUSSIAN, POLYNOMIAL = "Gaussian", "polynomial"
KERNELS = (GAUSSIAN, POLYNOMIAL)


def kernel_of(name: str) -> Kernel:
    """The paper's kernels: σ² the mean squared distance, or (xᵀx')¹⁰ brought to k(x, x) = 1."""
    if name == GAUSSIAN:
        return Gaussian()
    return Normalized(Polynomial(degree=10, gamma=1.0, coef0=0.0))


@contextmanager
def wraps_recorded() -> Iterator[None]:
    """No warning of a circle that wraps: the experiments write it down instead."""
    with catch_warnings():
        filterwarnings("ignore", "The points take up", UserWarning)
        yield
