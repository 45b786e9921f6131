"""Clustering of rows that come in blocks: through their coordinates, which are few."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from .._core.canonical import Canonical, canonical_rows
from ..decomposition import KernelPGA
from ..decomposition.streams import coordinates_fit
from ..gram import DaskSource, RowSource, as_source
from ..gram.dask_blocks import is_dask_array, lazy_rows_of, over_rows, persisted
from ..sphere import exp_at_pole, log_at_pole
from ..sphere._clouds import BlockCloud, Cloud, LocalCloud
from ..sphere.mixture import Mixture

__all__ = [
    "Judgement",
    "Sample",
    "along_blocks",
    "canonical_blocks",
    "cloud_of",
    "errors_named_after",
    "of_new_rows",
    "refuse_large_coordinates",
    "sample_of",
    "unit_points",
]

# Rows among which the starts are looked for; of fewer, all.
_SAMPLE = 8192


@dataclass(frozen=True)
class Judgement:
    """What a mixture says of coordinates: labels, posterior probabilities, or log-densities.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    what : {"labels", "posterior", "evidence"}
        What to return.
    weighted : bool, default=True
        Whether labels are by posterior probabilities; else by densities alone.
    """

    mixture: Mixture
    what: str
    weighted: bool = True

    def __call__(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return one row, or one number, for each row of coordinates of kPGA."""
        return self.of(self.mixture.log_densities(unit_points(coordinates, self.mixture.n_modes)))

    def of(self, densities: NDArray[np.float64]) -> NDArray[Any]:
        """Return the same from log-densities."""
        joint = densities + np.log(self.mixture.weights)
        if self.what == "labels":
            return np.argmax(joint if self.weighted else densities, axis=1).astype(np.int32)
        if self.what == "posterior":
            return np.asarray(scipy.special.softmax(joint, axis=1))
        return np.asarray(scipy.special.logsumexp(joint, axis=1))


def unit_points(coordinates: NDArray[Any], n_modes: int) -> NDArray[np.float64]:
    """Return the unit vectors that kPGA's coordinates stand for."""
    return exp_at_pole(coordinates[:, :n_modes].astype(np.float64))


@dataclass(frozen=True)
class Sample:
    """Some of the rows, each different one once, and their places on the sphere."""

    canonical: Canonical
    points: NDArray[np.float64]


def sample_of(source: RowSource, weights: Any, pga: KernelPGA, n_modes: int) -> Sample:
    """Take rows that are spread evenly over all of them, or all if they are few."""
    numbers, counts = source.spread(_SAMPLE, weights)
    canonical = canonical_rows(source.take(numbers), counts)
    return Sample(canonical, unit_points(pga.transform(canonical.data), n_modes))


@dataclass(frozen=True)
class _OnSphere:
    n_modes: int

    def __call__(self, coordinates: NDArray[Any]) -> NDArray[np.float64]:
        return unit_points(coordinates, self.n_modes)


@dataclass(frozen=True)
class _Spread:
    """Sums of the weights, and of squared coordinates seen from the pole."""

    def __call__(self, points: Any, start: int, *along: Any) -> tuple[Any, ...]:
        w = along[0] if along else np.ones(len(points))
        return w.sum(), w @ log_at_pole(points) ** 2


@contextmanager
def errors_named_after(estimator: Any) -> Iterator[None]:
    """Let what kPGA refuses in a fit within an estimator name that one, which the caller has."""
    try:
        yield
    except ValueError as error:
        words, named = str(error), type(estimator).__name__
        if type(error) is not ValueError or KernelPGA.__name__ not in words:
            raise
        raise ValueError(words.replace(KernelPGA.__name__, named)) from error


def refuse_large_coordinates(
    estimator: Any, source: RowSource, pga: KernelPGA | None = None
) -> None:
    """Say so if kPGA will not keep the coordinates of all rows, which EM needs in every iteration.

    Where a part of the variance is asked for, only the fitted kPGA tells how many modes there are.
    """
    modes = estimator.n_modes if pga is None else pga.n_components_
    if source.lazy or not isinstance(modes, numbers.Integral):
        return
    n, k = source.shape[0], int(modes)
    kept = (
        coordinates_fit(estimator, n, k, source.dtype)
        if pga is None
        else hasattr(pga, "embedding_")
    )
    if not kept:
        raise ValueError(
            f"{type(estimator).__name__} needs the coordinates of all {n:,} rows in {k} modes, "
            f"which do not fit its part of memory_budget={estimator.memory_budget!r}: raise it, "
            "ask for fewer n_modes, or give a dask array, whose coordinates stay with the workers."
        )


def cloud_of(embedding: Any, weights: Any, n_modes: int) -> tuple[Cloud, float]:
    """Return the points of an embedding as EM takes them, and their mean variance.

    Those of a dask array are computed once and kept by the workers: n x (n_modes + 1) numbers.
    """
    points = over_rows(_OnSphere(n_modes), embedding)
    if not is_dask_array(points):
        n = len(points)
        p = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        return LocalCloud(points, p), float((p @ log_at_pole(points) ** 2).mean())
    source = DaskSource.unchecked(persisted(points))
    along = () if weights is None else (weights,)
    count, squares = source.sums(_Spread(), along=along)
    return BlockCloud(source, weights), float((squares / count).mean())


def canonical_blocks(X: Any, weights: NDArray[np.float64] | None) -> Canonical:
    """Leave out rows of weight 0; those of a dask array are neither sorted nor merged."""
    n = X.shape[0]
    if weights is None or np.all(weights > 0):
        every = np.arange(n)
        return Canonical(X, np.ones(n) if weights is None else weights, every, every)
    index = np.flatnonzero(weights)
    inverse = np.full(n, -1)
    inverse[index] = np.arange(len(index))
    return Canonical(lazy_rows_of(X, index), weights[index], index, inverse)


@dataclass(frozen=True)
class Applied:
    """A method of a fitted estimator as a function of blocks of rows."""

    estimator: Any
    method: str

    def __call__(self, rows: Any, start: int) -> NDArray[Any]:
        """Call it with validated rows."""
        return np.asarray(getattr(self.estimator, self.method)(rows))


def of_new_rows(estimator: Any, X: Any, method: str) -> Any:
    """Return what a method returns of validated rows, for rows that come in blocks."""
    if is_dask_array(getattr(estimator, "X_fit_", None)):
        raise ValueError(
            f"{type(estimator).__name__} compares new rows with all training rows, which are in a "
            "dask array: give the new ones in memory, or fit with solver='nystroem'."
        )
    light = copy.copy(estimator)
    for name in ("labels_", "embedding_"):
        vars(light).pop(name, None)
    source = as_source(X, estimator.kernel_, estimator, reset=False)
    return source.per_row(Applied(light, method))


def along_blocks(array: NDArray[Any], X: Any) -> Any:
    """Return an array with the rows of a dask array in the blocks that those are in."""
    import dask.array as da

    return da.from_array(array, chunks=(X.chunks[0], *array.shape[1:]))
