"""An embedding that can be explored in the page: a block of :mod:`orthodrome.plots.report`.

plotly.js is inside the page, once for all scatters, and no request leaves the page. The data are
JSON that is not executed, and become text by ``textContent`` or, in the labels that plotly draws,
with its tags escaped, so no name or label can inject markup. The page's policy runs only scripts
with the right hash: plotly's and scatter.js. Points are drawn as SVG, which prints sharply;
plotly's WebGL traces compile code at run time, which the policy forbids, so a sample is drawn if
there are very many points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from ._classes import is_continuous, sorted_classes
from ._extras import require
from .palette import MAIN, MARKERS, class_style
from .report import Assets

__all__ = ["MAX_POINTS", "Scatter", "require_plotly"]

MAX_POINTS = 10_000  # SVG draws and hides as many without a noticeable delay
_MAX_CLASSES = 99  # with the rest, as many as there are different pairs of colour and marker
_MAX_AXES = 10  # coordinates to choose from
_MAX_FEATURES = 4  # features in the text of a point
_NAMED = 12  # classes that the description names; the legend names all

# On a dark page black and dark brown would vanish; these take their places.
_DARK = {"#000000": "#FFFFFF", "#661100": "#A5673F"}
_REST = "#888888"  # classes that share a colour, and rows without a value
_SYMBOLS = dict(
    zip(
        MARKERS,
        (
            *("circle", "triangle-up", "square", "diamond", "triangle-down"),
            *("cross", "x", "triangle-left", "triangle-right", "pentagon"),
        ),
        strict=True,
    )
)


def require_plotly() -> Path:
    """Return the folder of plotly's package, or say how to install it."""
    module = require("plotly", "Interactive plots", "plot")
    return Path(str(module.__file__)).parent


@dataclass(frozen=True, eq=False)
class Scatter:
    """An interactive scatter of an embedding, to stand in a section of a report.

    Pointing at a point shows its row; the buttons of the legend hide and show classes; with the
    plot in focus, the left and the right key walk through the points and read them out below.
    Two coordinates are shown, and more can be chosen. Light, dark and on paper it follows the page.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        Coordinates; of more than ten columns the first ten can be chosen. A single column is
        drawn over the number of the row.
    caption : str
        The line under the plot.
    labels : array-like of shape (n_samples,), optional
        Classes, each with a colour, a marker and a button; numbers with more than 20 different
        values are shown on a colour scale. Of more than 99 classes, the rarest share one colour.
        One colour for all if absent.
    label_name : str, default="class"
        What the labels are, such as the name of their column.
    ids : sequence of str, optional
        Names of the rows; "row 1", "row 2", … if absent.
    features : array-like of shape (n_samples, n_features), optional
        The rows themselves; the first four features stand in the text of a point.
    columns : sequence of str, optional
        Names of the features, needed with them.
    details : mapping of str to array-like of shape (n_samples,), optional
        More for the text of a point, such as ``{"predicted": y_pred}``; before the features.
    axes : sequence of str, optional
        Names of the coordinates; "Component 1", "Component 2", … if absent.
    ratios : array-like of shape (n_components,), optional
        Fractions of variance (``explained_variance_ratio_``), shown with the coordinates' names.

    Notes
    -----
    Of more than 10,000 rows as many are drawn at random, at least one of each class and always the
    same ones, and the page says so. Numbers are shown to six digits. The page, of about five
    megabytes for plotly.js and what the rows take, contains every text and number that is shown.

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
    ...     features=wine.data,
    ...     columns=wine.feature_names,
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
    features: ArrayLike | None = None
    columns: Sequence[str] | None = None
    details: Mapping[str, ArrayLike] | None = None
    axes: Sequence[str] | None = None
    ratios: ArrayLike | None = None

    def __post_init__(self) -> None:
        require_plotly()
        Z = check_array(self.Z, input_name="Z", dtype=np.float64)
        n, n_columns = Z.shape
        object.__setattr__(self, "Z", Z)
        given = {"labels": self.labels, "ids": self.ids}
        given |= {f"details[{name!r}]": value for name, value in (self.details or {}).items()}
        for name, value in given.items():
            if value is not None:
                _check_length(value, n, name, "row")
        for name, value in {"axes": self.axes, "ratios": self.ratios}.items():
            if value is not None:
                _check_length(value, n_columns, name, "column")
        self._check_features(n)

    def _check_features(self, n: int) -> None:
        if (self.features is None) != (self.columns is None):
            raise ValueError("features and columns of Scatter go together: values and their names.")
        if self.features is None or self.columns is None:
            return
        shape = np.shape(self.features)
        if shape != (n, len(self.columns)):
            raise ValueError(
                f"features of Scatter must have shape ({n}, {len(self.columns)}), one row per row "
                f"of Z and one column per name in columns; got {shape}."
            )

    def alternative(self) -> str:
        """Return what the plot shows, in words."""
        names, shown = self._titles(), self._shown
        n = len(np.asarray(self.Z))
        count = f"{n:,} points" if len(shown) == n else f"{len(shown):,} of {n:,} points"
        over = f"{names[1]} over {names[0]}" if len(names) > 1 else f"{names[0]} over the rows"
        choice = f"; {len(names)} coordinates to choose from" if len(names) > 2 else ""
        return f"Scatter plot of {count}, {over}{choice}.{self._colors_in_words()}"

    def html(self) -> str:
        """Return the figure: its description and its data, of which the script makes the plot."""
        n, shown = len(np.asarray(self.Z)), self._shown
        classes = "" if self._classes is None else ", at least one of each class"
        sample = f"{len(shown):,} of the {n:,} rows are shown, drawn at random{classes}."
        note = f'<p class="note">{sample}</p>' if len(shown) < n else ""
        words = escape(self.alternative())
        return (
            f'<figure class="scatter" role="group" aria-label="Interactive scatter plot">{note}'
            f'<p class="scatter-words">{words}</p>'
            "<noscript><p>The plot itself needs JavaScript.</p></noscript>"
            f'<script type="application/json">{_json(self._payload())}</script>'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )

    def assets(self) -> Assets:
        """Return what the page needs once: the style, plotly.js and the script of the plot."""
        return Assets(
            styles=(_resource("scatter.css"),), scripts=(_plotly_script(), _resource("scatter.js"))
        )

    # ------------------------------------------------------------------ what is shown

    @cached_property
    def _classes(self) -> tuple[list[str], NDArray[np.intp]] | None:
        """Names of the classes and the class of each row; None where there are no classes."""
        if self.labels is None or is_continuous(np.asarray(self.labels)):
            return None
        return _merged_classes(np.asarray(self.labels))

    @cached_property
    def _shown(self) -> NDArray[np.intp]:
        """The rows that are drawn, in order."""
        n = len(np.asarray(self.Z))
        if n <= MAX_POINTS:
            return np.arange(n)
        order = np.random.default_rng(0).permutation(n)
        if self._classes is not None:
            first = np.unique(self._classes[1][order], return_index=True)[1]
            order = np.concatenate((order[first], np.delete(order, first)))
        return np.sort(order[:MAX_POINTS])

    def _axes(self) -> list[str]:
        """Return the names of the coordinates that can be chosen."""
        n_columns = np.asarray(self.Z).shape[1]
        if self.axes is None:
            return [f"Component {i + 1}" for i in range(min(n_columns, _MAX_AXES))]
        return [str(name) for name in self.axes[:_MAX_AXES]]

    def _titles(self) -> list[str]:
        """Return the names of the coordinates with their part of the variance, where known."""
        names = self._axes()
        if self.ratios is None:
            return names
        parts = np.asarray(self.ratios, dtype=np.float64)[: len(names)]
        return [
            f"{name} ({part:.1%} of the variance)" for name, part in zip(names, parts, strict=True)
        ]

    def _colors_in_words(self) -> str:
        if self.labels is None:
            return ""
        if self._classes is None:
            labels = np.asarray(self.labels, dtype=np.float64)[self._shown]
            low, high = np.min(labels[np.isfinite(labels)]), np.max(labels[np.isfinite(labels)])
            return f" Colour is {self.label_name}, from {low:.6g} to {high:.6g}."
        names, codes = self._classes
        counts = np.bincount(codes[self._shown], minlength=len(names))
        if len(names) > _NAMED:
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
            "details": [[str(k), _values(np.asarray(v)[shown])] for k, v in self._fields()],
            "words": self.alternative(),
            "size": round(float(np.clip(220 / np.sqrt(len(shown)), 4, 9)), 1),
            **self._groups(),
        }

    def _fields(self) -> list[tuple[str, Any]]:
        """Return names and values for the text of a point, besides its class and coordinates."""
        fields: list[tuple[str, Any]] = list((self.details or {}).items())
        if self.features is not None and self.columns is not None:
            columns = np.asarray(self.features)[:, :_MAX_FEATURES].T
            fields += zip(self.columns, columns, strict=False)  # the first few only
        return fields

    def _groups(self) -> dict[str, Any]:
        """Return the classes or the values that colour the points."""
        if self.labels is None:
            return {"groups": [_group("points", MAIN, MARKERS[0])], "codes": [0] * len(self._shown)}
        if self._classes is None:
            labels = np.asarray(self.labels, dtype=np.float64)[self._shown]
            missing = ~np.isfinite(labels)
            groups = [_group(self.label_name, MAIN, MARKERS[0])]
            groups += [_group("missing", _REST, MARKERS[6])] if missing.any() else []
            values, codes = _numbers(labels), missing.astype(int)
            return self._colored(groups, codes) | {"values": values}
        names, codes = self._classes
        groups = [_group(name, *class_style(i)) for i, name in enumerate(names[:_MAX_CLASSES])]
        groups += [_group(name, _REST, MARKERS[0]) for name in names[_MAX_CLASSES:]]
        return self._colored(groups, codes[self._shown])

    def _colored(self, groups: list[dict[str, str]], codes: NDArray[Any]) -> dict[str, Any]:
        return {"groups": groups, "codes": codes.tolist(), "label": self.label_name}


def _check_length(value: Any, n: int, name: str, per: str) -> None:
    shape = np.shape(value)
    if shape != (n,):
        raise ValueError(
            f"{name} of Scatter must have shape ({n},), one per {per} of Z; got {shape}."
        )


def _merged_classes(labels: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of classes and the class of each row, the rarest of too many as one."""
    if labels.dtype == object:  # None, strings and numbers side by side have no order
        labels = labels.astype(str)
    found, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    ordered = sorted_classes(found)
    order = np.searchsorted(found, ordered)  # a NaN is the last of both
    codes, counts = np.argsort(order)[codes], counts[order]
    names = [str(name) for name in ordered]
    if len(names) <= _MAX_CLASSES:
        return names, codes
    kept = np.sort(np.argsort(-counts, kind="stable")[:_MAX_CLASSES])
    place = np.full(len(names), _MAX_CLASSES)
    place[kept] = np.arange(_MAX_CLASSES)
    rest = f"{len(names) - _MAX_CLASSES} rarer classes"
    return [*(names[i] for i in kept), rest], place[codes]


def _group(name: str, color: str, marker: str) -> dict[str, str]:
    dark = _DARK.get(color, color)
    return {"name": name, "color": color, "dark": dark, "symbol": _SYMBOLS[marker]}


def _numbers(values: NDArray[Any]) -> list[float | None]:
    """Return numbers to six digits, with nothing where there is none: JSON has no NaN."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values.astype(float)]


def _values(values: NDArray[Any]) -> list[Any]:
    if np.issubdtype(values.dtype, np.floating):
        return list(_numbers(values))
    if np.issubdtype(values.dtype, np.integer):
        return list(values.tolist())
    return [str(value) for value in values]


def _json(payload: dict[str, Any]) -> str:
    """Return JSON that can stand inside a script element: no character of it is markup."""
    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))  # ASCII: U+2028 is escaped
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _plotly_script() -> str:
    return (require_plotly() / "package_data" / "plotly.min.js").read_text("utf-8")
