"""Dask: two worker processes compared with one, and the estimated cost of many points."""

from __future__ import annotations

import logging
import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from harness import REPEATS, Comparison, Measured, compare, size

from orthodrome import KernelPGA
from orthodrome.eigen import Nystroem

N, D, ROWS_OF_BLOCK = size(800_000, 8_000), 32, size(25_000, 1_000)
ANCHORS, MODES = size(512, 32), size(16, 4)
MANY = 10**8


def make_block(block_info: Any = None) -> np.ndarray:
    place = block_info[None]
    rng = np.random.default_rng([1, place["chunk-location"][0]])
    centers = 3 * np.random.default_rng(0).standard_normal((20, D))
    rows = place["chunk-shape"][0]
    points = centers[rng.integers(20, size=rows)] + rng.standard_normal((rows, D))
    return points.astype(np.float32)


def points(n: int) -> da.Array:
    blocks = tuple(min(ROWS_OF_BLOCK, n - start) for start in range(0, n, ROWS_OF_BLOCK))
    return da.map_blocks(make_block, chunks=(blocks, (D,)), dtype=np.float32)


class Cluster:
    """Worker processes of one thread each, which keep the points between fits."""

    def __init__(self, n_workers: int, stack: ExitStack) -> None:
        # the processes that nannies start have one BLAS thread each
        self._cluster = stack.enter_context(
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        )
        self._client = stack.enter_context(Client(self._cluster, set_as_default=False))
        self._kept: dict[int, Any] = {}

    def fit(self, n: int) -> KernelPGA:
        """Fit kernel PGA to the first n points."""
        with self._client.as_current():
            if n not in self._kept:
                self._kept[n] = self._client.persist(points(n))
                wait(self._kept[n])
            solver = Nystroem(n_anchors=ANCHORS, random_state=0)
            return KernelPGA(MODES, solver=solver).fit(self._kept[n])


def title(n: int) -> str:
    return (
        f"KernelPGA of a dask array, {n:,} x {D} float32 in blocks of {ROWS_OF_BLOCK:,}, "
        f"{ANCHORS} anchors, {MODES} modes"
    )


def growth_title(n: int) -> str:
    """The section that the page of the documentation about clusters shows."""
    return f"Growth: {n:,} points compared with {n // 2:,}, on one worker"


def run(full: bool = False) -> list[Measured]:
    return measured(N) if full else []  # some minutes: passes have to outweigh what is done once


def measured(n: int, repeats: int = REPEATS) -> list[Measured]:
    with ExitStack() as stack:
        one, two = Cluster(1, stack), Cluster(2, stack)
        expected = one.fit(n).eigenvalues_

        def error(model: KernelPGA) -> float:
            return float(np.abs(model.eigenvalues_ / expected - 1).max())

        speed = compare(
            Comparison(
                name=title(n),
                ours=lambda: two.fit(n),
                theirs=lambda: one.fit(n),
                ours_label="2 worker processes of one thread",
                theirs_label="1 worker process of one thread",
                accuracy=error,
                required=1e-4,
                target=1 / 1.6,
                note="The workers hold the points, with one BLAS thread each. Error: relative "
                "difference of the eigenvalues from those with one worker.",
            ),
            repeats=repeats,
        )
        growth = compare(
            Comparison(
                name=growth_title(n),
                ours=lambda: one.fit(n),
                theirs=lambda: one.fit(n // 2),
                ours_label=f"{n:,} points",
                theirs_label=f"{n // 2:,} points",
            ),
            repeats=min(repeats, 3),
        )
    growth.note = cost_of_many(growth, n)
    return [speed, growth]


@dataclass(frozen=True)
class Cost:
    """What a fit costs: so much for each block, on whichever worker, and so much once.

    Attributes
    ----------
    block : float
        Seconds of one worker for a block, all passes together.
    once : float
        Seconds that do not depend on the number of points.
    """

    block: float
    once: float

    @classmethod
    def of(cls, long: list[float], short: list[float], blocks: tuple[int, int]) -> Cost:
        """Return the straight line through medians of seconds at two numbers of blocks."""
        seconds = [statistics.median(values) for values in (long, short)]
        block = (seconds[0] - seconds[1]) / (blocks[0] - blocks[1])
        return cls(block, max(seconds[1] - block * blocks[1], 0.0))

    def seconds(self, n_blocks: int, n_workers: int) -> float:
        """Return how long workers need, if each has its share of blocks."""
        return self.once + self.block * -(-n_blocks // n_workers)


def cost_of_many(growth: Measured, n: int) -> str:
    """Say what many points would cost, by what was measured."""
    blocks = (-(-n // ROWS_OF_BLOCK), -(-(n // 2) // ROWS_OF_BLOCK))
    cost = Cost.of(growth.ours, growth.theirs, blocks)
    n_blocks = -(-MANY // ROWS_OF_BLOCK)
    gigabytes = MANY * D * 4 / 2**30
    shown = "; ".join(
        f"{workers} workers, {cost.seconds(n_blocks, workers) / 60:.3g} minutes and "
        f"{gigabytes / workers:.2g} GiB of points each"
        for workers in (16, 64, 256)
    )
    return (
        f"From the two: {cost.block:.3g} s of one worker for a block, all passes over it together, "
        f"and {cost.once:.2g} s once. At that pace {MANY:,} points, {n_blocks:,} blocks and "
        f"{gigabytes:.3g} GiB of float32, take {cost.block * n_blocks / 3600:.3g} hours of one "
        f"such core: {shown}. Workers that are as fast as this one and never wait are assumed."
    )
