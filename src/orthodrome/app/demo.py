"""The command demo: four kinds of data on one page, each with its result.

All data ship with scikit-learn and scikit-image, or are simulated.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.svm import SVC
from sklearn.utils.discovery import all_estimators, all_functions

from .._core.files import writable_folder
from .._core.types import Array, Floats
from ..classification import KernelRidgeRegressionClassifier, PerTurbo
from ..cluster import HypersphericalKMeans
from ..decomposition import KernelPCA, KernelPGA
from ..plots import images, shape_modes, sphere
from ..plots._matplotlib import house_style, require, require_matplotlib
from ..plots.interactive import Scatter
from ..plots.report import Block, Note, Picture, Section, Text, write_report
from .results import Report, reproduction_section

# The right half of each kind of leaf, from the petiole to the tip: distance from the midrib, height
_HALVES = {
    "beech": [(0.22, 0.10), (0.33, 0.28), (0.32, 0.48), (0.22, 0.70), (0.10, 0.87)],
    "maple": [(0.42, 0.04), (0.22, 0.24), (0.56, 0.52), (0.20, 0.58), (0.13, 0.80)],
    "willow": [(0.06, 0.10), (0.10, 0.28), (0.11, 0.50), (0.08, 0.72), (0.04, 0.88)],
}
MODULES = ("cluster", "datasets", "linear_model", "metrics")
TEXTURES = ("grass", "gravel")
_SIDE = 64  # pixels of a patch


def leaves(n: int = 90, seed: int = 0) -> tuple[Floats, Array]:
    """Return landmarks of simulated leaves, (n, 12, 2), and their kinds.

    The leaves differ in width, depth of the lobes and bend, and lie anywhere on the table.
    """
    rng = np.random.default_rng(seed)
    kinds = np.sort(np.resize(list(_HALVES), n))
    found = np.empty((n, 12, 2))
    for number, (leaf, kind) in enumerate(zip(found, kinds, strict=True)):
        right = np.array(_HALVES[kind]) * [np.exp(0.15 * rng.standard_normal()), 1.0]
        right[:, 0] *= 1 + 0.1 * rng.standard_normal() * np.array([1, -1, 1, -1, 0])
        left = right[::-1] * [-1, 1]
        leaf[:] = np.concatenate([[[0, 0]], right, [[0, 1]], left])
        leaf += 0.012 * rng.standard_normal(leaf.shape)
        leaf[:, 0] += 0.15 * rng.standard_normal() * leaf[:, 1] ** 2  # the bend
        angle = rng.uniform(-0.6, 0.6) * (number > 0)  # pictures follow the first leaf
        turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        leaf[:] = rng.uniform(60, 120) * leaf @ np.transpose(turn) + rng.uniform(100, 200, 2)
    return found, kinds


def textures() -> tuple[Floats, Array, Array]:
    """Return covariance matrices of patches of photographs, their textures and the patches.

    The photographs of grass and gravel ship with scikit-image. The covariance is that of
    the brightness and its first and second derivatives, divided by the variance of the brightness.
    """
    data = require("skimage.data", "Textures", "image")
    patches, matrices = [], []
    for name in TEXTURES:
        image = getattr(data, name)().astype(np.float64)
        orders = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2)]
        channels = np.stack([gaussian_filter(image, 1, order=order) for order in orders])
        m = len(image) // _SIDE
        blocks = channels.reshape(5, m, _SIDE, m, _SIDE).transpose(1, 3, 0, 2, 4)
        blocks = blocks.reshape(m * m, 5, -1)
        covariances = np.stack([np.cov(block) for block in blocks])
        matrices.append(covariances / covariances[:, :1, :1])
        cut = image.reshape(m, _SIDE, m, _SIDE).transpose(0, 2, 1, 3)
        patches.append(cut.reshape(m * m, _SIDE, _SIDE))
    return np.concatenate(matrices), np.repeat(TEXTURES, m * m), np.concatenate(patches)


def texts() -> tuple[Floats, Array, Array]:
    """Return unit vectors of docstrings of scikit-learn, their modules and their names.

    The vectors are term frequencies (tf-idf), reduced to 50 dimensions and to unit length.
    """
    things = dict([*all_estimators(), *all_functions()])
    modules = {name: thing.__module__.split(".")[1] for name, thing in things.items()}
    names = sorted(name for name, module in modules.items() if module in MODULES)
    words = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=2)
    counts = words.fit_transform([inspect.getdoc(things[name]) or "" for name in names])
    X = normalize(TruncatedSVD(50, random_state=0).fit_transform(counts))
    return X, np.array([modules[name] for name in names]), np.array(names)


TITLE = "What orthodrome does with four kinds of data"


def run_demo(
    folder: str | os.PathLike[str],
    *,
    command: Sequence[str] = ("orthodrome", "demo"),
    report: Report = lambda fraction, task: None,
) -> Path:
    """Run the demonstration and write ``index.html`` to a folder.

    Parameters
    ----------
    folder : str or path
        Output folder, created if it does not exist.
    command : sequence of str
        The command line, to show on the page.
    report : callable, optional
        Called with the fraction done and the name of the current task.

    Returns
    -------
    Path
        Path of the page.
    """
    require_matplotlib()
    started = time.perf_counter()
    tasks: dict[str, tuple[str, Callable[[], list[Block]]]] = {
        "shapes": ("Shapes: three kinds of leaves", _shapes),
        "covariances": ("Covariance matrices: grass or gravel?", _covariances),
        "directions": ("Directions: a map of texts", _directions),
        "table": ("A table: three cultivars of wine", _table),
    }
    sections = []
    with writable_folder(Path(folder)) as target, house_style():
        for number, (task, (title, make)) in enumerate(tasks.items()):
            report(number / len(tasks), task)
            sections.append(Section(title, make()))
        sections.append(reproduction_section(command, _programs()))
        lead = _text("lead", seconds=time.perf_counter() - started)
        page = target / "index.html"
        return write_report(page, TITLE, sections, lead=lead)


@cache
def _texts() -> dict[str, str]:
    """Read the texts of the page from ``demo.txt``; return a dict keyed by heading."""
    text = files(__package__).joinpath("demo.txt").read_text("utf-8")
    parts = (part.partition("\n") for part in text.removeprefix("## ").split("\n## "))
    return {heading: body.strip() for heading, _, body in parts}


def _programs() -> dict[str, str]:
    return {heading: text for heading, text in _texts().items() if heading.startswith("Python")}


def _text(heading: str, **values: Any) -> str:
    return _texts()[heading].format(**values)


def _predicted(model: Any, X: Array, y: Array) -> Array:
    """Return the predictions of each row by a model that was not fitted to it."""
    return np.asarray(cross_val_predict(model, X, y, cv=5))


def _map(model: Any, caption: str, noun: str, **details: Array) -> Scatter:
    """Return the embedding of a model, coloured by the first of the details."""
    label_name, labels = next(iter(details.items()))
    return Scatter(
        model.embedding_,
        caption,
        labels=labels,
        label_name=label_name,
        ids=[f"{noun} {number + 1}" for number in range(len(labels))],
        details={name: values for name, values in details.items() if name != label_name},
        ratios=model.explained_variance_ratio_[:2],
    )


# ---------------------------------------------------------------------------- sections


def _shapes() -> list[Block]:
    X, kinds = leaves()
    found = _predicted(KernelRidgeRegressionClassifier("veronese_whitney"), X, kinds)
    model = KernelPGA(2, "veronese_whitney", random_state=0).fit(X)
    caption = "Each mark is a leaf, placed by the first two modes of shape."
    points = _map(model, caption, "leaf", kind=kinds, classified=found)
    modes = Picture.of(
        shape_modes(model),
        "modes",
        alt="Two rows of leaves: how the shape changes along each mode.",
        caption="What the two axes of the map mean: the shape from two standard deviations below "
        "the mean to two above, compared with the mean (grey).",
    )
    result = _text("shapes result", n=len(X), right=int(np.sum(found == kinds)))
    return [Text(_text("shapes", n=len(X))), points, modes, Note(result)]


def _covariances() -> list[Block]:
    X, names, patches = textures()
    entries = X.reshape(len(X), -1)
    classifiers: dict[str, tuple[Any, Array]] = {
        "ours": (KernelRidgeRegressionClassifier("log_euclidean"), X),
        "svm": (make_pipeline(StandardScaler(), SVC()), entries),
        "linear": (make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), entries),
    }
    found = {key: _predicted(model, Z, names) for key, (model, Z) in classifiers.items()}
    model = KernelPGA(2, "log_euclidean", random_state=0).fit(X)
    caption = "Each mark is the covariance matrix of a patch."
    points = _map(model, caption, "patch", texture=names, classified=found["ours"])
    rows = {name: patches[names == name][:8] for name in np.unique(names)}
    picture = Picture.of(
        images(rows, cmap="gray"),
        "patches",
        alt="Eight patches of grass and eight of gravel.",
        caption="Some of the patches.",
    )
    shares = {key: float(np.mean(each == names)) for key, each in found.items()}
    result = _text("covariances result", **shares)
    return [Text(_text("covariances", n=len(X))), picture, points, Note(result)]


def _directions() -> list[Block]:
    X, modules, names = texts()
    k = len(MODULES)
    clusters = HypersphericalKMeans(k, kernel="linear", centers="intrinsic", random_state=0).fit(X)
    model = KernelPGA(2, "linear", random_state=0).fit(X)
    caption = "Each mark is a text, coloured by the module that it documents."
    points = _map(model, caption, "text", module=modules, name=names, cluster=clusters.labels_)
    globe = Picture.of(
        sphere(model.sphere_coordinates_, modules, geodesics=False, tilt=12.0),
        "globe",
        alt="A globe with the texts as marks, coloured by module. A star marks the mean.",
        caption="The same texts on the sphere of their two main directions. Circles around the "
        "mean are 30° apart.",
    )
    other = KMeans(k, n_init=10, random_state=0).fit(X)
    scores = {
        key: adjusted_rand_score(modules, each.labels_)
        for key, each in {"ours": clusters, "theirs": other}.items()
    }
    result = _text("directions result", **scores)
    return [Text(_text("directions", n=len(X))), globe, points, Note(result)]


def _table() -> list[Block]:
    wine = load_wine()
    X, y = wine.data, wine.target
    found = _predicted(make_pipeline(StandardScaler(), PerTurbo()), X, y)
    grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.003, 0.01, 0.03, 0.1]}
    tuned = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid)
    model = make_pipeline(StandardScaler(), KernelPCA(2, random_state=0)).fit(X)
    names = np.array([f"cultivar {number + 1}" for number in range(3)])
    caption = "Each mark is a wine, placed by kernel PCA of its 13 measurements."
    measured = dict(zip(wine.feature_names[:3], X.T, strict=False))
    points = _map(
        model[-1], caption, "wine", cultivar=names[y], classified=names[found], **measured
    )
    shares = {"ours": np.mean(found == y), "svm": np.mean(_predicted(tuned, X, y) == y)}
    result = _text("table result", **shares)
    return [Text(_text("table", n=len(X))), points, Note(result)]
