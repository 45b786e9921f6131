"""The commands embed and compare: compute coordinates of the rows, and compare methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline

from .._core.types import Array, Floats
from ..metrics import neighborhood_area, neighborhood_preservation
from ..plots import neighborhood, spectrum
from ..plots.report import Note, Picture, Row, Section, Table
from .inputs import Data, InputError
from .models import LINEAR, Choice, last_step, make_model
from .results import Report, Result, Work, count, modes_section, opening, scatter, table_and_model

MAX_NEIGHBOR_ROWS = 1500  # all pairs of these rows are compared
TITLES = {
    LINEAR: "PCA",
    "kpca": "kernel PCA",
    "kpga": "kernel PGA",
    "kpns": "kernel nested spheres",
    "robust": "robust kernel PCA",
}
_MIN_DIFFERENCE = 0.01  # smaller differences of areas do not count
MAX_ROWS = 500  # nested spheres would take minutes with more
_N_HALVES = 10  # random halves of the rows, to estimate how much the areas vary


def embed(data: Data, choice: Choice, report: Report | None = None) -> Result:
    """Fit a decomposition, and measure how well it preserves neighbours.

    Parameters
    ----------
    data : Data
        The rows of a file.
    choice : Choice
        The method, the kernel and the number of components (``parameters``).
    report : callable, optional
        Called with the progress.

    Returns
    -------
    Result
        The fitted model, the table of coordinates and the page.
    """
    work = Work(report, decomposition=8, neighbourhoods=2)
    model = make_model(choice, data)
    with work.step("decomposition", model):
        coordinates = np.asarray(model.fit_transform(data.X))
    with work.step("neighbourhoods"):
        curve = neighbor_curve(model, data, coordinates, seed=choice.seed)
    if all_equal(data):
        note = f"{data.path}: all rows are equal, so the coordinates carry no information."
        work.notes.insert(0, note)
    n, q = coordinates.shape
    facts: dict[str, Any] = {"n_rows": n, "n_components": q}
    lines = [f"{count(n, 'row')}, {count(q, 'coordinate')} (method: {choice.method})."]
    if curve is not None:
        facts["neighborhood_area"] = area = neighborhood_area(curve)
        lines.append(f"Neighbourhood score: {area:.3f} (1: all preserved, 0: random).")
    names = map(str, last_step(model).get_feature_names_out())
    table: dict[str, Any] = dict(zip(names, coordinates.T.tolist(), strict=True))
    files = table_and_model("coordinates.csv", data, table, model, data)
    sections = partial(_sections, data, work, last_step(model), coordinates, curve)
    python = ["coordinates = model.fit_transform(data.X)"]
    return Result(model, work, facts, lines, sections, python, files)


def _sections(
    data: Data, work: Work, model: Any, coordinates: Floats, curve: Floats | None
) -> list[Section]:
    """Return the sections of the page."""
    q, ratios = coordinates.shape[1], model.explained_variance_ratio_
    caption = "Each point is a row of the file."
    points = scatter(data, coordinates, caption, ratios=ratios[:q])
    description = f"{type(model).__name__}, {count(q, 'component')}."
    sections = [Section("Embedding", [*opening(data, work, description), points])]
    pictures = [spectrum_picture(model)] if len(ratios) > 1 else []
    if curve is not None:
        pictures.append(_neighbors(type(model).__name__, curve, len(data)))
    if pictures:
        sections.append(Section("How much is preserved", [Row(pictures)]))
    return sections + (modes_section(model) if data.kind == "shapes" else [])


def _neighbors(name: str, curve: Floats, n: int) -> Picture:
    area, n_compared = neighborhood_area(curve), len(curve) + 1
    sample = f" Computed for a sample of {n_compared} rows." if n_compared < n else ""
    return Picture.of(
        neighborhood({name: curve}, xscale="log"),
        "neighbourhoods",
        alt="Fraction of neighbours preserved against the size of the neighbourhood; score "
        f"{area:.3f}.",
        caption="Fraction of nearest neighbours preserved. The neighbourhood score, "
        f"the area between curve and chance, is {area:.3f} (1: all, 0: random).{sample}",
    )


def spectrum_picture(model: Any) -> Picture:
    """Plot the fraction of the variance that each component explains."""
    total = float(np.sum(model.explained_variance_ratio_))
    return Picture.of(
        spectrum(model),
        "spectrum",
        alt=f"Bars: fraction of the variance explained by each component; in total {total:.0%}.",
        caption="Fraction of the variance explained by each component, and the cumulative sum.",
    )


def neighbor_curve(model: Any, data: Data, coordinates: Floats, *, seed: int = 0) -> Floats | None:
    """Return the fraction of neighbours preserved, for neighbourhoods of 1, 2, … points.

    It is None if there are fewer than four rows, or all rows are equal.

    For tables the distance is Euclidean, after any standardisation; for shapes it is the distance
    of the kernel.
    """
    rows = data.sample_rows(MAX_NEIGHBOR_ROWS, seed)
    if len(rows) < 4 or all_equal(data):
        return None
    X: Array = data.X[rows]
    if isinstance(model, Pipeline):
        X = model[:-1].transform(X)
    kernel = last_step(model).kernel_ if data.kind == "shapes" else None
    return neighborhood_preservation(X, coordinates[rows], kernel=kernel)


def all_equal(data: Data) -> bool:
    """Return whether all rows are equal."""
    return bool((data.X[:1] == data.X).all())


# ---------------------------------------------------------------------------- comparison


@dataclass(frozen=True)
class MethodResult:
    """The result of one method in a comparison.

    Attributes
    ----------
    method : str
        A key of `TITLES`.
    coordinates : ndarray of shape (n, n_components)
        Coordinates of the compared rows.
    curve : ndarray of shape (n - 1,)
        Fraction of neighbours preserved.
    areas : ndarray of shape (n_halves,)
        Area for each random half of the rows; all methods use the same halves.
    neighbor_accuracy : float or None
        Fraction of rows whose nearest neighbour, in these coordinates, has the same label.
    seconds : float
        Duration of the fit.
    """

    method: str
    coordinates: Floats
    curve: Floats
    areas: Floats
    neighbor_accuracy: float | None
    seconds: float

    @property
    def area(self) -> float:
        """The area between the curve and chance."""
        return neighborhood_area(self.curve)

    @property
    def title(self) -> str:
        """The name of the method."""
        return TITLES[self.method]

    def is_worse_than(self, best: MethodResult) -> bool:
        """Return whether `best` has a larger area, by more than two standard deviations."""
        gain = best.area - self.area
        return gain > _MIN_DIFFERENCE and gain > 2 * float(np.std(best.areas - self.areas, ddof=1))


def compare(
    data: Data,
    choice: Choice,
    report: Report | None = None,
    *,
    n_components: int = 2,
    methods: Sequence[str] = tuple(TITLES),
) -> Result:
    """Fit PCA and all kernel decompositions, and compare the neighbours they preserve.

    Parameters
    ----------
    data : Data
        The rows of a file. If there are more than `MAX_ROWS`, a random sample is used.
    choice : Choice
        Kernel, bandwidth, standardisation and seed. The method is ignored.
    report : callable, optional
        Called with the progress.
    n_components : int, default=2
        Number of coordinates of each method.
    methods : sequence of str
        Keys of `TITLES`, the simplest first. PCA is omitted for shapes.

    Returns
    -------
    Result
        The recommended model, not fitted, and the page.
    """
    names = [name for name in methods if data.kind == "table" or name != LINEAR]
    weights = {name: 5.0 if name in ("kpns", "robust") else 1.0 for name in names}
    work = Work(report and (lambda fraction, task: report(fraction, TITLES[task])), **weights)
    sample = data.take(data.sample_rows(MAX_ROWS, choice.seed))
    if len(sample) < 4:
        raise InputError(f"{data.path}: a comparison needs at least four rows; got {len(sample)}.")
    if all_equal(sample):
        raise InputError(
            f"{data.path}: the rows are all equal, so there is nothing to compare. Check the "
            "columns (--columns)."
        )
    results = []
    for name in names:
        model = _model(name, sample, choice, n_components)
        with work.step(name, model):
            coordinates = np.asarray(model.fit_transform(sample.X))
        seconds = work.seconds[name]
        results.append(_evaluate(name, model, sample, coordinates, choice.seed, seconds))
    best = simplest_best(results)
    advice = recommendation(results, n_components)
    facts = {
        "n_rows": len(sample),
        "areas": {each.method: each.area for each in results},
        "best": best.method,
        "recommendation": advice,
    }
    description = f"{count(n_components, 'component')} of each method."
    if len(data) > len(sample):
        description += f" {len(sample)} of {len(data)} rows were drawn at random."
    sections = partial(_comparison_sections, sample, work, results, description, advice)
    model = _model(best.method, sample, choice, n_components)
    python = ["coordinates = model.fit_transform(data.X)"]
    return Result(model, work, facts, [advice], sections, python, {})


def simplest_best(results: Sequence[MethodResult]) -> MethodResult:
    """Return the simplest method whose area is not significantly below the largest."""
    largest = max(results, key=lambda each: each.area)
    return next(each for each in results if not each.is_worse_than(largest))


def recommendation(results: Sequence[MethodResult], n_components: int) -> str:
    """Return which method to use, and how clear the difference is."""
    best, components = simplest_best(results), count(n_components, "component")
    others = [each for each in results if each is not best]
    worse = ", ".join(f"{e.title} {e.area:.3f}" for e in others if e.is_worse_than(best))
    equal = ", ".join(e.title for e in others if not e.is_worse_than(best))
    text = (
        f"Use {best.title}: with {components} it preserves the neighbours of these "
        f"{len(best.coordinates)} rows best (area {best.area:.3f}, where 1 is perfect)."
    )
    if worse:
        text += f" Clearly worse: {worse}."
    if equal:
        text += f" Not significantly different: {equal}. The simplest method was chosen."
    if best.method == LINEAR:
        text += (
            " Either the data are nearly flat, or the kernel does not suit them. The larger "
            "the bandwidth (--sigma), the closer kernel PCA is to PCA."
        )
    if best.area < 0.3:
        text += f" All areas are small: try more than {components} (--components)."
    return text


def _comparison_sections(
    data: Data, work: Work, results: Sequence[MethodResult], description: str, advice: str
) -> list[Section]:
    """Return the sections of the page."""
    rows = []
    for each in results:
        row = [each.title, f"{each.area:.3f}", f"{np.std(each.areas, ddof=1):.3f}"]
        if each.neighbor_accuracy is not None:
            row.append(f"{each.neighbor_accuracy:.1%}")
        rows.append([*row, f"{each.seconds:.2f}"])
    header = ["method", "area", "±"]
    header += ["nearest neighbour has the same label"] * (data.labels is not None)
    title = "Methods. ±: standard deviation over random halves of the rows"
    table = Table(title, [*header, "seconds"], rows)
    areas = ", ".join(f"{each.title} area {each.area:.3f}" for each in results)
    curves = Picture.of(
        neighborhood({each.title: each.curve for each in results}, xscale="log"),
        "neighbourhoods",
        alt=f"Fraction against the size of the neighbourhood: {areas}.",
        caption="Fraction of nearest neighbours preserved by each method.",
    )
    first, *notes = opening(data, work, description)
    sections = [Section("Comparison", [first, Note(advice), *notes, table, curves])]
    for each in results:
        points = scatter(data, each.coordinates, f"Coordinates computed with {each.title}.")
        sections.append(Section(each.title, [points]))
    return sections


def _model(name: str, data: Data, choice: Choice, n_components: int) -> Any:
    if name == LINEAR:
        n_components = min(n_components, *data.X.shape)
    return make_model(replace(choice, method=name, parameters={"n_components": n_components}), data)


def _evaluate(
    name: str, model: Any, data: Data, coordinates: Floats, seed: int, seconds: float
) -> MethodResult:
    curve = neighbor_curve(model, data, coordinates)
    assert curve is not None  # there are at least four rows, not all equal
    rng = np.random.default_rng(seed)
    areas = []
    for _ in range(_N_HALVES):
        half = np.sort(rng.choice(len(data), max(4, len(data) // 2), replace=False))
        half_curve = neighbor_curve(model, data.take(half), coordinates[half])
        areas.append(np.nan if half_curve is None else neighborhood_area(half_curve))
    accuracy = None
    if data.labels is not None:
        nearest = NearestNeighbors(n_neighbors=1).fit(coordinates)
        same = data.labels[nearest.kneighbors(return_distance=False)[:, 0]] == data.labels
        accuracy = float(np.mean(same))
    return MethodResult(name, coordinates, curve, np.array(areas), accuracy, seconds)
