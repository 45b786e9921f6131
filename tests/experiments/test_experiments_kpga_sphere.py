"""The simulated sphere of the kPGA paper: what is measured, compared and said, and committed."""

import math

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from real_data import REPOSITORY, load_or_skip

FOLDER = REPOSITORY / "experiments/kpga"


@pytest.fixture(scope="module")
def kpga():
    with experiment_scripts("kpga", "sphere") as found:
        yield found


@pytest.fixture(scope="module")
def script(kpga):
    return kpga.sphere


@pytest.fixture(scope="module")
def rows(kpga):
    return kpga.pages.read_rows(FOLDER / "sphere.csv")


@pytest.fixture(scope="module")
def draw(script):
    """The cells of one draw, by method, number, quantity and κ."""
    return {tuple(cell[:4]): cell[4] for cell in script.one_draw(8.8, 3)}


def changed(rows, where, **values):
    """The rows, with these values in those that have all that is asked for."""
    return [
        {**row, **values} if all(row[key] == value for key, value in where.items()) else row
        for row in rows
    ]


# ---------------------------------------------------------------------------- draws


def test_points_are_those_of_the_paper(script):
    X = script.points_of(8.8, 0)
    assert X.shape == (200, 100)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    assert np.linalg.matrix_rank(X) == 3
    np.testing.assert_array_equal(X, script.points_of(8.8, 0))
    assert not np.array_equal(X, script.points_of(8.8, 1))


def logarithms(X):
    """The points in the tangent space at their Karcher mean, by plain steps."""
    mean = X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
    for _ in range(60):
        cosines = X @ mean
        angles = np.arccos(cosines)
        logs = (angles / np.sin(angles))[:, None] * (X - cosines[:, None] * mean)
        step = logs.mean(axis=0)
        mean = mean * np.cos(np.linalg.norm(step)) + np.sinc(np.linalg.norm(step) / np.pi) * step
    return logs


def test_eigenvalues_are_of_the_covariances(script, draw):
    X = script.points_of(8.8, 3)
    logs = logarithms(X)
    flat = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    sphere = np.linalg.eigvalsh(logs.T @ logs / len(X))[::-1]
    for method, values in ((script.PCA, flat), (script.PGA, sphere)):
        own = [draw[method, n, script.EIGENVALUE, 0] for n in (1, 2, 3)]
        np.testing.assert_allclose(own, values[:3], atol=1e-12)
    assert draw[script.PCA, 0, script.RANK, 0] == 3
    assert draw[script.PGA, 0, script.RANK, 0] == 2
    ratio = sphere[:2].sum() / flat[:2].sum()
    assert draw[script.PGA, 0, script.RATIO, 0] == pytest.approx(ratio)


def kept_by_hand(high, low):
    """Q(κ) for every κ, from distances."""
    n = len(high)
    before, after = (np.argsort(np.argsort(d, axis=1), axis=1) for d in (high, low))
    off = ~np.eye(n, dtype=bool)
    return np.array(
        [np.sum((before <= k) & (after <= k) & off) / (k * n) for k in range(1, n)],
    )


def distances(X):
    return np.linalg.norm(X[:, None] - X[None], axis=2)


@pytest.mark.parametrize("n_components", [1, 2])
def test_neighbourhoods_are_counted_over_every_size(script, draw, n_components):
    X = script.points_of(8.8, 3)
    _, _, axes = np.linalg.svd(X - X.mean(axis=0))
    flat = (X - X.mean(axis=0)) @ axes[:n_components].T
    _, _, axes = np.linalg.svd(logarithms(X))
    bent = logarithms(X) @ axes[:n_components].T
    angle = np.linalg.norm(bent, axis=1, keepdims=True)
    along = np.hstack([np.cos(angle), np.sinc(angle / np.pi) * bent])
    means = {}
    for method, low in ((script.PCA, flat), (script.PGA, bent), (script.ALONG, along)):
        curve = kept_by_hand(distances(X), distances(low))
        for size in script.SIZES:
            value = draw[method, n_components, script.KEPT, size]
            assert value == pytest.approx(curve[size - 1], abs=1e-3)
        means[method] = draw[method, n_components, script.KEPT_MEAN, 0]
        assert means[method] == pytest.approx(curve.mean(), abs=1e-4)
        least = draw[method, n_components, script.KEPT_LEAST, 0]
        assert least == pytest.approx(curve.min(), abs=1e-3)
        share = draw[method, n_components, script.KEPT_ALMOST, 0]
        assert share == pytest.approx(np.mean(curve >= 0.99), abs=0.03)
    for method in (script.PGA, script.ALONG):
        gain = draw[script.gain_of(method), n_components, script.KEPT_MEAN, 0]
        assert gain == pytest.approx(means[method] - means[script.PCA])


def test_far_points_are_counted(script):
    cells = {tuple(cell[:4]): cell[4] for cell in script.one_draw(1.0, 0)}
    n_far = cells[script.PGA, 0, script.FAR, 0]
    X = script.points_of(1.0, 0)
    assert n_far == np.sum(np.linalg.norm(logarithms(X), axis=1) >= math.pi / 2) > 30


def test_summary_is_over_draws(script):
    cells = [[[script.PGA, 1, script.EIGENVALUE, 0, value]] for value in (0.1, 0.2, 0.6)]
    (row,) = script.summary(8.8, cells)
    assert row["mean"] == pytest.approx(0.3)
    assert row["deviation"] == pytest.approx(math.sqrt(0.07))
    assert row["n_repeats"] == 3
    assert script.error_of_mean(row) == pytest.approx(math.sqrt(0.07 / 3))
    assert script.distance(0.5, row) == pytest.approx(0.2 / math.sqrt(0.07))


# ---------------------------------------------------------------------------- modes


@pytest.mark.parametrize(
    ("spectrum", "number"), [([5, 4, 1], 2), ([9, 1], 1), ([1] * 10, 9), ([7, 1, 1, 1], 3)]
)
def test_modes_hold_their_share(script, spectrum, number):
    assert script.n_modes(np.array(spectrum, dtype=float)) == number


@pytest.mark.parametrize("features", ["as published", "standardised", "from 0 to 1"])
def test_modes_are_of_the_centred_kernel(script, kpga, features):
    load_or_skip("iris")
    X, _ = kpga.pages.labelled("iris")
    if features == "standardised":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    elif features == "from 0 to 1":
        X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    squares = distances(X) ** 2
    K = np.exp(-squares / (2 * squares.mean()))
    C = np.eye(len(X)) - 1 / len(X)
    values = np.linalg.eigvalsh(C @ K @ C)[::-1]
    found = {tuple(cell[:3]): cell[4] for cell in script.modes_of_set("iris", features)}
    for energy, power in (("eigenvalues", 1), ("their squares", 2)):
        held = np.cumsum(values**power) / np.sum(values**power)
        assert found[script.PCA, 0, f"modes, {energy}"] == np.sum(held < 0.9) + 1
    assert {key[0] for key in found} == {script.PCA, script.PGA}


def test_missing_votes_are_neither_yes_nor_no(script):
    votes = load_or_skip("vote").data
    filled = script.filled_vote()
    assert filled.shape == (435, 16)
    np.testing.assert_array_equal(filled == 0.5, np.isnan(votes))
    np.testing.assert_array_equal(filled[filled != 0.5], votes[~np.isnan(votes)])


def test_nearest_variant_is_that_with_the_fewest_sets_misplaced(script):
    paper = dict(zip("abcdefgh", (3, 4, 6, 9, 14, 15, 25, 31), strict=True))
    assert script.modes_misfit(paper) == (0, pytest.approx(0.0))
    assert script.modes_misfit(paper | {"a": 2})[0] == 1
    assert script.modes_misfit(paper | {"g": 18})[0] == 1
    assert script.modes_misfit(paper | {"g": 12})[0] == 2
    assert script.modes_misfit(paper | {"a": 9}) == (0, pytest.approx(1.0))


def test_page_is_written_without_the_sets(script, rows, monkeypatch, capsys):
    def absent(name):
        raise FileNotFoundError(f"place {name} there")

    monkeypatch.setattr(script, "labelled", absent)
    assert script.modes_of_set("iris", "as published") == []
    assert "iris is left out: place iris there" in capsys.readouterr().out
    text = script.page([row for row in rows if row["data"] == script.SPHERE])
    assert "set ORTHODROME_DATA" in text
    assert "8.8 fits the printed eigenvalues best" in text
    assert "left out" not in script.page(rows)
    votes = (*script.VOTES, "ecoli")
    text = script.page([row for row in rows if row["data"] not in votes])
    assert "Not found, and left out: vote, ecoli." in text


# ---------------------------------------------------------------------------- what is said


def test_paper_is_copied_right(script):
    assert script.PAPER_EIGENVALUES == {
        "kPCA": (0.106, 0.0961, 0.0113),
        "kPGA": (0.1246, 0.1211),
    }
    assert (script.PAPER_RANGE, script.PAPER_MEAN, script.PAPER_DEVIATION) == ((3, 15), 8.5, 4.5)
    assert (script.PAPER_ABOVE, script.PAPER_N_ABOVE) == (20, 2)


def test_page_and_numbers_belong_together(script, rows):
    assert (FOLDER / "sphere.md").read_text(encoding="utf-8") == script.page(rows)
    assert (FOLDER / "sphere.png").read_bytes().startswith(b"\x89PNG")
    assert "](sphere.png)" in script.page(rows)


def test_committed_rows_are_of_a_full_run(script, rows):
    size = script.Size()
    of_sphere = [row for row in rows if row["data"] == script.SPHERE]
    assert {row["setting"] for row in of_sphere} == set(size.concentrations)
    assert {row["n_repeats"] for row in of_sphere} == {50}
    of_sets = {(row["data"], row["setting"]) for row in rows} - {
        (script.SPHERE, value) for value in size.concentrations
    }
    assert of_sets == {(n, f) for n in (*script.NAMES, script.FILLED) for f in script.FEATURES}


def test_committed_rows_are_of_the_seeds(script, rows):
    """One cell again, from all of its draws."""
    draws = [script.points_of(8.8, draw) for draw in range(50)]
    values = [np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1] for X in draws]
    row = script.Findings(rows).row(8.8, script.PCA, 1, script.EIGENVALUE)
    assert row["mean"] == pytest.approx(np.mean(values), rel=1e-5)
    assert row["deviation"] == pytest.approx(np.std(values, ddof=1), rel=1e-5)


def test_best_concentration_follows_the_eigenvalues(script, rows):
    for method, values in script.PAPER_EIGENVALUES.items():
        for number, value in enumerate(values, start=1):
            where = {"setting": 2, "method": method, "components": number}
            where |= {"quantity": script.EIGENVALUE}
            rows = changed(rows, where, mean=value + 0.03, deviation=0.1)
    text = script.page(rows)
    assert (
        "- Of the concentrations tried, 2 fits the printed eigenvalues best: they are 0.30" in text
    )
    assert "| **2** | 0.30 |" in text
    where = {"setting": 2, "method": script.PGA, "components": 1, "quantity": script.EIGENVALUE}
    alone = [row for row in rows if row["setting"] == 2 or row["data"] != script.SPHERE]
    text = script.page(changed(alone, where, mean=0.1246 - 0.25))
    assert "2 fits the printed eigenvalues best" in text
    assert "farther than 2 are kPGA 1 (+2.5)." in text


def test_page_says_where_the_paper_is_missed(script, rows):
    assert "So it is in every draw at every concentration." in script.page(rows)
    where = {"setting": 10, "method": script.PGA, "quantity": script.RANK}
    assert "**Not so** in every draw" in script.page(changed(rows, where, mean=2.1))
    assert "**Not so** in every draw" in script.page(changed(rows, where, deviation=0.1))
    where = {"setting": 10, "method": script.gain_of(script.PGA), "quantity": script.KEPT_MEAN}
    text = script.page(changed(rows, where, mean=0.0001, deviation=0.001))
    assert "at 10 of 11 concentrations (kPGA) and at 11 (kPGA, geodesic)" in text
    where = {"setting": 8.8, "method": script.ALONG, "components": 2}
    text = script.page(changed(rows, where | {"quantity": script.KEPT_ALMOST}, mean=0.42))
    assert "kPGA, geodesic 42 % (at least 1.000)" in text


def test_order_is_that_of_tangent_coordinates(script, rows):
    def order(method, mean):
        where = {"setting": 8.8, "method": script.gain_of(method), "components": 2}
        made = script.compared(changed(rows, where | {"quantity": script.KEPT_MEAN}, mean=mean))
        (found,) = [each for each in made if each.kind == "order"]
        return found.finding

    assert order(script.PGA, 0.01) == "holds"
    assert order(script.PGA, -0.01) == "contradicted"
    # along the sphere nothing can be lost, and nothing is asked
    assert order(script.ALONG, -0.01) == "holds"


def test_ratio_and_modes_are_compared(script, rows):
    made = {each.what: each for each in script.compared(rows) if each.kind == "number"}
    (ratio,) = [each for what, each in made.items() if what.startswith("sum of the first two")]
    assert ratio.published == pytest.approx((0.1246 + 0.1211) / (0.106 + 0.0961))
    assert ratio.finding == "differs"
    target = dict(zip(script.NAMES, (3, 4, 6, 31, 25, 9, 14, 15), strict=True))
    for name, number in target.items():
        where = {"data": name, "setting": "standardised", "method": script.PGA}
        rows = changed(rows, where | {"quantity": "modes, their squares"}, mean=number)
    made = [each for each in script.compared(rows) if each.where == "§6.2"]
    assert [each.ours for each in made] == [
        6,
        2,
        8.5,
        pytest.approx(np.std([3, 4, 6, 9, 14, 15], ddof=1)),
    ]
    assert [each.finding for each in made] == ["agrees", "agrees", "agrees", "differs"]
    less = [row for row in rows if row["data"] != "ecoli"]
    assert not [each for each in script.compared(less) if each.where == "§6.2"]


def test_nearest_variant_is_named(script, rows):
    target = dict(zip(script.NAMES, (3, 4, 6, 31, 25, 9, 14, 15), strict=True))
    for name, number in target.items():
        where = {"data": name, "setting": "standardised", "method": script.PGA}
        rows = changed(rows, where | {"quantity": "modes, their squares"}, mean=number)
    line = next(x for x in script.page(rows).split("\n") if "Of the variants tried" in x)
    assert "the nearest is kPGA, features standardised, energy by their squares, of vote" in line
    assert "complete rows: 6 of 8 from 3 to 15" in line
    assert "more than 20 on vote (31), heart_statlog (25); mean of the others 8.5." in line


def test_quick_run_has_every_part(script, monkeypatch):
    monkeypatch.setattr(script, "FEATURES", {"as published": None})
    load_or_skip("iris")
    rows = script.measure(script.Size((4.0, 8.8), 2, ("iris",)), quick=True)
    assert {row["data"] for row in rows} == {script.SPHERE, "iris"}
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert "2 draws of each concentration" in script.page(rows)


def test_figure_draws_the_rows(script, rows):
    pytest.importorskip("matplotlib")
    found = script.Findings(rows)
    axes = script.figure(rows).axes
    assert [ax.get_title() for ax in axes[1:3]] == ["Q = 1", "Q = 2"]
    for number, ax in zip((1, 2), axes[1:3], strict=True):
        for line, method in zip(ax.lines, script.METHODS, strict=True):
            assert line.get_label() == method
            np.testing.assert_array_equal(
                line.get_ydata(), [row["mean"] for row in found.curve(8.8, method, number)]
            )
    levels = [line.get_ydata()[0] for line in axes[3].lines if line.get_linestyle() == ":"]
    assert levels == [value for values in script.PAPER_EIGENVALUES.values() for value in values]
