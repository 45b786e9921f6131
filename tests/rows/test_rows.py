"""Rows in blocks: sums and rows of every kind of data are those of the whole array."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse

from orthodrome import KernelPCA
from orthodrome.kernels import Embedded, FromCallable, Gaussian, Linear, LogEuclidean, Normalized
from orthodrome.rows import as_rows, kind_of
from orthodrome.rows.base import row_moments, rows_at, spread_rows

zarr = pytest.importorskip("zarr")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

N = 10_000  # more than two blocks of arrays


class Anew:
    """Batches that are made again in every pass."""

    def __init__(self, X, size):
        self.X, self.size = X, size

    def __iter__(self):
        for start in range(0, len(self.X), self.size):
            yield self.X[start : start + self.size].copy()


class InOneBuffer(Anew):
    """Batches that are read into the same array, one after the other."""

    def __iter__(self):
        buffer = np.empty((self.size, *self.X.shape[1:]), dtype=self.X.dtype)
        for part in super().__iter__():
            buffer[: len(part)] = part
            yield buffer[: len(part)]
            buffer[:] = np.nan


def data(dtype=np.float64, n=N):
    return np.random.default_rng(0).standard_normal((n, 3)).astype(dtype)


def stored_in_zarr(X, tmp_path):
    stored = zarr.create_array(str(tmp_path / "X"), shape=X.shape, chunks=(700, 2), dtype=X.dtype)
    stored[:] = X
    return stored


def mapped(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def swapped(X, tmp_path):
    """Must be converted, to float64, and is validated in every pass."""
    return mapped(X.astype(X.dtype.newbyteorder(">")), tmp_path)


KINDS = {
    "array": lambda X, _: X,
    "memory map": mapped,
    "sparse": lambda X, _: scipy.sparse.csr_array(X),
    "zarr": stored_in_zarr,
    "dask": lambda X, _: da.from_array(X, chunks=(1234, 2)),
    "list": lambda X, _: [X[:1], X[1:1], X[1:17], X[17:4000], X[4000:]],
    "anew": lambda X, _: Anew(X, 333),
    "one buffer": lambda X, _: InOneBuffer(X, 333),
    "one large buffer": lambda X, _: InOneBuffer(X, 9_000),
    "single rows": lambda X, _: [X[i : i + 1] for i in range(200)] + [X[200:]],
}
EVERY_KIND = KINDS | {"swapped map": swapped}
AT_ONCE = ("array", "memory map", "sparse")  # validated when the rows are made


def rows_of(given, kernel=None, **options):
    return as_rows(given, kernel or Gaussian(), KernelPCA(), **options)


@dataclass(frozen=True)
class Moments:
    power: int = 2

    def __call__(self, rows, start, weights):
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        numbers = np.arange(start, start + len(rows))
        return weights @ rows**self.power, rows.T @ rows, numbers @ rows, float(len(rows))


def tripled(rows, start):
    return 3 * rows


@dataclass(frozen=True)
class Doubled:
    rows_at_once: int = 100

    def __call__(self, rows, start, weights):
        assert rows.shape[0] <= self.rows_at_once
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        return 2 * rows + weights[:, None]


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*itertools.product(KINDS, [np.float64, np.float32]), ("swapped map", np.float64)],
)
def test_rows_agree_with_the_whole_array(kind, dtype, tmp_path):
    X = data(dtype)
    estimator = KernelPCA()
    source = as_rows(EVERY_KIND[kind](X, tmp_path), Gaussian(), estimator)
    assert (source.shape, source.dtype, estimator.n_features_in_) == (X.shape, dtype, 3)
    weights = np.random.default_rng(1).random(N)
    found = source.zip(weights=weights).reduce(Moments(3))
    wide = X.astype(np.float64)
    expected = (weights @ wide**3, wide.T @ wide, np.arange(N) @ wide, N)
    assert all(array.dtype == np.float64 for array in found)
    tolerance = 1e-12 if dtype == np.float64 else 3e-5
    for array, exact in zip(found, expected, strict=True):
        assert np.allclose(array, exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())
    rows = source.zip(weights=weights.astype(dtype)).map(Doubled())
    assert np.array_equal(np.asarray(rows), 2 * X + weights.astype(dtype)[:, None])
    assert isinstance(rows, np.ndarray) is not source.lazy
    chosen = np.array([9_999, 0, 5_000, 5_000, 17])
    taken = source.take(chosen)
    taken = taken.toarray() if scipy.sparse.issparse(taken) else taken
    assert np.array_equal(taken, X[chosen])
    assert taken.dtype == dtype


@pytest.mark.parametrize(
    ("kind", "step"),
    [("array", N), ("memory map", N), ("swapped map", 4096), ("zarr", 3500)],  # whole chunks
)
def test_arrays_are_read_at_once_and_the_rest_in_blocks(kind, step, tmp_path):
    X = data(np.float64)
    blocks = list(rows_of(EVERY_KIND[kind](X, tmp_path)).blocks())
    assert [len(block) for block in blocks[:-1]] == [step] * (-(-N // step) - 1)
    assert np.array_equal(np.concatenate(blocks), X)


@pytest.mark.parametrize("weights", [None, np.ones(4096)])
def test_rows_are_spread_evenly_if_data_are_periodic(weights):
    kinds, parts = np.arange(4096) % 16, np.arange(4096) // 16
    for random in (None, np.random.default_rng(4)):
        rows, counts = spread_rows(4096, weights, 256, random)
        assert np.array_equal(parts[rows], np.arange(256))
        assert np.array_equal(counts, np.ones(256))
        # of 256 draws each kind has 16 on average; that one has fewer than 4 is improbable
        assert np.bincount(kinds[rows], minlength=16).min() >= 4
    # no row of weight 0, not even where rounding reaches the end of the sum
    assert rows_at(np.array([0.0, 0.3, 0.1, 0.0]), np.array([0.0, 0.9, 1.0])).tolist() == [1, 2, 2]
    # with hardly more rows than draws, each is met once on average
    total = np.zeros(6)
    for seed in range(4_000):
        rows, counts = spread_rows(6, None, 5, np.random.default_rng(seed))
        assert counts.sum() == 5
        total[rows] += counts
    assert np.allclose(total / 4_000, 5 / 6, atol=0.03)


@pytest.mark.parametrize(("row", "bad"), [(0, np.nan), (9_876, np.nan), (9_876, np.inf)])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_errors_name_the_row_of_a_missing_value(kind, row, bad, tmp_path):
    X = data()
    X[row, 1] = bad
    given = EVERY_KIND[kind](X, tmp_path)
    made = None if kind in AT_ONCE or row == 0 else rows_of(given)
    for read in (
        lambda source: source.zip(weights=np.ones(N)).reduce(Moments()),
        lambda source: source.take(np.array([3, row])),
    ):
        with pytest.raises(ValueError, match=rf"KernelPCA contains NaN or infinity in row {row}\."):
            read(made or rows_of(given))


def test_invalid_batches_raise():
    for batches, message in (
        ([np.ones((5, 3)), np.ones((9_000, 3)), np.ones((2, 4))], r"at row 9005 has \(4,\)"),
        ([np.ones((5, 3)), np.ones((2, 4))], r"at row 5 has \(4,\)"),
        ([np.ones((0, 3))], "KernelPCA needs at least one row; the batches have none"),
    ):
        with pytest.raises(ValueError, match=message):
            rows_of(batches)
    for batches, message in (([np.ones(3)], "two dimensions"), ([np.ones((0, 3))], "have none")):
        with pytest.raises(ValueError, match=message):
            rows_of(iter(batches), reset=False).reduce(Moments())


def test_precision_is_that_of_the_widest_batch():
    batches = [np.ones((9000, 2), dtype=np.float32)] * 2  # too large to be concatenated
    assert rows_of(batches).dtype == np.float32
    source = rows_of([*batches, np.ones((3, 2), dtype=np.int64)])
    assert source.dtype == source.take(np.array([0])).dtype == np.float64


def test_iterators_are_read_once_if_that_is_enough():
    X = data(n=50)
    estimator = KernelPCA(kernel="linear").fit(X)
    with pytest.raises(ValueError, match=r"read only once.*partial_fit"):
        rows_of((X for _ in range(2)), Linear())
    batches = (X[i : i + 9] for i in range(0, 50, 9))
    source = as_rows(batches, estimator.kernel_, estimator, reset=False)
    assert np.array_equal(source.map(tripled), 3 * X)
    with pytest.raises(ValueError, match="only once"):
        source.reduce(Moments())
    narrow = as_rows(iter([X[:, :2]]), estimator.kernel_, estimator, reset=False)
    with pytest.raises(ValueError, match="2 features"):
        narrow.map(tripled)
    assert estimator.n_features_in_ == 3


def test_weights_count_the_rows_of_batches():
    X = data(n=20)
    source = rows_of([X[:9], X[9:]], once=True)
    assert source.shape == ()
    assert np.array_equal(source.weights(np.arange(20), "KernelPCA"), np.arange(20))
    assert source.shape == X.shape


@pytest.mark.parametrize("kind", ["array", "zarr", "list"])
def test_callables_are_evaluated_by_one_thread_at_a_time(kind, tmp_path):
    given = KINDS[kind](data(), tmp_path)
    assert rows_of(given, FromCallable(np.minimum)).serial
    assert not rows_of(given).serial


def test_columns_of_data_frames_are_those_of_the_first():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data(n=30), columns=["a", "b", "c"])
    parts = [frame[:10], frame[10:], frame[:4]]
    assert np.array_equal(rows_of(parts).map(tripled), 3 * np.concatenate(parts))
    parts[1] = parts[1][["a", "c", "b"]]
    with pytest.raises(ValueError, match=r"\['a', 'b', 'c'\]; one has \['a', 'c', 'b'\]"):
        rows_of(parts)


@pytest.mark.parametrize(("step", "found"), [(-1, "39 rows in the first pass and 38"), (1, "more")])
def test_batches_must_be_the_same_in_every_pass(step, found):
    class Changing(Anew):
        def __iter__(self):
            self.X = data(n=len(self.X) + step)
            return super().__iter__()

    with pytest.raises(ValueError, match=found):
        rows_of(Changing(data(n=40), 7)).map(tripled)


def test_kinds_of_input():
    X = data(n=12)
    assert kind_of(X) == kind_of(X.tolist()) == kind_of(scipy.sparse.csr_array(X)) == "array"
    assert kind_of([X, X]) == kind_of((X,)) == kind_of(Anew(X, 3)) == "batches"
    assert kind_of(iter([X])) == kind_of(x for x in [X]) == "once"
    for given in ("rows", b"rows", {"rows": X}, [], 3.0, None, object()):
        assert kind_of(given) == "array", "the kernel is to refuse it"
    matrices = [np.eye(2), np.eye(2)]
    for kernel in (LogEuclidean(), Embedded(np.ravel), Normalized(LogEuclidean())):
        assert kind_of(matrices, kernel) == "array"
    assert kind_of(matrices, Normalized("linear")) == "batches"


def failing(rows, start):
    if start >= 110:
        raise ValueError("Row 3 of X is wrong.")
    return (1.0,)


failing.rows_at_once = 10


def failing_at_once(rows, start):
    raise ValueError("Row 3 of X is wrong.")


@pytest.mark.parametrize("kind", ["array", "dask", "list"])
def test_errors_of_a_function_name_the_block(kind, tmp_path):
    source = rows_of(KINDS[kind](data(), tmp_path))
    with pytest.raises(ValueError, match=r"Row 3 .*from row \d+ of the data"):
        source.reduce(failing)
    with pytest.raises(ValueError, match=r"^Row 3 of X is wrong\.$"):
        source.map(failing_at_once)


@pytest.mark.parametrize("shape", [(), (5,), (0, 3)])
def test_zarr_arrays_without_rows_are_refused(shape, tmp_path):
    stored = zarr.create_array(str(tmp_path / "X"), shape=shape, dtype=float)
    with pytest.raises(ValueError, match=r"KernelPCA needs at least one row.* got shape \("):
        rows_of(stored)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_of_rows_are_those_of_all_pairs(weighted, kind, offset):
    X = data(n=90) + offset
    w = np.arange(90.0) % 4 if weighted else np.ones(90)
    p = w / w.sum()
    distances = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    exact, mean = float(p @ distances @ p), p @ X
    rows = X if kind == "dense" else scipy.sparse.csr_array(X)
    center = X[4] if kind == "dense" else np.zeros(3)
    found = row_moments(rows_of(rows).zip(weights=w if weighted else None), center)
    square = float(p @ np.sum((X - center) ** 2, axis=1))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12, atol=1e-12)
    # `rounding` bounds the error, and is not much larger than rounding errors are
    assert abs(found.squared_distance - exact) <= found.rounding + 1e-12 * exact
    assert np.finfo(np.float64).eps * square <= found.rounding <= 1e-13 * square
