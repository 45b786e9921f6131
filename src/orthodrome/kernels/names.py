"""Names of kernels, and the one place that turns what a user writes into a kernel object."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from .base import Kernel
from .pairwise import AdditiveChi2, Chi2, Cosine, Laplacian, Linear, Polynomial, Sigmoid
from .radial import (
    RBF,
    Circular,
    Exponential,
    Gaussian,
    Log,
    Matern,
    Power,
    RationalQuadratic,
    Spherical,
    Wave,
)
from .shapes import (
    ComplexGaussian,
    FullProcrustes,
    HermitianLinear,
    RiemannianShape,
    VeroneseWhitney,
)
from .spd import LogEuclidean
from .wrappers import FromCallable, Precomputed

__all__ = ["KERNELS", "as_fitted_kernel", "as_kernel"]

#: Every name that ``kernel=`` takes. scikit-learn's names mean scikit-learn's kernels.
KERNELS: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "exponential": Exponential,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "spherical": Spherical,
    "circular": Circular,
    "wave": Wave,
    "power": Power,
    "log": Log,
    "veronese_whitney": VeroneseWhitney,
    "full_procrustes": FullProcrustes,
    "complex_gaussian": ComplexGaussian,
    "riemannian_shape": RiemannianShape,
    "hermitian_linear": HermitianLinear,
    "log_euclidean": LogEuclidean,
    "rbf": RBF,
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "sigmoid": Sigmoid,
    "cosine": Cosine,
    "laplacian": Laplacian,
    "chi2": Chi2,
    "additive_chi2": AdditiveChi2,
    "precomputed": Precomputed,
}


def as_kernel(kernel: Any, owner: str | None = None) -> Kernel:
    """Return a kernel object for a Kernel, a name, ``"precomputed"`` or a callable.

    An error names the `owner` of the parameter, if there is one.

    Examples
    --------
    >>> from orthodrome.kernels import as_kernel
    >>> as_kernel("gaussian")
    Gaussian()
    """
    if isinstance(kernel, Kernel):
        return kernel
    whose = "" if owner is None else f" of {owner}"
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(
                f"Unknown kernel {kernel!r}{whose}. Known names: {', '.join(sorted(KERNELS))}."
            )
        return KERNELS[kernel]()
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(f"kernel={kernel.__name__}{whose} is a class; write {kernel.__name__}().")
    if callable(kernel):
        return FromCallable(kernel)
    raise ValueError(
        f"kernel{whose} must be a Kernel object, a name, 'precomputed' or a callable(X, Y); "
        f"got {kernel!r}."
    )


def as_fitted_kernel(kernel: Any, X: Any) -> Kernel:
    """Return a kernel object that is fitted: as it is, or a clone fitted to X.

    Examples
    --------
    >>> from orthodrome.kernels import as_fitted_kernel
    >>> as_fitted_kernel("gaussian", [[0.0], [2.0]]).sigma_
    1.4142135623730951
    """
    resolved = as_kernel(kernel)
    return resolved if resolved.__sklearn_is_fitted__() else clone(resolved).fit(X)
