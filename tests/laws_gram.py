"""Every Gram operator against its dense twin: an operator joins the laws by one factory.

A factory makes a Twin from a number of points and a precision. BASES make matrices of data,
WRAPPERS turn one Twin into another; their pairs are the KINDS. The dense side is obvious NumPy
in float64 on the very same data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse

from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.coordinates.gram import CoordinateGram
from orthodrome.gram import (
    Centered,
    Degree,
    DenseGram,
    GramOperator,
    Scaled,
    SparseGram,
    Tangent,
    Weighted,
)
from orthodrome.gram.dask_gram import DaskGram
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian

N_FEATURES, N_NEW, SIGMA = 4, 37, 2.0

# Relative to what is summed: a kernel value near 1 has a few units in the last place.
TOLERANCE = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 4e-6}


@dataclass(frozen=True)
class Twin:
    """An operator, its matrix and cross matrix in float64, and how large their terms are."""

    operator: GramOperator
    dense: np.ndarray  # (n, n)
    new: Any  # what `cross` of the operator takes
    cross: np.ndarray  # (m, n)
    bound: np.ndarray  # (n, n), the absolute values of all terms of an entry, summed
    cross_bound: np.ndarray  # (m, n)

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.operator.dtype]


def points(n: int, dtype: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES)).astype(dtype)


def gaussian_matrix(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    differences = X[:, None].astype(np.float64) - Y[None].astype(np.float64)
    return np.exp(-np.square(differences).sum(axis=-1) / (2 * SIGMA**2))


def data_twin(
    n: int, dtype: Any, make: Callable[..., GramOperator], new: Callable[..., Any]
) -> Twin:
    X, X_new = points(n, dtype), points(N_NEW, dtype, seed=1)
    dense, cross = gaussian_matrix(X, X), gaussian_matrix(X_new, X)
    return Twin(make(X, dense), dense, new(X_new, cross), cross, dense, cross)


def tiled(storage: str) -> Callable[..., Twin]:
    def make(X: np.ndarray, _: np.ndarray) -> GramOperator:
        return TiledGram(Gaussian(sigma=SIGMA).fit(X), X, storage)

    return lambda n, dtype: data_twin(n, dtype, make, lambda X_new, _: X_new)


def given(Operator: Any, form: Any = np.asarray) -> Callable[..., Twin]:
    """The matrix itself, dense or sparse."""

    def make(n: int, dtype: Any) -> Twin:
        return data_twin(
            n,
            dtype,
            lambda _, dense: Operator(form(dense.astype(dtype))),
            lambda _, cross: form(cross.astype(dtype)),
        )

    return make


def blocks_of_dask(n: int, dtype: Any) -> Twin:
    import dask.array as da

    def make(X: np.ndarray, _: np.ndarray) -> GramOperator:
        lazy = da.from_array(X, chunks=(max(1, n // 3), 2))
        return DaskGram(Gaussian(sigma=SIGMA).fit(X), lazy)

    return data_twin(n, dtype, make, lambda X_new, _: X_new)


def featured(unit: bool, storage: str) -> Callable[..., Twin]:
    """Features by few anchors; the matrix is that of their inner products."""

    def make(n: int, dtype: Any) -> Twin:
        X, X_new = points(n, dtype), points(N_NEW, dtype, seed=1)
        kernel = Gaussian(sigma=SIGMA).fit(X)
        anchors = choose_anchors(kernel, X, 9, random_state=0)
        features = anchor_coordinates(kernel, X, anchors, unit=unit, storage=storage)
        F, G = (f.toarray().astype(np.float64) for f in (features, features.of(X_new)))
        bounds = np.abs(F) @ np.abs(F).T, np.abs(G) @ np.abs(F).T
        return Twin(CoordinateGram(features), F @ F.T, X_new, G @ F.T, *bounds)

    return make


BASES = {
    "features": featured(False, "memory"),
    "features, recomputed": featured(True, "recompute"),
    "memory": tiled("memory"),
    "disk": tiled("disk"),
    "recompute": tiled("recompute"),
    "given": given(DenseGram),
    "sparse": given(SparseGram, scipy.sparse.csr_array),
}
if find_spec("dask") is not None:
    BASES["dask"] = blocks_of_dask


def centered(weighted: bool) -> Callable[[Twin], Twin]:
    def wrap(twin: Twin) -> Twin:
        n = len(twin.dense)
        # a third of the weights 0, but never all
        weights = np.arange(n) % 3 + (n < 3) if weighted else None
        p = np.ones(n) / n if weights is None else weights / weights.sum()

        def center(block, gram, sign):
            rows, columns = (block @ p)[:, None], gram @ p
            return block + sign * rows + sign * columns + p @ gram @ p

        return Twin(
            Centered(twin.operator, weights),
            center(twin.dense, twin.dense, -1),
            twin.new,
            center(twin.cross, twin.dense, -1),
            center(twin.bound, twin.bound, +1),
            center(twin.cross_bound, twin.bound, +1),
        )

    return wrap


def weighted(twin: Twin) -> Twin:
    factors = np.linspace(-1, 2, len(twin.dense))
    # the operator rounds the factors to its own precision; so does the twin
    W = np.diag(factors.astype(twin.operator.dtype).astype(np.float64))
    return Twin(
        Weighted(twin.operator, factors),
        W @ twin.dense @ W,
        twin.new,
        twin.cross @ W,
        np.abs(W) @ twin.bound @ np.abs(W),
        twin.cross_bound @ np.abs(W),
    )


def scaled(twin: Twin) -> Twin:
    return Twin(
        Scaled(twin.operator, 2.5),
        2.5 * twin.dense,
        twin.new,
        2.5 * twin.cross,
        2.5 * twin.bound,
        2.5 * twin.cross_bound,
    )


def tangent(weighted: bool) -> Callable[[Twin], Twin]:
    """Log maps at the mean of the points, some of weight 0, or at a point of mixed signs."""

    def wrap(twin: Twin) -> Twin:
        n = len(twin.dense)
        xi = np.arange(n) % 3 + (n < 3.0) if weighted else np.cos(2.0 * np.arange(n)) + 0.6
        xi = xi / np.sqrt(xi @ twin.dense @ xi)

        def stretch(block):
            angles = np.arccos(np.clip(block @ xi, -1, 1))
            return 1 / np.sinc(angles / np.pi)

        def project(block, sign):
            inner = block + sign * np.outer(block @ xi, twin.dense @ xi)
            return np.diag(stretch(block)) @ inner @ np.diag(stretch(twin.dense))

        return Twin(
            Tangent(twin.operator, xi),
            project(twin.dense, -1),
            twin.new,
            project(twin.cross, -1),
            project(twin.dense, +1),
            project(twin.cross, +1),
        )

    return wrap


def degree(weighted: bool, shift: float) -> Callable[[Twin], Twin]:
    """A graph of similarities; weighted, with points left out and points of fractional weight."""

    def wrap(twin: Twin) -> Twin:
        n = len(twin.dense)
        w = np.array([2.0, 1.0, 2.5, 0.0, 0.75])[np.arange(n) % 5] if weighted else np.ones(n)
        degrees = twin.dense @ w - np.diagonal(twin.dense) * (w > 0)
        scale = np.sqrt(np.divide(w, degrees, out=np.zeros(n), where=degrees > 0))
        new_degrees = twin.cross @ w

        def divide(block):
            return scale[:, None] * block * scale

        own = np.diag(np.divide(np.diagonal(twin.dense), w, out=np.zeros(n), where=w > 0))
        return Twin(
            Degree(twin.operator, w if weighted else None, shift=shift),
            divide(twin.dense - own) + shift * np.eye(n),
            twin.new,
            twin.cross * scale / np.sqrt(new_degrees)[:, None],
            divide(twin.bound + own) + shift * np.eye(n),
            twin.cross_bound * scale / np.sqrt(new_degrees)[:, None],
        )

    return wrap


WRAPPERS = {
    "plain": lambda twin: twin,
    "centered": centered(weighted=False),
    "centered-weighted": centered(weighted=True),
    "weighted": weighted,
    "scaled": scaled,
    "tangent": tangent(weighted=False),
    "tangent-weighted": tangent(weighted=True),
    "degree": degree(weighted=False, shift=0.0),
    "degree-weighted": degree(weighted=True, shift=1.0),
    "weighted-of-centered": lambda twin: weighted(centered(True)(twin)),
    "centered-of-weighted": lambda twin: centered(True)(weighted(twin)),
}


@cache
def base_twin(base: str, n: int, dtype: Any) -> Twin:
    return BASES[base](n, dtype)


@cache
def twin_of(base: str, wrapper: str, n: int, dtype: Any) -> Twin:
    return WRAPPERS[wrapper](base_twin(base, n, dtype))


def on_sphere(base: str, wrapper: str) -> bool:
    """Whether points have the lengths that tangents need: features are shorter, and their sums."""
    return not ("tangent" in wrapper and base == "features")


# Every operator at a size of two uneven tiles; the edges of the tiling on fewer of them.
EVERY_SIZE = [1, 2, 511, 512, 1100]
# Dask tasks are slow to start, and sparse matrices are graphs: fewer wrappers.
FEWER = {
    "dask": ("plain", "centered-weighted", "tangent-weighted", "degree-weighted"),
    "sparse": ("plain", "degree", "degree-weighted"),
}
KINDS = [(b, w) for b in BASES for w in FEWER.get(b, WRAPPERS) if on_sphere(b, w)]
EDGES = [
    *[(b, "plain", n, np.float64) for b in ("disk", "recompute") for n in EVERY_SIZE],
    *[("memory", "centered-weighted", n, np.float32) for n in EVERY_SIZE],
    *[("memory", w, n, np.float64) for w in WRAPPERS for n in (1, 2)],
]


def reaches_over_tiles(base: str, wrapper: str, dtype: Any) -> bool:
    """Whether there are two tiles: for every base, and for every wrapper of one base."""
    return wrapper == "plain" or (base == "memory" and dtype == np.float64)


# Products in double precision reach over tiles everywhere.
PRODUCT_CASES = [
    (b, w, 513 if d == np.float64 or reaches_over_tiles(b, w, d) else 60, d)
    for b, w in KINDS
    for d in (np.float64, np.float32)
] + EDGES
ENTRY_CASES = [
    (b, w, 513 if reaches_over_tiles(b, w, d) else 60, d)
    for b, w in KINDS
    for d in (np.float64, np.float32)
] + EDGES


def case_id(case: tuple) -> str:
    base, wrapper, n, dtype = case
    return f"{base}-{wrapper}-{n}-{np.dtype(dtype).name}"
