"""Mixtures on the sphere of Nyström features."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laws_cluster import blobs, same_partition
from orthodrome import GeodesicMixture, KernelPGA, load, save
from orthodrome.eigen import Nystroem
from orthodrome.gram import TiledGram
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, VeroneseWhitney

K = 3
KERNEL = Gaussian(sigma=3.0)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=150)
every_start = pytest.mark.parametrize("start", ["kernel-k-means", "k-means", "random"])
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])


def fit(X, weights=None, n_components=K, n_modes=2, **options):
    given = {"kernel": KERNEL, "solver": "nystroem", "n_init": 2, "random_state": 0, "tol": 1e-6}
    return GeodesicMixture(n_components, n_modes, **(given | options)).fit(X, sample_weight=weights)


def positive(n=150, dtype=np.float64, seed=0):
    """Blobs whose directions lie in a hemisphere."""
    return np.abs(blobs(n, dtype, seed)) + 0.1


def check_same(one, other, new, tol=1e-8):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=tol)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, abs=tol)
    np.testing.assert_allclose(one.predict_proba(new), other.predict_proba(new), atol=10 * tol)
    np.testing.assert_allclose(one.score_samples(new), other.score_samples(new), rtol=10 * tol)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2)], ids=["linear", "polynomial"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@every_start
def test_with_as_many_anchors_as_the_rank_it_is_the_exact_method(start, weights, kernel):
    X, new = positive(), positive(60, seed=1)
    options = {"kernel": Normalized(kernel), "init_params": start}
    ours = fit(X, weights, n_anchors=40, **options)
    exact = fit(X, weights, solver="dense", **options)
    assert ours.pga_.solver_ == "nystroem"
    assert ours.pga_.n_anchors_ == len(ours.pga_.X_fit_) < 12
    check_same(ours, exact, new)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_storage
def test_few_anchors_are_the_exact_method_on_their_gram_matrix(storage, dtype):
    """Whose points are the features of unit length."""
    X = blobs(dtype=dtype)
    ours = fit(X, n_anchors=20, storage=storage)
    k, L = ours.kernel_, ours.pga_.X_fit_.astype(np.float64)
    wide = X.astype(np.float64)
    G = k(wide, L) @ np.linalg.inv(k(L)) @ k(L, wide)
    lengths = np.sqrt(np.diagonal(G))
    exact = fit(G / np.outer(lengths, lengths), kernel="precomputed", solver="dense")
    assert same_partition(ours.labels_, exact.labels_)
    tol = 1e-6 if dtype == np.float64 else 1e-2
    assert ours.lower_bound_ == pytest.approx(exact.lower_bound_, abs=tol)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)
    assert ours.score(X) == pytest.approx(ours.lower_bound_, abs=tol)


def test_weights_are_repetition_and_order_does_not_matter():
    X, new = blobs(), blobs(50, seed=1)
    rows = np.repeat(np.arange(150), WEIGHTS)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    weighted, repeated = fit(X, WEIGHTS, n_anchors=30), fit(X[rows], n_anchors=30)
    np.testing.assert_array_equal(weighted.pga_.X_fit_, repeated.pga_.X_fit_)
    np.testing.assert_array_equal(repeated.labels_, weighted.labels_[rows])
    np.testing.assert_allclose(repeated.means_, weighted.means_, atol=1e-10)
    np.testing.assert_allclose(repeated.predict_proba(new), weighted.predict_proba(new), atol=1e-9)


def test_given_matrices_shapes_and_points_as_anchors():
    X, new = blobs(), blobs(50, seed=1)
    given = fit(KERNEL(X), kernel="precomputed", n_anchors=30)
    assert given.pga_.n_anchors_ == 30
    S = given._columns_[given.pga_.anchor_indices_]
    same = fit(X, solver=Nystroem(anchors=X[S]))
    assert same.pga_.anchor_indices_ is None
    assert same_partition(given.labels_, same.labels_)
    np.testing.assert_array_equal(
        same_partition(given.predict(KERNEL(new, X)), same.predict(new)), True
    )
    shapes = np.random.default_rng(0).standard_normal((60, 6, 2))
    model = fit(shapes, n_components=2, kernel=VeroneseWhitney(), n_anchors=25)
    np.testing.assert_array_equal(model.predict(shapes), model.labels_)


def test_where_it_stands_in_auto_and_what_is_refused():
    X = blobs()
    assert fit(X, solver="auto").pga_.n_anchors_ is None
    assert fit(X, solver="auto", n_anchors=20).pga_.n_anchors_ == 20
    with pytest.raises(ValueError, match="n_anchors of GeodesicMixture"):
        fit(X, n_anchors=0)


@every_start
def test_nothing_is_as_large_as_the_gram_matrix(start, monkeypatch):
    def refuse(*_):
        raise AssertionError("a product with the Gram matrix")

    monkeypatch.setattr(TiledGram, "_matmat", refuse)
    monkeypatch.setattr(TiledGram, "toarray", refuse)
    fit(blobs(), n_anchors=20, init_params=start)
    with pytest.raises(AssertionError, match="a product"):
        fit(blobs(), solver="dense")


def test_degenerate_data():
    with pytest.warns(ConvergenceWarning, match="shrank to the floor"):
        assert fit(np.full((1, 2), 3.0), n_components=1).labels_.tolist() == [0]
    two = np.repeat([[0.0, 0.0], [1.0, 1.0]], [5, 3], axis=0)
    ours = fit(two, n_components=1, n_anchors=20)
    assert ours.pga_.n_anchors_ == 2
    with pytest.raises(ValueError, match="must not exceed"):
        fit(two[:2], n_components=3)
    antipodes = np.array([[1.0, 0.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match=r"antipod|cancel"):
        fit(antipodes, n_components=1, kernel="linear")


def test_files_and_draws(tmp_path):
    X, new = blobs(), blobs(50, seed=1)
    model = fit(X, n_anchors=30)
    expected = model.predict_proba(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), expected)
    save(model, tmp_path / "model.orthodrome")
    np.testing.assert_array_equal(load(tmp_path / "model.orthodrome").predict_proba(new), expected)
    drawn, labels = model.sample(200, random_state=0)
    assert drawn.shape == (200, 3)
    assert np.mean(model.predict(drawn) == labels) > 0.9


@pytest.mark.parametrize("n_modes", [3, 0.99])
def test_coordinates_that_do_not_fit_are_refused(n_modes, monkeypatch):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    fits = []
    fit_pga = KernelPGA._fit_rows

    def noted(self, *args, **options):
        fits.append(self)
        return fit_pga(self, *args, **options)

    monkeypatch.setattr(KernelPGA, "_fit_rows", noted)
    model = GeodesicMixture(
        2, n_modes, n_anchors=20, n_init=1, memory_budget="64KiB", random_state=0
    )
    with pytest.raises(ValueError, match=r"coordinates of all 3,000 rows .* raise it"):
        model.fit([X[:1000], X[1000:]])
    assert len(fits) == (n_modes != 3)  # the number of modes is known before, or only after
