"""Partial fits: the order and the cuts of batches do not matter."""

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
from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial

N, D, K = 1_000, 4, 3


def data(dtype=np.float64, n=N):
    random = np.random.default_rng(5)
    return (random.gumbel(size=(n, D)) * [2, 1, 0.7, 0.5]).astype(dtype)


def model(kernel=None, anchors=None, **arguments):
    """Give anchors and a scale, so that no row is stored."""
    points = data()[::20] if anchors is None else anchors
    kernel = Gaussian(sigma=2.5) if kernel is None else kernel
    return KernelPCA(K, kernel=kernel, solver=Nystroem(anchors=points), **arguments)


def drawn(n_anchors=20):
    """Draw anchors from the first rows."""
    return KernelPCA(K, n_anchors=n_anchors, random_state=0)


def in_batches(estimator, X, n_batches=50, seed=0, weights=None):
    order = np.random.default_rng(seed).permutation(X.shape[0])
    for rows in np.array_split(order, n_batches):
        estimator.partial_fit(X[rows], sample_weight=None if weights is None else weights[rows])
    return estimator


def check_same(ours, whole, X, tol):
    """Compare all but signs, which come from the anchors."""
    assert_same(ours.eigenvalues_, whole.eigenvalues_, tol)
    assert_same(ours.explained_variance_ratio_, whole.explained_variance_ratio_, tol)
    Z = ours.transform(X)
    assert_same(Z, whole.transform(X) * same_signs(Z, whole.transform(X)), tol)
    assert ours.score(X) == pytest.approx(whole.score(X), rel=10 * tol)
    error = whole.history_[0]["trace_error"]
    assert ours.history_[0]["trace_error"] == pytest.approx(error, abs=tol)
    assert_same(ours.residuals_ + ours.eigenvalues_, whole.residuals_ + ours.eigenvalues_, tol)


# ------------------------------------------------------------------ the law


@pytest.mark.parametrize(
    ("n", "n_batches", "weighted"), [(N, 100, True), (N, 7, False), (100, 100, True)]
)
@pytest.mark.parametrize("kernel", [Gaussian(sigma=2.5), Linear(), Polynomial(degree=2)])
def test_shuffled_batches_are_one_fit(kernel, n, n_batches, weighted):
    X = data(n=n)
    weights = np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None
    whole = model(kernel).fit(X, sample_weight=weights)
    ours = in_batches(model(kernel), X, n_batches, n_batches, weights)
    assert ours.n_samples_seen_ == n
    check_same(ours, whole, X, 1e-8)


def test_far_from_the_origin_no_digits_are_lost():
    """Uncentred sums would lose twelve of them."""
    X = data() + 1e6
    whole = model(Linear(), X[::40]).fit(X)
    ours = in_batches(model(Linear(), X[::40]), X)
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-8)


@pytest.mark.parametrize("kernel", [None, Polynomial(degree=2)])
def test_sparse_batches(kernel):
    S = scipy.sparse.csr_array(np.maximum(data(n=300), 0))
    ours = model(kernel, S[::10])
    for start in range(0, 300, 50):
        ours.partial_fit(S[start : start + 50])
    check_same(ours, model(kernel, S[::10]).fit(S), S, 1e-8)


# ------------------------------------------------------------------ the first rows


def test_anchors_come_from_the_first_rows_and_stay():
    X, ours = data(), drawn()
    for start in range(0, 160, 40):
        ours.partial_fit(X[start : start + 40])
        so_far = X[: start + 40]
        assert ours.transform(X[:5]).shape == (5, K)  # from what there is
        alone = drawn().set_params(solver="nystroem").fit(so_far)
        check_same(ours, alone, so_far, 1e-8)
        assert np.array_equal(ours.anchor_indices_, alone.anchor_indices_)
    anchors, sigma = ours.X_fit_, ours.kernel_.sigma_
    for start in range(160, N, 230):
        ours.partial_fit(X[start : start + 230])
    assert np.array_equal(ours.X_fit_, anchors)
    assert ours.kernel_.sigma_ == sigma
    check_same(ours, model(Gaussian(sigma=sigma), anchors).fit(X), X, 1e-8)


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_scale_is_that_of_the_first_rows_and_not_of_the_first_batch(wrapped):
    X = data()
    ours = model(Normalized(Gaussian()) if wrapped else Gaussian()).partial_fit(X[:100])
    ours.partial_fit(X[100:])
    scale = (ours.kernel_.kernel_ if wrapped else ours.kernel_).sigma_
    assert scale == pytest.approx(Gaussian().fit(X).sigma_)


def test_iterators_lists_and_zarr_arrays_are_read_once(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr("orthodrome.rows.local._SMALL", 100)  # several blocks
    X = data()
    cuts = [X[:0], X[:3], X[3:500], X[:0], X[500:], X[:0]]
    stored = zarr.create_array(str(tmp_path / "x"), shape=X.shape, chunks=(300, D), dtype=X.dtype)
    stored[:] = X
    whole = model().partial_fit(X)
    for rows in (iter(cuts), stored, cuts, (part.tolist() for part in (X[:300], X[300:]))):
        ours = model().partial_fit(rows)
        assert ours.n_samples_seen_ == N
        check_same(ours, whole, X, 1e-10)
    for weights in (np.random.default_rng(3).random(N), 2.0):
        weighted = model().partial_fit(X, sample_weight=np.ones(N) * weights)
        check_same(model().partial_fit(cuts, sample_weight=weights), weighted, X, 1e-10)


def test_batches_of_weight_0_count_for_nothing():
    X, weights = data(n=60), np.ones(60)
    weights[20:40] = 0
    ours = drawn(n_anchors=None).partial_fit(X[20:40], sample_weight=np.zeros(20))
    ours.partial_fit([X[:20], X[20:40], X[40:]], sample_weight=weights)
    at_once = drawn(n_anchors=None).partial_fit(X[weights > 0])
    np.testing.assert_allclose(ours.eigenvalues_, at_once.eigenvalues_, rtol=1e-9)
    assert ours.n_samples_seen_ == 80
    known = model().partial_fit(X)
    before = known.eigenvalues_
    known.partial_fit(X + 9, sample_weight=np.zeros(60))
    np.testing.assert_array_equal(known.eigenvalues_, before)
    alone = KernelPCA(K).partial_fit(X[20:40], sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match=r"All rows that KernelPCA .* weight 0"):
        alone.transform(X)


# ------------------------------------------------------------------ errors


TWO = [np.ones((2, D))] * 2
BAD = {  # what is given, weights, message
    "missing": (
        np.where(np.arange(10)[:, None] == 3, np.nan, data(n=10)),
        None,
        r"row (33|1003)\.",
    ),
    "narrow": (data(n=10)[:, :-1], None, "features"),
    "late": (lambda: iter([data(n=10), data(n=10)[:, :-1]]), None, "same shape|features"),
    "huge": (1e200 * data(n=10), None, r"[Rr]ow (30|1000) .*so large"),
    "negative": (data(n=10), -np.ones(10), "negative"),
    "lines": (lambda: iter([[1.0, 2.0], [3.0, 4.0]]), None, "must have at least two dimensions"),
    "iterator": (lambda: iter(TWO), np.ones(4), "iterator"),
    "ragged weights": (TWO, [[1.0], [1.0, 2.0]], "sample_weight of KernelPCA must hold"),
    "long weights": (TWO, np.ones(5), r"must have shape \(4,\), .* got \(5,\)"),
}


@pytest.mark.parametrize("rows", [30, N])
def test_a_batch_that_fails_changes_nothing(rows):
    X, ours = data(), drawn()
    ours.partial_fit(X[:rows])
    ours.transform(X[:2])
    before, names = pickle.dumps(ours._partial_), set(vars(ours))
    for given, weights, message in BAD.values():
        with pytest.raises(ValueError, match=message):
            ours.partial_fit(given() if callable(given) else given, sample_weight=weights)
        assert pickle.dumps(ours._partial_) == before
        assert set(vars(ours)) == names
        assert ours.n_samples_seen_ == rows


def test_a_first_batch_that_fails_leaves_nothing():
    fresh = KernelPCA(K)
    for bad in (np.full((10, D), np.nan), 1e200 * data(n=10)):
        with pytest.raises(ValueError, match=r"NaN|so large"):
            fresh.partial_fit(bad)
        assert not hasattr(fresh, "n_features_in_")
        with pytest.raises(NotFittedError):
            check_is_fitted(fresh)
    with pytest.raises(ValueError, match="partial_fit of KernelPCA was given no rows"):
        model().partial_fit(iter([]))


def test_refusals_say_what_to_do():
    X = data(n=50)
    for refused in (KernelPCA(2, solver="krylov"), KernelPGA(solver=Nystroem(sphere="angles"))):
        with pytest.raises(AttributeError, match="partial_fit"):
            refused.partial_fit(X)
    gone = model().partial_fit(X).set_params(solver="dense")
    assert not hasattr(gone, "partial_fit")
    with pytest.raises(ValueError, match="needs solver='nystroem'"):
        gone.transform(X)
    with pytest.raises(ValueError, match="precomputed"):
        KernelPCA(2, kernel="precomputed").partial_fit(X @ X.T)
    with pytest.raises(ValueError, match="anchors as points"):
        KernelPCA(2, solver=Nystroem(anchors=[1, 2])).partial_fit(X)
    changed = model().partial_fit(X).set_params(n_components="many")
    with pytest.raises(ValueError, match=r"n_components of KernelPCA must be .* got 'many'"):
        changed.transform(X)
    dask = pytest.importorskip("dask.array")
    message = "partial_fit of KernelPCA does not accept a dask array; pass it to"
    with pytest.raises(ValueError, match=message):
        model().partial_fit(dask.from_array(data()))


# ------------------------------------------------------------------ the rest of the protocol


def test_fit_and_clone_start_anew():
    X = data()
    whole = model().fit(X)
    ours = model().partial_fit(X + 1).fit(X)
    assert not hasattr(ours, "n_samples_seen_")
    check_same(ours, whole, X, 1e-12)
    ours.partial_fit(X)
    assert ours.n_samples_seen_ == N
    check_same(ours, whole, X, 1e-8)
    assert not hasattr(ours, "embedding_")
    assert not hasattr(clone(ours), "n_samples_seen_")


@pytest.mark.parametrize("rows", [40, 500])
def test_copies_continue_as_the_original(rows):
    X, ours = data(), drawn()
    ours.partial_fit(X[:rows])
    ours.transform(X[:2])
    copies = [pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)]
    expected = ours.partial_fit(X[rows:]).transform(X)
    for other in copies:
        assert np.array_equal(other.partial_fit(X[rows:]).transform(X), expected)


@pytest.mark.parametrize(
    ("kernel", "tol"), [(None, 1e-5), ("linear", 1e-8), (Polynomial(degree=2), 1e-5)]
)
def test_inverse_transform(kernel, tol):
    X = data(n=2000)  # more than the sample that the regression of a fit is centred on
    ours, whole = in_batches(model(kernel), X), model(kernel).fit(X)
    Z = whole.transform(X[:9])
    signs = same_signs(ours.transform(X), whole.transform(X))
    assert_same(ours.inverse_transform(Z * signs), whole.inverse_transform(Z), tol)


def test_attributes_are_computed_when_needed():
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


def test_threads_get_the_same_components():
    """The first computes what the others wait for; without a seed each would draw anchors."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            known = KernelPCA(2, n_anchors=20).partial_fit(data(n=60))
            with ThreadPoolExecutor(4) as pool:
                asked = [pool.submit(known.transform, data(n=5)) for _ in range(4)]
            for each in asked:
                np.testing.assert_array_equal(each.result(), asked[0].result())
    finally:
        sys.setswitchinterval(interval)


def pga(anchors, kernel=None):
    kernel = Gaussian(sigma=3.0) if kernel is None else kernel
    return KernelPGA(K, kernel=kernel, solver=Nystroem(anchors=anchors))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [None, "cosine"])
def test_pga_of_few_rows_is_exact(kernel, weighted):
    """All rows are in the sample, so that nothing is estimated."""
    X = data(n=900) + 2.0
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float) if weighted else None
    whole = pga(data()[::20], kernel).fit(X, sample_weight=w)
    ours = in_batches(pga(data()[::20], kernel), X, 7, weights=w)
    assert ours.n_samples_seen_ == len(X)
    np.testing.assert_allclose(ours.eigenvalues_, whole.eigenvalues_, rtol=1e-8)
    assert ours.geodesic_variance_ == pytest.approx(whole.geodesic_variance_, rel=1e-8)
    errors = [fit.history_[0]["trace_error"] for fit in (ours, whole)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6, abs=1e-12)
    found, expected = ours.transform(X[:50]), whole.transform(X[:50])
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_pga_of_many_rows_is_close(order):
    """Measured: 0.02 % and 0.3 % at most; sorted rows give a warning."""
    X = np.random.default_rng(1).standard_normal((12_000, 4)) * [3.0, 1.5, 1.0, 0.5]
    X = X[np.argsort(X[:, 0])] if order == "sorted" else X
    whole, ours = pga(X[::150]).fit(X), pga(X[::150])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in np.array_split(X, 12):
            ours.partial_fit(part)
        np.testing.assert_allclose(ours.eigenvalues_, whole.eigenvalues_, rtol=0.01)
    drifted = ["Karcher mean of all rows lies" in str(warning.message) for warning in caught]
    assert drifted == ([True] if order == "sorted" else [])
    assert (ours.mean_drift_ > 0.5) == (order == "sorted")
