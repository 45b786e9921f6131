"""Kernel principal nested spheres."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.checks import check_choice, check_integer, check_positive, check_sample_weight
from .._core.memory import format_bytes, parse_bytes
from .._core.progress import tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..gram import cross_operator, gram_operator, squared_radius
from ..kernels import Precomputed
from ..sphere import exp, log, nested_spheres
from ..sphere.nested import CHOICES
from .base import KernelEstimator, last_fit_kept, rows_named_in

__all__ = ["KernelPNS"]

# Directions with less of the trace of the Gram matrix are not there.
_RANK = 1e-12
# Of the progress bar: about what the Gram matrix and its factors take of a fit.
_GRAM_SHARE = 0.1


class KernelPNS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""Kernel principal nested spheres, robust if asked: subspheres within subspheres.

    A kernel with k(x, x) = 1 puts the data on a sphere in feature space, that of their span. The
    subsphere nearest to them,

    .. math:: \min_{v, r} \sum_n w_n \bigl((\arccos\langle v, y_n\rangle - r)^2
        + \varepsilon\bigr)^{p/2},

    may be a great one (r = π/2) or a small one, which bends with the data where geodesics do not.
    The data are projected on it, and so on, down to a circle and the mean on it. The residuals on
    the way, from the last to the first, are the modes of variation.

    The points get exact coordinates first, from the eigenvectors of the Gram matrix; then no kernel
    is left, and the chain is that of :func:`orthodrome.sphere.nested_spheres`.

    Parameters
    ----------
    n_components : int or None, default=None
        The dimension D of the subsphere that the embedding is on; None: all. The chain is fitted
        whole in either case.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. k(x, x) must be the same for all the data;
        ``Normalized(kernel)`` makes it so for any kernel. With ``"linear"`` and unit vectors it is
        ordinary PNS.
    p : float in (0, 2], default=2.0
        The power of the residuals; 2 is least squares, smaller ones forgive outliers.
    sphere : {"small", "great", "bic", "test"}, default="small"
        What subspheres may be; see :func:`orthodrome.sphere.nested_spheres`.
    negligible : float, default=0.0
        A shortcut for many data: levels with no more than this part of the variance are cut off
        without a search. 0 means that all levels are fitted.
    memory_budget : str or number, default="2GiB"
        What the Gram matrix and its factors may take; more is an error.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The training data transformed.
    residuals_ : ndarray of shape (n_samples, n_modes)
        The modes: the signed angle on the circle, then the signed residuals from the innermost
        subsphere on, each in the units of the first sphere.
    explained_variance_ratio_ : ndarray of shape (n_modes,)
        Mean squares of `residuals_` over their sum.
    radii_ : ndarray of shape (n_modes - 1,)
        Radii of the subspheres, the outermost first.
    axes_ : ndarray of shape (n_modes - 1, n_coordinates)
        Their axes, orthonormal, in the coordinates of `sphere_coordinates_`.
    sphere_coordinates_ : ndarray of shape (n_samples, n_coordinates)
        The training points as unit vectors: their inner products are the kernel's.
    nested_spheres_ : orthodrome.sphere.NestedSpheres
        The chain, with maps both ways.
    n_components_ : int
        The dimension of the embedding.
    X_fit_ : ndarray, sparse array or None
        The training data of positive weight, each different row once, sorted; None for a
        precomputed kernel.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    KernelPGA : The same with great circles through a mean.
    orthodrome.sphere.nested_spheres : For unit vectors.

    Notes
    -----
    The embedding (§V of the paper): the data projected on the subsphere of dimension D, their Log
    maps at the mean, and the principal directions of these. :meth:`inverse_transform` goes back to
    that subsphere.

    If the data take up more than half of the last circle there is a warning: the first mode then
    has a variance that is inflated by wrapping. Great subspheres wrap less.

    Equal rows are merged into weights and the rest is sorted before anything else, so that a weight
    of 2 is the row written twice, to the last bit, and the order of rows does not matter.

    References
    ----------
    Awate, Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016; Jung, Dryden and
    Marron, "Analysis of principal nested spheres", Biometrika 99, 2012.

    Examples
    --------
    A small circle on a sphere is one mode, where kernel PCA needs two components:

    >>> import numpy as np
    >>> from orthodrome import KernelPNS
    >>> angle = np.linspace(-1, 1, 20)
    >>> circle = np.column_stack([0.6 * np.cos(angle), 0.6 * np.sin(angle), np.full(20, 0.8)])
    >>> model = KernelPNS(1, kernel="linear").fit(circle)
    >>> model.explained_variance_ratio_.round(6)
    array([1., 0.])
    """

    def __init__(
        self,
        n_components: int | None = None,
        kernel: Any = "gaussian",
        *,
        p: float = 2.0,
        sphere: str = "small",
        negligible: float = 0.0,
        memory_budget: str | float = "2GiB",
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.p = p
        self.sphere = sphere
        self.negligible = negligible
        self.memory_budget = memory_budget
        self.verbose = verbose

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the chain of subspheres.

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
        self._refuse_large_matrix(len(canonical.weights))
        with tracked(self, bool(self.verbose)) as progress:
            with single_threaded_blas(), rows_named_in(lambda: self._named_check(X, weights)):
                points = self._coordinates_of(canonical)
            progress.advance(_GRAM_SHARE, "Gram matrix")
            self.nested_spheres_ = nested_spheres(
                points,
                canonical.weights,
                p=self.p,
                sphere=self.sphere,
                negligible=self.negligible,
                callback=lambda entry: progress.advance(
                    _GRAM_SHARE + (1 - _GRAM_SHARE) * entry["level"] / entry["n_levels"],
                    "subspheres",
                ),
            )
        self.X_fit_ = None if precomputed else canonical.data
        self._columns_ = canonical.index if precomputed else None
        self._embed(points, canonical.weights)
        self._keep(X, canonical, points)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", owner)
        check_positive(self.p, "p", owner)
        if self.p > 2:
            raise ValueError(f"p of {owner} must be in (0, 2]; got {self.p!r}.")
        check_choice(self.sphere, CHOICES, "sphere", owner)
        check_positive(self.negligible, "negligible", owner, or_zero=True)
        parse_bytes(self.memory_budget)
        if not isinstance(self.verbose, (bool, np.bool_)):
            check_integer(self.verbose, "verbose", owner, minimum=0)

    def _refuse_large_matrix(self, n: int) -> None:
        """Raise before any work if the matrices do not fit."""
        needed, budget = 5 * 8 * n * n, parse_bytes(self.memory_budget)
        if needed > max(budget, 2**23):  # a few megabytes are never refused
            raise ValueError(
                f"{type(self).__name__} factors the Gram matrix of {n} points, which takes "
                f"{format_bytes(needed)}, and memory_budget is {format_bytes(budget)}. Raise "
                "memory_budget, or fit to fewer points."
            )

    def _named_check(self, X: Any, weights: NDArray[np.float64] | None) -> None:
        kernel = self._fit_kernel(X, weights)
        if not isinstance(kernel, Precomputed):
            squared_radius(kernel.diagonal(kernel.prepare(X)))

    def _coordinates_of(self, canonical: Canonical) -> NDArray[np.float64]:
        """Fit the kernel; return unit vectors whose inner products are those of the points."""
        self.kernel_ = self._fit_kernel(canonical.data, canonical.weights)
        gram = gram_operator(self.kernel_, canonical.data, storage="recompute")
        self._squared_radius_ = squared_radius(gram.diagonal())
        matrix = gram.toarray().astype(np.float64) / self._squared_radius_
        values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, driver="evd")
        rounding = 8 * float(np.finfo(gram.dtype).eps) * len(values)
        kept = values > max(_RANK * float(np.abs(values).sum()), rounding)
        if values[0] < -100 * max(rounding, _RANK * float(np.abs(values).sum())):
            raise ValueError(
                f"The Gram matrix has the eigenvalue {values[0] * self._squared_radius_:.2g}: the "
                "kernel is not positive definite on these data, and they lie on no sphere."
            )
        values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
        # what maps kernel values to coordinates
        self._decoder_ = vectors / np.sqrt(values)
        points = vectors * np.sqrt(values)
        if points.shape[1] == 1:  # one direction is no sphere yet
            points = np.pad(points, [(0, 0), (0, 1)])
            self._decoder_ = np.pad(self._decoder_, [(0, 0), (0, 1)])
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    def _embed(self, points: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Find the principal directions of the tangent vectors on the subsphere wanted."""
        chain = self.nested_spheres_
        wanted = chain.n_modes if self.n_components is None else int(self.n_components)
        self.n_components_ = min(wanted, chain.n_modes)
        self._mean_ = chain.projected(chain.mean[None], self.n_components_)[0]
        tangents = self._tangents(points)
        share = weights / weights.sum()
        center = share @ tangents
        covariance = (tangents * share[:, None]).T @ tangents - np.outer(center, center)
        directions = np.linalg.eigh(covariance)[1][:, ::-1][:, : self.n_components_]
        coordinates = tangents @ directions
        skew = share @ (coordinates - share @ coordinates) ** 3
        self._directions_ = directions * np.where(skew < 0, -1.0, 1.0)

    def _tangents(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Log maps at the mean, on the subsphere of the embedding."""
        below = self.nested_spheres_.projected(points, self.n_components_)
        return log(below, base_point=self._mean_)

    def _keep(self, X: Any, canonical: Canonical, points: NDArray[np.float64]) -> None:
        """Set the fitted attributes; every row of X has those of its twin, or of a new point."""
        chain, twins = self.nested_spheres_, canonical.inverse
        alone = np.flatnonzero(twins < 0)
        new = self._sphere_coordinates(X[alone]) if len(alone) else points[:0]

        def for_all_rows(
            of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        ) -> NDArray[np.float64]:
            every = of(points)[twins]
            if len(alone):
                every[alone] = of(new)
            return every

        self.sphere_coordinates_ = for_all_rows(lambda rows: rows)
        self.residuals_ = for_all_rows(chain.scores)
        embedding = for_all_rows(lambda rows: self._tangents(rows) @ self._directions_)
        self.embedding_ = embedding.astype(X.dtype, copy=False)
        squares = np.average(chain.scores(points) ** 2, axis=0, weights=canonical.weights)
        total = float(squares.sum())
        self.explained_variance_ratio_ = squares / total if total > 0 else np.zeros_like(squares)
        self.radii_, self.axes_ = chain.radii, chain.axes

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the chain and return the embedding of the training data."""
        return self.fit(X, sample_weight=sample_weight).embedding_.copy()

    # ------------------------------------------------------------------ new data

    def transform(self, X: Data) -> NDArray[Any]:
        """Embed data.

        Points are projected to the span of the training data and brought to unit length there
        first.

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
        found = self._tangents(self._sphere_coordinates(X)) @ self._directions_
        return found.astype(X.dtype, copy=False)

    def sphere_coordinates(self, X: Data) -> NDArray[np.float64]:
        """Return the unit vectors that data are, in the span of the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_coordinates)
            Unit vectors, in the coordinates of `sphere_coordinates_`;
            ``nested_spheres_.scores`` takes them to all modes.
        """
        check_is_fitted(self)
        return self._sphere_coordinates(self.kernel_.validate(X, estimator=self, reset=False))

    def inverse_transform(self, X: Data) -> NDArray[np.float64]:
        """Return the points of the subsphere that coordinates stand for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates, as :meth:`transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_coordinates)
            Unit vectors, in the coordinates of `sphere_coordinates_`.
        """
        check_is_fitted(self)
        given = check_array(X, dtype=np.float64, estimator=self)
        if given.shape[1] != self.n_components_:
            raise ValueError(
                f"inverse_transform of {type(self).__name__} takes {self.n_components_} "
                f"coordinates per sample, as transform returns; got {given.shape[1]}."
            )
        below = exp(given @ self._directions_.T, base_point=self._mean_)
        return self.nested_spheres_.raised(below)

    def _sphere_coordinates(self, X: Any) -> NDArray[np.float64]:
        if self._columns_ is not None:
            X = X[:, self._columns_]
        else:
            squared_radius(self.kernel_.diagonal(self.kernel_.prepare(X)), self._squared_radius_)
        cross = cross_operator(self.kernel_, X, self.X_fit_)
        found = np.asarray(cross @ self._decoder_, dtype=np.float64) / self._squared_radius_
        lengths = np.linalg.norm(found, axis=1)
        if np.any(lengths <= 1e-12):
            row = int(np.argmin(lengths))
            raise ValueError(
                f"Row {row} of X has no similarity to any training point: it has no place on "
                "their sphere. Choose a larger scale (sigma) of the kernel."
            )
        return found / lengths[:, None]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_is_fitted__(self) -> bool:
        # a fit that fails after its input was checked leaves n_features_in_ and nothing else
        return hasattr(self, "nested_spheres_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
