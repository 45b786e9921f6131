"""The commands embed and compare: coordinates of the rows, and a comparison of all methods."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import maxabs_scale, scale

from .._core.types import Array, Floats
from ..kernels import as_fitted_kernel
from ..metrics import neighborhood_area, neighborhood_preservation
from ..plots import neighborhood, spectrum
from ..plots.report import Block, Note, Picture, Row, Section, Table
from ..spaces import find_landmark_errors
from .inputs import Data, InputError
from .models import LINEAR, Choice, anchor_notes, last_step, make_kernel, make_model
from .results import (
    Report,
    Result,
    Work,
    count,
    modes_section,
    opening,
    scatter,
    size,
    table_and_model,
)

MAX_NEIGHBOR_ROWS = 1500  # all pairs of these rows are compared


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
        work.notes += anchor_notes(model, len(data))
    with work.step("neighbourhoods"):
        curve = _neighbor_curve(model, data, coordinates, choice.seed)
    if all_equal(data):
        note = f"{data.path}: all rows are equal, so the coordinates carry no information."
        work.notes.insert(0, note)
    n, q = coordinates.shape
    facts: dict[str, Any] = {"n_rows": n, "n_components": q}
    lines = [f"{count(n, data.noun)}, {count(q, 'coordinate')} (method: {choice.method})."]
    if curve is not None:
        facts["neighborhood_area"] = area = neighborhood_area(curve)
        lines.append(f"Neighbourhood score: {area:.3f} (1: all preserved, 0: random).")
    share = float(np.sum(last_step(model).explained_variance_ratio_[:q]))
    verb = "explains" if q == 1 else "explain"
    answer = f"{count(q, 'coordinate')} {verb} {share:.0%} of the variance of {size(data)}."
    names = map(str, last_step(model).get_feature_names_out())
    table: dict[str, Any] = dict(zip(names, coordinates.T.tolist(), strict=True))
    files = table_and_model("coordinates.csv", data, table, model, data)
    sections = partial(_sections, data, work, last_step(model), coordinates, curve)
    python = ["coordinates = model.fit_transform(data.X)"]
    return Result(model, work, answer, facts, lines, sections, python, files)


def _sections(
    data: Data, work: Work, model: Any, coordinates: Floats, curve: Floats | None
) -> list[Section]:
    """Return the sections of the page."""
    q, ratios = coordinates.shape[1], model.explained_variance_ratio_
    caption = f"Each point is a {data.noun}."
    points = scatter(data, coordinates, caption, ratios=ratios[:q], **_mirrored(data))
    description = f"{type(model).__name__}, {count(q, 'component')}."
    sections = [Section("Embedding", [points, *opening(data, work, description)])]
    pictures = [spectrum_picture(model)] if len(ratios) > 1 else []
    if curve is not None:
        n, n_compared = len(data), len(curve) + 1
        sample = f"Computed for a sample of {n_compared} rows." if n_compared < n else ""
        pictures.append(neighbors_picture({type(model).__name__: curve}, sample))
    if pictures:
        sections.append(Section("How much is preserved", [Row(pictures)]))
    return sections + (modes_section(data, model) if data.kind == "shapes" else [])


def _mirrored(data: Data) -> dict[str, Any]:
    """Return labels that mark mirrored specimens, if there are any and no other labels."""
    if data.kind == "table" or data.labels is not None:
        return {}
    found = data.reflected or [data.ids[i] for i in find_landmark_errors(data.X).mirrored]
    if not found:
        return {}
    name = "mirrored, reflected" if data.reflected else "mirrored"
    labels = np.where(np.isin(data.ids, found), name, "as digitised")
    return {"labels": labels, "label_name": "specimens"}


def neighbors_picture(curves: dict[str, Floats], remark: str) -> Picture:
    """Plot the fraction of neighbours that each method preserves."""
    scores = ", ".join(f"{name} {neighborhood_area(row):.3f}" for name, row in curves.items())
    return Picture.of(
        neighborhood(curves, xscale="log"),
        "neighbourhoods",
        alt=f"Fraction of neighbours preserved against the size of the neighbourhood: {scores}.",
        caption="Fraction of nearest neighbours preserved. The neighbourhood score, the area "
        f"between curve and chance (1: all, 0: random): {scores}. {remark}".strip(),
    )


def spectrum_picture(model: Any) -> Picture:
    """Plot the fraction of the variance that each component explains."""
    total = float(np.sum(model.explained_variance_ratio_))
    return Picture.of(
        spectrum(model),
        "spectrum",
        alt=f"Bars: fraction of the variance explained by each component; in total {total:.0%}.",
        caption=f"Fraction of the variance explained by each component of {type(model).__name__}, "
        "and the cumulative sum.",
    )


def _neighbor_curve(model: Any, data: Data, coordinates: Floats, seed: int) -> Floats | None:
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


#: The methods, from the simplest to the most complex, with the names shown to users.
TITLES = {
    LINEAR: "PCA",
    "kpca": "kernel PCA",
    "kpga": "kernel PGA",
    "robust": "robust kernel PCA",
    "kpns": "kernel nested spheres",
}
MAX_ROWS = 500  # more would take too long for a comparison
_MIN_DIFFERENCE = 0.01  # smaller differences of scores do not count
_N_HALVES = 10  # random halves of the rows, to estimate how much the areas vary
_N_FOLDS, _N_NEIGHBORS = 5, 5
_CRITERIA = {
    "accuracy": f"the accuracy of {_N_NEIGHBORS} nearest neighbours on held-out rows",
    "neighbourhoods": "the fraction of nearest neighbours preserved",
}


@dataclass(frozen=True)
class MethodResult:
    """The result of one method in a comparison.

    Attributes
    ----------
    method : str
        A key of `TITLES`.
    score : float
        The accuracy, or the area between the curve and chance.
    error : float
        The standard error of the score.
    coordinates : ndarray of shape (n, n_components)
        Coordinates of the compared rows.
    curve : ndarray of shape (n - 1,)
        Fraction of neighbours preserved.
    seconds : float
        Duration of the fit.
    """

    method: str
    score: float
    error: float
    coordinates: Floats
    curve: Floats
    seconds: float

    @property
    def title(self) -> str:
        """The name of the method."""
        return TITLES[self.method]


@dataclass(frozen=True)
class Comparison:
    """The scores of several methods.

    Attributes
    ----------
    criterion : {"accuracy", "neighbourhoods"}
        What the scores are.
    data : Data
        The compared rows.
    n_components : int
        Number of coordinates of each method.
    results : list of MethodResult
        The results, the simplest method first.
    """

    criterion: Literal["accuracy", "neighbourhoods"]
    data: Data
    n_components: int
    results: Sequence[MethodResult]

    @property
    def best(self) -> MethodResult:
        """The simplest method within one standard error of the best score."""
        return next(each for each in self.results if not self._is_worse(each))

    def _is_worse(self, result: MethodResult) -> bool:
        top = max(self.results, key=lambda each: each.score)
        return result.score < top.score - max(_MIN_DIFFERENCE, top.error)

    @property
    def answer(self) -> str:
        """The recommended method, in one sentence."""
        return f"Use {self.best.title} (embed --method {self.best.method})."

    def recommendation(self) -> str:
        """Return which method to use, and how clear the difference is."""
        best, components = self.best, count(self.n_components, "component")
        size = count(len(self.data), self.data.noun)
        parts = [
            f"{self.answer} Criterion: {_CRITERIA[self.criterion]}, with {components}, for {size}. "
            f"{best.title}: {best.score:.3f} ± {best.error:.3f}."
        ]
        for is_worse, verdict in (
            (False, "Within one standard error of the best score, but less simple"),
            (True, "Worse by more than one standard error"),
        ):
            others = [e for e in self.results if e is not best and self._is_worse(e) is is_worse]
            if others:
                parts.append(f"{verdict}: {', '.join(f'{e.title} {e.score:.3f}' for e in others)}.")
        if self.criterion == "neighbourhoods" and self.data.labels is not None:
            parts.append(f"The labels were not used: fewer than two classes have {_N_FOLDS} rows.")
        return " ".join(parts)

    def facts(self) -> dict[str, Any]:
        """Return the scores and the recommendation, for JSON."""
        return {
            "n_rows": len(self.data),
            "criterion": self.criterion,
            "scores": {each.method: each.score for each in self.results},
            "errors": {each.method: each.error for each in self.results},
            "best": self.best.method,
            "recommendation": self.recommendation(),
        }


def compare(
    data: Data,
    choice: Choice,
    report: Report | None = None,
    *,
    n_components: int = 2,
) -> Result:
    """Fit PCA and all kernel decompositions, and compare their coordinates.

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

    Returns
    -------
    Result
        The recommended model, not fitted, and the page.
    """
    weights = {name: 10.0 if name == "kpns" else 1.0 for name in TITLES}
    work = Work(report and (lambda fraction, task: report(fraction, TITLES[task])), **weights)
    found = compare_methods(data, choice, work, n_components=n_components)
    description = f"{count(n_components, 'component')} of each method."
    if len(data) > len(found.data):
        description += f" {len(found.data)} of {len(data)} rows were drawn at random."
    sections = partial(_comparison_sections, found, work, description)
    model = _model(found.best.method, found.data, choice, n_components)
    python = ["coordinates = model.fit_transform(data.X)"]
    lines = [found.recommendation()]
    return Result(model, work, found.answer, found.facts(), lines, sections, python, {})


def compare_methods(data: Data, choice: Choice, work: Work, *, n_components: int = 2) -> Comparison:
    """Score decompositions on at most `MAX_ROWS` rows; PCA is omitted for shapes.

    With labels, the score is the accuracy of a classifier that uses the coordinates: the methods
    and the classifier are fitted to four folds of the rows and tested on the fifth. Without labels,
    it is the area between the fraction of neighbours preserved and chance. All methods are compared
    with the same neighbours: those in the standardised table or, for shapes, those in the feature
    space of the shape kernel.
    """
    sample = data.take(data.sample_rows(MAX_ROWS, choice.seed))
    if len(sample) < 4:
        raise InputError(f"{data.path}: a comparison needs at least four rows; got {len(sample)}.")
    if all_equal(sample):
        raise InputError(
            f"{data.path}: the rows are all equal, so there is nothing to compare. Check the "
            "columns (--columns)."
        )
    folds = _folds(sample, choice.seed)
    results = []
    for name in TITLES:
        if name == LINEAR and data.kind == "shapes":
            continue
        with work.step(name):
            results.append(_evaluate(name, sample, choice, n_components, folds))
    return Comparison("accuracy" if folds else "neighbourhoods", sample, n_components, results)


def _folds(data: Data, seed: int) -> list[tuple[Array, Array]]:
    """Return training and test rows of each fold; none if there are too few labels."""
    if data.labels is None:
        return []
    sizes = np.sort(np.unique(data.labels, return_counts=True)[1])
    if len(sizes) < 2 or sizes[-2] < _N_FOLDS:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small classes are not in all folds
        folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=seed)
        return list(folds.split(data.X, data.labels))


def _model(name: str, data: Data, choice: Choice, n_components: int) -> Any:
    parameters: dict[str, Any] = {"n_components": n_components}
    if name == LINEAR:
        parameters["n_components"] = min(n_components, *data.X.shape)
    return make_model(replace(choice, method=name, parameters=parameters), data)


def _evaluate(
    name: str, data: Data, choice: Choice, n_components: int, folds: list[tuple[Array, Array]]
) -> MethodResult:
    begin = time.perf_counter()
    coordinates = np.asarray(_model(name, data, choice, n_components).fit_transform(data.X))
    seconds = time.perf_counter() - begin
    reference, kernel = _reference(data, choice)
    curve = neighborhood_preservation(reference, coordinates, kernel=kernel)
    if folds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit to all rows has warned
            q = min(n_components, *(len(train) - 1 for train, _ in folds))
            model = make_pipeline(_model(name, data, choice, q), KNeighborsClassifier(_N_NEIGHBORS))
            scores = cross_val_score(model, data.X, data.labels, cv=folds, error_score="raise")
        score, spread = float(scores.mean()), scores / np.sqrt(len(folds))
    else:
        rng, n_half = np.random.default_rng(choice.seed), max(3, len(data) // 2)
        halves = [rng.choice(len(data), n_half, replace=False) for _ in range(_N_HALVES)]
        kept = [
            neighborhood_preservation(reference[half], coordinates[half], kernel=kernel)
            for half in halves
        ]
        score, spread = neighborhood_area(curve), np.array(list(map(neighborhood_area, kept)))
    error = float(np.std(spread, ddof=1))
    return MethodResult(name, score, error, coordinates, curve, seconds)


def _reference(data: Data, choice: Choice) -> tuple[Array, Any]:
    """Return the rows whose neighbours are to be preserved, and the kernel of their distances."""
    if data.kind == "shapes":
        return data.X, as_fitted_kernel(make_kernel(choice, data), data.X)
    return scale(maxabs_scale(data.X)), None  # in two steps, so that no square overflows


def _comparison_sections(found: Comparison, work: Work, description: str) -> list[Section]:
    """Return the sections of the page."""
    data, areas = found.data, {each.title: neighborhood_area(each.curve) for each in found.results}
    rows = [
        [e.title, f"{e.score:.3f}", f"{e.error:.3f}", f"{areas[e.title]:.3f}", f"{e.seconds:.2f}"]
        for e in found.results
    ]
    header = ["method", found.criterion, "±", "area", "seconds"]
    title = f"Methods. Criterion: {_CRITERIA[found.criterion]}. ±: standard error"
    table = Table(f"{title}; area: between the curve above and chance", header, rows)
    compared = "standardised data" if data.kind == "table" else "feature space of the kernel"
    curves = neighbors_picture(
        {each.title: each.curve for each in found.results}, f"Compared with the {compared}."
    )
    first, *notes = opening(data, work, description)
    blocks: list[Block] = [curves, table, first, Note(found.recommendation()), *notes]
    sections = [Section("Comparison", blocks)]
    for each in found.results:
        points = scatter(data, each.coordinates, f"Coordinates computed with {each.title}.")
        sections.append(Section(each.title, [points]))
    return sections
