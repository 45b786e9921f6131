"""Kernels made from other kernels, from functions and from precomputed matrices."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._core.checks import RowError, check_graph, check_not_masked, check_symmetric
from .._core.types import Array, Data, Floats
from . import manifolds, pairwise, radial
from .base import Kernel, Prepared, block_dtype, largest_entry, smallest_accurate
from .neighbors import NeighborGraph


def with_kernel_object(holder: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Replace a kernel name by an object if `params` set parameters of the kernel (``kernel__…``).

    Return the changed `params`, in which ``kernel`` is the object with these parameters. Raise if
    such parameters are given and the kernel is neither an object nor a name.
    """
    prefix = "kernel__"
    nested = {name: value for name, value in params.items() if name.startswith(prefix)}
    kernel = params.get("kernel", holder.kernel)
    if not nested or isinstance(kernel, Kernel):
        return params
    if not isinstance(kernel, str):
        raise ValueError(
            f"{next(iter(nested))} cannot be set while kernel={kernel!r}: only a kernel object or "
            "the name of a kernel has parameters."
        )
    found = as_kernel(kernel, type(holder).__name__)
    found.set_params(**{name.removeprefix(prefix): value for name, value in nested.items()})
    others = {name: value for name, value in params.items() if name not in nested}
    return others | {"kernel": found}


def _inner_attribute(name: str) -> Any:
    """Return a property that reads this attribute of the inner kernel."""
    return property(lambda self: getattr(inner_kernel(self), name))


class KernelHolder(Kernel):
    """Base class of kernels with an inner kernel as a parameter.

    A subclass must set ``kernel_``, the fitted inner kernel.
    """

    kernel: Any
    kernel_: Kernel

    threadsafe = _inner_attribute("threadsafe")
    hermitian = _inner_attribute("hermitian")

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``kernel__name`` sets a parameter of the inner kernel."""
        return super().set_params(**with_kernel_object(self, params))

    def rescaled(self, sigma: float) -> Any:
        """Return a fitted copy with another scale of the inner kernel."""
        copied: Any = copy.copy(self)
        copied.kernel_ = self.kernel_.rescaled(sigma)
        copied.kernel = copied.kernel_.resolved()
        return copied

    def _unresolved(self) -> str:
        return inner_kernel(self, fitted=False)._unresolved()


class Wrapper(KernelHolder):
    """A kernel on the same data as its inner kernel."""

    accepts_sparse = _inner_attribute("accepts_sparse")
    takes_vectors = _inner_attribute("takes_vectors")

    def _count_features(self, X: Any) -> int:
        return int(self.kernel_.n_features_in_)

    def as_vectors(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the vectors of the inner kernel, and its inverse map."""
        return inner_kernel(self).as_vectors(X)

    def validate(self, X: Any, *, estimator: Any = None, reset: bool = True) -> Any:
        """Validate X as the inner kernel does."""
        return inner_kernel(self, fitted=not reset).validate(
            X, estimator=self if estimator is None else estimator, reset=reset
        )


class Normalized(Wrapper):
    r"""A kernel normalised to unit length of the feature vectors.

    .. math:: \bar k(x, y) = \frac{k(x, y)}{\sqrt{k(x, x)\, k(y, y)}}

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel to normalise; its parameters are set as ``kernel__degree`` and so on.

    Attributes
    ----------
    kernel_ : Kernel
        The fitted inner kernel.

    Examples
    --------
    >>> from orthodrome.kernels import Normalized, Polynomial
    >>> Normalized(Polynomial(degree=2, gamma=1.0, coef0=1.0))([[0.0], [1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    unit_norm = True

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self.kernel_ = fresh_inner(self).fit_validated(X, sample_weight)
        self.positive_definite = self.kernel_.positive_definite

    def prepare(self, X: Any) -> Prepared:
        """Prepare for the inner kernel and compute inverse lengths; raise if a length is 0."""
        points = self.kernel_.prepare(X)
        diagonal = self.kernel_.diagonal(points)
        if not np.all(diagonal >= smallest_accurate(diagonal.dtype)):
            row = int(np.argmin(diagonal))
            advice = "rescale the data" if diagonal[row] > 0 else "remove the row"
            raise RowError(
                f"Normalized cannot normalise row {{0}}: k(x, x) = {diagonal[row]:g} there. Use a "
                f"kernel with a positive diagonal, or {advice}.",
                row,
            )
        return Prepared(points, 1 / np.sqrt(diagonal))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        block = self.kernel_.evaluate(a.coordinates, b.coordinates, out)
        block *= np.multiply.outer(a.per_point, b.per_point)  # k(x, y) = k(y, x) to the last bit
        return block


class Embedded(KernelHolder):
    """A kernel of embedded data, k(x, y) = kernel(function(x), function(y)).

    Parameters
    ----------
    function : callable
        ``function(X)`` returns an array of shape (n_samples, n_coordinates); X is an array of
        numbers of two or more dimensions, samples first. To pickle the kernel, the function must
        be importable.
    kernel : Kernel, str or callable, default="gaussian"
        The kernel of the embedded points.

    Attributes
    ----------
    kernel_ : Kernel
        The fitted inner kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.kernels import Embedded, Linear
    >>> Embedded(np.abs, Linear())([[-1.0], [2.0]])
    array([[1., 2.],
           [2., 4.]])
    """

    accepts_sparse = False
    takes_vectors = False
    _any_dimension = True

    def __init__(self, function: Callable[[Any], ArrayLike], kernel: Any = "gaussian") -> None:
        self.function = function
        self.kernel = kernel

    def _embed(self, X: Any, inner: Kernel, reset: bool) -> Any:
        if not callable(self.function):
            raise ValueError(f"function of Embedded must be callable; got {self.function!r}.")
        # a copy: the function may write to its argument
        embedded = inner.validate(self.function(np.array(X)), reset=reset)
        if embedded.shape[0] != X.shape[0]:
            raise ValueError(
                f"function of Embedded returned {embedded.shape[0]} rows for {X.shape[0]} samples; "
                "it must return one row per sample."
            )
        return embedded

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        inner = fresh_inner(self)
        self.kernel_ = inner.fit_validated(self._embed(X, inner, reset=True), sample_weight)
        self.unit_norm = self.kernel_.unit_norm
        self.positive_definite = self.kernel_.positive_definite

    def prepare(self, X: Any) -> Prepared:
        """Embed, then prepare for the inner kernel."""
        return self.kernel_.prepare(self._embed(X, self.kernel_, reset=False))

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        return self.kernel_.evaluate(a, b, out)

    def diagonal(self, points: Prepared) -> Array:
        """Evaluate the diagonal of the inner kernel."""
        return self.kernel_.diagonal(points)


class FromCallable(Kernel):
    """A kernel given as a function of two arrays, ``function(X, Y) -> block``.

    The function must be symmetric, k(x, y) = k(y, x), and is called from one thread at a time.
    ``positive_definite`` is False, since it is not known.

    Parameters
    ----------
    function : callable
        A function of arrays of shapes (n, d) and (m, d) that returns an array of shape (n, m).

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.kernels import FromCallable
    >>> FromCallable(lambda X, Y: np.minimum(X, Y.T))([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    positive_definite = False
    threadsafe = False

    def __init__(self, function: Callable[[Any, Any], ArrayLike]) -> None:
        self.function = function

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block with one call of the function."""
        if not callable(self.function):
            raise ValueError(
                f"function of FromCallable must be callable(X, Y); got {self.function!r}."
            )
        # copies: the function may write to its arguments
        block: Any = self.function(a.coordinates.copy(), b.coordinates.copy())
        check_not_masked(block, "The block", "a callable kernel")
        block = block.toarray() if scipy.sparse.issparse(block) else np.asarray(block)
        if block.shape != (len(a), len(b)):
            raise ValueError(
                f"A callable kernel must return the whole block, shape {(len(a), len(b))} for "
                f"inputs of {len(a)} and {len(b)} rows; got {block.shape}. A function of two "
                "single rows must be vectorised first."
            )
        if block.dtype.kind not in "fiub" or not np.all(np.isfinite(block)):
            raise ValueError("A callable kernel returned values that are not finite real numbers.")
        # a copy: wrappers change blocks in place
        return np.array(block, dtype=block_dtype(a, b))

    def diagonal(self, points: Prepared) -> Array:
        """Evaluate the diagonal from small diagonal blocks."""
        step = 16
        groups = [points[start : start + step] for start in range(0, len(points), step)]
        blocks = [self.evaluate(group, group) for group in groups]
        for block in blocks:
            check_symmetric(block, "A block of a callable kernel on the same points")
        return np.concatenate([np.diagonal(block) for block in blocks])


class Precomputed(Kernel):
    """The kernel of a precomputed Gram matrix, ``kernel="precomputed"``.

    ``fit`` expects the (n, n) matrix of the training set. Later calls expect the (m, n) matrix
    between new points and the training set. In ``KernelSpectralClustering`` they may be
    sparse graphs.
    """

    accepts_sparse = False
    positive_definite = False

    def validate(self, X: Any, *, estimator: Any = None, reset: bool = True) -> Any:
        """Check that X is finite and, for the training set, square and symmetric."""
        X = super().validate(X, estimator=estimator, reset=reset)
        if scipy.sparse.issparse(X):
            check_graph(X, "A sparse precomputed graph", symmetric=reset)
        elif reset:
            check_symmetric(X, "A precomputed Gram matrix")
        if reset and 0 < largest_entry(X) < smallest_accurate(X.dtype):
            raise ValueError(
                f"The values of a precomputed Gram matrix are so small, {largest_entry(X):g} "
                f"at most, that they underflow in {X.dtype}; rescale it."
            )
        return X

    def accepts_sparse_for(self, estimator: Any) -> bool:
        """Return whether the estimator takes sparse graphs."""
        return getattr(estimator, "_accepts_graphs", False)

    def __call__(self, X: Data, Y: Data | None = None) -> Array:
        """Return X, which already contains the kernel values."""
        if Y is not None:
            raise ValueError(
                "A precomputed kernel takes one matrix of kernel values, not two sets; pass only X."
            )
        return self.validate(X, reset=False) if hasattr(self, "fitted_") else self.validate(X)

    def diag(self, X: Data) -> Array:
        """Return the diagonal of a square matrix of kernel values."""
        matrix = np.asarray(X)
        check_symmetric(matrix, "A precomputed Gram matrix")
        return np.diagonal(matrix).copy()


def inner_kernel(wrapper: Any, *, fitted: bool = True) -> Kernel:
    """Return the inner kernel as an object; with `fitted`, the fitted one if it exists."""
    inner = (fitted and getattr(wrapper, "kernel_", None)) or as_kernel(
        wrapper.kernel, type(wrapper).__name__
    )
    if isinstance(inner, Precomputed):
        raise ValueError(
            f"{type(wrapper).__name__} cannot wrap 'precomputed', which has no points; change the "
            "matrix instead, for example K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))."
        )
    return inner


def fresh_inner(wrapper: Any) -> Kernel:
    """Return an unfitted copy of the inner kernel."""
    return clone(inner_kernel(wrapper, fitted=False))


#: Names for ``kernel=``. Names of scikit-learn refer to the same kernels as there.
KERNELS: dict[str, type[Kernel]] = {
    "gaussian": radial.Gaussian,
    "exponential": radial.Exponential,
    "matern": radial.Matern,
    "rational_quadratic": radial.RationalQuadratic,
    "spherical": radial.Spherical,
    "circular": radial.Circular,
    "wave": radial.Wave,
    "power": radial.Power,
    "log": radial.Log,
    "veronese_whitney": manifolds.VeroneseWhitney,
    "full_procrustes": manifolds.FullProcrustes,
    "complex_gaussian": manifolds.ComplexGaussian,
    "riemannian_shape": manifolds.RiemannianShape,
    "hermitian_linear": manifolds.HermitianLinear,
    "log_euclidean": manifolds.LogEuclidean,
    "rbf": radial.RBF,
    "linear": pairwise.Linear,
    "polynomial": pairwise.Polynomial,
    "poly": pairwise.Polynomial,
    "sigmoid": pairwise.Sigmoid,
    "cosine": pairwise.Cosine,
    "laplacian": pairwise.Laplacian,
    "chi2": pairwise.Chi2,
    "additive_chi2": pairwise.AdditiveChi2,
    "nearest_neighbors": NeighborGraph,
    "precomputed": Precomputed,
}


def as_kernel(kernel: Any, owner: str | None = None) -> Kernel:
    """Return a kernel object for a Kernel, a name, ``"precomputed"`` or a callable.

    Error messages name `owner`, the estimator with this parameter, if it is given.

    Examples
    --------
    >>> from orthodrome.kernels import as_kernel
    >>> as_kernel("gaussian")
    Gaussian()
    """
    if isinstance(kernel, Kernel):
        return kernel
    suffix = "" if owner is None else f" of {owner}"
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(
                f"Unknown kernel {kernel!r}{suffix}. Known names: {', '.join(sorted(KERNELS))}."
            )
        return KERNELS[kernel]()
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(f"kernel={kernel.__name__}{suffix} is a class; write {kernel.__name__}().")
    if callable(kernel):
        return FromCallable(kernel)
    raise ValueError(
        f"kernel{suffix} must be a Kernel object, a name, 'precomputed' or a callable(X, Y); "
        f"got {kernel!r}."
    )


def as_fitted_kernel(kernel: Any, X: Any, *, sample_weight: ArrayLike | None = None) -> Kernel:
    """Return a fitted kernel unchanged, else a clone fitted to X.

    Examples
    --------
    >>> from orthodrome.kernels import as_fitted_kernel
    >>> as_fitted_kernel("gaussian", [[0.0], [2.0]]).sigma_
    1.4142135623730951
    """
    resolved = as_kernel(kernel)
    if resolved.__sklearn_is_fitted__():
        return resolved
    return clone(resolved).fit(X, sample_weight=sample_weight)
