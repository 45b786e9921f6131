"""Draw the picture of the README into docs/images: python docs/make_readme_pictures.py."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_preservation

TARGET = Path(__file__).parent / "images"


def directions() -> Figure:
    # all within a hemisphere, where the mean is unique
    X = make_von_mises_fisher(200, 100, 2, concentration=8, random_state=0)
    flat, curved = (E(kernel="linear").fit(X) for E in (KernelPCA, KernelPGA))
    kept = {
        "kernel PCA": neighborhood_preservation(X, flat.embedding_[:, :2]),
        "kernel PGA": neighborhood_preservation(X, curved.embedding_),
        "kernel PGA, geodesic": neighborhood_preservation(X, curved.embedding_, metric="geodesic"),
    }
    figure = Figure(figsize=(10, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    plots.sphere(
        curved.sphere_coordinates_,
        np.degrees(np.arccos(curved.mean_cosines_)),
        ax=left,
        legend_title="degrees from the mean",
        title="200 directions on the sphere found by kernel PGA",
    )
    plots.neighborhood(kept, ax=right, title="Two components")
    return figure


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    directions().savefig(TARGET / "kernel_pga.png", dpi=150, metadata={"Software": None})
