"""Laws of every figure: given axes are used, names are shown unchanged, invalid arguments are named
in the error, and pyplot and matplotlib's settings are left alone."""

import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans

from laws_shapes import three_leaves
from orthodrome import KernelPGA, plots
from orthodrome.plots._matplotlib import png

pytest.importorskip("matplotlib")
import matplotlib
from matplotlib.figure import Figure

POINTS = np.random.default_rng(0).standard_normal((40, 4))
UNIT = POINTS[:, :3] / np.linalg.norm(POINTS[:, :3], axis=1, keepdims=True)
LEAVES, KINDS = three_leaves()
EVEN = np.arange(40) % 2

#: Functions that draw into axes, and those that draw into a figure, with arguments.
AXES = {
    "embedding": (plots.embedding, (POINTS, EVEN)),
    "clusters": (plots.clusters, (POINTS, EVEN)),
    "sphere": (plots.sphere, (UNIT, EVEN)),
    "spectrum": (plots.spectrum, ([2.0, 1.0],)),
    "neighborhood": (plots.neighborhood, ({"a": [0.5, 1.0]},)),
    "confusion": (plots.confusion, ([0, 1], [0, 0])),
    "curves": (
        lambda *a, **k: plots.curves(*a, xlabel="x", ylabel="y", **k),
        ([1, 2], {"a": [1, 2]}),
    ),
}
FIGURES = {
    "shapes": (plots.shapes, (LEAVES, KINDS)),
    "shape_modes": (plots.shape_modes, (KernelPGA(2, "veronese_whitney").fit(LEAVES),)),
    "images": (plots.images, ({"a": np.ones((2, 4, 4))},)),
}


@pytest.mark.parametrize("name", AXES)
def test_given_axes_are_used(name):
    draw, arguments = AXES[name]
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    assert draw(*arguments, ax=right, title="T") is figure
    assert not left.has_data()
    assert right.has_data()
    assert "T" in (right.get_title(), right.get_title(loc="left"))
    with pytest.raises(ValueError, match="ax must be matplotlib Axes or None; got 'here'"):
        draw(*arguments, ax="here")


@pytest.mark.parametrize("name", FIGURES)
def test_a_given_figure_is_used(name):
    draw, arguments = FIGURES[name]
    figure = Figure(figsize=(3, 2))
    left, right = figure.subfigures(1, 2)
    draw(*arguments, figure=right, title="T")
    assert (len(left.axes), right.get_suptitle()) == (0, "T")
    assert len(right.axes) > 0
    assert tuple(figure.get_size_inches()) == (3, 2)
    png(figure)
    with pytest.raises(ValueError, match="figure must be a matplotlib Figure or None; got 'here'"):
        draw(*arguments, figure="here")


@pytest.mark.parametrize("name", [*AXES, *FIGURES])
def test_pictures_are_the_same_again_without_pyplot(name, monkeypatch):
    """That matplotlib is imported late, tests/hardening/test_absent.py shows."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it raises an error
    monkeypatch.delattr(matplotlib, "pyplot", raising=False)
    settings = dict(matplotlib.rcParams)
    draw, arguments = (AXES | FIGURES)[name]
    before = [np.copy(each) for each in arguments if isinstance(each, np.ndarray)]
    first = png(draw(*arguments))
    assert first.startswith(b"\x89PNG")
    assert png(draw(*arguments)) == first
    for each, kept in zip([a for a in arguments if isinstance(a, np.ndarray)], before, strict=True):
        np.testing.assert_array_equal(each, kept)
    assert dict(matplotlib.rcParams) == settings


@pytest.mark.parametrize(
    "names",
    [
        ["_hidden", "$x^2$ $\\frac", "</script><img onerror=alert(1)>", "種"],
        [None, 3],
        [np.nan, 1.0],
        ["", "b" * 50],
        [False, True],
    ],
    ids=str,
)
def test_any_name_is_shown_as_it_is(names):
    kind, n = type(names[-1]) if None not in names else object, len(names)
    labels = np.resize(np.array(names, dtype=kind), len(POINTS))
    drawn = [plots.embedding(POINTS, labels), plots.clusters(POINTS, labels, centers=POINTS[:n])]
    for figure in drawn:
        png(figure)
        texts = figure.axes[0].get_legend().get_texts()
        assert len(texts) == n + (figure is drawn[1])
        assert not any(text.get_parse_math() for text in texts)
    if all(isinstance(name, str) and name for name in names):
        figure = plots.neighborhood({name: [0.2, 0.5, 1.0] for name in names})
        png(figure)
        assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()][:n] == names
        figure = plots.shapes(LEAVES, np.resize(names, len(LEAVES)))
        png(figure)
        assert f"{names[0]} (12)" in [ax.get_title() for ax in figure.axes]
        figure = plots.confusion(names, names)
        png(figure)
        assert not any(label.get_parse_math() for label in figure.axes[0].get_yticklabels())


TWO, EYE, CURVE, NAN, INF = np.ones((5, 2)), np.eye(3), {"a": [0.5, 1.0]}, np.nan, np.inf
MODEL = FIGURES["shape_modes"][1][0]
SQUARES = np.ones((2, 4, 4))

#: For each function: valid arguments, and changes that are invalid with a pattern of the message,
#: which names the parameter or the value.
INVALID = {
    plots.embedding: (
        {"Z": TWO},
        [
            ({"labels": [0, 1]}, r"^labels of embedding .*\(5,\).* Z.*\(2,\)"),
            ({"labels": [[1], [2, 3], [4], [5], [6]]}, "labels of embedding must be a vector"),
            ({"components": (0, 2)}, r"^Z .* 3 columns; got 2.*\(0, 2\)"),
            ({"size": 0}, "size .* > 0"),
        ],
    ),
    plots.spectrum: (
        {"model": [1.0]},
        [
            ({"model": [1.0, -0.5]}, "eigenvalues .* smallest is -0.5"),
            ({"model": KMeans(2, n_init=1).fit(np.eye(4))}, "KMeans"),
        ],
    ),
    plots.curves: (
        {"x": [1, 2], "values": CURVE, "xlabel": "n", "ylabel": "e"},
        [
            ({"values": {"a": [NAN] * 2}}, r"values\['a'\] .* no finite"),
            ({"values": {"b": [0, -1]}, "yscale": "log"}, r"values\['b'\] .* no positive"),
            ({"x": [0, 2], "xscale": "log2"}, "x of curves must be positive"),
            ({"yscale": "log2"}, "yscale of curves"),
        ],
    ),
    plots.images: (
        {"rows": {"a": SQUARES}},
        [
            ({"rows": {}}, "rows of images .* mapping"),
            ({"rows": {"a": np.ones((2, 16))}, "shape": (3, 5)}, r"shape=\(3, 5\)"),
            ({"rows": {"a": SQUARES, "b": np.ones((3, 4, 4))}}, "rows of images.* same shape"),
            ({"cmap": "grau"}, "'grau' is not"),
        ],
    ),
    plots.clusters: (
        {"Z": np.ones((4, 2)), "labels": [0, 0, 1, 1]},
        [
            ({"centers": [[0.0, 1.0, 2.0]] * 2}, "centers .* 2 columns.*got 3"),
            ({"centers": [[0.0, 1.0]]}, "centers .* each of the 2 clusters; got 1"),
            ({"proba": [0.5, 0.5]}, r"proba .* 4 rows.*\(2,\)"),
        ],
    ),
    plots.confusion: (
        {"y_true": [0], "y_pred": [0]},
        [
            ({"y_true": [0, 1]}, "y_true and y_pred .* got 2 and 1"),
            ({"labels": ["a"]}, r"labels of confusion .* missing: \[0\]"),
            ({"y_pred": [2], "labels": [0, 1]}, r"labels of confusion .* missing: \[2\]"),
        ],
    ),
    plots.neighborhood: (
        {"curves": CURVE},
        [
            ({"curves": [0.5, 1.0]}, "curves of neighborhood .* mapping"),
            ({"curves": {"a": [-0.1, 1.0]}}, r"curves\['a'\] .* from -0.1 to 1"),
            ({"curves": {"a": [0.5, 0.9]}}, r"curves\['a'\] .* the last 0.9"),
            ({"curves": CURVE | {"b": [0.5, 0.6, 1.0]}}, "'a': 2, 'b': 3"),
        ],
    ),
    plots.sphere: (
        {"points": EYE},
        [
            ({"points": np.eye(4)}, "points of sphere must have 3 columns; got 4"),
            ({"points": EYE[[0]] + EYE[:2]}, "unit length; row 0 has length 2"),
            ({"curves": [EYE]}, "curves of sphere .*list"),
            ({"curves": 5}, "curves of sphere .*int"),
            ({"tilt": INF}, "tilt of sphere"),
            ({"ax": Figure().add_subplot(projection="3d")}, "ax of sphere"),
        ],
    ),
    plots.shapes: (
        {"X": LEAVES},
        [
            ({"labels": np.arange(45.0)}, "labels of shapes has 45 different"),
            ({"n_columns": 0}, "n_columns of shapes .* >= 1"),
        ],
    ),
    plots.shape_modes: (
        {"model": MODEL},
        [
            ({"n_steps": 4}, "n_steps .* odd.* got 4"),
            ({"magnification": [1.0, 2.0, 3.0]}, "magnification .* 2 modes; got 3"),
            ({"links": [[0, 99]]}, "links of shape_modes .* from 0 to"),
        ],
    ),
}


@pytest.mark.parametrize("draw", INVALID, ids=lambda draw: draw.__name__)
def test_invalid_arguments_are_named(draw):
    valid, changes = INVALID[draw]
    draw(**valid)
    for change, pattern in changes:
        with pytest.raises(ValueError, match=pattern):
            draw(**valid | change)
