"""What the kernel decompositions share as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from .._core.progress import CallbackSupportMixin
from ..kernels import Kernel, KernelHolder, Precomputed, as_kernel

__all__ = ["KernelEstimator", "last_fit_kept"]


@contextmanager
def last_fit_kept(estimator: Any) -> Iterator[None]:
    """Leave the fitted attributes of an estimator as they were if what happens inside fails."""

    def fitted() -> dict[str, Any]:
        return {name: value for name, value in vars(estimator).items() if name.endswith("_")}

    before = fitted()
    try:
        yield
    except BaseException:
        for name in fitted():
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


class KernelEstimator(KernelHolder, CallbackSupportMixin, BaseEstimator):
    """An estimator with a ``kernel`` parameter: a Kernel, a name, "precomputed" or a callable."""

    def _fit_kernel(self, X: Any, sample_weight: NDArray[np.float64] | None) -> Kernel:
        """Return a fitted clone of the kernel."""
        return clone(as_kernel(self.kernel)).fit_validated(X, sample_weight)

    def _kernel_object(self) -> Kernel:
        return as_kernel(self.kernel)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            kernel = self._kernel_object()
        except ValueError:  # reported by fit
            return tags
        tags.input_tags.pairwise = isinstance(kernel, Precomputed)
        tags.input_tags.sparse = kernel.accepts_sparse
        return tags
