"""The command demo: compare PCA, kernel PCA and kernel PGA on one page.

It runs the other commands on data that ship with scikit-learn.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from .._core.files import writable_folder
from .._core.types import Array
from ..datasets import make_von_mises_fisher
from ..decomposition import KernelPCA, KernelPGA
from ..metrics import neighborhood_area, neighborhood_preservation
from ..plots import images, sphere
from ..plots._matplotlib import house_style, require_matplotlib
from ..plots.report import Block, Note, Picture, Row, Section, Table, Text, write_report
from ..sphere import exp_at_pole
from .comparison import compare
from .embedding import spectrum_picture
from .inputs import Data
from .inputs.checks import column_names, row_names
from .models import Choice
from .results import Report, reproduction_section

TITLE = "orthodrome: a comparison of PCA, kernel PCA and kernel PGA"
_METHODS = ("pca", "kpca", "kpga")


@dataclass(frozen=True)
class Settings:
    """The sizes of the demonstration.

    `noise` is a standard deviation; pixels are between 0 and 1. With a `concentration` of 1.5, the
    simulated directions cover the whole sphere.
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
    report: Report = lambda fraction, task: None,
) -> Path:
    """Run the demonstration and write ``index.html`` and its figures to a folder.

    Parameters
    ----------
    folder : str or path
        Output folder, created if it does not exist. Files are written at the end of the run.
    command : sequence of str
        The command line, to show on the page.
    settings : Settings, optional
        Sizes, noise and seed.
    report : callable, optional
        Called with the fraction done and the name of the current task.

    Returns
    -------
    Path
        Path of the page.
    """
    require_matplotlib()
    started = time.perf_counter()
    choice = Choice("kpca", seed=settings.seed)
    tasks: dict[str, Callable[[], Section]] = {
        "digits: pre-images of noisy digits": lambda: _preimages(settings),
        "digits: PCA, kernel PCA and kernel PGA": lambda: _comparison(
            "Digits: ten classes in two dimensions", _digits(), choice
        ),
        "wine: PCA, kernel PCA and kernel PGA": lambda: _comparison(
            "Wine: three cultivars in two dimensions", _wine(), replace(choice, standardize=True)
        ),
        "directions: kernel PCA and kernel PGA": lambda: _directions(settings),
        "page": lambda: reproduction_section(command, _programs(settings), []),
    }
    sections = []
    with writable_folder(Path(folder)) as target, house_style():
        for number, (task, make) in enumerate(tasks.items()):
            report(number / len(tasks), task)
            sections.append(make())
        lead = _text("lead", seconds=time.perf_counter() - started)
        page = target / "index.html"
        return write_report(page, TITLE, sections, lead=lead, write_pictures=True)


@cache
def _texts() -> dict[str, str]:
    """Read the texts of the page from ``demo.txt``; return a dict keyed by heading."""
    text = files(__package__).joinpath("demo.txt").read_text("utf-8")
    parts = (part.partition("\n") for part in text.removeprefix("## ").split("\n## "))
    return {heading: body.strip() for heading, _, body in parts}


def _programs(settings: Settings) -> dict[str, str]:
    headings = [heading for heading in _texts() if heading.startswith("Python code")]
    return {heading: _text(heading, **vars(settings)) for heading in headings}


def _text(heading: str, **values: Any) -> str:
    return _texts()[heading].format(**values)


# ---------------------------------------------------------------------------- data


def _data(name: str, X: Array, columns: Sequence[str], labels: Any = None) -> Data:
    texts = None if labels is None else np.array(labels, dtype=np.str_)
    return Data(name, "table", X, tuple(columns), row_names(len(X)), texts, "class")


def _digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return _data("digits", X / 16.0, column_names(64), y)


def _wine() -> Data:
    wine = load_wine()
    return _data("wine", wine.data, wine.feature_names, [f"cultivar {i + 1}" for i in wine.target])


# ---------------------------------------------------------------------------- pre-images


def _preimages(settings: Settings) -> Section:
    """Denoise digits by projecting them onto the components of clean digits."""
    digits = _digits()
    split = {"stratify": digits.labels, "random_state": settings.seed}
    train, test, _, labels = train_test_split(
        digits.X, digits.labels, train_size=settings.training, **split
    )
    noise = np.random.default_rng(settings.seed).standard_normal(test.shape)
    noisy = test + settings.noise * noise
    results = {"noisy": noisy}
    for title, kernel in (("PCA", "linear"), ("kernel PCA, pre-image", "gaussian")):
        model = KernelPCA(settings.n_components, kernel, random_state=settings.seed).fit(train)
        results[title] = model.inverse_transform(model.transform(noisy))
    chosen = [int(np.flatnonzero(labels == digit)[0]) for digit in np.unique(labels)]
    grid = {name: each[chosen] for name, each in (results | {"original": test}).items()}
    picture = Picture.of(
        images(grid, shape=(8, 8), limits=(0.0, 1.0)),
        "digits-preimages",
        alt=_text("digits picture"),
        caption=_text("digits caption"),
    )
    results |= _filtered(train, noisy, settings.noise)
    errors = {name: float(np.mean((each - test) ** 2)) for name, each in results.items()}
    rows = [[name, f"{error:.4f}"] for name, error in sorted(errors.items(), key=lambda e: e[1])]
    caption = f"Mean squared error per pixel for {len(test)} test digits, smallest first."
    table = Table(caption, ["method", "error"], rows)
    text, note = Text(_text("digits", **vars(settings))), Note(_text("digits note"))
    return Section("Digits: from feature space back to images", [text, picture, table, note])


def _filtered(train: Array, noisy: Array, noise: float) -> dict[str, Array]:
    """Denoise images with two simple filters, for comparison."""
    nearest = NearestNeighbors(n_neighbors=5).fit(train).kneighbors(noisy, return_distance=False)
    mean, covariance = train.mean(axis=0), np.cov(train.T)
    total = covariance + noise**2 * np.eye(train.shape[1])
    linear = mean + (noisy - mean) @ np.linalg.solve(total, covariance)
    return {
        "mean of the 5 nearest training digits": train[nearest].mean(axis=1),
        "optimal linear filter, given the noise level": linear,
    }


# ---------------------------------------------------------------------------- comparisons


def _comparison(
    title: str, data: Data, choice: Choice, methods: Sequence[str] = _METHODS
) -> Section:
    """Compare methods; return the page of the command compare as one section."""
    sections = compare(data, choice, methods=methods).sections()
    blocks: list[Block] = []
    for block in (block for section in sections for block in section.blocks):
        if isinstance(block, Picture):
            block = replace(block, name=f"{data.path}-{block.name}")  # unique on the page
        blocks.append(block)
    return Section(title, blocks)


def _directions(settings: Settings) -> Section:
    """Compare methods on points of a two-dimensional sphere in many dimensions."""
    n, d, concentration = settings.directions, settings.dimensions, settings.concentration
    X = make_von_mises_fisher(n, d, 2, concentration, random_state=settings.seed)
    data = _data("directions", X, column_names(d))
    choice = Choice("kpca", "linear", seed=settings.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison below repeats them as notes
        models: dict[str, Any] = {
            "kpca": KernelPCA(kernel="linear", random_state=settings.seed).fit(X),
            "kpga": KernelPGA(kernel="linear", random_state=settings.seed).fit(X),
        }
    tangent = models["kpga"].embedding_[:, :2]
    angles = np.degrees(np.linalg.norm(tangent, axis=1))
    curve = neighborhood_preservation(X, tangent, kernel="linear", metric="geodesic")
    globe = Picture.of(
        sphere(exp_at_pole(tangent), angles, legend_title="degrees from the mean"),
        "directions-sphere",
        alt=_text("globe picture", **vars(settings)),
        caption=_text("globe caption"),
    )
    pictures = [
        replace(spectrum_picture(model), name=f"directions-spectrum-{name}")
        for name, model in models.items()
    ]
    found = {name: model.n_components_ for name, model in models.items()}
    area = neighborhood_area(curve)
    result = _text("directions result", flat=found["kpca"], curved=found["kpga"], area=area)
    texts = [Text(_text("directions", **vars(settings))), Text(result)]
    comparison = _comparison("", data, choice, _METHODS[1:]).blocks
    title = "Directions: kernel PCA and kernel PGA"
    return Section(title, [*texts, Row(pictures), globe, *comparison])
