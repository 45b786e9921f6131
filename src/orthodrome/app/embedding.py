"""The command embed: compute coordinates of the rows."""

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
from .pages import count, opening_blocks, scatter, shape_modes_section
from .results import Report, Result, Work, sample_rows, silent

MAX_NEIGHBOR_ROWS = 1500  # all pairs of these rows are compared


@dataclass(frozen=True)
class Quality:
    """The fraction of nearest neighbours that an embedding preserves.

    Attributes
    ----------
    curve : ndarray of shape (n - 1,)
        The fraction for neighbourhoods of 1, 2, … points.
    area : float
        Neighbourhood score: the area between the curve and chance, on a logarithmic axis. It is 1
        if all neighbours are preserved, and 0 for a random embedding.
    n_points : int
        Number of rows compared.
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
        """Return the summary as a dict for JSON and as lines of text."""
        n, q = self.coordinates.shape
        facts: dict[str, Any] = {"n_rows": n, "n_components": q}
        method = self.choice.method
        lines = [f"{count(n, 'row')}, {count(q, 'coordinate')} (method: {method})."]
        if self.quality is not None:
            facts["neighborhood_area"] = self.quality.area
            lines.append(
                f"Neighbourhood score: {self.quality.area:.3f} (1: all preserved, 0: random)."
            )
        return facts, lines

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        model = last_step(self.model)
        ratios = model.explained_variance_ratio_[: self.coordinates.shape[1]]
        caption = "Each point is a row of the file."
        points = scatter(self.data, self.coordinates, caption, ratios=ratios)
        description = f"{type(model).__name__}, {count(self.coordinates.shape[1], 'component')}."
        sections = [Section("Embedding", [*opening_blocks(self, description), points])]
        pictures = [spectrum_picture(model)] if len(model.explained_variance_ratio_) > 1 else []
        if self.quality is not None:
            pictures.append(self._neighbors(self.quality))
        if pictures:
            sections.append(Section("How much is preserved", [Row(pictures)]))
        return sections + (shape_modes_section(model) if self.data.kind == "shapes" else [])

    def _neighbors(self, quality: Quality) -> Picture:
        sample = f" Computed for a sample of {quality.n_points} rows."
        return Picture.of(
            neighborhood({type(last_step(self.model)).__name__: quality.curve}, xscale="log"),
            "neighbourhoods",
            alt="Fraction of neighbours preserved against the size of the neighbourhood; score "
            f"{quality.area:.3f}.",
            caption="Fraction of nearest neighbours preserved. The neighbourhood score, "
            f"the area between curve and chance, is {quality.area:.3f} (1: all, 0: random)."
            + (sample if quality.n_points < len(self.data) else ""),
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


def embed(data: Data, choice: Choice, report: Report = silent) -> Embedding:
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
    Embedding
        The fitted model and the coordinates of the rows.
    """
    work = Work(report, decomposition=8, neighbourhoods=2)
    model = make_model(choice, data)
    with work.step("decomposition", model):
        coordinates = np.asarray(model.fit_transform(data.X))
    with work.step("neighbourhoods"):
        quality = neighbor_quality(model, data, coordinates, seed=choice.seed)
    if all_equal(data):
        note = f"{data.path}: all rows are equal, so the coordinates carry no information."
        work.notes.insert(0, note)
    return Embedding(data, choice, model, tuple(work.notes), work.seconds, coordinates, quality)


def neighbor_quality(
    model: Any, data: Data, coordinates: NDArray[np.float64], *, seed: int = 0
) -> Quality | None:
    """Measure how well neighbours are preserved, or return None.

    It is None if there are fewer than four rows, or all rows are equal.

    For tables the distance is Euclidean, after any standardisation; for shapes it is the distance
    of the kernel.
    """
    rows = sample_rows(len(data.X), MAX_NEIGHBOR_ROWS, seed)
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
