"""Advice on parameters of scikit-learn's estimators that have another name here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

_KERNEL = "Parameters of a kernel belong to the kernel object: use kernel="
_SIGMA = "Gaussian(sigma=...), with sigma = sqrt(1 / (2 * gamma)), or kernel=RBF(gamma=...)"
_THREADS = "Omit it; the number of threads is that of BLAS, which threadpoolctl limits"
_TO_THE_END = "Omit it; iterations end when no point changes its cluster, or after max_iter"

# (names, what the estimator must have: a parameter or a method, advice)
_HINTS = (
    ("gamma sigma", "kernel", _KERNEL + _SIGMA),
    ("degree coef0 kernel_params", "kernel", _KERNEL + "Polynomial(degree=..., coef0=...)"),
    ("affinity", "kernel", "Use kernel=..., which takes the same names"),
    ("n_neighbors", "laplacian", "Use kernel=NeighborGraph(n_neighbors=...)"),
    ("eigen_solver", "solver", "Use solver=..., for example 'auto', 'dense' or 'krylov'"),
    ("eigen_tol", "tol", "Use tol"),
    ("iterated_power", "solver", "Use solver='krylov', and tol=... for its accuracy"),
    ("fit_inverse_transform", "inverse_transform", "Omit it; inverse_transform needs no option"),
    ("alpha", "inverse_alpha", "Use inverse_alpha=..., the penalty of inverse_transform"),
    ("remove_zero_eig", "n_components", "Omit it; components without variance are left out"),
    ("copy_X copy_x", "kernel", "Omit it; data are never changed"),
    ("n_jobs", "kernel", _THREADS),
    ("assign_labels", "laplacian", "Omit it; k-means assigns the labels"),
    ("n_components", "laplacian", "Omit it; the embedding has n_clusters columns"),
    ("tol", "init", _TO_THE_END),
    ("algorithm", "init", "Omit it; there is one algorithm"),
    ("init weights_init means_init precisions_init", "init_params", "Use init_params"),
    ("warm_start", "n_init", "Omit it; every fit starts anew"),
    ("verbose_interval", "verbose", "Use verbose=True, which shows a progress bar"),
    ("C", "alpha", "Use alpha=..., roughly the inverse of C, or alpha='loo'"),
    ("probability", "predict_proba", "Omit it; predict_proba needs no option"),
)


def hint(name: str, estimator: type) -> str:
    """Return advice for a parameter that an estimator does not have, or its parameters."""
    parameters = [*inspect.signature(estimator).parameters]
    for names, needed, advice in _HINTS:
        if name in names.split() and (needed in parameters or hasattr(estimator, needed)):
            return f"{advice}."
    return f"Its parameters are: {', '.join(parameters)}."


def with_hints(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate ``__init__``: errors name the estimator, and parameters to use instead."""
    signature = inspect.signature(init)

    @wraps(init)
    def checked(self: Any, *args: Any, **params: Any) -> None:
        try:
            signature.bind(self, *args, **params)
        except TypeError as error:
            unknown = [name for name in params if name not in signature.parameters]
            advice = f" {hint(unknown[0], type(self))}" if unknown else ""
            raise TypeError(f"{type(self).__name__}: {error}.{advice}") from None
        init(self, *args, **params)

    return checked
