"""Figures of clusterings and of the Karcher objective."""

import numpy as np
import pytest

from drawn import legend_texts
from orthodrome import plots
from orthodrome.kernels import Gaussian
from orthodrome.plots import karcher
from orthodrome.plots.palette import ACCENT, MAIN
from orthodrome.preimage import karcher_mean_preimage

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex
from matplotlib.path import Path


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((60, 4))


@pytest.fixture
def plane():
    """Two groups of different density, neither symmetric nor around the origin."""
    rng = np.random.default_rng(1)
    return np.vstack([rng.normal([1, 5], 0.4, (25, 2)), rng.normal([4, 6], 0.9, (15, 2))])


def filled(figure):
    """The scatters that hold points, in the order in which they were drawn."""
    return [c for c in figure.axes[0].collections if len(c.get_offsets()) and c.get_sizes().size]


# ---------------------------------------------------------------------- clusters


def test_each_cluster_has_its_points_its_style_and_its_size(points):
    labels = np.array(["b", "a", "c", "a", "a", "b"] * 10)
    figure = plots.clusters(points, labels, xlabel="x", ylabel="y")
    for drawn, same, name in zip(
        filled(figure), filled(plots.embedding(points, labels)), "abc", strict=True
    ):
        np.testing.assert_array_equal(drawn.get_offsets(), points[labels == name][:, :2])
        assert to_hex(drawn.get_facecolor()[0]) == to_hex(same.get_facecolor()[0])
        assert len(drawn.get_paths()[0].vertices) == len(same.get_paths()[0].vertices)
    assert legend_texts(figure) == ["a (30)", "b (20)", "c (10)"]
    ax = figure.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    assert ax.get_legend().get_title().get_text() == "cluster (points)"


def test_opacity_shows_membership_and_small_clusters_share_a_line(points):
    labels = np.arange(60) % 20
    proba = np.where(np.arange(60)[:, None] < 20, 1 / 20, np.eye(20)[labels])
    figure = plots.clusters(points, labels, proba=proba, centers=points[:20])
    opacities = np.concatenate([drawn.get_facecolor()[:, 3] for drawn in filled(figure)[:20]])
    assert sorted(set(opacities.round(2))) == [0.12, 0.85]
    lines = legend_texts(figure)
    assert len(lines) == 18
    assert lines[15:] == ["5 others (15)", "faint: unsure", "centre"]


# ---------------------------------------------------------------------- Karcher objective


def naive_objective(sigma, X, weights, place):
    """Return Σ p_n arccos² k(x_n, x), one point at a time."""
    values = [np.arccos(np.exp(-np.sum((x - place) ** 2) / (2 * sigma**2))) ** 2 for x in X]
    return np.average(values, weights=weights)


def surface_of(figure, number=0):
    return figure.axes[number].collections[0]


def inside(path, place):
    """Return whether a place is in a band, which may have holes with islands."""
    polygons = path.to_polygons(closed_only=False)
    return sum(Path(polygon).contains_point(place) for polygon in polygons) % 2 == 1


def markers_of(figure, number=0):
    return figure.axes[number].collections[-3:]


@pytest.mark.parametrize(("weighted", "block"), [(False, 2**21), (True, 100)])
def test_contours_are_those_of_the_objective(plane, monkeypatch, weighted, block):
    """Each place lies in the band between the two levels around its value."""
    monkeypatch.setattr(karcher, "_BLOCK", block)  # distances in memory
    weights = np.linspace(0, 3, 40) if weighted else None
    figure = plots.karcher_objective(Gaussian(sigma=0.7), plane, sample_weight=weights)
    surface = surface_of(figure)
    (left, right), (bottom, top) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    places = np.random.default_rng(0).uniform([left, bottom], [right, top], (100, 2))
    bands = list(zip(surface.levels, surface.levels[1:], surface.get_paths(), strict=False))
    n_checked = 0
    for place in places:
        value = naive_objective(0.7, plane, weights, place)
        if np.min(np.abs(surface.levels - value)) > 0.005:  # straight lines between grid points
            n_checked += 1
            for low, high, path in bands:
                assert inside(path, place) == (low < value < high)
    assert n_checked > 50


@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_data_mean_and_preimage_are_marked(plane, sigma):
    kernel, weights = Gaussian(sigma=sigma), np.arange(1.0, 41)
    figure = plots.karcher_objective(kernel, plane, sample_weight=weights, title="T")
    data, mean, preimage = markers_of(figure)
    np.testing.assert_array_equal(data.get_offsets(), plane)
    np.testing.assert_allclose(data.get_sizes() / data.get_sizes()[0], weights)
    np.testing.assert_allclose(mean.get_offsets()[0], weights @ plane / weights.sum())
    found = karcher_mean_preimage(kernel, plane, weights)
    np.testing.assert_allclose(preimage.get_offsets()[0], found.point, rtol=1e-7)  # its tol is 1e-9
    assert surface_of(figure).zmin >= found.objective
    assert [to_hex(m.get_facecolor()[0]).upper() for m in (data, mean)] == [MAIN, ACCENT]
    assert min(m.get_zorder() for m in (data, mean, preimage)) > max(
        c.get_zorder() for c in figure.axes[0].collections[:-3]
    )
    assert legend_texts(figure) == ["data", "mean", "Karcher pre-image"]
