"""What decompositions in explicit coordinates share: the Gram matrix is factored first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.checks import check_numbers, check_power, check_sample_weight
from .._core.memory import format_bytes, parse_bytes
from .._core.parameters import integer, optional
from .._core.progress import Progress, tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..base import KernelEstimator, last_fit_kept, rows_renumbered
from ..coordinates import (
    Isometry,
    anchor_coordinates,
    isometric_coordinates,
    principal_coordinates,
)
from ..eigen import Nystroem, orient
from ..gram import (
    GramOperator,
    Scaled,
    cross_operator,
    gram_diagonal,
    gram_operator,
    squared_radius,
)
from ..kernels import Precomputed
from .base import warn_if_left_out

__all__ = ["ExplicitDecomposition", "oriented"]

# Of the progress bar: about what the Gram matrix and its factors take of a fit.
_GRAM_SHARE = 0.1


class ExplicitDecomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A decomposition of points that get exact coordinates first, from the Gram matrix.

    A subclass looks at the Gram matrix (`_checked_gram`), fits itself to coordinates
    (`_fit_points`), and embeds coordinates (`_embedded`). Coordinates of training data and of new
    ones go through `_placed`.
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "n_components": optional(integer()),
        "p": check_power,
    }

    n_components: int | None
    p: float
    n_components_: int
    embedding_: NDArray[Any]
    # Of fits on features; else there are none.
    n_anchors_: int | None = None
    anchor_indices_: NDArray[np.intp] | None = None

    #: Told how far a fit is, by an estimator that this one is a part of.
    _listener: Callable[[float], None] | None = None

    # ------------------------------------------------------------------ what a subclass supplies

    def _features_of(self, n: int) -> Nystroem | None:
        """Return what chooses anchors for n points; None where all of them are to be taken."""
        return None

    def _on_sphere(self) -> bool:
        """Tell whether k(x, x) must be constant; it is then divided out."""
        return False

    def _checked_gram(self, gram: GramOperator) -> GramOperator:
        """Return the Gram operator to be factored; note what it was divided by."""
        self._squared_radius_ = squared_radius(gram.diagonal()) if self._on_sphere() else 1.0
        return gram if self._squared_radius_ == 1.0 else Scaled(gram, 1.0 / self._squared_radius_)

    @abstractmethod
    def _fit_points(
        self,
        points: NDArray[np.float64],
        weights: NDArray[np.float64],
        advance: Callable[[float], None],
    ) -> None:
        """Fit to coordinates; `advance` takes the fraction that is done."""

    @abstractmethod
    def _embedded(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the embedding of coordinates, shape (n, n_components_)."""

    def _placed(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where the coordinates of points are; NaN for a point that has no place."""
        return points

    def _refuse_unplaced(self, points: NDArray[np.float64]) -> None:
        """Raise where a point has no place."""

    def _check_new(self, X: Any) -> None:
        """Raise where new data do not belong to the training data."""

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
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
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Fit; what fails on the way may leave anything behind."""
        self._check_parameters()
        kernel = self._kernel_object()
        X = kernel.validate(X, estimator=self)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
        precomputed = isinstance(kernel, Precomputed)
        canonical = (canonical_gram if precomputed else canonical_rows)(X, weights)
        solver = self._features_of(len(canonical.weights))
        self._refuse_large_matrix(len(canonical.weights), solver)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            with rows_renumbered(canonical.index):
                self.kernel_ = self._fit_kernel(canonical.data, canonical.weights)
                self.X_fit_ = None if precomputed else canonical.data
                self._columns_ = canonical.index if precomputed else None
                if solver is None:
                    found = self._coordinates_of(canonical)
                else:
                    found = self._feature_coordinates_of(canonical, solver)
                points = self._placed(found.points)
            warn_if_left_out(found.left_out, points, self.kernel_)
            progress.advance(_GRAM_SHARE, "Gram matrix")
            with rows_renumbered(canonical.index):
                self._fit_points(points, canonical.weights, self._rest_of(progress))
        self._keep(X, canonical, points)

    def _rest_of(self, progress: Progress) -> Callable[[float], None]:
        """Return what advances the progress bar from where the Gram matrix left it."""

        def advance(fraction: float) -> None:
            done = _GRAM_SHARE + (1 - _GRAM_SHARE) * fraction
            progress.advance(done, "components")
            if self._listener is not None:
                self._listener(done)

        return advance

    def _refuse_large_matrix(self, n: int, solver: Nystroem | None) -> None:
        """Raise before any work if the matrices do not fit."""
        m = n if solver is None else min(n, solver.most_anchors(1))
        needed, budget = 5 * 8 * n * m, parse_bytes(self.memory_budget)
        if needed > max(budget, 2**23):  # a few megabytes are never refused
            what = "factors the Gram matrix" if solver is None else f"makes {m} features"
            fewer = "anchors (n_anchors)" if hasattr(self, "n_anchors") else "points"
            raise ValueError(
                f"{type(self).__name__} {what} of {n} points, which takes "
                f"{format_bytes(needed)}, and memory_budget is {format_bytes(budget)}. Raise "
                f"memory_budget, or fit to fewer {fewer}."
            )

    def _coordinates_of(self, canonical: Canonical) -> Isometry:
        """Return coordinates of the points."""
        gram = gram_operator(self.kernel_, canonical.data, storage="recompute")
        found = isometric_coordinates(self._checked_gram(gram))
        self._decoder_ = found.decoder
        self.anchor_indices_ = self.n_anchors_ = None
        return found

    def _feature_coordinates_of(self, canonical: Canonical, solver: Nystroem) -> Isometry:
        """Return coordinates of the features of the points, of unit length."""
        kernel, data = self.kernel_, canonical.data
        diagonal = gram_diagonal(kernel, data)
        self._squared_radius_ = squared_radius(diagonal)
        scale = 1.0 / self._squared_radius_
        anchors = solver.renumbered(canonical.inverse).anchors_of(
            kernel, data, 1, sample_weight=canonical.weights, scale=scale
        )
        points = anchor_coordinates(
            kernel,
            data,
            anchors,
            unit=True,
            scale=scale,
            diagonal=diagonal * scale,
            memory_budget=self.memory_budget,
        )
        found = principal_coordinates(points)
        rows = None if anchors.indices is None else canonical.index[anchors.indices]
        if self._columns_ is None:
            self.X_fit_ = anchors.points.copy()
        else:
            self._columns_ = rows
        self._decoder_ = found.decoder
        self.anchor_indices_, self.n_anchors_ = rows, len(anchors.decoder)
        return found

    def _keep(self, X: Any, canonical: Canonical, points: NDArray[np.float64]) -> None:
        """Set what belongs to training rows: that of its twin, or of a new point, for each."""
        twins = canonical.inverse
        alone = np.flatnonzero(twins < 0)
        new = self._coordinates(X[alone]) if len(alone) else points[:0]
        with rows_renumbered(alone):
            self._refuse_unplaced(new)
        for name, of in self._of_rows().items():
            every = of(points)[twins]
            if len(alone):
                every[alone] = of(new)
            setattr(self, name, every)
        self.embedding_ = self.embedding_.astype(X.dtype, copy=False)

    def _of_rows(self) -> dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
        """Name the fitted attributes with a row for each point, as functions of coordinates."""
        return {"embedding_": self._embedded}

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the components and return the embedding of the training data."""
        return self.fit(X, sample_weight=sample_weight).embedding_.copy()

    # ------------------------------------------------------------------ new data

    def transform(self, X: Data) -> NDArray[Any]:
        """Embed data.

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
        points = self._coordinates(X)
        self._refuse_unplaced(points)
        return self._embedded(points).astype(X.dtype, copy=False)

    def _coordinates(self, X: Any) -> NDArray[np.float64]:
        """Return the coordinates of validated data, projected on the span of the training data."""
        if self._columns_ is not None:
            X = X[:, self._columns_]
        else:
            self._check_new(X)
        cross = cross_operator(self.kernel_, X, self.X_fit_)
        products = np.asarray(cross @ self._decoder_, dtype=np.float64)
        return self._placed(products / self._squared_radius_)

    def _check_coordinates(self, X: Data) -> NDArray[np.float64]:
        given = check_numbers(X, "X", type(self).__name__, dtype=np.float64, estimator=self)
        if given.shape[1] != self.n_components_:
            raise ValueError(
                f"inverse_transform of {type(self).__name__} takes {self.n_components_} "
                f"coordinates per sample, as transform returns; got {given.shape[1]}."
            )
        return given

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


def oriented(
    directions: NDArray[np.float64], coordinates: NDArray[np.float64], share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return directions with the signs that give coordinates along them positive third moments."""
    return directions * orient(coordinates - share @ coordinates, share)
