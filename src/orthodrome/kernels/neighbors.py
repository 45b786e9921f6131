"""Graph of nearest neighbours, for spectral clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

from .._core.canonical import canonical_rows
from .._core.checks import check_choice, check_integer
from .._core.types import Array, Floats, Indices
from .base import Kernel, Prepared, largest_entry

_BLOCK = 4096


class NeighborGraph(Kernel):
    r"""Sparse graph of nearest neighbours, for ``KernelSpectralClustering`` only.

    Every distinct row is connected with its nearest rows,

    .. math:: k(x_i, x_j) = \tfrac12 [x_j \text{ is a neighbour of } x_i]
        + \tfrac12 [x_i \text{ is a neighbour of } x_j], \qquad k(x_i, x_i) = 0 .

    With ``weights="shared"``, the weight of an edge is instead the number of neighbours that its
    two rows share, plus 0.1. The number of neighbours is easier to choose than a bandwidth, and
    adapts to the density of the rows. Memory grows linearly with the number of rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours, by Euclidean distance, without the row itself. (scikit-learn's
        ``SpectralClustering`` counts the row itself, and has one neighbour less.)
    weights : {"uniform", "shared"}, default="uniform"
        Weights of the edges: as in the formula, or the number of rows that are connected with both
        rows (Jarvis and Patrick, 1973) plus 0.1, which weakens edges between clusters.

    Attributes
    ----------
    neighbors_ : ndarray of shape (n_samples, n_neighbors)
        The neighbours of each fitted row, nearest first.

    Notes
    -----
    It is not a function of two points, and has no block ``kernel(X, Y)``. A new row is connected
    with its nearest fitted rows. The weight of each edge is 1. For ``"shared"``, the weight of the
    edge to a fitted row is the number of the other nearest rows connected with it, plus 0.1. A new
    row that equals a fitted row has the same edges as that row.

    Examples
    --------
    >>> from orthodrome.kernels import NeighborGraph
    >>> NeighborGraph(n_neighbors=1).fit([[0.0], [1.0], [3.0]]).graph().toarray()
    array([[0. , 1. , 0. ],
           [1. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    """

    positive_definite = False

    def __init__(self, n_neighbors: int = 10, weights: str = "uniform") -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        k = check_integer(self.n_neighbors, "n_neighbors", type(self).__name__)
        check_choice(self.weights, ("uniform", "shared"), "weights", type(self).__name__)
        k = min(k, X.shape[0] - 1)
        self.neighbors_ = np.zeros((X.shape[0], k), dtype=np.intp)
        if k:
            search = NearestNeighbors(n_neighbors=k).fit(_comparable(X, X))
            self.neighbors_ = search.kneighbors(return_distance=False).astype(np.intp)

    def graph(self) -> Any:
        """Return the graph of the fitted rows, a csr_array of shape (n_samples, n_samples)."""
        edges = _as_edges(self.neighbors_, len(self.neighbors_))
        if self.weights == "shared":
            connected = edges.maximum(edges.T).tocsr()
            return _shared(connected, connected)
        return ((edges + edges.T) / 2).tocsr()

    def new_edges(self, X_new: Any, X: Any) -> Any:
        """Return the edges between new rows and the fitted rows X, as a csr_array."""
        n, k = self.neighbors_.shape
        search = NearestNeighbors(n_neighbors=max(k, 1)).fit(_comparable(X, X))
        neighbors = search.kneighbors(_comparable(X_new, X), return_distance=False)
        fitted = _indices_of(X_new, X)
        is_new = scipy.sparse.diags_array((fitted < 0).astype(np.float64))
        known = np.flatnonzero(fitted >= 0)
        entries = (np.ones(len(known)), (known, fitted[known]))
        copies = scipy.sparse.csr_array(entries, shape=(len(fitted), n))
        edges, graph = is_new @ _as_edges(neighbors, n), self.graph()
        if self.weights == "shared":
            edges = _shared(edges, graph.astype(bool).astype(np.float64))
        return (edges + copies @ graph).tocsr()

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Raise: the graph is not a function of two points."""
        raise ValueError(
            "NeighborGraph has no kernel values of two points. Pass it to KernelSpectralClustering,"
            " or call fit(X).graph()."
        )

    def diagonal(self, points: Prepared) -> Array:
        """Return zeros."""
        return np.zeros(len(points))


def _as_edges(neighbors: Indices, n: int) -> Any:
    """Return directed edges of weight 1 as a csr_array with n columns."""
    m, k = neighbors.shape
    parts = (
        np.ones(m * k),
        neighbors.ravel(),
        np.arange(0, m * k + 1, k) if k else np.zeros(m + 1),
    )
    return scipy.sparse.csr_array(parts, shape=(m, n))


def _shared(edges: Any, connected: Any) -> Any:
    """Return edges weighted by the number of shared neighbours, plus 0.1."""
    blocks = []
    for start in range(0, edges.shape[0], _BLOCK):  # limits the memory of the products
        block = edges[start : start + _BLOCK]
        blocks.append(block * (block @ connected) + 0.1 * block)
    return scipy.sparse.vstack(blocks, format="csr")


def _comparable(X: Any, fitted: Any) -> Any:
    """Shift and scale rows so that squared distances neither cancel nor over- or underflow."""
    scale = largest_entry(fitted) or 1.0
    if scipy.sparse.issparse(X):
        return X.astype(np.float64) / scale
    return X / scale - (fitted / scale).mean(axis=0, dtype=np.float64)


def _indices_of(X_new: Any, X: Any) -> Indices:
    """Return the fitted row that equals each new row, or -1."""
    if scipy.sparse.issparse(X) or scipy.sparse.issparse(X_new):
        both: Any = scipy.sparse.vstack([X, X_new], format="csr")
    else:
        both = np.concatenate([X, X_new])
    groups, n = canonical_rows(both).inverse, X.shape[0]
    rows = np.full(groups.max() + 1, -1)
    rows[groups[:n]] = np.arange(n)
    return np.asarray(rows[groups[n:]])
