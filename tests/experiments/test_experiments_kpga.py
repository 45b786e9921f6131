"""Clustering in the experiments of the kPGA paper: starts, mixtures, and what is compared."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from orthodrome import GeodesicMixture
from orthodrome._core.canonical import canonical_rows
from orthodrome.cluster import mixture

# ---------------------------------------------------------------------------- Figure 5


@pytest.fixture(scope="module")
def scripts():
    with experiment_scripts("kpga", "clustering") as found:
        yield found


@pytest.fixture(scope="module")
def clustering(scripts):
    return scripts.clustering


def test_both_mixtures_begin_with_the_same_clusters(clustering, monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 3))
    X[7] = X[3]  # the mixture on the sphere sees this point once, with weight 2
    kept = []
    starts = mixture.initial_labels

    inverse = canonical_rows(X, np.ones(60)).inverse

    def spy(*arguments):
        found = starts(*arguments)
        kept.extend(labels[inverse] for labels in found)
        return found

    monkeypatch.setattr(mixture, "initial_labels", spy)
    GeodesicMixture(4, 2, n_init=clustering.N_STARTS, tol=0.1, random_state=5).fit(X)
    ours = clustering.starting_labels(X, 4, 5)
    assert len(ours) == len(kept) == clustering.N_STARTS
    for first, second in zip(ours, kept, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_flat_mixture_starts_from_the_moments_of_the_clusters(clustering, kind):
    random = np.random.default_rng(1)
    Z = random.standard_normal((40, 3)) @ random.standard_normal((3, 3))
    labels = np.arange(40) % 2
    covariances = np.array([np.cov(Z[labels == c], rowvar=False, bias=True) for c in (0, 1)])
    precisions = clustering.precisions(covariances, kind, 1e-9)
    for own, covariance in zip(precisions, covariances, strict=True):
        if kind == "full":
            np.testing.assert_allclose(own @ covariance, np.eye(3), atol=1e-6)
        elif kind == "diag":
            np.testing.assert_allclose(own * np.diagonal(covariance), 1, atol=1e-6)
        else:
            np.testing.assert_allclose(own * np.trace(covariance) / 3, 1, atol=1e-6)


def test_flat_mixture_keeps_the_likeliest_start(clustering):
    X = np.concatenate([np.random.default_rng(c).normal(6 * c, 1, (30, 2)) for c in range(3)])
    flat = clustering.Flat(X, 3, 0, 4)
    bad = np.arange(90) % 3
    flat.starts = [bad, *flat.starts]
    model = flat.fit(2, clustering.DEFAULT)
    Z = flat.coordinates[:, :2]
    alone = [flat._fit(Z, labels, clustering.DEFAULT, 1e-9) for labels in flat.starts]
    assert model.lower_bound_ == pytest.approx(max(each.lower_bound_ for each in alone), abs=1e-4)
    # the clusters that are there are found
    assert clustering.clustering_error(np.repeat([0, 1, 2], 30), model.predict(Z)) < 0.05


def test_posteriors_are_judged_by_both_rules(clustering):
    posterior = np.array([[0.6, 0.4], [0.4, 0.6], [0.45, 0.55], [0.9995, 0.0005], [1.0, 0.0]])
    model = SimpleNamespace(weights_=np.array([0.9, 0.1]), n_iter_=3)
    y = np.array([0, 1, 1, 0, 0])
    starts = [np.array([1, 0, 0, 1, 0]), np.array([0, 1, 0, 1, 0])]
    found = clustering.of_posterior(y, posterior, model, starts)
    assert found["error"] == 0
    assert found["error_by_density"] == pytest.approx(0.2)  # of the first point, 0.6/0.9 < 0.4/0.1
    assert found["saturated"] == pytest.approx(0.4)
    assert found["moved"] == pytest.approx(0.2)  # from the nearer start
