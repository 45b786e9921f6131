"""How near Gram blocks come to the speed of a matrix product of the same shapes."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from harness import REPEATS, Table, size
from sklearn.metrics.pairwise import rbf_kernel

from orthodrome.gram import gram_operator
from orthodrome.kernels import Gaussian

N = size(6144, 512)
DIMENSIONS = size((8, 32, 128, 784), (8, 32))
VECTORS = 16
PRECISIONS = (np.float32, np.float64)


@cache
def points(d: int, precision: Any) -> np.ndarray:
    return np.random.default_rng(d).standard_normal((N, d)).astype(precision)


@cache
def vectors(precision: Any) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, VECTORS)).astype(precision)


def works(d: int, precision: Any) -> dict[str, Callable[[], Any]]:
    """All of the same X and Y, on the threads that BLAS has."""
    X, Y = points(d, precision), points(d, precision)[::-1].copy()
    kernel = Gaussian(sigma=float(np.sqrt(d))).fit(X)
    gamma = 0.5 / kernel.sigma_**2
    streamed = gram_operator(kernel, X, storage="recompute")
    V = vectors(precision)
    return {
        "product": lambda: X @ Y.T,
        "gram": lambda: kernel(X, Y),
        "streamed": lambda: streamed @ V,
        "sklearn": lambda: rbf_kernel(X, Y, gamma=gamma),
    }


def seconds(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Run all in turn, after a warm-up."""
    for call in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(2 * REPEATS):  # they are short
        for name, call in calls.items():
            gc.collect()
            start = time.perf_counter()
            result = call()
            taken[name].append(time.perf_counter() - start)
            del result
    return taken


def run() -> list[Table]:
    rows = []
    for precision in PRECISIONS:
        for d in DIMENSIONS:
            taken = seconds(works(d, precision))
            middle = {name: statistics.median(values) for name, values in taken.items()}
            speed = 2e-9 * N * N * d / middle["product"]
            rows.append(
                [np.dtype(precision).name, str(d), f"{speed:.1f}"]
                + [fraction(taken, middle, name) for name in ("gram", "streamed", "sklearn")]
            )
    return [
        Table(
            name=f"Gram blocks compared with the matrix product of the same shapes, {N:,} x {N:,}",
            columns=["", "d", "product, Gflop/s", "Gram block", "streamed", "sklearn rbf_kernel"],
            rows=rows,
            note="The last three columns: seconds of the product X Yᵀ over the seconds of the "
            "other (range over neighbouring runs), so 1 is the speed of the matrix product alone; "
            f"medians of {2 * REPEATS} runs in turn, on the same threads. A Gram block has an "
            "exponential for each entry too: with few coordinates this is most of the work. "
            f"Streamed: the product of the whole symmetric Gram matrix with {VECTORS} vectors, "
            "tiles recomputed; it computes half of the entries, so that it may exceed 1.",
        )
    ]


def fraction(taken: dict[str, list[float]], middle: dict[str, float], name: str) -> str:
    pairs = [a / b for a, b in zip(taken["product"], taken[name], strict=True)]
    return f"{middle['product'] / middle[name]:.2f} ({min(pairs):.2f} to {max(pairs):.2f})"
