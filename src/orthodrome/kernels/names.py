"""Names of kernels, and their conversion to kernel objects."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from . import matern, pairwise, radial, shapes
from .base import Kernel
from .neighbors import NeighborGraph
from .spd import LogEuclidean
from .wrappers import FromCallable, Precomputed

#: Names for ``kernel=``. Names of scikit-learn refer to the same kernels as there.
KERNELS: dict[str, type[Kernel]] = {
    "gaussian": radial.Gaussian,
    "exponential": matern.Exponential,
    "matern": matern.Matern,
    "rational_quadratic": radial.RationalQuadratic,
    "spherical": radial.Spherical,
    "circular": radial.Circular,
    "wave": radial.Wave,
    "power": radial.Power,
    "log": radial.Log,
    "veronese_whitney": shapes.VeroneseWhitney,
    "full_procrustes": shapes.FullProcrustes,
    "complex_gaussian": shapes.ComplexGaussian,
    "riemannian_shape": shapes.RiemannianShape,
    "hermitian_linear": shapes.HermitianLinear,
    "log_euclidean": LogEuclidean,
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


def as_fitted_kernel(kernel: Any, X: Any) -> Kernel:
    """Return a fitted kernel unchanged, else a clone fitted to X.

    Examples
    --------
    >>> from orthodrome.kernels import as_fitted_kernel
    >>> as_fitted_kernel("gaussian", [[0.0], [2.0]]).sigma_
    1.4142135623730951
    """
    resolved = as_kernel(kernel)
    return resolved if resolved.__sklearn_is_fitted__() else clone(resolved).fit(X)
