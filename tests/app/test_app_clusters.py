"""The proposed number of clusters, and tables that are too large for exact methods."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_blobs, make_moons

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

import pandas as pd

from app_data import rows_of
from orthodrome import KernelSpectralClustering
from orthodrome.app import classification, clustering, models
from orthodrome.app.clustering import Evidence, _strength, propose_clusters
from orthodrome.app.models import Choice


@pytest.fixture
def table(here):
    """Write 300 rows in three groups; return the groups."""
    X, y = make_blobs(300, centers=3, n_features=4, random_state=0)
    names = np.array(["ash", "birch", "cedar"])[y]
    pd.DataFrame(X, columns=list("abcd")).assign(kind=names).to_csv("data.csv", index=False)
    return names


@pytest.fixture
def facts_of(run):
    """Return a function that runs a command and returns the summary and the notes."""

    def facts_of(*arguments):
        printed = run(*arguments, "--label", "kind", "--json")
        return json.loads(printed.out), printed.err

    return facts_of


def test_method_auto_fits_once(monkeypatch):
    """For curved clusters, the model that led to the choice is the result."""
    X = make_moons(200, noise=0.05, random_state=0)[0]
    choice = Choice("auto", parameters={"n_clusters": 2})
    expected = clustering.cluster(rows_of(X), replace(choice, method="spectral"))
    fits, fit = [], KernelSpectralClustering.fit
    monkeypatch.setattr(
        KernelSpectralClustering, "fit", lambda model, *data: (fits.append(1), fit(model, *data))[1]
    )
    found = clustering.cluster(rows_of(X), choice)
    assert len(fits) == 1
    assert found.files["clusters.csv"] == expected.files["clusters.csv"]
    assert any(note.startswith("Method: spectral clustering") for note in found.work.notes)


# ---------------------------------------------------------------------------- number of clusters


def test_strength_is_the_worst_fraction_of_pairs_kept():
    """Compare with a loop over pairs, for two groups that halves cannot confuse, and for noise."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 50])
    order = rng.permutation(40)
    assert _strength(points, order, 2) == 1.0
    halves = points[order[:20]], points[order[20:]]
    first, second = (KMeans(5, n_init=3, random_state=0).fit(half) for half in halves)
    expected = []
    for own, other, half in ((first, second, halves[0]), (second, first, halves[1])):
        predicted, fractions = other.predict(half), []
        for cluster in range(5):
            members = np.flatnonzero(own.labels_ == cluster)
            kept = [predicted[i] == predicted[j] for i in members for j in members if i != j]
            fractions.append(np.mean(kept) if kept else 0.0)
        expected.append(min(fractions))
    assert _strength(points, order, 5) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        *((make_blobs(300, centers=k, n_features=5, random_state=k)[0], k) for k in (1, 2, 4, 8)),
        (np.random.default_rng(0).uniform(size=(200, 2)), 1),
        (np.ones((50, 2)), 1),
        (np.eye(3), 1),
        (load_wine().data, 3),
        (load_iris().data, 3),
    ],
    ids=["1 blob", *(f"{k} blobs" for k in (2, 4, 8)), "uniform", "equal", "few", "wine", "iris"],
)
def test_proposed_number(X, expected):
    evidence = propose_clusters(rows_of(X), Choice("kernel-kmeans", standardize=len(X) == 178))
    assert evidence.n_clusters == expected
    assert f"-k {expected} was chosen: " in evidence.sentence()


def test_weak_evidence_is_called_weak():
    for second, k, words in ((0.69, 1, "badly"), (0.72, 2, "weak"), (0.78, 2, "largest number")):
        evidence = Evidence(np.array([1.0, second, 0.5]), np.zeros(3))
        assert evidence.n_clusters == k
        assert words in evidence.sentence()


def test_cluster_without_a_number(table, facts_of, here):
    facts, _ = facts_of("cluster", "data.csv")
    assert len(facts["sizes"]) == 3
    assert facts["error"] < 0.1
    assert len(facts["prediction_strength"]) == 10
    page = (here / "clustering/report.html").read_text("utf-8")
    assert "Number of clusters</h2>" in page
    assert "-k 3 was chosen" in page


# ---------------------------------------------------------------------------- large tables

LARGE = [
    *(("embed", method) for method in ("kpga", "kpca", "kpns")),
    *(("cluster", method) for method in ("kernel-kmeans", "kmeans", "mixture", "spectral")),
]


@pytest.mark.parametrize(("command", "method"), LARGE)
def test_large_tables_use_anchors(table, facts_of, monkeypatch, command, method):
    monkeypatch.setattr(models, "MAX_EXACT_ROWS", 299)
    monkeypatch.setattr(models, "_N_ANCHORS", 30)
    more = ("-k", 3) if command == "cluster" else ()
    facts, notes = facts_of(command, "data.csv", "--method", method, *more)
    assert "With 300 rows, the Gram matrix was approximated with 30 of them (anchors)." in notes
    assert ("% of the trace" in notes) == (method != "kpns")  # which does not measure it
    assert facts.get("error", 0.0) < 0.1


def test_large_tables_are_classified_by_a_sample(table, facts_of, monkeypatch, here):
    monkeypatch.setattr(classification, "MAX_ROWS", 100)
    monkeypatch.setattr(classification, "MIN_CLASS_ROWS", 40)
    facts, notes = facts_of("classify", "data.csv")
    assert "rows was used" in notes
    assert 100 <= facts["n_rows"] <= 120
    assert facts["accuracy"] > 0.9
    found = pd.read_csv(here / "classification/predictions.csv")
    assert found["kind"].value_counts().min() >= 40
    assert list(found["kind"]) == [table[int(row.split()[1]) - 1] for row in found["row"]]
    page = (here / "classification/report.html").read_text("utf-8")
    assert "training_sample(data, 0)" in page
