"""
Fit batches one by one
======================

Fit kernel PCA and kernel PGA to data that arrive in batches.

Rows come in batches: from a large file, a sensor or a simulation. ``partial_fit`` of kernel PCA
chooses a few of the first rows as anchors. It represents every row by its similarities to the
anchors, and stores only the mean and the covariance of these similarities. ``fit`` passes over the
batches several times, and can also find the Karcher mean.
"""

# %%
# A source of batches: points near a closed curve in ten dimensions. The second half comes from
# another part of the curve.

import matplotlib.pyplot as plt
import numpy as np

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian

FRAME = np.linalg.qr(np.random.default_rng(1).standard_normal((10, 10)))[0][:4]


class Curve:
    """Batches of points along a curve, the same ones in every pass."""

    def __init__(self, n_batches, size):
        self.n_batches, self.size = n_batches, size

    def __iter__(self):
        random = np.random.default_rng(0)
        for number in range(self.n_batches):
            late = 2 * number >= self.n_batches
            angle = random.uniform(0.0 if late else -2.0, 4.0 if late else 2.0, self.size)
            waves = [np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)]
            noise = 0.05 * random.standard_normal((self.size, 10))
            yield (np.column_stack(waves) @ FRAME + noise).astype(np.float32)


batches = Curve(n_batches=40, size=500)

# %%
# Fit one batch after the other. After the last batch, the variances equal those of one fit to all
# rows with the same anchors and kernel.

model = KernelPCA(4, n_anchors=40, random_state=0)
ratios = []
for batch in batches:
    ratios.append(model.partial_fit(batch).explained_variance_ratio_)

same = Nystroem(anchors=model.X_fit_)
whole = KernelPCA(4, kernel=Gaussian(sigma=model.kernel_.sigma_), solver=same).fit(batches)
difference = np.abs(model.eigenvalues_ / whole.eigenvalues_ - 1).max()
left_out = model.history_[-1]["trace_error"]
print(f"{model.n_samples_seen_:,} rows, {model.n_anchors_} anchors")
print(
    f"variances within {difference:.0e} of those of one fit; {left_out:.1%} of the trace left out"
)

# %%
# Several passes, on the sphere: kernel PGA of the same batches.

curved = KernelPGA(3, solver=Nystroem(n_anchors=80, random_state=0)).fit(batches)
print(f"{curved.mean_n_iter_} steps to the Karcher mean, each a pass over the batches")

# %%
# The fraction of variance after each batch, and the curve in two components.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
plots.curves(
    range(1, batches.n_batches + 1),
    {f"component {q + 1}": [ratio[q] for ratio in ratios] for q in range(4)},
    xlabel="Batches",
    ylabel="Fraction of variance",
    ax=left,
)
plots.embedding(curved.embedding_[::10, :2], ax=right)

plt.show()

# sphinx_gallery_thumbnail_panel = (2, 2)
