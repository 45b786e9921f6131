"""
Kernel PGA on a cluster of two processes
========================================

Fit kernel PGA to data that are distributed over the workers of a Dask cluster.

The script starts a Dask cluster of two worker processes on this machine. The workers make the rows
themselves, block by block. The script fits the model, prints what it did, and stops the cluster.

    python examples/scaling/dask_cluster.py [rows]

It needs ``pip install "orthodrome[distributed]"``. While the script runs, Dask shows a dashboard on
this machine. For a cluster of several machines, replace `LocalCluster` by another of Dask's
clusters; nothing else changes.
"""

from __future__ import annotations

import importlib.util
import sys
import time

import numpy as np

try:
    import dask.array as da
    from distributed import Client, LocalCluster
except ImportError:
    raise SystemExit('This example needs Dask: pip install "orthodrome[distributed]"') from None

from orthodrome import KernelPGA
from orthodrome.eigen import Nystroem

ROWS, FEATURES, ROWS_OF_BLOCK = 400_000, 32, 25_000
GROUPS, ANCHORS, MODES = 20, 256, 8


def make_block(block_info=None) -> np.ndarray:
    """Make the rows of one block; every block has a seed of its own."""
    place = block_info[None]
    rng = np.random.default_rng([1, place["chunk-location"][0]])
    centers = 3 * np.random.default_rng(0).standard_normal((GROUPS, FEATURES))
    rows = place["chunk-shape"][0]
    points = centers[rng.integers(GROUPS, size=rows)] + rng.standard_normal((rows, FEATURES))
    return points.astype(np.float32)


def make_points(rows: int) -> da.Array:
    """Return points that do not exist yet."""
    size = min(ROWS_OF_BLOCK, rows)
    blocks = tuple(min(size, rows - start) for start in range(0, rows, size))
    return da.map_blocks(make_block, chunks=(blocks, (FEATURES,)), dtype=np.float32)


def main(rows: int) -> None:
    has_dashboard = importlib.util.find_spec("bokeh") is not None
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        print(f"A cluster of {len(client.scheduler_info()['workers'])} worker processes.")
        print(f"Dashboard: {client.dashboard_link if has_dashboard else 'none, bokeh is missing'}")

        # kept by the workers: else every pass would make the points anew
        X = client.persist(make_points(rows))
        size = f"{X.numblocks[0]} blocks, {X.nbytes / 2**20:.0f} MiB"
        print(f"{rows:,} x {FEATURES} points in {size}")

        start = time.perf_counter()
        solver = Nystroem(n_anchors=ANCHORS, random_state=0)
        model = KernelPGA(n_components=MODES, solver=solver).fit(X)
        print(
            f"KernelPGA with {model.n_anchors_} anchors: {time.perf_counter() - start:.1f} s, "
            f"{model.mean_n_iter_} steps to the Karcher mean"
        )
        print(f"Variance that {MODES} modes explain: {model.explained_variance_ratio_.sum():.3f}")

        # the embedding has not been computed yet, and only its moments leave the workers
        print(f"Embedding: {model.embedding_}")
        print(f"Variances: {np.round(model.embedding_.var(axis=0).compute(), 4)}")
        print(f"Eigenvalues: {np.round(model.eigenvalues_, 4)}")
    print("The cluster has stopped.")


# Worker processes import this file: without the guard each of them would start a cluster.
if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
