"""The base class of decompositions that compute exact coordinates of the points first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical
from .._core.checks import RowError, check_power
from .._core.kinds import check_in_memory
from .._core.memory import format_bytes, parse_bytes
from .._core.parameters import integer, optional
from .._core.progress import tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats, Indices
from .._core.warn import warn_user
from ..base import (
    EmbeddingMixin,
    KernelEstimator,
    canonical_of,
    last_fit_kept,
    rows_of,
    rows_renumbered,
)
from ..coordinates import isometric_coordinates
from ..coordinates.isometry import principal_coordinates
from ..eigen.pairs import orient
from ..gram import cross_operator
from ..gram.unit import squared_radius
from ..kernels import Kernel, Precomputed
from ..plan import Plan, Request, make_plan
from ..rows import as_rows
from .view import fitted_view

# Squared lengths up to this fraction may be rounding.
_LENGTH_ROUNDING = 64 * float(np.finfo(np.float64).eps)

# Fraction of the progress bar for the Gram matrix and its factors.
_GRAM_SHARE = 0.1


class ExplicitDecomposition(EmbeddingMixin, KernelEstimator):
    """A decomposition of exact coordinates, which come from the Gram matrix.

    A subclass fits itself to coordinates (`_fit_points`) and embeds coordinates (`_embedded`).
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "n_components": optional(integer()),
        "p": check_power,
    }

    n_components: int | None
    p: float
    embedding_: NDArray[Any]
    # None after a fit to the Gram matrix.
    n_anchors_: int | None = None
    anchor_indices_: Indices | None = None

    #: Whether coordinates are normalised; k(x, x) must then be constant.
    _unit_points: ClassVar[bool] = False

    @abstractmethod
    def _fit_points(
        self, points: Floats, weights: Floats, advance: Callable[[float], None]
    ) -> dict[str, Callable[[Floats], Floats]]:
        """Fit to coordinates; `advance` takes the fraction done.

        Return functions of coordinates, by the name of the attribute with their value for each
        training row; one is `embedding_`.
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
        """Fit. Not exception-safe; the caller restores the state."""
        self._check_parameters()
        kernel = self._kernel_object()
        check_in_memory(X, self)
        rows: Any = as_rows(X, kernel, self).weighted(sample_weight, type(self).__name__)
        canonical = canonical_of(rows, kernel)
        solver = getattr(self, "solver", "dense")
        request = Request.of(self, n_components=None, solver=solver, own=False)
        plan = make_plan(rows_of(canonical, kernel), kernel, request)
        self._check_memory(len(canonical.weights), plan)
        on_sphere = self._unit_points or getattr(self, "center", "") == "karcher"
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            with rows_renumbered(canonical.index):
                # one number of anchors whatever n_components is; the Gram matrix is read once
                storage = "recompute" if plan.face == "gram" else plan.storage
                plan = replace(plan, k=1, storage=storage)
                view = fitted_view(canonical, kernel, plan, on_sphere=on_sphere)
                if view.points is None:
                    found = isometric_coordinates(view.gram)
                else:
                    found = principal_coordinates(view.points)
            points = self._placed(found.points)
            _warn_if_left_out(found.left_out, points, view.kernel)
            self.__dict__.update(view.attributes())
            self._decoder_, self._squared_radius_ = found.decoder, view.radius
            progress.advance(_GRAM_SHARE, "Gram matrix")

            def advance(fraction: float) -> None:
                progress.advance(_GRAM_SHARE + (1 - _GRAM_SHARE) * fraction, "components")

            with rows_renumbered(canonical.index):
                functions = self._fit_points(points, canonical.weights, advance)
        self._keep(functions, rows.whole(), canonical, points)

    def _check_memory(self, n: int, plan: Plan) -> None:
        """Raise if the matrices exceed the memory budget."""
        exact = plan.face == "gram"
        m = n if exact else min(n, plan.solver.most_anchors(1))
        needed, budget = 5 * 8 * n * m, parse_bytes(self.memory_budget)
        if needed > max(budget, 2**23):  # a few megabytes are always allowed
            what = "factors the Gram matrix" if exact else f"makes {m} features"
            fewer = "anchors (n_anchors)" if hasattr(self, "n_anchors") else "points"
            raise ValueError(
                f"{type(self).__name__} {what} of {n} points, which takes "
                f"{format_bytes(needed)}, and memory_budget is {format_bytes(budget)}. Raise "
                f"memory_budget, or fit to fewer {fewer}."
            )

    def _keep(
        self,
        functions: dict[str, Callable[[Floats], Floats]],
        X: Any,
        canonical: Canonical,
        points: Floats,
    ) -> None:
        """Set the attributes with an entry per row; rows of weight 0 may be new points."""
        alone = np.flatnonzero(canonical.inverse < 0)
        new = self._coordinates(X[alone]) if len(alone) else points[:0]
        with rows_renumbered(alone):
            self._check_placed(new)
        for name, function in functions.items():
            every = function(points)[canonical.inverse]
            if len(alone):
                every[alone] = function(new)
            setattr(self, name, every)
        self.embedding_ = self.embedding_.astype(X.dtype, copy=False)

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
        self._check_placed(points)
        return self._embedded(points).astype(X.dtype, copy=False)

    def _coordinates(self, X: Any) -> Floats:
        """Return the coordinates of validated data, projected on the span of the training data."""
        if self._columns_ is not None:
            X = X[:, self._columns_]
        elif self._unit_points:
            squared_radius(self.kernel_.diagonal(self.kernel_.prepare(X)), self._squared_radius_)
        cross = cross_operator(self.kernel_, X, self.X_fit_)
        products = np.asarray(cross @ self._decoder_, dtype=np.float64)
        return self._placed(products / self._squared_radius_)

    def _placed(self, points: Floats) -> Floats:
        """Return coordinates, normalised if need be; NaN for a point without a direction."""
        if not self._unit_points:
            return points
        lengths = np.linalg.norm(points, axis=1)
        lengths[lengths <= 1e-12] = np.nan
        return points / lengths[:, None]

    @staticmethod
    def _check_placed(points: Floats) -> None:
        """Raise if a point has no direction."""
        lost = ~np.isfinite(points[:, 0])
        if lost.any():
            raise RowError(
                "Row {0} of X has no similarity to any training point of positive weight, so it "
                "has no place on their sphere. Choose a larger scale (sigma) of the kernel, or "
                "leave the row out.",
                int(np.argmax(lost)),
            )


def oriented(directions: Floats, coordinates: Floats, share: Floats) -> Floats:
    """Return directions with signs that make the third moments of coordinates positive."""
    return directions * orient(coordinates - share @ coordinates, share)


def _warn_if_left_out(left_out: float, points: Floats, kernel: Kernel) -> None:
    """Warn if much of the variance is left out because it is near rounding."""
    size = float(np.einsum("ij,ij->", points, points))
    if left_out <= _LENGTH_ROUNDING * size and isinstance(kernel, Precomputed):
        return  # the rows may differ by rounding only
    spread = float(np.sum((points - points.mean(axis=0)) ** 2))
    if left_out > 0.01 * (left_out + spread):
        warn_user(
            f"{left_out / (left_out + spread):.0%} of the variance of {type(kernel).__name__} over "
            "these data is left out: compared with the lengths of the points it is near rounding. "
            "Choose a smaller scale (sigma), centre the data, or pass float64.",
            UserWarning,
        )
