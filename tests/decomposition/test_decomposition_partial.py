"""Kernel PCA of batches, one after the other: the order and the cuts do not matter."""

import copy
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from laws_decomposition import assert_same, same_signs
from orthodrome import KernelPCA, KernelPGA, load, save
from orthodrome.decomposition.partial import PartialFit
from orthodrome.eigen import FeatureMoments, Nystroem
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial

zarr = pytest.importorskip("zarr")

N, D, K = 2_000, 4, 3


def data(dtype=np.float64, n=N):
    random = np.random.default_rng(5)
    return (random.gumbel(size=(n, D)) * [2, 1, 0.7, 0.5]).astype(dtype)


def model(kernel=None, anchors=None, **arguments):
    """With anchors and a scale that are given, so that no row waits."""
    points = data()[::40] if anchors is None else anchors
    kernel = Gaussian(sigma=2.5) if kernel is None else kernel
    return KernelPCA(K, kernel=kernel, solver=Nystroem(anchors=points), **arguments)


def in_batches(estimator, X, n_batches=100, seed=0, weights=None):
    order = np.random.default_rng(seed).permutation(len(X))
    for rows in np.array_split(order, n_batches):
        estimator.partial_fit(X[rows], sample_weight=None if weights is None else weights[rows])
    return estimator


def check_same(ours, whole, X, tol):
    """The same but for signs, which a stream takes from the anchors."""
    assert_same(ours.eigenvalues_, whole.eigenvalues_, tol)
    assert_same(ours.explained_variance_ratio_, whole.explained_variance_ratio_, tol)
    Z = ours.transform(X)
    assert_same(Z, whole.transform(X) * same_signs(Z, whole.transform(X)), tol)
    assert ours.score(X) == pytest.approx(whole.score(X), rel=10 * tol)
    error = whole.history_[0]["trace_error"]
    assert ours.history_[0]["trace_error"] == pytest.approx(error, abs=tol)
    assert_same(ours.residuals_ + ours.eigenvalues_, whole.residuals_ + ours.eigenvalues_, tol)


# ------------------------------------------------------------------ the law


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(sigma=2.5), Linear(), Polynomial(degree=2)])
def test_a_hundred_shuffled_batches_are_one_fit(kernel, weighted, seed):
    X = data()
    weights = np.random.default_rng(1).integers(0, 4, N).astype(float) if weighted else None
    whole = model(kernel).fit(X, sample_weight=weights)
    ours = in_batches(model(kernel), X, 100, seed, weights)
    assert ours.n_samples_seen_ == N
    check_same(ours, whole, X, 1e-8)


def test_far_from_the_origin_no_digits_are_lost():
    """Uncentred sums would lose twelve of them."""
    X = data() + 1e6
    whole = model(Linear(), X[::40]).fit(X)
    ours = in_batches(model(Linear(), X[::40]), X)
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-8)


def test_float32():
    X = data(np.float32)
    ours = in_batches(model(anchors=X[::40]), X, 30)
    whole = model(anchors=X[::40]).fit(X)
    assert ours.eigenvalues_.dtype == ours.transform(X).dtype == np.float32
    check_same(ours, whole, X, 1e-4)


def test_batches_of_one_row_and_sparse_ones():
    X = np.maximum(data(n=300), 0)
    whole = model(anchors=X[::10]).fit(X)
    check_same(in_batches(model(anchors=X[::10]), X, 300), whole, X, 1e-8)
    S = scipy.sparse.csr_array(X)
    ours = model(anchors=S[::10])
    for start in range(0, 300, 50):
        ours.partial_fit(S[start : start + 50])
    check_same(ours, model(anchors=S[::10]).fit(S), S, 1e-8)


def test_late_batches_change_the_result_as_they_change_a_fit():
    X = data()
    late = data(n=600) @ np.diag([0.2, 0.5, 3, 1]) + [0, 3, 0, -2]
    ours = in_batches(model(), X)
    before = ours.explained_variance_ratio_.copy()
    in_batches(ours, late, 20)
    both = np.concatenate([X, late])
    assert np.abs(ours.explained_variance_ratio_ - before).max() > 0.01
    check_same(ours, model().fit(both), both, 1e-8)


def test_moments_of_parts_are_those_of_all():
    random = np.random.default_rng(2)
    F, w = random.standard_normal((50, 3)) + 100, random.random(50)

    def moments(rows):
        f, v = F[rows], w[rows]
        mean = np.average(f, axis=0, weights=v)
        scatter = (f - mean).T @ (v[:, None] * (f - mean))
        return FeatureMoments(v.sum(), mean, scatter, v.sum(), v.sum(), v.sum())

    whole = moments(slice(None))
    parts = [moments(slice(i, i + 1)) for i in range(50)]
    for order in (range(50), random.permutation(50)):
        total = parts[order[0]]
        for i in order[1:]:
            total = total.with_part(parts[i])
        assert_same(total.mean, whole.mean, 1e-14)
        assert_same(total.scatter, whole.scatter, 1e-12)
        assert total.count == pytest.approx(whole.count)


# ------------------------------------------------------------------ the first rows


def test_anchors_come_from_the_first_rows_and_stay():
    X = data()
    ours = KernelPCA(K, n_anchors=20, random_state=0)
    for start in range(0, 160, 40):
        ours.partial_fit(X[start : start + 40])
        seen = X[: start + 40]
        assert ours.transform(X[:5]).shape == (5, K)  # on what there is
        alone = KernelPCA(K, solver="nystroem", n_anchors=20, random_state=0).fit(seen)
        check_same(ours, alone, seen, 1e-8)
        assert np.array_equal(ours.anchor_indices_, alone.anchor_indices_)
    anchors, sigma = ours.X_fit_, ours.kernel_.sigma_
    for start in range(160, N, 230):
        ours.partial_fit(X[start : start + 230])
    assert np.array_equal(ours.X_fit_, anchors)
    assert ours.kernel_.sigma_ == sigma
    whole = model(Gaussian(sigma=sigma), anchors).fit(X)
    check_same(ours, whole, X, 1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_wait_are_copies(weighted):
    X, w = data(n=90), np.random.default_rng(0).uniform(size=90)
    ours = KernelPCA(2, n_anchors=20, random_state=0)
    buffer, weights = np.empty((30, D)), np.empty(30)
    for start in range(0, 90, 30):
        buffer[:], weights[:] = X[start : start + 30], w[start : start + 30]
        ours.partial_fit(buffer, sample_weight=weights if weighted else None)
    buffer[:] = weights[:] = 0
    whole = KernelPCA(2, "gaussian", solver="nystroem", n_anchors=20, random_state=0)
    check_same(ours, whole.fit(X, sample_weight=w if weighted else None), X, 1e-8)


@pytest.mark.parametrize("wrapped", [False, True])
def test_given_points_wait_only_for_the_scale(wrapped):
    X = data()
    ours = model(Normalized(Gaussian()) if wrapped else Gaussian()).partial_fit(X[:100])
    assert len(ours._partial_.rows) == 1
    ours.partial_fit(X[100:])
    assert not ours._partial_.rows
    scale = (ours.kernel_.kernel_ if wrapped else ours.kernel_).sigma_
    assert scale == pytest.approx(Gaussian().fit(X).sigma_)
    assert not model().partial_fit(X[:1])._partial_.rows


def test_memory_does_not_grow_with_the_rows():
    ours = model().partial_fit(data(n=10))
    few = len(pickle.dumps(ours._partial_))
    for _ in range(5):
        ours.partial_fit(data())
    assert len(pickle.dumps(ours._partial_)) == pytest.approx(few, abs=100)


# ------------------------------------------------------------------ other input


def test_iterators_lists_and_zarr_arrays_are_read_once(tmp_path):
    X = data()
    weights = np.random.default_rng(3).random(N)
    whole = model().partial_fit(X)
    cuts = [X[:3], X[3:1000], X[1000:]]
    check_same(model().partial_fit(iter(cuts)), whole, X, 1e-10)
    stored = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=X.shape, chunks=(300, D), dtype=X.dtype
    )
    stored[:] = X
    check_same(model().partial_fit(stored), whole, X, 1e-10)
    weighted = model().partial_fit(X, sample_weight=weights)
    check_same(model().partial_fit(cuts, sample_weight=weights), weighted, X, 1e-10)
    with pytest.raises(ValueError, match="not with an iterator"):
        model().partial_fit(iter(cuts), sample_weight=weights)
    with pytest.raises(ValueError, match=r"must have shape \(2000,\)"):
        model().partial_fit(cuts, sample_weight=np.append(weights, 1.0))


# ------------------------------------------------------------------ failures


BAD = {
    "missing": lambda X: np.where(np.arange(len(X))[:, None] == 3, np.nan, X),
    "narrow": lambda X: X[:, :-1],
    "late": lambda X: iter([X, X[:, :-1]]),
    "huge": lambda X: 1e200 * X,
    "weights": lambda X: X,
}


@pytest.mark.parametrize("rows", [30, N])
@pytest.mark.parametrize("fault", BAD)
def test_a_batch_that_fails_changes_nothing(fault, rows):
    X = data()
    ours = KernelPCA(K, n_anchors=20, random_state=0).partial_fit(X[:rows])
    for computed in (False, True):
        if computed:
            ours.transform(X[:2])
        before, names = pickle.dumps(ours._partial_), set(vars(ours))
        weights = -np.ones(10) if fault == "weights" else None
        with pytest.raises(ValueError, match=r"NaN|features|negative|so large|same shape"):
            ours.partial_fit(BAD[fault](X[:10]), sample_weight=weights)
        assert pickle.dumps(ours._partial_) == before
        assert set(vars(ours)) == names
        assert ours.n_samples_seen_ == rows
    if fault == "narrow":  # nobody knows yet
        return
    fresh = KernelPCA(K)
    with pytest.raises(ValueError, match=r"NaN|features|negative|so large|same shape"):
        fresh.partial_fit(BAD[fault](X[:10]), sample_weight=weights)
    assert not hasattr(fresh, "n_features_in_")
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), "gaussian", "linear", "poly"])
def test_a_batch_that_is_too_large_is_refused_where_it_comes(kernel):
    """Before it waits beside others, and makes them all unusable."""
    X = data(n=40)
    ours = KernelPCA(K, kernel, random_state=0).partial_fit(X[:20])
    with pytest.raises(ValueError, match=r"row 20 .*so large"):
        ours.partial_fit(1e200 * X[20:])
    ours.partial_fit(X[20:])
    at_once = KernelPCA(K, kernel, random_state=0).partial_fit(X)
    np.testing.assert_array_equal(ours.eigenvalues_, at_once.eigenvalues_)


def test_a_batch_of_no_weight_counts_for_nothing():
    X, weights = data(n=60), np.ones(60)
    weights[20:40] = 0
    ours = KernelPCA(K, random_state=0).partial_fit(X[20:40], sample_weight=np.zeros(20))
    ours.partial_fit([X[:20], X[20:40], X[40:]], sample_weight=weights)
    at_once = KernelPCA(K, random_state=0).partial_fit(X[weights > 0])
    np.testing.assert_allclose(ours.eigenvalues_, at_once.eigenvalues_, rtol=1e-9)
    assert ours.n_samples_seen_ == 80
    alone = KernelPCA(K).partial_fit(X[20:40], sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="All rows that KernelPCA has seen have the weight 0"):
        alone.transform(X)


def test_a_missing_value_is_named_by_its_row_in_the_stream():
    X = data()
    ours = model().partial_fit(X[:1000])
    bad = X[1000:].copy()
    bad[34] = np.inf
    with pytest.raises(ValueError, match=r"row 1034\."):
        ours.partial_fit(bad)


def test_refusals_say_what_to_do():
    X = data(n=50)
    with pytest.raises(AttributeError, match="partial_fit"):
        KernelPCA(2, solver="krylov").partial_fit(X)
    gone = model().partial_fit(X).set_params(solver="dense")
    assert not hasattr(gone, "partial_fit")
    with pytest.raises(ValueError, match="needs solver='nystroem'"):
        gone.transform(X)
    with pytest.raises(ValueError, match="precomputed"):
        KernelPCA(2, kernel="precomputed").partial_fit(X @ X.T)
    with pytest.raises(ValueError, match="anchors as points"):
        KernelPCA(2, solver=Nystroem(anchors=[1, 2])).partial_fit(X)
    assert not hasattr(KernelPGA(solver="dense"), "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        KernelPGA(solver=Nystroem(sphere="angles")).partial_fit(X)
    changed = model().partial_fit(X).set_params(n_components="many")
    with pytest.raises(ValueError, match=r"n_components of KernelPCA must be .* got 'many'"):
        changed.transform(X)


# ------------------------------------------------------------------ the rest of the protocol


def test_fit_starts_anew_and_so_does_a_clone():
    X = data()
    ours = model().partial_fit(X + 1)
    ours.fit(X)
    assert not hasattr(ours, "n_samples_seen_")
    check_same(ours, model().fit(X), X, 1e-12)
    ours.partial_fit(X)
    assert ours.n_samples_seen_ == N
    check_same(ours, model().fit(X), X, 1e-8)
    assert not hasattr(ours, "embedding_")
    assert not hasattr(clone(ours), "n_samples_seen_")


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("rows", [40, 1000])
def test_saved_and_gone_on_with(computed, rows, tmp_path):
    X = data()

    def begun():
        return KernelPCA(K, n_anchors=20, random_state=0).partial_fit(X[:rows])

    ours = begun()
    if computed:
        ours.transform(X[:2])
    save(ours, tmp_path / "model.orthodrome")
    expected = begun().partial_fit(X[rows:]).transform(X)
    for other in (
        pickle.loads(pickle.dumps(ours)),
        load(tmp_path / "model.orthodrome"),
        copy.deepcopy(ours),
    ):
        assert np.array_equal(other.partial_fit(X[rows:]).transform(X), expected)
        assert other.n_samples_seen_ == N


def test_back_to_inputs():
    X = data()
    ours = in_batches(model(), X)
    whole = model().fit(X)
    Z = whole.transform(X[:4])
    signs = same_signs(ours.transform(X), whole.transform(X))
    assert_same(ours.inverse_transform(Z * signs), whole.inverse_transform(Z), 1e-5)
    for kernel, tol in (("linear", 1e-8), (Polynomial(degree=2), 1e-5)):
        ours, whole = (model(kernel).set_params(n_components=2) for _ in range(2))
        in_batches(ours, X)
        back = ours.inverse_transform(ours.transform(X[:9]))
        assert_same(back, whole.fit(X).inverse_transform(whole.transform(X[:9])), tol)


def test_attributes_are_there_when_they_are_asked_for():
    ours = model().partial_fit(data())
    assert "eigenvalues_" not in vars(ours)
    assert 4 < ours.n_anchors_ <= 50
    ours.partial_fit(data())
    assert "eigenvalues_" not in vars(ours)
    assert ours.mean_.shape == (ours.n_anchors_,)
    assert list(ours.get_feature_names_out()) == ["kernelpca0", "kernelpca1", "kernelpca2"]
    with pytest.raises(AttributeError, match=r"transform\(X\) returns the coordinates"):
        _ = ours.embedding_
    with pytest.raises(AttributeError, match="'nothing_'"):
        _ = ours.nothing_


# ------------------------------------------------------------------ what is no batch, interrupts


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.empty((0, D)), "0 sample"),
        ([[1.0, 2.0], [3.0]], "must hold numbers"),
        ([], "array"),
        (np.full((3, D), np.nan), "NaN or infinity in row 60"),
    ],
    ids=["empty", "ragged", "nothing", "nan"],
)
def test_a_batch_that_is_none_is_refused_and_changes_nothing(batch, words):
    known = model().partial_fit(data(n=60))
    expected = known.transform(data(n=5))
    with pytest.raises(ValueError, match=words):
        known.partial_fit(batch)
    assert known.n_samples_seen_ == 60
    np.testing.assert_array_equal(known.transform(data(n=5)), expected)


def test_batches_of_no_rows_are_passed_over():
    X, weights = data(n=60), np.arange(60.0)
    whole = model().partial_fit(X, sample_weight=weights)
    parts = model().partial_fit([X[:0], X[:20], X[:0], X[20:], X[:0]], sample_weight=weights)
    assert parts.n_samples_seen_ == 60
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), atol=1e-10)


@pytest.mark.parametrize(
    ("batches", "weights", "words"),
    [
        ([None], None, "must be arrays of rows"),
        ([[1.0, 2.0], [3.0, 4.0]], None, "must be arrays of rows"),
        ([[[1.0, 2.0], [3.0]]], None, "A batch of KernelPCA must hold numbers"),
        ([np.ones((2, D))] * 2, [[1.0], [1.0, 2.0]], "sample_weight of KernelPCA must hold"),
        ([np.ones((2, D))] * 2, np.ones((4, 1)), "must be one weight per sample"),
        ([np.ones((2, D))] * 2, np.ones(5), r"must have shape \(4,\), .* got \(5,\)"),
    ],
)
def test_batches_that_are_none_are_refused(batches, weights, words):
    given = iter(batches) if weights is None else batches
    with pytest.raises(ValueError, match=words):
        model().partial_fit(given, sample_weight=weights)


def test_batches_may_be_lists_and_share_a_weight():
    X = data(n=60)
    once = model().partial_fit(X)
    check_same(model().partial_fit(part.tolist() for part in (X[:20], X[20:])), once, X, 1e-10)
    twice = model().partial_fit(X, sample_weight=np.full(60, 2.0))
    check_same(model().partial_fit([X[:20], X[20:]], sample_weight=2.0), twice, X, 1e-10)


def test_threads_that_ask_at_once_get_the_same():
    """The first computes what the others wait for; without a seed each would draw anchors."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            known = KernelPCA(2, n_anchors=20).partial_fit(data(n=60))
            with ThreadPoolExecutor(4) as pool:
                asked = [pool.submit(known.transform, data(n=5)) for _ in range(4)]
            for each in asked:
                np.testing.assert_array_equal(each.result(), asked[0].result())
    finally:
        sys.setswitchinterval(interval)


def test_no_batches_at_all_are_refused():
    with pytest.raises(ValueError, match="partial_fit of KernelPCA was given no rows"):
        model().partial_fit(iter([]))


def test_components_that_were_interrupted_are_computed_again(monkeypatch):
    """They are computed when they are asked for, and kept together or not at all."""
    expected = model().partial_fit(data(n=60)).transform(data(n=5))
    known = model().partial_fit(data(n=60))

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("orthodrome.decomposition.partial.attributes_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            known.transform(data(n=5))
    np.testing.assert_array_equal(known.transform(data(n=5)), expected)


def test_dask_arrays_are_for_fit():
    dask = pytest.importorskip("dask.array")
    with pytest.raises(
        ValueError, match="partial_fit of KernelPCA takes no dask array; give it to"
    ):
        model().partial_fit(dask.from_array(data()))


def test_there_are_no_features_before_there_are_anchors():
    with pytest.raises(ValueError, match="There are no anchors yet"):
        PartialFit().by(unit=False)


def test_a_name_that_no_fit_sets_is_none_of_a_partial_fit():
    ours = model().partial_fit(data())
    with pytest.raises(AttributeError, match="nonsense_"):
        _ = ours.nonsense_


# ------------------------------------------------------------------ kernel PGA: an approximation


def pga(n_components=K, **arguments):
    arguments = {
        "kernel": Gaussian(sigma=3.0),
        "solver": Nystroem(anchors=data()[::40]),
    } | arguments
    return KernelPGA(n_components, **arguments)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(sigma=3.0), "cosine"])
def test_pga_of_few_rows_is_exact(kernel, weighted):
    """All rows are in the sample, so that nothing is estimated."""
    X = data(n=900) + 2.0
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float) if weighted else None
    whole = pga(kernel=kernel).fit(X, sample_weight=w)
    ours = pga(kernel=kernel)
    for part in np.array_split(np.arange(len(X)), 7):
        ours.partial_fit(X[part], sample_weight=None if w is None else w[part])
    assert ours.n_samples_seen_ == len(X)
    np.testing.assert_allclose(ours.eigenvalues_, whole.eigenvalues_, rtol=1e-8)
    assert ours.geodesic_variance_ == pytest.approx(whole.geodesic_variance_, rel=1e-8)
    assert ours.history_[0]["trace_error"] == pytest.approx(
        whole.history_[0]["trace_error"], rel=1e-6, abs=1e-12
    )
    found, expected = ours.transform(X[:50]), whole.transform(X[:50])
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_pga_of_many_rows_is_close(order):
    """Measured: 0.02 % and 0.3 % at the most."""
    X = np.random.default_rng(1).standard_normal((12_000, 4)) * [3.0, 1.5, 1.0, 0.5]
    X = X[np.argsort(X[:, 0])] if order == "sorted" else X
    options = {"solver": Nystroem(anchors=X[::150])}
    whole = pga(**options).fit(X)
    ours = pga(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the drift
        for part in np.array_split(X, 12):
            ours.partial_fit(part)
        np.testing.assert_allclose(ours.eigenvalues_, whole.eigenvalues_, rtol=0.01)
    assert (ours.mean_drift_ > 0.5) == (order == "sorted")


def test_a_mean_that_drifts_is_warned_of():
    X = np.random.default_rng(1).standard_normal((6_000, 4)) * [3.0, 1.5, 1.0, 0.5]
    ours = pga(solver=Nystroem(anchors=X[::100]))
    for part in np.array_split(X[np.argsort(X[:, 0])], 6):
        ours.partial_fit(part)
    with pytest.warns(UserWarning, match=r"Karcher mean of all rows lies .* rad from"):
        ours.transform(X[:3])
