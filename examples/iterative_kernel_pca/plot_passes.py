"""
Kernel PCA, pass by pass
========================

Compute components of digits one sample at a time, and stop early.

The Kernel Hebbian Algorithm looks at one sample at a time and improves its components a little each
time. After one or two passes over the data they are good enough for a picture or a clustering. No
gain has to be tuned, and a run can be stopped and continued at any time.
"""

# %%
# The handwritten digits of scikit-learn, and the exact components for comparison.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from orthodrome import KernelPCA, plots
from orthodrome.eigen import hebbian, leading
from orthodrome.gram import Centered, DenseGram
from orthodrome.kernels import Gaussian
from orthodrome.metrics import excess_reconstruction_error, reconstruction_error

X, digit = load_digits(return_X_y=True)
K = Centered(DenseGram(Gaussian().fit(X)(X)))
exact = leading(K, 10)
minimal = reconstruction_error(K, (exact.vectors / exact.values**0.5).T)

# %%
# The four members of the family, pass by pass. The curves show how well ten components reconstruct
# the Gram matrix: the error of the reconstruction, less the smallest possible error. Each pass
# continues the run with ``initial=``; the result is that of an uninterrupted run. The last curve
# starts from the best components within the span of some of the points.

runs = {
    "KHA": {"gain": "constant", "start": "orthonormal"},
    "KHA/t": {"gain": "t", "start": "orthonormal"},
    "KHA/et": {"gain": "et", "start": "orthonormal"},
    "KHA-SMD": {"gain": "smd", "start": "orthonormal"},
    "KHA/et, pilot": {"gain": "et", "start": "pilot"},
}
passes = range(1, 16)
errors: dict[str, list[float]] = {}
for name, options in runs.items():
    run, errors[name] = None, []
    for _ in passes:
        run = hebbian(K, 10, n_passes=1, tol=0, initial=run, random_state=0, **options)
        error = excess_reconstruction_error(K, run.coefficients, minimal=minimal)
        errors[name].append(error)

_, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
plots.curves(
    passes,
    errors,
    xlabel="Passes over the data",
    ylabel="Excess reconstruction error",
    yscale="log",
    ax=ax,
)

# %%
# As a solver of kernel PCA, it stops when its own estimate of the error is small. The embedding
# (left) looks like the exact one (right).

quick = KernelPCA(2, solver="hebbian", random_state=0).fit(X)
full = KernelPCA(2).fit(X)
print(
    f"hebbian: {quick.n_iter_} pass(es), largest residual {quick.history_[-1]['max_residual']:.1e}"
)

_, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, model, name in ((axes[0], quick, "Hebbian"), (axes[1], full, "exact")):
    plots.embedding(
        model.embedding_, digit, ax=ax, ratios=model.explained_variance_ratio_, title=name,
        legend_title="digit",
    )  # fmt: skip

# %%
# For speed, use block Krylov, the default for large data: it needs few products and converges to
# rounding. The Hebbian family gives an early answer with little memory.
