"""Base classes of estimators that first compute coordinates of the points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical
from .._core.checks import RowError, rows_renumbered
from .._core.kinds import check_in_memory
from .._core.parameters import integer, optional, positive
from .._core.progress import Progress, tracked
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats
from .._core.unit import squared_radius
from .._core.warn import warn_user
from ..base import (
    AnchorAttributes,
    EmbeddingMixin,
    FitMixin,
    KernelEstimator,
    canonical_of,
    rows_of,
)
from ..coordinates import isometric_coordinates
from ..coordinates.isometry import Isometry, principal_coordinates
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


def unit_vectors(points: Floats) -> Floats:
    """Normalise coordinates; raise if a point has length 0."""
    lengths = np.linalg.norm(points, axis=1)
    if not np.isfinite(lengths).all():
        number = int(np.argmin(np.isfinite(lengths)))
        raise RowError("Kernel values of row {0} of X overflow; rescale the data.", number)
    lost = lengths <= 1e-12
    if lost.any():
        raise RowError(
            "Row {0} of X has no similarity to any training point of positive weight, so it "
            "cannot be projected onto their sphere. Choose a larger scale (sigma) of the "
            "kernel, or leave the row out.",
            int(np.argmax(lost)),
        )
    return points / lengths[:, None]


class CoordinateFit(FitMixin):
    """Method `fit` of estimators that work on coordinates of the points.

    The coordinates come from the Gram matrix, or from anchors.
    """

    #: Whether coordinates are normalised, which requires a constant k(x, x).
    _unit_points: ClassVar[bool] = False

    @property
    def _on_sphere(self) -> bool:
        """Whether kernel values are divided by k(x, x), which must be constant."""
        return self._unit_points

    @abstractmethod
    def _fit_points(
        self, isometry: Isometry, weights: Floats, radius: float, advance: Callable[[float], None]
    ) -> PointFit:
        """Fit to coordinates; kernel values were divided by `radius`."""

    def _fit(self: Any, X: Any, sample_weight: ArrayLike | None) -> None:
        kernel, owner = self._kernel_object(), type(self).__name__
        check_in_memory(X, self)
        rows: Any = as_rows(X, kernel, self).weighted(sample_weight, owner)
        if not isinstance(rows, ArrayRows):
            raise ValueError(
                f"{owner} accepts only one array in memory. Join lists of arrays; reduce rows that "
                "do not fit in memory with KernelPCA(solver='nystroem') first."
            )
        canonical = canonical_of(rows, kernel)
        solver = getattr(self, "solver", "dense")
        request = {"n_components": None, "solver": solver, "kernel_coordinates": False}
        plan = plan_fit(self, rows_of(canonical, kernel), kernel, factors=True, **request)
        numbered = rows_renumbered(canonical.index)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas(), numbered:
            view = fitted_view(canonical, kernel, plan, on_sphere=self._on_sphere)
            fit = self._fit_view(view, progress)
        self._set_row_attributes(fit, rows.whole(), canonical)

    def _fit_view(self, view: View, progress: Progress) -> PointFit:
        """Compute coordinates of the points, and fit to them."""
        if view.points is None:
            found = isometric_coordinates(view.gram)
        else:
            found = principal_coordinates(view.points)
        points = unit_vectors(found.points) if self._unit_points else found.points
        _warn_if_dropped(found.left_out, points, view.kernel)
        progress.advance(_GRAM_FRACTION, "Gram matrix")

        def advance(fraction: float) -> None:
            progress.advance(_GRAM_FRACTION + (1 - _GRAM_FRACTION) * fraction, "components")

        fit = self._fit_points(replace(found, points=points), view.weights, view.radius, advance)
        shared = {"_decoder_": found.decoder, "_squared_radius_": view.radius}
        self.__dict__.update(view.attributes() | shared | fit.attributes)
        return fit

    def _set_row_attributes(self, fit: PointFit, X: Any, canonical: Canonical) -> None:
        """Set the attributes with one entry per row; rows of weight 0 are treated as new points."""
        excluded = np.flatnonzero(canonical.inverse < 0)
        with rows_renumbered(excluded):
            new = self._coordinates(X[excluded]) if len(excluded) else fit.points[:0]
        for name, function in fit.row_functions.items():
            values = function(fit.points)[canonical.inverse]
            if len(excluded):
                values[excluded] = function(new)
            setattr(self, name, values.astype(X.dtype) if name == "embedding_" else values)

    def _coordinates(self: Any, X: Any) -> Floats:
        """Return coordinates of validated data, projected onto the span of the training data."""
        kernel, radius, unit = self.kernel_, self._squared_radius_, self._unit_points
        if self._columns_ is not None:
            X = X[:, self._columns_]
        elif unit:
            squared_radius(kernel.diagonal(kernel.prepare(X)), radius)
        cross = cross_operator(kernel, X, self.X_fit_)
        points = np.asarray(cross @ self._decoder_, dtype=np.float64) / radius
        return unit_vectors(points) if unit else points


class ExplicitDecomposition(CoordinateFit, AnchorAttributes, EmbeddingMixin, KernelEstimator):
    """A decomposition that works on coordinates of the points.

    A subclass fits to coordinates (`_fit_points`), and maps them to the embedding (`_embedded`).
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "n_components": optional(integer()),
        "p": positive(maximum=2),
    }

    n_components: int | None
    p: float

    @abstractmethod
    def _embedded(self, points: Floats) -> Floats:
        """Return the embedding of coordinates, shape (n, n_components_)."""

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
        return self._embedded(self._coordinates(X)).astype(X.dtype, copy=False)


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
