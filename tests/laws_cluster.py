"""Data, solvers and a naive implementation for tests of spectral clustering."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons

LAPLACIANS = ["njw", "kernel-pca", "ncut"]
every_laplacian = pytest.mark.parametrize("laplacian", LAPLACIANS)
graphs_only = pytest.mark.parametrize("laplacian", ["njw", "ncut"])

SOLVERS = {
    "dense": {"solver": "dense"},
    "krylov": {"solver": "krylov", "tol": 1e-12},
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def blobs(n: int = 150, dtype=np.float64, seed: int = 0) -> NDArray:
    """Three groups that overlap a little, of different sizes."""
    X, _ = make_blobs(
        [n // 2, n // 3, n - n // 2 - n // 3],
        centers=[[0, 0, 0], [4, 1, 0], [0, 4, 1]],
        cluster_std=[0.8, 1.0, 0.6],
        random_state=seed,
    )
    return X.astype(dtype)


def rings(n: int = 300, seed: int = 0) -> tuple[NDArray, NDArray]:
    return make_circles(n, factor=0.4, noise=0.04, random_state=seed)


def moons(n: int = 300, seed: int = 0) -> tuple[NDArray, NDArray]:
    return make_moons(n, noise=0.06, random_state=seed)


def gaussian(X: NDArray, Y: NDArray | None = None, sigma: float = 1.0) -> NDArray:
    Y = X if Y is None else Y
    squares = np.square(X[:, None].astype(np.float64) - Y[None].astype(np.float64)).sum(axis=-1)
    return np.exp(-squares / (2 * sigma**2))


def naive_embedding(K: NDArray, k: int, laplacian: str) -> tuple[NDArray, NDArray]:
    """Eigenvalues and the embedding of the points of a Gram matrix, computed naively."""
    n = len(K)
    if laplacian == "kernel-pca":
        center = np.eye(n) - 1 / n
        matrix = center @ K @ center
    else:
        A = K - np.diag(np.diagonal(K))
        degrees = A.sum(axis=1)
        matrix = A / np.sqrt(degrees)[:, None] / np.sqrt(degrees)
    values, vectors = np.linalg.eigh(matrix)
    values, rows = values[::-1][:k], vectors[:, ::-1][:, :k]
    if laplacian == "ncut":
        return values, rows / np.sqrt(degrees)[:, None]
    return values, rows / np.linalg.norm(rows, axis=1, keepdims=True)


def naive_labels(K: NDArray, k: int, laplacian: str) -> NDArray:
    rows = naive_embedding(K, k, laplacian)[1]
    return KMeans(k, n_init=20, tol=0, random_state=1).fit_predict(rows)


def same_partition(first: NDArray, second: NDArray) -> bool:
    """Return whether two clusterings are equal up to the numbers of clusters."""
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


def up_to_sign(actual: NDArray, expected: NDArray) -> NDArray:
    """Return `expected` with the signs of the columns of `actual`."""
    return expected * np.where(np.sum(actual * expected, axis=0) < 0, -1.0, 1.0)
