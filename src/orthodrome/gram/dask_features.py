"""Features of the rows of a dask array: products are passes over the blocks where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import Kernel
from .anchors import Anchors
from .dask_blocks import blocks_of, computed
from .dask_source import DaskSource
from .feature_map import FeatureMap, Lengths
from .nystroem import NystroemFeatures, nystroem_features

__all__ = ["DaskFeatures"]


@dataclass(frozen=True)
class _Seen:
    """A function of blocks that looks at kernel values with the anchors."""

    map: FeatureMap

    @property
    def rows_at_once(self) -> int:
        return self.map.rows_at_once

    def _values(self, rows: Any) -> NDArray[Any]:
        values, own = self.map.look(rows)
        lengths = self.map.lengths(values, own, None)
        return values if np.ndim(lengths) == 0 else values / np.asarray(lengths)[:, None]


@dataclass(frozen=True)
class _Applied(_Seen):
    coefficients: NDArray[Any]

    def __call__(self, rows: Any, start: int) -> NDArray[Any]:
        return np.asarray(self._values(rows) @ self.coefficients)


@dataclass(frozen=True)
class _Combined(_Seen):
    def __call__(self, rows: Any, start: int, weights: NDArray[Any]) -> tuple[NDArray[Any]]:
        return (weights.T @ self._values(rows),)


class DaskFeatures(NystroemFeatures):
    """Nyström features of the rows of a dask array, computed anew in every pass.

    What there is for every row, in :meth:`apply` and `squared_lengths`, arrives here: a few columns
    of n numbers, for methods whose vectors have that length.

    Parameters
    ----------
    kernel : Kernel
        A fitted kernel.
    X : dask array of shape (n, ...)
        Validated rows.
    anchors : Anchors
        What they are seen through; points.
    unit, scale
        As for :func:`~orthodrome.gram.nystroem_features`.

    Examples
    --------
    >>> import dask.array as da
    >>> from orthodrome.gram import choose_anchors
    >>> from orthodrome.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    >>> kernel = Linear().fit(X)
    >>> anchors = choose_anchors(kernel, X, 2)
    >>> DaskFeatures(kernel, da.from_array(X, chunks=2), anchors).squared_lengths.round(6)
    array([1., 2., 4.])
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        anchors: Anchors,
        *,
        unit: bool = False,
        scale: float = 1.0,
    ) -> None:
        radius = None if scale == 1.0 else 1.0 / scale
        self._kernel, self._anchors, self._scale = kernel, anchors, scale
        self._source = DaskSource.unchecked(X)
        self._map = FeatureMap.by(kernel, anchors, unit=unit, radius=radius)
        self.decoder, self.unit, self.storage = anchors.decoder, unit, "recompute"
        self.shape = (self._source.shape[0], self.decoder.shape[1])
        self.dtype = np.dtype(X.dtype)
        self._known: NDArray[np.float64] | None = None

    @property
    def squared_lengths(self) -> NDArray[np.float64]:
        """‖f‖² of each row before it was divided."""
        if self._known is None:
            self._known = self._here(Lengths(self._map))
        return self._known

    def _here(self, function: Any) -> NDArray[Any]:
        """Compute what there is per row, and bring it here block by block."""
        return np.concatenate(computed(*blocks_of(self._source.per_row(function))))

    def apply(self, V: NDArray[Any]) -> NDArray[Any]:
        """Return F V for few columns, in float64: a pass."""
        return self._here(_Applied(self._map, self.decoder @ V))

    def combine(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return Σ w_n f_n, in float64, for each column of weights: a pass."""
        return self._source.sums(_Combined(self._map), along=(weights,))[0] @ self.decoder

    def take(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        """Return the features of these rows."""
        return self.of(self._source.take(indices)).toarray()

    def of(self, X_new: Any) -> NystroemFeatures:
        """Return the features of other points, in memory, by the same anchors."""
        return nystroem_features(
            self._kernel,
            X_new,
            self._anchors,
            unit=self.unit,
            scale=self._scale,
            storage="recompute",
        )

    def block(self, rows: slice) -> NDArray[Any]:
        """Return the features of these rows."""
        return self.take(np.arange(self.shape[0])[rows])
