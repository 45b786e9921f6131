"""The kernels of scikit-learn's ``pairwise_kernels``, with the same definitions and defaults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel, manhattan_distances

from .._core.checks import check_number, check_positive
from .._core.types import Array, Floats
from .base import (
    Kernel,
    Prepared,
    _contiguous,
    block_dtype,
    finite_squared_norms,
    inner_products,
    largest_entry,
    resolve_gamma,
    smallest_accurate,
    squared_norms,
    unit_rows,
)


class _DotProduct(Kernel):
    """A kernel that is a function of the inner product, k(x, y) = f(<x, y>)."""

    def prepare(self, X: Any) -> Prepared:
        """Check that no kernel value overflows."""
        bound = finite_squared_norms(X).max(keepdims=True)  # a bound on |<x, y>|
        if not all(np.all(np.isfinite(self._values(extreme))) for extreme in (bound, -bound)):
            raise ValueError(
                f"The values of X are so large that {type(self).__name__} overflows in {X.dtype}; "
                "rescale the data."
            )
        return super().prepare(X)

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block f(<a_i, b_j>)."""
        block = inner_products(a, b, out)
        self._apply(block)
        return block

    def diagonal(self, points: Prepared) -> Array:
        """Evaluate f(‖x‖²)."""
        values = squared_norms(points.coordinates)
        self._apply(values)
        return values

    def _apply(self, block: Array) -> None:
        """Apply f to inner products, in place."""

    def _values(self, products: Array) -> Array:
        """Return f of extreme inner products, to check for overflow."""
        values = products.copy()
        self._apply(values)
        return values


class Linear(_DotProduct):
    r"""Linear kernel.

    .. math:: k(x, y) = \langle x, y \rangle

    For unit vectors, feature vectors lie on the unit sphere of the input space.

    Examples
    --------
    >>> from orthodrome.kernels import Linear
    >>> Linear()([[1.0, 0.0], [1.0, 2.0]])
    array([[1., 1.],
           [1., 5.]])
    """

    has_coordinates = True

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        if 0 < largest_entry(X) < math.sqrt(smallest_accurate(X.dtype)):
            raise ValueError(
                f"The values of X are so small, {largest_entry(X):g} at most, that their "
                f"squares underflow in {X.dtype}; rescale the data."
            )


class Polynomial(_DotProduct):
    r"""Polynomial kernel, scikit-learn's ``polynomial`` or ``poly``.

    .. math:: k(x, y) = (\gamma \langle x, y \rangle + c_0)^{\text{degree}}

    Parameters
    ----------
    degree : float, default=3
        The kernel is positive definite if the degree is an integer and ``coef0`` is not negative.
    gamma : float, optional
        The factor; None means 1 / n_features.
    coef0 : float, default=1.0
        The constant.

    Examples
    --------
    >>> from orthodrome.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=0.0)([[1.0, 0.0], [1.0, 2.0]])
    array([[ 1.,  1.],
           [ 1., 25.]])
    """

    def __init__(self, degree: float = 3, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.gamma_ = resolve_gamma(self, X)
        degree = check_positive(self.degree, "degree", "Polynomial")
        check_number(self.coef0, "coef0", "Polynomial")
        self.positive_definite = degree == round(degree) and self.coef0 >= 0

    def _apply(self, block: Array) -> None:
        block *= self.gamma_
        block += self.coef0
        if self.degree != round(self.degree) and np.any(block < 0):
            raise ValueError(
                f"degree of Polynomial must be a whole number if gamma <x, y> + coef0 is negative, "
                f"as for these data; got {self.degree!r}."
            )
        with np.errstate(over="ignore"):
            block **= self.degree

    def _values(self, products: Array) -> Array:
        # with a fractional degree, evaluate raises for negative products
        if self.degree != round(self.degree):
            products = np.abs(products)
        return super()._values(products)


class Sigmoid(_DotProduct):
    r"""Sigmoid kernel; not positive definite.

    .. math:: k(x, y) = \tanh(\gamma \langle x, y \rangle + c_0)

    Parameters
    ----------
    gamma : float, optional
        The factor; None means 1 / n_features.
    coef0 : float, default=1.0
        The constant.

    Examples
    --------
    >>> from orthodrome.kernels import Sigmoid
    >>> Sigmoid(gamma=1.0, coef0=0.0)([[1.0], [2.0]]).round(3)
    array([[0.762, 0.964],
           [0.964, 0.999]])
    """

    positive_definite = False

    def __init__(self, gamma: float | None = None, coef0: float = 1.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.gamma_ = resolve_gamma(self, X)
        check_number(self.coef0, "coef0", "Sigmoid")

    def _apply(self, block: Array) -> None:
        block *= self.gamma_
        block += self.coef0
        np.tanh(block, out=block)


class Cosine(_DotProduct):
    r"""Cosine similarity, the normalised linear kernel.

    .. math:: k(x, y) = \frac{\langle x, y \rangle}{\|x\| \, \|y\|}

    A zero row has similarity 0 with every row, including itself, as in scikit-learn.

    Examples
    --------
    >>> from orthodrome.kernels import Cosine
    >>> Cosine()([[1.0, 0.0], [2.0, 2.0]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    unit_norm = True
    has_coordinates = True

    def prepare(self, X: Any) -> Prepared:
        """Divide each row by its length."""
        return Prepared(unit_rows(_contiguous(X)))

    def diagonal(self, points: Prepared) -> Array:
        """Return 1, and 0 for zero rows."""
        return np.round(squared_norms(points.coordinates))


class Laplacian(Kernel):
    r"""Laplacian kernel, on the city-block distance.

    .. math:: k(x, y) = \exp(-\gamma \|x - y\|_1)

    It is scikit-learn's ``laplacian``; the radial kernel exp(-d/σ) is :class:`Exponential`.

    Parameters
    ----------
    gamma : float, optional
        The rate; None means 1 / n_features.

    Examples
    --------
    >>> from orthodrome.kernels import Laplacian
    >>> Laplacian(gamma=1.0)([[0.0, 0.0], [1.0, 1.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    unit_norm = True

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.gamma_ = resolve_gamma(self, X)

    def prepare(self, X: Any) -> Prepared:
        """Convert sparse indices to 32 bits, which scikit-learn's distances need."""
        if scipy.sparse.issparse(X):
            if X.nnz > np.iinfo(np.int32).max:
                raise ValueError(
                    f"Laplacian supports at most 2³¹ - 1 stored sparse entries; got {X.nnz}."
                )
            X = scipy.sparse.csr_array(
                (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape
            )
        return super().prepare(X)

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block exp(-γ ‖a_i - b_j‖₁)."""
        block = manhattan_distances(a.coordinates, b.coordinates)
        block *= -self.gamma_
        return np.exp(block, out=block).astype(block_dtype(a, b), copy=False)


class AdditiveChi2(Kernel):
    r"""Additive chi-squared kernel; conditionally positive definite, zero on the diagonal.

    .. math:: k(x, y) = -\sum_i \frac{(x_i - y_i)^2}{x_i + y_i}

    for data without negative values (histograms).

    Examples
    --------
    >>> from orthodrome.kernels import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 0.0], [0.0, 1.0]])
    array([[-0., -2.],
           [-2., -0.]])
    """

    positive_definite = False
    accepts_sparse = False

    def validate(self, X: Any, *, estimator: Any = None, reset: bool = True) -> Any:
        """Validate X and check that no value is negative."""
        X = super().validate(X, estimator=estimator, reset=reset)
        if np.any(X < 0):
            row, column = (int(index[0]) for index in np.nonzero(X < 0))
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: the kernel is for "
                f"histograms, and row {row}, column {column} is {X[row, column]:g}."
            )
        return X

    def prepare(self, X: Any) -> Prepared:
        """Check that no square overflows."""
        finite_squared_norms(X)
        # scikit-learn's compiled loop does not accept read-only arrays
        return super().prepare(np.require(X, requirements=["C", "W"]))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        block = additive_chi2_kernel(a.coordinates, b.coordinates)
        return block.astype(block_dtype(a, b), copy=False)

    def diagonal(self, points: Prepared) -> Array:
        """Return the constant value at distance 0."""
        return np.full(len(points), float(self.unit_norm), dtype=points.dtype)


class Chi2(AdditiveChi2):
    r"""Exponential chi-squared kernel.

    .. math:: k(x, y) = \exp\left(-\gamma \sum_i \frac{(x_i - y_i)^2}{x_i + y_i}\right)

    for data without negative values (histograms).

    Parameters
    ----------
    gamma : float, default=1.0
        The rate.

    Examples
    --------
    >>> from orthodrome.kernels import Chi2
    >>> Chi2()([[1.0, 0.0], [0.0, 1.0]]).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    unit_norm = True
    positive_definite = True

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        check_positive(self.gamma, "gamma", "Chi2")

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        block = chi2_kernel(a.coordinates, b.coordinates, gamma=self.gamma)
        return block.astype(block_dtype(a, b), copy=False)
