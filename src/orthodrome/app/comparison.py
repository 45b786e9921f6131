"""The command compare: compare PCA and the kernel decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ..plots import neighborhood
from ..plots.report import Note, Picture, Section, Table
from .embedding import Quality, all_equal, neighbor_quality
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
    quality : Quality
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
    quality: Quality
    areas: NDArray[np.float64]
    neighbor_accuracy: float | None
    seconds: float

    def is_worse_than(self, best: MethodResult) -> bool:
        """Return whether `best` has a larger area, by more than two standard deviations."""
        gain = best.quality.area - self.quality.area
        return gain > _MIN_DIFFERENCE and gain > 2 * float(np.std(best.areas - self.areas, ddof=1))


@dataclass(frozen=True)
class Comparison(Result):
    """The result of :func:`compare`. `data` has the compared rows only."""

    n_components: int
    n_rows: int  # number of rows in the file
    methods: tuple[MethodResult, ...]

    @property
    def best(self) -> MethodResult:
        """The simplest method whose area is not significantly below the largest."""
        largest = max(self.methods, key=lambda each: each.quality.area)
        return next(each for each in self.methods if not each.is_worse_than(largest))

    def recommendation(self) -> str:
        """Return which method to use, and how clear the difference is."""
        best, components = self.best, count(self.n_components, "component")
        others = [each for each in self.methods if each is not best]
        worse = [each for each in others if each.is_worse_than(best)]
        equal = ", ".join(TITLES[each.method] for each in others if each not in worse)
        text = (
            f"Use {TITLES[best.method]}: with {components} it preserves the neighbours of these "
            f"{len(self.data.X)} rows best (area {best.quality.area:.3f}, where 1 is perfect)."
        )
        if worse:
            areas = ", ".join(f"{TITLES[e.method]} {e.quality.area:.3f}" for e in worse)
            text += f" Clearly worse: {areas}."
        if equal:
            text += f" Not significantly different: {equal}. The simplest method was chosen."
        if best.method == LINEAR:
            text += (
                " Either the data are nearly flat, or the kernel does not suit them. The larger "
                "the bandwidth (--sigma), the closer kernel PCA is to PCA."
            )
        if best.quality.area < 0.3:
            text += f" All areas are small: try more than {components} (--components)."
        return text

    def files(self) -> dict[str, bytes]:
        """Return no files; only the page is written."""
        return {}

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return the summary as a dict for JSON and as lines of text."""
        recommendation = self.recommendation()
        facts = {
            "n_rows": len(self.data),
            "areas": {each.method: each.quality.area for each in self.methods},
            "best": self.best.method,
            "recommendation": recommendation,
        }
        return facts, [recommendation]

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        description = f"{count(self.n_components, 'component')} of each method."
        if self.n_rows > len(self.data):
            description += f" {len(self.data)} of {self.n_rows} rows were drawn at random."
        first, *notes = opening_blocks(self, description)
        blocks = [first, Note(self.recommendation()), *notes, self._table(), self._curves()]
        sections = [Section("Comparison", blocks)]
        for each in self.methods:
            title = TITLES[each.method]
            points = scatter(self.data, each.coordinates, f"Coordinates computed with {title}.")
            sections.append(Section(title, [points]))
        return sections

    def _table(self) -> Table:
        rows = []
        for each in self.methods:
            spread = float(np.std(each.areas, ddof=1))
            row = [TITLES[each.method], f"{each.quality.area:.3f}", f"{spread:.3f}"]
            if each.neighbor_accuracy is not None:
                row.append(f"{each.neighbor_accuracy:.1%}")
            rows.append([*row, f"{each.seconds:.2f}"])
        header = ["method", "area", "±"]
        header += ["nearest neighbour has the same label"] * (self.data.labels is not None)
        title = "Methods. ±: standard deviation over random halves of the rows"
        return Table(title, [*header, "seconds"], rows)

    def _curves(self) -> Picture:
        areas = (f"{TITLES[m.method]} area {m.quality.area:.3f}" for m in self.methods)
        curves = {TITLES[each.method]: each.quality.curve for each in self.methods}
        return Picture.of(
            neighborhood(curves, xscale="log"),
            "neighbourhoods",
            alt=f"Fraction against the size of the neighbourhood: {', '.join(areas)}.",
            caption="Fraction of nearest neighbours preserved by each method.",
        )


def compare(
    data: Data,
    choice: Choice,
    report: Report = silent,
    *,
    n_components: int = 2,
    methods: Sequence[str] = tuple(TITLES),
) -> Comparison:
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
    Comparison
        The result of every method, and a recommendation.
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
    found = Comparison(
        *(sample, choice, None, tuple(work.notes), work.seconds),
        n_components,
        len(data),
        tuple(results),
    )
    return replace(found, model=_model(found.best.method, sample, choice, n_components))


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
    quality = neighbor_quality(model, data, coordinates, seed=seed)
    assert quality is not None  # there are at least four rows, not all equal
    rng = np.random.default_rng(seed)
    areas = []
    for _ in range(_N_HALVES):
        half = np.sort(rng.choice(len(data), max(4, len(data) // 2), replace=False))
        rows, points = select_rows(data, half), coordinates[half]
        half_quality = neighbor_quality(model, rows, points, seed=seed)
        areas.append(np.nan if half_quality is None else half_quality.area)
    accuracy = None
    if data.labels is not None:
        nearest = NearestNeighbors(n_neighbors=1).fit(coordinates)
        same = data.labels[nearest.kneighbors(return_distance=False)[:, 0]] == data.labels
        accuracy = float(np.mean(same))
    return MethodResult(name, coordinates, quality, np.array(areas), accuracy, seconds)
