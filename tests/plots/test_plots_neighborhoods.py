"""Neighbourhood curves: lines, legend and the range of the axis."""

import numpy as np
import pytest

from drawn import legend_texts
from orthodrome import plots

pytest.importorskip("matplotlib")

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
