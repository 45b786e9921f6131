"""Base class and shared functions of all estimators with a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ._core.canonical import Canonical, canonical_gram, canonical_graph, canonical_rows
from ._core.checks import check_choice, check_numbers, rows_renumbered
from ._core.hints import hint, with_hints
from ._core.parameters import Check, choice, integer, memory_size, optional, seed, verbosity
from ._core.progress import CallbackSupportMixin, with_callbacks
from ._core.types import Array, Data, Floats, Indices
from .eigen import Nystroem
from .eigen.leading import check_solver
from .kernels import Gaussian, Kernel, NeighborGraph, Precomputed, as_kernel
from .kernels.wrappers import with_kernel_object
from .rows import ArrayRows, DaskRows, Rows, as_rows
from .rows.base import row_moments
from .rows.dask import in_memory, lazy_rows_of

# Beginnings of the names of attributes in which scikit-learn keeps callbacks during a fit.
_CALLBACKS = ("_skl_callbacks", "_callback_fit_ctx", "_parent_callback_ctx")

# Size of the sample for kernel parameters that cannot be computed from moments.
SAMPLE = 8192


Estimator = TypeVar("Estimator", bound=type)


@dataclass_transform(eq_default=False)
def with_parameters(estimator: Estimator) -> Estimator:
    """Decorate an estimator: the annotated attributes of the class become its parameters.

    ``__init__`` stores them. Its errors give advice to users of scikit-learn.
    """
    made: Any = dataclass(eq=False, repr=False)(estimator)
    made.__init__ = with_hints(made.__init__)
    return made


@contextmanager
def last_fit_kept(estimator: Any) -> Iterator[None]:
    """Restore the fitted attributes of an estimator if an exception is raised."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        for name in filter(_is_fitted, list(vars(estimator))):
            delattr(estimator, name)
        for name in filter(_is_fitted, before):
            setattr(estimator, name, before[name])
        raise


def _is_fitted(name: str) -> bool:
    """Return whether `fit` sets this attribute; scikit-learn manages the callback attributes."""
    return name.endswith("_") or (name.startswith("_") and not name.startswith(_CALLBACKS))


def fitted_kernel(kernel: Kernel, rows: Rows) -> Kernel:
    """Return a clone of a kernel, fitted to rows.

    If the rows are not in memory, the kernel is fitted to their moments and to a sample.
    """
    weights = rows.columns.get("weights")
    if isinstance(rows, ArrayRows) and not rows.mapped:
        return clone(kernel).fit_validated(rows.whole(), weights)
    numbers, counts = rows.spread(SAMPLE, weights)
    sample = rows.take(numbers)
    if len(numbers) == rows.shape[0]:
        return clone(kernel).fit_validated(sample, None if weights is None else counts)
    return clone(kernel).fit_sampled(sample, counts, lambda center: row_moments(rows, center))


def canonical_of(rows: Rows, kernel: Kernel) -> Canonical:
    """Return the distinct rows of positive weight, sorted, if the rows are in memory.

    Rows that are read in blocks are neither sorted nor merged. Rows of weight 0 are dropped from a
    dask array.
    """
    if isinstance(rows, ArrayRows):
        weights = rows.columns.get("weights")
        data = rows.whole()
        if not isinstance(kernel, Precomputed):
            return canonical_rows(data, weights)
        merge = canonical_graph if scipy.sparse.issparse(data) else canonical_gram
        return merge(data, weights)
    found = in_given_order(rows)
    n, weights = rows.shape[0], found.weights
    if np.all(weights > 0) or not isinstance(rows, DaskRows):
        return found
    index, inverse = np.flatnonzero(weights), np.full(n, -1)
    inverse[index] = np.arange(len(index))
    positive = DaskRows.of(lazy_rows_of(rows.whole(), index)).zip(weights=weights[index])
    return Canonical(positive, weights[index], index, inverse)


def in_given_order(rows: Rows) -> Canonical:
    """Return rows that are read in blocks, with weights in memory; neither sorted nor merged."""
    n, weights = rows.shape[0], in_memory(rows.columns.get("weights"))
    return Canonical(rows, np.ones(n) if weights is None else weights, np.arange(n), np.arange(n))


def rows_of(canonical: Canonical, kernel: Kernel) -> Rows:
    """Return canonical data as rows with weights."""
    if isinstance(canonical.data, Rows):
        return canonical.data
    rows = ArrayRows.of(canonical.data, serial=not kernel.threadsafe)
    return rows.zip(weights=canonical.weights)


def data_of(canonical: Canonical) -> Any:
    """Return canonical data as one array."""
    return canonical.data.whole() if isinstance(canonical.data, Rows) else canonical.data


@with_parameters
class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """An estimator with a ``kernel`` parameter: a Kernel, a name, "precomputed" or a callable.

    `_PARAMETERS` maps the name of each parameter to its check, see :mod:`._core.parameters`.
    """

    _PARAMETERS: ClassVar[dict[str, Check]] = {"memory_budget": memory_size, "verbose": verbosity}
    #: Whether sparse graphs of similarities are accepted in place of a kernel.
    _accepts_graphs: ClassVar[bool] = False
    #: Whether `fit` can choose the kernel, with ``kernel="auto"``.
    _chooses_kernel: ClassVar[bool] = False

    _: KW_ONLY
    memory_budget: str | float = "2GiB"
    verbose: bool | int = False

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``kernel__name`` sets a parameter of the kernel.

        A name of a kernel is then replaced by the kernel object, and "auto" by a Gaussian kernel.
        """
        if self._automatic and any(name.startswith("kernel__") for name in params):
            params = {"kernel": "gaussian"} | params
        for name in params:
            if "__" not in name and name not in self._get_param_names():
                advice = hint(name, type(self))
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. {advice}")
        return super().set_params(**with_kernel_object(self, params))

    def _check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are valid."""
        for name, check in self._PARAMETERS.items():
            check(getattr(self, name), name, type(self).__name__)

    @property
    def _automatic(self: Any) -> bool:
        return self._chooses_kernel and isinstance(self.kernel, str) and self.kernel == "auto"

    def _kernel_object(self: Any) -> Kernel:
        if self._automatic:
            return Gaussian()
        owner = type(self).__name__
        kernel = as_kernel(self.kernel, owner)
        if isinstance(kernel, NeighborGraph) and not self._accepts_graphs:
            raise ValueError(
                f"kernel of {owner} must be a kernel; got a graph of neighbours, {kernel!r}. Only "
                "KernelSpectralClustering accepts it."
            )
        return kernel

    def _new_rows(self, X: Any, sample_weight: Any = None) -> Rows:
        """Return new data as rows, validated by the fitted kernel, with weights."""
        check_is_fitted(self)
        rows = as_rows(X, self.kernel_, self, reset=False)
        if sample_weight is None:
            return rows
        return rows.weighted(sample_weight, type(self).__name__)

    def __sklearn_is_fitted__(self) -> bool:
        # n_features_in_ is not used, because it is set even if the fit fails
        return hasattr(self, "kernel_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = self._kernel_object()
        except ValueError:  # fit reports the invalid kernel
            return tags
        tags.input_tags.pairwise = isinstance(kernel, Precomputed)
        tags.input_tags.sparse = kernel.accepts_sparse_for(self)
        return tags


def expand_to_all_rows(
    values: NDArray[Any], canonical: Canonical, values_of: Callable[[Indices], Any]
) -> NDArray[Any]:
    """Return a value for each training row, given the values of the canonical rows.

    ``values_of(indices)`` returns the values of rows of weight 0 that equal no canonical row.
    """
    expanded = values[canonical.inverse]
    unmatched = np.flatnonzero(canonical.inverse < 0)
    if len(unmatched):
        with rows_renumbered(unmatched):
            expanded[unmatched] = values_of(unmatched)
    return expanded


class FitMixin:
    """Method `fit` of estimators without targets.

    ``_fit(X, sample_weight)`` is called with valid parameters. It need not be exception-safe.
    """

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or rows in blocks
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
            :doc:`/streams` says which estimators also accept memory maps, zarr and dask arrays and
            batches, which are read in blocks. The rows of a dask array stay on its workers, and
            attributes with one entry per row are then dask arrays.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. A weight of 2 is equivalent to repeating the row, 0 to leaving it out. Rows of
            weight 0 are treated like new points. Weights may be a dask array if X is one.

        Returns
        -------
        self
            The fitted estimator.
        """
        estimator: Any = self
        with last_fit_kept(self):
            estimator._check_parameters()
            estimator._fit(X, sample_weight)
        return self


class AnchorAttributes:
    """Fitted attributes of estimators that may use anchors; None without anchors."""

    n_anchors_: int | None = None
    anchor_indices_: Indices | None = None
    _decoder_: Floats | None = None


class EmbeddingMixin(FitMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of estimators that return `n_components_` coordinates for each row."""

    n_components_: int
    embedding_: NDArray[Any]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def fit_transform(
        self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Fit the components and return the embedding of the training data."""
        self.fit(X, sample_weight=sample_weight)
        # the embedding of very many rows, read in blocks, is not stored
        return self.embedding_.copy() if hasattr(self, "embedding_") else self.transform(X)

    def _check_coordinates(self, X: Any, dtype: Any) -> Array:
        """Return validated coordinates for `inverse_transform`; raise if they are invalid."""
        check_is_fitted(self)
        owner = type(self).__name__
        coordinates = check_numbers(X, "X", owner, dtype=dtype, estimator=self)
        if coordinates.shape[1] != self.n_components_:
            raise ValueError(
                f"inverse_transform of {owner} needs {self.n_components_} coordinates per sample, "
                f"as transform returns them; got {coordinates.shape[1]}."
            )
        return coordinates

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def nystroem_or(exact: str) -> Check:
    """Return a check for "auto", the name `exact`, "nystroem" or a Nystroem object."""

    def check(value: Any, name: str, owner: str) -> None:
        if isinstance(value, str):
            check_choice(value, ("auto", exact, "nystroem"), name, owner)
        elif not isinstance(value, Nystroem):
            raise ValueError(
                f"{name} of {owner} must be 'auto', {exact!r}, 'nystroem' or a Nystroem object; "
                f"got {value!r}."
            )

    return check


#: Parameters of estimators with a solver and a Gram matrix that may be stored.
SOLVER_PARAMETERS = KernelEstimator._PARAMETERS | {
    "solver": check_solver,
    "max_iter": optional(integer()),
    "n_anchors": optional(integer()),
    "storage": choice("auto", "memory", "disk", "recompute"),
    "random_state": seed,
}
