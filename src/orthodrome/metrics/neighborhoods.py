"""Neighbourhood preservation of embeddings: co-ranking matrix, preservation and area.

All are computed from ranks of distances, a block of rows at a time, in O(N² log N). The co-ranking
matrix is the only N x N matrix.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_choice, check_numbers, check_symmetric
from .._core.memory import format_bytes, parse_bytes
from .._core.threads import run_in_threads
from .._core.types import Array, Data, Floats
from ..gram import GramOperator, gram_operator
from ..kernels import Radial, as_fitted_kernel
from ..kernels.base import Prepared, finite_squared_norms
from ..kernels.radial import squared_distances
from ..sphere import exp_at_pole

# keys(rows) returns an increasing function of the distances from these rows, shape (len(rows), N)
_Keys = Callable[[slice], Array]

_REAL = [np.float64, np.float32]

_BLOCK_ELEMENTS = 2**20  # number of distances ranked at once in each thread


def neighborhood_preservation(
    X: Data | GramOperator, embedding: ArrayLike, *, kernel: Any = None, metric: str = "euclidean"
) -> Floats:
    r"""Return the fraction of κ nearest neighbours that an embedding preserves.

    .. math:: Q(\kappa) = \frac{1}{\kappa N} \sum_n
        \left| N_\kappa^{\text{high}}(n) \cap N_\kappa^{\text{low}}(n) \right|,
        \qquad \kappa = 1, \dots, N - 1

    (Awate et al., §6.1). It is 1 for every κ if the embedding preserves the order of all distances;
    a random embedding has κ/(N - 1).

    Parameters
    ----------
    X : array-like of shape (n, d), or GramOperator
        The data before the embedding.
    embedding : array-like of shape (n, q)
        The data after the embedding.
    kernel : Kernel, str, callable or None, default=None
        If given, distances of X are computed in feature space, ‖Φ(x) - Φ(y)‖. An unfitted kernel
        is fitted to X; with ``"precomputed"``, X is the Gram matrix. Default: Euclidean distances.
    metric : {"euclidean", "geodesic", "precomputed"}, default="euclidean"
        Distances of the embedding. ``"geodesic"``: the rows are tangent coordinates at the mean, as
        in :class:`~orthodrome.KernelPGA`, and distances are between their images under Exp.
        ``"precomputed"``: the embedding is the (n, n) matrix of distances.

    Returns
    -------
    ndarray of shape (n - 1,)
        Q(1), …, Q(n - 1); the last is always 1.

    Notes
    -----
    Points at equal distances are ranked by row number, in both spaces. Distances between
    integer points tie exactly; other equal distances may differ by rounding errors.

    For a radial kernel that decreases with the distance, feature-space distances are ranked by
    input distances. The order is the same, and is defined even if all kernel values are 0.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", ECML PKDD 2014, §6.1; Lee and
    Verleysen, "Quality assessment of dimensionality reduction: Rank-based criteria", Neurocomputing
    72, 2009.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.3], [3.0, 0.0], [3.5, 2.0]])
    >>> neighborhood_preservation(X, X[:, :1])
    array([0.75, 1.  , 1.  ])
    """
    high, low, n = _validate(X, embedding, kernel, metric)

    def count(rows: slice) -> NDArray[np.int64]:
        larger = np.maximum(_ranks(high(rows), rows), _ranks(low(rows), rows))
        return np.bincount(larger.ravel(), minlength=n)

    preserved = np.cumsum(np.sum(_over_blocks(count, n), axis=0)[1:])
    return preserved / (n * np.arange(1.0, n))


def coranking_matrix(
    X: Data | GramOperator,
    embedding: ArrayLike,
    *,
    kernel: Any = None,
    metric: str = "euclidean",
    memory_budget: str | float = "2GiB",
) -> NDArray[np.int64]:
    r"""Count pairs of points by their ranks before and after an embedding.

    .. math:: Q_{kl} = \left| \{(n, m) : \rho_{nm} = k,\ r_{nm} = l\} \right|

    where ρ_nm is the rank of the distance from n to m among all distances from n in the data, and
    r_nm the rank in the embedding. A perfect embedding has N on the diagonal; entries above it
    count pairs that were moved apart, entries below it pairs that were moved together.

    Parameters
    ----------
    X, embedding, kernel, metric
        As in :func:`neighborhood_preservation`.
    memory_budget : str or number, default="2GiB"
        The memory for the matrix.

    Returns
    -------
    ndarray of shape (n - 1, n - 1)
        Counts; the entry (k, l) is at ``[k - 1, l - 1]``.

    References
    ----------
    Lee and Verleysen, "Quality assessment of dimensionality reduction: Rank-based criteria",
    Neurocomputing 72, 2009.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.3], [3.0, 0.0], [3.5, 2.0]])
    >>> coranking_matrix(X, X[:, :1])
    array([[3, 1, 0],
           [1, 3, 0],
           [0, 0, 4]])
    """
    high, low, n = _validate(X, embedding, kernel, metric)
    needed, budget = 8 * n * n, parse_bytes(memory_budget)
    if needed > budget:
        raise ValueError(
            f"The co-ranking matrix of {n} points takes {format_bytes(needed)}; memory_budget is "
            f"{format_bytes(budget)}. Raise it, or use neighborhood_preservation."
        )

    counts, lock = np.zeros((n - 1, n - 1), dtype=np.int64), threading.Lock()

    def count(rows: slice) -> None:
        before, after = _ranks(high(rows), rows), _ranks(low(rows), rows)
        others = before > 0  # rank 0 is that of the point itself
        with lock:  # threads share one matrix; ranking is much slower than counting
            np.add.at(counts.reshape(-1), (before[others] - 1) * (n - 1) + after[others] - 1, 1)

    _over_blocks(count, n)
    return counts


def neighborhood_area(quality: ArrayLike, *, scale: str = "log") -> float:
    r"""Return the area under the rescaled preservation curve.

    .. math:: R(\kappa) = \frac{(N - 1)\, Q(\kappa) - \kappa}{N - 1 - \kappa}, \qquad
        \text{area} = \frac{\sum_{\kappa=1}^{N-2} R(\kappa)/\kappa}{\sum_{\kappa=1}^{N-2} 1/\kappa}

    R is 1 for a perfect embedding and 0 on average for a random one. On the logarithmic scale,
    small neighbourhoods count as much as large ones; ``scale="linear"`` is the mean of R.

    Parameters
    ----------
    quality : array-like of shape (n - 1,)
        The result of :func:`neighborhood_preservation` for at least three points.
    scale : {"log", "linear"}, default="log"
        The weighting of neighbourhood sizes.

    Returns
    -------
    float
        The area, at most 1.

    References
    ----------
    Lee, Peluffo-Ordóñez and Verleysen, "Multi-scale similarities in stochastic neighbour
    embedding: Reducing dimensionality while preserving both local and global structure",
    Neurocomputing 169, 2015.

    Examples
    --------
    >>> neighborhood_area([1.0, 1.0, 1.0])
    1.0
    """
    check_choice(scale, ("log", "linear"), "scale", "neighborhood_area")
    q = check_numbers(quality, "quality", "neighborhood_area", ensure_2d=False, dtype=np.float64)
    if q.ndim != 1 or len(q) < 2 or np.any((q < 0) | (q > 1 + 1e-9)):
        raise ValueError(
            "quality of neighborhood_area must be Q(1), …, Q(n - 1) of at least three points, all "
            f"between 0 and 1; got shape {q.shape}, from {q.min():g} to {q.max():g}."
        )
    others = len(q)
    kappa = np.arange(1.0, others)
    rescaled = (others * q[:-1] - kappa) / (others - kappa)
    return float(np.average(rescaled, weights=1 / kappa if scale == "log" else None))


# ---------------------------------------------------------------------------- ranks


def _ranks(keys: Array, rows: slice) -> NDArray[np.int64]:
    """Rank the keys in each row; the point of the row itself has rank 0."""
    i = np.arange(len(keys))
    keys[i, i + rows.start] = -np.inf
    order = np.argsort(keys, axis=1, kind="stable")
    ranks = np.empty(keys.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.arange(keys.shape[1])[None], axis=1)
    return ranks


def _over_blocks(count: Callable[[slice], Any], n: int) -> list[Any]:
    """Call a function for each block of rows, in threads, and return its results."""
    step = max(1, _BLOCK_ELEMENTS // n)
    blocks = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    results = run_in_threads(
        lambda worker, n_workers: [count(rows) for rows in blocks[worker::n_workers]], len(blocks)
    )
    return [result for worker_results in results for result in worker_results]


# ---------------------------------------------------------------------------- distances


def _validate(X: Any, embedding: ArrayLike, kernel: Any, metric: str) -> tuple[_Keys, _Keys, int]:
    """Return the sort keys of the data and of the embedding, and the number of points."""
    check_choice(metric, ("euclidean", "geodesic", "precomputed"), "metric", "the embedding")
    high, n = _data_keys(X, kernel)
    low = check_numbers(embedding, "embedding", "the neighbourhoods", dtype=_REAL)
    if len(low) != n:
        raise ValueError(
            f"embedding must have one row per row of X, {n}; got {len(low)}. For new points, pass "
            "the new X."
        )
    if n < 2:
        raise ValueError("Neighbourhoods need at least two points; got 1.")
    if metric == "precomputed":
        check_symmetric(low, "embedding, a matrix of distances,")
        return high, lambda rows: low[rows].copy(), n
    return high, _euclidean(exp_at_pole(low) if metric == "geodesic" else low), n


def _data_keys(X: Any, kernel: Any) -> tuple[_Keys, int]:
    """Return the sort keys of the data, and the number of points."""
    if isinstance(X, GramOperator):
        if kernel is not None:
            raise ValueError("kernel must be None if X is a Gram operator.")
        return _feature_space(X), X.shape[0]
    if kernel is None:
        array = check_numbers(X, "X", "the neighbourhoods", dtype=_REAL)
        return _euclidean(array), len(array)
    fitted = as_fitted_kernel(kernel, X)
    X = fitted.validate(X, reset=False)
    if isinstance(fitted, Radial) and fitted.decreasing:
        return _euclidean(X.tocsr() if scipy.sparse.issparse(X) else X), X.shape[0]
    gram = gram_operator(fitted, X, storage="recompute")
    return _feature_space(gram), gram.shape[0]


def _feature_space(gram: GramOperator) -> _Keys:
    diagonal = gram.diagonal()

    def keys(rows: slice) -> Array:
        # ‖Φ(x) - Φ(y)‖² without k(x, x), which is constant in each row
        block = gram.rows(np.arange(rows.start, rows.stop))
        block *= -2
        block += diagonal
        return block

    return keys


def _euclidean(points: Any) -> _Keys:
    # not centred, so that distances between integers, which often tie, are exact
    scaled = _without_underflow(points)
    prepared = Prepared(scaled, finite_squared_norms(scaled))
    return lambda rows: squared_distances(prepared[rows], prepared)


def _without_underflow(points: Any) -> Any:
    """Multiply points whose squares underflow by a power of 2, which is exact."""
    values = points.data if scipy.sparse.issparse(points) else points
    largest = float(np.abs(values).max(initial=0.0))
    if not 0 < largest < float(np.finfo(points.dtype).tiny) ** 0.25:
        return points
    exponent = -int(np.frexp(largest)[1])
    half = points.dtype.type(2.0 ** (exponent // 2))  # in two steps: 2^1074 overflows
    return points * half * points.dtype.type(2.0 ** (exponent - exponent // 2))
