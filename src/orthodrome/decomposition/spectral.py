"""Base class of kernel PCA and kernel PGA, which differ in their geometry."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from .._core.checks import check_flag
from .._core.parameters import count_or_fraction, optional, positive
from .._core.progress import Progress, tracked
from .._core.threads import ForkSafeLock
from .._core.types import Data, Floats, Indices
from ..base import (
    SOLVER_PARAMETERS,
    EmbeddingMixin,
    KernelEstimator,
    last_fit_kept,
    with_parameters,
)
from ..coordinates.blocks import AnchorMap
from ..eigen import Nystroem
from ..gram.factory import prepared_points
from ..kernels import Kernel
from ..plan import Request, partial_plan, plan_fit
from ..rows import Rows, as_rows, kind_of
from ..rows.base import rows_named
from .fits import ROW_ATTRIBUTES, fit_coordinates, fit_gram
from .geometry import Geometry
from .inverse import inputs_of, training_inputs
from .new_points import NewPoints, Scores, attach_products
from .partial import PartialFit, add_batches, partial_attributes

# Attributes of the input, which scikit-learn sets.
_INPUT_ATTRIBUTES = ("n_features_in_", "feature_names_in_")

# Lock for the computation of components after partial_fit.
_compute_lock = ForkSafeLock()


def _has_partial_fit(estimator: Any) -> bool:
    """Return True if the solver supports `partial_fit`; raise an AttributeError otherwise."""
    solver = estimator.solver
    needs_mean = estimator._geometry.on_sphere and getattr(solver, "sphere", "") == "angles"
    if solver in ("auto", "nystroem") or (isinstance(solver, Nystroem) and not needs_mean):
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has partial_fit only with solver='auto', 'nystroem' or "
        f"Nystroem(sphere='unit'); {solver!r} needs all rows at once."
    )


class _Attributes:
    _mean_coef_: Floats | None = None
    # None after a fit to the Gram matrix.
    n_anchors_: int | None
    anchor_indices_: Indices | None


@with_parameters
class SpectralDecomposition(_Attributes, EmbeddingMixin, KernelEstimator):
    """Principal components of points in a geometry.

    Subclasses set the geometry, and document the parameters and attributes.
    """

    n_components: int | float | None = None
    kernel: Any = "gaussian"
    _: KW_ONLY
    solver: Any = "auto"
    tol: float | None = None
    max_iter: int | None = None
    n_anchors: int | None = None
    warm_start: bool = False
    storage: str = "auto"
    inverse_alpha: float = 1e-6
    random_state: Any = None

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_components": optional(count_or_fraction),
        "tol": optional(positive(or_zero=True)),
        "warm_start": check_flag,
        "inverse_alpha": positive(),
    }
    #: Flat feature space, or the sphere.
    _geometry: ClassVar[Geometry]

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        kernel, owner = self._kernel_object(), type(self).__name__
        rows = as_rows(X, kernel, self)
        rows = rows.weighted(sample_weight, owner, rows.dtype)
        with tracked(self, bool(self.verbose)) as progress:
            self._fit_rows(rows, kernel, owner, progress)

    def _fit_rows(self, rows: Rows, kernel: Kernel, owner: str, progress: Progress) -> None:
        """Fit to validated rows; `owner` is the name of the estimator in messages."""
        plan = plan_fit(self, rows, kernel, owner=owner, passes=self._geometry.passes)
        if plan.face == "gram":
            initial = self._earlier_solution(rows.shape[0]) if self.warm_start else None
            attributes = fit_gram(rows, kernel, self._geometry, plan, progress, initial)
        else:
            alpha = self.inverse_alpha
            attributes = fit_coordinates(rows, kernel, self._geometry, plan, progress, alpha)
        self._replace_fitted(attributes)
        if not self.warm_start:
            self._solution_ = None

    def _replace_fitted(self, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes except those of the input."""
        for name in list(vars(self)):
            if name.endswith("_") and name not in _INPUT_ATTRIBUTES:
                del self.__dict__[name]
        self.__dict__.update(attributes)

    def _earlier_solution(self, n: int) -> Any:
        """Return the state of the last fit to the Gram matrix, or None."""
        earlier = vars(self).get("_solution_")
        if earlier is not None and len(self.eigenvectors_) != n:
            raise ValueError(
                f"warm_start of {type(self).__name__} continues with the data of the last fit, "
                f"which had {len(self.eigenvectors_)} samples; got {n}. Set warm_start=False to "
                "start again."
            )
        return earlier

    # ------------------------------------------------------------------ new data

    def transform(self, X: Data) -> NDArray[Any]:
        """Return the coordinates of data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or rows in blocks
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples). Memory maps, zarr arrays, lists of batches and
            iterators of batches are read in blocks and never loaded as a whole.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates; a lazy dask array if X is a dask array.
        """
        rows = self._new_rows(X)
        function, rows = attach_products(self._new_points(), rows)
        return rows.map(function)

    def _new_points(self) -> NewPoints:
        """Return the map from rows to coordinates."""
        kernel, anchor_map = self.kernel_, None
        points = prepared_points(kernel, self.X_fit_)
        decoder, radius = getattr(self, "_decoder_", None), getattr(self, "_squared_radius", 1.0)
        if decoder is not None:
            anchors = self._columns_ if points is None else points
            anchor_map = AnchorMap(
                kernel, anchors, decoder, decoder.dtype, unit=True, radius=radius
            )
        return NewPoints(
            kernel,
            points,
            self._columns_,
            self.dual_coef_,
            self.mean_,
            intercept=getattr(self, "intercept_", None),
            mean_square=getattr(self, "_mean_square", 0.0),
            diagonal=getattr(self, "_constant_diagonal", None),
            radius=radius,
            anchor_map=anchor_map,
        )

    def inverse_transform(self, X: Data, inputs: ArrayLike | None = None) -> NDArray[Any]:
        """Find inputs whose feature vectors are near the given coordinates.

        Coordinates define a point in feature space; see the notes of the class. The pre-image of
        this point is computed with a fixed-point iteration for radial kernels, and with ridge
        regression of the training inputs for other kernels.

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
        coordinates = self._check_coordinates(X, [np.float64, np.float32])
        n = len(self.embedding_) if self.X_fit_ is None else 0
        has_embedding = "embedding_" in vars(self)
        return inputs_of(
            coordinates,
            self.kernel_,
            training_inputs(self.X_fit_, inputs, n),
            expansion=lambda Z: self._geometry.expansion(Z, self.dual_coef_, self.mean_),
            features=self._geometry.regressors,
            embedding=self.embedding_ if has_embedding else self._new_points()(self.X_fit_),
            weights=self.sample_weight_,
            alpha=self.inverse_alpha,
            fixed_point=not scipy.sparse.issparse(self.X_fit_),
            decode=self._ridge_,
        )

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        r"""Return the fraction of the feature-space variance of X that the components explain.

        .. math:: \frac{\sum_i w_i \|e(x_i)\|^2}{\sum_i w_i\, d^2(\mu, \Phi(x_i))}

        where μ is the training mean and d the distance, Euclidean or along the sphere. Higher is
        better; the maximum is 1 if the kernel is positive definite. Use it to compare numbers of
        components. Do not use it to compare kernels or values of σ, because their feature spaces
        differ. If σ is so large that all points nearly coincide, the score is close to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`transform`.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            The fraction.
        """
        rows = self._new_rows(X, sample_weight)
        function, rows = attach_products(self._new_points(), rows)
        count, *sums = rows.reduce(Scores(**vars(function)))
        captured, total, rounding = (float(term / count) for term in sums)
        if total <= rounding:
            raise ValueError(
                f"score of {type(self).__name__} is undefined: X has no variance in feature "
                "space. Pass distinct points, or choose a smaller scale (sigma) of the kernel."
            )
        return float(captured / total)

    # ------------------------------------------------------------------ batches

    @available_if(_has_partial_fit)
    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the fit with another batch of rows.

        The first batches are stored until there are eight rows for each anchor. Then the kernel
        parameters and the anchors are computed from them, and do not change any more. Of later rows
        only sums are stored. No rows are stored if the anchors are given,
        ``Nystroem(anchors=points)``, and the kernel has fixed parameters.

        For kernel PCA the result is that of `fit` on all rows with the same anchors and kernel, up
        to rounding errors. For kernel PGA it is an approximation, because Log maps depend on the
        mean of all rows: exact sums of the features are combined with a random sample of 2,048
        rows. `mean_drift_` is the angle between the mean of the first rows and that of all rows;
        there is a warning if it is above 0.5.

        Components are computed when `transform` or a fitted attribute is used next. Their signs are
        chosen from the third moments of the anchors (in `fit`, of all rows). There is no
        `embedding_`. `fit` discards the earlier batches. Solvers other than "auto" and nystroem
        need all rows at once, and have no `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or batches
            The rows, as an array, a zarr array or batches. They are read once.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of 2 is equivalent to repeating the row.

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
            owner, kernel = type(self).__name__, self._kernel_object()
            state = vars(self).get("_partial_", PartialFit())
            plan = partial_plan(Request.of(self), kernel)
            kind = kind_of(X, kernel)
            if kind == "dask" or (kind == "once" and sample_weight is not None):
                raise ValueError(
                    f"partial_fit of {owner} does not accept a dask array; pass it to fit. It does "
                    "not accept weights with an iterator either; pass one batch at a time."
                )
            with rows_named(X, state.n_seen, owner):
                rows = as_rows(X, kernel, self, reset=state.n_seen == 0, once=True)
            state = add_batches(state, rows, sample_weight, kernel, self._geometry, plan)
            # components are computed when they are needed
            self._replace_fitted({"_partial_": state, "n_samples_seen_": state.n_seen})
        return self

    def _ready(self) -> None:
        """Compute the components of the batches so far, if they have not been computed."""
        if "_partial_" not in vars(self) or "kernel_" in vars(self):
            return
        with _compute_lock:
            if "kernel_" not in vars(self):  # another thread may have computed them meanwhile
                self._check_parameters()  # parameters may have been changed
                kernel, alpha = self._kernel_object(), self.inverse_alpha
                plan = partial_plan(Request.of(self), kernel)
                # one update, so that other threads see all attributes or none
                self.__dict__.update(
                    partial_attributes(self._partial_, kernel, self._geometry, plan, alpha)
                )

    def __getattr__(self, name: str) -> Any:
        fitted = name.endswith("_") and not name.startswith("__") and name not in _INPUT_ATTRIBUTES
        if fitted and "_partial_" in vars(self) and name not in ROW_ATTRIBUTES:
            self._ready()
            if name in vars(self):
                return vars(self)[name]
        if name in ROW_ATTRIBUTES and "kernel_" in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name}: the coordinates of all rows do not fit in "
                "memory_budget, or the rows were batches for partial_fit. transform(X) returns the "
                "coordinates of rows."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
