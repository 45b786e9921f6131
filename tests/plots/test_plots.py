"""Figures: what they show, that they show all of it, and what they refuse."""

import importlib
import itertools
import subprocess
import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from orthodrome import KernelPCA, KernelPGA, plots
from orthodrome.plots._matplotlib import house_style, png, require_matplotlib
from orthodrome.plots.interactive import require_plotly
from orthodrome.plots.palette import COLORS, MARKERS, class_style, line_style

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((60, 4))


def legend_texts(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def n_points(figure):
    return sum(len(c.get_offsets()) for c in figure.axes[0].collections)


# ---------------------------------------------------------------------- palette


def test_palette_has_distinct_colours_and_markers():
    assert len(set(COLORS)) == len(set(MARKERS)) == 10
    assert len({class_style(index) for index in range(100)}) == 100
    assert len({line_style(index) for index in range(40)}) == 40


def linear_rgb(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


# Viénot, Brettel and Mollon (1999): what a dichromat sees, in linear RGB.
DICHROMACY = {
    "normal": np.eye(3),
    "protanopia": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deuteranopia": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


@pytest.mark.parametrize("vision", DICHROMACY)
def test_colours_stay_apart_for_every_vision(vision):
    seen = np.array([np.array(DICHROMACY[vision]) @ linear_rgb(c) for c in COLORS])
    perceived = np.cbrt(np.clip(seen, 0, 1))
    closest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(perceived, 2))
    assert closest > 0.1


# ---------------------------------------------------------------------- embedding


def test_embedding_draws_every_point_with_legend_and_labels(points):
    labels = np.arange(60) % 10
    figure = plots.embedding(
        points, labels, ratios=[0.5, 0.25, 0.1, 0.05], title="T", legend_title="class"
    )
    ax = figure.axes[0]
    assert isinstance(figure, Figure)
    assert n_points(figure) == 60
    assert legend_texts(figure) == [str(label) for label in range(10)]
    assert ax.get_legend().get_title().get_text() == "class"
    assert ax.get_xlabel() == "Component 1 (50.0% of the variance)"
    assert ax.get_ylabel() == "Component 2 (25.0% of the variance)"
    assert ax.get_title() == "T"


def test_embedding_gives_each_class_its_points(points):
    labels = np.array(["b", "a", "a"] * 20)
    figure = plots.embedding(points, labels, components=(3, 1))
    first = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_array_equal(first, points[labels == "a"][:, [3, 1]])
    assert figure.axes[0].get_xlabel() == "Component 4"


def test_embedding_of_a_fitted_kernel_pga(points):
    model = KernelPGA(2).fit(points)
    ratios = model.explained_variance_ratio_
    figure = plots.embedding(model.embedding_, ratios=ratios)
    np.testing.assert_array_equal(figure.axes[0].collections[0].get_offsets(), model.embedding_)
    assert f"({ratios[0]:.1%} of the variance)" in figure.axes[0].get_xlabel()


def test_embedding_without_labels(points):
    figure = plots.embedding(points)
    assert n_points(figure) == 60
    assert figure.axes[0].get_legend() is None


def test_embedding_of_many_numbers_has_a_colour_scale(points):
    figure = plots.embedding(points, np.linspace(0, 1, 60), legend_title="age")
    assert len(figure.axes) == 2
    assert figure.axes[1].get_ylabel() == "age"


@pytest.mark.parametrize(
    "names",
    [
        ["_hidden", "$x^2$ $\\frac", "ok"],
        [None, "a", 3],
        [np.nan, 1.0, 2.0],
        ["", " ", "c"],
        ["a very long name of a class that nobody can put beside axes", "b", "c"],
        ["</script><img onerror=alert(1)>", "ü", "é"],
    ],
)
def test_embedding_takes_any_class_name(points, names):
    labels = np.array(names * 20, dtype=object)
    if all(isinstance(name, float) for name in names):
        labels = labels.astype(float)
    figure = plots.embedding(points, labels)
    png(figure)
    assert n_points(figure) == 60
    assert len(legend_texts(figure)) == 3
    assert all(not text.get_parse_math() for text in figure.axes[0].get_legend().get_texts())


def test_legend_stands_outside_the_points(points):
    figure = plots.embedding(points, np.array(["first class", "second class"] * 30))
    figure.draw_without_rendering()
    ax = figure.axes[0]
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_embedding_draws_into_given_axes(points):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plots.embedding(points, ax=right) is figure
    assert len(left.collections) == 0
    assert len(right.collections) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Z": np.ones(5)}, "Expected 2D array"),
        ({"Z": np.ones((5, 1))}, "must have a column for each"),
        ({"Z": [[np.nan, 1.0]]}, "Z contains NaN"),
        ({"Z": np.ones((5, 2)), "labels": [0, 1]}, r"labels of embedding must have shape \(5,\)"),
        ({"Z": np.ones((5, 2)), "components": (0, 2)}, "must have a column for each"),
        ({"Z": np.ones((5, 2)), "components": (0, -1)}, "must be an integer >= 0"),
        ({"Z": np.ones((5, 2)), "components": 1}, "must be two column numbers"),
        ({"Z": np.ones((5, 2)), "ratios": [1.0]}, "ratios of embedding must be 2 finite"),
        ({"Z": np.ones((30, 2)), "labels": [f"c{i}" for i in range(30)]}, "30 different values"),
    ],
)
def test_embedding_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.embedding(**arguments)


# ---------------------------------------------------------------------- spectrum


def heights(figure):
    return [bar.get_height() for bar in figure.axes[0].patches]


@pytest.mark.parametrize("estimator", [KernelPCA(4), KernelPGA(4), PCA(4)])
def test_spectrum_of_a_model(points, estimator):
    model = estimator.fit(points)
    figure = plots.spectrum(model, title="T")
    ratios = 100 * model.explained_variance_ratio_
    np.testing.assert_allclose(heights(figure), ratios)
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), np.cumsum(ratios))
    assert figure.axes[0].get_xlabel() == "Component"
    assert "%" in figure.axes[0].get_ylabel()
    assert legend_texts(figure) == ["each component", "sum so far"]


def test_spectrum_of_eigenvalues_and_a_total():
    np.testing.assert_allclose(heights(plots.spectrum([3.0, 1.0])), [75, 25])
    np.testing.assert_allclose(heights(plots.spectrum([3.0, 1.0], total=8)), [37.5, 12.5])
    assert len(heights(plots.spectrum([3.0, 1.0, 0.5], n_components=2))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": [[1.0]]}, "one row"),
        ({"model": [1.0, -0.5]}, "entry 1 is -0.5"),
        ({"model": [0.0, 0.0]}, "all zero"),
        ({"model": [1.0, np.inf]}, "infinity"),
        ({"model": [1.0], "total": 0.0}, "total of spectrum"),
        ({"model": [1.0], "n_components": 0}, "n_components of spectrum"),
        ({"model": PCA(1).fit(np.eye(3)), "total": 1.0}, "an estimator has ratios"),
    ],
)
def test_spectrum_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.spectrum(**arguments)


def test_spectrum_refuses_a_model_that_is_not_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        plots.spectrum(KernelPCA(2))


# ---------------------------------------------------------------------- curves, images


def test_curves_have_names_labels_and_a_tick_for_each_doubling():
    values = {"a": [3.0, 2.0, 1.0], "b": [np.nan, 1.0, 0.5]}
    figure = plots.curves([1, 2, 4], values, xlabel="n", ylabel="e", xscale="log2")
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "4"]
    assert legend_texts(figure) == ["a", "b"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n", "e")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), values["b"])


def test_curves_without_markers_differ_by_colour_and_dashes():
    values = {str(index): np.arange(4.0) for index in range(6)}
    ax = plots.curves(range(1, 5), values, xlabel="n", ylabel="e", markers=False).axes[0]
    assert {line.get_marker() for line in ax.lines} == {"None"}
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 6


def test_curves_on_a_logarithmic_vertical_axis_leave_its_range_to_the_values():
    draw = {"xlabel": "n", "ylabel": "e", "yscale": "log"}
    ax = plots.curves([1, 2], {"a": [1e-3, 1e-6]}, **draw).axes[0]
    assert ax.get_yscale() == "log"
    assert 1e-8 < ax.get_ylim()[0] < 1e-6 < 1e-3 < ax.get_ylim()[1] < 1e-1
    with pytest.raises(ValueError, match=r"values\['b'\] of curves has no positive entry"):
        plots.curves([1, 2], {"a": [1, 2], "b": [0, -1]}, **draw)
    with pytest.raises(ValueError, match="yscale of curves must be one of"):
        plots.curves([1, 2], {"a": [1, 2]}, xlabel="n", ylabel="e", yscale="log2")


@pytest.mark.parametrize(
    ("x", "values", "scale", "message"),
    [
        ([1, 2], {"a": [1]}, "linear", r"values\['a'\] of curves must have shape \(2,\)"),
        ([1, 2], {}, "linear", "mapping, .* of at least one"),
        ([1, 2], {"a": [np.nan, np.nan]}, "linear", "no finite entry"),
        ([0, 2], {"a": [1, 2]}, "log2", "must be positive"),
        ([[1, 2]], {"a": [1, 2]}, "linear", "one row of numbers"),
        ([1, 2], {"a": [1, 2]}, "cubic", "xscale of curves must be one of"),
        ([0, 2], {"a": [1, 2]}, "log", "must be positive"),
    ],
)
def test_curves_refuse(x, values, scale, message):
    with pytest.raises(ValueError, match=message):
        plots.curves(x, values, xlabel="n", ylabel="e", xscale=scale)


def test_images_stand_in_rows_under_their_names():
    stack = np.arange(3 * 4 * 5.0).reshape(3, 4, 5)
    flat = stack.reshape(3, 20)
    figure = plots.images({"one": stack, "two": flat}, shape=(4, 5), title="T")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    drawn = [ax.images[0].get_array() for ax in figure.axes]
    np.testing.assert_array_equal(drawn[0].filled(-1), drawn[1].filled(-1))
    np.testing.assert_array_equal(drawn[0][:, 6:11], stack[1])
    assert figure.axes[0].images[0].get_clim() == (0.0, 59.0)


def test_ink_is_dark_and_photographs_are_not_negatives():
    stack = np.array([[[0.0, 1.0]]])

    def luminance(**options):
        (image,) = plots.images({"a": stack}, **options).axes[0].images
        return image.to_rgba(image.get_array())[0, :, :3].mean(axis=-1)

    assert np.allclose(luminance(), [1.0, 0.0])
    assert np.allclose(luminance(cmap="gray"), [0.0, 1.0])


def test_images_in_colour_are_shown_in_their_colours():
    photographs = np.random.default_rng(0).uniform(size=(2, 3, 4, 3))
    figure = plots.images({"colour": photographs, "grey": photographs[..., 0]}, limits=(0.0, 1.0))
    strip = figure.axes[0].images[0].get_array()
    assert strip.shape == (3, 9, 3)
    assert np.allclose(strip[:, :4], photographs[0])
    assert np.allclose(strip[:, 4], 1.0)
    assert np.allclose(strip[:, 5:], photographs[1])
    darker = plots.images({"a": 0.5 * photographs})  # not stretched: 0 and 1 are the ends
    assert np.allclose(darker.axes[0].images[0].get_array()[:, :4], 0.5 * photographs[0])
    clipped = plots.images({"a": photographs}, limits=(0.25, 0.75)).axes[0].images[0].get_array()
    assert np.allclose(clipped[:, :4], np.clip(2 * photographs[0] - 0.5, 0, 1))


LARGEST = np.finfo(float).max


@pytest.mark.parametrize(
    ("values", "limits", "shades"),
    [
        ([-1e308, 1e308], None, [1, 0]),
        ([-LARGEST, 0.0, LARGEST], None, [1, 0.5, 0]),
        ([-LARGEST, 0.5, LARGEST], (0, 1), [1, 0.5, 0]),
        ([LARGEST, LARGEST], None, [1, 1]),
        ([0.0, 1.0, LARGEST], (0, LARGEST), [1, 1, 0]),
        (1e6 + np.linspace(0, 1e-7, 3), None, [1, 0.5, 0]),
    ],
)
def test_images_of_huge_values(values, limits, shades):
    figure = plots.images({"a": [[values]]}, limits=limits)
    png(figure)  # without a warning
    (image,) = figure.axes[0].images
    np.testing.assert_allclose(image.to_rgba(image.get_array())[0, :, 0], shades, atol=0.01)


@pytest.mark.parametrize("limits", [(-LARGEST, LARGEST), (LARGEST, LARGEST), (1e20, 1e20), (0, 0)])
def test_images_in_huge_colours(limits):
    figure = plots.images({"a": [[[[-LARGEST, 0.0, LARGEST]]]]}, limits=limits)
    png(figure)
    found = figure.axes[0].images[0].get_array()[0, 0]
    middle = 0.5 if limits[0] < 0 else 0.0
    last = 0.0 if limits[0] == LARGEST else 1.0
    np.testing.assert_allclose(found, [0.0, middle, last], atol=1e-12)


def test_names_of_image_rows_do_not_touch_images():
    figure = plots.images({f"row {i}, gjpq": np.ones((10, 8, 8)) for i in range(4)})
    figure.draw_without_rendering()
    for upper, lower in itertools.pairwise(figure.axes):
        title = lower._left_title.get_window_extent()
        assert lower.get_window_extent().y1 <= title.y0
        assert title.y1 <= upper.get_window_extent().y0


@pytest.mark.parametrize(
    ("rows", "shape", "message"),
    [
        ({}, None, "at least one row"),
        ({"a": np.ones((2, 16))}, None, r"rows\['a'\] of images must have shape"),
        ({"a": np.ones((2, 4, 4, 4))}, None, r"rows\['a'\] of images must have shape"),
        ({"a": np.ones((2, 16))}, (3, 5), "must have shape"),
        ({"a": np.ones((0, 4, 4))}, None, "must have shape"),
        ({"a": np.ones((2, 4, 4)), "b": np.ones((3, 4, 4))}, None, "same shape"),
        ({"a": np.full((2, 4, 4), np.nan)}, None, "must be finite"),
    ],
)
def test_images_refuse(rows, shape, message):
    with pytest.raises(ValueError, match=message):
        plots.images(rows, shape=shape)


def test_images_refuse_what_is_no_shape_and_no_colours():
    with pytest.raises(ValueError, match="shape of images must be two integers; got 16"):
        plots.images({"a": np.ones((2, 16))}, shape=16)
    with pytest.raises(ValueError, match=r"must be the name of a colour scale .*; got 'grau'"):
        plots.images({"a": np.ones((2, 4, 4))}, cmap="grau")


def test_what_is_no_figure_and_no_axes_is_refused():
    with pytest.raises(ValueError, match="ax must be matplotlib Axes or None; got 'here'"):
        plots.embedding(np.ones((5, 2)), ax="here")
    with pytest.raises(ValueError, match="figure must be a matplotlib Figure or None; got 'here'"):
        plots.images({"a": np.ones((2, 4, 4))}, figure="here")


def test_a_total_beside_which_eigenvalues_are_everything_is_refused():
    with pytest.raises(ValueError, match="total of spectrum, 1e-300, is nothing beside"):
        plots.spectrum([1e300], total=1e-300)


# ---------------------------------------------------------------------- matplotlib


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


def test_plots_touch_neither_pyplot_nor_a_display():
    result = run_python(
        "import sys, numpy as np\n"
        "from orthodrome import plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.embedding(np.eye(4), [0, 0, 1, 1]).savefig('/dev/null', format='png')\n"
        "plots.sphere(np.eye(3), [0, 0, 1]).savefig('/dev/null', format='png')\n"
        "plots.neighborhood({'a': [0.5, 1.0]}, xscale='log').savefig('/dev/null', format='png')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_missing_matplotlib_is_one_line_of_advice():
    result = run_python(
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from orthodrome import plots\n"
        "try:\n"
        "    plots.spectrum([1.0])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert result.stdout == "Plots need matplotlib: pip install 'orthodrome[plot]'\n"


def test_png_is_the_same_for_the_same_figure():
    with house_style():
        first, second = (png(plots.spectrum([2.0, 1.0])) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_png_has_boxes_for_letters_that_the_font_has_not():
    figure = plots.curves([1, 2], {"種": [1.0, 2.0]}, xlabel="木", ylabel="灰")
    assert png(figure).startswith(b"\x89PNG")  # without a warning


def test_curves_below_zero_keep_their_range():
    figure = plots.curves([1, 2], {"a": [-3.0, 1.0]}, xlabel="x", ylabel="y")
    assert figure.axes[0].get_ylim()[0] < -3


def test_spectrum_needs_ratios():
    with pytest.raises(ValueError, match="needs explained_variance_ratio_ and KMeans has none"):
        plots.spectrum(KMeans(2, n_init=1).fit(np.eye(4)))


def broken(name):
    raise ModuleNotFoundError("No module named 'numpy.core'", name="numpy.core")


def absent(name):
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("require", "words"),
    [
        (require_matplotlib, r"^Plots need matplotlib: pip install 'orthodrome\[plot\]'$"),
        (require_plotly, r"^Interactive plots need plotly: pip install 'orthodrome\[plot\]'$"),
    ],
)
def test_what_is_absent_is_named_and_what_is_broken_is_told(monkeypatch, require, words):
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(plots.MissingExtraError, match=words):
        require()
    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match=r"numpy\.core"):
        require()
