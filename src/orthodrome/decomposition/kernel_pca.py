"""Kernel principal component analysis."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from .._core.checks import check_sample_weight
from .._core.threads import LockOfOneProcess
from .._core.types import Data
from ..base import last_fit_kept
from ..eigen import Components, affine_map
from ..gram import Centered, GramOperator, NystroemFeatures, squared_distance_to_mean
from ..gram.sources import rows_named
from .anchors import FeatureFit, pca_of_features
from .partial import (
    PartialFit,
    batches_of,
    keep_partial_fit,
    solver_for_batches,
    works_on_features,
)
from .spectral import SpectralDecomposition
from .streams import OF_ROWS, FeatureStream, StreamFit, pca_of_stream

__all__ = ["KernelPCA"]

# Held while the components of batches are computed, by whoever asks for them first.
_computing = LockOfOneProcess()


class KernelPCA(SpectralDecomposition):
    r"""Kernel principal component analysis, of any size, with any kernel.

    The principal components of the feature vectors Φ(x) are the leading eigenvectors of the
    centred Gram matrix,

    .. math:: K' a_q = \lambda_q a_q, \qquad
        e_q(x) = \lambda_q^{-1/2} \sum_n a_{qn} \langle \Phi'(x_n), \Phi'(x) \rangle .

    The matrix is held only if it fits `memory_budget`; the solver needs products with it, and
    those are computed from tiles wherever the tiles live.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None, default=None
        How many components. A fraction means as many as explain that part of the variance.
        None means all with a positive eigenvalue, which takes the whole spectrum of an n x n
        matrix.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. Names that scikit-learn has mean its kernels.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver; :func:`orthodrome.eigen.choose_solver` says what "auto" takes and why.
        "hebbian" gives a usable answer after a pass or two over the Gram matrix, and few digits;
        :class:`orthodrome.eigen.Hebbian` has its options, checkpoints among them. "nystroem" sees
        all points through a few anchors: no pass over the Gram matrix, and no training row but
        those is kept; :class:`orthodrome.eigen.Nystroem` has its options.
    tol : float, optional
        Stop when every residual ‖K'a - λa‖ is at most tol times the largest eigenvalue. Default:
        1e-8 for krylov; 1e-2 for hebbian, which estimates the residuals. For nystroem: take no
        more anchors once the features leave out at most tol times the trace of the Gram matrix;
        default: take as many as asked for.
    max_iter : int, optional
        The most products with the Gram matrix (krylov, 200 by default) or passes over its rows
        (hebbian, 50).
    n_anchors : int, optional
        For nystroem, which "auto" takes where this is given: the most anchors. Default: 512, or
        twice the number of components if that is more.
    warm_start : bool, default=False
        Whether a further `fit`, on the same data, goes on from where the last one ended: `max_iter`
        more passes of hebbian as if it had never stopped, or krylov from the eigenvectors found.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. Beyond it tiles are recomputed; results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix live; see :func:`orthodrome.gram.gram_operator`. For
        nystroem: where the features live during the fit.
    inverse_alpha : float, default=1e-6
        Ridge of the inverse map where the kernel is not radial, relative to the largest
        eigenvalue.
    random_state : int, RandomState or None, default=None
        Krylov, hebbian: source of the start, and of the orders of the passes; nystroem: of the
        anchors. With the same value the result is the same; without, it differs within `tol`.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues of K', descending, as in scikit-learn (not divided by n). With weights
        they are those of the repeated rows.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Orthonormal eigenvectors of K' (with weights, of W^½ K' W^½).
    embedding_ : ndarray of shape (n_samples, n_components)
        The training data transformed. Of rows that come in blocks, it and `eigenvectors_` are there
        where both, and the float64 they are computed in, fit a quarter of `memory_budget`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues over the trace, the total variance in feature space. If the kernel is not
        positive definite, negative eigenvalues lower the trace: the ratios are too large and may
        add up to more than 1; `fit` warns if it finds such eigenvalues.
    dual_coef_, intercept_ : ndarrays of shape (n_samples, n_components), (n_components,)
        ``transform(X) = k(X, X_fit_) @ dual_coef_ + intercept_``.
    mean_ : ndarray of shape (n_samples,)
        Coefficients of the mean over `X_fit_`: the weights, divided by their sum.
    X_fit_ : ndarray, sparse array or None
        The training data, which new points are compared with; None for a precomputed kernel.
        With nystroem, the anchors. A copy, but for a memory map, which stays one: the model
        needs its file as it is.
    n_anchors_ : int or None
        With nystroem, how many anchors there are: so many rows `dual_coef_` has then, and
        entries `mean_`.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        Which training rows they are; None where points were given.
    kernel_ : Kernel
        The fitted kernel.
    sample_weight_ : ndarray of shape (n_samples,) or None
        The weights.
    n_components_ : int
        Number of components.
    solver_ : str
        The solver that ran.
    n_iter_ : int
        Products with the Gram matrix that the solver made, or passes over its rows (hebbian).
    converged_ : bool
        Whether it reached `tol`.
    residuals_ : ndarray of shape (n_components,)
        ‖K'a - λa‖ of each component.
        With nystroem, the trace that the features leave out, which bounds the residuals of kernel
        PCA.
    history_ : list of dict
        The solver's iterations.
    n_samples_seen_ : int
        After `partial_fit`: how many rows there were.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.decomposition.KernelPCA : The same decomposition, of matrices that fit.

    Notes
    -----
    Signs: each component has a positive third moment over the training data, so that they depend
    neither on the solver nor on the order of the rows.

    Coordinates e stand for the point :math:`\sum_n \beta_n \Phi(x_n)` of feature space with
    :math:`\beta = p + A e`, where A is ``dual_coef_`` and p is ``mean_``;
    `inverse_transform` looks for its pre-image.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthodrome import KernelPCA
    >>> X = load_iris().data
    >>> pca = KernelPCA(n_components=2).fit(X)
    >>> pca.transform(X[:3]).shape
    (3, 2)
    >>> float(pca.explained_variance_ratio_.sum().round(3))
    0.905
    """

    _mean_coef_: NDArray[np.float64] | None = None

    def _geometry(
        self, gram: GramOperator, weights: NDArray[np.float64] | None
    ) -> tuple[Centered, dict[str, Any]]:
        centered = Centered(gram, weights)
        if not (np.all(np.isfinite(centered.means)) and np.isfinite(centered.trace())):
            raise ValueError(
                f"Kernel values or their sums overflow in {gram.dtype}; rescale the data, or "
                "choose other parameters of the kernel."
            )
        found = {
            "_mean_coef_": None,
            "_mean_square": centered.mean_square,
            "_constant_diagonal": _constant(gram.diagonal()),
        }
        return centered, found

    def _squared_radius_of(self, diagonal: NDArray[Any]) -> float:
        if not np.all(np.isfinite(diagonal)):
            raise ValueError(
                f"Kernel values overflow in {diagonal.dtype}; rescale the data, or choose other "
                "parameters of the kernel."
            )
        return 1.0

    def _fit_of_features(
        self, features: NystroemFeatures, diagonal: NDArray[np.float64], p: NDArray[np.float64]
    ) -> FeatureFit:
        fit = pca_of_features(features, diagonal, p, self.n_components)
        fit.kept["_constant_diagonal"] = _constant(diagonal)
        return fit

    def _fit_of_stream(self, stream: FeatureStream) -> StreamFit:
        return pca_of_stream(stream, self.n_components)

    @available_if(works_on_features)
    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with another batch of rows, of which only moments of their features are kept.

        The first batches are kept until there are eight rows for each anchor that is asked for;
        then the parameters of the kernel and the anchors come from them, for good. Of every row,
        also of those, the features enter the mean and the covariance: with the same anchors and
        kernel the result is that of `fit` on all rows in any order, to rounding. No rows wait where
        ``Nystroem(anchors=points)`` gives the anchors and the kernel has numbers for its
        parameters.

        Components are computed when they are next asked for, by `transform` or as attributes;
        while rows wait for anchors, as if those rows were all. Signs are such that the third
        moment over the anchors is positive (`fit`: over all rows), since the rows are gone, and
        so is `embedding_`. `fit` starts anew. Solvers other than "auto" and nystroem need all rows
        at once, and have no `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or batches
            The rows; or a zarr array or an iterator of batches, which is read once.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is the same as the row written twice.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from orthodrome import KernelPCA
        >>> random = np.random.default_rng(0)
        >>> pca = KernelPCA(2, n_anchors=50, random_state=0)
        >>> for _ in range(10):
        ...     pca = pca.partial_fit(random.standard_normal((100, 3)))
        >>> pca.n_samples_seen_, pca.transform(np.zeros((1, 3))).shape
        (1000, (1, 2))
        """
        with last_fit_kept(self):
            self._partial_fit(X, sample_weight)
        return self

    def _partial_fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        self._check_parameters()
        kernel, owner = self._kernel_object(), type(self).__name__
        solver = solver_for_batches(self, kernel)
        state = vars(self).get("_partial_", PartialFit())
        for batch, given in batches_of(X, sample_weight, kernel, owner):
            with rows_named(batch, state.n_seen, owner):
                rows = kernel.validate(batch, estimator=self, reset=state.n_seen == 0)
            weights = check_sample_weight(given, rows.shape[0], owner, rows.dtype, all_zero=True)
            with rows_named(batch, state.n_seen, owner):
                state = state.with_batch(self, rows, weights, solver)
        if state.n_seen == 0:
            raise ValueError(f"partial_fit of {owner} was given no rows.")
        for name in [name for name in vars(self) if _is_fitted(name)]:  # computed when asked for
            delattr(self, name)
        self._partial_, self.n_samples_seen_ = state, state.n_seen

    def _ready(self) -> None:
        """Compute the components of the batches so far, if that is still to be done."""
        if not self._is_waiting():
            return
        with _computing:
            if self._is_waiting():  # for no other thread has done it
                self._check_parameters()  # they may have been changed
                solver = solver_for_batches(self, self._kernel_object())
                # all at once, for threads that look, and nothing of what is interrupted
                done: Any = object.__new__(type(self))
                done.__dict__.update(self.__dict__)
                keep_partial_fit(done, self._partial_, solver)
                self.__dict__.update(done.__dict__)

    def _is_waiting(self) -> bool:
        """Whether the components of batches are still to be computed."""
        return "_partial_" in vars(self) and "kernel_" not in vars(self)

    def __getattr__(self, name: str) -> Any:
        if "_partial_" in vars(self) and _is_fitted(name) and name not in OF_ROWS:
            self._ready()  # or another thread has just come to it
            if name in vars(self):
                return vars(self)[name]
        return super().__getattr__(name)

    @property
    def mean_(self) -> NDArray[np.float64]:
        """Coefficients of the mean over the points that new ones are compared with."""
        self._ready()
        if self._mean_coef_ is not None:
            return self._mean_coef_
        n = len(self.embedding_)
        if self.sample_weight_ is None:
            return np.full(n, 1.0 / n)
        return self.sample_weight_ / self.sample_weight_.sum()

    def _map_new_points(self, components: Components, geometry: Centered) -> dict[str, Any]:
        matrix, constant = affine_map(geometry, components.coefficients)
        return {"dual_coef_": matrix, "intercept_": constant}

    def _coordinates(self, X: Any) -> NDArray[Any]:
        return self._products(X, self.dual_coef_) + self.intercept_

    def _expansion(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        return coordinates @ self.dual_coef_.T + self.mean_.astype(self.dual_coef_.dtype)

    @staticmethod
    def _decoder_features(coordinates: NDArray[Any]) -> NDArray[Any]:
        return coordinates

    def _captured(self, X: Any) -> tuple[NDArray[Any], NDArray[Any], float]:
        both = np.column_stack([self.dual_coef_, self.mean_])
        products = self._products(X, both).astype(np.float64)
        coordinates = products[:, :-1] + self.intercept_
        diagonal, means = self._diagonal(X), products[:, -1]
        squares = squared_distance_to_mean(diagonal, means, self._mean_square)
        size = np.abs(diagonal).max() + 2 * np.abs(means).max() + abs(self._mean_square)
        rounding = float(4 * np.finfo(self.dual_coef_.dtype).eps * size)
        return np.einsum("ij,ij->i", coordinates, coordinates), squares, rounding

    def _diagonal(self, X: Any) -> NDArray[Any]:
        if self.X_fit_ is not None:
            return self.kernel_.diagonal(self.kernel_.prepare(X)).astype(np.float64)
        if self._constant_diagonal is None:
            raise ValueError(
                "score with a precomputed kernel needs k(x, x) of the new points, which is known "
                "only where the training matrix has a constant diagonal."
            )
        return np.full(X.shape[0], self._constant_diagonal)


def _constant(diagonal: NDArray[Any]) -> float | None:
    """Return the common value of a constant diagonal, None if it is not constant."""
    first = float(diagonal[0])
    return first if np.allclose(diagonal, first, rtol=1e-6, atol=0) else None


def _is_fitted(name: str) -> bool:
    """Tell whether an attribute is what a fit has computed, not what it has seen of the input."""
    of_input = ("n_features_in_", "feature_names_in_")
    return name.endswith("_") and not name.startswith("__") and name not in of_input
