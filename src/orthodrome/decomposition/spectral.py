"""What kernel PCA and kernel PGA share: a geometry of the Gram matrix, and its eigenvectors."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_flag, check_numbers, check_sample_weight
from .._core.parameters import count_or_fraction, optional, positive
from .._core.progress import Progress, tracked, with_callbacks
from .._core.status import warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..base import SOLVER_PARAMETERS, KernelEstimator, last_fit_kept
from ..eigen import (
    Components,
    Eigenpairs,
    Nystroem,
    leading,
    make_components,
    solve_components,
    weighted_problem,
)
from ..gram import (
    Centered,
    GramOperator,
    NystroemFeatures,
    Tangent,
    cross_operator,
    gram_operator,
    kind_of,
)
from ..gram.inputs import is_memory_map
from ..kernels import Precomputed
from .anchors import FeatureFit, fit_on_features
from .base import (
    refuse_large_matrix,
    resolved_solver,
    solver_tolerance,
    warn_if_indefinite,
    warn_if_rounding,
)
from .distributed import fits_exactly, lazy_rows
from .inverse import inputs_of, training_inputs
from .new_rows import score_blocks, transform_blocks
from .streams import OF_ROWS, FeatureStream, StreamFit, comes_in_blocks, fit_on_source

__all__ = ["SpectralDecomposition"]

# Of the progress bar: about what the first evaluation of the Gram matrix, with its centre, takes
# of a fit.
_GRAM_SHARE = 0.2


class SpectralDecomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Leading eigenvectors of a geometry over the Gram matrix, with a map for new points.

    A subclass says which geometry (`_geometry`), how its components see new points
    (`_map_new_points`, `_coordinates`, `_captured`), and which expansion in feature space
    coordinates stand for (`_expansion`, `_decoder_features`).
    """

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_components": count_or_fraction(or_none=True),
        "tol": optional(positive(or_zero=True)),
        "warm_start": check_flag,
        "inverse_alpha": positive(),
    }
    #: Whether the search for the mean, where there is one, reached its tolerance.
    _mean_converged: bool = True
    #: Whether `eigenvalues_` are divided by the sum of the weights.
    _eigenvalues_are_variances: bool = False
    #: Whether features are brought to unit length.
    _on_sphere: bool = False
    #: Whether "auto" may take Nyström features where the data are many.
    _works_on_features: bool = True
    # Of fits on features; else there are none.
    n_anchors_: int | None
    anchor_indices_: NDArray[np.intp] | None
    _columns_: NDArray[np.intp] | None = None
    _ridge_: Any = None

    def __init__(
        self,
        n_components: int | float | None = None,
        kernel: Any = "gaussian",
        *,
        solver: Any = "auto",
        tol: float | None = None,
        max_iter: int | None = None,
        n_anchors: int | None = None,
        warm_start: bool = False,
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
        self.n_anchors = n_anchors
        self.warm_start = warm_start
        self.memory_budget = memory_budget
        self.storage = storage
        self.inverse_alpha = inverse_alpha
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ what a subclass supplies

    @abstractmethod
    def _geometry(
        self, gram: GramOperator, weights: NDArray[np.float64] | None
    ) -> tuple[Centered | Tangent, dict[str, Any]]:
        """Wrap the Gram operator; also return fitted attributes that belong to the wrapper."""

    @abstractmethod
    def _squared_radius_of(self, diagonal: NDArray[Any]) -> float:
        """Return what kernel values are divided by."""

    @abstractmethod
    def _fit_of_features(
        self,
        features: NystroemFeatures,
        diagonal: NDArray[np.float64],
        p: NDArray[np.float64],
    ) -> FeatureFit:
        """Return the components of features, with fitted attributes."""

    @abstractmethod
    def _fit_of_stream(self, stream: FeatureStream) -> StreamFit:
        """Return the components of features that come in blocks."""

    @abstractmethod
    def _map_new_points(self, components: Components, geometry: Any) -> dict[str, Any]:
        """Return the fitted attributes that map new points."""

    @abstractmethod
    def _coordinates(self, X: Any) -> NDArray[Any]:
        """Return the coordinates of validated data."""

    @abstractmethod
    def _captured(self, X: Any) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Return ‖e(x)‖² and the squared distance from the centre, per point, and its rounding."""

    @abstractmethod
    def _expansion(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the coefficients over the training points that coordinates stand for."""

    @staticmethod
    @abstractmethod
    def _decoder_features(coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the linear coordinates in feature space that inputs are regressed on."""

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or rows in blocks
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
            A zarr array, a list of arrays (batches) or any object whose ``__iter__`` yields batches
            anew each time is passed over in blocks, with nystroem, and never held; so is a memory
            map with nystroem. The rows of a dask array stay with its workers; what is fitted for
            each row is a dask array then ("auto" is nystroem; with others, an array).
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is the same as the row written twice, 0 as the row left out.
            Those of a dask array may be in one too.

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Fit; what fails on the way may leave anything behind."""
        self._check_parameters()
        for name in ("_partial_", "n_samples_seen_"):  # batches before this are forgotten
            if name in vars(self):
                delattr(self, name)
        kernel = self._kernel_object()
        if fits_exactly(self, X):
            X = lazy_rows(self, X, kernel)
        elif comes_in_blocks(self, X, kernel):
            fit_on_source(self, X, kernel, sample_weight)
            return
        else:
            X = kernel.validate(X, estimator=self)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__, X.dtype)
        solver = self._feature_solver(X.shape[0])
        if solver is not None:
            fit_on_features(self, X, weights, solver)
            return
        self._refuse_early(X)
        with tracked(self, bool(self.verbose)) as progress:
            with single_threaded_blas():
                kernel = self._fit_kernel(X, weights)
                gram = gram_operator(
                    kernel, X, memory_budget=self.memory_budget, storage=self.storage
                )
                geometry, found = self._geometry(gram, weights)
            progress.advance(_GRAM_SHARE, "Gram matrix")
            problem = weighted_problem(geometry, weights)
            solve = self._solver_for(problem, progress)
            pairs = solve_components(problem, self.n_components, solve)
            components = make_components(
                pairs, geometry, weights, drop_null=self.n_components is None
            )
        total = float(X.shape[0] if weights is None else weights.sum())
        self._store(components, pairs, total if self._eigenvalues_are_variances else 1.0)
        self._solution_ = self._to_go_on_from(pairs)
        self.n_anchors_ = self.anchor_indices_ = self._columns_ = self._ridge_ = None
        for name, value in (found | self._map_new_points(components, geometry)).items():
            setattr(self, name, value)
        self.converged_ = pairs.converged and self._mean_converged
        self.kernel_ = kernel
        self.X_fit_ = None if isinstance(kernel, Precomputed) else _own(X)
        self.sample_weight_ = weights
        warn_if_rounding(components.eigenvalues, components.rounding, X, kernel)
        warn_if_indefinite(type(self).__name__, components, pairs, kernel, problem)
        warn_unless_converged(
            pairs.status,
            f"{type(self).__name__} ({pairs.solver})",
            f"largest relative residual {pairs.history[-1]['max_residual']:.1e}, "
            f"tol={solver_tolerance(self, X.shape[0], self.n_components_):g}",
        )

    def _feature_solver(self, n: int) -> Nystroem | None:
        """Return the solver if it is the one that works on features."""
        wanted = self.n_components
        k = min(int(wanted), n) if isinstance(wanted, numbers.Integral) else min(16, n)
        solver = resolved_solver(self, n, k)
        return solver if isinstance(solver, Nystroem) else None

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the components and return the embedding of the training data."""
        self.fit(X, sample_weight=sample_weight)
        # where the coordinates of all rows were too many to be kept beside the rest
        return self.embedding_.copy() if hasattr(self, "embedding_") else self.transform(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        wanted, checkpoint = self.n_components, getattr(self.solver, "checkpoint", None)
        if checkpoint is not None and not isinstance(wanted, numbers.Integral | None):
            raise ValueError(
                f"n_components of {type(self).__name__} must be an integer with a checkpoint, "
                f"which keeps one run; a fraction takes several. Got {wanted!r}."
            )

    def _solver_for(
        self, problem: GramOperator, progress: Progress
    ) -> Callable[[int, NDArray[Any] | None], Eigenpairs]:
        """Return the function that computes k leading pairs, from approximate vectors if any."""
        earlier = self._earlier_solution(problem.shape[0])

        def solve(k: int, initial: NDArray[Any] | None) -> Eigenpairs:
            return leading(
                problem,
                k,
                solver=self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                random_state=self.random_state,
                initial=earlier if initial is None else initial,
                memory_budget=self.memory_budget,
                callback=progress.residual_callback(
                    solver_tolerance(self, problem.shape[0], k), _GRAM_SHARE
                ),
            )

        return solve

    def _earlier_solution(self, n: int) -> Any:
        """Return what the last fit ended with, if this one is to go on from there."""
        earlier = getattr(self, "_solution_", None) if self.warm_start else None
        if earlier is None:
            return None
        if len(self.eigenvectors_) != n:
            raise ValueError(
                f"warm_start of {type(self).__name__} goes on with the data of the last fit, which "
                f"had {len(self.eigenvectors_)} samples; got {n}. Set warm_start=False to start "
                "anew."
            )
        return earlier

    def _to_go_on_from(self, pairs: Eigenpairs) -> Any:
        """Return what a later fit can go on from: the solver's own state, or the vectors."""
        if not self.warm_start:
            return None
        return pairs.vectors if pairs.resume is None else pairs.resume

    def _refuse_early(self, X: Any) -> None:
        """Raise before the Gram matrix is made if the solver's matrix would not fit."""
        n, wanted = X.shape[0], self.n_components
        if wanted is None or isinstance(wanted, numbers.Integral):
            k = n if wanted is None else min(int(wanted), n)
            refuse_large_matrix(self, n, k, X.dtype)

    def _store(self, components: Components, pairs: Eigenpairs, divisor: float) -> None:
        self.eigenvalues_ = components.eigenvalues / divisor
        self.eigenvectors_ = components.eigenvectors
        self.embedding_ = components.embedding
        self.explained_variance_ratio_ = components.explained_variance_ratio
        self.n_components_ = len(components.eigenvalues)
        self.solver_ = pairs.solver
        self.n_iter_ = pairs.n_iter
        self.residuals_ = pairs.residuals[: self.n_components_] / divisor
        self.history_ = list(pairs.history)

    # ------------------------------------------------------------------ new data

    def transform(self, X: Data) -> NDArray[Any]:
        """Project data on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or rows in blocks
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples). Memory maps, zarr arrays, lists of batches and
            iterators of batches are read in blocks, and never held.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates; of a dask array, one that has not been computed.
        """
        check_is_fitted(self)
        if kind_of(X, self.kernel_) != "array" or is_memory_map(X):
            return transform_blocks(self, X)
        return self._coordinates(self.kernel_.validate(X, estimator=self, reset=False))

    def _products(self, X: Any, V: NDArray[Any]) -> NDArray[Any]:
        """Return k(X, X_fit_) @ V, in tiles."""
        if self._columns_ is not None:
            X = X[:, self._columns_]
        return np.ascontiguousarray(cross_operator(self.kernel_, X, self.X_fit_) @ V)

    def inverse_transform(self, X: Data, inputs: ArrayLike | None = None) -> NDArray[Any]:
        """Find inputs whose feature vectors are near the given coordinates.

        Which point of feature space coordinates stand for, the notes of the class say. For radial
        kernels its pre-image is found by a fixed point, for others by ridge regression of the
        training inputs on such points.

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
        return inputs_of(
            coordinates,
            self.kernel_,
            training,
            expansion=self._expansion,
            features=self._decoder_features,
            embedding=self._known_coordinates(),
            weights=self.sample_weight_,
            alpha=self.inverse_alpha,
            fixed_point=not scipy.sparse.issparse(self.X_fit_),
            decode=self._ridge_,
        )

    def _known_coordinates(self) -> NDArray[Any]:
        """Return the coordinates of the training rows, or of those that were kept."""
        return self.embedding_ if "embedding_" in vars(self) else self._coordinates(self.X_fit_)

    def _check_coordinates(self, X: Data) -> NDArray[Any]:
        coordinates = check_numbers(
            X, "X", type(self).__name__, dtype=[np.float64, np.float32], estimator=self
        )
        if coordinates.shape[1] != self.n_components_:
            raise ValueError(
                f"inverse_transform of {type(self).__name__} takes {self.n_components_} "
                f"coordinates per sample, as transform returns; got {coordinates.shape[1]}."
            )
        return coordinates

    def _training_inputs(self, inputs: ArrayLike | None) -> NDArray[Any]:
        n = len(self.embedding_) if self.X_fit_ is None else 0
        return training_inputs(self.X_fit_, inputs, n)

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        r"""Return the fraction of the feature-space variance of X that the components explain.

        .. math:: \frac{\sum_i w_i \|e(x_i)\|^2}{\sum_i w_i\, d^2(\mu, \Phi(x_i))}

        with μ the training mean and d the distance of the geometry, straight or along the sphere;
        higher is better, 1 at most if the kernel is positive definite. It compares numbers of
        components, or data. It cannot choose σ or a kernel: each has a feature space of its own,
        and a σ so large that all points coincide explains everything.

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
        if kind_of(X, self.kernel_) != "array" or is_memory_map(X):
            captured, total, rounding = score_blocks(self, X, sample_weight)
        else:
            X = self.kernel_.validate(X, estimator=self, reset=False)
            weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
            explained, squares, rounding = self._captured(X)
            captured, total = (np.average(part, weights=weights) for part in (explained, squares))
        if total <= rounding:
            raise ValueError(
                f"score of {type(self).__name__} is undefined: X has no variance in feature space. "
                "Give points that differ, or choose a smaller scale (sigma) of the kernel."
            )
        return float(captured / total)

    def __getattr__(self, name: str) -> Any:
        if name in OF_ROWS and "kernel_" in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name}: it has seen more rows than their "
                "coordinates may take of memory_budget, or as batches that were not kept. "
                "transform(X) returns the coordinates of rows."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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


def _own(X: Any) -> Any:
    """Return a copy that no later change of the caller's array reaches; a memory map stays one."""
    return X if is_memory_map(X) else X.copy()
