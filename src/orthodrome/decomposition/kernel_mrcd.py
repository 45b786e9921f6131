"""Outlier detection with a robust covariance in feature space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical
from .._core.parameters import integer, or_word, positive
from .._core.types import Data, Floats
from .._core.warn import warn_user
from ..base import KernelEstimator, expand_to_all_rows, with_parameters
from ..coordinates.isometry import Isometry
from ..eigen.mrcd import mrcd
from ..kernels import Precomputed
from .explicit import CoordinateFit, PointFit
from .geometry import constant

# Coordinates leave out directions with this fraction of the squared lengths.
_LEFT_OUT = 1e-12


@with_parameters
class KernelMRCD(CoordinateFit, OutlierMixin, KernelEstimator):
    r"""Outlier detection by the kernel minimum regularised covariance determinant.

    The method finds a part of the feature vectors whose regularised covariance
    :math:`\Sigma + \delta I` has a small determinant. The points not far from this part give the
    mean μ and the covariance Σ. The outlyingness of a point is its Mahalanobis distance,

    .. math:: d(x)^2 = (\Phi(x) - \mu)^\top (\Sigma + \delta I)^{-1} (\Phi(x) - \mu).

    With the linear kernel this is the minimum regularised covariance determinant estimator, which
    expects one elliptical group of points. A Gaussian kernel also fits curved and divided groups.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block.
    support_fraction : float in (0, 1], default=0.75
        The fraction of the data in the part with the smallest determinant. Use 0.5 if more than a
        quarter of the data may be outliers. Larger values are more accurate.
    contamination : "auto" or float in (0, 0.5], default="auto"
        The fraction of the training data that :meth:`predict` marks as outliers. "auto" marks
        points beyond the 99.5 % quantile of a lognormal distribution of distances.
    max_iter : int, default=100
        Maximum number of concentration steps from each of three starts.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix and its factors; if they do not fit, `fit` raises an error.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    distances_ : ndarray of shape (n_samples,)
        The Mahalanobis distances of the training data.
    offset_ : float
        Points with a score below this are outliers. Scores are negative distances.
    n_iter_ : int
        Number of concentration steps.
    converged_ : bool
        Whether the steps from every start have ended; `fit` warns otherwise.
    X_fit_ : ndarray, sparse array or None
        The distinct training rows of positive weight, sorted; None for a precomputed kernel.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    RobustKernelPCA : Principal directions of the points that are not outliers.
    sklearn.covariance.EllipticEnvelope : The same idea without kernel and regularisation.

    Notes
    -----
    The part of a new point outside the span of the training data counts too. It follows from
    k(x, x). With a precomputed kernel, k(x, x) is known only if the training matrix has a constant
    diagonal; otherwise this part is taken as 0.

    ``contamination="auto"`` flags more than 0.5 % of the rows even without outliers, often 5 to
    20 %. The covariance fits the part that defines it better than other rows, above all if there
    are few rows for the number of dimensions. Set `contamination` if the fraction is known.

    Before the fit, equal rows are merged, their weights are added, and rows are sorted. A weight of
    2 is therefore equivalent to repeating the row, to the last bit, and the order of rows does not
    matter.

    References
    ----------
    Schreurs, Vranckx, Hubert, Suykens and Rousseeuw, "Outlier detection in non-elliptical data by
    kernel MRCD", Statistics and Computing 31, 2021. The starts and the cut-off differ from the
    paper, see :func:`orthodrome.eigen.mrcd.mrcd`.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import KernelMRCD
    >>> X = np.random.default_rng(0).standard_normal((100, 2))
    >>> X[:20] += 8
    >>> model = KernelMRCD("linear").fit(X)
    >>> model.predict([[0, 0], [8, 8]])
    array([ 1, -1])
    """

    kernel: Any = "gaussian"
    _: KW_ONLY
    support_fraction: float = 0.75
    contamination: str | float = "auto"
    max_iter: int = 100

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "support_fraction": positive(maximum=1),
        "contamination": or_word("auto", positive(maximum=0.5)),
        "max_iter": integer(),
    }

    def _fit_points(
        self, isometry: Isometry, weights: Floats, radius: float, advance: Callable[[float], None]
    ) -> PointFit:
        points = isometry.points
        found = mrcd(
            points, weights, support_fraction=self.support_fraction, max_iter=self.max_iter
        )
        if not found.converged:
            warn_user("KernelMRCD: stopped at max_iter. Raise max_iter.", ConvergenceWarning)
        advance(1.0)
        cutoff = found.cutoff
        if self.contamination != "auto":
            fraction = float(self.contamination)
            cutoff = largest_quantile(found.distances(points), weights, fraction)
        attributes = {
            "_estimate_": found,
            "_constant_diagonal_": constant(np.einsum("ij,ij->i", points, points)),
            "offset_": -cutoff,
            "n_iter_": max(1, found.n_iter),
            "converged_": found.converged,
        }
        return PointFit(attributes, {}, points)

    def _set_row_attributes(self, fit: PointFit, X: Any, canonical: Canonical) -> None:
        values = self._estimate_.distances(fit.points)
        self.distances_ = expand_to_all_rows(values, canonical, lambda new: self._distances(X[new]))

    def score_samples(self, X: Data) -> Floats:
        """Return the negative Mahalanobis distances of data; outliers have low scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        return -self._distances(self.kernel_.validate(X, estimator=self, reset=False))

    def _distances(self, X: Any) -> Floats:
        """Return the Mahalanobis distances of validated data."""
        points = self._coordinates(X)
        inside = np.einsum("ij,ij->i", points, points)
        if not isinstance(self.kernel_, Precomputed):
            squares = self.kernel_.diagonal(self.kernel_.prepare(X)).astype(np.float64)
        elif self._constant_diagonal_ is not None:
            squares = np.full(len(points), self._constant_diagonal_)
        else:
            squares = inside
        outside = squares - inside
        rounding = 256 * float(np.finfo(X.dtype).eps)
        outside[outside <= max(_LEFT_OUT, rounding) * squares] = 0.0
        return self._estimate_.distances(points, outside)

    def decision_function(self, X: Data) -> Floats:
        """Return ``score_samples(X) - offset_``, which is negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision function.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Data) -> NDArray[np.int64]:
        """Return 1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`score_samples`.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)


def largest_quantile(values: Floats, weights: Floats, fraction: float) -> float:
    """Return a cut-off: the values above it have at most this fraction of the weight.

    It is halfway between two values, because distances of the same rows, computed again, differ by
    rounding errors.
    """
    order = np.argsort(-values, kind="stable")
    inside = np.cumsum(weights[order]) > fraction * float(weights.sum()) * (1 + 1e-12)
    first = int(np.argmax(inside))
    return float(values[order[max(first - 1, 0)]] + values[order[first]]) / 2
