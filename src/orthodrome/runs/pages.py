"""The page of each result: one HTML file that needs nothing else."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.machine import machine, versions
from ..plots import confusion, images, neighborhood, shape_modes, shapes, spectrum
from ..plots._matplotlib import house_style
from ..plots.interactive import Scatter
from ..plots.report import Block, Code, Note, Picture, Row, Section, Table, Text
from .classification import Classification
from .clustering import Clustering
from .comparison import TITLES, Comparison
from .denoising import Denoising
from .embedding import Embedding, Quality
from .inputs import Data
from .models import last_step, python_lines

__all__ = [
    "How",
    "classification_page",
    "clustering_page",
    "comparison_page",
    "denoising_page",
    "embedding_page",
]

PACKAGES = ("orthodrome", "numpy", "scipy", "scikit-learn", "numba", "matplotlib", "plotly")
MOST_SHAPES = 300  # drawn over each other


@dataclass(frozen=True)
class How:
    """How a run was started: the command line, and the Python expression that reads the data."""

    command: Sequence[str]
    reading: str = ""
    testing: str = ""  # the same of rows to test


def embedding_page(found: Embedding, how: How) -> list[Section]:
    """The sections of an embedding's page."""
    model = last_step(found.model)
    coordinates: list[Block] = [
        Text(
            f"{_described(found.data)}; {type(model).__name__} with "
            f"{found.coordinates.shape[1]} components."
        ),
        *_notes(found),
        _scatter(found.data, found.coordinates, "Every point is a row of the file.", model),
    ]
    sections = [Section("Embedding", coordinates)]
    with house_style():
        pictures = []
        if len(model.explained_variance_ratio_) > 1:
            share = float(np.sum(model.explained_variance_ratio_))
            picture = Picture.of(
                spectrum(model),
                "spectrum",
                alt=f"Bars: the share of variance of each component; all hold {share:.0%}.",
                caption="The share of the variance that each component explains, and their sum.",
            )
            pictures.append(picture)
        if found.quality is not None:
            pictures.append(_neighbors(found, found.quality))
        if pictures:
            sections.append(Section("How much is kept", [Row(pictures)]))
        if found.data.kind == "shapes":
            sections += _shape_modes(model)
    lines = python_lines(found.model, how.reading, "coordinates = model.fit_transform(data.X)")
    return [*sections, _how(found.model, found.seconds, how, lines)]


def clustering_page(found: Clustering, how: How) -> list[Section]:
    """The sections of a clustering's page."""
    n = len(found.labels)
    sizes = found.sizes
    details: dict[str, NDArray[Any]] = {}
    if found.data.labels is not None:
        details[found.data.label_title] = found.data.labels
    if found.probabilities is not None:
        details["probability"] = found.probabilities
    scatter = Scatter(
        found.coordinates,
        "Every point is a row of the file, coloured by its cluster; the coordinates are those of "
        "kernel PCA with the same kernel.",
        labels=np.array([f"cluster {label}" for label in found.labels]),
        label_name="cluster",
        ids=found.data.ids,
        details=details,
        **_features(found.data),
    )
    rows = [[f"cluster {c}", int(size), f"{size / n:.1%}"] for c, size in enumerate(sizes)]
    blocks: list[Block] = [
        Text(f"{_described(found.data)}; {len(sizes)} clusters."),
        *_notes(found),
        scatter,
        Table("Clusters", ["cluster", "rows", "share"], rows),
    ]
    sections = [Section("Clusters", blocks)]
    if found.agreement is not None:
        sections.append(_agreement(found))
    with house_style():
        if found.data.kind == "shapes":
            names = np.array([f"cluster {label}" for label in found.labels])
            sections.append(_shapes(found.data, names, "The shapes of each cluster"))
    lines = python_lines(found.model, how.reading, "model.fit(data.X)", _labels_line(found.model))
    return [*sections, _how(found.model, found.seconds, how, lines)]


def classification_page(found: Classification, how: How) -> list[Section]:
    """The sections of a classifier's page."""
    trial = found.trial
    blocks: list[Block] = [
        Text(f"{_described(found.data)}; {len(found.classes)} classes. Tested on {trial.how}."),
        *_notes(found),
    ]
    sections = [Section("Accuracy", blocks)]
    if trial.accuracies:
        error = "" if trial.error is None else f" ± {trial.error:.1%} (standard error over folds)"
        blocks.append(
            Text(
                f"Accuracy {trial.accuracy:.1%}{error}; naming the largest class always would be "
                f"right in {trial.majority:.1%}."
            )
        )
        rows = [
            [
                each.name,
                f"{each.precision:.3f}",
                f"{each.recall:.3f}",
                f"{each.f1:.3f}",
                each.n_points,
            ]
            for each in trial.scores(found.classes)
        ]
        header = ["class", "precision", "recall", "F1", "rows"]
        blocks.append(Table("Classes", header, rows))
        sections.append(_confusion(found))
    else:
        blocks.append(Note(f"{trial.data.path} has no labels: nothing can be said of accuracy."))
        names, counts = np.unique(trial.predicted, return_counts=True)
        rows = [[str(name), int(count)] for name, count in zip(names, counts, strict=True)]
        blocks.append(Table("Predictions", ["class", "rows"], rows))
    return [*sections, _how(found.model, found.seconds, how, _classifier_lines(found, how))]


def _classifier_lines(found: Classification, how: How) -> str:
    if how.testing:
        use = [
            f"test = {how.testing}",
            "model.fit(data.X, data.labels)",
            "predicted = model.predict(test.X)",
        ]
        if found.trial.accuracies:
            use.append("accuracy = (predicted == test.labels).mean()")
        return python_lines(found.model, how.reading, *use)
    n, seed = len(found.trial.accuracies), found.choice.seed
    return python_lines(
        found.model,
        how.reading,
        f"folds = StratifiedKFold({n}, shuffle=True, random_state={seed})",
        "predicted = cross_val_predict(model, data.X, data.labels, cv=folds)",
        "accuracy = (predicted == data.labels).mean()",
        "model.fit(data.X, data.labels)",
        more="from sklearn.model_selection import StratifiedKFold, cross_val_predict",
    )


def comparison_page(found: Comparison, how: How) -> list[Section]:
    """The sections of a comparison's page."""
    rows = []
    for each in found.methods:
        spread = float(np.std(each.areas, ddof=1))
        row = [TITLES[each.method], f"{each.quality.area:.3f}", f"{spread:.3f}"]
        if each.neighbor_accuracy is not None:
            row.append(f"{each.neighbor_accuracy:.1%}")
        rows.append([*row, f"{each.seconds:.2f}"])
    header = ["method", "area", "±"]
    header += ["nearest neighbour has the same label"] * (found.data.labels is not None)
    with house_style():
        curves = {TITLES[each.method]: each.quality.curve for each in found.methods}
        picture = Picture.of(
            neighborhood(curves, xscale="log"),
            "neighbourhoods",
            alt="Curves over the size of the neighbourhood: "
            + ", ".join(f"{TITLES[m.method]} area {m.quality.area:.3f}" for m in found.methods)
            + ".",
            caption="Which share of the nearest neighbours the coordinates of each method keep.",
        )
    part = ""
    if found.n_rows > len(found.data.X):
        part = f" {len(found.data.X)} of {found.n_rows} rows were drawn at random."
    first: list[Block] = [
        Text(f"{_described(found.data)}; {found.n_components} components of each method.{part}"),
        Note(found.recommendation()),
        *_notes(found),
        Table("Methods; ±: the standard deviation over random halves", [*header, "seconds"], rows),
        picture,
    ]
    scatters = [
        Section(
            TITLES[each.method],
            [_scatter(found.data, each.coordinates, f"{TITLES[each.method]} of the same rows.")],
        )
        for each in found.methods
    ]
    model = found.model(found.best.method)
    lines = python_lines(model, how.reading, "coordinates = model.fit_transform(data.X)")
    run = _how(model, found.seconds, how, lines)
    return [Section("Comparison", first), *scatters, run]


def denoising_page(found: Denoising, how: How) -> list[Section]:
    """The sections of a cleaned image's page."""
    rows: list[list[Any]] = []
    channels = ["grey"] if found.image.ndim == 2 else ["red", "green", "blue"]
    for name, noise, count in zip(channels, found.noise, found.n_components, strict=True):
        rows.append([name, f"{255 * noise:.1f}", count])
    removed = 0.5 + (found.image - found.cleaned) / 2
    shown = {"as it is": found.image, "cleaned": found.cleaned, "what was removed": removed}
    alts = {
        "what was removed": "What was removed, around a middle grey: noise if no edge can be seen."
    }
    captions = {"what was removed": "What was removed; edges in it would be more than noise."}
    with house_style():
        pictures = [
            Picture.of(
                images({name: image[None]}, limits=(0.0, 1.0), cmap="gray"),
                name.replace(" ", "-"),
                alt=alts.get(name, f"The image {found.path}, {name}."),
                caption=captions.get(name, f"{found.path}, {name}."),
            )
            for name, image in shown.items()
        ]
    blocks: list[Block] = [
        Text(f"{found.path}, {found.image.shape[1]} x {found.image.shape[0]} pixels."),
        *_notes(found),
        Table(
            "Channels, each cleaned by itself",
            ["channel", f"{'given' if found.given else 'estimated'} noise (of 255)", "components"],
            rows,
        ),
        *pictures,
    ]
    whole = ["cleaned = model.denoise(image)"]
    if found.image.ndim == 3:
        whole = [
            "channels = [model.denoise(image[..., c].copy()) for c in range(3)]",
            "cleaned = np.stack(channels, axis=-1)",
        ]
    lines = "\n".join(
        [
            "import numpy as np",
            "from orthodrome import PatchDenoiser",
            "from orthodrome.runs import read_image, write_image",
            "",
            f"image = {how.reading}",
            f"model = {found.model!r}",
            *whole,
            'write_image("cleaned.png", np.clip(cleaned, 0.0, 1.0))',
        ]
    )
    return [Section("Image", blocks), _how(found.model, found.seconds, how, lines)]


# ---------------------------------------------------------------------------- parts


def _described(data: Data) -> str:
    n = len(data.X)
    if data.kind == "shapes":
        what = f"{n} specimens of {data.X.shape[1]} landmarks"
    else:
        what = f"{n} rows of {data.X.shape[1]} columns"
    return f"{data.path}: {what}"


def _notes(found: Any) -> list[Note]:
    """What was found while the file was read, and while it was worked on."""
    read = found.data.notes if hasattr(found, "data") else ()
    return [Note(text) for text in (*read, *found.notes)]


def _features(data: Data) -> dict[str, Any]:
    if data.kind == "shapes":
        return {}
    return {"features": data.X, "columns": data.columns}


def _scatter(
    data: Data, coordinates: NDArray[np.float64], caption: str, model: Any = None
) -> Scatter:
    return Scatter(
        coordinates,
        caption,
        labels=data.labels,
        label_name=data.label_title,
        ids=data.ids,
        ratios=None if model is None else model.explained_variance_ratio_[: coordinates.shape[1]],
        **_features(data),
    )


def _neighbors(found: Embedding, quality: Quality) -> Picture:
    drawn = "" if quality.n_points == len(found.data) else f" {quality.n_points} rows were drawn."
    return Picture.of(
        neighborhood({type(last_step(found.model)).__name__: quality.curve}, xscale="log"),
        "neighbourhoods",
        alt=f"A curve over the size of the neighbourhood; the area under it is {quality.area:.3f}.",
        caption="Which share of the nearest neighbours the coordinates keep; area above chance "
        f"{quality.area:.3f}, where 1 is all.{drawn}",
    )


def _agreement(found: Clustering) -> Section:
    agreed = found.agreement
    assert agreed is not None
    rows = [
        [name, *map(int, counts)] for name, counts in zip(agreed.labels, agreed.counts, strict=True)
    ]
    header = [found.data.label_title, *(f"cluster {c}" for c in range(len(rows[0]) - 1))]
    return Section(
        "Clusters and labels",
        [
            Text(
                f"Under the best matching of clusters with labels {agreed.error:.1%} of the rows "
                f"are outside of their cluster; of one cluster of all rows it would be "
                f"{agreed.majority_error:.1%}. Variation of information "
                f"{agreed.variation_of_information:.3f} nats (0: the same groups). The clusters "
                "were found without the labels."
            ),
            Table("How many rows of each label are in each cluster", header, rows),
        ],
    )


def _confusion(found: Classification) -> Section:
    true = found.trial.data.labels
    assert true is not None
    with house_style():
        figure = confusion(true, found.trial.predicted, labels=found.classes)
        picture = Picture.of(
            figure,
            "confusion",
            alt="How many rows of each class, line by line, were given each label; the same "
            "numbers are in the table.",
            caption="True labels from top to bottom, predicted ones from left to right.",
        )
    counts = found.trial.confusion(found.classes)
    names = [str(name) for name in found.classes]
    rows = [[name, *map(int, row)] for name, row in zip(names, counts, strict=True)]
    table = Table("Rows by true and predicted class", ["true class", *names], rows)
    return Section("Confusion", [picture, table])


def _shapes(data: Data, names: NDArray[Any], title: str) -> Section:
    rows = np.arange(len(data.X))
    if len(rows) > MOST_SHAPES:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_SHAPES, replace=False))
    picture = Picture.of(
        shapes(data.X[rows], names[rows]),
        "shapes",
        alt=f"{title}: the outlines of {len(rows)} specimens, with the mean of each group.",
        caption=f"{title}, with their extrinsic means.",
    )
    return Section("Shapes", [picture])


def _shape_modes(model: Any) -> list[Section]:
    """How shapes change along the components, if the model leads back to shapes."""
    try:
        figure = shape_modes(model, n_modes=min(3, model.n_components_))
    except ValueError:  # nested spheres have no way back, and some kernels have no pre-images
        return []
    picture = Picture.of(
        figure,
        "modes",
        alt="A line of shapes for each component, from two standard deviations below the mean to "
        "two above.",
        caption="How the shape changes along each component.",
    )
    return [Section("Modes", [picture])]


def _labels_line(model: Any) -> str:
    return (
        "clusters = model[-1].labels_"
        if last_step(model) is not model
        else ("clusters = model.labels_")
    )


def _how(model: Any, seconds: dict[str, float], how: How, lines: str) -> Section:
    own = last_step(model)
    names = sorted(inspect.signature(type(own)).parameters)
    rows = [[name, str(getattr(own, name))] for name in names]
    kernel = getattr(own, "kernel_", None)
    if kernel is not None and hasattr(kernel, "sigma_"):
        rows.append(["bandwidth found (kernel_.sigma_)", f"{float(kernel.sigma_):.6g}"])
    for name in ("alpha_", "solver_", "n_iter_", "converged_"):
        if hasattr(own, name):
            rows.append([f"{name} found", str(getattr(own, name))])
    return Section(
        "How to do this again",
        [
            Code(shlex.join(how.command), "The command that wrote this page:"),
            Code(lines, "The same in Python:"),
            Table(f"Parameters of {type(own).__name__}", ["parameter", "value"], rows),
            _machine(seconds),
        ],
    )


def _machine(seconds: dict[str, float]) -> Table:
    rows = [[name, version] for name, version in versions(*PACKAGES)]
    rows.append(["machine", machine()])
    rows += [[f"seconds: {name.replace('_', ' ')}", f"{s:.2f}"] for name, s in seconds.items()]
    return Table("Versions and time", ["what", "value"], rows)
