"""KernelPCA and Gram matrices compared with scikit-learn's: time at equal accuracy, and memory."""

from __future__ import annotations

import statistics
import time
from functools import cache
from typing import Any

import numpy as np
from harness import REPEATS, Comparison, Measured, compare, peak_anonymous_memory, size
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from orthodrome import KernelPCA
from orthodrome.eigen import Krylov, leading
from orthodrome.gram import Centered, gram_operator
from orthodrome.kernels import Gaussian

N_COMPONENTS = 16
N, N_MEMORY = size(10_000, 600), size(20_000, 1_000)


@cache
def data(n: int = N) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, 32)) * np.linspace(2, 0.2, 32)


@cache
def gamma() -> float:
    return 0.5 / Gaussian().fit(data()).sigma_ ** 2


@cache
def reference() -> np.ndarray:
    """Eigenvalues to rounding, by a Krylov run far past the tolerance of either side."""
    kernel = Gaussian().fit(data())
    solver = Krylov(tol=1e-13, block_size=32, random_state=7)
    return leading(Centered(gram_operator(kernel, data())), N_COMPONENTS, solver=solver).values


def eigenvalue_error(model: Any) -> float:
    return float(np.max(np.abs(model.eigenvalues_ / reference() - 1)))


def gram_error(matrix: np.ndarray) -> float:
    rows = data()[:200]
    distances = ((rows[:, None, :] - data()[None, :1000, :]) ** 2).sum(axis=-1)
    return float(np.abs(matrix[:200, :1000] - np.exp(-gamma() * distances)).max())


def phases(repeats: int = 5) -> str:
    """Say where the time of a fit goes, measured step by step."""
    kernel = Gaussian().fit(data())
    seconds: dict[str, list[float]] = {"Gram matrix": [], "centring": [], "solver": []}
    n_iter = 0
    for _ in range(repeats):
        start = time.perf_counter()
        gram = gram_operator(kernel, data())
        made = time.perf_counter()
        centered = Centered(gram)
        ready = time.perf_counter()
        n_iter = leading(centered, N_COMPONENTS, random_state=0).n_iter
        solved = time.perf_counter()
        for name, value in zip(seconds, (made - start, ready - made, solved - ready), strict=True):
            seconds[name].append(value)
    parts = ", ".join(f"{name} {statistics.median(v):.2f} s" for name, v in seconds.items())
    return f"Where ours goes (medians of {repeats}): {parts} for {n_iter} products of 16 vectors."


def run(full: bool = False) -> list[Measured]:
    fit = Comparison(
        name=f"KernelPCA.fit, N = {N:,}, d = 32, 16 components, Gaussian, σ² = mean",
        ours=lambda: KernelPCA(N_COMPONENTS, random_state=0).fit(data()),
        theirs=lambda: SklearnKernelPCA(
            N_COMPONENTS, kernel="rbf", gamma=gamma(), eigen_solver="arpack", random_state=0
        ).fit(data()),
        ours_label="orthodrome.KernelPCA",
        theirs_label="sklearn KernelPCA (arpack)",
        accuracy=eigenvalue_error,
        required=1e-8,
        target=0.4,
        note=f"Error: largest relative error of the 16 eigenvalues. {phases()}",
    )
    gram = Comparison(
        name=f"Gram matrix, N = {N:,}, d = 32, Gaussian, as a full array",
        ours=lambda: Gaussian(sigma=(0.5 / gamma()) ** 0.5)(data()),
        theirs=lambda: rbf_kernel(data(), gamma=gamma()),
        ours_label="orthodrome.kernels.Gaussian",
        theirs_label="sklearn rbf_kernel",
        accuracy=gram_error,
        required=1e-12,
        target=0.5,
        note="Error: largest absolute error of an entry, over 200 x 1,000 of them.",
    )
    return [compare(fit), compare(gram), *([memory()] if full else [])]


def memory(repeats: int = REPEATS) -> Measured:
    """Peak anonymous memory of fit and transform, each in a fresh process."""
    setup = (
        "import numpy as np\n"
        "from {module} import KernelPCA\n"
        f"X = np.random.default_rng(1).standard_normal(({N_MEMORY}, 32))\n"
        "X *= np.linspace(2, 0.2, 32)\n"
    )
    work = {
        "orthodrome": ("KernelPCA(16, memory_budget='512MiB', random_state=0).fit(X).transform(X)"),
        "sklearn.decomposition": (
            "g = 0.25 / X.var(axis=0).sum()\n"
            "KernelPCA(16, kernel='rbf', gamma=g, eigen_solver='arpack').fit(X).transform(X)"
        ),
    }
    runs: dict[str, list[dict[str, float]]] = {module: [] for module in work}
    for _ in range(repeats):
        for module, script in work.items():
            runs[module].append(peak_anonymous_memory(setup.format(module=module), script))
    ours, theirs = runs.values()
    return Measured(
        name=f"Peak memory of fit and transform, N = {N_MEMORY:,}, d = 32, 16 components",
        ours_label="orthodrome.KernelPCA(memory_budget='512MiB')",
        theirs_label="sklearn KernelPCA (arpack)",
        ours=[run["bytes"] for run in ours],
        theirs=[run["bytes"] for run in theirs],
        unit="bytes",
        limit=2.0**30,
        note=(
            "RssAnon above the idle process, a fresh process each time. Ours evaluates the Gram "
            f"matrix again for each product: {_seconds(ours)}, theirs {_seconds(theirs)}."
        ),
    )


def _seconds(runs: list[dict[str, float]]) -> str:
    seconds = [run["seconds"] for run in runs]
    return f"{min(seconds):.1f} to {max(seconds):.1f} s"
