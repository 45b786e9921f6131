"""Robust kernel principal component analysis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.parameters import choice, positive
from .._core.types import Data, Floats
from .._core.warn import warn_user
from ..base import with_parameters
from ..coordinates.isometry import Isometry
from ..eigen.mrcd import mrcd
from ..eigen.pursuit import projection_pursuit, signs_of, spatial_median
from ..sphere.karcher import find_mean, warn_about_mean
from .explicit import ExplicitDecomposition, PointFit, oriented
from .inverse import inputs_of, training_inputs

# Mean squared distances are differences of squared lengths. Up to this fraction of the mean squared
# length, they are treated as rounding errors.
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


@with_parameters
class RobustKernelPCA(ExplicitDecomposition):
    r"""Robust kernel PCA: principal directions that outliers hardly change.

    Exact coordinates of the feature vectors are computed from the eigenvectors of the Gram matrix.
    There are three methods:

    - "mrcd" finds the half of the points whose covariance has a small determinant, adds the points
      that are not far from them, and returns the principal directions of these points (see
      :func:`orthodrome.eigen.mrcd.mrcd`). It tolerates scattered and clustered outliers, up to
      about 40 %.
    - "spatial-sign" moves all points to distance 1 from their spatial median c, and returns the
      eigenvectors of :math:`\sum_n w_n s_n s_n^\top` with
      :math:`s_n = (\Phi(x_n) - c) / \|\Phi(x_n) - c\|`. It is the fastest, and tolerates scattered
      outliers.
    - "pursuit" is the method of the paper. It maximises a power p of the coordinates, one direction
      after the other:

    .. math:: v_q = \arg\max_{\|v\| = 1,\; v \perp v_1, \dots, v_{q-1}}
        \sum_n w_n |\langle v, \Phi(x_n) - c \rangle|^p

    With p = 2 and the mean as the centre c, pursuit is kernel PCA.

    Parameters
    ----------
    n_components : int or None, default=2
        The number of directions. None: as many as the points span; for "mrcd", the points that it
        uses.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block.
    method : {"mrcd", "spatial-sign", "pursuit"}, default="mrcd"
        The method, see above.
    p : float in (0, 2], default=1.0
        The power, for pursuit.
    center : {"mean", "karcher", "spatial-median"}, default="mean"
        The centre c, for pursuit: the mean of the feature vectors; their Karcher mean on the
        sphere, as in the paper, for kernels with constant k(x, x); or the spatial median, which is
        the most robust.
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
        For pursuit, the weighted mean of \|⟨v_q, Φ(x) - c⟩\|^p along each direction. Otherwise the
        variance along each direction: of the points that mrcd uses, or of the vectors s_n.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean square of the coordinates along each direction, divided by the mean squared distance
        from the centre. Both means are over the same points as `dispersions_`.
    dual_coef_ : ndarray of shape (n_fit, n_components)
        Coefficients of the directions over the rows of `X_fit_`.
    n_components_ : int
        The number of directions.
    n_iter_ : int
        Number of iterations of the searches, or of concentration steps (mrcd).
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
    KernelMRCD : Outlier detection with the same estimate as method "mrcd".
    KernelPCA : Without robustness, for any number of rows.
    KernelPNS : Robust nested spheres.

    Notes
    -----
    Outliers that lie in a common direction bias spatial-sign and pursuit (for every p), since their
    contributions add up. The guide compares the methods.

    The sign of each direction is chosen so that the third moment of the coordinates is positive
    (for "mrcd", of the points that it uses). Before the fit, equal rows are merged, their weights
    are added, and rows are sorted. A weight of 2 is therefore equivalent to repeating the row, to
    the last bit, and the order of rows does not matter.

    References
    ----------
    Schreurs, Vranckx, Hubert, Suykens and Rousseeuw, "Outlier detection in non-elliptical data by
    kernel MRCD", Statistics and Computing 31, 2021; Locantore et al., "Robust principal component
    analysis for functional data", Test 8, 1999 (spatial-sign); Awate, Dhar and Kulkarni, "Robust
    Kernel Principal Nested Spheres", ICPR 2016, §VII (pursuit); Kwak, "Principal component analysis
    based on L1-norm maximization", IEEE TPAMI 30, 2008.

    Examples
    --------
    Ten of fifty points are outliers. The first direction is still the first axis:

    >>> import numpy as np
    >>> from orthodrome import RobustKernelPCA
    >>> X = np.random.default_rng(0).standard_normal((50, 3)) * [3, 1, 1]
    >>> X[:10] = [0, 0, 30]
    >>> model = RobustKernelPCA(1, "linear").fit(X)
    >>> bool(abs(model.transform(np.eye(3))[0, 0] - model.transform(np.zeros((1, 3)))[0, 0]) > 0.95)
    True
    """

    n_components: int | None = 2
    kernel: Any = "gaussian"
    _: KW_ONLY
    method: str = "mrcd"
    p: float = 1.0
    center: str = "mean"
    inverse_alpha: float = 1e-6

    _PARAMETERS = ExplicitDecomposition._PARAMETERS | {
        "method": choice("mrcd", "spatial-sign", "pursuit"),
        "center": choice(*_CENTERS),
        "inverse_alpha": positive(),
    }

    @property
    def _on_sphere(self) -> bool:
        return self.method == "pursuit" and self.center == "karcher"

    def _fit_points(
        self, isometry: Isometry, weights: Floats, radius: float, advance: Callable[[float], None]
    ) -> PointFit:
        points, steps, ended = isometry.points, 0, True
        p, vectors = 2.0, None
        if self.method == "pursuit":
            origin, p = _CENTERS[self.center](points, weights), self.p
        elif self.method == "spatial-sign":
            origin = spatial_median(points, weights)
            vectors = signs_of(points - origin)[0]
        else:
            robust = mrcd(points, weights)
            origin, steps, ended = robust.center, robust.n_iter, robust.converged
            weights = weights * robust.support
        centered, fractions = points - origin, weights / weights.sum()
        vectors = centered if vectors is None else vectors
        if self.n_components is None:
            k = _rank(np.sqrt(fractions)[:, None] * centered)
        else:
            k = min(int(self.n_components), points.shape[1])
        found = projection_pursuit(
            vectors, weights, k, p=p, callback=lambda done: advance(done / k)
        )
        directions = oriented(found.directions, vectors @ found.directions, fractions)
        spread = float(fractions @ np.einsum("ij,ij->i", centered, centered))
        if spread <= _COINCIDENT * float(fractions @ np.einsum("ij,ij->i", points, points)):
            directions = np.zeros_like(directions)
        squares = fractions @ (vectors @ directions) ** 2
        total = float(fractions @ np.einsum("ij,ij->i", vectors, vectors))
        converged = found.converged and ended
        if not converged:
            warn_user(
                "RobustKernelPCA: the search for directions did not converge; directions may be "
                "inaccurate. Choose another p or method.",
                ConvergenceWarning,
            )
        advance(1.0)
        scale = np.sqrt(radius)
        scaled = scale * directions
        attributes = {
            "_center_": origin,
            "_directions_": scaled,
            "dual_coef_": isometry.decoder @ directions / scale,
            "dispersions_": scale**p * found.dispersions * np.any(directions, axis=0),
            "explained_variance_ratio_": squares / (total or 1.0),
            "n_components_": k,
            "n_iter_": max(1, found.n_iter + steps),
            "converged_": converged,
            "_own_embedding_": centered @ scaled,
            "_own_weights_": weights,
        }
        return PointFit(attributes, {"embedding_": self._embedded}, points)

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


def _rank(points: Floats) -> int:
    """Return the number of directions that points span, at least one."""
    values = np.linalg.svd(points, compute_uv=False) ** 2
    return max(1, int(np.count_nonzero(values > 1e-12 * values.sum())))
