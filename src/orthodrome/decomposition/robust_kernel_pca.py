"""Robust kernel principal component analysis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._core.parameters import choice, positive
from .._core.types import Data, Floats
from .._core.warn import warn_user
from ..coordinates.isometry import Isometry
from ..eigen.pursuit import projection_pursuit, spatial_median
from ..sphere.karcher import find_mean, warn_about_mean
from .explicit import ExplicitDecomposition, PointFit, oriented
from .inverse import inputs_of, training_inputs

# Mean squared distances up to this fraction of the mean squared length are rounding errors, since
# they are differences of squared lengths.
_COINCIDENT = 8 * float(np.finfo(np.float64).eps)


def _weighted_mean(points: Floats, weights: Floats) -> Floats:
    return weights @ points / weights.sum()


def _karcher_mean(points: Floats, weights: Floats) -> Floats:
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    mean = find_mean(unit, weights, tol=1e-12, max_iter=200)
    advice = "Choose another center, or another scale (sigma) of the kernel."
    warn_about_mean(mean, "RobustKernelPCA: the Karcher mean", advice=advice)
    return np.asarray(mean.point, dtype=np.float64)


_CENTERS = {"mean": _weighted_mean, "karcher": _karcher_mean, "spatial-median": spatial_median}


class RobustKernelPCA(ExplicitDecomposition):
    r"""Robust kernel PCA: directions that maximise the p-th moment of the coordinates.

    .. math:: v_q = \arg\max_{\|v\| = 1,\; v \perp v_1, \dots, v_{q-1}}
        \sum_n w_n |\langle v, \Phi(x_n) - c \rangle|^p

    With p = 2 and the mean as the centre c this is kernel PCA. Exact coordinates of the points are
    computed from the eigenvectors of the Gram matrix; the directions are found with
    :func:`orthodrome.eigen.pursuit.projection_pursuit`.

    Parameters
    ----------
    n_components : int or None, default=2
        The number of directions; None: as many as the data span.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block.
    p : float in (0, 2], default=1.0
        The power.
    center : {"mean", "karcher", "spatial-median"}, default="mean"
        The centre c: the mean of the feature vectors; their Karcher mean on the sphere, as in the
        paper, for kernels with constant k(x, x); or the spatial median, which is the most robust.
    inverse_alpha : float, default=1e-6
        Ridge penalty of :meth:`inverse_transform` for kernels that are not radial, relative to the
        largest variance.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix and its factors; if they do not fit, `fit` raises an error.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training data.
    dispersions_ : ndarray of shape (n_components,)
        The weighted mean of \|⟨v_q, Φ(x) - c⟩\|^p along each direction.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean squares along the directions, divided by the mean squared distance from the centre.
    dual_coef_ : ndarray of shape (n_fit, n_components)
        Coefficients of the directions over the rows of `X_fit_`.
    n_components_ : int
        The number of directions.
    n_iter_ : int
        Number of iterations of the searches.
    converged_ : bool
        Whether every search reached its tolerance; `fit` warns otherwise.
    X_fit_ : ndarray, sparse array or None
        The distinct training rows of positive weight, sorted; None for a precomputed kernel.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    KernelPCA : The same with squares, for any number of rows.
    KernelPNS : Robust nested spheres.

    Notes
    -----
    Outliers in a common direction bias the result for every p, since their contributions add up.
    Scattered outliers have less influence, the smaller p is.

    Coordinates along each direction have a positive third moment about their mean. Before the fit,
    equal rows are merged, their weights are added, and rows are sorted. A weight of 2 is therefore
    equivalent to repeating the row, to the last bit, and the order of rows does not matter.

    References
    ----------
    Awate, Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016, §VII; Kwak,
    "Principal component analysis based on L1-norm maximization", IEEE TPAMI 30, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome import RobustKernelPCA
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> RobustKernelPCA(2).fit(X).embedding_.shape
    (50, 2)
    """

    _PARAMETERS = ExplicitDecomposition._PARAMETERS | {
        "center": choice(*_CENTERS),
        "inverse_alpha": positive(),
    }

    def __init__(
        self,
        n_components: int | None = 2,
        kernel: Any = "gaussian",
        *,
        p: float = 1.0,
        center: str = "mean",
        inverse_alpha: float = 1e-6,
        memory_budget: str | float = "2GiB",
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.p = p
        self.center = center
        self.inverse_alpha = inverse_alpha
        self.memory_budget = memory_budget
        self.verbose = verbose

    def _method(self) -> Callable[..., PointFit]:
        return partial(fit_directions, n_components=self.n_components, p=self.p, center=self.center)

    def _embedded(self, points: Floats) -> Floats:
        return (points - self._center_) @ self._directions_

    def inverse_transform(self, X: Data, inputs: ArrayLike | None = None) -> NDArray[Any]:
        """Find inputs whose feature vectors are near the given coordinates.

        The point of feature space with coordinates e is c + Σ e_q v_q. For radial kernels its
        pre-image is found by a fixed-point iteration, for others by ridge regression of the
        training inputs on their coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.
        inputs : array-like of shape (n_training_samples, n_features), optional
            Training inputs; required if the kernel is precomputed, otherwise not allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Approximate inputs.
        """
        check_is_fitted(self)
        coordinates = self._check_coordinates(X, np.float64)
        training = training_inputs(self.X_fit_, inputs, len(self.embedding_))
        if self._columns_ is not None:
            training = training[self._columns_]
        return inputs_of(
            coordinates,
            self.kernel_,
            training,
            expansion=self._expansion,
            features=lambda Z: Z,
            embedding=self._own_embedding_,
            weights=self._own_weights_,
            alpha=self.inverse_alpha,
            fixed_point=not scipy.sparse.issparse(self.X_fit_),
        )

    def _expansion(self, coordinates: NDArray[Any]) -> Floats:
        """Return coefficients over the rows of `X_fit_`, shape (n, n_fit)."""
        return coordinates @ self.dual_coef_.T + self._decoder_ @ self._center_


def fit_directions(
    isometry: Isometry,
    weights: Floats,
    radius: float,
    advance: Callable[[float], None],
    *,
    n_components: int | None,
    p: float,
    center: str,
) -> PointFit:
    """Fit the directions of largest p-th moment to coordinates."""
    points, normalized_weights = isometry.points, weights / weights.sum()
    origin = _CENTERS[center](points, weights)
    centered = points - origin
    k = points.shape[1] if n_components is None else min(int(n_components), points.shape[1])
    if n_components is None:
        k = _rank(np.sqrt(normalized_weights)[:, None] * centered)
    found = projection_pursuit(centered, weights, k, p=p, callback=lambda done: advance(done / k))
    directions = oriented(found.directions, centered @ found.directions, normalized_weights)
    squares = normalized_weights @ (centered @ directions) ** 2
    total = float(normalized_weights @ np.einsum("ij,ij->i", centered, centered))
    if total <= _COINCIDENT * float(normalized_weights @ np.einsum("ij,ij->i", points, points)):
        directions, squares, total = np.zeros_like(directions), np.zeros_like(squares), 0.0
    if not found.converged:
        warn_user(
            "RobustKernelPCA: the search for a direction did not converge; directions may be "
            "inaccurate. Choose another p.",
            ConvergenceWarning,
        )
    advance(1.0)
    scale = np.sqrt(radius)
    scaled = scale * directions
    attributes = {
        "_center_": origin,
        "_directions_": scaled,
        "dual_coef_": isometry.decoder @ directions / scale,
        "dispersions_": scale**p * found.dispersions * (total > 0),
        "explained_variance_ratio_": squares / total if total > 0 else np.zeros_like(squares),
        "n_components_": k,
        "n_iter_": max(1, found.n_iter),
        "converged_": found.converged,
        "_own_embedding_": centered @ scaled,
        "_own_weights_": weights,
    }
    return PointFit(attributes, {"embedding_": lambda new: (new - origin) @ scaled}, points)


def _rank(points: Floats) -> int:
    """Return the number of directions that points span, at least one."""
    values = np.linalg.svd(points, compute_uv=False) ** 2
    return max(1, int(np.count_nonzero(values > 1e-12 * values.sum())))
