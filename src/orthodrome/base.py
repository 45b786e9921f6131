"""Base class, parameter checks and context managers of all estimators with a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from ._core.checks import RowError, check_choice
from ._core.parameters import Check, choice, integer, memory_size, optional, seed, verbosity
from ._core.progress import CallbackSupportMixin
from .eigen import Nystroem
from .eigen.leading import check_solver
from .gram import DaskSource
from .gram.dask_blocks import is_dask_array
from .gram.moments import fit_kernel_to
from .gram.nystroem import OutOfSpanError
from .kernels import Kernel, KernelHolder, Precomputed, as_kernel

__all__ = [
    "SAMPLE",
    "SOLVER_PARAMETERS",
    "KernelEstimator",
    "last_fit_kept",
    "nystroem_or",
    "rows_named_in",
]

# Rows that stand for all of them: for parameters of kernels that need more than moments, for the
# place that features are measured from, and for the start of the search for their mean.
SAMPLE = 8192


@contextmanager
def last_fit_kept(estimator: Any) -> Iterator[None]:
    """Leave the fitted attributes of an estimator as they were if what happens inside fails."""

    def fitted() -> dict[str, Any]:
        return {name: value for name, value in list(vars(estimator).items()) if name.endswith("_")}

    before = fitted()
    try:
        yield
    except BaseException:
        for name in fitted():
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


@contextmanager
def rows_named_in(
    repeat: Callable[[], Any], index: NDArray[np.intp] | None = None
) -> Iterator[None]:
    """Let an error about a row name the caller's, not that of the sorted and merged ones.

    `repeat` makes the same check on the caller's rows; `index` says which of them those are.
    """
    try:
        yield
    except OutOfSpanError as error:
        raise OutOfSpanError(error.row if index is None else int(index[error.row])) from None
    except RowError as error:
        if index is not None:
            raise error.renumbered(index) from None
        repeat()
        raise
    except ValueError:
        repeat()
        raise


class KernelEstimator(KernelHolder, CallbackSupportMixin, BaseEstimator):
    """An estimator with a ``kernel`` parameter: a Kernel, a name, "precomputed" or a callable.

    `_PARAMETERS` gives the check of each parameter, see :mod:`._core.parameters`.
    """

    _PARAMETERS: ClassVar[dict[str, Check]] = {"memory_budget": memory_size, "verbose": verbosity}

    memory_budget: str | float
    verbose: bool | int

    def _check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are valid."""
        for name, check in self._PARAMETERS.items():
            check(getattr(self, name), name, type(self).__name__)

    def _fit_kernel(self, X: Any, sample_weight: NDArray[np.float64] | None) -> Kernel:
        """Return a fitted clone of the kernel; X is validated, and may be a dask array."""
        kernel = as_kernel(self.kernel, type(self).__name__)
        if is_dask_array(X):
            return fit_kernel_to(kernel, DaskSource.unchecked(X), sample_weight, SAMPLE)
        return clone(kernel).fit_validated(X, sample_weight)

    def _kernel_object(self) -> Kernel:
        return as_kernel(self.kernel, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = self._kernel_object()
        except ValueError:  # reported by fit
            return tags
        tags.input_tags.pairwise = isinstance(kernel, Precomputed)
        tags.input_tags.sparse = kernel.accepts_sparse
        return tags


def nystroem_or(exact: str) -> Check:
    """Require the name of a solver, "auto", `exact` or "nystroem", or a Nystroem object."""

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
    "solver": lambda value, name, owner: check_solver(value, owner),
    "max_iter": optional(integer()),
    "n_anchors": optional(integer()),
    "storage": choice("auto", "memory", "disk", "recompute"),
    "random_state": seed,
}
