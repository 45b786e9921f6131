"""Pre-images of Karcher means on a square and a spiral."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from experiment_scripts import experiment_scripts


@pytest.fixture(scope="module")
def geo():
    with experiment_scripts("rkhs_geo", "preimages") as found:
        yield found


@pytest.fixture(scope="module")
def script(geo):
    return geo.preimages


def naive_objective(z, X, sigma):
    """The mean of arccos² k, as the formula has it."""
    k = np.exp(-np.sum((z - X) ** 2, axis=1) / (2 * sigma**2))
    return float(np.mean(np.arccos(k) ** 2))


# ---------------------------------------------------------------------------- the paper's iteration


def test_objective_is_that_of_the_paper(script):
    X = script.spiral(0)[:30]
    places = script.square(0)[:5]
    expected = [naive_objective(z, X, 0.4) for z in places]
    np.testing.assert_allclose(script.objective_at(places, X, 0.4), expected, rtol=1e-10)


def test_weights_are_those_of_the_paper(script):
    X = script.square(0)[:4]
    z = np.array([[0.3, -0.2]])
    k = np.exp(-np.sum((X - z) ** 2, axis=1) / (2 * 0.7**2))
    expected = np.arccos(k) * k / np.sqrt(1 - k**2)
    np.testing.assert_allclose(script.papers_weights(z, X, 0.7)[0], expected, rtol=1e-10)
    # at a datum the limit, as from very near
    near = script.papers_weights(X[:1] + 1e-6, X, 0.7)[0, 0]
    assert script.papers_weights(X[:1], X, 0.7)[0, 0] == pytest.approx(near, abs=1e-5) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "spiral"])
def test_all_ways_find_the_least_value(script, name):
    row = script.one_case(name, 0, -2, 40)
    X = script.SETS[name](0)
    least = min(
        minimize(naive_objective, start, (X, row["sigma"]), method="Nelder-Mead").fun
        for start in X[:: len(X) // 8]
    )
    assert row["best"] == pytest.approx(least, abs=1e-4)
    assert row["best"] <= least + 1e-9
    for way in ("few", "all", "paper_once"):
        assert abs(row[f"excess_{way}"]) < script.SAME_VALUE
    mean = naive_objective(X.mean(axis=0), X, row["sigma"])
    assert row["excess_mean"] == pytest.approx(mean - row["best"])
    found = naive_objective(np.array([row["x"], row["y"]]), X, row["sigma"])
    assert found - row["best"] == pytest.approx(row["excess_few"], abs=1e-9)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert row["sigma"] == pytest.approx(math.sqrt(squares.mean()) / 4)
    assert (row["n_points"], row["n_starts"]) == (200, 241)
    once, always = (script.papers_iteration(X, row["sigma"], out) for out in (False, True))
    assert row["excess_paper_once"] == pytest.approx(once.objective - row["best"], abs=1e-12)
    assert row["excess_paper_always"] == pytest.approx(always.objective - row["best"], abs=1e-12)
    assert always.objective != once.objective
    assert row["iterations_median"] == np.median(once.n_iter)
    assert row["iterations_most"] == max(once.n_iter)


def test_small_sigma_has_many_minima(script):
    row = script.one_case("spiral", 1, -4, 10)
    assert row["n_minima"] > 5
    assert row["share_reaching"] < 0.5
    assert row["nearest_datum"] < row["mean_nearest_datum"]
    # the sphere around has a better mean than any point with a pre-image
    assert row["above_sphere"] > 0.1
    assert row["angle_to_karcher"] > 1


# ---------------------------------------------------------------------------- smallest ball


@pytest.mark.parametrize("n", [2, 5, 50])
def test_ball_around_orthogonal_points(script, n):
    assert script.ball_radius(np.eye(n)) == pytest.approx(math.acos(1 / math.sqrt(n)))


def test_ball_is_that_of_the_outermost_points(script):
    angles = np.array([0.0, 0.2, 0.5, 1.2])  # on one great circle
    gram = np.cos(angles[:, None] - angles[None])
    assert script.ball_radius(gram) == pytest.approx(0.6)
    # three points around a pole, and one inside
    turns = 2 * np.pi * np.arange(3) / 3
    cap = np.column_stack([np.sin(0.7) * np.cos(turns), np.sin(0.7) * np.sin(turns)])
    points = np.vstack([np.column_stack([cap, np.full(3, np.cos(0.7))]), [[0.0, 0.0, 1.0]]])
    assert script.ball_radius(points @ points.T) == pytest.approx(0.7)
