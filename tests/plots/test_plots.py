"""Palette, embeddings, spectra, curves and rows of images."""

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
from matplotlib.colors import to_rgb
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


def test_other_import_errors_of_missing_packages_are_kept(monkeypatch):
    def broken(name):
        raise ModuleNotFoundError("No module named 'numpy.core'", name="numpy.core")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match=r"numpy\.core"):
        require_matplotlib()
