"""Kernel principal component analysis."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .._core.checks import check_choice, check_integer, check_positive, check_sample_weight
from .._core.memory import parse_bytes
from .._core.progress import Progress, tracked, with_callbacks
from .._core.status import warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..eigen import (
    Components,
    Dense,
    Eigenpairs,
    Krylov,
    leading,
    make_components,
    resolve_solver,
    solve_components,
    weighted_problem,
)
from ..gram import (
    Centered,
    GramOperator,
    cross_operator,
    gram_operator,
    squared_distance_to_mean,
)
from ..kernels import Kernel, Precomputed, Radial
from ..preimage import decode_components, radial_preimages
from .base import KernelEstimator

__all__ = ["KernelPCA"]

_GRAM_SHARE = 0.2  # of the progress bar: about what the first evaluation takes of a fit


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
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
    solver : {"auto", "dense", "krylov"} or solver object, default="auto"
        The eigensolver; :func:`orthodrome.eigen.choose_solver` says what "auto" takes and why.
    tol : float, default=1e-8
        Krylov: stop when every residual ‖K'a - λa‖ is at most tol times the largest eigenvalue.
    max_iter : int, default=200
        Krylov: the most products with the Gram matrix.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. Beyond it tiles are recomputed; results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix live; see :func:`orthodrome.gram.gram_operator`.
    inverse_alpha : float, default=1e-6
        Ridge of the inverse map where the kernel is not radial, relative to the largest
        eigenvalue.
    random_state : int, RandomState or None, default=None
        Krylov: source of the starting block. With the same value the result is the same; without,
        it differs within `tol`.
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
        The training data transformed.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues over the trace, the total variance in feature space. (An indefinite kernel has
        negative eigenvalues in its trace, and the ratios may add up to more than 1.)
    dual_coef_, intercept_ : ndarrays of shape (n_samples, n_components), (n_components,)
        ``transform(X) = k(X, X_fit_) @ dual_coef_ + intercept_``.
    X_fit_ : ndarray, sparse array or None
        The training data, which new points are compared with; None for a precomputed kernel.
    kernel_ : Kernel
        The fitted kernel.
    sample_weight_ : ndarray of shape (n_samples,) or None
        The weights.
    n_components_ : int
        Number of components.
    solver_ : str
        The solver that ran.
    n_iter_ : int
        Products with the Gram matrix that the solver made.
    converged_ : bool
        Whether it reached `tol`.
    residuals_ : ndarray of shape (n_components,)
        ‖K'a - λa‖ of each component.
    history_ : list of dict
        The solver's iterations.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.decomposition.KernelPCA : The same decomposition, of matrices that fit.

    Notes
    -----
    Signs: each component has a positive third moment over the training data, so that they depend
    neither on the solver nor on the order of the rows.

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

    def __init__(
        self,
        n_components: int | float | None = None,
        kernel: Any = "gaussian",
        *,
        solver: Any = "auto",
        tol: float = 1e-8,
        max_iter: int = 200,
        memory_budget: str | float = "2GiB",
        storage: str = "auto",
        inverse_alpha: float = 1e-6,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.storage = storage
        self.inverse_alpha = inverse_alpha
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> KernelPCA:
        """Fit the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is the same as the row written twice, 0 as the row left out.

        Returns
        -------
        KernelPCA
            The fitted estimator.
        """
        self._check_parameters()
        X = self._kernel_object().validate(X, estimator=self)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
        self._refuse_early(X)
        with tracked(self, bool(self.verbose)) as progress:
            kernel, centered = self._centered_gram(X, weights)
            progress.advance(_GRAM_SHARE, "Gram matrix")
            problem = weighted_problem(centered, weights)
            solve = self._solver_for(problem, progress)
            pairs = solve_components(problem, self.n_components, solve)
            components = make_components(
                pairs, centered, weights, drop_null=self.n_components is None
            )
        self._store(components, pairs, centered)
        self.kernel_ = kernel
        self.X_fit_ = None if isinstance(kernel, Precomputed) else _own(X)
        self.sample_weight_ = weights
        _warn_if_rounding(components, X, kernel)
        warn_unless_converged(
            pairs.status,
            f"{type(self).__name__} ({pairs.solver})",
            f"largest relative residual {pairs.history[-1]['max_residual']:.1e}, tol={self.tol:g}",
        )
        return self

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the components and return the embedding of the training data."""
        return self.fit(X, sample_weight=sample_weight).embedding_.copy()

    def _centered_gram(
        self, X: Any, weights: NDArray[np.float64] | None
    ) -> tuple[Kernel, Centered]:
        with single_threaded_blas():
            kernel = self._fit_kernel(X, weights)
            gram = gram_operator(kernel, X, memory_budget=self.memory_budget, storage=self.storage)
            centered = Centered(gram, weights)
            if not (np.all(np.isfinite(centered.means)) and np.isfinite(centered.trace())):
                raise ValueError(
                    f"Values of {type(kernel).__name__} or their sums overflow in {gram.dtype}; "
                    "rescale the data, or choose other parameters of the kernel."
                )
            return kernel, centered

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if not _is_number_of_components(self.n_components):
            raise ValueError(
                f"n_components of {owner} must be an integer >= 1, a fraction between 0 and 1, "
                f"or None; got {self.n_components!r}."
            )
        if isinstance(self.solver, str):
            check_choice(self.solver, ("auto", "dense", "krylov"), "solver", owner)
        check_positive(self.tol, "tol", owner, or_zero=True)
        check_integer(self.max_iter, "max_iter", owner)
        check_positive(self.inverse_alpha, "inverse_alpha", owner)
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_integer(self.verbose, "verbose", owner, minimum=0)
        check_choice(self.storage, ("auto", "memory", "disk", "recompute"), "storage", owner)
        parse_bytes(self.memory_budget)

    def _solver_for(
        self, problem: GramOperator, progress: Progress
    ) -> Callable[[int, NDArray[Any] | None], Eigenpairs]:
        """Return the function that computes k leading pairs, from approximate vectors if any."""
        return lambda k, initial: leading(
            problem,
            k,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            initial=initial,
            memory_budget=self.memory_budget,
            callback=progress.residual_callback(self.tol, _GRAM_SHARE),
        )

    def _refuse_early(self, X: Any) -> None:
        """Raise before the Gram matrix is made if the solver's matrix would not fit."""
        n, wanted = X.shape[0], self.n_components
        if wanted is None or isinstance(wanted, numbers.Integral):
            k = n if wanted is None else min(int(wanted), n)
            solver = resolve_solver(self.solver, n, k, Krylov(memory_budget=self.memory_budget))
            if isinstance(solver, Dense):
                solver.check_memory(n, X.dtype)

    def _store(self, components: Components, pairs: Eigenpairs, centered: Centered) -> None:
        self.eigenvalues_ = components.eigenvalues
        self.eigenvectors_ = components.eigenvectors
        self.embedding_ = components.embedding
        self.explained_variance_ratio_ = components.explained_variance_ratio
        self.dual_coef_ = components.dual_coef
        self.intercept_ = components.intercept
        self.n_components_ = len(components.eigenvalues)
        self.solver_ = pairs.solver
        self.n_iter_ = pairs.n_iter
        self.converged_ = pairs.converged
        self.residuals_ = pairs.residuals[: self.n_components_]
        self.history_ = list(pairs.history)
        self._mean_square = centered.mean_square
        self._constant_diagonal = _constant(centered.operator.diagonal())

    # ------------------------------------------------------------------ new data

    def transform(self, X: Data) -> NDArray[Any]:
        """Project data on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates.
        """
        check_is_fitted(self)
        X = self.kernel_.validate(X, estimator=self, reset=False)
        return self._products(X, self.dual_coef_) + self.intercept_

    def _products(self, X: Any, V: NDArray[Any]) -> NDArray[Any]:
        """Return k(X, X_fit_) @ V, in tiles."""
        return np.ascontiguousarray(cross_operator(self.kernel_, X, self.X_fit_) @ V)

    def inverse_transform(self, X: Data, inputs: ArrayLike | None = None) -> NDArray[Any]:
        r"""Find inputs whose feature vectors are near the given coordinates.

        The coordinates e stand for the point :math:`\sum_n \beta_n \Phi(x_n)` with
        :math:`\beta = p + A e` (A is ``dual_coef_``, p the weights of the mean). For radial
        kernels its pre-image is found by a fixed point, for others by ridge regression of the
        training inputs on their coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.
        inputs : array-like of shape (n_training_samples, n_features), optional
            Training inputs; needed if the kernel is precomputed, else not allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Approximate inputs.
        """
        check_is_fitted(self)
        coordinates = self._check_coordinates(X)
        training = self._training_inputs(inputs)
        if isinstance(self.kernel_, Radial) and not scipy.sparse.issparse(self.X_fit_):
            p = self._mean_weights().astype(self.dual_coef_.dtype)
            return radial_preimages(
                self.kernel_,
                training,
                lambda rows: coordinates[rows] @ self.dual_coef_.T + p,
                len(coordinates),
            ).points
        weights = np.ones(len(training)) if self.sample_weight_ is None else self.sample_weight_
        flat = training.reshape(len(training), -1)  # an Embedded kernel may take 3-D arrays
        center, decoder = decode_components(
            self.embedding_, self.eigenvalues_, flat, weights, self.inverse_alpha
        )
        inputs_found = (center + coordinates @ decoder).astype(coordinates.dtype, copy=False)
        return inputs_found.reshape(-1, *training.shape[1:])

    def _mean_weights(self) -> NDArray[np.float64]:
        n = len(self.dual_coef_)
        if self.sample_weight_ is None:
            return np.full(n, 1.0 / n)
        return self.sample_weight_ / self.sample_weight_.sum()

    def _check_coordinates(self, X: Data) -> NDArray[Any]:
        coordinates = check_array(X, dtype=[np.float64, np.float32], estimator=self)
        if coordinates.shape[1] != self.n_components_:
            raise ValueError(
                f"inverse_transform of {type(self).__name__} takes {self.n_components_} "
                f"coordinates per sample, as transform returns; got {coordinates.shape[1]}."
            )
        return coordinates

    def _training_inputs(self, inputs: ArrayLike | None) -> NDArray[Any]:
        if self.X_fit_ is not None:
            if inputs is not None:
                raise ValueError(
                    "inputs is only for kernel='precomputed'; this estimator has its training data."
                )
            X = self.X_fit_
            return X.toarray() if scipy.sparse.issparse(X) else X
        if inputs is None:
            raise ValueError(
                "A precomputed kernel does not know the inputs: pass the training data, "
                "inverse_transform(Z, inputs=X_train)."
            )
        array = check_array(inputs, dtype=[np.float64, np.float32], input_name="inputs")
        if len(array) != len(self.dual_coef_):
            raise ValueError(
                f"inputs must have one row per training sample, {len(self.dual_coef_)}; "
                f"got {len(array)}."
            )
        return array

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        r"""Return the fraction of the feature-space variance of X that the components explain.

        .. math:: \frac{\sum_i w_i \|e(x_i)\|^2}{\sum_i w_i \|\Phi(x_i) - \mu\|^2}

        with μ the training mean; higher is better, 1 at most if the kernel is positive definite.
        It compares numbers of components, or data. It cannot choose σ or a kernel: each has a
        feature space of its own, and a σ so large that all points coincide explains everything.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, held out or not.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            The fraction.
        """
        check_is_fitted(self)
        X = self.kernel_.validate(X, estimator=self, reset=False)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
        both = np.column_stack([self.dual_coef_, self._mean_weights()])
        products = self._products(X, both).astype(np.float64)
        coordinates = products[:, :-1] + self.intercept_
        explained = np.einsum("ij,ij->i", coordinates, coordinates)
        diagonal, means = self._diagonal(X), products[:, -1]
        variance = squared_distance_to_mean(diagonal, means, self._mean_square)
        total = np.average(variance, weights=weights)
        size = np.abs(diagonal).max() + 2 * np.abs(means).max() + abs(self._mean_square)
        if total <= 4 * np.finfo(self.dual_coef_.dtype).eps * size:
            raise ValueError("score is undefined: X has no variance in feature space.")
        return float(np.average(explained, weights=weights) / total)

    def _diagonal(self, X: Any) -> NDArray[Any]:
        if self.X_fit_ is not None:
            return self.kernel_.diagonal(self.kernel_.prepare(X)).astype(np.float64)
        if self._constant_diagonal is None:
            raise ValueError(
                "score with a precomputed kernel needs k(x, x) of the new points, which is known "
                "only where the training matrix has a constant diagonal."
            )
        return np.full(X.shape[0], self._constant_diagonal)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        # a fit that fails after its input was checked leaves n_features_in_ and nothing else
        return hasattr(self, "kernel_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_number_of_components(n: Any) -> bool:
    if n is None:
        return True
    if isinstance(n, (bool, np.bool_)) or not isinstance(n, numbers.Real):
        return False
    return int(n) >= 1 if isinstance(n, numbers.Integral) else 0.0 < float(n) < 1.0


def _own(X: Any) -> Any:
    """Return a copy that no later change of the caller's array reaches; a memory map stays one."""
    base = X
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    return X.copy() if base is None else X


def _warn_if_rounding(components: Components, X: Any, kernel: Kernel) -> None:
    """Warn where different points have become one: all that is left of them is rounding."""
    if np.any(components.eigenvalues > 0) or isinstance(kernel, Precomputed):
        return
    difference = X[1:] != X[:-1]
    if difference.nnz if scipy.sparse.issparse(difference) else np.any(difference):
        warnings.warn(
            f"All components are zero: the variance of {type(kernel).__name__} over these data is "
            f"below rounding, {components.rounding:.1e}. Choose a smaller scale (sigma), or centre "
            "the data, or pass float64.",
            UserWarning,
            stacklevel=3,
        )


def _constant(diagonal: NDArray[Any]) -> float | None:
    """Return the common value of a constant diagonal, None if it is not constant."""
    first = float(diagonal[0])
    return first if np.allclose(diagonal, first, rtol=1e-6, atol=0) else None
