"""Palette, embeddings, clusters, spectra, curves, neighbourhoods and rows of images."""

import importlib
import itertools

import numpy as np
import pytest
from sklearn.decomposition import PCA

from drawn import legend_texts, linear_rgb
from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.plots._classes import COLORS
from orthodrome.plots._matplotlib import png, require_matplotlib

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((60, 4))


# Viénot, Brettel and Mollon (1999): what a dichromat sees, in linear RGB.
DICHROMACY = {
    "normal": np.eye(3),
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


@pytest.mark.parametrize("vision", DICHROMACY)
def test_colours_differ_for_every_vision(vision):
    linear = np.array([np.array(DICHROMACY[vision]) @ linear_rgb(to_rgb(c)) for c in COLORS])
    perceived = np.cbrt(np.clip(linear, 0, 1))
    closest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(perceived, 2))
    assert closest > 0.1


def test_embedding_draws_every_point_of_each_class_with_labels(points):
    labels = np.array(["b", "a", "a"] * 20)
    ratios = [0.5, 0.25, 0.1, 0.05]
    options = {"ratios": ratios, "title": "T", "legend_title": "class", "components": (3, 1)}
    figure = plots.embedding(points, labels, **options)
    ax = figure.axes[0]
    assert isinstance(figure, Figure)
    for drawn, name in zip(ax.collections, "ab", strict=True):
        np.testing.assert_array_equal(drawn.get_offsets(), points[labels == name][:, [3, 1]])
    assert legend_texts(figure) == ["a", "b"]
    assert ax.get_legend().get_title().get_text() == "class"
    assert ax.get_xlabel() == "Component 4 (5.0% of the variance)"
    assert ax.get_ylabel() == "Component 2 (25.0% of the variance)"
    assert ax.get_title() == "T"
    figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1


# ---------------------------------------------------------------------- spectrum


def heights(figure):
    return [bar.get_height() for bar in figure.axes[0].patches]


@pytest.mark.parametrize("estimator", [KernelPCA(4), KernelPGA(4), PCA(4)])
def test_spectrum_of_a_model(points, estimator):
    model = estimator.fit(points)
    figure = plots.spectrum(model)
    ratios = 100 * model.explained_variance_ratio_
    np.testing.assert_allclose(heights(figure), ratios)
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), np.cumsum(ratios))
    assert "%" in figure.axes[0].get_ylabel()
    assert legend_texts(figure) == ["each component", "cumulative"]


# ---------------------------------------------------------------------- curves, images


def curves(x, values, **options):
    return plots.curves(x, values, xlabel="n", ylabel="e", **options)


def test_curves_have_names_labels_and_a_tick_for_each_doubling():
    values = {"a": [3.0, 2.0, 1.0], "b": [np.nan, 1.0, 0.5]}
    figure = curves([1, 2, 4], values, xscale="log2")
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "4"]
    assert legend_texts(figure) == ["a", "b"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n", "e")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), values["b"])


def test_images_are_in_rows_below_their_names():
    stack = np.arange(3 * 4 * 5.0).reshape(3, 4, 5)
    flat = stack.reshape(3, 20)
    figure = plots.images({"one": stack, "two": flat}, shape=(4, 5), title="T")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    drawn = [ax.images[0].get_array() for ax in figure.axes]
    np.testing.assert_array_equal(drawn[0].filled(-1), drawn[1].filled(-1))
    np.testing.assert_array_equal(drawn[0][:, 6:11], stack[1])
    assert figure.axes[0].images[0].get_clim() == (0.0, 59.0)


@pytest.mark.parametrize(
    ("values", "limits", "shades"),
    [
        ([-5.0, 0.5, 7.0], (0, 1), [1, 0.5, 0]),
        ([3.0, 3.0], None, [1, 1]),
        (1e6 + np.linspace(0, 1e-7, 3), None, [1, 0.5, 0]),
    ],
)
def test_shades_of_images(values, limits, shades):
    figure = plots.images({"a": [[values]]}, limits=limits)
    png(figure)  # without a warning
    (image,) = figure.axes[0].images
    np.testing.assert_allclose(image.to_rgba(image.get_array())[0, :, 0], shades, atol=0.01)


# ---------------------------------------------------------------------- clusters


def filled(figure):
    """The scatters that hold points, in the order in which they were drawn."""
    return [c for c in figure.axes[0].collections if len(c.get_offsets()) and c.get_sizes().size]


def test_each_cluster_has_its_points_its_style_and_its_size(points):
    labels = np.array(["b", "a", "c", "a", "a", "b"] * 10)
    figure = plots.clusters(points, labels)
    for drawn, same, name in zip(
        filled(figure), filled(plots.embedding(points, labels)), "abc", strict=True
    ):
        np.testing.assert_array_equal(drawn.get_offsets(), points[labels == name][:, :2])
        assert to_hex(drawn.get_facecolor()[0]) == to_hex(same.get_facecolor()[0])
        assert len(drawn.get_paths()[0].vertices) == len(same.get_paths()[0].vertices)
    assert legend_texts(figure) == ["a (30)", "b (20)", "c (10)"]
    ax = figure.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Coordinate 1", "Coordinate 2")
    assert ax.get_legend().get_title().get_text() == "cluster (points)"


def test_opacity_shows_membership(points):
    labels = np.arange(60) % 20
    proba = np.where(np.arange(60)[:, None] < 20, 1 / 20, np.eye(20)[labels])
    figure = plots.clusters(points, labels, proba=proba, centers=points[:20])
    opacities = np.concatenate([drawn.get_facecolor()[:, 3] for drawn in filled(figure)[:20]])
    assert sorted(set(opacities.round(2))) == [0.12, 0.85]
    lines = legend_texts(figure)
    assert lines[19:] == ["19 (3)", "faint: unsure", "centre"]
    lines = legend_texts(plots.clusters(points, np.arange(60), centers=points))
    assert lines[29:] == ["29 (1)", "centre"]


# ---------------------------------------------------------------------- neighbourhoods

NAMES = ("kernel PCA", "kernel PGA", "kernel PGA, geodesic")


def quality(lowest, n_others=30):
    return np.linspace(lowest, 1.0, n_others)


@pytest.fixture
def three():
    return dict(zip(NAMES, map(quality, (0.2, 0.4, 0.6)), strict=True))


def test_curves_and_random_line_are_drawn_over_all_sizes(three):
    figure = plots.neighborhood(three)
    *lines, random = figure.axes[0].lines
    for line, (_, row) in zip(lines, three.items(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 31))
        np.testing.assert_array_equal(line.get_ydata(), row)
    np.testing.assert_allclose(random.get_ydata(), np.arange(1, 31) / 30)
    assert random.get_linewidth() < min(line.get_linewidth() for line in lines)
    assert legend_texts(figure) == [*NAMES, "random, κ/(N − 1)"]
    assert {line.get_marker() for line in figure.axes[0].lines} == {"None"}
    for scale in ("linear", "log"):
        ax = plots.neighborhood(three, xscale=scale).axes[0]
        assert (ax.get_xscale(), ax.get_xlim()) == (scale, (1, 30))
    assert legend_texts(plots.neighborhood({2: [0.5, 1.0], 3: [0.7, 1.0]}))[:2] == ["2", "3"]


def test_other_import_errors_of_missing_packages_are_kept(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'numpy.core'", name="numpy.core")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match=r"numpy\.core"):
        require_matplotlib()
