"""What decompositions in explicit coordinates share: the Gram matrix is factored first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical
from .._core.checks import RowError, check_power
from .._core.kinds import refuse_unread
from .._core.memory import format_bytes, parse_bytes
from .._core.parameters import integer, optional
from .._core.progress import Progress, tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats, Indices
from .._core.warn import warn_user
from ..base import (
    EmbeddingMixin,
    KernelEstimator,
    canonical_of,
    fitted_kernel,
    last_fit_kept,
    rows_of,
    rows_renumbered,
)
from ..coordinates import isometric_coordinates
from ..coordinates.isometry import principal_coordinates
from ..eigen.pairs import orient
from ..gram import Scaled, cross_operator, gram_diagonal, gram_operator
from ..gram.unit import squared_radius
from ..kernels import Kernel, Precomputed
from ..plan import Plan, Request, make_plan
from ..rows import as_rows
from .view import view_of

__all__ = ["ExplicitDecomposition", "oriented"]

# What of squared lengths may be rounding.
_LENGTH_ROUNDING = 64 * float(np.finfo(np.float64).eps)

# Of the progress bar: about what the Gram matrix and its factors take of a fit.
_GRAM_SHARE = 0.1


class ExplicitDecomposition(EmbeddingMixin, KernelEstimator):
    """A decomposition of points that get exact coordinates first, from the Gram matrix.

    A subclass fits itself to coordinates (`_fit_points`) and embeds coordinates (`_embedded`).
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "n_components": optional(integer()),
        "p": check_power,
    }

    n_components: int | None
    p: float
    embedding_: NDArray[Any]
    # Of fits on features; else there are none.
    n_anchors_: int | None = None
    anchor_indices_: Indices | None = None

    #: Told how far a fit is, by an estimator that this one is a part of.
    _listener: Callable[[float], None] | None = None

    # ------------------------------------------------------------------ what a subclass supplies

    #: Whether coordinates are brought to unit length.
    _unit_points: ClassVar[bool] = False

    def _on_sphere(self) -> bool:
        """Tell whether k(x, x) must be constant; it is then divided out."""
        return self._unit_points

    @abstractmethod
    def _fit_points(
        self, points: Floats, weights: Floats, advance: Callable[[float], None]
    ) -> None:
        """Fit to coordinates; `advance` takes the fraction that is done."""

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
        refuse_unread(X, self)
        rows: Any = as_rows(X, kernel, self).weighted(sample_weight, type(self).__name__)
        canonical = canonical_of(rows, kernel)
        distinct = rows_of(canonical, kernel)
        plan = make_plan(distinct, kernel, self._request())
        self._refuse_large_matrix(len(canonical.weights), plan)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            with rows_renumbered(canonical.index):
                self.kernel_ = fitted_kernel(kernel, distinct)
                on_sphere = self._on_sphere()
                found = explicit_points(canonical, self.kernel_, plan, on_sphere=on_sphere)
            points = self._placed(found.points)
            _warn_if_left_out(found.left_out, points, self.kernel_)
            self.__dict__.update(found.attributes)
            progress.advance(_GRAM_SHARE, "Gram matrix")
            with rows_renumbered(canonical.index):
                self._fit_points(points, canonical.weights, self._rest_of(progress))
        self._keep(rows.whole(), canonical, points)

    def _request(self) -> Request:
        """Return what the plan is made of: the whole Gram matrix, unless anchors are asked for."""
        solver = getattr(self, "solver", "dense")
        return Request.of(self, n_components=None, solver=solver, own=False)

    def _rest_of(self, progress: Progress) -> Callable[[float], None]:
        """Return what advances the progress bar from where the Gram matrix left it."""

        def advance(fraction: float) -> None:
            done = _GRAM_SHARE + (1 - _GRAM_SHARE) * fraction
            progress.advance(done, "components")
            if self._listener is not None:
                self._listener(done)

        return advance

    def _refuse_large_matrix(self, n: int, plan: Plan) -> None:
        """Raise before any work if the matrices do not fit."""
        exact = plan.face == "gram"
        m = n if exact else min(n, plan.solver.most_anchors(1))
        needed, budget = 5 * 8 * n * m, parse_bytes(self.memory_budget)
        if needed > max(budget, 2**23):  # a few megabytes are never refused
            what = "factors the Gram matrix" if exact else f"makes {m} features"
            fewer = "anchors (n_anchors)" if hasattr(self, "n_anchors") else "points"
            raise ValueError(
                f"{type(self).__name__} {what} of {n} points, which takes "
                f"{format_bytes(needed)}, and memory_budget is {format_bytes(budget)}. Raise "
                f"memory_budget, or fit to fewer {fewer}."
            )

    def _keep(self, X: Any, canonical: Canonical, points: Floats) -> None:
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

    def _of_rows(self) -> dict[str, Callable[[Floats], Floats]]:
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
        """Return coordinates as they are used: of unit length if asked, NaN if there is none."""
        if not self._unit_points:
            return points
        lengths = np.linalg.norm(points, axis=1)
        lengths[lengths <= 1e-12] = np.nan
        return points / lengths[:, None]

    @staticmethod
    def _refuse_unplaced(points: Floats) -> None:
        """Raise where a point has no place."""
        lost = ~np.isfinite(points[:, 0])
        if lost.any():
            raise RowError(
                "Row {0} of X has no similarity to any training point that has a weight: it has no "
                "place on their sphere. Choose a larger scale (sigma) of the kernel, or leave it "
                "out.",
                int(np.argmax(lost)),
            )


def oriented(directions: Floats, coordinates: Floats, share: Floats) -> Floats:
    """Return directions with the signs that give coordinates along them positive third moments."""
    return directions * orient(coordinates - share @ coordinates, share)


@dataclass(frozen=True)
class ExplicitPoints:
    """Points with exact coordinates, or those of their vectors by anchors.

    Attributes
    ----------
    points : ndarray of shape (n, rank)
        The coordinates.
    left_out : float
        The sum of squares of the points along directions that were left out.
    attributes : dict
        Fitted attributes that give new points their coordinates.
    """

    points: Floats
    left_out: float
    attributes: dict[str, Any]


def explicit_points(
    canonical: Canonical, kernel: Kernel, plan: Plan, *, on_sphere: bool
) -> ExplicitPoints:
    """Give points coordinates: by the whole Gram matrix, or by anchors and of unit length."""
    data, precomputed = canonical.data, isinstance(kernel, Precomputed)
    radius = squared_radius(gram_diagonal(kernel, data)) if on_sphere else 1.0
    kept: dict[str, Any] = {"_squared_radius_": radius, "anchor_indices_": None, "n_anchors_": None}
    if plan.face == "gram":
        gram = gram_operator(kernel, data, storage="recompute")
        found = isometric_coordinates(gram if radius == 1.0 else Scaled(gram, 1.0 / radius))
        kept |= {"X_fit_": None if precomputed else data}
        kept |= {"_columns_": canonical.index if precomputed else None}
    else:
        view = view_of(canonical, kernel, plan, 1, radius=radius)
        found = principal_coordinates(view.points)
        kept |= view.attributes()
    return ExplicitPoints(found.points, found.left_out, kept | {"_decoder_": found.decoder})


def _warn_if_left_out(left_out: float, points: Floats, kernel: Kernel) -> None:
    """Warn if the coordinates lack much of the variance, because it is near rounding."""
    size = float(np.einsum("ij,ij->", points, points))
    if left_out <= _LENGTH_ROUNDING * size and isinstance(kernel, Precomputed):
        return  # rows that differ by rounding, and nobody knows whether the points do
    spread = float(np.sum((points - points.mean(axis=0)) ** 2))
    if left_out > 0.01 * (left_out + spread):
        warn_user(
            f"{left_out / (left_out + spread):.0%} of the variance of {type(kernel).__name__} over "
            "these data is left out: beside the lengths of the points it is near rounding. Choose "
            "a smaller scale (sigma), or centre the data, or pass float64.",
            UserWarning,
        )
