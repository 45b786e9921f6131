"""Base classes of estimators that first compute coordinates of the points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical
from .._core.checks import RowError, rows_renumbered
from .._core.kinds import check_in_memory
from .._core.parameters import integer, optional, positive
from .._core.progress import Progress, tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats, Indices
from .._core.warn import warn_user
from ..base import (
    EmbeddingMixin,
    KernelEstimator,
    canonical_of,
    last_fit_kept,
    rows_of,
)
from ..coordinates import isometric_coordinates
from ..coordinates.isometry import principal_coordinates
from ..eigen.pairs import orient
from ..gram import cross_operator
from ..kernels import Kernel, Precomputed
from ..kernels._unit import squared_radius
from ..plan import plan_fit
from ..rows import ArrayRows, as_rows
from .view import View, fitted_view

# Squared lengths up to this fraction may be rounding errors.
_LENGTH_ROUNDING = 64 * float(np.finfo(np.float64).eps)

# Fraction of the progress bar for the Gram matrix and its factors.
_GRAM_FRACTION = 0.1


@dataclass(frozen=True)
class PointFit:
    """Result of a fit to coordinates.

    Attributes
    ----------
    attributes : dict
        Fitted attributes by name.
    row_functions : dict
        Functions that compute attributes with one entry per row, such as `embedding_`, from
        coordinates.
    points : ndarray of shape (n, n_coordinates)
        The coordinates of the distinct training points.
    """

    attributes: dict[str, Any]
    row_functions: dict[str, Callable[[Floats], Floats]]
    points: Floats


def fit_points(
    view: View, method: Callable[..., PointFit], progress: Progress, *, unit: bool
) -> PointFit:
    """Compute coordinates of the points, normalised if `unit`, and fit `method` to them."""
    if view.points is None:
        found = isometric_coordinates(view.gram)
    else:
        found = principal_coordinates(view.points)
    points = unit_vectors(found.points) if unit else found.points
    _warn_if_dropped(found.left_out, points, view.kernel)
    progress.advance(_GRAM_FRACTION, "Gram matrix")

    def advance(fraction: float) -> None:
        progress.advance(_GRAM_FRACTION + (1 - _GRAM_FRACTION) * fraction, "components")

    fit = method(replace(found, points=points), view.weights, view.radius, advance)
    shared = {"_decoder_": found.decoder, "_squared_radius_": view.radius}
    return replace(fit, attributes=view.attributes() | shared | fit.attributes)


def unit_vectors(points: Floats) -> Floats:
    """Normalise coordinates; return NaN for points without a direction."""
    lengths = np.linalg.norm(points, axis=1)
    lengths[lengths <= 1e-12] = np.nan
    return points / lengths[:, None]


def check_directions(points: Floats) -> None:
    """Raise if a point has no direction."""
    lost = ~np.isfinite(points[:, 0])
    if lost.any():
        raise RowError(
            "Row {0} of X has no similarity to any training point of positive weight, so it "
            "cannot be projected onto their sphere. Choose a larger scale (sigma) of the "
            "kernel, or leave the row out.",
            int(np.argmax(lost)),
        )


class CoordinateEstimator(KernelEstimator):
    """An estimator that works on coordinates of the points.

    The coordinates come from the Gram matrix, or from anchors. A subclass names the function that
    fits to coordinates (`_method`).
    """

    # None after a fit to the Gram matrix.
    n_anchors_: int | None = None
    anchor_indices_: Indices | None = None

    #: Whether coordinates are normalised, which requires a constant k(x, x).
    _unit_points: ClassVar[bool] = False

    @property
    def _on_sphere(self) -> bool:
        """Whether kernel values are divided by k(x, x), which must be constant."""
        return self._unit_points

    @abstractmethod
    def _method(self) -> Callable[..., PointFit]:
        """Return the function that fits to coordinates, with the parameters of the estimator.

        It is called with ``(isometry, weights, radius, advance)``.
        """

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of 2 is equivalent to repeating the row, 0 to leaving it out.

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        """Fit. Not exception-safe; the caller restores the state."""
        self._check_parameters()
        kernel = self._kernel_object()
        check_in_memory(X, self)
        owner = type(self).__name__
        rows: Any = as_rows(X, kernel, self).weighted(sample_weight, owner)
        if not isinstance(rows, ArrayRows):
            raise ValueError(
                f"{owner} does not take rows that are read in blocks, such as lists of arrays. "
                "Pass one array, for example numpy.concatenate(X)."
            )
        canonical = canonical_of(rows, kernel)
        solver = getattr(self, "solver", "dense")
        request = {"n_components": None, "solver": solver, "kernel_coordinates": False}
        plan = plan_fit(self, rows_of(canonical, kernel), kernel, factors=True, **request)
        numbered = rows_renumbered(canonical.index)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas(), numbered:
            view = fitted_view(canonical, kernel, plan, on_sphere=self._on_sphere)
            fit = fit_points(view, self._method(), progress, unit=self._unit_points)
        self.__dict__.update(fit.attributes)
        self._set_row_attributes(fit, rows.whole(), canonical)

    def _set_row_attributes(self, fit: PointFit, X: Any, canonical: Canonical) -> None:
        """Set the attributes with one entry per row; rows of weight 0 are treated as new points."""
        excluded = np.flatnonzero(canonical.inverse < 0)
        new = self._coordinates(X[excluded]) if len(excluded) else fit.points[:0]
        with rows_renumbered(excluded):
            check_directions(new)
        for name, function in fit.row_functions.items():
            values = function(fit.points)[canonical.inverse]
            if len(excluded):
                values[excluded] = function(new)
            setattr(self, name, values.astype(X.dtype) if name == "embedding_" else values)

    def _coordinates(self, X: Any) -> Floats:
        """Return coordinates of validated data, projected onto the span of the training data."""
        if self._columns_ is not None:
            X = X[:, self._columns_]
        elif self._unit_points:
            squared_radius(self.kernel_.diagonal(self.kernel_.prepare(X)), self._squared_radius_)
        cross = cross_operator(self.kernel_, X, self.X_fit_)
        products = np.asarray(cross @ self._decoder_, dtype=np.float64)
        points = products / self._squared_radius_
        return unit_vectors(points) if self._unit_points else points


class ExplicitDecomposition(EmbeddingMixin, CoordinateEstimator):
    """A decomposition that works on coordinates of the points.

    A subclass also maps coordinates to the embedding (`_embedded`).
    """

    _PARAMETERS = CoordinateEstimator._PARAMETERS | {
        "n_components": optional(integer()),
        "p": positive(maximum=2),
    }

    n_components: int | None
    p: float
    embedding_: NDArray[Any]

    @abstractmethod
    def _embedded(self, points: Floats) -> Floats:
        """Return the embedding of coordinates, shape (n, n_components_)."""

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the components and return the embedding of the training data."""
        return self.fit(X, sample_weight=sample_weight).embedding_.copy()

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
        check_directions(points)
        return self._embedded(points).astype(X.dtype, copy=False)


def oriented(directions: Floats, coordinates: Floats, normalized_weights: Floats) -> Floats:
    """Choose the signs of directions that make the third moments of coordinates positive."""
    return directions * orient(coordinates - normalized_weights @ coordinates, normalized_weights)


def _warn_if_dropped(dropped: float, points: Floats, kernel: Kernel) -> None:
    """Warn if much of the variance was dropped because it is close to rounding errors."""
    size = float(np.einsum("ij,ij->", points, points))
    if dropped <= _LENGTH_ROUNDING * size and isinstance(kernel, Precomputed):
        return  # the rows may differ by rounding errors only
    spread = float(np.sum((points - points.mean(axis=0)) ** 2))
    if dropped > 0.01 * (dropped + spread):
        warn_user(
            f"{dropped / (dropped + spread):.0%} of the variance of {type(kernel).__name__} over "
            "these data is left out: compared with the lengths of the points it is close to "
            "rounding errors. Choose a smaller scale (sigma), centre the data, or pass float64.",
            UserWarning,
        )
