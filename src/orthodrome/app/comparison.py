"""The command compare: PCA and the decompositions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from ..plots import neighborhood
from ..plots.report import Note, Picture, Section, Table
from .embedding import Quality, all_equal, quality_of
from .inputs import Data, InputError
from .models import LINEAR, Choice, make_model
from .pages import count, opening, scatter
from .results import Report, Result, Work, drawn, rows_of, silent

TITLES = {
    LINEAR: "PCA",
    "kpca": "kernel PCA",
    "kpga": "kernel PGA",
    "kpns": "kernel nested spheres",
    "robust": "robust kernel PCA",
}
_NEAR = 0.01  # areas that differ by less are called equal
MOST_POINTS = 500  # nested spheres of more points take minutes
_N_HALVES = 10  # random halves of the points, to see how much areas vary


@dataclass(frozen=True)
class Compared:
    """One method of a comparison.

    Attributes
    ----------
    method : str
        A key of `TITLES`.
    coordinates : ndarray of shape (n, n_components)
        Of the points that were compared.
    quality : Quality
        The fraction of neighbours that they preserve.
    areas : ndarray of shape (n_halves,)
        The area for random halves of the points, the same halves for every method.
    neighbor_accuracy : float or None
        How often the nearest neighbour in these coordinates has the same label.
    seconds : float
        Time of the fit.
    """

    method: str
    coordinates: NDArray[np.float64]
    quality: Quality
    areas: NDArray[np.float64]
    neighbor_accuracy: float | None
    seconds: float

    def is_beaten_by(self, best: Compared) -> bool:
        """Return whether the areas differ by more than `_NEAR`, and by more than chance."""
        gain = best.quality.area - self.quality.area
        return gain > _NEAR and gain > 2 * float(np.std(best.areas - self.areas, ddof=1))


@dataclass(frozen=True)
class Comparison(Result):
    """The result of :func:`compare`; `data` are the rows that were compared."""

    n_components: int
    n_rows: int  # of the file
    methods: tuple[Compared, ...]

    @property
    def best(self) -> Compared:
        """The largest area; among areas that do not differ significantly, the simplest method."""
        top = max(self.methods, key=lambda each: each.quality.area)
        return next(each for each in self.methods if not each.is_beaten_by(top))

    def recommendation(self) -> str:
        """Return which method to use, and how clear that is."""
        best, components = self.best, count(self.n_components, "component")
        others = [each for each in self.methods if each is not best]
        behind = [each for each in others if each.is_beaten_by(best)]
        equal = ", ".join(TITLES[each.method] for each in others if each not in behind)
        text = (
            f"Use {TITLES[best.method]}: with {components} it preserves the neighbours of these "
            f"{len(self.data.X)} rows best, area {best.quality.area:.3f} of 1."
        )
        if behind:
            worse = ", ".join(f"{TITLES[e.method]} {e.quality.area:.3f}" for e in behind)
            text += f" Clearly worse: {worse}."
        if equal:
            text += f" Not significantly different: {equal}; the simplest was chosen."
        if best.method == LINEAR:
            text += (
                " The data are nearly flat, or the kernel does not help: the larger its bandwidth "
                "(--sigma), the closer it is to PCA."
            )
        if best.quality.area < 0.3:
            text += f" No method preserves many; try more than {components} (--components)."
        return text

    def files(self) -> dict[str, bytes]:
        """Return no files: there is only the page."""
        return {}

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return facts for JSON, and lines for people."""
        words = self.recommendation()
        facts = {
            "n_rows": len(self.data),
            "areas": {each.method: each.quality.area for each in self.methods},
            "best": self.best.method,
            "recommendation": words,
        }
        return facts, [words]

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        described = f"{count(self.n_components, 'component')} of each method."
        if self.n_rows > len(self.data):
            described += f" {len(self.data)} of {self.n_rows} rows were drawn at random."
        first, *notes = opening(self, described)
        blocks = [first, Note(self.recommendation()), *notes, self._table(), self._curves()]
        sections = [Section("Comparison", blocks)]
        for each in self.methods:
            title = TITLES[each.method]
            points = scatter(self.data, each.coordinates, f"{title} of the same rows.")
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
        title = "Methods; ±: the standard deviation over random halves"
        return Table(title, [*header, "seconds"], rows)

    def _curves(self) -> Picture:
        areas = (f"{TITLES[m.method]} area {m.quality.area:.3f}" for m in self.methods)
        curves = {TITLES[each.method]: each.quality.curve for each in self.methods}
        return Picture.of(
            neighborhood(curves, xscale="log"),
            "neighbourhoods",
            alt=f"Curves over the size of the neighbourhood: {', '.join(areas)}.",
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
    """Fit PCA and every decomposition of this library, and compare the neighbours they preserve.

    Parameters
    ----------
    data : Data
        The rows of a file; of more than `MOST_POINTS`, a sample is drawn.
    choice : Choice
        Kernel, bandwidth, standardisation and seed; its method is not used.
    report : callable, optional
        Called with the progress.
    n_components : int, default=2
        Number of coordinates of each method.
    methods : sequence of str
        Keys of `TITLES`, the simplest first; PCA is left out for shapes.

    Returns
    -------
    Comparison
        Every method, the best, and :meth:`Comparison.recommendation`.
    """
    names = [name for name in methods if data.kind == "table" or name != LINEAR]
    shares = {name: 5.0 if name in ("kpns", "robust") else 1.0 for name in names}
    work = Work(lambda fraction, task: report(fraction, TITLES[task]), **shares)
    part = rows_of(data, drawn(len(data), MOST_POINTS, choice.seed))
    if len(part) < 4:
        raise InputError(f"{data.path}: a comparison needs at least four rows; got {len(part)}.")
    if all_equal(part):
        raise InputError(f"{data.path}: there is nothing to compare, the rows are all equal.")
    compared = []
    for name in names:
        model = _model(name, part, choice, n_components)
        with work.part(name, model):
            coordinates = np.asarray(model.fit_transform(part.X))
        compared.append(_compared(name, model, part, coordinates, choice.seed, work.seconds[name]))
    found = Comparison(
        *(part, choice, None, tuple(work.notes), work.seconds),
        n_components,
        len(data),
        tuple(compared),
    )
    return replace(found, model=_model(found.best.method, part, choice, n_components))


def _model(name: str, data: Data, choice: Choice, n_components: int) -> Any:
    number = min(n_components, *data.X.shape) if name == LINEAR else n_components
    return make_model(replace(choice, method=name, parameters={"n_components": number}), data)


def _compared(
    name: str,
    model: Any,
    data: Data,
    coordinates: NDArray[np.float64],
    seed: int,
    seconds: float,
) -> Compared:
    quality = quality_of(model, data, coordinates, seed=seed)
    assert quality is not None  # there are at least four rows, not all equal
    rng = np.random.default_rng(seed)
    areas = []
    for _ in range(_N_HALVES):
        half = np.sort(rng.choice(len(data), max(4, len(data) // 2), replace=False))
        own = quality_of(model, rows_of(data, half), coordinates[half], seed=seed)
        areas.append(np.nan if own is None else own.area)
    accuracy = None
    if data.labels is not None:
        nearest = NearestNeighbors(n_neighbors=1).fit(coordinates)
        same = data.labels[nearest.kneighbors(return_distance=False)[:, 0]] == data.labels
        accuracy = float(np.mean(same))
    return Compared(name, coordinates, quality, np.array(areas), accuracy, seconds)
