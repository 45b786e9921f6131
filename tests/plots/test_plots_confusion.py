"""Confusion matrices: counts, fractions and names are right, and nothing overlaps."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from drawn import contrast
from orthodrome import plots


def answers(classes, n=400, mistakes=0.3, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.choice(classes, n)
    return true, np.where(rng.random(n) < mistakes, rng.choice(classes, n), true)


def cells(figure):
    """The texts of the cells by (row, column)."""
    return {
        (round(text.get_position()[1]), round(text.get_position()[0])): text.get_text()
        for text in figure.axes[0].texts
    }


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_colours_show_fractions_of_the_true_class():
    true, predicted = answers(["a", "b", "c"])
    drawn = np.asarray(plots.confusion(true, predicted).axes[0].images[0].get_array())
    np.testing.assert_allclose(drawn, confusion_matrix(true, predicted, normalize="true"))


@pytest.mark.parametrize(
    ("true", "predicted", "labels", "texts", "shown"),
    [
        ("aaa", "abb", None, {(0, 0): "1\n33%", (0, 1): "2\n67%"}, ["a", "b"]),
        ("bab", "bbb", list("cba"), {(1, 1): "2\n100%", (2, 1): "1\n100%"}, ["c", "b", "a"]),
        (  # a fraction is not rounded to 0 or 100 %
            "a" * 1000,
            "b" + "a" * 999,
            None,
            {(0, 0): "999\n>99%", (0, 1): "1\n<1%"},
            ["a", "b"],
        ),
        ("aa", "aa", None, {(0, 0): "2\n100%"}, ["a"]),  # without a warning
        ([None, 1, "b"], [None, "b", "b"], None, None, ["1", "None", "b"]),
        (["$x^2$", "", "$\\bad"],) * 2 + (None, None, ["(empty)", "$\\bad", "$x^2$"]),
    ],
)
def test_cells_and_names(true, predicted, labels, texts, shown):
    true, predicted = (np.array(list(y), dtype=object) for y in (true, predicted))
    figure = plots.confusion(true, predicted, labels)
    assert texts is None or cells(figure) == texts
    ax = figure.axes[0]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("True class", "Predicted class")
    figure.draw_without_rendering()
    assert names(ax.xaxis) == names(ax.yaxis) == shown
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())


def test_text_has_enough_contrast():
    figure = plots.confusion(*answers(list("abcdef")))
    image = figure.axes[0].images[0]
    for text in figure.axes[0].texts:
        column, row = map(round, text.get_position())
        background = image.to_rgba(image.get_array())[row, column, :3]
        assert contrast(background, to_rgb(text.get_color())) > 4.5
