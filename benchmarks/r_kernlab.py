"""A pass of the Kernel Hebbian Algorithm compared with R's kernlab::kha (`make bench-r`).

It needs R with the package kernlab. On Debian: apt install r-base-core r-cran-kernlab; elsewhere
install R, then Rscript -e 'install.packages("kernlab")'.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_hebbian import R, points
from harness import HERE, REPEATS, Measured, PeerProcess, size

from orthodrome.eigen import hebbian
from orthodrome.gram import Centered, gram_operator
from orthodrome.kernels import Gaussian

N, ETA, PASSES = size(1000, 100), 1e-4, 6


def run() -> list[Measured]:
    require_kernlab()
    X = points(N)
    kernel = Gaussian().fit(X)
    K = Centered(gram_operator(kernel, X, storage="recompute"))
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("X.csv", "start.csv", "result.csv")]
        np.savetxt(files[0], X, delimiter=",", fmt="%.17g")
        gamma = 0.5 / kernel.sigma_**2
        script = str(HERE / "peers" / "kernlab.R")
        command = ["Rscript", script, files[0], f"{gamma:.17g}", str(R), str(ETA), *files[1:]]
        peer = PeerProcess(command)
        start, theirs = (np.loadtxt(file, delimiter=",").T for file in files[1:])
    in_order = np.tile(np.arange(N), (PASSES, 1))

    def ours(n_passes: int) -> np.ndarray:
        return hebbian(
            K, R, gain="constant", eta0=ETA, initial=start, order=in_order, n_passes=n_passes,
            tol=0, polish=False,
        ).coefficients  # fmt: skip

    seconds: tuple[list[float], list[float]] = ([], [])
    error = angle(ours(2), theirs)
    for _ in range(REPEATS):
        # what further passes add: the start and the end of a run are not part of a pass
        for record, timed in zip(seconds, (elapsed(ours), peer_seconds(peer)), strict=True):
            record.append((timed(PASSES) - timed(1)) / (PASSES - 1))
    peer.close()
    return [
        Measured(
            name=f"A pass of plain KHA, l = {N}, r = {R}, K recomputed, compared with R",
            ours_label="orthodrome.eigen.hebbian(gain='constant')",
            theirs_label=f"kernlab {peer.version} kha, in its own process",
            ours=seconds[0],
            theirs=seconds[1],
            ours_error=error,
            theirs_error=error,
            required=1e-9,
            note=f"Time of each pass after the first, in a run of {PASSES} passes. The error "
            "is the largest sine between the components of both after two passes from the same "
            "start in the same order.",
        )
    ]


def require_kernlab() -> None:
    found = (
        shutil.which("Rscript")
        and not subprocess.run(
            ["Rscript", "-e", "library(kernlab)"], capture_output=True, check=False
        ).returncode
    )
    if not found:
        raise SystemExit(__doc__)


def angle(A: np.ndarray, B: np.ndarray) -> float:
    """The largest sine of the angle between rows of coefficients (kernlab rescales them)."""
    A, B = (C / np.linalg.norm(C, axis=1)[:, None] for C in (A, B))
    signs = np.sign(np.einsum("ij,ij->i", A, B))
    return float(np.linalg.norm(A - signs[:, None] * B, axis=1).max())


def elapsed(function):  # type: ignore[no-untyped-def]
    def timed(n_passes: int) -> float:
        start = time.perf_counter()
        function(n_passes)
        return time.perf_counter() - start

    return timed


def peer_seconds(peer: PeerProcess):  # type: ignore[no-untyped-def]
    return lambda n_passes: peer.run(str(n_passes))["seconds"]
