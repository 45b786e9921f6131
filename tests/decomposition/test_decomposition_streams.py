"""Rows in blocks: what tests/test_storage.py does not cover.

Fits do not depend on storage (test_storage.py). Here: precisions, rows of other kinds, new rows,
memory and errors.
"""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from laws_decomposition import assert_same, every_estimator, suited
from orthodrome import HypersphericalKMeans, KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
from orthodrome._core import threads
from orthodrome._core.checks import RowError
from orthodrome.coordinates import anchors as anchors_module
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian, LogEuclidean, Normalized, Polynomial, VeroneseWhitney
from orthodrome.rows import as_rows

N, D, K = 9_000, 4, 3  # rows: more than the sample, and more than two blocks


def data(dtype=np.float64, n=N):
    """Two groups of one sign: the directions of all rows lie in a hemisphere."""
    random = np.random.default_rng(0)
    X = np.abs(random.standard_normal((n, D)) @ random.standard_normal((D, D))) + 0.1
    X[: n // 3] += 2
    return X.astype(dtype)


def weights_of(n=N):
    return np.random.default_rng(1).integers(0, 4, n).astype(float)


class Anew:
    """Batches that are read again in every pass."""

    def __init__(self, X, size=1700):
        self.X, self.size, self.passes = X, size, 0

    def __iter__(self):
        self.passes += 1
        for start in range(0, self.X.shape[0], self.size):
            yield self.X[start : start + self.size].copy()


class Guarded:
    """A zarr array that refuses to be read as a whole, and notes the largest block."""

    chunks = (600, D)

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.largest = X, X.shape, X.dtype, 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.largest = max(self.largest, rows.stop - rows.start)
        return self.X[rows].copy()

    @property
    def oindex(self):
        return self.X

    def __array__(self, *_, **__):
        raise AssertionError("all rows were asked for at once")

    __len__ = __array__


Guarded.__module__ = "zarr.core"


def memory_map(X, folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def model(Estimator, kernel="gaussian", sphere="unit", **arguments):
    solver = Nystroem(n_anchors=25, sphere=sphere, random_state=0)
    return Estimator(K, kernel=suited(kernel, Estimator), **{"solver": solver, **arguments})


def check_same(ours, whole, X, tol):
    assert np.array_equal(ours.anchor_indices_, whole.anchor_indices_)
    assert_same(ours.X_fit_, whole.X_fit_, 0)
    for name in ("eigenvalues_", "explained_variance_ratio_", "embedding_", "eigenvectors_"):
        assert getattr(ours, name).dtype == getattr(whole, name).dtype
        assert_same(getattr(ours, name), getattr(whole, name), tol)
    new = X[::500] + np.asarray(0.05, dtype=X.dtype)
    Z = whole.transform(new)
    assert_same(ours.transform(new), Z, tol)
    assert ours.score(new) == pytest.approx(whole.score(new), rel=10 * tol)
    error = whole.history_[0]["trace_error"]
    assert ours.history_[0]["trace_error"] == pytest.approx(error, abs=tol)
    tol_of_inputs = max(100 * tol, 1e-6)  # where fixed points stop
    assert_same(ours.inverse_transform(Z), whole.inverse_transform(Z), tol_of_inputs)
    if isinstance(whole, KernelPGA):
        assert_same(ours.mean_cosines_, whole.mean_cosines_, tol)
        assert ours.geodesic_variance_ == pytest.approx(whole.geodesic_variance_, rel=tol)
        assert ours.mean_gradient_norm_ < 1e-6
        assert ours.converged_


# ------------------------------------------------------------------ compared with rows in memory


@pytest.mark.parametrize(
    ("dtype", "weighted", "kernel"),
    [
        (np.float64, True, Gaussian()),
        (np.float64, True, Polynomial(degree=2)),
        (np.float32, False, Gaussian()),
        (np.float32, True, Polynomial(degree=2)),
    ],
)
@pytest.mark.parametrize(
    ("Estimator", "sphere"), [(KernelPCA, "unit"), (KernelPGA, "unit"), (KernelPGA, "angles")]
)
def test_precisions_weights_and_kernels(
    Estimator, sphere, kernel, weighted, dtype, monkeypatch, tmp_path
):
    """Also in two threads, and by anchors of another precision than the rows."""
    X, w = data(dtype), weights_of() if weighted else None
    other = np.float32 if dtype == np.float64 else np.float64
    tol = 1e-9 if dtype == np.float64 else 3e-4
    whole = model(Estimator, kernel, sphere).fit(X, sample_weight=w)
    check_same(model(Estimator, kernel, sphere).fit(Anew(X), sample_weight=w), whole, X, tol)
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    two = model(Estimator, kernel, sphere).fit(memory_map(X, tmp_path), sample_weight=w)
    check_same(two, whole, X, tol)
    options = {"solver": Nystroem(anchors=X[::360].astype(other), sphere=sphere)}
    given = model(Estimator, kernel, **options).fit(Anew(X), sample_weight=w)
    check_same(given, model(Estimator, kernel, **options).fit(X, sample_weight=w), X, tol)
    found = {given.X_fit_.dtype, given.embedding_.dtype, given.transform(X[:5]).dtype}
    assert found == {np.dtype(dtype)}


@pytest.mark.parametrize(("dtype", "weighted"), [(np.float64, True), (np.float32, False)])
@every_estimator
def test_new_rows_in_blocks_by_an_exact_fit(Estimator, weighted, dtype, tmp_path):
    X, new = data(dtype, n=90), data(dtype, n=5_000)
    w, v = (weights_of(90), weights_of(5_000)) if weighted else (None, None)
    fitted = Estimator(K, solver="dense").fit(X, sample_weight=w)
    coordinates, score = fitted.transform(new), fitted.score(new, sample_weight=v)
    tol = 1e-10 if dtype == np.float64 else 1e-4
    for blocks in (memory_map(new, tmp_path), [new[:7], new[7:]], Anew(new), Guarded(new)):
        assert_same(fitted.transform(blocks), coordinates, tol)
        assert fitted.score(blocks, sample_weight=v) == pytest.approx(score, rel=tol)
    assert_same(fitted.transform(iter([new[:7], new[7:]])), coordinates, tol)
    assert fitted.score(iter([new[:7], new[7:]])) == pytest.approx(fitted.score(new), rel=tol)


@pytest.mark.parametrize("solver", ["dense", "nystroem"])
@every_estimator
def test_fitted_points_are_prepared_once(Estimator, solver, monkeypatch):
    fitted = Estimator(K, solver=solver, n_anchors=90).fit(data(n=90))
    compared, sizes, prepare = len(fitted.X_fit_), [], Gaussian.prepare

    def counted(kernel, X):
        sizes.append(X.shape[0])
        return prepare(kernel, X)

    monkeypatch.setattr(Gaussian, "prepare", counted)
    for method in (fitted.transform, fitted.score):
        sizes.clear()
        method(Guarded(data()))
        assert (sizes.count(compared), len(sizes) > 3) == (1, True)


@every_estimator
def test_groups_that_alternate_all_become_anchors(Estimator, monkeypatch):
    monkeypatch.setattr(anchors_module, "_CANDIDATES", 256)
    monkeypatch.setattr(anchors_module, "_CANDIDATES_PER_ANCHOR", 1)
    X = data(n=16)[np.arange(4096) % 16]
    options = {"solver": Nystroem(16, random_state=0), "kernel": Gaussian(sigma=0.5)}
    whole, ours = (Estimator(K, **options).fit(rows) for rows in (X, Anew(X)))
    check_same(ours, whole, X, 1e-8)
    assert set(ours.anchor_indices_ % 16) == set(range(16))


@every_estimator
def test_sparse_batches(Estimator):
    X = data()
    X[X < 1] = 0
    X[:, 0] += 1
    S = scipy.sparse.csr_array(X)
    whole, ours = (model(Estimator).fit(rows) for rows in (S, [S[:4000], S[4000:]]))
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-9)
    assert_same(ours.transform([S[:50]]), whole.transform(S[:50]), 1e-9)


@pytest.mark.parametrize("kernel", [VeroneseWhitney(), LogEuclidean()], ids=repr)
def test_shapes_and_matrices_in_batches(kernel):
    random = np.random.default_rng(3)
    shapes = random.standard_normal((700, 6, 2)) * 0.1 + random.standard_normal((6, 2))
    A = random.standard_normal((700, 3, 3))
    matrices = A @ A.transpose(0, 2, 1) + np.eye(3)
    X = shapes if isinstance(kernel, VeroneseWhitney) else matrices
    whole, ours = (model(KernelPGA, kernel).fit(rows) for rows in (X, Anew(X, 90)))
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-9)
    assert_same(ours.transform(Anew(X, 90)), whole.transform(X), 1e-8)
    listed = model(KernelPGA, kernel).fit(list(X))  # points, not batches
    assert_same(listed.eigenvalues_, whole.eigenvalues_, 1e-9)


def test_the_median_comes_from_a_sample(monkeypatch):
    monkeypatch.setattr("orthodrome.base.SAMPLE", 700)
    for n, rel in ((1200, 0.03), (500, 0.0)):
        X = data(n=n)
        ours = model(KernelPCA, Gaussian(sigma="median")).fit([X])
        expected = Gaussian(sigma="median").fit(X).sigma_
        assert ours.kernel_.sigma_ == pytest.approx(expected, rel=rel)


def test_a_kernel_that_needs_normalising():
    X = data()
    with pytest.raises(ValueError, match=r"k\(x, x\) must be the same for all"):
        model(KernelPGA).set_params(kernel="linear").fit([X])
    ours = model(KernelPGA).set_params(kernel=Normalized("linear")).fit([X])
    on_sphere = X / np.linalg.norm(X, axis=1, keepdims=True) * 3.0
    scaled = model(KernelPGA).set_params(kernel="linear").fit(Anew(on_sphere))
    assert_same(ours.eigenvalues_, scaled.eigenvalues_, 1e-9)


def test_symmetric_data_keep_their_signs_to_a_sample():
    """Third moments are 0 to rounding, so that a sample decides."""
    X = np.concatenate([data(n=2500), -data(n=2500)])
    options = {"kernel": "linear", "solver": "nystroem"}
    whole = KernelPCA(2, **options).fit(X)
    small = KernelPCA(2, memory_budget=1000, **options).fit([X])
    assert_same(np.abs(small.transform(X)), np.abs(whole.embedding_), 1e-9)
    assert not hasattr(small, "embedding_")


# ------------------------------------------------------------------ memory


@every_estimator
def test_no_more_than_a_block_is_held(Estimator):
    X = data()
    guarded, passes = Guarded(X), Anew(X)
    ours = model(Estimator).fit(guarded)
    assert guarded.largest <= 4096
    embedding = ours.embedding_
    # coordinates that do not fit the budget are not kept, and signs come from sums
    small = model(Estimator, memory_budget=2 * N * K * 8).fit(passes)
    assert passes.passes <= 16
    for name in ("embedding_", "eigenvectors_"):
        message = rf"{name}: .*memory_budget.*transform\(X\)"
        with pytest.raises(AttributeError, match=message):
            getattr(small, name)
    assert not hasattr(small, "mean_cosines_")
    assert_same(small.transform(guarded), embedding, 1e-9)
    assert_same(small.inverse_transform(embedding[:3]), ours.inverse_transform(embedding[:3]), 1e-7)
    assert_same(small.fit_transform(Guarded(X)), embedding, 1e-9)
    # a fit with another budget changes what is kept
    assert hasattr(small.set_params(memory_budget="1GiB").fit([X]), "embedding_")
    assert not hasattr(small.set_params(memory_budget=1000).fit([X]), "embedding_")


@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_coordinates_take_no_more_than_is_counted(Estimator, weighted, tmp_path):
    n, k = 60_000, 6
    X = memory_map(np.tile(data(np.float32, n=10_000), (6, 1)), tmp_path)
    options = {"solver": Nystroem(anchors=np.array(X[:8])), "kernel": Gaussian(sigma=2.0)}
    options["storage"] = "recompute"
    w = weights_of(n) if weighted else None
    counted = n * (8 * (k + 1) + 2 * k * 4)
    Estimator(2, **options).fit(X[:100])  # what is imported or compiled late is not counted
    tracemalloc.start()
    try:
        ours = Estimator(k, memory_budget=4 * counted, **options).fit(X, sample_weight=w)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    columns = 8 * n * (2 * weighted + 2 * (Estimator is KernelPGA))  # weights, lengths, cosines
    assert peak <= 1.2 * (counted + columns)
    assert kept <= 1.1 * (2 * n * k * 4 + columns)
    assert ours.embedding_.shape == ours.eigenvectors_.shape == (n, k)
    less = Estimator(k, memory_budget=4 * counted - 4, **options).fit(X, sample_weight=w)
    assert not hasattr(less, "embedding_")


def test_block_functions_are_small_and_picklable():
    X = data(n=5000)
    ours = model(KernelPGA).fit([X])
    light = ours._new_points()
    assert len(pickle.dumps(light)) < 60_000 < len(pickle.dumps(ours))
    rows = as_rows([X], ours.kernel_, ours, reset=False)
    assert_same(rows.map(pickle.loads(pickle.dumps(light))), ours.embedding_, 1e-9)


# ------------------------------------------------------------------ errors and names


@every_estimator
def test_refusals_say_what_to_do(Estimator):
    X, bad = data(n=3000), data(n=3000)
    bad[2345, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in row 2345\."):
        model(Estimator).fit([bad[:2000], bad[2000:]])
    with pytest.raises(ValueError, match=r"read only once.*partial_fit"):
        model(Estimator).fit(batch for batch in [X])
    with pytest.raises(ValueError, match=r"solver='krylov'.*Use solver='nystroem'"):
        model(Estimator, solver="krylov").fit([X])
    with pytest.raises(ValueError, match="precomputed Gram matrix as one array"):
        Estimator(2, kernel="precomputed").fit(Guarded(X))
    with pytest.raises(ValueError, match="sample_weight"):
        model(Estimator).fit([X], sample_weight=np.ones(5))
    ours = model(Estimator).fit([X])
    before = ours.eigenvalues_
    with pytest.raises(ValueError, match="NaN"):
        ours.fit([bad])
    assert ours.eigenvalues_ is before
    with pytest.raises(ValueError, match="features"):
        ours.transform([X[:, :2]])
    with pytest.raises(ValueError, match="at least one row"):
        ours.transform(iter([]))


def test_a_row_orthogonal_to_all_anchors_is_named_by_its_number_among_all():
    X = data()
    X[8_765] = 1e3
    options = {"solver": Nystroem(anchors=X[:50]), "kernel": Gaussian(sigma=3.0)}
    for rows in (X, Anew(X), [X[:5000], X[5000:]]):
        with pytest.raises(RowError, match="Row 8765 of X is orthogonal") as caught:
            KernelPGA(K, **options).fit(rows)
        assert pickle.loads(pickle.dumps(caught.value)).rows == caught.value.rows == (8_765,)


@pytest.mark.parametrize(
    "estimator",
    [RobustKernelPCA(2), KernelPNS(2, sphere="great"), HypersphericalKMeans(2), KernelPCA(2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_nothing_is_read_as_a_whole(estimator):
    X = data(n=100)
    if not isinstance(estimator, KernelPCA):
        with pytest.raises(ValueError, match=rf"{type(estimator).__name__} .*in memory"):
            estimator.fit(Guarded(X))
    fitted = estimator.fit(X)
    with pytest.raises(ValueError, match="would be read into memory as a whole"):
        fitted.kernel_.diag(Guarded(X))
