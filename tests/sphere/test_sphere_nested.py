"""Principal nested spheres against slow searches and known spheres."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from laws_sphere import cap, rotation, unit
from orthodrome.sphere import karcher_mean, log, nested, nested_spheres
from orthodrome.sphere.nested import (
    CHOICES,
    EPSILON,
    Subsphere,
    _circular_mean,
    _Search,
    fit_subsphere,
)

every_power = pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0])
every_choice = pytest.mark.parametrize("sphere", CHOICES)


def ellipsoid(n=100, d=5, seed=0, spread=0.5):
    """Points about the first axis on a sphere of R^(d + 1), spread by falling amounts."""
    points = np.random.default_rng(seed).standard_normal((n, d + 1))
    points *= np.linspace(spread, 0.05, d + 1)
    points[:, 0] += 1
    return unit(points)


def small_circle(n=100, radius=0.7, noise=0.02, outliers=0, seed=0, d=3, arc=1.2):
    """Points near a small circle about the last axis, some of them anywhere on the sphere."""
    rng = np.random.default_rng(seed)
    around = rng.uniform(-arc, arc, n)
    away = radius + noise * rng.standard_normal(n)
    points = np.zeros((n, d))
    points[:, 0], points[:, 1] = np.sin(away) * np.cos(around), np.sin(away) * np.sin(around)
    points[:, 2] = np.cos(away)
    gross = rng.choice(n, outliers, replace=False)
    points[gross] = unit(rng.standard_normal((outliers, d)))
    return points


def fitted(points, **options):
    """The paper's chain, unless options are given."""
    options = {"sphere": "small", "negligible": 0.0} | options
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The points take up", UserWarning)
        return nested_spheres(points, **options)


def with_outer_levels():
    """Points with directions of very different spread, turned."""
    points = np.random.default_rng(1).standard_normal((100, 20)) * np.geomspace(0.5, 1e-3, 20)
    points[:, 0] += 1
    return unit(points) @ rotation(20)


def penalty(points, axis, radius, p, weights=None):
    angles = np.arccos(np.clip(points @ axis, -1, 1))
    return np.average(((angles - radius) ** 2 + EPSILON) ** (p / 2), weights=weights)


def projected_gradient(points, p, n_steps=3000):
    """The paper's search: gradient steps in (v, r), v brought back to the sphere, line search."""
    axis = np.linalg.eigh(points.T @ points)[1][:, 0]
    radius = float(np.mean(np.arccos(points @ axis)))
    value, step = penalty(points, axis, radius, p), 1.0
    for _ in range(n_steps):
        angles = np.arccos(np.clip(points @ axis, -1, 1))
        slopes = p * (angles - radius) * ((angles - radius) ** 2 + EPSILON) ** (p / 2 - 1)
        slope_in_axis = -(slopes / np.sin(angles)) @ points / len(points)
        slope_in_axis -= (slope_in_axis @ axis) * axis
        while step > 1e-12:
            moved, other = unit(axis - step * slope_in_axis), radius + step * slopes.mean()
            if penalty(points, moved, other, p) < value:
                break
            step /= 2
        else:
            break
        axis, radius, value = moved, other, penalty(points, moved, other, p)
        step *= 4
    return value


@every_power
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("make", [ellipsoid, lambda seed: small_circle(outliers=15, seed=seed)])
def test_objective_is_never_above_that_of_projected_gradients(make, p, seed):
    points = make(seed=seed)
    found = fit_subsphere(points, np.ones(len(points)), p=p)
    expected = projected_gradient(points, p)
    assert found.objective <= expected * (1 + 1e-9)
    np.testing.assert_allclose(
        found.objective, penalty(points, found.axis, found.radius, p), rtol=1e-10
    )
    assert 0 < found.radius <= np.pi / 2


@every_power
@pytest.mark.parametrize("great", [False, True])
@pytest.mark.parametrize(
    "points",
    [ellipsoid(seed=1), unit(ellipsoid(60, 40) @ rotation(41))],
    ids=["few coordinates", "nearly as many coordinates as points"],
)
def test_the_gradient_vanishes_by_finite_differences(points, p, great):
    found = fit_subsphere(points, np.ones(len(points)), p=p, great=great)
    assert found.converged
    assert found.n_iter < 200
    frame = np.linalg.svd(found.axis[None])[2][1:]

    def value(x):
        axis = unit(found.axis + x[:-1] @ frame)
        return penalty(points, axis, found.radius + (0 if great else x[-1]), p)

    assert value(np.zeros(len(frame) + 1)) == pytest.approx(found.objective, rel=1e-9)
    steps = 1e-6 * np.eye(len(frame) + 1)
    gradient = [(value(step) - value(-step)) / 2e-6 for step in steps]
    assert np.abs(gradient).max() < (2e-6 if len(frame) < 9 else 2e-4)


@pytest.mark.parametrize("m", [3, 5, 80])
def test_projection_and_its_inverse(m):
    points = cap(30, m, 1.0)
    found = fit_subsphere(points, np.ones(30))
    residuals = found.residuals(points)
    below, _, lost = found.split(points)
    assert below.shape == (30, m - 1)
    assert not lost.any()
    np.testing.assert_allclose(np.linalg.norm(below, axis=1), 1)
    np.testing.assert_allclose(found.lift(below, residuals), points, atol=1e-12)
    # the projection of the paper
    angles = (residuals + found.radius)[:, None]
    expected = points * np.sin(found.radius) + found.axis * np.sin(angles - found.radius)
    on = found.lift(below, np.zeros(30))
    np.testing.assert_allclose(on, expected / np.sin(angles), atol=1e-12)
    np.testing.assert_allclose(found.residuals(on), 0, atol=1e-12)
    np.testing.assert_allclose(found.split(on)[0], below, atol=1e-12)
    # points on the axis have none
    below, _, lost = found.split(np.vstack([found.axis, -found.axis, points[:1]]))
    np.testing.assert_array_equal(lost, [True, True, False])
    np.testing.assert_array_equal(below[:2], np.eye(m - 1)[[0, 0]])


@every_choice
@pytest.mark.parametrize(("n", "d"), [(100, 2), (100, 5), (60, 11), (30, 59)])
def test_axes_are_orthonormal_and_maps_inverse(n, d, sphere):
    points = ellipsoid(n, d)
    chain = fitted(points, sphere=sphere)
    rank = min(n, d + 1)
    assert chain.n_modes == rank - 1
    assert chain.axes.shape == (rank - 2, d + 1)
    np.testing.assert_allclose(chain.axes @ chain.axes.T, np.eye(rank - 2), atol=1e-12)
    scores = chain.scores(points)
    np.testing.assert_allclose(chain.points(scores), points, atol=1e-10)
    np.testing.assert_allclose(chain.scores(chain.points(scores)), scores, atol=1e-10)
    if sphere == "great":
        np.testing.assert_array_equal(chain.radii, np.pi / 2)
    np.testing.assert_allclose(np.linalg.norm(chain.mean), 1)
    np.testing.assert_allclose(chain.scores(chain.mean[None]), 0, atol=1e-10)


@every_power
def test_chain_equals_a_slow_one(p):
    """Level by level in whole coordinates, from the exact principal directions each time."""
    points = ellipsoid(80, 5, seed=3)
    chain = fitted(points, p=p)
    y, size = points, 1.0
    for level, (subsphere, axis) in enumerate(zip(chain.subspheres, chain.axes, strict=True)):
        principal = np.linalg.svd(y)[2][: 6 - level]  # what is left of the space
        again = fit_subsphere(y @ principal.T, np.ones(80), p=p)
        # for p < 1 there are many minima, and other coordinates may lead to another one
        assert subsphere.objective <= again.objective * (1 + (1e-6 if p >= 1 else 5e-3))
        angles = np.arccos(np.clip(y @ axis, -1, 1))
        # projected, moved to the centre and blown up (paper, §IV-C), in the space it began in
        z = (y * np.sin(subsphere.radius)) / np.sin(angles)[:, None]
        z += axis * (np.sin(angles - subsphere.radius) / np.sin(angles))[:, None]
        y = (z - axis * np.cos(subsphere.radius)) / np.sin(subsphere.radius)
        y = y - np.outer(y @ axis, axis)
        size *= np.sin(subsphere.radius)
    np.testing.assert_allclose(chain.scales[0], size)
    circle = chain.projected(points, 1)
    np.testing.assert_allclose(circle @ circle.T, y @ y.T, atol=1e-8)


@pytest.mark.parametrize("sphere", ["small", "great"])
def test_scores_do_not_depend_on_the_frame_or_the_order(sphere):
    """Not even their signs."""
    points, turn = ellipsoid(60, 4), rotation(5)
    order = np.random.default_rng(0).permutation(60)
    first = fitted(points, sphere=sphere).scores(points)
    turned = fitted(points @ turn, sphere=sphere).scores(points @ turn)
    np.testing.assert_allclose(turned, first, atol=1e-4)
    shuffled = fitted(points[order], sphere=sphere).scores(points)
    np.testing.assert_allclose(shuffled, first, atol=1e-4)
    if sphere == "great":
        assert np.all(np.mean(first**3, axis=0) > 0)


@every_choice
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_outer_levels_are_principal_great_subspheres(sphere, p):
    """The maps equal those of a chain whose outer levels are written out one by one."""
    points = with_outer_levels()
    chain = fitted(points, sphere=sphere, p=p, negligible=1e-3)
    second = points.T @ points / len(points)
    values = np.linalg.eigvalsh(second)
    variance = 1 - np.sum(points.mean(axis=0) ** 2)
    assert chain.n_outer == np.count_nonzero(values <= 1e-3 * variance) > 5
    np.testing.assert_array_equal(chain.radii[: chain.n_outer], np.pi / 2)
    moments = np.einsum("ij,jk,ik->i", chain.axes, second, chain.axes)[: chain.n_outer]
    np.testing.assert_allclose(moments, values[: chain.n_outer], rtol=1e-9)
    sizes = np.arange(20, 20 - chain.n_outer, -1)
    outer = [Subsphere(np.eye(m)[-1], np.pi / 2, 0.0, 0) for m in sizes]
    plain = replace(chain, subspheres=(*outer, *chain.subspheres))
    assert plain.n_outer == 0
    np.testing.assert_allclose(chain.axes, plain.axes, atol=1e-12)
    scores = chain.scores(points)
    np.testing.assert_allclose(scores, plain.scores(points), atol=1e-12)
    np.testing.assert_allclose(chain.points(scores), points, atol=1e-10)
    assert np.all(np.mean(scores[:, -chain.n_outer :] ** 3, axis=0) >= 0)
    for dimension in (1, 19 - chain.n_outer, 18):
        below = chain.projected(points, dimension)
        np.testing.assert_allclose(below, plain.projected(points, dimension), atol=1e-12)
        np.testing.assert_allclose(chain.raised(below), plain.raised(below), atol=1e-12)


@pytest.mark.parametrize("sphere", ["small", "great"])
def test_outer_levels_hardly_change_the_first_modes(sphere):
    points = with_outer_levels()
    whole, short = (fitted(points, sphere=sphere, negligible=limit) for limit in (0.0, 1e-3))
    assert whole.n_outer == 0
    assert short.n_iter < whole.n_iter
    variances = [np.mean(chain.scores(points)[:, :5] ** 2, axis=0) for chain in (whole, short)]
    np.testing.assert_allclose(*variances, rtol=0.02)


def test_great_subspheres_of_near_points_are_principal_directions_of_the_tangent_space():
    points = unit(np.eye(6)[0] + 1e-3 * ellipsoid(80, 5) @ rotation(6))
    mean = karcher_mean(points).point
    tangents = log(points, base_point=mean)
    values, vectors = np.linalg.eigh(tangents.T @ tangents / 80)
    for negligible in (0.0, 0.1):
        scores = fitted(points, sphere="great", negligible=negligible).scores(points)
        found = np.mean(scores**2, axis=0)
        np.testing.assert_allclose(found, values[:0:-1], rtol=1e-4)
        cosines = np.abs(np.corrcoef(scores.T, (tangents @ vectors[:, :0:-1]).T)[:5, 5:])
        np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-4)


def test_points_on_the_axis_of_an_outer_level_are_counted():
    points = np.vstack([cap(2000, 3, 1.0), np.zeros((1, 3))])
    points = np.column_stack([points, np.append(np.zeros(2000), 1.0)])
    chain = fitted(points, sphere="great", negligible=0.01)
    assert (chain.n_outer, chain.n_lost) == (1, 1)
    np.testing.assert_allclose(chain.points(chain.scores(points)), points, atol=1e-12)


def test_a_wide_band_has_no_better_circle_on_a_grid():
    """A search from the direction of minimum spread about the origin alone ends elsewhere."""
    points = small_circle(25, radius=0.4, noise=0.15, seed=7, arc=1.8)
    polar, around = np.meshgrid(np.linspace(0, np.pi / 2, 91), np.linspace(0, 2 * np.pi, 181))
    grid = [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)]
    axes = np.stack(grid, axis=-1).reshape(-1, 3)
    found = fit_subsphere(points, np.full(25, 0.04)).axis
    spread = np.arccos(np.clip(points @ np.vstack([found, axes]).T, -1, 1)).var(axis=0)
    assert spread[0] <= spread.min() + 1e-9


@pytest.mark.parametrize("dimension", [1, 3, 5])
def test_raising_undoes_projecting(dimension):
    points = ellipsoid(40, 5)
    chain = fitted(points)
    below = chain.projected(points, dimension)
    assert below.shape == (40, dimension + 1)
    raised = chain.raised(below)
    np.testing.assert_allclose(chain.projected(raised, dimension), below, atol=1e-12)
    scores, kept = chain.scores(raised), chain.scores(points)
    np.testing.assert_allclose(scores[:, :dimension], kept[:, :dimension], atol=1e-9)
    np.testing.assert_allclose(scores[:, dimension:], 0, atol=1e-9)
    with pytest.raises(ValueError, match="must have from 2 to 6 columns; got 1"):
        chain.raised(np.ones((3, 1)))


@pytest.mark.parametrize("seed", range(10))
def test_circular_mean_is_a_global_minimum(seed):
    rng = np.random.default_rng(seed)
    angles, share = rng.uniform(-np.pi, np.pi, 15), rng.dirichlet(np.ones(15))
    center, _ = _circular_mean(angles, share)

    def variance(places):
        apart = np.pi - (np.pi - (angles - places[:, None])) % (2 * np.pi)
        return apart**2 @ share

    grid = variance(np.linspace(-np.pi, np.pi, 20_001))
    assert variance(np.array([center]))[0] <= grid.min() + 1e-12
    assert -np.pi < center <= np.pi


@pytest.mark.parametrize(("sphere", "advice"), [("great", "$"), ("small", " Great subspheres")])
def test_more_than_half_of_a_circle_is_reported(sphere, advice):
    angle = np.linspace(0, 4, 30)
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    with pytest.warns(UserWarning, match=rf"take up 229 degrees .* is inflated\.{advice}"):
        chain = nested_spheres(points, sphere=sphere)
    np.testing.assert_allclose(chain.wrap, 4)
    np.testing.assert_allclose(chain.points([[0.0]]), [[np.cos(2), np.sin(2)]])


def test_features_are_scaled_scores():
    points = ellipsoid(60, 5, spread=0.8)
    chain = fitted(points)
    scores, scales = chain.scores(points), chain.scales
    assert np.all(np.diff(scales) > 1e-6)
    for k in range(1, 6):
        found = chain.features(points, k, circle=True)
        np.testing.assert_allclose(found, scores[:, :k] / scales[k - 1], atol=1e-12)
    for k in range(1, 5):
        found = chain.features(points, k)
        np.testing.assert_allclose(found, scores[:, 1 : k + 1] / scales[k], atol=1e-12)
    for k, circle in ((0, True), (0, False), (6, True), (5, False)):
        with pytest.raises(ValueError, match=rf"n_features must be from 1 to {4 + circle}; got"):
            chain.features(points, k, circle=circle)


@every_power
@pytest.mark.parametrize("great", [False, True])
def test_no_random_start_ends_lower(p, great):
    """No search from 25 random starts ends much lower."""
    rng = np.random.default_rng(5)
    points = np.vstack([ellipsoid(64, 2, seed=5), unit(rng.standard_normal((16, 3)))])
    share = np.full(80, 1 / 80)
    search = _Search(points, share, great, 500)
    axes = unit(rng.standard_normal((25, 3)))
    ends = [search.run(axis, search.best_radius(axis), p).objective for axis in axes]
    found = fit_subsphere(points, share, p=p, great=great).objective
    assert found <= min(ends) * (1 + (1e-6 if p >= 1.5 else 2e-2))


def test_small_powers_also_start_from_least_squares():
    """With many coordinates there are no random starts."""
    noise = np.random.default_rng(5).standard_normal((12, 20))
    points, p = np.vstack([ellipsoid(48, 19, seed=5), unit(noise)]), np.full(60, 1 / 60)
    search = _Search(points, p, True, 500)
    direct = search.run(search.principal_axes()[0], np.pi / 2, 0.5).objective
    assert fit_subsphere(points, p, p=0.5, great=True).objective < 0.98 * direct


@every_choice
def test_choice_between_great_and_small(sphere):
    great = unit(np.random.default_rng(0).standard_normal((200, 3)) * [1, 0.5, 0.05] + [2, 0, 0])
    small = small_circle(200)
    of_great, of_small = (fitted(x, sphere=sphere).radii[0] for x in (great, small))
    assert (of_great == np.pi / 2) == (sphere != "small")
    assert (of_small == np.pi / 2) == (sphere == "great")


@pytest.mark.parametrize("great", [False, True])
def test_conjugate_gradients_end_where_whole_matrices_do(great, monkeypatch):
    rng = np.random.default_rng(0)
    noise = [unit(rng.normal(size=size)) for size in ((200, 12), (60, 120))]
    for points in (ellipsoid(100, 20), *noise):
        monkeypatch.setattr(nested, "_MAX_DIRECT", 1_000)
        whole = fit_subsphere(points, np.ones(len(points)), great=great)
        monkeypatch.setattr(nested, "_MAX_DIRECT", 0)
        found = fit_subsphere(points, np.ones(len(points)), great=great)
        assert found.converged
        assert found.objective - EPSILON == pytest.approx(whole.objective - EPSILON, rel=1e-9)


def test_reweighted_least_squares_replace_eigenvectors_in_many_coordinates(monkeypatch):
    points = unit(np.random.default_rng(0).normal(size=(12, 4)))
    whole = fit_subsphere(points, np.ones(12), p=1.0, great=True)
    monkeypatch.setattr(nested, "_MAX_SADDLE_SIZE", 0)
    found = fit_subsphere(points, np.ones(12), p=1.0, great=True)
    assert found.converged
    assert found.objective == pytest.approx(whole.objective, rel=1e-6)
