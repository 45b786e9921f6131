"""The command embed: coordinates of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from ..metrics import neighborhood_area, neighborhood_preservation
from ..plots import neighborhood, spectrum
from ..plots.report import Picture, Row, Section
from .inputs import Data
from .models import Choice, last_step, make_model
from .pages import count, opening, scatter, shape_modes_section
from .results import Report, Result, Work, drawn, silent

MOST_NEIGHBORS = 1500  # rows whose neighbours are compared: all pairs of them


@dataclass(frozen=True)
class Quality:
    """The fraction of nearest neighbours that an embedding preserves.

    Attributes
    ----------
    curve : ndarray of shape (n - 1,)
        The fraction for neighbourhoods of 1, 2, … points.
    area : float
        The area under it, above chance, on a logarithmic scale: 1 if all are kept, 0 by chance.
    n_points : int
        How many rows were compared.
    """

    curve: NDArray[np.float64]
    area: float
    n_points: int


@dataclass(frozen=True)
class Embedding(Result):
    """The result of :func:`embed`."""

    file = "coordinates.csv"

    coordinates: NDArray[np.float64]
    quality: Quality | None

    def columns(self) -> dict[str, Iterable[Any]]:
        """Return the coordinates."""
        names = map(str, last_step(self.model).get_feature_names_out())
        return dict(zip(names, self.coordinates.T.tolist(), strict=True))

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return facts for JSON, and lines for people."""
        n, q = self.coordinates.shape
        facts: dict[str, Any] = {"n_rows": n, "n_components": q}
        lines = [f"{count(n, 'row')}, {count(q, 'coordinate')} by {self.choice.method}."]
        if self.quality is not None:
            facts["neighborhood_area"] = self.quality.area
            lines.append(f"Neighbours preserved: area {self.quality.area:.3f} (1 all, 0 chance).")
        return facts, lines

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        model = last_step(self.model)
        ratios = model.explained_variance_ratio_[: self.coordinates.shape[1]]
        caption = "Every point is a row of the file."
        points = scatter(self.data, self.coordinates, caption, ratios=ratios)
        described = f"{type(model).__name__}, {count(self.coordinates.shape[1], 'component')}."
        sections = [Section("Embedding", [*opening(self, described), points])]
        pictures = [spectrum_picture(model)] if len(model.explained_variance_ratio_) > 1 else []
        if self.quality is not None:
            pictures.append(self._neighbors(self.quality))
        if pictures:
            sections.append(Section("How much is preserved", [Row(pictures)]))
        return sections + (shape_modes_section(model) if self.data.kind == "shapes" else [])

    def _neighbors(self, quality: Quality) -> Picture:
        sample = f" For a sample of {quality.n_points} rows."
        return Picture.of(
            neighborhood({type(last_step(self.model)).__name__: quality.curve}, xscale="log"),
            "neighbourhoods",
            alt="A curve over the size of the neighbourhood; the area under it is "
            f"{quality.area:.3f}.",
            caption="Fraction of nearest neighbours preserved; area above chance "
            f"{quality.area:.3f}, where 1 is all."
            + (sample if quality.n_points < len(self.data) else ""),
        )


def spectrum_picture(model: Any) -> Picture:
    """Draw how much of the variance each component explains."""
    share = float(np.sum(model.explained_variance_ratio_))
    return Picture.of(
        spectrum(model),
        "spectrum",
        alt=f"Bars: the fraction of variance of each component; together they explain {share:.0%}.",
        caption="The fraction of the variance that each component explains, and their sum.",
    )


def embed(data: Data, choice: Choice, report: Report = silent) -> Embedding:
    """Fit a decomposition to data, and compare neighbours before and after it.

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
    Embedding
        The fitted model and the coordinates of the rows.
    """
    work = Work(report, decomposition=8, neighbourhoods=2)
    model = make_model(choice, data)
    with work.part("decomposition", model):
        coordinates = np.asarray(model.fit_transform(data.X))
    with work.part("neighbourhoods"):
        quality = quality_of(model, data, coordinates, seed=choice.seed)
    if all_equal(data):
        work.notes.insert(0, f"{data.path}: all rows are equal, so nothing can be embedded.")
    return Embedding(data, choice, model, tuple(work.notes), work.seconds, coordinates, quality)


def quality_of(
    model: Any, data: Data, coordinates: NDArray[np.float64], *, seed: int = 0
) -> Quality | None:
    """Compare neighbours; return None for fewer than four points, or equal ones.

    Neighbours in tables are those by Euclidean distance (of columns as the model gets them), those
    of shapes by the distance of the kernel.
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
    """Return whether all rows are equal."""
    return bool((data.X[:1] == data.X).all())
