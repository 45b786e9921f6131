"""Clusters of directions by their coordinates: k-means and von Mises-Fisher mixtures."""

import warnings

import numpy as np
import pytest
import scipy.special
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from laws_cluster import same_partition
from laws_sphere import DTYPES, slow_karcher_mean, unit
from orthodrome import GeodesicMixture, HypersphericalKMeans, KernelKMeans
from orthodrome.persist import load, save
from orthodrome.sphere.von_mises_fisher import (
    DirectionMixture,
    concentrations_of,
    log_bessel,
    mean_resultant_length,
)

K, D = 12, 24
MODELS = {"flat": KernelKMeans(), "intrinsic": HypersphericalKMeans(centers="intrinsic")}
every_kind = pytest.mark.parametrize("kind", MODELS)


def model(kind, k=K, **options):
    """The estimator of a geometry, with one start."""
    given = {"n_clusters": k, "kernel": "cosine", "n_init": 1, "random_state": 0}
    return MODELS[kind].__class__(**MODELS[kind].get_params() | given | options)


def directions(n=6000, noise=0.12, seed=0, dtype=np.float64):
    """Unit vectors about K random directions, and their groups."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    centers = unit(np.random.default_rng(99).standard_normal((K, D)))
    return unit(centers[y] + noise * rng.standard_normal((n, D))).astype(dtype), y


def inputs_of(fitted, X):
    """The centres as vectors of the input space."""
    return fitted.cluster_centers_ @ (np.eye(D) if fitted.n_anchors_ else fitted.X_fit_)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("noise", [0.12, 0.5])  # groups that are apart, and that overlap
@every_kind
def test_equals_lloyd_on_the_gram_matrix(kind, noise, dtype):
    X, y = directions(500, noise)
    w = np.random.default_rng(1).integers(0, 4, len(X))
    init = np.array([X[y == c][0] for c in range(K)])
    ours = model(kind, init=init).fit(X.astype(dtype), sample_weight=w)
    exact = model(kind, solver="exact", init=init).fit(X, sample_weight=w)
    assert (ours.n_anchors_, exact.n_anchors_) == (D, None)
    if kind == "intrinsic" and dtype == np.float64:  # other steps may lead to another minimum
        for c, center in enumerate(inputs_of(ours, X)):
            members = (ours.labels_ == c) & (w > 0)
            mean = slow_karcher_mean(X[members], w[members] / w[members].sum())
            np.testing.assert_allclose(center, mean, rtol=0, atol=1e-8)
    if noise == 0.12 or (kind == "flat" and dtype == np.float64):
        np.testing.assert_array_equal(ours.labels_, exact.labels_)
        tol = 1e-8 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(inputs_of(ours, X), inputs_of(exact, X), rtol=0, atol=tol)
        assert ours.inertia_ == pytest.approx(exact.inertia_, rel=tol)
    assert ours.converged_
    assert np.all(np.diff([entry["inertia"] for entry in ours.history_]) <= 1e-5)
    np.testing.assert_array_equal(ours.predict(X.astype(dtype)), ours.labels_)


@every_kind
def test_many_rows_start_from_a_sample(kind, tmp_path):
    X, y = directions()
    ours = model(kind).fit(X)
    assert adjusted_rand_score(ours.labels_, y) == 1.0
    exact = model(kind, init=np.array([X[y == c][0] for c in range(K)])).fit(X)
    np.testing.assert_allclose(ours.inertia_, exact.inertia_, rtol=1e-9)
    order = np.random.default_rng(0).permutation(len(X))
    twice = model(kind).fit(np.tile(X[order], (2, 1)))
    np.testing.assert_array_equal(twice.labels_, np.tile(ours.labels_[order], 2))
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    da = pytest.importorskip("dask.array")
    kinds = {
        "memory map": model(kind, memory_budget="1MiB").fit(mapped),
        "batches": model(kind).fit([X[:2500], X[2500:]]),
        "dask": model(kind).fit(da.from_array(X, chunks=(2000, -1))),
        "single": model(kind).fit(X.astype(np.float32)),
    }
    for name, other in kinds.items():
        assert same_partition(np.asarray(other.labels_), ours.labels_), name
        assert other.inertia_ == pytest.approx(ours.inertia_, rel=1e-5), name
        assert other.converged_, name


@every_kind
def test_partial_fit_approaches_fit(kind):
    X, y = directions(8000)
    first = model(kind, n_init=5).partial_fit(X[:2000])
    np.testing.assert_array_equal(first.labels_, model(kind, n_init=5).fit(X[:2000]).labels_)
    ours = model(kind, n_init=5)
    for start in range(0, len(X), 2000):
        w = np.full(2000, 0.5)
        ours.partial_fit(X[start : start + 2000], sample_weight=w)
        assert len(ours.labels_) == 2000
        score = ours.score(X[start : start + 2000], sample_weight=w)
        assert -ours.inertia_ == pytest.approx(score, rel=0.02)
    whole = model(kind, n_init=5).fit(X)
    np.testing.assert_allclose(ours._masses_, 4000 / K, rtol=0.2)
    assert adjusted_rand_score(ours.predict(X), y) == 1.0
    assert ours.score(X) == pytest.approx(whole.score(X), rel=1e-3)
    if kind == "flat":  # means of all rows, because no label changed
        means = [X[ours.predict(X) == c].mean(axis=0) for c in range(K)]
        np.testing.assert_allclose(ours.cluster_centers_, means, atol=1e-10)
    before = ours.cluster_centers_.copy()
    parts = clone(ours).partial_fit(X).partial_fit([X[:200], X[200:500]])
    array = clone(ours).partial_fit(X).partial_fit(X[:500])
    np.testing.assert_allclose(parts.cluster_centers_, array.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(parts.labels_, array.labels_)
    with pytest.raises(ValueError, match="features"):
        ours.partial_fit(X[:, :5])
    np.testing.assert_array_equal(ours.cluster_centers_, before)


@every_kind
def test_partial_fit_does_not_discard_a_fit(kind):
    X, _ = directions(4000)
    whole = model(kind).fit(X)
    assert whole.partial_fit(X[:5])._masses_.sum() == 4005
    few = model(kind).fit(X[: K + 1])
    before = few.cluster_centers_
    with pytest.raises(ValueError, match="cannot continue this fit"):
        few.partial_fit(X)
    assert few.cluster_centers_ is before


def test_only_kernels_with_coordinates_have_partial_fit():
    anchors = KernelKMeans(kernel="linear", n_anchors=5)
    for other in (KernelKMeans(), HypersphericalKMeans(kernel="cosine"), anchors):
        assert not hasattr(other, "partial_fit")
    with pytest.raises(ValueError, match="must not exceed"):
        model("flat").partial_fit(directions(K - 1)[0])


@every_kind
def test_difficult_directions(kind):
    X, _ = directions(200)
    with pytest.raises(ValueError, match="must not exceed"):
        model(kind).fit(X[: K - 1])
    with pytest.raises(ValueError, match="NaN"):
        model(kind).fit(np.where(np.arange(200)[:, None] == 7, np.nan, X))
    with pytest.warns(Warning, match=r"found 2 of n_clusters=12"):
        few = model(kind).fit(np.repeat(X[:2], 60, axis=0))
    assert same_partition(few.labels_, np.repeat([0, 1], 60))
    assert few.inertia_ == pytest.approx(0, abs=1e-9)
    opposite = np.concatenate([X[:40], -X[:40]])
    two = model(kind, 2, n_init=5).fit(np.tile(opposite, (2, 1)))
    assert set(two.labels_) == {0, 1}
    if kind == "intrinsic":
        with pytest.raises(ValueError, match="at row 3 of X"):
            model(kind).fit(np.where(np.arange(200)[:, None] == 3, 0.0, X))
        with pytest.raises(ValueError, match="cancel"):
            model(kind, 1, init=X[:1]).fit(opposite)


@every_kind
def test_empty_clusters_restart(kind):
    X, _ = directions(2000)
    init = np.concatenate([np.repeat(X[:1], K - 1, axis=0), [-X[0]]])
    ours = model(kind, init=init).fit(X)
    assert len(np.unique(ours.labels_)) == K
    da = pytest.importorskip("dask.array")
    lazy = model(kind, init=init).fit(da.from_array(X, chunks=(700, -1)))
    assert same_partition(np.asarray(lazy.labels_), ours.labels_)


# ------------------------------------------------------------------ von Mises-Fisher mixtures

KAPPAS = np.array([20.0, 60.0, 200.0])


def vmf(n=600, d=20, seed=0):
    """Draws from three overlapping distributions, and their components."""
    means = unit(np.random.default_rng(5).standard_normal((3, d)))
    laws = map(scipy.stats.vonmises_fisher, means, KAPPAS, [seed] * 3)
    parts = [law.rvs(n) for law in laws]
    return np.concatenate(parts), np.repeat(np.arange(3), n)


def mixture(k=3, **options):
    given = {"kernel": "cosine", "density": "von-mises-fisher", "random_state": 0}
    return GeodesicMixture(k, **given | options)


@pytest.mark.parametrize("d", [2, 3, 60, 62, 64, 384, 5000])
def test_log_densities_and_concentrations(d):
    mean, x = np.eye(d)[:1], unit(np.random.default_rng(0).standard_normal((20, d)))
    kappas = np.array([0.01, 1.0, 28.0, 32.0, 500.0, 1e4, 1e7])
    for kappa in kappas:
        ours = DirectionMixture(np.ones(1), mean, np.array([kappa])).log_densities(x)[:, 0]
        with np.errstate(divide="ignore"):
            expected = scipy.stats.vonmises_fisher.logpdf(x, mean[0], kappa)
        if np.all(np.isfinite(expected)):  # SciPy's underflows for many dimensions
            np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-7)
    found = concentrations_of(mean_resultant_length(kappas, d), d)
    np.testing.assert_allclose(found, kappas, rtol=1e-6)
    assert concentrations_of(np.array([0.0]), d)[0] < 1e-5
    # the mean resultant length of concentrated data is about 1 - (d - 1)/(2κ)
    gaps = 1 - (1 - np.array([1e-8, 1e-9, 1e-10, 1e-11, 1e-12]))
    np.testing.assert_allclose(concentrations_of(1 - gaps, d), (d - 1) / (2 * gaps), rtol=1e-6)
    # the recurrence I_{ν-1} - I_{ν+1} = 2ν/x I_ν, for orders far from those of SciPy
    order = d / 2
    low, mid, high = (log_bessel(order + i, kappas) for i in (-1, 0, 1))
    left = 1 - np.exp(high - low)
    np.testing.assert_allclose(left, 2 * order / kappas * np.exp(mid - low), rtol=1e-6, atol=1e-7)


def test_mixture_against_a_plain_em():
    X, y = vmf()
    ours = mixture(tol=1e-10, max_iter=1000).fit(X)
    weights, means, kappas = ours.weights_, ours.means_, ours.concentrations_
    laws = map(scipy.stats.vonmises_fisher, means, kappas)
    logs = np.array([law.logpdf(X) for law in laws]).T + np.log(weights)
    evidence = scipy.special.logsumexp(logs, axis=1)
    np.testing.assert_allclose(ours.score_samples(X), evidence, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), np.exp(logs - evidence[:, None]), atol=1e-7)
    assert ours.lower_bound_ == pytest.approx(evidence.mean())
    memberships = ours.predict_proba(X)  # the result is a fixed point of EM
    sums = memberships.T @ X
    np.testing.assert_allclose(weights, memberships.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(means, unit(sums), atol=1e-4)
    lengths = np.linalg.norm(sums, axis=1) / memberships.sum(axis=0)
    np.testing.assert_allclose(mean_resultant_length(kappas, X.shape[1]), lengths, atol=1e-4)
    np.testing.assert_allclose(np.sort(kappas), KAPPAS, rtol=0.1)
    assert adjusted_rand_score(ours.labels_, y) > 0.99
    assert np.all(np.diff([entry["log_likelihood"] for entry in ours.history_]) > -1e-10)
    n_parameters = 3 * 19 + 3 + 2
    assert ours.aic(X) == pytest.approx(-2 * evidence.sum() + 2 * n_parameters)
    bics = [mixture(k).fit(X).bic(X) for k in (1, 2, 3, 4, 5)]
    assert np.argmin(bics) == 2
    points, labels = ours.sample(2000)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    assert adjusted_rand_score(ours.predict(points), labels) > 0.99


@pytest.mark.parametrize("kappa", [1e5, 1e6])
def test_concentrated_mixture_in_single_precision(kappa):
    X = np.concatenate([scipy.stats.vonmises_fisher(m, kappa, seed=0).rvs(500) for m in np.eye(2)])
    double, single = mixture(2).fit(X), mixture(2).fit(X.astype(np.float32))
    np.testing.assert_allclose(single.concentrations_, double.concentrations_, rtol=1e-3)
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, abs=1e-3)
    scores = single.score_samples(X.astype(np.float32))
    np.testing.assert_allclose(scores, double.score_samples(X), atol=0.05)


def test_mixture_of_all_kinds_of_rows(tmp_path):
    X, _ = vmf(2000)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    ours = mixture().fit(X, sample_weight=w)
    repeated = mixture().fit(np.repeat(X, w, axis=0))
    np.testing.assert_array_equal(repeated.labels_, np.repeat(ours.labels_, w))
    assert repeated.lower_bound_ == pytest.approx(ours.lower_bound_)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    da = pytest.importorskip("dask.array")
    for other in (
        mixture(memory_budget="1MiB").fit(mapped, sample_weight=w),
        mixture().fit([X[:2500], X[2500:]], sample_weight=w),
        mixture().fit(da.from_array(X, chunks=(2500, -1)), sample_weight=w),
        mixture(kernel="linear").fit(X.astype(np.float32), sample_weight=w),
        mixture(kernel="linear").fit(3 * X, sample_weight=w),
    ):
        assert same_partition(np.asarray(other.labels_), ours.labels_)
        assert other.lower_bound_ == pytest.approx(ours.lower_bound_, abs=1e-4)


def test_partial_fit_of_a_mixture_against_plain_online_em():
    X, _ = vmf()
    X, w = X[np.random.default_rng(0).permutation(len(X))], np.tile([1.0, 2.0, 0.5], 600)
    ours = mixture().partial_fit(X[:1000], sample_weight=w[:1000])
    first = mixture().fit(X[:1000], sample_weight=w[:1000])
    np.testing.assert_array_equal(ours.labels_, first.labels_)
    np.testing.assert_array_equal(ours.means_, first.means_)
    memberships = first.predict_proba(X[1000:]) * w[1000:, None]
    masses, sums = memberships.sum(axis=0) / w[1000:].sum(), memberships.T @ X[1000:]
    lengths = mean_resultant_length(first.concentrations_, X.shape[1])[:, None]
    before = first.weights_[:, None] * lengths * first.means_
    rate = (w[1000:].sum() / w.sum()) ** 0.8
    masses = (1 - rate) * first.weights_ + rate * masses
    sums = (1 - rate) * before + rate * sums / w[1000:].sum()
    lengths = np.linalg.norm(sums, axis=1)
    kappas = concentrations_of(lengths / masses, X.shape[1])
    assert ours.partial_fit(X[1000:], sample_weight=w[1000:]) is ours
    np.testing.assert_allclose(ours.weights_, masses, rtol=1e-9)
    np.testing.assert_allclose(ours.means_, sums / lengths[:, None], atol=1e-9)
    np.testing.assert_allclose(ours.concentrations_, kappas, rtol=1e-9)
    assert ours.lower_bound_ == pytest.approx(first.score(X[1000:], sample_weight=w[1000:]))
    np.testing.assert_array_equal(ours.labels_, ours.predict(X[1000:]))
    assert (ours.n_iter_, ours.history_) == (first.n_iter_ + 1, first.history_)


@pytest.mark.parametrize("dtype", DTYPES)
def test_partial_fit_of_a_mixture_approaches_fit(dtype, tmp_path):
    X, y = vmf(4000)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(dtype), y[order]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    ours, whole = mixture(), mixture().fit(X)
    for start in range(0, len(X), 600):
        ours.partial_fit(mapped[start : start + 600])
    scores = [adjusted_rand_score(fitted.predict(X), y) for fitted in (ours, whole)]
    assert scores[0] > scores[1] - 0.01
    assert ours.score(X) == pytest.approx(whole.score(X), abs=0.01)
    assert ours._mass_ == len(X)
    save(ours, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops").partial_fit(X[:600])
    np.testing.assert_array_equal(again.means_, ours.partial_fit(X[:600]).means_)
    da = pytest.importorskip("dask.array")
    lazy = again.partial_fit(da.from_array(X[600:1200], chunks=(250, -1)))
    ours.partial_fit([X[600:700], X[700:1200]])
    np.testing.assert_allclose(lazy.means_, ours.means_, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(lazy.labels_), ours.labels_)


def test_partial_fit_of_a_mixture_rejects_bad_batches():
    X, _ = vmf(50)
    ours = mixture().fit(X)
    before = ours.means_
    for batch, message in (
        (X[:, :5], "features"),
        (X[:0], "0 sample"),
        (np.where(np.arange(150)[:, None] == 7, np.nan, X), "NaN or infinity in row 7"),
        (np.where(np.arange(150)[:, None] == 7, 0.0, X), "at row 7 of X"),
    ):
        with pytest.raises(ValueError, match=message):
            ours.partial_fit(batch)
    assert ours.means_ is before
    with pytest.raises(ValueError, match="must not exceed"):
        mixture().partial_fit(X[:2])
    for other in (GeodesicMixture(), mixture(kernel="gaussian"), mixture(density="normal")):
        assert not hasattr(other, "partial_fit")
    normal = GeodesicMixture(1, 2, kernel="cosine", random_state=0).fit(X[:50])
    with pytest.raises(ValueError, match="cannot continue this fit"):
        normal.set_params(density="von-mises-fisher", n_modes="auto").partial_fit(X)


def test_difficult_mixtures_of_directions():
    X, _ = vmf(50)
    for options, message in (
        ({"kernel": "gaussian"}, "needs kernel='cosine' or 'linear'"),
        ({"n_modes": 2}, "n_modes='auto'"),
        ({"k": "auto"}, "a number as n_components"),
        ({"density": "kent"}, "density of GeodesicMixture"),
    ):
        with pytest.raises(ValueError, match=message):
            mixture(**options).fit(X)
    with pytest.raises(ValueError, match="space='embedding'"):
        mixture().fit(X).sample(space="embedding")
    with pytest.warns(ConvergenceWarning, match="shrank to the floor"):
        equal = mixture(2).fit(np.concatenate([np.repeat(X[:1], 30, axis=0), X[50:100]]))
    assert np.all(np.isfinite(equal.score_samples(X)))
    antipodal = mixture(1).fit(np.concatenate([X[:9], -X[:9]]))
    assert antipodal.concentrations_[0] < 1e-3  # uniform, whatever the mean
    cancelling = mixture(1).fit(np.tile(np.array([[1.0, 0.0], [-1.0, 0.0]]), (300, 1)))
    np.testing.assert_allclose(np.linalg.norm(cancelling.means_, axis=1), 1)
    assert cancelling.lower_bound_ == pytest.approx(-np.log(2 * np.pi))
    assert mixture(3, assignment="density", init_params="random").fit(X).converged_


CLOSE = "rounding errors of float32 may decide labels. Convert the data to float64"
DIRECTIONAL = [
    KernelKMeans(3, kernel="cosine", random_state=0),
    KernelKMeans(3, kernel="linear", random_state=0),
    HypersphericalKMeans(3, kernel="cosine", centers="intrinsic", random_state=0),
    GeodesicMixture(3, kernel="cosine", density="von-mises-fisher", random_state=0),
]


def three_close_clusters(distance, n):
    """Return unit vectors in three clusters that lie close together, and their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=n)
    center, *corners = np.eye(16)[:4]
    X = center + distance * np.array(corners)[labels]
    X += 0.05 * distance * rng.standard_normal((n, 16))
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.parametrize("model", DIRECTIONAL, ids=repr)
@pytest.mark.parametrize("distance", [1e-3, 3e-4, 1e-4, 1e-5])
def test_float32_is_never_wrong_without_a_warning(model, distance, n):
    X, labels = three_close_clusters(distance, n)
    model = clone(model).fit(X)
    assert same_partition(model.labels_, labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        single = clone(model).fit(X.astype(np.float32))
    messages = " ".join(str(each.message) for each in caught)
    warned = CLOSE in messages or "Convert the data to float64" in messages
    assert warned or same_partition(single.labels_, labels)
    assert warned or distance > 1e-4
    if distance == 1e-5 and isinstance(model, KernelKMeans):
        with pytest.warns(UserWarning, match=CLOSE):
            model.predict(X.astype(np.float32))


@pytest.mark.parametrize("model", DIRECTIONAL, ids=repr)
def test_ordinary_float32_directions_are_not_warned_about(model):
    X, labels = three_close_clusters(0.1, 1000)
    single = clone(model).fit(X.astype(np.float32))
    assert same_partition(single.labels_, labels)
    assert same_partition(single.predict(X.astype(np.float32)), labels)


def test_float32_rows_that_coincide_are_not_warned_about():
    corners = np.eye(5, dtype=np.float32)
    mixture = GeodesicMixture(5, kernel="cosine", density="von-mises-fisher", random_state=0)
    with pytest.warns(ConvergenceWarning, match="components 0, 1, 2, 3, 4 shrank"):
        mixture.fit(np.repeat(corners, 3, axis=0))
    with pytest.warns(ConvergenceWarning, match="found 5 of n_clusters=7 clusters"):
        KernelKMeans(7, kernel="cosine", random_state=0).fit(np.r_[corners, 2 * corners])
