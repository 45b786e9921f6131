"""Kernel PCA and kernel PGA of rows in blocks are those of the same rows in memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from laws_decomposition import assert_same, every_estimator, suited
from orthodrome import (
    HypersphericalKMeans,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    RobustKernelPCA,
    load,
    save,
)
from orthodrome._core import threads
from orthodrome._core.checks import RowError
from orthodrome.coordinates import anchors as anchors_module
from orthodrome.decomposition.new_points import new_points
from orthodrome.eigen import Nystroem
from orthodrome.kernels import (
    Gaussian,
    Linear,
    LogEuclidean,
    Normalized,
    Polynomial,
    VeroneseWhitney,
)
from orthodrome.rows import as_rows

zarr = pytest.importorskip("zarr")

N, D, K = 9_000, 4, 3  # rows: more than the sample, and more than two blocks
every_sphere = pytest.mark.parametrize("sphere", ["unit", "angles"])


def data(dtype=np.float64, n=N):
    """Two groups of one sign, so that the directions of all rows lie in a hemisphere."""
    random = np.random.default_rng(0)
    X = np.abs(random.standard_normal((n, D)) @ random.standard_normal((D, D))) + 0.1
    X[: n // 3] += 2
    return X.astype(dtype)


def weights_of(n=N):
    return np.random.default_rng(1).integers(0, 4, n).astype(float)


class Anew:
    """Batches that are read again in every pass, and of which only a few rows live at a time."""

    def __init__(self, X, size=1700):
        self.X, self.size, self.passes = X, size, 0

    def __iter__(self):
        self.passes += 1
        for start in range(0, self.X.shape[0], self.size):
            yield self.X[start : start + self.size].copy()


class Guarded:
    """Stands for a zarr array of which nobody may have more than a block, or it as an array."""

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


def stream(kind, X, tmp_path):
    if kind == "memmap":
        np.save(tmp_path / "rows.npy", X)
        return np.load(tmp_path / "rows.npy", mmap_mode="r")
    if kind == "zarr":
        stored = zarr.create_array(
            str(tmp_path / "rows.zarr"),
            shape=X.shape,
            chunks=(1000, D),
            dtype=X.dtype,
            overwrite=True,
        )
        stored[:] = X
        return stored
    if kind == "list":
        return [X[:10], X[10:5000], X[5000:]]
    return Anew(X) if kind == "anew" else Guarded(X)


every_kind = pytest.mark.parametrize("kind", ["memmap", "zarr", "list", "anew", "guarded"])


def model(Estimator, kernel="gaussian", n_components=K, sphere="unit", **arguments):
    solver = Nystroem(n_anchors=25, sphere=sphere, random_state=0)
    kernel = suited(kernel, Estimator)
    return Estimator(n_components, kernel=kernel, **{"solver": solver, **arguments})


def check_same(ours, whole, X, tol):
    assert np.array_equal(ours.anchor_indices_, whole.anchor_indices_)
    assert_same(ours.X_fit_, whole.X_fit_, 0)
    for name in ("eigenvalues_", "explained_variance_ratio_", "embedding_", "eigenvectors_"):
        assert getattr(ours, name).dtype == getattr(whole, name).dtype
        assert_same(getattr(ours, name), getattr(whole, name), tol)
    new = X[::500] + np.asarray(0.05, dtype=X.dtype)
    assert_same(ours.transform(new), whole.transform(new), tol)
    assert ours.score(new) == pytest.approx(whole.score(new), rel=10 * tol)
    error = whole.history_[0]["trace_error"]
    assert ours.history_[0]["trace_error"] == pytest.approx(error, abs=tol)
    assert_same(
        ours.inverse_transform(whole.transform(new)),
        whole.inverse_transform(whole.transform(new)),
        max(100 * tol, 1e-6),  # where fixed points stop
    )
    if isinstance(whole, KernelPGA):
        assert_same(ours.mean_cosines_, whole.mean_cosines_, tol)
        assert ours.geodesic_variance_ == pytest.approx(whole.geodesic_variance_, rel=tol)
        assert ours.mean_gradient_norm_ < 1e-6
        assert ours.converged_


# ------------------------------------------------------------------ beside the rows in memory


@every_kind
@every_estimator
def test_every_kind_of_input_gives_what_the_array_gives(Estimator, kind, tmp_path):
    X = data()
    whole = model(Estimator).fit(X)
    ours = model(Estimator).fit(stream(kind, X, tmp_path))
    check_same(ours, whole, X, 1e-9)
    assert ours.kernel_.sigma_ == pytest.approx(whole.kernel_.sigma_, rel=1e-13)
    again = stream(kind, X, tmp_path)
    assert_same(ours.transform(again), whole.transform(X), 1e-9)
    assert ours.score(again) == pytest.approx(whole.score(X), rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(), Linear(), Polynomial(degree=2)])
@every_sphere
@every_estimator
def test_precisions_weights_and_kernels(Estimator, sphere, kernel, weighted, dtype):
    X, w = data(dtype), weights_of() if weighted else None
    whole = model(Estimator, kernel, sphere=sphere).fit(X, sample_weight=w)
    ours = model(Estimator, kernel, sphere=sphere).fit(Anew(X), sample_weight=w)
    check_same(ours, whole, X, 1e-9 if dtype == np.float64 else 3e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_new_rows_in_blocks_by_an_exact_fit(Estimator, weighted, dtype, tmp_path):
    X, new = data(dtype, n=90), data(dtype, n=5_000)
    w, v = (weights_of(90), weights_of(5_000)) if weighted else (None, None)
    fitted = Estimator(K, solver="dense").fit(X, sample_weight=w)
    coordinates, score = fitted.transform(new), fitted.score(new, sample_weight=v)
    tol = 1e-10 if dtype == np.float64 else 1e-4
    for kind in ("memmap", "zarr", "list", "anew", "guarded"):
        blocks = stream(kind, new, tmp_path)
        assert_same(fitted.transform(blocks), coordinates, tol)
        assert fitted.score(blocks, sample_weight=v) == pytest.approx(score, rel=tol)
    assert_same(fitted.transform(iter([new[:7], new[7:]])), coordinates, tol)
    assert fitted.score(iter([new[:7], new[7:]])) == pytest.approx(fitted.score(new), rel=tol)


@pytest.mark.parametrize("solver", ["dense", "nystroem"])
@every_estimator
def test_points_to_compare_with_are_prepared_once(Estimator, solver, monkeypatch):
    fitted = Estimator(K, solver=solver, n_anchors=90).fit(data(n=90))
    compared, sizes, prepare = len(fitted.X_fit_), [], Gaussian.prepare

    def counted(kernel, X):
        sizes.append(X.shape[0])
        return prepare(kernel, X)

    monkeypatch.setattr(Gaussian, "prepare", counted)
    new = Guarded(data())
    fitted.transform(new)
    assert (sizes.count(compared), len(sizes) > 3) == (1, True)
    sizes.clear()
    fitted.score(new)
    assert (sizes.count(compared), len(sizes) > 3) == (1, True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_sphere
@every_estimator
def test_precision_is_that_of_the_rows_not_of_anchors_that_are_given(Estimator, sphere, dtype):
    other = np.float32 if dtype == np.float64 else np.float64
    X = data(dtype)
    points = X[::360].astype(other)
    options = {"solver": Nystroem(anchors=points, sphere=sphere), "kernel": Gaussian(sigma=2.0)}
    whole = Estimator(K, **options).fit(X)
    ours = Estimator(K, **options).fit(Anew(X))
    check_same(ours, whole, X, 1e-9 if dtype == np.float64 else 3e-4)
    assert {ours.X_fit_.dtype, ours.embedding_.dtype, ours.transform(X[:5]).dtype} == {
        np.dtype(dtype)
    }
    if Estimator is KernelPCA:
        partial = Estimator(K, **options).partial_fit(X[:4000]).partial_fit(X[4000:])
        assert partial.eigenvalues_.dtype == partial.transform(X[:5]).dtype == dtype
        tol = 1e-8 if dtype == np.float64 else 3e-4
        assert_same(partial.eigenvalues_, whole.eigenvalues_, tol)


@every_estimator
def test_kinds_that_take_turns_all_become_anchors(Estimator, monkeypatch):
    monkeypatch.setattr(anchors_module, "_CANDIDATES", 256)
    monkeypatch.setattr(anchors_module, "_CANDIDATES_PER_ANCHOR", 1)
    X = data(n=16)[np.arange(4096) % 16]
    options = {"solver": Nystroem(16, random_state=0), "kernel": Gaussian(sigma=0.5)}
    whole = Estimator(K, **options).fit(X)
    ours = Estimator(K, **options).fit(Anew(X))
    check_same(ours, whole, X, 1e-8)
    assert set(ours.anchor_indices_ % 16) == set(range(16))


def test_a_row_without_direction_is_named_by_its_number_among_all():
    X = data()
    X[8_765] = 1e3
    options = {"solver": Nystroem(anchors=X[:50]), "kernel": Gaussian(sigma=3.0)}
    for rows in (X, Anew(X), [X[:5000], X[5000:]]):
        with pytest.raises(RowError, match="Row 8765 of X is orthogonal") as caught:
            KernelPGA(K, **options).fit(rows)
        assert pickle.loads(pickle.dumps(caught.value)).rows == caught.value.rows == (8_765,)


@every_estimator
def test_weights_are_repetitions(Estimator):
    X, w = data(n=2500), weights_of(2500).astype(int)
    points = X[::60]
    options = {"solver": Nystroem(anchors=points)}
    weighted = model(Estimator, **options).fit([X[:999], X[999:]], sample_weight=w)
    repeated = model(Estimator, **options).fit(Anew(np.repeat(X, w, axis=0)))
    assert_same(weighted.eigenvalues_, repeated.eigenvalues_, 1e-9)
    assert_same(weighted.transform(X), repeated.transform(X), 1e-8)
    assert weighted.score([X], sample_weight=w) == pytest.approx(
        repeated.score(np.repeat(X, w, axis=0))
    )


@every_estimator
def test_sparse_batches(Estimator):
    X = data()
    X[X < 1] = 0
    X[:, 0] += 1
    S = scipy.sparse.csr_array(X)
    whole = model(Estimator).fit(S)
    ours = model(Estimator).fit([S[:4000], S[4000:]])
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-9)
    assert_same(ours.transform([S[:50]]), whole.transform(S[:50]), 1e-9)


@pytest.mark.parametrize("wanted", [0.8, None, 60])
@every_estimator
def test_numbers_of_components(Estimator, wanted):
    X = data(n=3000)
    whole = model(Estimator, "linear", n_components=wanted).fit(X)
    ours = model(Estimator, "linear", n_components=wanted).fit([X])
    assert ours.n_components_ == whole.n_components_
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-9)


def test_shapes_and_matrices_in_batches():
    random = np.random.default_rng(3)
    shapes = random.standard_normal((700, 6, 2)) * 0.1 + random.standard_normal((6, 2))
    A = random.standard_normal((700, 3, 3))
    matrices = A @ A.transpose(0, 2, 1) + np.eye(3)
    for kernel, X in ((VeroneseWhitney(), shapes), (LogEuclidean(), matrices)):
        whole = model(KernelPGA, kernel).fit(X)
        ours = model(KernelPGA, kernel).fit(Anew(X, 90))
        assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-9)
        assert_same(ours.transform(Anew(X, 90)), whole.transform(X), 1e-8)
        listed = model(KernelPGA, kernel).fit(list(matrices) if X is matrices else list(shapes))
        assert_same(listed.eigenvalues_, whole.eigenvalues_, 1e-9)  # points, not batches


def test_the_median_comes_from_a_sample():
    X = data()
    ours = model(KernelPCA, Gaussian(sigma="median")).fit([X])
    exact = Gaussian(sigma="median").fit(X)
    assert ours.kernel_.sigma_ == pytest.approx(exact.sigma_, rel=0.03)
    few = model(KernelPCA, Gaussian(sigma="median")).fit([X[:900]])
    assert few.kernel_.sigma_ == Gaussian(sigma="median").fit(X[:900]).sigma_


def test_a_kernel_that_needs_normalising():
    X = data()
    with pytest.raises(ValueError, match=r"k\(x, x\) must be the same for all"):
        model(KernelPGA).set_params(kernel="linear").fit([X])
    ours = model(KernelPGA).set_params(kernel=Normalized("linear")).fit([X])
    on_sphere = X / np.linalg.norm(X, axis=1, keepdims=True) * 3.0
    scaled = model(KernelPGA).set_params(kernel="linear").fit(Anew(on_sphere))
    assert_same(ours.eigenvalues_, scaled.eigenvalues_, 1e-9)


@pytest.mark.parametrize("kind", ["memmap", "anew"])
@every_estimator
def test_two_threads_do_what_one_does(Estimator, kind, tmp_path, monkeypatch):
    X, w = data(), weights_of()
    one = model(Estimator).fit(X, sample_weight=w)
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    two = model(Estimator).fit(stream(kind, X, tmp_path), sample_weight=w)
    check_same(two, one, X, 1e-9)
    assert_same(two.transform(stream(kind, X, tmp_path)), one.transform(X), 1e-9)
    if Estimator is KernelPCA:
        points = Nystroem(anchors=one.X_fit_)
        fresh = KernelPCA(K, kernel=Gaussian(sigma=one.kernel_.sigma_), solver=points)
        batches = [X[:4000], X[4000:]]
        assert_same(
            fresh.partial_fit(batches, sample_weight=w).eigenvalues_, one.eigenvalues_, 1e-9
        )


# ------------------------------------------------------------------ memory


@every_estimator
def test_nobody_holds_more_than_a_block(Estimator, monkeypatch):
    X = data()
    guarded = Guarded(X)
    ours = model(Estimator).fit(guarded)
    assert guarded.largest <= 4096
    embedding = ours.embedding_
    # coordinates that do not fit the budget are not kept, and signs come from sums
    small = model(Estimator, memory_budget=2 * N * K * 8)
    passes = Anew(X)
    small.fit(passes)
    for name in ("embedding_", "eigenvectors_"):
        with pytest.raises(
            AttributeError, match=rf"{name}: it has seen more rows .*transform\(X\)"
        ):
            getattr(small, name)
    assert not hasattr(small, "mean_cosines_")
    assert_same(small.transform(guarded), embedding, 1e-9)
    assert_same(small.inverse_transform(embedding[:3]), ours.inverse_transform(embedding[:3]), 1e-7)
    assert_same(small.fit_transform(Guarded(X)), embedding, 1e-9)
    assert passes.passes <= 16


@pytest.mark.parametrize("weighted", [False, True])
@every_estimator
def test_coordinates_take_no_more_than_is_counted(Estimator, weighted, tmp_path):
    n, k = 150_000, 6
    X = stream("memmap", np.tile(data(np.float32, n=10_000), (15, 1)), tmp_path)
    options = {"solver": Nystroem(anchors=np.array(X[:8])), "kernel": Gaussian(sigma=2.0)}
    options["storage"] = "recompute"
    w = weights_of(n) if weighted else None
    counted = n * (8 * (k + 1) + 2 * k * 4)
    tracemalloc.start()
    try:
        ours = Estimator(k, memory_budget=4 * counted, **options).fit(X, sample_weight=w)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    beside = 8 * n * (2 * weighted + 2 * (Estimator is KernelPGA))  # weights, lengths, cosines
    assert peak <= 1.2 * (counted + beside)
    assert kept <= 1.1 * (2 * n * k * 4 + beside)
    assert ours.embedding_.shape == ours.eigenvectors_.shape == (n, k)
    less = Estimator(k, memory_budget=4 * counted - 4, **options).fit(X, sample_weight=w)
    assert not hasattr(less, "embedding_")


def test_signs_are_those_of_third_moments_with_a_sample_where_they_are_unclear():
    X = np.concatenate([data(n=2500), -data(n=2500)])
    whole = KernelPCA(2, kernel="linear", solver="nystroem").fit(X)
    small = KernelPCA(2, kernel="linear", solver="nystroem", memory_budget=1000).fit([X])
    Z = small.transform(X)
    assert_same(np.abs(Z), np.abs(whole.embedding_), 1e-9)
    assert not hasattr(small, "embedding_")


@every_estimator
def test_an_earlier_fit_leaves_nothing_behind(Estimator):
    X = data(n=3000)
    ours = model(Estimator, memory_budget=2**16).fit(X)
    ours.set_params(memory_budget=1000).fit([X])
    assert not hasattr(ours, "embedding_")
    assert ours.set_params(memory_budget="1GiB").fit([X]).embedding_.shape == (3000, K)


# ------------------------------------------------------------------ what is refused


@every_estimator
def test_refusals_say_what_to_do(Estimator):
    X = data(n=3000)
    bad = X.copy()
    bad[2345, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in row 2345\."):
        model(Estimator).fit([bad[:2000], bad[2000:]])
    with pytest.raises(ValueError, match="read only once") as caught:
        model(Estimator).fit(batch for batch in [X])
    assert ("partial_fit" in str(caught.value)) == hasattr(Estimator, "partial_fit")
    with pytest.raises(ValueError, match=r"solver='krylov'.*Take solver='nystroem'"):
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


@every_estimator
def test_iterators_are_enough_for_new_rows(Estimator):
    X = data(n=3000)
    ours = model(Estimator).fit([X])
    batches = (X[i : i + 7] for i in range(0, 700, 7))
    assert_same(ours.transform(batches), ours.transform(X[:700]), 1e-10)
    assert ours.score(X[i : i + 7] for i in range(0, 700, 7)) == pytest.approx(ours.score(X[:700]))


@pytest.mark.parametrize(
    "estimator",
    [RobustKernelPCA(2), KernelPNS(2, sphere="great"), HypersphericalKMeans(2), KernelPCA(2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_nothing_is_read_whole_unasked(estimator):
    X = data(n=200)
    if not isinstance(estimator, KernelPCA):
        with pytest.raises(ValueError, match=rf"{type(estimator).__name__} takes arrays in memory"):
            estimator.fit(Guarded(X))
    fitted = estimator.fit(X)
    with pytest.raises(ValueError, match="would be read into memory as a whole"):
        fitted.kernel_.diag(Guarded(X))


# ------------------------------------------------------------------ the rest of the protocol


@every_estimator
def test_pickles_and_files(Estimator, tmp_path):
    X = data(n=3000)
    ours = model(Estimator).fit([X])
    save(ours, tmp_path / "model.orthodrome")
    for other in (pickle.loads(pickle.dumps(ours)), load(tmp_path / "model.orthodrome")):
        assert np.array_equal(other.transform([X]), ours.transform([X]))


@every_estimator
def test_names_of_columns(Estimator):
    pandas = pytest.importorskip("pandas")
    X = data(n=3000)
    frames = [pandas.DataFrame(part, columns=list("abcd")) for part in (X[:900], X[900:])]
    ours = model(Estimator).fit(frames)
    assert list(ours.feature_names_in_) == list("abcd")
    assert_same(ours.transform(frames), ours.transform(pandas.concat(frames)), 1e-10)
    with pytest.raises(ValueError, match="same columns"):
        model(Estimator).fit([frames[0], frames[1][list("bacd")]])


def test_what_functions_of_blocks_carry_is_small_and_picklable():
    X = data(n=5000)
    ours = model(KernelPGA).fit([X])
    light = new_points(ours)
    assert len(pickle.dumps(light)) < 60_000 < len(pickle.dumps(ours))
    assert hasattr(ours, "embedding_")
    rows = as_rows([X], ours.kernel_, ours, reset=False)
    assert_same(rows.map(pickle.loads(pickle.dumps(light))), ours.embedding_, 1e-9)
