"""All of MNIST: exact kernel PCA without its Gram matrix, and by anchors to a given accuracy.

It needs MNIST in ORTHODROME_DATA (else ../shared/data next to the repository).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from harness import REPEATS, Measured, Missing, data_folder, peak_anonymous_memory, size

from orthodrome import KernelPCA, datasets
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian

N, COMPONENTS = size(60_000, 1_000), 16
TOLERANCE = 1e-3  # of the residuals: the error of eigenvalues is of the order of its square
ALLOWED = 0.01
COUNTS = size((64, 128, 256, 512, 1024, 2048), (64, 512))


@cache
def digits() -> np.ndarray:
    """Training images in [0, 1]."""
    found = datasets.load("mnist", data_home=data_folder(), download_if_missing=False)
    return found.X_train[:N].astype(np.float32) / np.float32(255)


@cache
def sigma() -> float:
    return float(Gaussian().fit(digits()).sigma_)


def exact() -> KernelPCA:
    kernel = Gaussian(sigma=sigma())
    model = KernelPCA(
        COMPONENTS, kernel, solver="krylov", tol=TOLERANCE, storage="recompute", random_state=0
    )
    return model.fit(digits())


def by_anchors(count: int) -> KernelPCA:
    solver = Nystroem(n_anchors=count, random_state=0)
    return KernelPCA(COMPONENTS, Gaussian(sigma=sigma()), solver=solver).fit(digits())


def variance(model: KernelPCA) -> float:
    """What the components capture of the points themselves, in feature space."""
    return float(model.embedding_.astype(np.float64).var(axis=0).sum())


def process(call: str) -> dict[str, Any]:
    """Run a fit in a fresh process; its memory, seconds, variance and steps."""
    setup = "import bench_mnist, os, warnings\nbench_mnist.sigma()\n"
    if "anchors" in call:
        setup += "bench_mnist.by_anchors(16)\n"
    report = (
        f"model = bench_mnist.{call}\n"
        "peak.extra = {'variance': bench_mnist.variance(model), 'n_iter': int(model.n_iter_),\n"
        "              'residual': float(max(model.residuals_) / model.eigenvalues_[0])}"
    )
    return peak_anonymous_memory(setup, report)


def enough(least: float) -> int:
    """The first of COUNTS that captures as much."""
    return next((m for m in COUNTS if variance(by_anchors(m)) >= least), COUNTS[-1])


def run(full: bool = False) -> list[Measured | Missing]:
    if not full:  # the exact side takes minutes
        return []
    try:
        digits()
    except FileNotFoundError:
        return [Missing("MNIST", f"mnist is not in {data_folder()}; set ORTHODROME_DATA")]
    whole = process("exact()")
    count = enough((1 - ALLOWED) * whole["variance"])
    few = [process(f"by_anchors({count})") for _ in range(REPEATS)]
    missing = 1 - few[0]["variance"] / whole["variance"]
    sides = {
        "ours_label": f"orthodrome.KernelPCA(solver='nystroem'), {count} anchors",
        "theirs_label": "orthodrome.KernelPCA(solver='krylov', storage='recompute')",
    }
    return [
        Measured(
            name=f"Nyström compared with exact kernel PCA of MNIST, {N:,} x 784, "
            f"{COMPONENTS} components",
            ours=[one["seconds"] for one in few],
            theirs=[whole["seconds"]],
            ours_error=missing,
            theirs_error=0.0,
            required=ALLOWED,
            note=f"Error: the part of the exact method's captured variance "
            f"({whole['variance']:.4f} of 1) that is missing. The number of anchors is the "
            f"first of {COUNTS} that is enough. The exact side ran once: "
            f"{whole['n_iter']} products with a matrix that is never stored, to residuals of "
            f"{whole['residual']:.1e} of the largest eigenvalue.",
            **sides,
        ),
        Measured(
            name=f"Anonymous memory of exact kernel PCA of MNIST, {N:,} x 784",
            ours=[whole["total"]],
            theirs=[8.0 * N**2],
            unit="bytes",
            limit=4.0 * 2**30,
            ours_label=sides["theirs_label"],
            theirs_label="computed, not measured: a Gram matrix in float64, of which scikit-learn "
            "makes at least one",
            note="The peak of the whole process, the images in float32 and imports included.",
        ),
        Measured(
            name=f"Anonymous memory of Nyström kernel PCA of MNIST, {N:,} x 784",
            ours=[one["total"] for one in few],
            theirs=[whole["total"]],
            unit="bytes",
            note="The peak of the whole process, the images and imports included.",
            **sides,
        ),
    ]
