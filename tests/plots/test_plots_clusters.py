"""Figures of clusterings."""

import numpy as np
import pytest

from drawn import legend_texts
from orthodrome import plots

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex


@pytest.fixture
def points():
    return np.random.default_rng(0).standard_normal((60, 4))


def filled(figure):
    """The scatters that hold points, in the order in which they were drawn."""
    return [c for c in figure.axes[0].collections if len(c.get_offsets()) and c.get_sizes().size]


# ---------------------------------------------------------------------- clusters


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
