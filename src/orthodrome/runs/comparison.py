"""The decompositions side by side on one file of data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._core.progress import reporting
from .embedding import Quality, all_equal, drawn, quality_of
from .inputs import Data, InputError
from .models import Choice, check_scales, last_step, make_model
from .work import Work, silent

__all__ = ["LINEAR", "TITLES", "Compared", "Comparison", "compare"]

LINEAR = "pca"
TITLES = {
    LINEAR: "PCA",
    "kpca": "kernel PCA",
    "kpga": "kernel PGA",
    "kpns": "kernel nested spheres",
    "robust": "robust kernel PCA",
}
#: Areas that are nearer to each other than this are called equal.
NEAR = 0.01
#: With p = 1 and small subspheres, a chain of more points takes minutes.
MOST_POINTS = 500
#: Halves of the points on which areas are computed again, to see how much they vary.
N_HALVES = 10


@dataclass(frozen=True)
class Compared:
    """One method: its coordinates, how well they keep neighbours, and how sure that is.

    Attributes
    ----------
    method : str
        A key of `TITLES`.
    coordinates : ndarray of shape (n, n_components)
        Of the points that were compared.
    quality : Quality
        Which share of the neighbours they keep.
    areas : ndarray of shape (N_HALVES,)
        The area among random halves of the points, the same halves for every method.
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


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` has found; `data` are the rows that were compared."""

    data: Data
    choice: Choice
    n_components: int
    n_rows: int  # of the file
    methods: tuple[Compared, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]

    def model(self, method: str) -> Any:
        """The estimator of a method, not yet fitted."""
        return _made(method, self.data, self.choice, self.n_components)

    @property
    def best(self) -> Compared:
        """The largest area; among areas that are as good as equal, the simplest method."""
        top = max(self.methods, key=lambda each: each.quality.area)
        return next(each for each in self.methods if not _differs(top, each))  # the simplest first

    def recommendation(self) -> str:
        """Say in words which method to use, and how clear that is."""
        best = self.best
        rivals = [e for e in self.methods if e is not best and not _differs(best, e)]
        behind = [e for e in self.methods if e is not best and _differs(best, e)]
        q = self.n_components
        text = [
            f"Use {TITLES[best.method]}: with {q} component{'s' if q > 1 else ''} it keeps the "
            f"neighbours of these {len(self.data.X)} rows best, area {best.quality.area:.3f} of 1."
        ]
        if behind:
            each = ", ".join(f"{TITLES[e.method]} {e.quality.area:.3f}" for e in behind)
            text.append(f"Clearly behind: {each}.")
        if rivals:
            names = ", ".join(TITLES[e.method] for e in rivals)
            text.append(f"As good within what chance does: {names}; the simplest was taken.")
        if best.method == LINEAR:
            text.append(
                "The data lie nearly flat, or the kernel bends them for nothing: the larger its "
                "bandwidth (--sigma), the nearer it comes to PCA."
            )
        if best.quality.area < 0.3:
            text.append(
                f"None keeps many: {q} components are few for these data; try more (--components)."
            )
        return " ".join(text)


def _differs(best: Compared, other: Compared) -> bool:
    """Whether the areas differ by more than `NEAR`, and more than halves of the points vary."""
    gain = best.quality.area - other.quality.area
    differences = best.areas - other.areas
    return gain > NEAR and gain > 2 * float(np.std(differences, ddof=1))


def compare(
    data: Data, choice: Choice, *, n_components: int = 2, report: Any = silent
) -> Comparison:
    """Fit PCA and every decomposition of this library, and compare the neighbours they keep.

    Parameters
    ----------
    data : Data
        Points of a file; of more than `MOST_POINTS` so many are drawn.
    choice : Choice
        Kernel, bandwidth, standardisation and seed; its method is not looked at.
    n_components : int, default=2
        Number of coordinates of each.
    report : callable, optional
        Told how far the work has come.

    Returns
    -------
    comparison : Comparison
        What each method does, the best, and :meth:`Comparison.recommendation`.
    """
    names = [LINEAR] if data.kind == "table" else []
    names += ["kpca", "kpga", "kpns", "robust"]
    shares = {name: 5.0 if name in ("kpns", "robust") else 1.0 for name in names}
    work = Work(lambda fraction, task: report(fraction, TITLES[task]), **shares)
    rows = drawn(len(data.X), MOST_POINTS, choice.seed)
    part = data if len(rows) == len(data.X) else _rows_of(data, rows)
    if len(part) < 4 or all_equal(part):
        few = (
            f"{len(part)} rows, and four are least" if len(part) < 4 else "rows that are all equal"
        )
        raise InputError(f"{data.path}: there is nothing to compare in {few}.")
    methods = []
    for name in names:
        with work.part(name) as advance:
            model, coordinates = _fitted(name, part, choice, n_components, advance)
        methods.append(_compared(name, model, part, coordinates, choice, work.seconds[name]))
    return Comparison(
        part,
        choice,
        n_components,
        len(data.X),
        tuple(methods),
        tuple(work.notes),
        work.seconds,
    )


def _rows_of(data: Data, rows: NDArray[np.intp]) -> Data:
    return replace(
        data,
        X=data.X[rows],
        ids=tuple(data.ids[row] for row in rows),
        labels=None if data.labels is None else data.labels[rows],
    )


def _fitted(
    name: str, data: Data, choice: Choice, n_components: int, advance: Any
) -> tuple[Any, NDArray[np.float64]]:
    model = _made(name, data, choice, n_components)
    if name == LINEAR:
        return model, np.asarray(model.fit_transform(data.X))
    with reporting(last_step(model), advance):
        return model, np.asarray(model.fit_transform(data.X))


def _made(name: str, data: Data, choice: Choice, n_components: int) -> Any:
    if name != LINEAR:
        parameters = {"n_components": n_components}
        return make_model(replace(choice, method=name, parameters=parameters), data)
    q = min(n_components, *data.X.shape)
    if not choice.standardize:
        return PCA(q)
    check_scales(data)
    return make_pipeline(StandardScaler(), PCA(q))


def _compared(
    name: str,
    model: Any,
    data: Data,
    coordinates: NDArray[np.float64],
    choice: Choice,
    seconds: float,
) -> Compared:
    quality = quality_of(model, data, coordinates, seed=choice.seed)
    assert quality is not None  # of the rows that are compared
    rng = np.random.default_rng(choice.seed)
    areas = []
    for _ in range(N_HALVES):
        half = np.sort(rng.choice(len(data.X), max(4, len(data.X) // 2), replace=False))
        own = quality_of(model, _rows_of(data, half), coordinates[half], seed=choice.seed)
        areas.append(np.nan if own is None else own.area)
    accuracy = None if data.labels is None else _neighbor_accuracy(coordinates, data.labels)
    return Compared(name, coordinates, quality, np.array(areas), accuracy, seconds)


def _neighbor_accuracy(coordinates: NDArray[np.float64], labels: NDArray[Any]) -> float:
    nearest = NearestNeighbors(n_neighbors=1).fit(coordinates)
    return float(np.mean(labels[nearest.kneighbors(return_distance=False)[:, 0]] == labels))
