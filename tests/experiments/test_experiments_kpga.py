"""Clustering in the experiments of the kPGA paper: starts, mixtures, and what is compared."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from orthodrome import GeodesicMixture
from orthodrome.cluster import mixture
from real_data import REPOSITORY

# ---------------------------------------------------------------------------- Figure 5


@pytest.fixture(scope="module")
def scripts():
    with experiment_scripts("kpga", "clustering") as found:
        yield found


@pytest.fixture(scope="module")
def clustering(scripts):
    return scripts.clustering


@pytest.fixture(scope="module")
def rows(scripts):
    return scripts.pages.read_rows(REPOSITORY / "experiments/kpga/clustering.csv")


def test_part_of_each_class_is_drawn(clustering):
    y = np.repeat([2, 0, 1], [10, 30, 1])
    chosen = clustering.part_of_each_class(y, 0)
    assert np.bincount(y[chosen]).tolist() == [21, 1, 7]
    assert len(np.unique(chosen)) == len(chosen)
    assert not np.array_equal(chosen, clustering.part_of_each_class(y, 1))
    np.testing.assert_array_equal(chosen, clustering.part_of_each_class(y, 0))


def test_both_mixtures_begin_with_the_same_clusters(clustering, monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 3))
    X[7] = X[3]  # the mixture on the sphere sees this point once, with weight 2
    kept = []
    starts = mixture.starts_of

    def spy(init, points, canonical, *others):
        found = starts(init, points, canonical, *others)
        kept.extend(labels[canonical.inverse] for labels in found)
        return found

    monkeypatch.setattr(mixture, "starts_of", spy)
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


def test_one_as_good_as_the_other_is_not_contradicted(clustering, rows):
    def blood(of_pga):
        errors = {clustering.PGA: of_pga, clustering.PCA: 0.3}
        changed = [
            row | {"error": errors.get(row["method"], 0.25)}
            if row["data"] == "blood_transfusion"
            else row
            for row in rows
        ]
        (made,) = [each for each in clustering.compared(changed) if each.where == "Figure 5g"]
        assert "as good as, or before, spectral" in made.what
        return made.finding

    assert [blood(error) for error in (0.2, 0.25, 0.26)] == ["holds", "open", "contradicted"]


def test_saturation_is_from_where_it_stays(clustering, rows):
    shares = dict(
        zip(clustering.Size().modes, [0.2, 1, 0.5, 0.8, 0.9, 0.98, 0.98, *[1] * 23], strict=True)
    )
    changed = [
        {**row, "saturated": shares[row["n_modes"]]} if row["setting"] == "default" else row
        for row in rows
        if row["n_modes"] > 0
    ]
    found = clustering.Findings(changed)
    assert found.saturates_at("iris", clustering.PGA) == 8
    never = [{**row, "saturated": 0.98} for row in changed]
    assert clustering.Findings(never).saturates_at("iris", clustering.PGA) is None
