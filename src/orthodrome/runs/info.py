"""What data are, what suits them, and what a run on them will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.memory import format_bytes
from ..eigen import choose_solver
from ..gram import Scaled, choose_storage, gram_operator, squared_radius
from ..kernels import KERNELS, Kernel, as_fitted_kernel
from ..sphere.karcher import find_mean
from .estimates import Estimate, estimate_cluster, estimate_embed
from .inputs import Data
from .inputs.data import columns_of_landmarks, listed
from .memory import available_memory
from .scales import extremes_of, hopeless, scale_advice, scales_of, spreads_of, unit_advice

__all__ = ["Info", "Reach", "describe"]

_BUDGET = "2GiB"
_REACH_ROWS = 1000
# Largest angles: below the first, tangent vectors are at most 2 % longer than kernel PCA's chords.
_FLAT = 20.0
_ALONE = 75.0  # a mean angle at which most points have hardly any neighbour
_DEFAULT_CLUSTERS = 3


@dataclass(frozen=True)
class Reach:
    """How far around the sphere in feature space the data reach.

    Attributes
    ----------
    mean_angle, largest_angle : float
        Of the points from their Karcher mean, in degrees.
    n_rows : int
        How many rows were looked at.
    meaning : str
        What that means for the choice of a method.
    """

    mean_angle: float
    largest_angle: float
    n_rows: int
    meaning: str


@dataclass(frozen=True)
class Info:
    """What :func:`describe` has found about data.

    Attributes
    ----------
    path, kind : str
        The file, and whether it holds a table or shapes.
    n, d : int
        Rows, and numbers in each.
    shape : tuple of int
        Shape of the array.
    dtype : str
        Its type.
    columns : tuple of str
        Names of the features.
    id_name, label_name : str or None
        Where the names of the rows and the labels come from.
    class_sizes : dict of str to int, or None
        Rows of each class, if there are labels.
    constant_columns : tuple of str
        Columns of one value.
    n_duplicates : int
        Rows that another row repeats.
    scale_ratio : float
        The largest standard deviation of a column over the smallest, constant ones left out.
    kernel, kernel_reason : str or None, str
        The suggested kernel by name, and why.
    sigma : float or None
        Its bandwidth for these data.
    reach : Reach or None
        How far around the sphere they reach with it.
    solver, solver_reason : str
        The eigensolver that "auto" takes, and why.
    storage, storage_reason : str
        Where the Gram matrix lives, and why.
    estimates : tuple of Estimate
        What commands will take.
    available_bytes : int or None
        The memory there is.
    notes, advice : tuple of str
        What is worth knowing, and what to do.
    """

    path: str
    kind: str
    n: int
    d: int
    shape: tuple[int, ...]
    dtype: str
    columns: tuple[str, ...]
    id_name: str | None
    label_name: str | None
    class_sizes: dict[str, int] | None
    constant_columns: tuple[str, ...]
    n_duplicates: int
    scale_ratio: float
    kernel: str | None
    kernel_reason: str
    sigma: float | None
    reach: Reach | None
    solver: str
    solver_reason: str
    storage: str
    storage_reason: str
    estimates: tuple[Estimate, ...]
    available_bytes: int | None
    notes: tuple[str, ...]
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON: dicts, lists, texts and finite numbers."""
        found = dict(vars(self))
        for name, value in found.items():
            if isinstance(value, tuple):
                found[name] = list(value)
        found["reach"] = None if self.reach is None else dict(vars(self.reach))
        found["estimates"] = [estimate.as_dict() for estimate in self.estimates]
        return found

    def lines(self) -> list[str]:
        """Return what people want to know, one line for each thing, "name: text"."""
        found = [f"data: {self._data()}", f"features: {listed(self.columns)}"]
        if self.id_name is not None:
            found.append(f"rows are named by: {self.id_name}")
        if self.class_sizes is not None:
            sizes = ", ".join(f"{name} {size}" for name, size in self.class_sizes.items())
            found.append(f"classes ({self.label_name}): {len(self.class_sizes)}: {sizes}")
        if self.kernel is not None:
            width = "" if self.sigma is None else f", sigma {self.sigma:.6g} (rule: mean)"
            found.append(f"suggested kernel: {self.kernel}{width}: {self.kernel_reason}")
        else:
            found.append(f"suggested kernel: none: {self.kernel_reason}")
        if self.reach is not None:
            found.append(
                f"reach: {self.reach.mean_angle:.0f}° from the mean on average, "
                f"{self.reach.largest_angle:.0f}° at most: {self.reach.meaning}"
            )
        if self.kernel is not None:
            found.append(f"solver: {self.solver}: {self.solver_reason}")
            found.append(f"Gram matrix: {_STORAGE_WORDS[self.storage]}: {self.storage_reason}")
        found += [f"estimate: {estimate.line()}" for estimate in self.estimates]
        if self.available_bytes is not None:
            found.append(f"available memory: {format_bytes(self.available_bytes)}")
        found += [f"note: {note}" for note in self.notes]
        found += [f"advice: {advice}" for advice in self.advice]
        return found

    def _data(self) -> str:
        if self.kind == "shapes":
            count, dimension = self.shape[1:]
            each = f"{_count(count, 'landmark')} in {dimension} dimensions"
            what = f"{_count(self.n, 'shape')} of {each}"
        else:
            what = f"{_count(self.n, 'row')} of {_count(self.d, 'feature')}"
        return f"{what}, {self.dtype}"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


_STORAGE_WORDS = {
    "memory": "kept in memory",
    "disk": "kept on disk",
    "recompute": "evaluated anew for each product",
}


def describe(data: Data, *, n_components: int = 10, probe: bool = True) -> Info:
    """Find out what data are, what suits them, and what a run on them will take.

    Parameters
    ----------
    data : Data
        The data.
    n_components : int, default=10
        How many components an embedding is to have.
    probe : bool, default=True
        Whether to estimate time and memory, for which the methods are run on small samples.

    Returns
    -------
    Info
        Facts, suggestions and estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.runs.info import describe
    >>> from orthodrome.runs.inputs import Data
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> data = Data("x.csv", "table", X, ("a", "b", "c"), tuple(map(str, range(60))))
    >>> info = describe(data, probe=False)
    >>> info.kernel, info.solver, info.constant_columns
    ('gaussian', 'dense', ())
    """
    n = len(data)
    flat = data.X.reshape(n, -1)
    notes: list[str] = list(data.notes)
    advice: list[str] = []
    spreads = spreads_of(flat)
    extremes = extremes_of(flat, spreads)
    constant, ratio = scales_of(spreads, data.columns)
    if data.kind == "table":
        advice += scale_advice(spreads, data.columns, constant, ratio, extremes)
    n_duplicates = n - len(_distinct(flat))
    if n_duplicates:
        verb = "repeats" if n_duplicates == 1 else "repeat"
        notes.append(f"{n_duplicates} of {n} rows {verb} another row.")
    advice += unit_advice(flat, spreads, data.columns, extremes)
    no_use = hopeless(n, spreads, extremes)
    name, reason = (None, no_use) if no_use else _suggested_kernel(data, flat)
    kernel = _fitted(name, data, notes)
    sigma = None if kernel is None else getattr(kernel, "sigma_", None)
    k = min(n_components, n)
    solver, solver_reason = choose_solver(n, k)
    storage, storage_reason = _storage(data)
    estimates = _estimates(data, name, k, notes) if probe and kernel is not None else ()
    available = available_memory()
    advice += _memory_advice(estimates, available)
    return Info(
        path=data.path,
        kind=data.kind,
        n=n,
        d=flat.shape[1],
        shape=tuple(data.X.shape),
        dtype=str(data.X.dtype),
        columns=data.columns,
        id_name=data.id_name,
        label_name=data.label_name,
        class_sizes=_class_sizes(data, advice),
        constant_columns=constant,
        n_duplicates=n_duplicates,
        scale_ratio=ratio,
        kernel=name,
        kernel_reason=reason,
        sigma=None if sigma is None else float(sigma),
        reach=None if kernel is None else _reach(kernel, data, notes),
        solver=solver,
        solver_reason=solver_reason,
        storage=storage,
        storage_reason=storage_reason,
        estimates=estimates,
        available_bytes=available,
        notes=tuple(notes),
        advice=tuple(advice),
    )


# ---------------------------------------------------------------------------- columns and rows


def _distinct(flat: NDArray[Any]) -> NDArray[Any]:
    """Return the different rows, as bytes."""
    rows = np.ascontiguousarray(flat + 0.0)  # one zero for -0.0 and 0.0
    return np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))))


def _class_sizes(data: Data, advice: list[str]) -> dict[str, int] | None:
    if data.labels is None:
        return None
    names, counts = np.unique(data.labels, return_counts=True)
    sizes = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    if len(sizes) == 1:
        advice.append("There is one class only; a classifier needs two.")
    elif len(sizes) > len(data) / 2:
        advice.append(
            f"{data.label_name} has {len(sizes)} different values in {len(data)} rows: is it "
            "rather a name of each row, or a measured quantity?"
        )
    elif min(sizes.values()) == 1:
        alone = [name for name, size in sizes.items() if size == 1]
        advice.append(f"Classes of a single row cannot be cross-validated: {listed(alone)}.")
    return sizes


# ---------------------------------------------------------------------------- kernel and sphere


def _suggested_kernel(data: Data, flat: NDArray[Any]) -> tuple[str | None, str]:
    if data.kind == "shapes":
        if data.X.shape[2] == 3:
            return None, (
                "there is no kernel for shapes in three dimensions; align the specimens and give "
                "their coordinates as a table"
            )
        return "veronese_whitney", "planar shapes, whatever their place, size and rotation"
    landmarks = len(data.columns) // 2
    if landmarks > 2 and data.columns == columns_of_landmarks(landmarks, 2):
        return "veronese_whitney", "the columns x1, y1, x2, y2, … are planar landmarks"
    lengths = np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64))
    if flat.shape[1] > 1 and np.allclose(lengths, 1.0, rtol=0.0, atol=1e-5):
        return "linear", "the rows are unit vectors, so they lie on a sphere as they are"
    return "gaussian", "it suits measurements of any kind, and has one bandwidth"


def _fitted(name: str | None, data: Data, notes: list[str]) -> Kernel | None:
    """Return the kernel fitted to the data; None, with a note, where that cannot be."""
    if name is None:
        return None
    try:
        return as_fitted_kernel(name, data.X)
    except ValueError as problem:
        notes.append(f"The kernel {name} cannot be used: {problem}")
        return None


def _reach(kernel: Kernel, data: Data, notes: list[str]) -> Reach | None:
    rows: Any = slice(None)
    if len(data) > _REACH_ROWS:
        drawn = np.random.default_rng(0).choice(len(data), _REACH_ROWS, replace=False)
        rows = np.sort(drawn)
    try:
        gram = gram_operator(kernel, kernel.validate(data.X[rows]))
        unit = Scaled(gram, 1.0 / squared_radius(gram.diagonal()))
        mean = find_mean(unit, None, tol=1e-8, max_iter=100)
    except ValueError as problem:
        notes.append(f"How far the data reach is not defined: {problem}")
        return None
    angles = np.degrees(np.arccos(np.clip(mean.cosines, -1.0, 1.0)))
    middle, largest = float(angles.mean()), float(angles.max())
    return Reach(middle, largest, len(angles), _meaning(middle, largest))


def _meaning(middle: float, largest: float) -> str:
    """Say what angles from the mean mean; a tangent vector is θ/sin θ times its chord's part."""
    if largest >= 90.0:
        return (
            "some points lie beyond a quarter of a great circle, where the mean need not be the "
            "only one; a larger bandwidth brings them nearer"
        )
    if middle >= _ALONE:
        return (
            "nearly all points are at right angles to each other, so that hardly any has "
            "neighbours; try a larger bandwidth"
        )
    stretch = 0.0 if largest < 1e-6 else math.radians(largest) / math.sin(math.radians(largest)) - 1
    if largest < _FLAT:
        return (
            "a nearly flat cap: kernel PGA will give what kernel PCA gives, to within "
            f"{max(stretch, 1e-3):.1%}"
        )
    return (
        f"the sphere is felt: distances from the mean along it are up to {stretch:.0%} longer than "
        "kernel PCA has them, so kernel PGA is worth its while"
    )


# ---------------------------------------------------------------------------- what runs will take


def _storage(data: Data) -> tuple[str, str]:
    kernel = KERNELS["veronese_whitney" if data.kind == "shapes" else "gaussian"]()
    return choose_storage(kernel, data.X, _BUDGET, "auto")


def _estimates(data: Data, kernel: str | None, k: int, notes: list[str]) -> tuple[Estimate, ...]:
    clusters = _DEFAULT_CLUSTERS if data.labels is None else len(np.unique(data.labels))
    found = []
    for estimated in (
        lambda: estimate_embed(data, kernel=kernel, n_components=k),
        lambda: estimate_cluster(data, kernel=kernel, n_clusters=min(clusters, len(data))),
    ):
        try:
            found.append(estimated())
        except (ValueError, ImportError) as problem:  # an extra that the command would want as well
            notes.append(f"No estimate: {problem}")
    return tuple(found)


def _memory_advice(estimates: Sequence[Estimate], available: int | None) -> list[str]:
    if available is None:
        return []
    return [
        f"{one.command} would take {format_bytes(one.extra_bytes)} more memory, and "
        f"{format_bytes(available)} are available: take a sample of the rows."
        for one in estimates
        if one.extra_bytes > available
    ]
