"""The sphere: where points stand, which are behind, and what is refused."""

import itertools

import numpy as np
import pytest

from orthodrome import KernelPGA, plots
from orthodrome.plots._matplotlib import png
from orthodrome.plots.sphere import _FAINT, _camera

pytest.importorskip("matplotlib")


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


def mean_position(figure):
    return figure.axes[0].collections[-1].get_offsets()[0]


def legends(figure):
    from matplotlib.legend import Legend

    found = figure.axes[0].findobj(Legend)
    return [[text.get_text() for text in legend.get_texts()] for legend in found]


@pytest.mark.parametrize(("tilt", "turn"), list(itertools.product([0, 35, 90, -20], [0, 20, 200])))
def test_the_view_is_a_rotation(tilt, turn):
    camera = _camera(np.radians(tilt), np.radians(turn))
    np.testing.assert_allclose(camera @ camera.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(camera) == pytest.approx(1)


def test_facing_the_mean_one_sees_the_second_and_third_axis(points):
    figure = plots.sphere(points, tilt=0, turn=0)
    far, near = sides(figure)
    np.testing.assert_allclose(near, points[points[:, 0] >= 0][:, 1:], atol=1e-15)
    np.testing.assert_allclose(far, points[points[:, 0] < 0][:, 1:], atol=1e-15)
    np.testing.assert_allclose(mean_position(figure), [0, 0], atol=1e-15)


@pytest.mark.parametrize("tilt", [0, 35, 60, 90])
def test_the_mean_faces_the_viewer_or_stands_above(points, tilt):
    position = mean_position(plots.sphere(points, tilt=tilt))
    np.testing.assert_allclose(position, [0, np.sin(np.radians(tilt))], atol=1e-15)


def test_near_points_are_drawn_over_the_sphere_and_far_ones_under_it(points):
    ax = plots.sphere(points).axes[0]
    veil = next(patch for patch in ax.patches if patch.get_fill())
    far, near, mean = ax.collections
    assert far.get_zorder() < veil.get_zorder() < near.get_zorder() < mean.get_zorder()
    assert len(far.get_offsets()) + len(near.get_offsets()) == 80


def test_all_lies_inside_the_outline_and_the_outline_is_round(points):
    figure = plots.sphere(points, turn=130)
    figure.draw_without_rendering()
    ax = figure.axes[0]
    assert ax.get_aspect() == 1
    assert not ax.axison
    for line in ax.lines:
        assert np.all(np.nan_to_num(np.hypot(*line.get_data())) <= 1 + 1e-12)
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height, rel=1e-6)


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


def test_curves_are_closed_and_named(points):
    angle = np.radians(np.arange(0, 360, 3))
    circle = np.column_stack(
        [np.full(120, 0.8), 0.6 * np.cos(angle), 0.6 * np.sin(angle)]
    )  # around the mean
    curves = {"small": circle, "great": circle @ np.diag([0, 1 / 0.6, 1 / 0.6])}
    figure = plots.sphere(points, curves=curves, geodesics=False)
    n_grid = len(plots.sphere(points, geodesics=False).axes[0].lines)
    halves = figure.axes[0].lines[n_grid:]
    assert len(halves) == 4
    front = np.column_stack(halves[1].get_data())
    camera = _camera(np.radians(35), np.radians(20))
    seen = np.vstack([circle, circle[:1]]) @ camera.T
    near = seen[:, 2] >= 0
    np.testing.assert_allclose(front[near], seen[near, :2], atol=1e-12)
    assert len({halves[0].get_color(), halves[2].get_color(), plots.palette.MAIN}) == 3
    (names,) = legends(figure)
    assert names == ["mean", "small", "great", "far side"]


def test_legends_name_classes_and_what_is_drawn(points):
    labels = np.where(points[:, 1] > 0, "$right", "_left")
    figure = plots.sphere(points, labels, legend_title="side", title="T")
    png(figure)
    assert sorted(legends(figure)) == [
        ["$right", "_left"],
        ["mean", "geodesic 1", "geodesic 2", "far side"],
    ]
    assert figure.axes[0].get_title() == "T"
    front = points[points[:, 0] > 0]
    (only,) = legends(plots.sphere(front, tilt=0, geodesics=False))
    assert only == ["mean"]


def test_legends_stand_outside_the_sphere_and_inside_the_figure(points):
    from matplotlib.legend import Legend

    figure = plots.sphere(points, np.array(["one class", "another, of a long name"] * 40))
    figure.draw_without_rendering()
    ax = figure.axes[0]
    frame = ax.get_window_extent()
    for legend in ax.findobj(Legend):
        box = legend.get_window_extent()
        assert box.x0 >= frame.x1 or box.y1 <= frame.y0
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= figure.bbox.y0


def test_each_class_has_its_points_on_both_sides(points):
    labels = np.arange(80) % 3
    figure = plots.sphere(points, labels, tilt=0, turn=0)
    *scatters, _ = figure.axes[0].collections
    assert len(scatters) == 6
    for index, (far, near) in enumerate(zip(scatters[::2], scatters[1::2], strict=True)):
        drawn = np.vstack([far.get_offsets(), near.get_offsets()])
        expected = points[labels == index][:, 1:]
        np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0), atol=1e-15)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_numbers_have_one_scale_for_both_sides(points, side):
    values = np.linspace(-3, 5, 80)
    figure = plots.sphere(points, values, legend_title="age")
    far, near, _ = figure.axes[0].collections
    assert far.get_clim() == near.get_clim() == (-3, 5)
    assert figure.axes[1].get_ylabel() == "age"
    # also where one side is empty
    chosen = side * points[:, 0] > 0
    png(plots.sphere(points[chosen], values[chosen], tilt=0))


def test_sphere_of_a_fitted_kernel_pga(points):
    model = KernelPGA(2).fit(points)
    figure = plots.sphere(model.sphere_coordinates_)
    far, near = sides(figure)
    assert len(far) + len(near) == 80
    png(plots.sphere(model.sphere_coordinates_.astype(np.float32)))
