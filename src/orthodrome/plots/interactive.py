"""Interactive scatter plot of an embedding, a block of :mod:`orthodrome.plots.report`.

The page makes no requests. The data are JSON, which is not executed, and are shown with
``textContent``, so no name or label can inject markup. The content security policy of the page
allows only scripts with known hashes, such as scatter.js. Points are SVG, which prints sharply. If
there are very many points, only a sample is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from .._core.types import Array
from ._classes import MAIN, MARKERS, class_style, sortable, sorted_classes
from .report import Assets, resource

__all__ = ["MAX_POINTS", "Scatter"]

MAX_POINTS = 10_000  # more SVG points would cause noticeable delays in browsers
_MAX_NUMBERS = 100_000  # of all points together; about one megabyte
_MAX_CLASSES = 99  # one of the 100 pairs of colour and marker is for merged classes
_MAX_AXES = 10  # maximum number of coordinates to choose from
_MAX_NAMED = 12  # maximum number of classes in the description; the legend lists all

# Replacements for black and dark brown on a dark page.
_DARK = {"#000000": "#FFFFFF", "#661100": "#A5673F"}
_REST = "#888888"  # merged classes


@dataclass(frozen=True, eq=False)
class Scatter:
    """Interactive scatter plot of an embedding, for a section of a report.

    Hovering over a point shows its row. The buttons of the legend hide and show classes. Dragging
    moves the plot. Buttons and two fingers zoom. When the plot has the focus, the mouse wheel also
    zooms, and the left and right arrow keys move through the points. Other coordinates can be
    chosen. The plot follows the page's light, dark or print style.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        Coordinates; the first ten columns can be chosen. A single column is drawn over the row
        number.
    caption : str
        Caption below the plot.
    labels : array-like of shape (n_samples,), optional
        Classes, each with a colour, a marker and a button. Beyond 99 classes, the rarest are
        merged.
    label_name : str, default="class"
        Meaning of the labels, such as the name of their column.
    ids : sequence of str, optional
        Names of the rows; "row 1", "row 2", … if absent.
    details : mapping of str to array-like of shape (n_samples,), optional
        Additional values for the text of a point, such as ``{"predicted": y_pred}``.
    ratios : array-like of shape (n_components,), optional
        Fractions of variance (``explained_variance_ratio_``), shown with the coordinates' names.

    Notes
    -----
    If there are more than 10,000 rows, a random sample of that size is drawn, with at least one row
    of each class. The sample is smaller if coordinates and details together are more than ten
    numbers per point. The seed is fixed, and the page mentions the sample. Numbers have six digits.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from orthodrome import KernelPCA
    >>> from orthodrome.plots.interactive import Scatter
    >>> from orthodrome.plots.report import Section, render_report
    >>> wine = load_wine()
    >>> Z = KernelPCA(3).fit_transform(wine.data / wine.data.std(axis=0))
    >>> scatter = Scatter(
    ...     Z,
    ...     "Kernel PCA of the wines.",
    ...     labels=wine.target_names[wine.target],
    ...     label_name="cultivar",
    ...     details={"alcohol": wine.data[:, 0]},
    ... )
    >>> scatter.alternative().split(". ")[0]
    'Scatter plot of 178 points, Component 2 over Component 1; 3 coordinates to choose from'
    >>> page = render_report("Wine", [Section("Embedding", [scatter])])
    """

    Z: ArrayLike
    caption: str
    labels: ArrayLike | None = None
    label_name: str = "class"
    ids: Sequence[str] | None = None
    details: Mapping[str, ArrayLike] = field(default_factory=dict)
    ratios: ArrayLike | None = None

    def __post_init__(self) -> None:
        Z = check_array(self.Z, input_name="Z", dtype=np.float64)
        object.__setattr__(self, "Z", Z)
        details = {f"details[{name!r}]": value for name, value in self.details.items()}
        for name, value in {"labels": self.labels, "ids": self.ids, **details}.items():
            _check_length(value, name, Z.shape[0], "row")
        _check_length(self.ratios, "ratios", Z.shape[1], "column")

    def alternative(self) -> str:
        """Return a description of the plot."""
        names, shown = self._titles(), self._shown
        n = len(np.asarray(self.Z))
        count = f"{n:,} points" if len(shown) == n else f"{len(shown):,} of {n:,} points"
        over = f"{names[1]} over {names[0]}" if len(names) > 1 else f"{names[0]} over the rows"
        choice = f"; {len(names)} coordinates to choose from" if len(names) > 2 else ""
        return f"Scatter plot of {count}, {over}{choice}.{self._describe_colors()}"

    def html(self) -> str:
        """Return the figure: its description, and its data for the script that draws the plot."""
        n, shown = len(np.asarray(self.Z)), self._shown
        classes = "" if self._classes is None else ", at least one of each class"
        sample = f"{len(shown):,} of the {n:,} rows are shown, drawn at random{classes}."
        note = f'<p class="note">{sample}</p>' if len(shown) < n else ""
        return (
            f'<figure class="scatter" role="group" aria-label="Interactive scatter plot">{note}'
            f'<p class="scatter-words">{escape(self.alternative())}</p>'
            "<noscript><p>The plot itself needs JavaScript.</p></noscript>"
            f'<script type="application/json">{_json(self._payload())}</script>'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )

    def assets(self) -> Assets:
        """Return the style sheet and the script of the plot."""
        return [resource("scatter.css")], [resource("scatter.js"), resource("figures.js")]

    # ------------------------------------------------------------------ contents

    @cached_property
    def _classes(self) -> tuple[list[str], NDArray[np.intp]] | None:
        """Names of the classes and the class of each row; None if there are no classes."""
        return None if self.labels is None else _merged_classes(np.asarray(self.labels))

    @cached_property
    def _shown(self) -> NDArray[np.intp]:
        """Indices of the drawn rows, ascending."""
        n = len(np.asarray(self.Z))
        most = min(MAX_POINTS, _MAX_NUMBERS // (len(self._axes()) + len(self.details)))
        if n <= most:
            return np.arange(n)
        order = np.random.default_rng(0).permutation(n)
        if self._classes is not None:
            first = np.unique(self._classes[1][order], return_index=True)[1]
            order = np.concatenate((order[first], np.delete(order, first)))
        return np.sort(order[:most])

    def _axes(self) -> list[str]:
        """Return the names of the coordinates that can be chosen."""
        n_columns = np.asarray(self.Z).shape[1]
        return [f"Component {i + 1}" for i in range(min(n_columns, _MAX_AXES))]

    def _titles(self) -> list[str]:
        """Return the names of the coordinates with their fractions of variance, if given."""
        if self.ratios is None:
            return self._axes()
        pairs = zip(self._axes(), np.asarray(self.ratios, dtype=np.float64), strict=False)
        return [f"{name} ({ratio:.1%} of the variance)" for name, ratio in pairs]

    def _describe_colors(self) -> str:
        if self._classes is None:
            return ""
        names, codes = self._classes
        counts = np.bincount(codes[self._shown], minlength=len(names))
        if len(names) > _MAX_NAMED:
            sizes = f"{counts.min():,} to {counts.max():,} points"
            return f" {len(names)} classes by {self.label_name}, of {sizes}."
        listed = ", ".join(f"{name} ({count})" for name, count in zip(names, counts, strict=True))
        return f" Classes by {self.label_name}: {listed}."

    def _payload(self) -> dict[str, Any]:
        shown = self._shown
        Z, names, titles = np.asarray(self.Z)[shown], self._axes(), self._titles()
        coordinates = [_numbers(Z[:, i]) for i in range(len(names))]
        if len(names) == 1:
            names, titles = ["Row", *names], ["Row", *titles]
            coordinates = [(shown + 1).tolist(), *coordinates]
        ids = [f"row {i + 1}" for i in shown] if self.ids is None else [self.ids[i] for i in shown]
        return {
            "axes": names,
            "titles": titles,
            "coordinates": coordinates,
            "ids": [str(name) for name in ids],
            "details": [[str(k), _column(np.asarray(v)[shown])] for k, v in self.details.items()],
            "words": self.alternative(),
            "size": round(float(np.clip(220 / np.sqrt(len(shown)), 4, 9)), 1),
            **self._groups(),
        }

    def _groups(self) -> dict[str, Any]:
        """Return the classes that colour the points."""
        if self._classes is None:
            return {"groups": [_group("points", MAIN, MARKERS[0])], "codes": [0] * len(self._shown)}
        names, codes = self._classes
        groups = [_group(name, *class_style(i)) for i, name in enumerate(names[:_MAX_CLASSES])]
        groups += [_group(name, _REST, MARKERS[0]) for name in names[_MAX_CLASSES:]]
        return {"groups": groups, "codes": codes[self._shown].tolist(), "label": self.label_name}


def _check_length(value: ArrayLike | Sequence[str] | None, name: str, n: int, per: str) -> None:
    if value is not None and np.shape(value) != (n,):
        raise ValueError(
            f"{name} of Scatter must have shape ({n},), one per {per} of Z; got {np.shape(value)}."
        )


def _merged_classes(labels: Array) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of classes and the class of each row; merge the rarest classes."""
    labels = sortable(labels)
    found, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    ordered = sorted_classes(found)
    order = np.searchsorted(found, ordered)  # NaN is last in both
    codes, counts = np.argsort(order)[codes], counts[order]
    names = [str(name) for name in ordered]
    if len(names) <= _MAX_CLASSES:
        return names, codes
    kept = np.sort(np.argsort(-counts, kind="stable")[:_MAX_CLASSES])
    new_codes = np.full(len(names), _MAX_CLASSES)
    new_codes[kept] = np.arange(_MAX_CLASSES)
    rest = f"{len(names) - _MAX_CLASSES} rarer classes"
    return [*(names[i] for i in kept), rest], new_codes[codes]


def _group(name: str, color: str, marker: str) -> dict[str, str]:
    dark = _DARK.get(color, color)
    return {"name": name, "color": color, "dark": dark, "marker": marker}


def _numbers(values: Array) -> list[float | None]:
    """Return numbers with six digits, and None for NaN and infinity, which JSON lacks."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.astype(float)]


def _column(values: Array) -> list[Any]:
    """Return a column of details as numbers or strings for JSON."""
    if np.issubdtype(values.dtype, np.floating):
        return list(_numbers(values))
    is_integer = np.issubdtype(values.dtype, np.integer)
    return [int(value) if is_integer else str(value) for value in values]


def _json(payload: dict[str, Any]) -> str:
    """Return JSON for a script element, with markup characters escaped."""
    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))  # ASCII: U+2028 is escaped
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
