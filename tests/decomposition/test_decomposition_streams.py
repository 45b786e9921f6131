"""Rows in blocks: what tests/test_storage.py does not cover.

Fits do not depend on storage (test_storage.py). Here: precisions, rows of other kinds, new rows,
memory and errors.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse

from laws_decomposition import assert_same, every_estimator, suited
from orthodrome import KernelPCA, KernelPGA
from orthodrome._core.checks import RowError
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian

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


@every_estimator
def test_new_rows_in_blocks_by_an_exact_fit(Estimator, tmp_path):
    X, new, v, tol = data(n=90), data(n=5_000), weights_of(5_000), 1e-10
    fitted = Estimator(K, solver="dense").fit(X, sample_weight=weights_of(90))
    coordinates, score = fitted.transform(new), fitted.score(new, sample_weight=v)
    for blocks in (memory_map(new, tmp_path), [new[:7], new[7:]], Anew(new), Guarded(new)):
        assert_same(fitted.transform(blocks), coordinates, tol)
        assert fitted.score(blocks, sample_weight=v) == pytest.approx(score, rel=tol)
    assert_same(fitted.transform(iter([new[:7], new[7:]])), coordinates, tol)
    assert fitted.score(iter([new[:7], new[7:]])) == pytest.approx(fitted.score(new), rel=tol)


@every_estimator
def test_sparse_batches(Estimator):
    X = data()
    X[X < 1] = 0
    X[:, 0] += 1
    S = scipy.sparse.csr_array(X)
    whole, ours = (model(Estimator).fit(rows) for rows in (S, [S[:4000], S[4000:]]))
    assert_same(ours.eigenvalues_, whole.eigenvalues_, 1e-9)
    assert_same(ours.transform([S[:50]]), whole.transform(S[:50]), 1e-9)


def test_the_median_comes_from_a_sample(monkeypatch):
    monkeypatch.setattr("orthodrome.base.SAMPLE", 700)
    for n, rel in ((1200, 0.03), (500, 0.0)):
        X = data(n=n)
        ours = model(KernelPCA, Gaussian(sigma="median")).fit([X])
        expected = Gaussian(sigma="median").fit(X).sigma_
        assert ours.kernel_.sigma_ == pytest.approx(expected, rel=rel)


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
