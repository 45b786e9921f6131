"""Draw the README's pictures into docs/images: python docs/make_readme_pictures.py."""

import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from skimage.data import camera
from sklearn.datasets import load_digits, load_iris, load_wine, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from orthodrome import GeodesicMixture, KernelPCA, KernelPGA, KernelPNS, PatchDenoiser, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.eigen import hebbian, leading
from orthodrome.gram import Centered, DenseGram
from orthodrome.kernels import Gaussian
from orthodrome.metrics import (
    excess_reconstruction_error,
    neighborhood_preservation,
    reconstruction_error,
)
from orthodrome.sphere import nested_spheres

TARGET = Path(__file__).parent / "images"


def digits() -> Figure:
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
    return figure


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
        title="200 directions, as kernel PGA sees them",
    )
    plots.neighborhood(kept, ax=right, title="Two components")
    return figure


def passes() -> Figure:
    X = load_digits().data
    K = Centered(DenseGram(Gaussian().fit(X)(X)))
    exact = leading(K, 10)
    minimal = reconstruction_error(K, (exact.vectors / exact.values**0.5).T)
    errors: dict[str, list[float]] = {}
    for name, options in {
        "KHA": {"gain": "constant"},
        "KHA/t": {"gain": "t"},
        "KHA/et": {"gain": "et"},
        "KHA-SMD": {"gain": "smd"},
        "KHA/et, pilot": {"gain": "et", "start": "pilot"},
    }.items():
        run, errors[name] = None, []
        for _ in range(15):
            run = hebbian(K, 10, n_passes=1, tol=0, initial=run, random_state=0, **options)
            error = excess_reconstruction_error(K, run.coefficients, minimal=minimal)
            errors[name].append(error)

    image = camera()[60:188, 160:288] / 255
    noisy = image + 0.1 * np.random.default_rng(0).standard_normal(image.shape)
    cleaned = PatchDenoiser(random_state=0).denoise(noisy)

    figure = Figure(figsize=(10, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.05], wspace=0.04)
    plots.curves(
        range(1, 16),
        errors,
        xlabel="Passes over the data",
        ylabel="Excess reconstruction error",
        yscale="log",
        ax=left.subplots(),
        title="Digits, ten components, nothing tuned",
    )
    panels = {"noisy": noisy, "PatchDenoiser": cleaned, "original": image}
    for ax, (name, picture) in zip(right.subplots(1, 3), panels.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(title=name, xticks=[], yticks=[])
    return figure


def clusters() -> Figure:
    moons, moon = make_moons(400, noise=0.08, random_state=0)
    strewn = np.random.default_rng(0).uniform([-2, -1], [3, 2], size=(100, 2))
    X = np.vstack([moons[moon == 0], strewn])
    wines = StandardScaler().fit_transform(load_wine().data)
    model = GeodesicMixture(3, random_state=0).fit(wines)

    figure = Figure(figsize=(10, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.1], wspace=0.04)
    plots.karcher_objective(
        Gaussian(sigma=0.25), X, ax=left.subplots(), title="Where a centre goes on the sphere"
    )
    plots.clusters(
        model.pga_.transform(wines),
        model.labels_,
        proba=model.predict_proba(wines),
        ax=right.subplots(),
        title="Wines, a mixture on the sphere of a Gaussian kernel",
    )
    return figure


def nested() -> Figure:
    """A small circle among outliers, and what circles and lines capture of the iris data."""
    rng = np.random.default_rng(0)
    around = rng.uniform(-np.pi, np.pi, 120)
    away = 0.7 + 0.04 * rng.standard_normal(120)
    points = np.column_stack(
        [np.cos(away), np.sin(away) * np.cos(around), np.sin(away) * np.sin(around)]
    )
    strewn = rng.standard_normal((24, 3))
    points[:24] = strewn / np.linalg.norm(strewn, axis=1, keepdims=True)
    circles = {}
    with warnings.catch_warnings():  # the points go all the way round
        warnings.simplefilter("ignore", UserWarning)
        for p in (2.0, 1.0):
            chain = nested_spheres(points, p=p)
            turns = np.linspace(0, 2 * np.pi, 181)[:-1]
            circles[f"p = {p:g}"] = chain.raised(np.column_stack([np.cos(turns), np.sin(turns)]))

    X = load_iris().data
    shares = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for sphere in ("small", "great"):
            shares[f"nested spheres, {sphere}"] = KernelPNS(1, sphere=sphere).fit(X)
    shares["kernel PCA"] = KernelPCA(8).fit(X)

    figure = Figure(figsize=(10, 4.1), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
    plots.sphere(
        points,
        np.where(np.arange(120) < 24, "anywhere", "near a circle"),
        geodesics=False,
        curves=circles,
        tilt=50,
        ax=left,
        title="The nearest circle, robust or not",
    )
    plots.curves(
        range(1, 9),
        {
            name: 100 * np.cumsum(model.explained_variance_ratio_[:8])
            for name, model in shares.items()
        },
        xlabel="Modes",
        ylabel="Variance (%)",
        ax=right,
        title="Iris, Gaussian kernel",
    )
    return figure


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    pictures = {
        "kernel_pca": digits,
        "kernel_pga": directions,
        "kernel_hebbian": passes,
        "sphere_clusters": clusters,
        "nested_spheres": nested,
    }
    for name, draw in pictures.items():
        draw().savefig(TARGET / f"{name}.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
