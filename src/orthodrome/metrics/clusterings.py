"""Distances between two clusterings of the same points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._core.checks import check_not_masked, check_sample_weight
from .._core.types import Floats


def clustering_error(
    labels_true: ArrayLike, labels_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return the fraction of misplaced points under the best matching of clusters with classes.

    .. math:: e = 1 - \max_{\pi} \sum_i p_{i \pi(i)}

    with p_ij the fraction of points in class i and cluster j, and π over all one-to-one matchings
    of clusters with classes. If their numbers differ, points in unmatched clusters or classes count
    as errors. The error is a metric on clusterings. Awate et al. (§6.2) report e, Courty et al.
    (§5.1, Table 1) the accuracy 1 - e; neither paper says how clusters are matched with classes.
    This is the usual way.

    Parameters
    ----------
    labels_true, labels_pred : array-likes of shape (n,)
        The classes and the clusters; the result is symmetric.
    sample_weight : array-like of shape (n,), optional
        Weights of the points.

    Returns
    -------
    float
        The error, in [0, 1).

    See Also
    --------
    sklearn.metrics.accuracy_score : Compares the labels themselves, without a matching.

    Notes
    -----
    The matching uses a dense matrix of classes by clusters. A trivial clustering does not have an
    error near 1: a single cluster has 1 minus the fraction of the largest class. Report that
    fraction together with the error.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", ECML PKDD 2014, §6.2; Courty,
    Burger and Marteau, "Geodesic Analysis on the Gaussian RKHS Hypersphere", ECML PKDD 2012, §5.1;
    Meilă, "Comparing clusterings: an axiomatic view", ICML 2005, on this and other distances.

    Examples
    --------
    >>> clustering_error([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> clustering_error([0, 0, 0, 1], [0, 0, 1, 2])  # one of the three clusters is unmatched
    0.25
    """
    counts = _contingency(labels_true, labels_pred, sample_weight, "clustering_error")
    table: Floats = counts.toarray()
    total = table.sum()
    table[linear_sum_assignment(table, maximize=True)] = 0.0
    # the sum of unmatched weights is exactly 0 if all points are matched
    return float(table.sum() / total)


def variation_of_information(
    labels_true: ArrayLike, labels_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    r"""Return the variation of information between two clusterings, in nats.

    .. math:: \mathrm{VI} = H(C \mid C') + H(C' \mid C)
        = -\sum_{ij} p_{ij} \left( \log\frac{p_{ij}}{p_{i\cdot}}
        + \log\frac{p_{ij}}{p_{\cdot j}} \right)

    with p_ij the fraction of points in cluster i of one and cluster j of the other. It is a metric
    on clusterings: 0 if they are the same up to the names of the clusters, at most log n for n
    points. Schraudolph et al. (§5.3) use it to evaluate spectral clustering.

    Parameters
    ----------
    labels_true, labels_pred : array-likes of shape (n,)
        The two clusterings; the result is symmetric.
    sample_weight : array-like of shape (n,), optional
        Weights of the points.

    Returns
    -------
    float
        The distance, at least 0.

    References
    ----------
    Meilă, "Comparing clusterings: an axiomatic view", ICML 2005; Schraudolph, Günter and
    Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006, §5.3.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> round(variation_of_information([0, 0, 1, 1], [0, 1, 0, 1]), 6)  # 2 log 2
    1.386294
    """
    counts = _contingency(labels_true, labels_pred, sample_weight, "variation_of_information")
    counts.eliminate_zeros()
    cells: Floats = counts.data / counts.data.sum()
    rows, columns = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(counts.sum(axis=0)).ravel()
    # conditional entropies, to avoid cancellation
    given_row = np.log(np.minimum(counts.data / rows[counts.row], 1.0))
    given_column = np.log(np.minimum(counts.data / columns[counts.col], 1.0))
    return float(-(cells @ (given_row + given_column))) + 0.0  # avoid -0.0


def _contingency(
    labels_true: ArrayLike, labels_pred: ArrayLike, sample_weight: ArrayLike | None, owner: str
) -> Any:
    """Validate the input and return the sparse, weighted contingency matrix."""
    first, second = _labels(labels_true, "labels_true"), _labels(labels_pred, "labels_pred")
    check_consistent_length(first, second)
    if len(first) == 0:
        raise ValueError(f"{owner} needs at least one point; got none.")
    weights = check_sample_weight(sample_weight, len(first), owner)
    weights = np.ones(len(first)) if weights is None else weights
    counts = scipy.sparse.coo_array((weights, (first, second)))
    counts.sum_duplicates()
    return counts


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # comparisons with pandas' NA have no truth value
        return True


def _labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Return labels as integers 0, 1, …; raise if one is missing or they cannot be sorted."""
    check_not_masked(labels, name, "the clusterings")
    try:
        array = column_or_1d(np.asarray(labels))
    except ValueError as error:  # ragged lists, or a wrong shape
        raise ValueError(f"{name} must have one label per point: {error}") from None
    is_object = array.dtype.kind == "O"
    missing = np.array([_is_missing(label) for label in array]) if is_object else array != array
    if np.any(missing):
        raise ValueError(
            f"{name} has {np.count_nonzero(missing)} missing labels, the first at "
            f"{np.argmax(missing)}. Remove these points."
        )
    try:
        return np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            f"{name} must have labels that can be sorted, all numbers or all strings: {error}."
        ) from None
