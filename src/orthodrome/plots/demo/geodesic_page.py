"""The demonstration's sections on kernel PCA against kernel PGA; every number is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...sphere import exp_at_pole
from ..embedding import embedding
from ..neighborhoods import neighborhood
from ..report import Note, Picture, Row, Section, Table, Text
from ..spectrum import spectrum
from ..sphere import sphere
from .geodesic import METHODS, Comparison, Directions, Geodesic
from .studies import Settings, Studies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["directions_section", "real_data_section"]

_FLAT, _CURVED, _GEODESIC = METHODS
_TITLES = {_FLAT: "Kernel PCA", _CURVED: "Kernel PGA"}
_SCALE_TITLE = "degrees from the mean"
_LITTLE = 0.01  # a gain in area that nobody sees in a picture


# ---------------------------------------------------------------------- directions


def directions_section(study: Directions, settings: Settings) -> Section:
    """Return the section on simulated directions, where the right answer is known."""
    comparison = study.comparison
    models = {_FLAT: comparison.flat, _CURVED: comparison.curved.model}
    counts = {method: int(model.n_components_) for method, model in models.items()}
    return Section(
        "Directions: kernel PCA against kernel PGA, side by side",
        [
            Text(
                "A kernel with k(x, x) = 1 puts all data on a sphere. Kernel PCA measures straight "
                "through that sphere; kernel PGA (principal geodesic analysis) measures along it, "
                "from the mean on the sphere (the Karcher mean). Where that matters most: "
                f"{settings.directions} directions, unit vectors in R^{settings.dimensions}, from "
                "a von Mises-Fisher law of concentration "
                f"{settings.concentration:g} on a two-dimensional sphere, so widely spread. With "
                "the linear kernel they stay what they are, and the right answer is known: two "
                "dimensions."
            ),
            Row([_directions_scatter(method, model, study) for method, model in models.items()]),
            Row([_directions_spectrum(method, model) for method, model in models.items()]),
            Text(
                f"Kernel PCA finds {counts[_FLAT]} components with a variance above zero, kernel "
                f"PGA {counts[_CURVED]}. A sphere of two dimensions fills three of flat space; "
                f"dropping the last of them drops "
                f"{comparison.flat.explained_variance_ratio_[2:].sum():.0%} of the variance."
            ),
            Row(
                [
                    _directions_sphere(study),
                    _curves(comparison, 2, "directions", "Directions, 2 components"),
                ]
            ),
            _area_table([("directions", 2, comparison)]),
            Text(_directions_words(comparison)),
            Note(_far_words(study)),
        ],
    )


def _directions_scatter(method: str, model: Any, study: Directions) -> Picture:
    figure = embedding(
        model.embedding_,
        study.comparison.angles,
        ratios=model.explained_variance_ratio_,
        title=_TITLES[method],
        legend_title=_SCALE_TITLE,
    )
    figure.axes[0].set_aspect("equal", adjustable="datalim")  # distances are what is compared
    said = {_FLAT: "looks straight through the sphere", _CURVED: "unrolls it around its mean"}
    return Picture.of(
        figure,
        f"directions-embedding-{_slug(method)}",
        alt=f"Scatter plot of {len(study.X)} directions, {method}, the first two components, "
        "coloured by the distance from the mean in degrees.",
        caption=f"{_TITLES[method]} {said[method]}: from a point to its nearest neighbour in this "
        f"picture it is {study.neighbour_angles[method]:.0f}° on the sphere, on average.",
    )


def _directions_spectrum(method: str, model: Any) -> Picture:
    ratios = model.explained_variance_ratio_
    listed = ", ".join(f"{ratio:.1%}" for ratio in ratios)
    return Picture.of(
        spectrum(model, title=_TITLES[method]),
        f"directions-spectrum-{_slug(method)}",
        alt=f"Bars: variance explained by each of the {len(ratios)} components of {method}: "
        f"{listed}.",
        caption=f"{_TITLES[method]}: {len(ratios)} components, {listed} of the variance.",
    )


def _directions_sphere(study: Directions) -> Picture:
    points = exp_at_pole(study.comparison.curved.model.embedding_[:, :2])
    return Picture.of(
        sphere(points, study.comparison.angles, legend_title=_SCALE_TITLE),
        "directions-sphere",
        alt=f"A globe with {len(points)} points, coloured by their distance from the mean, which "
        "a star marks; two great circles cross there; points on the far side are faint.",
        caption="The sphere that kernel PGA found, with the mean and the two principal geodesics. "
        "Circles around the mean are 30° apart.",
    )


def _directions_words(comparison: Comparison) -> str:
    flat, curved, geodesic = (comparison.area(2, method) for method in METHODS)
    winner = _CURVED if curved > flat else _FLAT
    return (
        f"With two components {winner} keeps more neighbours, by {abs(curved - flat):.3f} in area. "
        f"Measured along the sphere, between the points that kernel PGA's coordinates stand for, "
        f"the area is {geodesic:.3f}{_perfect(geodesic)}: a flat picture of a sphere must tear or "
        "bend it somewhere, the coordinates need not."
    )


def _perfect(area: float) -> str:
    return ", so that every neighbour is kept" if area > 1 - 1e-12 else ""


def _far_words(study: Directions) -> str:
    if study.far == 0:
        return (
            "All points lie less than a quarter of a great circle from the mean, which is then "
            "the only one."
        )
    return (
        f"{study.far} of {len(study.X)} points lie a quarter of a great circle or more from the "
        "mean. So far out a Karcher mean need not be the only one; the library warns of it."
    )


# ---------------------------------------------------------------------- digits and wine


def real_data_section(studies: Studies, geodesic: Geodesic) -> Section:
    """Return the section on real data under the Gaussian kernel."""
    settings, comparison = studies.settings, geodesic.digits
    names = np.array(studies.digits.class_names)[studies.digits.y]
    models = {_FLAT: comparison.flat, _CURVED: comparison.curved.model}
    scatters = [
        Picture.of(
            embedding(
                model.embedding_,
                names,
                ratios=model.explained_variance_ratio_,
                title=_TITLES[method],
                legend_title="digit",
            ),
            f"digits-gaussian-{_slug(method)}",
            alt=f"Scatter plot of the first two components of digits, {method}, Gaussian kernel, "
            f"one colour and marker for each of {len(studies.digits.class_names)} classes.",
            caption=f"Digits, {method}: the first two components hold "
            f"{model.explained_variance_ratio_[:2].sum():.1%} of the variance.",
        )
        for method, model in models.items()
    ]
    data = {"digits": geodesic.digits, "wine": geodesic.wine}
    largest = max(settings.neighbourhood_counts)
    compared = [
        (name, count, found)
        for name, found in data.items()
        for count in settings.neighbourhood_counts
    ]
    return Section(
        "Digits and wine: kernel PCA against kernel PGA, side by side",
        [
            Text(
                "The same two methods on data that nobody simulated, with the Gaussian kernel of "
                "this page. In its feature space the digits lie "
                f"{comparison.angles.mean():.0f}° from their mean on average, the directions above "
                f"{geodesic.directions.comparison.angles.mean():.0f}°: the nearer, the flatter the "
                "sphere looks from there, and the less there is to gain."
            ),
            Row(scatters),
            Row(
                [
                    _curves(found, largest, name, f"{name.capitalize()}, {largest} components")
                    for name, found in data.items()
                ]
            ),
            _area_table(compared),
            Note(_verdict(compared)),
        ],
    )


def _verdict(compared: list[tuple[str, int, Comparison]]) -> str:
    """Say which method keeps more neighbours, by how much, and whether that is much."""
    gains = {f"{name}, {count} components": found.gain(count) for name, count, found in compared}
    words = []
    for method, won in (
        (_CURVED, {row: gain for row, gain in gains.items() if gain > 0}),
        (_FLAT, {row: -gain for row, gain in gains.items() if gain <= 0}),
    ):
        if won:
            listed = "; ".join(f"{row}: by {gain:.3f}" for row, gain in won.items())
            words.append(
                f"{_TITLES[method]} keeps more neighbours in {len(won)} of {len(gains)} rows of "
                f"the table, straight distances for both ({listed})."
            )
    small = sum(abs(gain) < _LITTLE for gain in gains.values())
    if small == len(gains):
        words.append("That is little: on these data either will do.")
    elif small:
        words.append(
            f"In {small} of them the difference is below {_LITTLE:g}, which no picture shows."
        )
    return " ".join(words)


# ---------------------------------------------------------------------- shared


def _curves(comparison: Comparison, count: int, name: str, title: str) -> Picture:
    figure: Figure = neighborhood(comparison.quality[count], xscale="log", title=title)
    areas = "; ".join(f"{method} {comparison.area(count, method):.3f}" for method in METHODS)
    return Picture.of(
        figure,
        f"{name}-neighbourhoods-{count}",
        alt="Curves: the fraction of the nearest neighbours that each method keeps, over the size "
        f"of the neighbourhood. Areas: {areas}.",
        caption=f"Which part of the κ nearest neighbours in feature space is among the κ nearest "
        f"of the embedding: {name}, {count} components. “Geodesic” measures along the sphere.",
    )


def _area_table(compared: list[tuple[str, int, Comparison]]) -> Table:
    return Table(
        "Neighbours kept, all sizes of neighbourhood in one number: the area under the curve, "
        "small neighbourhoods counting as much as large ones. 1 is perfect, 0 is random.",
        ["data, components", *METHODS],
        [
            [f"{name}, {count}", *(f"{found.area(count, method):.3f}" for method in METHODS)]
            for name, count, found in compared
        ],
    )


def _slug(method: str) -> str:
    return method.replace(" ", "-")
