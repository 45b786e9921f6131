"""Rows in blocks: sums and rows of every kind of data are those of the whole array."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse

from orthodrome import KernelPCA
from orthodrome._core.digest import digest
from orthodrome.gram import gram_operator
from orthodrome.gram.dask_gram import DaskGram
from orthodrome.gram.degree import Degree
from orthodrome.kernels import Embedded, FromCallable, Gaussian, Linear, LogEuclidean, Normalized
from orthodrome.rows import as_rows, kind_of
from orthodrome.rows.base import rows_named, spread_rows

zarr = pytest.importorskip("zarr")
da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")

N = 10_000  # more than two blocks of arrays


class Anew:
    """Batches that are made again in every pass; counts how many rows were alive at a time."""

    def __init__(self, X, size):
        self.X, self.size, self.passes = X, size, 0

    def __iter__(self):
        self.passes += 1
        for start in range(0, len(self.X), self.size):
            yield self.X[start : start + self.size].copy()


class InOneBuffer(Anew):
    """Batches that are read into the same array, one after the other."""

    def __iter__(self):
        self.passes += 1
        buffer = np.empty((self.size, *self.X.shape[1:]), dtype=self.X.dtype)
        for start in range(0, len(self.X), self.size):
            part = self.X[start : start + self.size]
            buffer[: len(part)] = part
            yield buffer[: len(part)]
            buffer[:] = np.nan


def data(dtype=np.float64, n=N):
    return np.random.default_rng(0).standard_normal((n, 3)).astype(dtype)


def kinds_of_rows(X, tmp_path):
    stored = zarr.create_array(
        str(tmp_path / "rows.zarr"), shape=X.shape, chunks=(700, 2), dtype=X.dtype
    )
    stored[:] = X
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "swapped.npy", X.astype(X.dtype.newbyteorder(">")))
    cuts = [0, 1, 1, 17, 4000, 9999, len(X)]
    return {
        "array": X,
        "memmap": np.load(tmp_path / "rows.npy", mmap_mode="r"),
        SWAPPED: np.load(tmp_path / "swapped.npy", mmap_mode="r"),
        "sparse": scipy.sparse.csr_array(X),
        "zarr": stored,
        "dask": da.from_array(X, chunks=(1234, 2)),
        "list": [X[a:b] for a, b in itertools.pairwise(cuts)],
        "anew": Anew(X, 333),
        "one buffer": InOneBuffer(X, 333),
        "one large buffer": InOneBuffer(X, 9_000),
        "single rows": [X[i : i + 1] for i in range(200)] + [X[200:]],
    }


@dataclass(frozen=True)
class Moments:
    power: int

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


AT_ONCE = ["array", "memmap", "sparse"]  # validated when the rows are made, not in every pass
KINDS = [*AT_ONCE, "zarr", "dask", "list", "anew", "single rows", "one buffer", "one large buffer"]
SWAPPED = "swapped memmap"  # must be converted, to float64, and is validated in every pass


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*itertools.product(KINDS, [np.float64, np.float32]), (SWAPPED, np.float64)],
)
def test_rows_agree_with_the_whole_array(kind, dtype, tmp_path):
    X = data(dtype)
    estimator = KernelPCA()
    source = as_rows(kinds_of_rows(X, tmp_path)[kind], Gaussian(), estimator)
    assert (source.shape, source.dtype, estimator.n_features_in_) == (X.shape, dtype, 3)
    weights = np.random.default_rng(1).random(N)
    found = source.zip(weights=weights).reduce(Moments(3))
    wide = X.astype(np.float64)
    expected = (weights @ wide**3, wide.T @ wide, np.arange(N) @ wide, N)
    assert all(array.dtype == np.float64 for array in found)
    for array, exact in zip(found, expected, strict=True):
        tolerance = 1e-12 if dtype == np.float64 else 3e-5
        assert np.allclose(array, exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())
    rows = source.zip(weights=weights.astype(dtype)).map(Doubled())
    assert np.array_equal(np.asarray(rows), 2 * X + weights.astype(dtype)[:, None])
    assert isinstance(rows, np.ndarray) is not source.lazy
    chosen = np.array([9_999, 0, 5_000, 5_000, 17])
    taken = source.take(chosen)
    taken = taken.toarray() if scipy.sparse.issparse(taken) else taken
    assert np.array_equal(taken, X[chosen])
    assert taken.dtype == dtype


@pytest.mark.parametrize("weights", [None, np.ones(4096)])
def test_rows_are_spread_evenly_whatever_their_period(weights):
    kinds, parts = np.arange(4096) % 16, np.arange(4096) // 16
    for random in (None, np.random.default_rng(4)):
        rows, counts = spread_rows(4096, weights, 256, random)
        assert np.array_equal(parts[rows], np.arange(256))
        assert np.array_equal(counts, np.ones(256))
        # of 256 draws each kind has 16 on average; that one has fewer than 4 is improbable
        assert np.bincount(kinds[rows], minlength=16).min() >= 4
    # where rows are hardly more than draws, each is met once on average
    total = np.zeros(6)
    for seed in range(4_000):
        rows, counts = spread_rows(6, None, 5, np.random.default_rng(seed))
        assert counts.sum() == 5
        total[rows] += counts
    assert np.allclose(total / 4_000, 5 / 6, atol=0.03)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [*KINDS, SWAPPED])
def test_a_missing_value_is_named_by_its_row_among_all(kind, bad, tmp_path):
    X = data()
    X[9_876, 1] = bad
    given = kinds_of_rows(X, tmp_path)[kind]
    made = None if kind in AT_ONCE else as_rows(given, Gaussian(), KernelPCA())
    for look in (
        lambda source: source.zip(weights=np.ones(N)).reduce(Moments(2)),
        lambda source: source.take(np.array([3, 9_876])),
    ):
        with pytest.raises(ValueError, match=r"KernelPCA contains NaN or infinity in row 9876\."):
            look(made or as_rows(given, Gaussian(), KernelPCA()))


@pytest.mark.parametrize("kind", [*KINDS, SWAPPED])
def test_a_missing_value_in_the_first_row_is_named(kind, tmp_path):
    X = data()
    X[0, 2] = np.nan
    with pytest.raises(ValueError, match=r"KernelPCA contains NaN or infinity in row 0\."):
        as_rows(kinds_of_rows(X, tmp_path)[kind], Gaussian(), KernelPCA()).take(np.array([0]))


def test_batches_of_another_width_are_refused_by_name():
    batches = [np.ones((5, 3)), np.ones((20_000, 3)), np.ones((2, 4))]
    with pytest.raises(ValueError, match=r"begins at row 20005 has \(4,\)"):
        as_rows(batches, Gaussian(), KernelPCA()).zip(weights=np.ones(20_007)).reduce(Moments(1))
    with pytest.raises(ValueError, match=r"begins at row 5 has \(4,\)"):
        as_rows([batches[0], batches[2]], Gaussian(), KernelPCA())
    source = as_rows(iter([np.ones(3)]), Gaussian(), KernelPCA(), reset=False)
    with pytest.raises(ValueError, match="two dimensions"):
        source.reduce(Moments(1))


def test_precision_is_that_of_the_widest_batch():
    batches = [np.ones((3, 2), dtype=np.float32), np.ones((3, 2), dtype=np.float32)]
    assert as_rows(batches, Gaussian(), KernelPCA()).dtype == np.float32
    batches.append(np.ones((3, 2), dtype=np.int64))
    source = as_rows(batches, Gaussian(), KernelPCA())
    assert source.dtype == source.take(np.array([0])).dtype == np.float64


def test_iterators_are_read_once_where_that_is_enough():
    X = data(n=50)
    kernel, estimator = Linear().fit(X), KernelPCA(kernel="linear").fit(X)
    with pytest.raises(ValueError, match=r"read only once.*partial_fit"):
        as_rows((X for _ in range(2)), Linear(), KernelPCA())
    source = as_rows((X[i : i + 9] for i in range(0, 50, 9)), kernel, estimator, reset=False)
    assert np.array_equal(source.map(tripled), 3 * X)
    with pytest.raises(ValueError, match="only once"):
        source.reduce(Moments(1))


def test_what_is_read_later_does_not_change_what_was_fitted():
    X = data(n=50)
    estimator = KernelPCA(kernel="linear").fit(X)
    kernel = estimator.kernel_
    for look in (
        lambda rows: rows.map(tripled),
        lambda rows: rows.zip(weights=np.ones(50)).reduce(Moments(1)),
    ):
        narrow = as_rows(iter([X[:, :2]]), kernel, estimator, reset=False)
        with pytest.raises(ValueError, match="2 features"):
            look(narrow)
        assert estimator.n_features_in_ == 3


def test_columns_of_data_frames_are_those_of_the_first():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data(n=30), columns=["a", "b", "c"])
    parts = [frame[:10], frame[10:], frame[:4]]
    source = as_rows(parts, Gaussian(), KernelPCA())
    assert np.array_equal(source.map(tripled), 3 * np.concatenate(parts))
    parts[1] = parts[1][["a", "c", "b"]]
    with pytest.raises(ValueError, match=r"\['a', 'b', 'c'\]; one has \['a', 'c', 'b'\]"):
        as_rows(parts, Gaussian(), KernelPCA())


def test_batches_must_be_the_same_in_every_pass():
    class Shrinking(Anew):
        def __iter__(self):
            self.X = self.X[:-1]
            return super().__iter__()

    source = as_rows(Shrinking(data(n=40), 7), Gaussian(), KernelPCA())
    with pytest.raises(ValueError, match="39 rows in the first pass and 38"):
        source.zip(weights=np.ones(40)).reduce(Moments(1))

    class Growing(Anew):
        def __iter__(self):
            self.X = np.concatenate([self.X, self.X[:1]])
            return super().__iter__()

    source = as_rows(Growing(data(n=40), 7), Gaussian(), KernelPCA())
    with pytest.raises(ValueError, match="41 rows in the first pass and more"):
        source.map(tripled)


def test_kinds_of_input():
    X = data(n=12)
    assert kind_of(X) == kind_of(X.tolist()) == kind_of(scipy.sparse.csr_array(X)) == "array"
    assert kind_of([X, X]) == kind_of((X,)) == kind_of(Anew(X, 3)) == "batches"
    assert kind_of(iter([X])) == kind_of(x for x in [X]) == "once"
    for given in ("rows", b"rows", {"rows": X}, 3.0, None, object()):
        assert kind_of(given) == "array", "what the kernel is to refuse"
    matrices = [np.eye(2), np.eye(2)]
    for kernel in (LogEuclidean(), Embedded(np.ravel), Normalized(LogEuclidean())):
        assert kind_of(matrices, kernel) == "array"
    assert kind_of(matrices, Normalized("linear")) == "batches"


@pytest.mark.parametrize("kind", ["array", "zarr", "list", "anew"])
def test_callables_are_evaluated_by_one_thread_at_a_time(kind, tmp_path):
    given = kinds_of_rows(data(), tmp_path)[kind]
    assert as_rows(given, FromCallable(np.minimum), KernelPCA()).serial
    assert not as_rows(given, Gaussian(), KernelPCA()).serial


@pytest.mark.parametrize("kind", ["array", "dask", "list"])
def test_errors_of_a_function_name_the_block(kind, tmp_path):
    source = as_rows(kinds_of_rows(data(), tmp_path)[kind], Gaussian(), KernelPCA())
    with pytest.raises(ValueError, match=r"Row 3 .*begins at row \d+ of the data"):
        source.reduce(_failing)


def test_errors_of_rows_without_an_order_and_of_the_first_block_are_left_as_they_are():
    message = "Row 3 of X is wrong."
    for start in (0, np.array([4, 2])):
        with pytest.raises(ValueError, match=message) as told, rows_named(data(n=2), start, "PCA"):
            raise ValueError(message)
        assert str(told.value) == message


def _failing(rows, start):
    if start >= 110:
        raise ValueError("Row 3 of X is wrong.")
    return (1.0,)


_failing.rows_at_once = 10


def test_nothing_reads_more_than_a_block(tmp_path):
    class Narrow:
        """Stands for a zarr array; hands out few rows at a time, and never all of them."""

        shape, dtype, chunks = (N, 3), np.dtype(np.float64), (500, 3)

        def __getitem__(self, rows):
            assert rows.stop - (rows.start or 0) <= 4096
            return data()[rows]

        @property
        def oindex(self):
            return data()

        def __array__(self, *_, **__):
            raise AssertionError("the whole array was asked for")

    Narrow.__module__ = "zarr.core"
    source = as_rows(Narrow(), Gaussian(), KernelPCA())
    assert np.allclose(source.zip(weights=np.ones(N)).reduce(Moments(1))[0], data().sum(axis=0))
    assert np.array_equal(source.take(np.array([9_999, 1])), data()[[9_999, 1]])


def test_no_rows_and_single_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="KernelPCA takes at least one row; the batches have none"):
        as_rows([data(n=3)[:0]], Gaussian(sigma=1.0), KernelPCA())
    flat = zarr.create_array(str(tmp_path / "flat.zarr"), shape=(5,), dtype=float)
    with pytest.raises(ValueError, match=r"KernelPCA takes rows of features.* of shape \(5,\)"):
        as_rows(flat, Gaussian(sigma=1.0), KernelPCA())


def test_of_batches_without_rows_nothing_is_made():
    empty = as_rows([data(n=3)[:0]], Gaussian(sigma=1.0), KernelPCA(), reset=False)
    with pytest.raises(ValueError, match="KernelPCA takes at least one row; the batches have none"):
        empty.reduce(Moments(2))


def test_what_a_matrix_is_says_more_than_its_numbers():
    X = data(n=12)
    kernel = Gaussian(sigma=1.0).fit(X)
    gram = gram_operator(kernel, X)
    plain, shifted = (Degree(gram, shift=shift) for shift in (0.0, 0.5))
    assert digest(plain) == digest(Degree(gram, shift=0.0)) != digest(shifted)
    lazy = [DaskGram(kernel, da.from_array(Y, chunks=4)) for Y in (X, X, 2 * X)]
    assert digest(lazy[0]) == digest(lazy[1]) != digest(lazy[2])
