"""
A memory budget instead of a Gram matrix
========================================

Fit with a Gram matrix in memory, on disk or recomputed, within a budget.

The Gram matrix of N rows has N² entries. It is stored if it fits ``memory_budget``. Otherwise its
tiles are recomputed for every product, with the same result, to the tolerance of the solver.
"""

# %%
# What a fit would do for more and more rows. Nothing is fitted here.

import matplotlib.pyplot as plt
import numpy as np

from orthodrome import KernelPCA, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.eigen import choose_solver
from orthodrome.gram import choose_storage
from orthodrome.kernels import Gaussian

for n in (500, 5_000, 20_000, 100_000):
    X = np.broadcast_to(0.0, (n, 8))
    storage, reason = choose_storage(Gaussian(1.0), X, "2GiB", "auto")
    print(f"N = {n:>7,}: {choose_solver(n, 10).solver}, {storage}: {reason}")

# %%
# The same fit with the matrix in memory, on disk, and recomputed.

X = make_von_mises_fisher(2000, n_dimensions=20, sphere_dimension=5, random_state=0)
models = {
    storage: KernelPCA(3, storage=storage, random_state=0).fit(X)
    for storage in ("memory", "disk", "recompute")
}
for storage, model in models.items():
    same = np.abs(model.embedding_ - models["memory"].embedding_).max()
    print(f"{storage:>9}: {model.n_iter_} products, embedding within {same:.0e}")

# %%
# How the block Krylov solver converges: the residual after each product with the matrix. More
# components need more vectors per product.

curves = {}
for k in (1, 5, 20):
    history = KernelPCA(k, solver="krylov", tol=1e-12, random_state=0).fit(X).history_
    curves[f"{k} components" if k > 1 else "1 component"] = [
        step["max_residual"] for step in history
    ]
longest = max(map(len, curves.values()))
plots.curves(
    range(1, longest + 1),
    {name: curve + [np.nan] * (longest - len(curve)) for name, curve in curves.items()},
    xlabel="Products with the Gram matrix",
    ylabel="Largest residual, relative",
    yscale="log",
    ax=plt.figure(figsize=(6.0, 4.0), layout="constrained").subplots(),
)

plt.show()
