"""One embedding of one file of data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from .._core.progress import reporting
from ..metrics import neighborhood_area, neighborhood_preservation
from .inputs import Data
from .models import Choice, last_step, make_model
from .work import Work, silent

__all__ = ["Embedding", "Quality", "embed", "quality_of"]

MOST_NEIGHBORS = 1500  # rows among which neighbours are compared: all pairs of them are


@dataclass(frozen=True)
class Quality:
    """Which share of the nearest neighbours an embedding keeps.

    Attributes
    ----------
    curve : ndarray of shape (n - 1,)
        The share for neighbourhoods of 1, 2, … points.
    area : float
        The area under it, above chance, on a logarithmic scale: 1 if all are kept, 0 by chance.
    n_points : int
        How many rows were compared.
    """

    curve: NDArray[np.float64]
    area: float
    n_points: int


@dataclass(frozen=True)
class Embedding:
    """What :func:`embed` has found."""

    data: Data
    choice: Choice
    model: Any
    coordinates: NDArray[np.float64]
    names: tuple[str, ...]
    quality: Quality | None
    notes: tuple[str, ...]
    seconds: dict[str, float]


def embed(data: Data, choice: Choice, report: Any = silent) -> Embedding:
    """Fit a decomposition to data and see how well its coordinates keep neighbours.

    Parameters
    ----------
    data : Data
        Points of a file.
    choice : Choice
        Which method and kernel, and how many components (``parameters``).
    report : callable, optional
        Told how far the work has come.

    Returns
    -------
    embedding : Embedding
        The fitted model and the coordinates of the points.
    """
    work = Work(report, decomposition=8, neighbourhoods=2)
    model = make_model(choice, data)
    with work.part("decomposition") as advance, reporting(last_step(model), advance):
        coordinates = np.asarray(model.fit_transform(data.X))
    with work.part("neighbourhoods"):
        quality = quality_of(model, data, coordinates, seed=choice.seed)
    if all_equal(data):
        work.notes.insert(0, f"{data.path}: all rows are equal, so that nothing can be embedded.")
    names = tuple(map(str, last_step(model).get_feature_names_out()))
    return Embedding(
        data, choice, model, coordinates, names, quality, tuple(work.notes), work.seconds
    )


def quality_of(
    model: Any, data: Data, coordinates: NDArray[np.float64], *, seed: int = 0
) -> Quality | None:
    """How well coordinates keep the neighbours; None of fewer than four points, or equal ones.

    Neighbours of tables are those by straight distances (of columns as the model has them), those
    of shapes by the distances of the kernel.
    """
    rows = drawn(len(data.X), MOST_NEIGHBORS, seed)
    if len(rows) < 4 or all_equal(data):
        return None
    X: NDArray[Any] = data.X[rows]
    if isinstance(model, Pipeline):
        X = model[:-1].transform(X)
    kernel = last_step(model).kernel_ if data.kind == "shapes" else None
    curve = neighborhood_preservation(X, coordinates[rows], kernel=kernel)
    return Quality(curve, neighborhood_area(curve), len(rows))


def all_equal(data: Data) -> bool:
    """Whether there is but one point."""
    return bool((data.X[:1] == data.X).all())


def drawn(n: int, most: int, seed: int) -> NDArray[np.intp]:
    """All rows, or so many of them at random, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
