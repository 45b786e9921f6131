"""What kernel PCA and kernel PGA share; they differ by their geometry."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_flag
from .._core.parameters import count_or_fraction, optional, positive
from .._core.progress import Progress, tracked, with_callbacks
from .._core.threads import LockOfOneProcess
from .._core.types import Data, Floats, Indices
from ..base import SOLVER_PARAMETERS, EmbeddingMixin, KernelEstimator, last_fit_kept
from ..kernels import Kernel
from ..plan import Request, make_plan
from ..rows import Rows, as_rows
from .fits import OF_ROWS, fit_coordinates, fit_gram
from .geometry import Flat, Sphere
from .inverse import inputs_of, training_inputs
from .new_points import Scores, attach_products, new_points
from .partial import PartialFit, partial_attributes, partial_plan, with_batches, works_on_features

__all__ = ["SpectralDecomposition"]

# Attributes that say what the input looks like; scikit-learn sets them.
_OF_INPUT = ("n_features_in_", "feature_names_in_")

# Held by the thread that computes the components of batches.
_computing = LockOfOneProcess()


class SpectralDecomposition(EmbeddingMixin, KernelEstimator):
    """Principal components of points in a geometry, with a map for new points.

    A subclass sets the geometry, and documents what its parameters and attributes mean there.
    """

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_components": count_or_fraction(or_none=True),
        "tol": optional(positive(or_zero=True)),
        "warm_start": check_flag,
        "inverse_alpha": positive(),
    }
    #: Flat feature space, or its sphere.
    _geometry: ClassVar[Flat | Sphere]

    _mean_coef_: Floats | None = None
    # Of fits on coordinates; else there are none.
    n_anchors_: int | None
    anchor_indices_: Indices | None
    _columns_: Indices | None = None
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
            self._check_parameters()
            kernel, owner = self._kernel_object(), type(self).__name__
            rows = as_rows(X, kernel, self)
            rows = rows.weighted(sample_weight, owner, rows.dtype)
            with tracked(self, bool(self.verbose)) as progress:
                self._fit_rows(rows, kernel, owner, progress)
        return self

    def _fit_rows(self, rows: Rows, kernel: Kernel, owner: str, progress: Progress) -> None:
        """Fit to validated rows, on behalf of the estimator that is called `owner`."""
        plan = make_plan(rows, kernel, Request.of(self, owner=owner, passes=self._geometry.passes))
        if self.verbose:
            print(f"plan: {plan}")  # noqa: T201
        if plan.face == "gram":
            earlier = self._earlier_solution(rows.shape[0]) if self.warm_start else None
            fit = fit_gram(rows, kernel, self._geometry, plan, progress, earlier)
        else:
            alpha = self.inverse_alpha
            fit = fit_coordinates(rows, kernel, self._geometry, plan, progress, alpha)
        self._replace_fitted(fit.attributes)
        self._solution_ = fit.resume if self.warm_start else None

    def _replace_fitted(self, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes, except what is known of the input, by new ones."""
        for name in list(vars(self)):
            if name.endswith("_") and name not in _OF_INPUT:
                del self.__dict__[name]
        self.__dict__.update(attributes)

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the components and return the embedding of the training data."""
        self.fit(X, sample_weight=sample_weight)
        # where the coordinates of all rows were too many to be kept beside the rest
        return self.embedding_.copy() if hasattr(self, "embedding_") else self.transform(X)

    def _earlier_solution(self, n: int) -> Any:
        """Return what the last fit on the Gram matrix ended with, if there was one."""
        earlier = vars(self).get("_solution_")
        if earlier is not None and len(self.eigenvectors_) != n:
            raise ValueError(
                f"warm_start of {type(self).__name__} goes on with the data of the last fit, which "
                f"had {len(self.eigenvectors_)} samples; got {n}. Set warm_start=False to start "
                "anew."
            )
        return earlier

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
        rows = as_rows(X, self.kernel_, self, reset=False)
        function, rows = attach_products(new_points(self), rows)
        return rows.map(function)

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
        coordinates = self._check_coordinates(X, [np.float64, np.float32])
        n = len(self.embedding_) if self.X_fit_ is None else 0
        kept = "embedding_" in vars(self)
        return inputs_of(
            coordinates,
            self.kernel_,
            training_inputs(self.X_fit_, inputs, n),
            expansion=lambda Z: self._geometry.expansion(Z, self.dual_coef_, self.mean_),
            features=self._geometry.regressors,
            embedding=self.embedding_ if kept else new_points(self)(self.X_fit_),
            weights=self.sample_weight_,
            alpha=self.inverse_alpha,
            fixed_point=not scipy.sparse.issparse(self.X_fit_),
            decode=self._ridge_,
        )

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
        rows = as_rows(X, self.kernel_, self, reset=False).weighted(
            sample_weight, type(self).__name__
        )
        function, rows = attach_products(new_points(self), rows)
        count, *sums = rows.reduce(Scores(function))
        captured, total, rounding = (float(term / count) for term in sums)
        if total <= rounding:
            raise ValueError(
                f"score of {type(self).__name__} is undefined: X has no variance in feature space. "
                "Give points that differ, or choose a smaller scale (sigma) of the kernel."
            )
        return float(captured / total)

    # ------------------------------------------------------------------ batches

    @available_if(works_on_features)
    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with another batch of rows, of which only sums over their features are kept.

        The first batches are kept until there are eight rows for each anchor that is asked for.
        Then the parameters of the kernel and the anchors are taken from them, and stay. No rows
        wait if ``Nystroem(anchors=points)`` gives the anchors and the kernel has numbers for its
        parameters.

        For kernel PCA the result is that of `fit` on all rows, in any order, with the same anchors
        and kernel, to rounding. For kernel PGA it is an approximation, as Log maps depend on the
        mean of all rows: exact sums of the features are combined with a random sample of 2,048
        rows. `mean_drift_` is the angle between the mean of the first rows and that of all rows; a
        warning is given if it is above 0.5.

        Components are computed when they are next asked for, by `transform` or as attributes. Signs
        are such that the third moment over the anchors is positive (`fit`: over all rows), as the
        rows are gone; so is `embedding_`. `fit` starts anew. Solvers other than "auto" and nystroem
        need all rows at once, and have no `partial_fit`.

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
            self._check_parameters()
            state = vars(self).get("_partial_", PartialFit())
            state = with_batches(state, X, sample_weight, self)
            # components are computed when they are asked for
            self._replace_fitted({"_partial_": state, "n_samples_seen_": state.n_seen})
        return self

    def _ready(self) -> None:
        """Compute the components of the batches so far, if that is still to be done."""
        if not self._is_waiting():
            return
        with _computing:
            if self._is_waiting():  # for no other thread has done it
                self._check_parameters()  # they may have been changed
                kernel, alpha = self._kernel_object(), self.inverse_alpha
                plan = partial_plan(Request.of(self), kernel)
                # all at once, for threads that look, and nothing of what is interrupted
                self.__dict__.update(
                    partial_attributes(self._partial_, kernel, self._geometry, plan, alpha)
                )

    def _is_waiting(self) -> bool:
        """Whether the components of batches are still to be computed."""
        return "_partial_" in vars(self) and "kernel_" not in vars(self)

    def __getattr__(self, name: str) -> Any:
        fitted = name.endswith("_") and not name.startswith("__") and name not in _OF_INPUT
        if fitted and "_partial_" in vars(self) and name not in OF_ROWS:
            self._ready()  # or another thread has just come to it
            if name in vars(self):
                return vars(self)[name]
        if name in OF_ROWS and "kernel_" in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name}: it has seen more rows than their "
                "coordinates may take of memory_budget, or as batches that were not kept. "
                "transform(X) returns the coordinates of rows."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
