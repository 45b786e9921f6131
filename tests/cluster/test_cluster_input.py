"""Clusterings of unusual data: the right answer or a clear error, never NaN."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from laws_cluster import LAPLACIANS, blobs, gaussian, graphs_only
from laws_clusterings import estimator, every_clustering, hard, placed
from laws_kmeans import KINDS, cloud
from orthodrome.eigen import Krylov
from orthodrome.kernels import Gaussian, Log, Normalized

# ------------------------------------------------------------------ degenerate data


@hard
def test_fewer_points_than_clusters(kind):
    for X, weights in ((blobs(4), None), (blobs(9), np.arange(9) < 4)):
        with pytest.raises(ValueError, match=r"n_clusters=5 .*must not exceed .* n_samples=4"):
            estimator(kind, 5).fit(X, sample_weight=weights)
    inits = ("k-means++", "farthest-first", "random", blobs(4)) if kind in KINDS else (None,)
    for init in inits:
        model = estimator(kind, 4, **({} if init is None else {"init": init})).fit(blobs(4))
        assert sorted(model.labels_) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "init"),
    [(kind, None) for kind in LAPLACIANS]
    + [
        (kind, init)
        for kind in KINDS
        for init in ("k-means++", "farthest-first", "random", "given")
    ],
)
def test_fewer_different_points_than_clusters(kind, init):
    """Each distinct point is a cluster, and a warning says so, for repeated and weighted rows."""
    X = 3 * blobs(4)
    init = np.repeat(X, 2, axis=0)[:6] if init == "given" else init
    model = estimator(kind, 6, **({} if init is None else {"init": init}))
    message = r"found 4 of n_clusters=6 clusters"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        repeated = clone(model).fit(np.repeat(X, 3, axis=0))
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ConvergenceWarning, match=message):
        weighted = model.fit(X, sample_weight=np.full(4, 3.0))
    assert sorted(weighted.labels_) == [0, 1, 2, 3]
    assert weighted.cluster_centers_.shape[0] == 4
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, 3))
    np.testing.assert_array_equal(repeated.predict(X), weighted.labels_)


class Broken(Gaussian):
    """A kernel of one's own, whose values are NaN."""

    def evaluate(self, a, b, out=None):
        return np.full_like(super().evaluate(a, b, out), np.nan)


def test_kernel_values_of_nan_raise():
    with pytest.raises(ValueError, match="Sums of kernel values are NaN or infinite"):
        estimator("flat", 3, kernel=Broken(sigma=1.0)).fit(blobs(40))


# ------------------------------------------------------------------ graphs


@graphs_only
def test_isolated_points_are_at_the_origin(laplacian):
    X = np.concatenate([blobs(30), [[1e4, 0, 0], [0, 1e4, 0]]])
    with pytest.warns(UserWarning, match=r"2 of the 32 .* have no similarity") as caught:
        model = estimator(laplacian).fit(X)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.embedding_[-2:], 0)
    np.testing.assert_array_equal(model.embed(X[-2:]), 0)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    plain = estimator(laplacian).fit(X[:-2])
    np.testing.assert_allclose(model.embedding_[:-2], plain.embedding_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.eigenvalues_, plain.eigenvalues_, rtol=1e-12)


@graphs_only
def test_a_loosely_connected_point_follows_its_neighbours(laplacian):
    """Its row of the eigenvectors is 1e-20 of the others: below the rounding of any solver."""
    X = np.concatenate([blobs(), [[27.0, 6.0, 0.0]]])
    assert np.sort(gaussian(X, sigma=1.5)[-1])[-2] < 1e-40
    for solver in ("dense", Krylov(1e-12, max_basis=1, block_size=3)):
        model = estimator(laplacian, solver=solver).fit(X)
        assert model.labels_[-1] == model.predict([[4.0, 1.0, 0.0]])[0]
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@graphs_only
def test_negative_degrees_name_the_row(laplacian):
    X = np.concatenate([np.full((5, 1), 2.0) + np.arange(5)[:, None], [[-3.0]]])
    with pytest.raises(ValueError, match=r"degree of row 5, .*is -60 \(one of 1 below 0\)"):
        estimator(laplacian, 2, kernel="linear").fit(X)
    assert estimator("kernel-pca", 2, kernel="linear").fit(X).labels_[-1] == 0
    model = estimator(laplacian, 2, kernel="linear").fit(np.abs(X))
    with pytest.raises(ValueError, match="degree of row 1 of the new points"):
        model.predict([[1.0], [-1.0]])


@graphs_only
def test_weights_that_are_not_counts(laplacian):
    X, shares = blobs(), np.full(150, 1 / 150)
    with pytest.raises(ValueError, match=r"weights below 1.*count copies"):
        estimator(laplacian).fit(X, sample_weight=shares)
    part = estimator("kernel-pca").fit(X, sample_weight=shares)
    whole = estimator("kernel-pca").fit(X)
    np.testing.assert_allclose(part.embedding_, whole.embedding_, rtol=0, atol=1e-10)


BAD = [
    *[(kind, {"init": "kmeans"}, r"init of \w+KMeans must be one of 'k-means") for kind in KINDS],
    *[(kind, {"init": np.ones((3, 2))}, r"init of .*2 features.* 3") for kind in KINDS],
    *[("flat", {"init": init}, "init of KernelKMeans") for init in (np.ones(3), None, 3)],
    ("flat", {"init": np.full((3, 3), np.nan)}, "init of .*NaN"),
    ("flat", {"init": np.ones((2, 3))}, "init of .* must have n_clusters=3 rows; got 2"),
    ("intrinsic", {"init": "bounding-box"}, "init of .* must be one of"),
    (
        "flat",
        {"kernel": "precomputed", "init": blobs(3)},
        "init of .* if the kernel is prec",
    ),
    ("preimage", {"centers": "mean"}, "centers of Hyper.* must be one of 'preimage', 'intrin"),
    *[
        ("preimage", {"kernel": kernel}, "needs a radial kernel .*intrinsic")
        for kernel in ("linear", "precomputed", Log(), Normalized(Gaussian(sigma=1.0)))
    ],
]


@pytest.mark.parametrize(("kind", "options", "message"), BAD, ids=str)
def test_invalid_parameters(kind, options, message):
    """`fit` raises, not the constructor, and leaves nothing fitted."""
    model = estimator(kind).set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(gaussian(blobs()) if "kernel" in options else blobs())
    assert {name for name in vars(model) if name.endswith("_")} <= {"n_features_in_"}
    with pytest.raises(NotFittedError):
        model.predict(blobs())


@every_clustering
def test_non_convergence_is_one_warning(kind):
    X, options, detail = cloud(120), {"max_iter": 1, "init": "random"}, r"\d+ of 120"
    if kind in LAPLACIANS:
        X, options = blobs(800), {"max_iter": 1, "solver": "krylov", "tol": 0}
        detail = "largest relative residual"
    elif kind == "mixture":
        options, detail = {"max_iter": 1, "tol": 0.0}, "mean log-likelihood"
    model = estimator(kind, 3 if kind in LAPLACIANS else 6, **options)
    message = rf"{type(model).__name__}.*: stopped at max_iter \({detail}.*Raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(X)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.n_iter_, model.converged_) == (1, False)
    if kind in KINDS:
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-10)
    else:
        assert np.all(np.isfinite(placed(model, X)))


# ------------------------------------------------------------------ laws


@every_clustering
def test_numbers_of_clusters_and_seeds(kind):
    """Clusters are numbered by their first point in sorted order; a seed decides random starts."""
    X = blobs()
    order = np.lexsort(X.T[::-1])
    for seed in range(3):
        model = estimator(kind, random_state=seed).fit(X)
        assert list(dict.fromkeys(model.labels_[order].tolist())) == [0, 1, 2]
    X = cloud(120, d=4)
    options = {"n_clusters": 6, "n_init": 1} | (
        {"init_params": "random"} if kind == "mixture" else {}
    )
    for make in (lambda seed: seed, np.random.RandomState, np.random.default_rng):
        fits = [estimator(kind, random_state=make(seed), **options).fit(X) for seed in (7, 7, 8)]
        np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
        assert not np.array_equal(fits[0].labels_, fits[2].labels_)
    estimator(kind, random_state=None).fit(X)
