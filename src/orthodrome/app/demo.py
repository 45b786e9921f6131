"""The demonstration: PCA, kernel PCA and kernel PGA side by side, as one page.

It uses the runs and the pages of the commands, on data that ship with scikit-learn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from .._core.files import writable_folder
from ..datasets import make_von_mises_fisher
from ..decomposition import KernelPCA
from ..metrics import neighborhood_area, neighborhood_preservation
from ..plots import images, sphere
from ..plots._matplotlib import house_style, require_matplotlib
from ..plots.interactive import require_plotly
from ..plots.report import Block, Note, Picture, Row, Section, Table, Text, write_report
from ..sphere import exp_at_pole
from .comparison import TITLES, compare
from .embedding import Embedding, embed, spectrum_picture
from .inputs import Data
from .inputs.data import column_names, row_names
from .models import Choice, last_step
from .pages import again
from .results import Report, silent

TITLE = "orthodrome: PCA, kernel PCA and kernel PGA side by side"
_METHODS = ("pca", "kpca", "kpga")
_LEAD = (
    "Principal component analysis (PCA) finds the directions in which data vary most. Kernel PCA "
    "does the same in the feature space of a kernel; with a Gaussian kernel, data lie on a sphere "
    "there. Kernel principal geodesic analysis (kernel PGA) follows the great circles of that "
    "sphere. This page compares them on data that ship with scikit-learn and on simulated "
    "directions. Every number on it was computed on this machine, in {seconds:.0f} seconds, by the "
    "run that wrote it."
)


@dataclass(frozen=True)
class Settings:
    """The sizes of the demonstration.

    `noise` is a standard deviation, for pixels between 0 and 1. With a `concentration` of 1.5 the
    simulated directions spread over all of their sphere.
    """

    seed: int = 0
    noise: float = 0.25
    n_components: int = 32
    training: int = 1000
    directions: int = 200
    dimensions: int = 100
    concentration: float = 1.5


_DEFAULTS = Settings()


def run_demo(
    folder: str | os.PathLike[str],
    *,
    command: Sequence[str] = ("orthodrome", "demo"),
    settings: Settings = _DEFAULTS,
    report: Report = silent,
) -> Path:
    """Compute the demonstration and write ``index.html`` and its figures into a folder.

    Parameters
    ----------
    folder : str or path
        Where to write; it is made if it is missing. Nothing is written before everything is
        computed.
    command : sequence of str
        The command line, for the page.
    settings : Settings, optional
        Sizes, noise and seed.
    report : callable, optional
        Called with the fraction of the work that is done, and the name of the current task.

    Returns
    -------
    Path
        The page.
    """
    require_matplotlib()
    require_plotly()
    started = time.perf_counter()
    choice = Choice("kpca", seed=settings.seed)
    tasks: dict[str, Callable[[], Section]] = {
        "digits: pre-images of noisy digits": lambda: _preimages(settings),
        "digits: PCA, kernel PCA and kernel PGA": lambda: _compared(
            "Digits: ten classes in two dimensions", _digits(), choice
        ),
        "wine: PCA, kernel PCA and kernel PGA": lambda: _compared(
            "Wine: three cultivars in two dimensions", _wine(), replace(choice, standardize=True)
        ),
        "directions: kernel PCA and kernel PGA": lambda: _directions(settings),
        "page": lambda: _again(command, settings),
    }
    sections = []
    with writable_folder(Path(folder)) as target, house_style():
        for number, (task, make) in enumerate(tasks.items()):
            report(number / len(tasks), task)
            sections.append(make())
        lead = _LEAD.format(seconds=time.perf_counter() - started)
        page = target / "index.html"
        return write_report(page, TITLE, sections, lead=lead, write_pictures=True)


# ---------------------------------------------------------------------------- data


def _data(name: str, X: NDArray[Any], columns: Sequence[str], labels: Any = None) -> Data:
    texts = None if labels is None else np.array(labels, dtype=np.str_)
    label_name = None if labels is None else "class"
    return Data(name, "table", X, tuple(columns), row_names(len(X)), texts, label_name)


def _digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return _data("digits", X / 16.0, column_names(64), y)


def _wine() -> Data:
    wine = load_wine()
    names = [f"cultivar {number + 1}" for number in wine.target]
    return _data("wine", wine.data, wine.feature_names, names)


# ---------------------------------------------------------------------------- pre-images


def _preimages(settings: Settings) -> Section:
    """Clean noisy digits by projecting them on the components of clean ones."""
    digits = _digits()
    train, test, _, labels = train_test_split(
        digits.X,
        digits.labels,
        train_size=settings.training,
        stratify=digits.labels,
        random_state=settings.seed,
    )
    noise = np.random.default_rng(settings.seed).standard_normal(test.shape)
    noisy = test + settings.noise * noise
    found = {"noisy": noisy}
    for title, kernel in (("PCA", "linear"), ("kernel PCA, pre-image", "gaussian")):
        model = KernelPCA(settings.n_components, kernel, random_state=settings.seed).fit(train)
        found[title] = model.inverse_transform(model.transform(noisy))
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in np.unique(labels)]
    grid = {name: each[chosen] for name, each in (found | {"original": test}).items()}
    picture = Picture.of(
        images(grid, shape=(8, 8), limits=(0.0, 1.0)),
        "digits-preimages",
        alt="Four rows of ten digits, 0 to 9: noisy, cleaned by PCA, cleaned by kernel PCA, and "
        "the originals.",
        caption="The first test digit of each class. Values beyond black and white are clipped in "
        "the picture, not in the errors.",
    )
    text = (
        f"Noise of standard deviation {settings.noise:g} is added to test digits. Each is "
        f"projected on {settings.n_components} components of {settings.training} clean training "
        "digits, and the projection is turned back into an image: for PCA by a linear map, for "
        "kernel PCA by its pre-image, the image whose feature vector is nearest."
    )
    note = (
        "Kernel PCA is a decomposition whose directions can be looked at, not a specialised "
        "filter. The command orthodrome denoise cleans whole images."
    )
    found |= _filtered(train, noisy, settings.noise)
    errors = {name: float(np.mean((each - test) ** 2)) for name, each in found.items()}
    rows = [[name, f"{error:.4f}"] for name, error in sorted(errors.items(), key=lambda e: e[1])]
    caption = f"Mean squared error per pixel for {len(test)} test digits, smallest first."
    blocks: list[Block] = [
        Text(text),
        picture,
        Table(caption, ["method", "error"], rows),
        Note(note),
    ]
    return Section("Digits: from feature space back to images", blocks)


def _filtered(train: NDArray[Any], noisy: NDArray[Any], noise: float) -> dict[str, NDArray[Any]]:
    """Clean images by two simple filters, for comparison."""
    nearest = NearestNeighbors(n_neighbors=5).fit(train).kneighbors(noisy, return_distance=False)
    mean, covariance = train.mean(axis=0), np.cov(train.T)
    total = covariance + noise**2 * np.eye(train.shape[1])
    linear = mean + (noisy - mean) @ np.linalg.solve(total, covariance)
    return {
        "mean of the 5 nearest training digits": train[nearest].mean(axis=1),
        "optimal linear filter, which knows the noise": linear,
    }


# ---------------------------------------------------------------------------- comparisons


def _compared(title: str, data: Data, choice: Choice, methods: Sequence[str] = _METHODS) -> Section:
    """Compare methods, with the page of the command compare as one section."""
    blocks: list[Block] = []
    for section in compare(data, choice, methods=methods).sections():
        for block in section.blocks:
            if isinstance(block, Picture):
                block = replace(block, name=f"{data.path}-{block.name}")
            blocks.append(block)
    return Section(title, blocks)


def _directions(settings: Settings) -> Section:
    """Compare methods on directions of a two-dimensional sphere in many dimensions."""
    n, d, concentration = settings.directions, settings.dimensions, settings.concentration
    X = make_von_mises_fisher(n, d, 2, concentration, random_state=settings.seed)
    data = _data("directions", X, column_names(d))
    choice = Choice("kpca", "linear", seed=settings.seed)
    all_components = {"n_components": None}
    every = {
        method: embed(data, replace(choice, method=method, parameters=all_components))
        for method in _METHODS[1:]
    }
    tangent = every["kpga"].coordinates[:, :2]
    angles = np.degrees(np.linalg.norm(tangent, axis=1))
    curve = neighborhood_preservation(X, tangent, kernel="linear", metric="geodesic")
    globe = Picture.of(
        sphere(exp_at_pole(tangent), angles, legend_title="degrees from the mean"),
        "directions-sphere",
        alt=f"A globe with {len(X)} points, coloured by their distance from the mean, which a star "
        "marks; two great circles cross there; points on the far side are faint.",
        caption="The sphere that kernel PGA found, with the mean and the two principal geodesics. "
        "Circles around the mean are 30° apart.",
    )
    counts = [each.coordinates.shape[1] for each in every.values()]
    return Section(
        "Directions: kernel PCA and kernel PGA",
        [
            Text(
                "A kernel with k(x, x) = 1 puts all data on a sphere. Kernel PCA measures straight "
                "through that sphere; kernel PGA measures along it, from the mean on the sphere "
                "(the Karcher mean). Where that matters most: "
                f"{n} directions, unit vectors in R^{d}, from a von Mises-Fisher distribution of "
                f"concentration {concentration:g} on a two-dimensional sphere. With the linear "
                "kernel the right answer is known: two dimensions."
            ),
            Text(
                f"Kernel PCA finds {counts[0]} components with a variance above zero, kernel PGA "
                f"{counts[1]}: a two-dimensional sphere spans three dimensions of flat space. With "
                "distances along the sphere, two coordinates of kernel PGA preserve neighbours "
                f"with an area of {neighborhood_area(curve):.3f}."
            ),
            Row([_spectrum(method, each) for method, each in every.items()]),
            globe,
            *_compared("", data, choice, _METHODS[1:]).blocks,
        ],
    )


def _spectrum(method: str, found: Embedding) -> Picture:
    model = last_step(found.model)
    listed = ", ".join(f"{ratio:.1%}" for ratio in model.explained_variance_ratio_)
    caption = f"{TITLES[method]}: {listed} of the variance."
    name = f"directions-spectrum-{method}"
    return replace(spectrum_picture(model), name=name, caption=caption)


# ---------------------------------------------------------------------------- how it was done


def _again(command: Sequence[str], settings: Settings) -> Section:
    values = vars(settings)
    programs = {
        "Cleaning digits by pre-images in Python:": _PREIMAGE_LINES.format(**values),
        "Kernel PGA of directions in Python:": _GEODESIC_LINES.format(**values),
    }
    rows = [[name, str(value)] for name, value in values.items()]
    return again(command, programs, [Table("Settings", ["setting", "value"], rows)])


_PREIMAGE_LINES = """
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from orthodrome import KernelPCA, plots

X, y = load_digits(return_X_y=True)
train, test = train_test_split(X / 16, train_size={training}, stratify=y, random_state={seed})
noisy = test + {noise:g} * np.random.default_rng({seed}).standard_normal(test.shape)

model = KernelPCA({n_components}, "gaussian", random_state={seed}).fit(train)
cleaned = model.inverse_transform(model.transform(noisy))
print(np.mean((noisy - test) ** 2), np.mean((cleaned - test) ** 2))
rows = {{"noisy": noisy[:10], "cleaned": cleaned[:10], "original": test[:10]}}
plots.images(rows, shape=(8, 8), limits=(0, 1)).savefig("digits.png")
"""

_GEODESIC_LINES = """
from orthodrome import KernelPGA, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_area, neighborhood_preservation

X = make_von_mises_fisher({directions}, {dimensions}, 2, {concentration:g}, random_state={seed})
model = KernelPGA(2, "linear").fit(X)
quality = neighborhood_preservation(X, model.embedding_, kernel="linear", metric="geodesic")
print(neighborhood_area(quality))
plots.sphere(model.sphere_coordinates_).savefig("sphere.png")
"""
