"""Pre-images of Karcher means on a square and a spiral: what is run, counted and said."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from experiment_scripts import experiment_scripts
from real_data import REPOSITORY

FOLDER = REPOSITORY / "experiments/rkhs_geo"


@pytest.fixture(scope="module")
def geo():
    with experiment_scripts("rkhs_geo", "preimages") as found:
        yield found


@pytest.fixture(scope="module")
def script(geo):
    return geo.preimages


@pytest.fixture(scope="module")
def rows(geo):
    return geo.pages.read_rows(FOLDER / "preimages.csv")


def naive_objective(z, X, sigma):
    """The mean of arccos² k, as the formula has it."""
    k = np.exp(-np.sum((z - X) ** 2, axis=1) / (2 * sigma**2))
    return float(np.mean(np.arccos(k) ** 2))


# ---------------------------------------------------------------------------- data


def test_sets_are_a_square_and_a_spiral(script):
    X = script.SETS["square"](0)
    assert X.shape == (200, 2)
    assert -1 <= X.min() < -0.95 < 0.95 < X.max() <= 1
    Z = script.SETS["spiral"](0)
    radius, angle = np.linalg.norm(Z, axis=1), np.arctan2(*Z.T[::-1])
    off = (angle / (2 * np.pi) - 2 * radius + 0.5) % 1 - 0.5  # of turns, two for each radius
    assert np.median(np.abs(off)) < 0.05
    for make in script.SETS.values():
        np.testing.assert_array_equal(make(1), make(1))
        assert not np.array_equal(make(1), make(2))


def test_starts_hold_mean_data_and_more(script):
    X = script.square(0)
    starts = script.many_starts(X, 0, 50)
    assert starts.shape == (251, 2)
    np.testing.assert_array_equal(starts[0], X.mean(axis=0))
    np.testing.assert_array_equal(starts[1:201], X)
    assert np.all((starts >= X.min(axis=0)) & (starts <= X.max(axis=0)))


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


def test_datum_of_a_start_is_left_out_once_or_throughout(script, monkeypatch):
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    monkeypatch.setattr(script, "MOST_ITERATIONS", 3)
    seen = []

    def spy(z, points, sigma):
        seen.append(z.copy())
        return weights(z, points, sigma)

    weights = script.papers_weights
    monkeypatch.setattr(script, "papers_weights", spy)
    # without its own datum each start jumps to the other, and stays there if it is never let back
    always = script.papers_iteration(X, 2.0, True)
    np.testing.assert_allclose(seen[1], X[::-1])
    assert len(seen) == 2
    np.testing.assert_array_equal(always.n_iter, [2, 2])
    seen.clear()
    script.papers_iteration(X, 2.0, False)
    np.testing.assert_allclose(seen[1], X[::-1])
    assert np.all(np.abs(seen[2]) < 1)
    assert seen[2][0, 0] * X[0, 0] < 0


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


def test_large_sigma_has_one_minimum_near_the_mean(script):
    row = script.one_case("square", 1, 3, 10)
    assert row["n_minima"] == 1
    assert row["share_reaching"] == 1
    assert row["from_mean"] < 1e-3
    assert row["iterations_most"] < 10


def test_small_sigma_has_many_minima(script):
    row = script.one_case("spiral", 1, -4, 10)
    assert row["n_minima"] > 5
    assert row["share_reaching"] < 0.5
    assert row["nearest_datum"] < row["mean_nearest_datum"]
    # the sphere around has a better mean than any point with a pre-image
    assert row["above_sphere"] > 0.1
    assert row["angle_to_karcher"] > 1


def test_places_are_counted_by_their_distance(script):
    points = np.array(
        [[0.0, 0.0], [0.0, 0.015], [1.0, 0.0], [0.0, 0.005], [5.0, 0.0], [1.0, 0.001]]
    )
    assert script.n_places(points, 2.0) == 3
    assert script.n_places(points, 1.0) == 4


def test_iterations_end_at_a_small_step(script, monkeypatch):
    X = script.square(0)
    rough = script.papers_iteration(X, 0.5, False)
    monkeypatch.setattr(script, "PAPER_TOLERANCE", 1e-7)
    fine = script.papers_iteration(X, 0.5, False)
    assert np.all(fine.n_iter > rough.n_iter)
    assert fine.objective <= rough.objective


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


# ---------------------------------------------------------------------------- what is said


def test_page_and_numbers_belong_together(script, rows):
    assert (FOLDER / "preimages.md").read_text(encoding="utf-8") == script.page(rows)
    assert (FOLDER / "preimages.png").read_bytes().startswith(b"\x89PNG")
    assert "](preimages.png)" in script.page(rows).replace("\n", "")


def test_committed_rows_are_of_a_full_run(script, rows):
    size = script.Size()
    assert {(row["data"], row["draw"], row["power"]) for row in rows} == {
        (name, draw, power) for name in script.SETS for draw in range(10) for power in size.powers
    }
    assert {row["n_starts"] for row in rows} == {1 + 200 + size.n_more}
    again = script.one_case("spiral", 4, 1, size.n_more)
    (own,) = [r for r in rows if (r["data"], r["draw"], r["power"]) == ("spiral", 4, 1)]
    for what in ("best", "x", "y", "ball_radius", "angle_to_karcher", "excess_mean"):
        assert own[what] == pytest.approx(again[what], rel=1e-4, abs=1e-6)


def test_mean_alone_is_not_enough(script, rows):
    """The paper's reason for many starts."""
    found = script.Findings(rows)
    assert len(found.reached("few")) == len(found.reached("all")) == len(rows)
    assert len(found.reached("mean_start")) < 0.8 * len(rows)


def test_page_follows_the_numbers(script, rows):
    def line(start, **values):
        text = script.page([{**row, **values} for row in rows])
        return next(each for each in text.split("\n") if each.startswith(start))

    n = len(rows)
    slow, fast = (line("- The paper: the iterations", iterations_most=k) for k in (10, 9))
    assert "**Not so** here" in slow
    assert f"less in 0 of {n} cases" in slow
    assert "So it is here" in fast
    assert f"less in {n} of {n} cases" in fast
    ball = "- The paper: the data lie in a ball"
    assert f"So it is: in 0 of {n}" in line(ball, ball_radius=0.78)
    assert f"**Not so**: in {n} of {n}" in line(ball, ball_radius=0.79)
    assert "**Not in every case** it is below π/2" in line(ball, ball_radius=1.6)
    reached = line("- The paper's answer", excess_few=2e-4, excess_mean_start=0.9e-4)
    assert f"from the mean alone {n} (most above it: 0.0001)" in reached
    assert "library, few starts 0 (most above it: 0.0002)" in reached
    assert "one in all draws at no σ" in line("- The paper: the fixed", n_minima=2)
    whole = line("- The paper: the fixed", n_minima=1)
    assert whole.count("from σ = 0.03125 of the mean σ on") == 2


def at(rows, power, **values):
    """The rows, those with one σ with other values."""
    return [{**row, **values} if row["power"] == power else row for row in rows]


AS_CLAIMED = {"excess_mean_start": 0.5, "excess_paper_once": 0.0, "iterations_median": 9.0}


def test_compared_is_the_sigma_that_fits_best(script, rows):
    made = script.compared(rows)
    assert [(x.where, x.what.split(",")[0]) for x in made] == [
        ("§3.1 and Figure 2", "square"),
        ("§3.1 and Figure 2", "spiral"),
        ("§3.1", "square"),
        ("§3.1", "spiral"),
    ]
    found = script.Findings(rows)
    most = max(
        sum(each.finding == "holds" for each in script.at_sigma(found, power))
        for power in found.powers
    )
    assert sum(each.finding == "holds" for each in made) == most
    # nothing holds with any other: this one is compared, and named
    nowhere = [{**row, **AS_CLAIMED, "iterations_median": 30.0} for row in rows]
    for power in (-4, 2):
        after = script.compared(at(nowhere, power, **AS_CLAIMED))
        name = f"σ = {2.0**power:g} of the mean σ, which fits best of 9: "
        assert all(name in each.what for each in after)
        assert {each.finding for each in after} == {"holds"}
    after = script.compared(nowhere)
    assert [each.finding for each in after] == ["holds", "holds", "contradicted", "contradicted"]


def test_orders_are_of_the_draws_with_one_sigma(script, rows):
    found = script.Findings(rows)
    own = [10 - r["iterations_median"] for r in rows if (r["data"], r["power"]) == ("square", -3)]
    (one,) = [
        x for x in script.at_sigma(found, -3) if x.what.startswith("square") and "iter" in x.what
    ]
    assert one.ours == pytest.approx(np.mean(own))
    assert one.error == pytest.approx(np.std(own, ddof=1) / math.sqrt(len(own)))
    # what happens with another σ says nothing about this one
    other = script.Findings(at(rows, 3, **AS_CLAIMED))
    assert script.at_sigma(other, -3) == script.at_sigma(found, -3)
    assert script.at_sigma(other, 3) != script.at_sigma(found, 3)


def test_starts_that_end_alike_decide_nothing(script, rows):
    level = [{**row, "excess_mean_start": 0.0, "excess_paper_once": 0.9e-4} for row in rows]
    for power in script.Size().powers:
        starts = script.at_sigma(script.Findings(level), power)[: len(script.SETS)]
        assert {each.finding for each in starts} == {"open"}


def test_tables_hold_the_means_over_draws(script, rows):
    own = [r["best"] for r in rows if (r["data"], r["power"]) == ("spiral", -3)]
    error = np.std(own, ddof=1) / math.sqrt(len(own))
    assert f"| 0.125 | {np.mean(own):.4f} ± {error:.4f} |" in script.page(rows)
    assert script.with_error(np.array([-1e-9, 1e-9]), 4) == "0.0000 ± 0.0000"


def test_quick_run_has_every_part(script):
    rows = script.measure(script.Size(2, (-1, 1), 5), quick=True)
    assert [(row["data"], row["draw"], row["power"]) for row in rows] == [
        (name, draw, power) for name in script.SETS for draw in (0, 1) for power in (-1, 1)
    ]
    assert "2 draws each" in script.page(rows)


def test_figure_draws_the_rows(script, rows):
    pytest.importorskip("matplotlib")
    few = [row for row in rows if row["power"] in (-1, 1)]
    figure = script.figure(few)
    titles = {ax.get_title(): ax for ax in figure.get_axes()}
    assert {f"{n}, σ = {s} of the mean σ" for n in script.SETS for s in ("0.5", "2")} <= set(titles)
    drawn = {line.get_label(): line for line in titles["Ends of the starts at all data"].lines}
    found = script.Findings(few)
    for name in script.SETS:
        np.testing.assert_array_equal(drawn[name].get_ydata(), found.curve(name, "n_minima"))
    star = titles["square, σ = 2 of the mean σ"].collections
    (own,) = [r for r in few if (r["data"], r["draw"], r["power"]) == ("square", 0, 1)]
    offsets = [c.get_offsets()[0] for c in star if c.get_label() == "Karcher pre-image"]
    np.testing.assert_allclose(offsets, [[own["x"], own["y"]]], atol=1e-4)
