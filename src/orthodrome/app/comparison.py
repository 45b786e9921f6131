"""The command compare: compare PCA and the kernel decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ..metrics import neighborhood_area
from ..plots import neighborhood
from ..plots.report import Note, Picture, Section, Table
from .embedding import all_equal, neighbor_curve
from .inputs import Data, InputError
from .models import LINEAR, Choice, make_model
from .pages import count, opening_blocks, scatter
from .results import Report, Result, Work, sample_rows, select_rows, silent

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
    coordinates: NDArray[np.float64]
    curve: NDArray[np.float64]
    areas: NDArray[np.float64]
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
    report: Report = silent,
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
    work = Work(lambda fraction, task: report(fraction, TITLES[task]), **weights)
    sample = select_rows(data, sample_rows(len(data), MAX_ROWS, choice.seed))
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
    sections = partial(_sections, sample, work, results, description, advice)
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


def _sections(
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
    first, *notes = opening_blocks(data, work, description)
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
    name: str,
    model: Any,
    data: Data,
    coordinates: NDArray[np.float64],
    seed: int,
    seconds: float,
) -> MethodResult:
    curve = neighbor_curve(model, data, coordinates)
    assert curve is not None  # there are at least four rows, not all equal
    rng = np.random.default_rng(seed)
    areas = []
    for _ in range(_N_HALVES):
        half = np.sort(rng.choice(len(data), max(4, len(data) // 2), replace=False))
        half_curve = neighbor_curve(model, select_rows(data, half), coordinates[half])
        areas.append(np.nan if half_curve is None else neighborhood_area(half_curve))
    accuracy = None
    if data.labels is not None:
        nearest = NearestNeighbors(n_neighbors=1).fit(coordinates)
        same = data.labels[nearest.kneighbors(return_distance=False)[:, 0]] == data.labels
        accuracy = float(np.mean(same))
    return MethodResult(name, coordinates, curve, np.array(areas), accuracy, seconds)
