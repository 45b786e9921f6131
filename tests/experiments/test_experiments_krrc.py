"""The experiment of the KRRC paper: what is run, counted and said, and what is committed."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from experiment_scripts import experiment_scripts
from orthodrome.kernels import VeroneseWhitney
from real_data import REPOSITORY, load_or_skip

FOLDER = REPOSITORY / "experiments/krrc"


@pytest.fixture(scope="module")
def krrc():
    with experiment_scripts("krrc", "passiflora") as found:
        yield found


@pytest.fixture(scope="module")
def committed(krrc):
    return krrc.pages.read_rows(FOLDER / "passiflora.csv")


def claims_of(krrc, rows):
    return [line for line in krrc.passiflora.page(rows).split("\n") if line.startswith("- ")]


def test_page_and_numbers_belong_together(krrc, committed):
    text = krrc.passiflora.page(committed)
    assert (FOLDER / "passiflora.md").read_text(encoding="utf-8") == text
    for name in ("passiflora", "passiflora_classes", "passiflora_modes"):
        assert f"]({name}.png)" in text
        assert (FOLDER / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_committed_rows_are_of_a_full_run(krrc, committed):
    size = krrc.passiflora.Size()
    assert {(row["n_each"], row["run"], row["method"]) for row in committed} == {
        (n_each, run, method)
        for n_each, n_runs in size.runs
        for run in range(n_runs)
        for method in krrc.passiflora.METHODS
    }
    assert min(n_runs for n, n_runs in size.runs if n in krrc.passiflora.SIZES) >= 100


def test_measures_are_those_of_the_paper(krrc):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=60)
    predicted = np.where(rng.random(60) < 0.7, y, rng.integers(4, size=60))
    counts = confusion_matrix(y, predicted)
    true = np.diag(counts)
    false_positive, false_negative = counts.sum(axis=0) - true, counts.sum(axis=1) - true
    precision, recall = true / (true + false_positive), true / (true + false_negative)
    p, r = precision.mean(), recall.mean()
    expected = {
        "precision": p,
        "recall": r,
        "f1": 2 * p * r / (p + r),
        "f1_classes": np.mean(2 * precision * recall / (precision + recall)),
        "accuracy": np.mean((60 - false_positive - false_negative) / 60),
    }
    assert krrc.passiflora.measured(y, predicted) == pytest.approx(expected)


def test_split_is_sixty_percent_of_each_class_and_the_draw_is_within(krrc):
    load_or_skip("passiflora")
    X, y = krrc.passiflora.leaves()
    split = krrc.passiflora.Split.of(X, y, 10, 3)
    assert not set(split.train) & set(split.test)
    assert len(split.train) + len(split.test) == len(y) == 3319
    for label in np.unique(y):
        whole = np.sum(y == label)
        assert np.sum(y[split.train] == label) == round(0.6 * whole)
        assert np.sum(y[split.drawn] == label) == 10
    assert set(split.drawn) < set(split.train)
    assert set(split.rest) == set(split.train) - set(split.drawn)
    again = krrc.passiflora.Split.of(X, y, 10, 4)
    assert not np.array_equal(split.train, again.train)


def test_every_method_learns_from_the_same_leaves_and_chooses_on_the_rest(krrc, monkeypatch):
    load_or_skip("passiflora")
    p = krrc.passiflora
    seen = []
    ridge, machine = p.KernelRidgeRegressionClassifier.fit, p.SVC.fit

    def spy_ridge(self, X, y):
        fitted = ridge(self, X, y)
        seen.append(X[fitted.support_])
        assert len(X) == 1992  # all of the training part count in the choice
        return fitted

    def spy_machine(self, X, y):
        seen.append(X)
        return machine(self, X, y)

    monkeypatch.setattr(p.KernelRidgeRegressionClassifier, "fit", spy_ridge)
    monkeypatch.setattr(p.SVC, "fit", spy_machine)
    monkeypatch.setitem(
        p.RUNS, p.SVM_VW, p.searched({"sigma": (0.5, 1.0), "penalty": (10.0,)}, p.shape_machine)
    )
    rows = p.one_split(10, 0, (p.VWG, p.RULE, p.SVM_VW))
    first = sorted(map(tuple, seen[0]))
    assert len(seen) == 5  # the draw, two ridges, two machines
    for each in seen[1:]:
        assert sorted(map(tuple, each)) == first
    rule = VeroneseWhitney().fit(np.array(first)).sigma_
    assert rows[2]["sigma"] in (pytest.approx(0.5 * rule), pytest.approx(rule))
    assert rows[1]["sigma"] == pytest.approx(rows[0]["sigma"], rel=3)
    assert all(row["f1"] > 0.6 for row in rows)


def test_search_takes_what_the_rest_says(krrc):
    class Constant:
        def __init__(self, penalty):
            self.penalty = penalty

        def fit(self, X, y):
            assert len(y) == 2
            return self

        def score(self, X, y):
            assert len(y) == 3
            return -abs(self.penalty - 3)

        def predict(self, X):
            return np.full(len(X), self.penalty)

    split = krrc.passiflora.Split(np.arange(5), np.arange(5, 9), np.arange(2), 1, 0)
    run = krrc.passiflora.searched({"penalty": (2.0, 2.9, 5.0)}, Constant)
    X = np.random.default_rng(0).normal(size=(9, 8))
    predicted, chosen = run(X, np.zeros(9), split)
    assert chosen == {"penalty": 2.9}
    assert list(predicted) == [2.9] * 4


def test_page_follows_the_numbers(krrc, committed):
    p = krrc.passiflora

    def lines(changes):
        return claims_of(
            krrc,
            [{**row, "f1": row["f1"] + changes.get(row["method"], 0.0)} for row in committed],
        )

    plain, worse = lines({}), lines({p.VWG: -0.3})
    assert "**no**" not in " ".join(line for line in plain if ": F1 0" in line)
    assert sum("**no**" in line for line in worse) == 2  # the mean of the classes is as it was
    better = lines({p.GLM: 0.5})
    order = [line for line in better if line.startswith("- By F1")]
    assert all(f": {p.GLM};" in line for line in order)
    behind = [line for line in better if "Within the same splits" in line]
    assert all(f"; behind {p.GLM}" in line or f"behind {p.GLM};" in line for line in behind)


def test_published_numbers_are_copied_right(krrc):
    # of the printed table, the best in each column is the VW Gaussian
    for n_each in krrc.passiflora.SIZES:
        best = max(
            (key for key in krrc.passiflora.PAPER if key[1] == n_each),
            key=lambda key: krrc.passiflora.PAPER[key][2],
        )
        assert best == (krrc.passiflora.VWG, n_each)
    for precision, recall, f1, accuracy in krrc.passiflora.PAPER.values():
        assert f1 <= 2 * precision * recall / (precision + recall)
        assert accuracy > f1


def test_figure_draws_every_method(krrc, committed):
    pytest.importorskip("matplotlib")
    p = krrc.passiflora
    axes = p.figure(committed).axes
    assert len(axes) == len(p.SIZES) + 1
    for ax in axes[:-1]:
        assert [label.get_text() for label in ax.get_yticklabels()] == list(p.METHODS[::-1])
    drawn = {line.get_label(): line.get_ydata() for line in axes[-1].lines}
    found = p.Findings(committed)
    np.testing.assert_allclose(drawn[p.VWG], [found.mean(p.VWG, n, "f1") for n in found.sizes])


def test_no_choice_is_held_back_by_its_grid(krrc, committed):
    p = krrc.passiflora
    found = p.Findings(committed)
    for n_each in found.sizes:
        most = max(q for q in p.N_COMPONENTS if q < 7 * n_each)
        assert np.median(found.values(p.KFA, n_each, "n_components")) < most
        for method in (p.VWG, p.CG, p.RIE, p.SVM, p.SVM_VW, p.GLM):
            chosen = found.values(method, n_each, "penalty").astype(float)
            grid = {p.SVM: p.PENALTIES, p.SVM_VW: p.PENALTIES, p.GLM: p.RIDGES}
            low, high = (f(grid.get(method, (1e-8, 10.0))) for f in (min, max))
            assert low < np.median(chosen) < high, (method, n_each)
