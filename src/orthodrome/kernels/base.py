"""The base class of kernels: parameter objects that evaluate blocks.

The public methods, ``kernel(X, Y)`` and ``kernel.diag(X)``, take data. The internal ones are for
Gram operators, which evaluate many blocks of the same data. ``prepare(X)`` computes once what
depends on single points (norms, embeddings). ``evaluate(a, b)`` computes a block from two sets of
prepared points, or slices of them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import validate_data

from .._core.checks import RowError, check_positive, check_sample_weight, numbers_expected
from .._core.kinds import as_numpy, check_in_memory
from .._core.threads import VALUE_WORK, run_in_threads
from .._core.types import Array, Data, Floats
from .bandwidth import Moments, numeric_scale

# Kernel values of fewer pairs of points are computed with NumPy. Compiled loops are faster, but the
# first one costs 0.4 s for numba, and up to 1 s more if it is not in the cache.
COMPILED_PAIRS = 2**24


def squared_norms(X: Any) -> Array:
    """Return the squared length of each row of an array or sparse array, in its dtype."""
    return row_norms(X, squared=True)


def finite_squared_norms(X: Any) -> Array:
    """Return the squared length of each row, or raise if it overflows."""
    with np.errstate(over="ignore"):
        norms = squared_norms(X)
    if not np.all(np.isfinite(norms)):
        raise RowError(
            f"Row {{0}} has NaN or values so large that their squares overflow in {X.dtype}; "
            "remove or rescale it.",
            int(np.argmin(np.isfinite(norms))),
        )
    return norms


def unit_rows(X: Any) -> Any:
    """Return the rows of an array or sparse array divided by their lengths; zero rows stay zero.

    Each row is first divided by a power of two near its largest entry, which is exact, so that no
    square overflows or underflows. (scikit-learn's ``normalize`` regards rows
    shorter than 1e-15 as zero.)
    """
    sparse = scipy.sparse.issparse(X)
    largest = abs(X).max(axis=1)
    powers = -np.frexp(np.ravel(largest.toarray() if sparse else largest))[1]
    if not sparse:
        return normalize(np.ldexp(X, powers[:, None]), copy=False)
    scaled = X.copy()
    scaled.data = np.ldexp(X.data, np.repeat(powers, np.diff(X.indptr)))
    return normalize(scaled, copy=False)


def largest_entry(X: Any) -> float:
    """Return the largest absolute value in an array or sparse array."""
    return max(float(X.max()), -float(X.min()))


def smallest_accurate(dtype: Any) -> float:
    """Return the smallest kernel value with full precision and a finite reciprocal."""
    return 1e4 * float(np.finfo(dtype).tiny)


def inner_products(a: Prepared, b: Prepared, out: Array | None = None) -> Array:
    """Return inner products of the rows of two prepared sets."""
    if scipy.sparse.issparse(a.coordinates) or scipy.sparse.issparse(b.coordinates):
        products = a.coordinates @ b.coordinates.T
        return products.toarray() if scipy.sparse.issparse(products) else np.asarray(products)
    return np.matmul(a.coordinates, b.coordinates.T, out=out)


@dataclass(frozen=True)
class Prepared:
    """Coordinates and quantities computed from each point; sliced by rows like an array."""

    coordinates: Any  # ndarray, sparse array, or another Prepared for wrapped kernels
    per_point: Any = None  # ndarray of squared norms, inverse lengths, …
    given: Any = None  # the points before translation to the kernel's origin
    n_all: int = 0  # the number of points of which these are a part, if there are more

    def __len__(self) -> int:
        if isinstance(self.coordinates, Prepared):
            return len(self.coordinates)
        return int(self.coordinates.shape[0])

    def __getitem__(self, rows: Any) -> Prepared:
        per_point = None if self.per_point is None else self.per_point[rows]
        given = None if self.given is None else self.given[rows]
        return type(self)(self.coordinates[rows], per_point, given, max(self.n_all, len(self)))

    def among(self, n_all: int) -> Self:
        """Return the same points as a part of `n_all` points."""
        inner = self.coordinates
        inner = inner.among(n_all) if isinstance(inner, Prepared) else inner
        return replace(self, coordinates=inner, n_all=n_all)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the coordinates, which kernel blocks share."""
        return np.dtype(self.coordinates.dtype)


def loops_for(a: Prepared, b: Prepared) -> Any:
    """Return the module of compiled loops if there are many pairs of points, otherwise None."""
    many = max(len(a), a.n_all) * max(len(b), b.n_all) >= COMPILED_PAIRS
    return import_module("._loops", __package__) if many else None


TILE = 512  # rows and columns of a tile (2 MiB in float64); 384 to 1024 are about as fast


class Kernel(BaseEstimator):
    """Base class of all kernels: a scikit-learn parameter object, callable on data.

    A subclass implements ``evaluate(a, b, out)`` and ``diagonal(points)`` for prepared points. It
    overrides ``_resolve(X, sample_weight)`` if parameters depend on the data, ``prepare(X)`` if
    points need more than their coordinates, and ``validate`` if X is not a 2-D array of numbers.

    Attributes
    ----------
    unit_norm : bool
        Whether k(x, x) = 1 for every x, so that the feature vectors lie on the unit sphere.
    positive_definite : bool
        Whether every Gram matrix is positive semidefinite. If this depends on the dimension of the
        data, it is False until ``fit`` sets it.
    accepts_sparse : bool
        Whether SciPy sparse matrices and arrays are accepted.
    threadsafe : bool
        Whether blocks may be evaluated in several threads at once.
    takes_vectors : bool
        Whether each sample is a vector. If so, a list of 2-D arrays is read as batches of rows. If
        not, each of the arrays is one sample.
    has_coordinates : bool
        Whether the values k(x, e_j), for the standard basis vectors e_j, form a feature vector of
        x: their inner products then equal k(x, y).
    hermitian : bool
        Whether values are complex, with k(y, x) the conjugate of k(x, y). Few methods support this.
    """

    unit_norm: bool = False
    positive_definite: bool = True
    accepts_sparse: bool = True
    threadsafe: bool = True
    takes_vectors: bool = True
    hermitian: bool = False
    has_coordinates: bool = False
    _any_dimension: bool = False  # whether X may have more than two dimensions

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # each fit clones the kernel; reading the signature takes most of that time
        return list(super()._get_param_names())

    # ------------------------------------------------------------------ public interface

    def fit(self, X: Data, y: None = None, *, sample_weight: ArrayLike | None = None) -> Kernel:
        """Resolve the parameters that depend on the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; some kernels accept arrays of other shapes.
        y : None
            Must be None.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        Kernel
            The kernel itself.
        """
        if y is not None:
            raise TypeError(
                f"{type(self).__name__}.fit takes no y; pass weights as sample_weight=weights."
            )
        X = self.validate(X)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__)
        return self.fit_validated(X, weights)

    def fit_validated(self, X: Any, sample_weight: Floats | None = None) -> Kernel:
        """Resolve the parameters from data that ``validate`` has already returned."""
        self._resolve(X, sample_weight)
        self.n_features_in_ = self._count_features(X)
        self.fitted_ = True
        return self

    def _count_features(self, X: Any) -> int:
        return int(X.shape[1])  # as in scikit-learn, also for more than two dimensions

    def fit_sampled(
        self,
        sample: Any,
        sample_weight: Floats | None,
        moments: Callable[[Floats], Moments],
    ) -> Kernel:
        """Resolve the parameters from a sample of the rows and moments of all rows.

        Parameters
        ----------
        sample : validated data
            A representative sample of the rows.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights of the sample.
        moments : callable
            ``moments(center)`` computes the moments of all rows in one pass. It is most accurate
            if the center is near their mean. Most kernels use only the sample.
        """
        return self.fit_validated(sample, sample_weight)

    def __call__(self, X: Data, Y: Data | None = None) -> Array:
        """Evaluate the kernel between the rows of X and the rows of Y (default: X).

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y)
            Kernel values, float32 if all data are float32, else float64.
        """
        kernel = self._ready(X)
        a = kernel.prepare(kernel.validate(X, reset=False))
        if Y is None:
            return symmetric_block(kernel, a)
        b = kernel.prepare(kernel.validate(Y, reset=False))
        return rectangular_block(kernel, a, b)

    def diag(self, X: Data) -> Array:
        """Evaluate k(x, x) for each row of X; shape (n_samples,)."""
        kernel = self._ready(X)
        return kernel.diagonal(kernel.prepare(kernel.validate(X, reset=False)))

    def set_params(self, **params: Any) -> Kernel:
        """Set parameters and discard the fitted attributes."""
        super().set_params(**params)
        if params:
            flags = ("unit_norm", "positive_definite")
            for name in [name for name in vars(self) if name.endswith("_") or name in flags]:
                delattr(self, name)
        return self

    def resolved(self) -> Kernel:
        """Return an unfitted copy with rules replaced by the fitted values.

        ``clone`` keeps these values.
        """
        params = {}
        for name, given in self.get_params(deep=False).items():
            value = getattr(self, f"{name}_", given)
            params[name] = value.resolved() if isinstance(value, Kernel) else value
        return type(self)(**params)

    def rescaled(self, sigma: float) -> Kernel:
        """Return a fitted copy with another scale.

        It equals a kernel with this ``sigma`` that is fitted to the same data.

        Examples
        --------
        >>> from orthodrome.kernels import Gaussian
        >>> Gaussian().fit([[0.0], [2.0]]).rescaled(3.0).sigma_
        3.0
        """
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"{type(self).__name__} is not fitted: call fit(X) first.")
        copied = copy.copy(self)
        copied.sigma = sigma
        copied._rescale()
        return copied

    # ------------------------------------------------------------------ internal interface

    def validate(self, X: Any, *, estimator: Any = None, reset: bool = True) -> Any:
        """Validate X and return it in the form that ``prepare`` expects.

        With an `estimator`, its name appears in error messages, and its ``n_features_in_`` and
        ``feature_names_in_`` are set or compared.
        """
        owner = self if estimator is None else estimator
        check_in_memory(X, owner)
        X = as_numpy(X, "X", type(owner).__name__)
        with numbers_expected(X, "X", type(owner).__name__):
            X = validate_data(
                owner,
                X,
                reset=reset,
                accept_sparse="csr" if self.accepts_sparse_for(estimator) else False,
                allow_nd=self._any_dimension,
                dtype=[np.float64, np.float32],
            )
        if scipy.sparse.issparse(X):
            try:
                X.check_format(full_check=True)
            except ValueError as error:
                name = type(owner).__name__
                raise ValueError(f"X of {name} is a damaged sparse array: {error}.") from None
        return X

    def accepts_sparse_for(self, estimator: Any) -> bool:
        """Return whether X may be sparse in this estimator."""
        return self.accepts_sparse

    def prepare(self, X: Any) -> Prepared:
        """Compute quantities of single points; the result can be sliced like an array."""
        return Prepared(coordinates=_contiguous(X))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block k(a_i, b_j); `out` is an optional buffer."""
        raise NotImplementedError

    def diagonal(self, points: Prepared) -> Array:
        """Evaluate k(x, x) for prepared points; by default 1, for kernels of unit norm."""
        if not self.unit_norm:
            raise NotImplementedError
        return np.ones(len(points), dtype=np.finfo(points.dtype).dtype)  # real

    def as_vectors(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return validated data as vectors that can be averaged, and the inverse map."""
        shape = X.shape[1:]
        return X.reshape(len(X), -1), lambda vectors: vectors.reshape(-1, *shape)

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        """Set the attributes that depend on the data, if any."""

    def _rescale(self) -> None:
        """Set the attributes that depend on ``sigma``, which is now a number."""
        self.sigma_ = numeric_scale(self)

    def _ready(self, X: Any) -> Kernel:
        """Return a fitted kernel: this one, or a fitted copy if no parameter is a rule."""
        if getattr(self, "fitted_", False):
            return self
        needed = self._unresolved()
        if needed:
            raise NotFittedError(
                f"{type(self).__name__}({needed}) is computed from the data: call fit(X) "
                "first, or pass a number."
            )
        kernel = self.__class__(**self.get_params(deep=False))
        return kernel.fit(X)

    def _unresolved(self) -> str:
        """Return the parameter that ``fit`` computes from data, as text, or ''."""
        sigma = getattr(self, "sigma", None)
        return f"sigma={sigma!r}" if isinstance(sigma, str) else ""

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "fitted_", False)


class ArrayKernel(Kernel):
    """Base class of kernels on arrays, such as landmarks or matrices.

    A subclass implements ``_as_arrays(X)``, which validates X and returns an array, samples first.
    """

    accepts_sparse = False
    takes_vectors = False

    def validate(self, X: Any, *, estimator: Any = None, reset: bool = True) -> Any:
        """Validate arrays, and the column names of a data frame."""
        owner = self if estimator is None else estimator
        check_in_memory(X, owner)
        X = as_numpy(X, "X", type(owner).__name__)
        arrays = self._as_arrays(X)
        size = math.prod(arrays.shape[1:])
        known = getattr(owner, "n_features_in_", size)
        if not reset and known != size:
            raise ValueError(
                f"X has samples of shape {arrays.shape[1:]}, {size} numbers, but "
                f"{type(owner).__name__} was fitted to samples of {known} numbers."
            )
        has_names = hasattr(X, "columns") and len(X.columns) == size
        validate_data(owner, X if has_names else arrays.reshape(len(arrays), -1), reset=reset)
        return arrays

    def _as_arrays(self, X: Any) -> Array:
        raise NotImplementedError

    def _count_features(self, X: Any) -> int:
        return math.prod(X.shape[1:])


def resolve_gamma(kernel: Any, X: Any) -> float:
    """Return ``kernel.gamma`` as a number; None means 1 / n_features."""
    if kernel.gamma is None:
        return 1.0 / X.shape[1]
    return check_positive(kernel.gamma, "gamma", type(kernel).__name__)


def _contiguous(X: Any) -> Any:
    return X.tocsr() if scipy.sparse.issparse(X) else np.ascontiguousarray(X)


def block_dtype(a: Prepared, b: Prepared) -> np.dtype[Any]:
    """Return float32 if both sides are float32, else float64."""
    return np.result_type(a.dtype, b.dtype)


def symmetric_block(kernel: Kernel, a: Prepared) -> Array:
    """Evaluate k(X, X) from the tiles on and above the diagonal, in threads."""
    return rectangular_block(kernel, a, a, symmetric=True)


def rectangular_block(
    kernel: Kernel, a: Prepared, b: Prepared, *, symmetric: bool = False
) -> Array:
    """Evaluate a block tile by tile, in threads."""
    block = np.empty((len(a), len(b)), dtype=block_dtype(a, b))
    starts = [(i, j) for i in range(0, len(a), TILE) for j in range(0, len(b), TILE)]
    tiles = [(slice(i, i + TILE), slice(j, j + TILE)) for i, j in starts if j >= i or not symmetric]
    in_place = len(b) <= TILE and not symmetric  # tiles are contiguous parts of the block

    def evaluate_tiles(worker: int, n_workers: int) -> None:
        buffer = np.empty(0 if in_place else TILE * TILE, dtype=block.dtype)
        for rows, columns in tiles[worker::n_workers]:
            left, right = a[rows], b[columns]
            if in_place:
                out = block[rows]
            else:
                out = buffer[: len(left) * len(right)].reshape(len(left), len(right))
            tile = kernel.evaluate(left, right, out)
            if in_place and tile is out:
                continue
            if symmetric and rows == columns:  # the two halves may be rounded differently
                tile = np.where(np.tri(len(tile), k=-1, dtype=bool), tile.T.conj(), tile)
            elif symmetric:
                block[columns, rows] = tile.T.conj()
            block[rows, columns] = tile

    work = VALUE_WORK * len(a) * len(b)
    run_in_threads(evaluate_tiles, len(tiles), serial=not kernel.threadsafe, work=work)
    return block
