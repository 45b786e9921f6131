"""Laws of every figure: what is given is used and not changed, names are shown as they are, bad
arguments are refused by name, and neither pyplot nor the settings of matplotlib are touched."""

import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from laws_shapes import three_leaves
from orthodrome import KernelPCA, KernelPGA, plots
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
    "karcher_objective": (plots.karcher_objective, ("gaussian", POINTS[:, :2])),
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


# ---------------------------------------------------------------------- refusals

TWO, EYE, CURVE = np.ones((5, 2)), np.eye(3), {"a": [0.5, 1.0]}
FOUR = {"Z": np.ones((4, 2)), "labels": [0, 0, 1, 1]}
LABELS = {"xlabel": "n", "ylabel": "e"}
MODEL = FIGURES["shape_modes"][1][0]
PLANE = {"kernel": "gaussian", "X": np.eye(4)[:, :2]}
REFUSED = [
    (plots.embedding, {"Z": np.ones(5)}, "Expected 2D array"),
    (plots.embedding, {"Z": np.ones((5, 1))}, "must have a column for each"),
    (plots.embedding, {"Z": [[np.nan, 1.0]]}, "Z contains NaN"),
    (plots.embedding, {"Z": TWO, "labels": [0, 1]}, r"labels of embedding must have shape \(5,\)"),
    (plots.embedding, {"Z": TWO, "components": (0, 2)}, "must have a column for each"),
    (plots.embedding, {"Z": TWO, "components": (0, -1)}, "must be an integer >= 0"),
    (plots.embedding, {"Z": TWO, "components": 1}, "must be two column numbers"),
    (plots.embedding, {"Z": TWO, "ratios": [1.0]}, "ratios of embedding must be 2 finite"),
    (plots.embedding, {"Z": POINTS, "labels": list(map(str, range(40)))}, "40 different values"),
    (plots.spectrum, {"model": [[1.0]]}, "one row"),
    (plots.spectrum, {"model": [1.0, -0.5]}, "entry 1 is -0.5"),
    (plots.spectrum, {"model": [0.0, 0.0]}, "all zero"),
    (plots.spectrum, {"model": [1.0, np.inf]}, "infinity"),
    (plots.spectrum, {"model": [1.0], "total": 0.0}, "total of spectrum"),
    (plots.spectrum, {"model": [1e300], "total": 1e-300}, "total of spectrum, 1e-300, is nothing"),
    (plots.spectrum, {"model": [1.0], "n_components": 0}, "n_components of spectrum"),
    (plots.spectrum, {"model": PCA(1).fit(EYE), "total": 1.0}, "an estimator has ratios"),
    (plots.spectrum, {"model": KernelPCA(2)}, "not fitted"),
    (plots.spectrum, {"model": KMeans(2, n_init=1).fit(np.eye(4))}, "and KMeans has none"),
    (plots.curves, {"x": [1, 2], "values": {"a": [1]}, **LABELS}, r"must have shape \(2,\)"),
    (plots.curves, {"x": [1, 2], "values": {}, **LABELS}, "mapping, .* of at least one"),
    (plots.curves, {"x": [1, 2], "values": {"a": [np.nan] * 2}, **LABELS}, "no finite entry"),
    (plots.curves, {"x": [0, 2], "values": CURVE, "xscale": "log2", **LABELS}, "must be positive"),
    (plots.curves, {"x": [0, 2], "values": CURVE, "xscale": "log", **LABELS}, "must be positive"),
    (plots.curves, {"x": [[1, 2]], "values": CURVE, **LABELS}, "one row of numbers"),
    (plots.curves, {"x": [1, 2], "values": CURVE, "xscale": "x", **LABELS}, "xscale of curves"),
    (plots.curves, {"x": [1, 2], "values": CURVE, "yscale": "log2", **LABELS}, "yscale of curves"),
    (
        plots.curves,
        {"x": [1, 2], "values": {"b": [0, -1]}, "yscale": "log", **LABELS},
        r"values\['b'\] of curves has no positive entry",
    ),
    (plots.images, {"rows": {}}, "at least one row"),
    (plots.images, {"rows": {"a": np.ones((2, 16))}}, r"rows\['a'\] of images must have shape"),
    (plots.images, {"rows": {"a": np.ones((2, 4, 4, 4))}}, "must have shape"),
    (plots.images, {"rows": {"a": np.ones((2, 16))}, "shape": (3, 5)}, "must have shape"),
    (plots.images, {"rows": {"a": np.ones((2, 16))}, "shape": 16}, "two integers; got 16"),
    (plots.images, {"rows": {"a": np.ones((0, 4, 4))}}, "must have shape"),
    (plots.images, {"rows": {"a": np.ones((2, 4, 4)), "b": np.ones((3, 4, 4))}}, "same shape"),
    (plots.images, {"rows": {"a": np.full((2, 4, 4), np.nan)}}, "must be finite"),
    (plots.images, {"rows": {"a": np.ones((2, 4, 4))}, "cmap": "grau"}, "colour scale .*'grau'"),
    (plots.clusters, FOUR | {"Z": np.ones(5)}, "Expected 2D array"),
    (plots.clusters, FOUR | {"Z": np.ones((4, 1))}, "at least 2 columns; got 1"),
    (plots.clusters, FOUR | {"Z": [[np.nan, 1.0]] * 4}, "Z contains NaN"),
    (plots.clusters, FOUR | {"labels": [0, 1]}, r"labels of clusters must have shape \(4,\)"),
    (plots.clusters, FOUR | {"centers": [[0.0, 1.0, 2.0]] * 2}, "2 columns, as Z has; got 3"),
    (plots.clusters, FOUR | {"centers": [[0.0, 1.0]]}, "from 0 to 0, or of 1 .*got 2 values"),
    (
        plots.clusters,
        FOUR | {"labels": [0, 1, 2, -1], "proba": np.eye(4)[:, :3]},
        "integers from 0 to 2.*from -1 to 2",
    ),
    (plots.clusters, FOUR | {"proba": np.eye(4), "centers": np.ones((2, 2))}, "2 rows and 4 col"),
    (plots.clusters, FOUR | {"proba": [0.5, 0.5]}, r"must have 4 rows.*got shape \(2,\)"),
    (plots.clusters, FOUR | {"proba": 0.5}, r"got shape \(\)"),
    (plots.clusters, FOUR | {"proba": [0.5, 1.5, 1, 1]}, "from 0 to 1; got 0.5 to 1.5"),
    (plots.clusters, FOUR | {"proba": [0.5, -0.5, 1, 1]}, "from 0 to 1; got -0.5 to 1"),
    (plots.clusters, FOUR | {"proba": [0.5, np.nan, 1, 1]}, "proba contains NaN"),
    (plots.karcher_objective, PLANE | {"X": np.ones((5, 3))}, "must have 2 columns.*got 3"),
    (plots.karcher_objective, PLANE | {"X": np.ones(5)}, "Expected 2D array"),
    (plots.karcher_objective, PLANE | {"X": [[np.inf, 1.0]]}, "X contains infinity"),
    (plots.karcher_objective, PLANE | {"kernel": "linear"}, "needs a radial kernel"),
    (plots.karcher_objective, PLANE | {"kernel": "precomputed"}, "needs the inputs and a kernel"),
    (plots.karcher_objective, PLANE | {"sample_weight": [1.0]}, "must have shape"),
    (plots.karcher_objective, PLANE | {"n_grid": 1}, "must be an integer >= 2"),
    (plots.confusion, {"y_true": [0, 1], "y_pred": [0]}, "same length; got 2 and 1"),
    (plots.confusion, {"y_true": [], "y_pred": []}, "y_true of confusion must hold at least one"),
    (plots.confusion, {"y_true": ["a"], "y_pred": [1]}, "both be text or both be numbers"),
    (
        plots.confusion,
        {"y_true": [0], "y_pred": [0], "normalize": "rows"},
        "normalize of confusion",
    ),
    (
        plots.confusion,
        {"y_true": [0], "y_pred": [0], "labels": [0, 0]},
        "list of different classes",
    ),
    (plots.confusion, {"y_true": [0], "y_pred": [2], "labels": [0, 1]}, "2 is absent"),
    (plots.neighborhood, {"curves": {}}, "at least one curve"),
    (plots.neighborhood, {"curves": [0.5, 1.0]}, "must be a mapping, .*; got list"),
    (plots.neighborhood, {"curves": {"a": [1.0]}}, r"curves\['a'\] of neighborhood must be Q\(1\)"),
    (plots.neighborhood, {"curves": {"a": [[0.5, 1.0]]}}, "at least three points"),
    (plots.neighborhood, {"curves": {"a": [0.5, np.nan]}}, r"curves\['a'\] contains NaN"),
    (plots.neighborhood, {"curves": {"a": [-0.1, 1.0]}}, "from 0 to 1; got -0.1 to 1"),
    (plots.neighborhood, {"curves": {"a": [50.0, 100.0]}}, "fractions from 0 to 1"),
    (plots.neighborhood, {"curves": {"a": [0.5, 0.9]}}, r"must end with Q\(n - 1\) = 1"),
    (plots.neighborhood, {"curves": CURVE | {"b": [0.5, 0.6, 1.0]}}, "same length.*'a': 2, 'b': 3"),
    (plots.neighborhood, {"curves": {1: [0.5, 1.0], "1": [0.7, 1.0]}}, "differ as text"),
    (plots.neighborhood, {"curves": CURVE, "xscale": "log2"}, "xscale of neighborhood"),
    (
        plots.neighborhood,
        {"curves": CURVE, "bottom": 1.0},
        "bottom of neighborhood must be below 1",
    ),
    (plots.neighborhood, {"curves": CURVE, "bottom": -0.1}, "must be a finite number"),
    (plots.sphere, {"points": np.ones(3)}, "Expected 2D array"),
    (plots.sphere, {"points": np.eye(4)}, r"shape \(n, 3\); got \(4, 4\)"),
    (plots.sphere, {"points": [[1.0, np.nan, 0.0]]}, "points contains NaN"),
    (plots.sphere, {"points": EYE[[0]] + EYE[:2]}, "unit length; row 0 has length 2"),
    (plots.sphere, {"points": EYE, "labels": [0, 1]}, r"labels of sphere must have shape \(3,\)"),
    (plots.sphere, {"points": EYE, "curves": {"a": np.eye(4)}}, r"curves\['a'\] .* shape \(n, 3\)"),
    (plots.sphere, {"points": EYE, "curves": {"a": 2 * EYE}}, r"curves\['a'\] .* unit length"),
    (plots.sphere, {"points": EYE, "curves": [EYE]}, "curves of sphere must be lines by name"),
    (plots.sphere, {"points": EYE, "tilt": np.inf}, "tilt of sphere must be a finite number"),
    (plots.sphere, {"points": EYE, "turn": "left"}, "turn of sphere must be a finite number"),
    (plots.sphere, {"points": EYE, "turn": True}, "turn of sphere must be a finite number"),
    (
        plots.sphere,
        {"points": EYE, "ax": Figure().add_subplot(projection="3d")},
        "ax of sphere must be ordinary axes",
    ),
    (plots.shapes, {"X": np.ones((5, 7))}, r"landmarks: .*got float64 of shape \(5, 7\)"),
    (plots.shapes, {"X": np.ones((5, 4, 3))}, "three dimensions"),
    (plots.shapes, {"X": np.ones((5, 8))}, "landmarks of specimen 0 of X all coincide"),
    (plots.shapes, {"X": LEAVES, "labels": [0, 1]}, r"must have shape \(45,\), one per row of X"),
    (plots.shapes, {"X": LEAVES, "labels": np.arange(45.0)}, "45 different .* would be a panel"),
    (plots.shapes, {"X": LEAVES, "labels": list(map(str, range(45)))}, "has 45 different"),
    (plots.shapes, {"X": LEAVES, "n_columns": 0}, "n_columns of shapes must be an integer >= 1"),
    *(
        (plots.shapes, {"X": LEAVES, "turn": turn}, "turn of shapes must be a finite number")
        for turn in (np.nan, "90", [90])
    ),
    (plots.shape_modes, {"model": MODEL, "n_modes": 0}, "n_modes .* must be an integer >= 1"),
    (plots.shape_modes, {"model": MODEL, "n_steps": 1}, "n_steps .* must be an integer >= 3"),
    (plots.shape_modes, {"model": MODEL, "n_steps": 4}, "must be odd, with a middle; got 4"),
    (plots.shape_modes, {"model": MODEL, "extent": 0.0}, "extent .* must be a finite number > 0"),
    (plots.shape_modes, {"model": MODEL, "turn": np.inf}, "turn of shape_modes must be a finite"),
]


@pytest.mark.parametrize(("draw", "arguments", "message"), REFUSED)
def test_bad_arguments_are_refused(draw, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(**arguments)
