"""Baselines: the same numbers as scikit-learn, and sentences that say which is better."""

import json

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

import pandas as pd

from app_data import rows_of
from orthodrome.app.baselines import THIS, baseline_features, classification_lines, clustering_lines
from orthodrome.datasets import make_landmark_shapes
from orthodrome.spaces import procrustes_distance

SCALES = np.array([1.0, 100.0, 1.0, 1.0])


def write_blobs(path, noise, scales):
    """Write three groups in four dimensions, with their names; return them."""
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=60)
    X = scales * (3.0 * np.eye(4)[groups] + noise * rng.standard_normal((60, 4)))
    names = np.array(["ash", "birch", "cedar"])[groups]
    pd.DataFrame(X, columns=list("abcd")).assign(kind=names).to_csv(path, index=False)
    return X, names


def test_cluster_reports_scikit_learn(here, run):
    X, names = write_blobs("trees.csv", 1.0, SCALES)
    command = ("cluster", "trees.csv", "--label", "kind", "-k", 3)
    facts = json.loads(run(*command, "--quiet", "--json").out)
    standard = StandardScaler().fit_transform(X)
    found = {
        "k-means": KMeans(3, n_init=10, random_state=0).fit_predict(standard),
        "Gaussian mixture": GaussianMixture(3, reg_covar=1e-4, random_state=0).fit_predict(
            standard
        ),
    }
    for name, clusters in found.items():
        assert facts["silhouette"][name] == pytest.approx(silhouette_score(standard, clusters))
        index = adjusted_rand_score(names, clusters)
        assert facts["adjusted_rand"][name] == pytest.approx(index)
    printed = run(*command, "--quiet").out.splitlines()
    page = (here / "clustering/report.html").read_text("utf-8")
    assert [text for text in printed[:-3] if "k-means" in text and text not in page] == []
    assert f"{THIS} {facts['adjusted_rand'][THIS]:.3f}" in page


@pytest.mark.parametrize("scales", [SCALES, 1.0], ids=["standardised", "as given"])
def test_classify_reports_scikit_learn(here, run, scales):
    X, names = write_blobs("trees.csv", 2.0, scales)
    command = ("classify", "trees.csv", "--label", "kind", "--json")
    facts = json.loads(run(*command).out)
    scaling = [StandardScaler()] if np.ndim(scales) else []
    folds = StratifiedKFold(5, shuffle=True, random_state=0)  # of 12 rows each
    accuracy = cross_val_score(make_pipeline(*scaling, SVC()), X, names, cv=folds).mean()
    assert facts["baselines"]["support vector machine"] == pytest.approx(accuracy)
    majority = np.unique(names, return_counts=True)[1].max() / len(names)
    assert facts["majority"] == facts["baselines"]["majority class"] == pytest.approx(majority)
    facts = json.loads(run(*command, "--test", "trees.csv").out)
    accuracy = make_pipeline(*scaling, SVC()).fit(X, names).score(X, names)
    assert facts["baselines"]["support vector machine"] == pytest.approx(accuracy)
    assert "majority class" in (here / "classification/report.html").read_text("utf-8")


def test_tangent_coordinates_of_shapes():
    X, _ = make_landmark_shapes(20, variation=0.01, n_classes=1, random_state=0)
    data = rows_of(X)
    features = baseline_features(X, data)
    assert np.mean(np.var(features, axis=0)) == pytest.approx(1.0)
    turned = 3.0 * X @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 7.0
    np.testing.assert_allclose(baseline_features(turned, data), features, atol=1e-8)
    # distances between nearby shapes are proportional to Procrustes distances
    distances = np.linalg.norm(features[:, None] - features, axis=2)[np.triu_indices(20, 1)]
    ratios = distances / procrustes_distance(X)[np.triu_indices(20, 1)]
    np.testing.assert_allclose(ratios, ratios.mean(), rtol=0.02)


def test_which_baseline_is_better():
    data = rows_of(np.zeros((2500, 2)))
    scores = {"silhouette": {THIS: 0.5, "k-means": 0.495, "Gaussian mixture": 0.7}}
    (_, line) = clustering_lines(data, scores)
    assert line.endswith("Gaussian mixture is better, k-means is as good.")
    scores["adjusted_rand"] = {THIS: 0.9, "k-means": 0.1, "Gaussian mixture": 0.2}
    assert clustering_lines(data, scores)[-1] == (
        "By the adjusted Rand index: no baseline is as good."
    )
    labels = np.repeat(["a", "b"], 50)
    wrong = np.where(labels == "a", "b", "a")
    some = np.where(np.arange(100) < 3, "b", labels)  # 3 errors in 100 rows: not significant
    found = {THIS: some, "x": labels, "y": wrong}
    assert classification_lines(labels, found) == ["Baselines: x 100.0%, y 0.0%: x is as good."]
    found = {THIS: wrong, "x": labels, "y": some}
    assert classification_lines(labels, found)[0].endswith("x and y are better.")
