"""Shared by the commands: progress and notes of a run, CSV tables, and parts of pages."""

from __future__ import annotations

import re
import shlex
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from .._core.machine import machine, versions
from .._core.progress import reporting
from .._core.types import Array, Floats
from ..decomposition import KernelPCA
from ..kernels import Kernel, Linear
from ..persist.archive import pack
from ..plots import shape_modes, shapes
from ..plots.interactive import Scatter
from ..plots.landmarks import mode_magnifications
from ..plots.report import Block, Code, Note, Picture, Section, Table, Text
from ..spaces import find_landmark_errors
from .inputs import Data
from .inputs.tables import escape_formula
from .models import last_step, option_text

_PACKAGES = ("orthodrome", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")
_MAX_FEATURES = 4  # maximum number of features in the text of a point
_MAX_PANELS = 20  # groups of specimens in one figure
MAX_SHAPES = 300  # outlines drawn in one figure
MODEL = "model.orthodrome"

#: Called with the fraction of the run that is done and the name of the current step.
Report = Callable[[float, str], None]


class Work:
    """Progress, times and notes of a run in steps.

    Parameters
    ----------
    report : callable or None
        Called with the fraction of the run that is done and the name of the step.
    weights : float
        The steps in order, with weights proportional to their expected time.

    Examples
    --------
    >>> from orthodrome.app.results import Work
    >>> work = Work(lambda fraction, task: print(f"{task} {fraction:.2f}"), fit=3, page=1)
    >>> with work.step("fit") as advance:
    ...     advance(0.5)
    fit 0.00
    fit 0.38
    fit 0.75
    """

    def __init__(self, report: Report | None = None, **weights: float) -> None:
        self._report, self._weights = report or (lambda fraction, task: None), weights
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str, model: Any = None) -> Iterator[Callable[[float], None]]:
        """Run one step: record its time and warnings, and report the progress of `model`."""
        weights = list(self._weights.values())
        done = sum(weights[: list(self._weights).index(name)])

        def advance(fraction: float) -> None:
            self._report((done + fraction * self._weights[name]) / sum(weights), name)

        advance(0.0)
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator = last_step(model)
            if hasattr(estimator, "set_callbacks"):
                with reporting(estimator, advance):
                    yield advance
            else:
                yield advance
        self.seconds[name] = time.perf_counter() - started
        for warning in caught:
            text = option_text(" ".join(str(warning.message).split()))
            if text not in self.notes and not issubclass(warning.category, DeprecationWarning):
                self.notes.append(text)
        advance(1.0)


@dataclass(frozen=True)
class Result:
    """The result of a command.

    Attributes
    ----------
    model : estimator
        The fitted model.
    work : Work
        Notes and times of the run.
    answer : str
        The main result in one sentence, to begin the page with.
    facts, lines : dict, list of str
        The summary for JSON and as text.
    sections : callable
        Returns the sections of the page.
    python : list of str
        Python code that fits ``model`` to ``data``.
    files : dict of str to bytes
        The files to write, except the page.
    """

    model: Any
    work: Work
    answer: str
    facts: dict[str, Any]
    lines: list[str]
    sections: Callable[[], list[Section]]
    python: list[str]
    files: dict[str, bytes]


# ---------------------------------------------------------------------------- tables


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV. Floats have all digits; text is safe to open in a spreadsheet."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return repr(float(value))
    text = escape_formula(value) if isinstance(value, str) else str(value)
    # csv.writer does not quote a lone carriage return, which would start a new row
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text


def table_and_model(
    file: str, rows: Data, columns: dict[str, Iterable[Any]], model: Any, training: Data
) -> dict[str, bytes]:
    """Return two files: a table with the names, labels and `columns` of rows, and a model."""
    table: dict[str, Iterable[Any]] = {"row": rows.ids}
    if rows.labels is not None:
        table[rows.label_title] = rows.labels.tolist()
    table |= columns
    text = table_text(list(table), zip(*table.values(), strict=True))
    notes: dict[str, Any] = {"columns": list(training.columns), "kind": training.kind}
    if training.kind == "shapes":
        mean = find_landmark_errors(training.X).mean
        notes |= (
            {} if mean is None else {"mean": mean.tolist(), "reflected": bool(training.reflected)}
        )
    if training.cleaner is not None:  # so that new rows are treated like the training data
        steps = model.steps if isinstance(model, Pipeline) else [("model", model)]
        model = Pipeline([("table", training.cleaner), *steps])
    return {file: text.encode("utf-8"), MODEL: pack(model, notes)}


def predicted_table(model: Any, data: Data) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of the table written by the command predict.

    It has the labels of a classifier, the clusters of a clustering model, or coordinates.
    """
    if hasattr(model, "predict"):
        header = ["predicted" if is_classifier(model) else "cluster"]
        columns = [np.asarray(model.predict(data.X)).tolist()]
    else:
        header = list(map(str, last_step(model).get_feature_names_out()))
        columns = np.asarray(model.transform(data.X)).T.tolist()
    return ["row", *header], list(map(list, zip(data.ids, *columns, strict=True)))


# ---------------------------------------------------------------------------- pages


def count(n: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def size(data: Data) -> str:
    """Return the number of rows and columns, or of specimens and landmarks."""
    columns = "landmark" if data.kind == "shapes" else "column"
    return f"{count(len(data), data.noun)} of {count(data.X.shape[1], columns)}"


def opening(data: Data, work: Work, description: str) -> list[Block]:
    """Return the blocks below the first picture: the data, and notes on the file and the run."""
    notes = [Note(text) for text in (*data.notes, *work.notes)]
    return [Text(f"{data.path}: {size(data)}; {description}"), *notes]


def scatter(
    data: Data, coordinates: Floats, caption: str, *, details: Any = None, **options: Any
) -> Scatter:
    """Return an interactive scatter plot; `options` override those set here."""
    details = dict(details or {})
    if data.kind == "table":
        details |= zip(data.columns[:_MAX_FEATURES], data.X.T, strict=False)
    defaults: dict[str, Any] = {"labels": data.labels, "label_name": data.label_title}
    return Scatter(coordinates, caption, ids=data.ids, details=details, **defaults | options)


def shapes_section(data: Data, names: Array | None, title: str) -> list[Section]:
    """Return a section with the specimens and the mean of each group; none for tables."""
    if data.kind != "shapes" or names is None or len(np.unique(names)) > _MAX_PANELS:
        return []
    rows = data.sample_rows(MAX_SHAPES)
    picture = Picture.of(
        shapes(data.X[rows], names[rows], links=data.links),
        "shapes",
        alt=f"{title}: the landmarks of {len(rows)} specimens, with the mean of each group.",
        caption=f"{title}, with their extrinsic means.{_links_text(data)}",
    )
    return [Section("Shapes", [picture])]


def modes_section(data: Data, model: Any) -> list[Section]:
    """Return a section on shape change along the components, if there are pre-images."""
    n_modes = min(3, model.n_components_)
    try:
        factors = mode_magnifications(model, n_modes)
    except ValueError:  # nested spheres and some kernels have no pre-images
        return []
    texts = [f"{n} times in mode {mode}" for mode, n in enumerate(factors, start=1) if n > 1]
    magnified = f" Changes are magnified {', '.join(texts)}." if texts else ""
    picture = Picture.of(
        shape_modes(model, n_modes=n_modes, links=data.links, magnification=factors),
        "modes",
        alt="One row of shapes per component, from two standard deviations below the mean to two "
        f"above.{magnified}",
        caption="How the shape changes along each component, compared with the middle shape (grey)."
        f"{magnified}{_links_text(data)}",
    )
    return [Section("Modes", [picture])]


def _links_text(data: Data) -> str:
    if data.links is None or len(data.links):
        return ""
    return (
        " No lines are drawn, because lines in the order of the landmarks would cross. Use --links "
        "FILE to choose which landmarks to connect."
    )


def reproduction_section(
    command: Sequence[str], programs: dict[str, str], *facts: list[str]
) -> Section:
    """Return the section to reproduce a run: command, Python code, versions and other facts."""
    rows = [*map(list, versions(*_PACKAGES)), ["machine", machine()], *facts]
    return Section(
        "How to reproduce this page",
        [
            Code(shlex.join(command), "Command:"),
            *(Code(lines, title) for title, lines in programs.items()),
            Table("Versions and times", ["item", "value"], rows),
        ],
    )


def model_reproduction_section(result: Result, command: Sequence[str], lines: str) -> Section:
    """Return the section to reproduce a fitted model, with fitted values and times."""
    estimator = last_step(result.model)
    fitted = [
        [f"fitted {name}", str(getattr(estimator, name))]
        for name in ("kernel_", "alpha_", "solver_", "n_iter_", "converged_")
        if hasattr(estimator, name)
    ]
    kernel: Any = getattr(estimator, "kernel_", None)
    if hasattr(kernel, "sigma_"):
        fitted.append(["fitted kernel_.sigma_", f"{float(kernel.sigma_):.6g}"])
    times = [[f"seconds: {name}", f"{time:.2f}"] for name, time in result.work.seconds.items()]
    return reproduction_section(command, {"Python code:": lines}, *fitted, *times)


_NAMES = {
    "KernelPCA": ("kernel principal component analysis", "scholkopf1998nonlinear"),
    "KernelPGA": ("kernel principal geodesic analysis", "awate2014kernel"),
    "KernelPNS": ("kernel principal nested spheres", "awate2016robust"),
    "GeodesicMixture": ("a mixture of Gaussians on the sphere of a kernel", "awate2014kernel"),
    "HypersphericalKMeans": ("k-means on the sphere of a kernel", "courty2012geodesic"),
    "KernelKMeans": ("kernel k-means", ""),
    "KernelSpectralClustering": ("spectral clustering", "ng2002spectral"),
    "KernelRidgeRegressionClassifier": (
        "a classifier by kernel ridge regression on each class",
        "lee2019extrinsic",
    ),
    "PerTurbo": ("the classifier PerTurbo", "courty2012geodesic"),
    "NestedSpheresClassifier": ("a classifier on principal nested spheres", "awate2016robust"),
    "RobustKernelPCA": ("robust kernel principal component analysis", "schreurs2021outlier"),
    "PatchDenoiser": ("kernel PCA of image patches", "schraudolph2006fast"),
    "VeroneseWhitney": ("a Gaussian kernel of planar shapes", "lee2019extrinsic"),
    "LogEuclidean": ("a log-Euclidean Gaussian kernel", "jayasumana2013kernel"),
    "Gaussian": ("a Gaussian kernel", ""),
    "Laplacian": ("a Laplacian kernel", ""),
    "Linear": ("a linear kernel", ""),
}


@cache
def references() -> dict[str, str]:
    """Return the BibTeX entries of ``references.bib`` by key."""
    text = files(__package__).joinpath("references.bib").read_text("utf-8")
    entries = re.finditer(r"^@\w+\{(\w+),\n.*?^\}", text, re.DOTALL | re.MULTILINE)
    return {entry[1]: entry[0] for entry in entries}


def citing_section(model: Any, data: Data | None) -> Section:
    """Return the section with a sentence on methods and BibTeX entries."""
    estimator = last_step(model)
    kernel = getattr(estimator, "kernel_", getattr(estimator, "kernel", None))
    kernel = getattr(kernel, "kernel_", kernel)  # of Normalized
    objects = [estimator, kernel] if isinstance(kernel, Kernel) else [estimator]
    used = [_described(each) for each in objects]
    if type(estimator) is KernelPCA and isinstance(kernel, Linear):
        used, objects = ["principal component analysis"], []
    what = "The image" if data is None else size(data)
    was = "was" if data is None else "were"
    standardised = "" if estimator is model else ", after standardising the columns"
    sentence = (
        f"{what} {was} analysed with {' and '.join(used)}{standardised}, as implemented in "
        f"orthodrome {dict(versions('orthodrome'))['orthodrome']}."
    )
    keys = dict.fromkeys(["orthodrome", *map(_key, objects)])
    entries = [references()[key] for key in keys if key]
    return Section(
        "For your paper",
        [Code(sentence, "Methods:"), Code("\n".join(entries), "References (BibTeX):")],
    )


def _described(used: Any) -> str:
    """Return the name of a method or kernel, with its reference and its bandwidth."""
    name, key = type(used).__name__, _key(used)
    text = _NAMES.get(name, (f"the kernel {name}", ""))[0]
    if key:
        text += f" [{key}]"
    if isinstance(used, Kernel) and hasattr(used, "sigma_"):
        text += f" (bandwidth {float(used.sigma_):.3g})"
    elif isinstance(used, Kernel) and hasattr(used, "gamma_"):
        text += f" (gamma {float(used.gamma_):.3g})"
    return text


def _key(used: Any) -> str:
    """Return the key of the reference of a method or kernel; "" if there is none."""
    name = type(used).__name__
    if name == "RobustKernelPCA" and used.method == "pursuit":
        return "awate2016robust"
    if name == "KernelSpectralClustering" and used.laplacian == "ncut":
        return "shi2000normalized"
    return _NAMES.get(name, ("", ""))[1]
