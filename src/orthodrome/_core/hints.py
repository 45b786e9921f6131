"""Advice for users who pass a parameter of scikit-learn that an estimator here does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

_KERNEL = "Parameters of a kernel belong to the kernel object: use kernel="
_SIGMA = "Gaussian(sigma=...), with sigma = sqrt(1 / (2 * gamma)), or kernel=RBF(gamma=...)"
_THREADS = "Omit it; to limit the number of threads, limit those of BLAS with threadpoolctl"
_NO_TOL = "Omit it; the fit ends when no point changes its cluster, or after max_iter iterations"

# Each entry: names of unknown parameters, a parameter or method that an estimator must have for the
# advice to apply, and the advice.
_HINTS = (
    ("gamma sigma", "kernel", _KERNEL + _SIGMA),
    ("degree coef0 kernel_params", "kernel", _KERNEL + "Polynomial(degree=..., coef0=...)"),
    ("affinity", "kernel", "Use kernel=..., which accepts the same names"),
    ("n_neighbors", "laplacian", "Use kernel=NeighborGraph(n_neighbors=...)"),
    ("eigen_solver", "solver", "Use solver=..., for example 'auto', 'dense' or 'krylov'"),
    ("eigen_tol", "tol", "Use tol"),
    ("iterated_power", "solver", "Use solver='krylov', and set its accuracy with tol=..."),
    ("fit_inverse_transform", "inverse_transform", "Omit it; inverse_transform needs no option"),
    ("alpha", "inverse_alpha", "Use inverse_alpha=..., the penalty of inverse_transform"),
    ("remove_zero_eig", "n_components", "Omit it; components without variance are left out"),
    ("copy_X copy_x", "kernel", "Omit it; data are never changed"),
    ("n_jobs", "kernel", _THREADS),
    ("assign_labels", "laplacian", "Omit it; k-means assigns the labels"),
    ("n_components", "laplacian", "Omit it; the embedding has n_clusters columns"),
    ("tol", "init", _NO_TOL),
    ("algorithm", "init", "Omit it; there is one algorithm"),
    ("init weights_init means_init precisions_init", "init_params", "Use init_params"),
    ("warm_start", "n_init", "Omit it; every fit starts from the beginning"),
    ("verbose_interval", "verbose", "Use verbose=True, which shows a progress bar"),
    ("C", "alpha", "Use alpha=..., roughly the inverse of C, or alpha='loo'"),
    ("probability", "predict_proba", "Omit it; predict_proba needs no option"),
)


def hint(name: str, estimator: type) -> str:
    """Return advice for an unknown parameter, or else the list of the estimator's parameters."""
    parameters = [*inspect.signature(estimator).parameters]
    for names, needed, advice in _HINTS:
        if name in names.split() and (needed in parameters or hasattr(estimator, needed)):
            return f"{advice}."
    return f"Its parameters are: {', '.join(parameters)}."


def with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate ``__init__``, so that errors name the estimator and the parameter to use instead."""
    signature = inspect.signature(init)

    @wraps(init)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        try:
            init(self, *args, **params)
        except TypeError:  # checking the arguments first would take longer than the call
            try:
                signature.bind(self, *args, **params)
            except TypeError as error:
                unknown = [name for name in params if name not in signature.parameters]
                advice = f" {hint(unknown[0], type(self))}" if unknown else ""
                raise TypeError(f"{type(self).__name__}: {error}.{advice}") from None
            raise

    return checked
