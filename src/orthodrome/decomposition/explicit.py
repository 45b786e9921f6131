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
from .._core.types import Data, Floats
from .._core.unit import squared_radius
from .._core.warn import warn_user
from ..base import (
    AnchorAttributes,
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
from ..plan import plan_fit
from ..rows import ArrayRows, as_rows
from .view import View, fitted_view

# Dropped variance up to this fraction of the sum of squared lengths may be rounding errors.
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
    """Normalise coordinates; return NaN for points of length 0."""
    lengths = np.linalg.norm(points, axis=1)
    lengths[lengths <= 1e-12] = np.nan
    return points / lengths[:, None]


def check_directions(points: Floats) -> None:
    """Raise if a point had length 0, so that it could not be normalised."""
    lost = ~np.isfinite(points[:, 0])
    if lost.any():
        raise RowError(
            "Row {0} of X has no similarity to any training point of positive weight, so it "
            "cannot be projected onto their sphere. Choose a larger scale (sigma) of the "
            "kernel, or leave the row out.",
            int(np.argmax(lost)),
        )


def fit_to_coordinates(
    estimator: Any, X: Any, sample_weight: ArrayLike | None, *, unit: bool, on_sphere: bool
) -> tuple[PointFit, Any, Canonical]:
    """Fit an estimator to coordinates; return the fit, the validated data and their distinct rows.

    ``estimator._method()`` returns the function that fits to coordinates. On a sphere, kernel
    values are divided by k(x, x), which must be constant; `unit` also normalises coordinates. Not
    exception-safe; the caller restores the state.
    """
    kernel, owner = estimator._kernel_object(), type(estimator).__name__
    check_in_memory(X, estimator)
    rows: Any = as_rows(X, kernel, estimator).weighted(sample_weight, owner)
    if not isinstance(rows, ArrayRows):
        raise ValueError(
            f"{owner} does not accept rows that are read in blocks, such as lists of arrays. "
            "Pass one array, for example numpy.concatenate(X)."
        )
    canonical = canonical_of(rows, kernel)
    solver = getattr(estimator, "solver", "dense")
    request = {"n_components": None, "solver": solver, "kernel_coordinates": False}
    plan = plan_fit(estimator, rows_of(canonical, kernel), kernel, factors=True, **request)
    numbered = rows_renumbered(canonical.index)
    with tracked(estimator, bool(estimator.verbose)) as progress, single_threaded_blas(), numbered:
        view = fitted_view(canonical, kernel, plan, on_sphere=on_sphere)
        fit = fit_points(view, estimator._method(), progress, unit=unit)
    estimator.__dict__.update(fit.attributes)
    return fit, rows.whole(), canonical


def coordinates_of(estimator: Any, X: Any, *, unit: bool = False) -> Floats:
    """Return coordinates of validated data, projected onto the span of the training data."""
    kernel, radius = estimator.kernel_, estimator._squared_radius_
    if estimator._columns_ is not None:
        X = X[:, estimator._columns_]
    elif unit:
        squared_radius(kernel.diagonal(kernel.prepare(X)), radius)
    cross = cross_operator(kernel, X, estimator.X_fit_)
    points = np.asarray(cross @ estimator._decoder_, dtype=np.float64) / radius
    return unit_vectors(points) if unit else points


class ExplicitDecomposition(AnchorAttributes, EmbeddingMixin, KernelEstimator):
    """A decomposition that works on coordinates of the points.

    The coordinates come from the Gram matrix, or from anchors. A subclass names the function that
    fits to coordinates (`_method`), and maps coordinates to the embedding (`_embedded`).
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "n_components": optional(integer()),
        "p": positive(maximum=2),
    }

    n_components: int | None
    p: float
    embedding_: NDArray[Any]

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

    @abstractmethod
    def _embedded(self, points: Floats) -> Floats:
        """Return the embedding of coordinates, shape (n, n_components_)."""

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
            Weights. A weight of 2 is equivalent to repeating the row, 0 to leaving it out.

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._check_parameters()
            options = {"unit": self._unit_points, "on_sphere": self._on_sphere}
            self._set_row_attributes(*fit_to_coordinates(self, X, sample_weight, **options))
        return self

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

    def _coordinates(self, X: Any) -> Floats:
        """Return coordinates of validated data, projected onto the span of the training data."""
        return coordinates_of(self, X, unit=self._unit_points)


def oriented(directions: Floats, coordinates: Floats, normalized_weights: Floats) -> Floats:
    """Return directions with signs for which the third moments of coordinates are positive."""
    return directions * orient(coordinates - normalized_weights @ coordinates, normalized_weights)


def _warn_if_dropped(dropped: float, points: Floats, kernel: Kernel) -> None:
    """Warn if more than 1% of the variance was dropped because it is close to rounding errors."""
    size = float(np.einsum("ij,ij->", points, points))
    if dropped <= _LENGTH_ROUNDING * size and isinstance(kernel, Precomputed):
        return  # the rows may differ by rounding errors only
    spread = float(np.sum((points - points.mean(axis=0)) ** 2))
    if dropped > 0.01 * (dropped + spread):
        warn_user(
            f"{dropped / (dropped + spread):.0%} of the variance of {type(kernel).__name__} on "
            "these data was dropped: it is close to the rounding errors of the points. Choose a "
            "smaller scale (sigma), centre the data, or pass float64.",
            UserWarning,
        )
