"""The experiments of the RKHS-GEO paper: splits, scores and summaries."""

import math

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from real_data import load_or_skip

SCRIPTS = ("clustering", "classification")


@pytest.fixture(scope="module")
def geo():
    with experiment_scripts("rkhs_geo", *SCRIPTS) as found:
        yield found


# ---------------------------------------------------------------------------- data


def test_only_complete_rows_are_clustered(geo):
    vote = load_or_skip("vote")
    X, y = geo.pages.labelled("vote")
    assert X.shape == (232, 16)
    whole = [n for n in range(len(vote.data)) if not np.isnan(vote.data[n]).any()]
    np.testing.assert_array_equal(X, vote.data[whole])
    np.testing.assert_array_equal(y, vote.target[whole])


def test_page_and_figure_are_of_the_rows_as_they_are_kept(geo, tmp_path):
    class Figure:
        def savefig(self, path, **_):
            path.write_bytes(b"drawn")

    def page(rows):
        return f"x = {rows[0]['x']}"

    rows = [{"x": 1 / 3}]
    geo.pages.publish(tmp_path, "made", rows, page, lambda rows: Figure(), quick=True)
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]
    geo.pages.publish(tmp_path, "made", rows, page, lambda rows: Figure(), quick=False)
    for folder in (tmp_path, tmp_path / "scratch"):
        assert (folder / "made.csv").read_text() == "x\n0.333333\n"
        assert (folder / "made.md").read_text() == "x = 0.333333"
        assert (folder / "made.png").read_bytes() == b"drawn"


# ---------------------------------------------------------------------------- Table 1


def test_accuracies_are_of_the_seeds_and_the_sigma(geo):
    load_or_skip("iris")
    clustering = geo.clustering
    row = clustering.accuracies("iris", clustering.BOX, -2, 3)
    X, y = geo.pages.labelled("iris")
    # σ² is the mean squared distance of all pairs
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert row["sigma"] == pytest.approx(math.sqrt(squares.mean()) / 4)
    accuracies = []
    for seed in range(3):
        model = clustering.HypersphericalKMeans(
            3,
            clustering.Gaussian(sigma=row["sigma"]),
            init="bounding-box",
            n_init=1,
            random_state=seed,
        ).fit(X)
        accuracies.append(100 * (1 - clustering.clustering_error(y, model.labels_)))
    assert row["accuracy"] == pytest.approx(np.mean(accuracies))
    assert row["deviation"] == pytest.approx(np.std(accuracies, ddof=1))
    assert row["largest"] == pytest.approx(max(accuracies))
    assert clustering.error_of_mean(row) == pytest.approx(row["deviation"] / math.sqrt(3))
    assert row["majority"] == pytest.approx(100 / 3)


# ---------------------------------------------------------------------------- Table 2


def test_split_is_half_and_standardised_by_its_training_points(geo, monkeypatch):
    load_or_skip("wine")
    classification, calls = geo.classification, []
    fit = classification.PerTurbo.fit

    def spy(self, X, y):
        calls.append((X, self.kernel.sigma, self.geodesic, self.alpha))
        return fit(self, X, y)

    monkeypatch.setattr(classification.PerTurbo, "fit", spy)
    split = classification.one_split("wine", classification.DEFAULT, 0, (-1, 0))
    found = {(method, power): accuracy for method, power, accuracy in split}
    keys = {(m, p) for m in classification.METHODS for p in (-1, 0, classification.CHOSEN)}
    assert set(found) == keys
    assert [(each[2], each[3]) for each in calls] == [
        (g, "loo") for g in (False, False, True, True)
    ]
    X, sigma = calls[1][:2]
    assert X.shape == (89, 13)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert sigma == pytest.approx(math.sqrt(2 * 13))  # all pairs, every feature of variance 1
    assert calls[0][1] == pytest.approx(sigma / 2)
    assert all(found[key] > 80 for key in found if key[1] == 0)


def test_training_scores_are_leave_one_out_and_folds(geo):
    load_or_skip("iris")
    X, y = geo.pages.labelled("iris")
    classification = geo.classification
    model = classification.classifier(classification.FLAT, 2.0, y, "loo").fit(X, y)
    assert classification.training_score(model, X, y) == model.loo_score_
    machine = classification.classifier(classification.SVM, 2.0, y, "loo")
    assert machine.gamma == pytest.approx(1 / 8)
    assert machine.get_params()["C"] == 250
    assert 0.9 < classification.training_score(machine.fit(X, y), X, y) < 1


def test_summary_pairs_the_kernels_within_splits(geo):
    load_or_skip("iris")
    c = geo.classification
    # of two σ the plain kernel is best with the first, the geodesic with the second
    values = {
        (c.SVM, 0): (90.0, 90.0),
        (c.SVM, 1): (90.0, 90.0),
        (c.FLAT, 0): (80.0, 60.0),
        (c.FLAT, 1): (50.0, 50.0),
        (c.GEODESIC, 0): (40.0, 40.0),
        (c.GEODESIC, 1): (81.0, 65.0),
        (c.FLAT, c.CHOSEN): (80.0, 60.0),
        (c.GEODESIC, c.CHOSEN): (81.0, 63.0),
    }
    splits = [{key: both[n] for key, both in values.items()} for n in range(2)]
    rows = {(row["method"], row["power"]): row for row in c.summary("iris", c.DEFAULT, splits)}
    chosen, best = (rows[c.DIFFERENCE, power] for power in (c.CHOSEN, c.BEST))
    assert (chosen["accuracy"], chosen["deviation"]) == (2, pytest.approx(math.sqrt(2)))
    assert (best["accuracy"], best["deviation"]) == (3, pytest.approx(math.sqrt(8)))  # of 1 and 5
    assert rows[c.FLAT, 0]["accuracy"] == 70
    assert rows[c.SVM, 0]["n_repeats"] == 2
