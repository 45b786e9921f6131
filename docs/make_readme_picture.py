"""Draw the README's picture, docs/images/kernel_pca.png: python docs/make_readme_picture.py."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from orthodrome import KernelPCA, plots

TARGET = Path(__file__).parent / "images" / "kernel_pca.png"


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    train, test, y_train, y_test = train_test_split(
        X, y, train_size=1000, stratify=y, random_state=0
    )
    noisy = test + 0.25 * np.random.default_rng(0).standard_normal(test.shape)
    cleaned = {}
    for kernel, n_components in [("linear", 16), ("gaussian", 64)]:
        model = KernelPCA(n_components, kernel, random_state=0).fit(train)
        cleaned[kernel] = model.inverse_transform(model.transform(noisy))
    first = [int(np.flatnonzero(y_test == digit)[0]) for digit in range(10)]

    figure = Figure(figsize=(10, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.05], wspace=0.04)
    plots.embedding(
        model.embedding_,
        y_train,
        ax=left.subplots(),
        ratios=model.explained_variance_ratio_,
        title="Digits, kernel PCA with a Gaussian kernel",
        legend_title="digit",
    )
    plots.images(
        {
            "noisy": noisy[first],
            "PCA, 16 components": cleaned["linear"][first],
            "kernel PCA, 64 components, pre-images": cleaned["gaussian"][first],
            "original": test[first],
        },
        shape=(8, 8),
        limits=(0, 1),
        figure=right,
    )
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
