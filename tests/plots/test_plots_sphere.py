"""The sphere: projection, far side, lines and legends."""

import itertools

import numpy as np
import pytest

from orthodrome import plots
from orthodrome.plots.points import _FAINT, _camera

pytest.importorskip("matplotlib")
from matplotlib.legend import Legend


@pytest.fixture
def points():
    vectors = np.random.default_rng(0).standard_normal((80, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def sides(figure):
    """The points behind and those in front, without the mean, each of all classes."""
    *scatters, _ = figure.axes[0].collections
    found = {True: [], False: []}
    for scatter in scatters:
        found[scatter.get_alpha() == _FAINT].append(scatter)
    assert all(s.get_alpha() in (_FAINT, 1.0) for s in scatters)
    return tuple(np.vstack([s.get_offsets() for s in found[side]]) for side in (True, False))


def legends(figure):
    found = figure.axes[0].findobj(Legend)
    return [[text.get_text() for text in legend.get_texts()] for legend in found]


def test_points_are_projected_and_the_far_side_is_behind_the_veil(points):
    figure = plots.sphere(points, tilt=0, turn=0)
    far, near = sides(figure)
    np.testing.assert_allclose(near, points[points[:, 0] >= 0][:, 1:], atol=1e-15)
    np.testing.assert_allclose(far, points[points[:, 0] < 0][:, 1:], atol=1e-15)
    ax = figure.axes[0]
    veil = next(patch for patch in ax.patches if patch.get_fill())
    far, near, mean = ax.collections
    assert far.get_zorder() < veil.get_zorder() < near.get_zorder() < mean.get_zorder()


@pytest.mark.parametrize(("tilt", "turn"), list(itertools.product([0, 35, 60, 90], [0, 20, 200])))
def test_the_view_is_a_rotation(points, tilt, turn):
    camera = _camera(np.radians(tilt), np.radians(turn))
    np.testing.assert_allclose(camera @ camera.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(camera) == pytest.approx(1)
    position = plots.sphere(points, tilt=tilt, turn=turn).axes[0].collections[-1].get_offsets()[0]
    np.testing.assert_allclose(position, [0, np.sin(np.radians(tilt))], atol=1e-15)


def test_geodesics_pass_through_the_mean_and_their_directions(points):
    figure = plots.sphere(points, geodesics=True)
    without = plots.sphere(points, geodesics=False)
    n_grid = len(without.axes[0].lines)
    # a far and a near half of each
    halves = figure.axes[0].lines[n_grid:]
    assert len(halves) == 4
    assert {line.get_linestyle() for line in halves} == {"-", "--"}
    camera = _camera(np.radians(35), np.radians(20))
    for number, (behind, front) in enumerate(zip(halves[::2], halves[1::2], strict=True), 1):
        drawn = np.vstack([np.column_stack(line.get_data()) for line in (behind, front)])
        for target in (np.eye(3)[0], np.eye(3)[number], -np.eye(3)[number]):
            assert np.nanmin(np.linalg.norm(drawn - camera[:2] @ target, axis=1)) < 1e-12
        assert not np.all(np.isnan(front.get_xdata()))


def test_legends_name_classes_and_lines_outside_the_sphere(points):
    labels = np.where(points[:, 1] > 0, "$right", "_a rather long name of a class")
    figure = plots.sphere(points, labels, curves={"_curve": points[:9]})
    lines = ["mean", "geodesic 1", "geodesic 2", "_curve", "far side"]
    names = [[name.replace("\n", " ") for name in each] for each in legends(figure)]
    assert sorted(names) == [sorted(set(labels)), lines]
    figure.draw_without_rendering()
    ax = figure.axes[0]
    frame = ax.get_window_extent()
    for legend in ax.findobj(Legend):
        box = legend.get_window_extent()
        assert box.x0 >= frame.x1 or box.y1 <= frame.y0
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= figure.bbox.y0
    (only,) = legends(plots.sphere(points[points[:, 0] > 0], tilt=0, geodesics=False))
    assert only == ["mean"]
