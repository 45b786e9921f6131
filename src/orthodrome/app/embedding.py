"""The command embed: compute coordinates of the rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._core.types import Array, Floats
from ..metrics import neighborhood_area, neighborhood_preservation
from ..plots import neighborhood, spectrum
from ..plots.report import Picture, Row, Section
from ..spaces import find_landmark_errors
from .inputs import Data
from .models import Choice, anchor_notes, last_step, make_model
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
        pictures.append(_neighbors(type(model).__name__, curve, len(data)))
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
