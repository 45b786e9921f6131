"""The command info: a description of data, a suggestion, and what a run will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.memory import format_bytes
from ..gram import Scaled, gram_operator
from ..gram.unit import squared_radius
from ..kernels import Kernel, as_fitted_kernel
from ..sphere.karcher import find_mean
from .forecast import Estimate, estimate, plan_of
from .inputs import Data
from .inputs.data import columns_of_landmarks, listed
from .memory import available_memory
from .pages import count
from .results import drawn

__all__ = ["Info", "Reach", "describe"]

_REACH_ROWS = 1000
# Largest angle, in degrees, at which tangent vectors are at most 2 % longer than chords.
_FLAT = 20.0
_ALONE = 75.0  # mean angle at which most points have hardly any neighbours
_DEFAULT_CLUSTERS = 3
_SCALES = 1e3  # columns whose spreads differ by more should be standardised
_MARGIN = 1e3  # squares are summed, and differences are larger than values
_STORAGE = {
    "memory": "kept in memory",
    "disk": "kept on disk",
    "recompute": "recomputed for each product",
    "auto": "chosen during the fit",
}


@dataclass(frozen=True)
class Reach:
    """How far the data spread on the sphere in feature space.

    Attributes
    ----------
    mean_angle, largest_angle : float
        Of the points from their Karcher mean, in degrees.
    n_rows : int
        How many rows were used.
    meaning : str
        What that means for the choice of a method.
    """

    mean_angle: float
    largest_angle: float
    n_rows: int
    meaning: str


@dataclass(frozen=True)
class Info:
    """The result of :func:`describe`.

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
        Source of the names of the rows and of the labels.
    class_sizes : dict of str to int, or None
        Rows of each class, if there are labels.
    constant_columns : tuple of str
        Columns of one value.
    n_duplicates : int
        Rows that repeat another row.
    scale_ratio : float
        The largest standard deviation of a column over the smallest, without constant ones.
    kernel, kernel_reason : str or None, str
        The suggested kernel by name, and why.
    sigma : float or None
        Its bandwidth for these data.
    reach : Reach or None
        How far they spread with it.
    solver, storage, plan_reason : str or None
        The solver that "auto" chooses, where the Gram matrix is kept, and why.
    estimates : tuple of Estimate
        What commands will take.
    available_bytes : int or None
        The available memory.
    notes, advice : tuple of str
        Remarks, and what to do.
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
    solver: str | None
    storage: str | None
    plan_reason: str | None
    estimates: tuple[Estimate, ...]
    available_bytes: int | None
    notes: tuple[str, ...]
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON: dicts, lists, texts and finite numbers."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return one line "name: text" for each fact."""
        what = f"{count(self.n, 'row')} of {count(self.d, 'feature')}"
        if self.kind == "shapes":
            landmarks = count(self.shape[1], "landmark")
            what = f"{count(self.n, 'shape')} of {landmarks} in {self.shape[2]} dimensions"
        found = [f"data: {what}, {self.dtype}", f"features: {listed(self.columns)}"]
        if self.id_name is not None:
            found.append(f"rows are named by: {self.id_name}")
        if self.class_sizes is not None:
            sizes = ", ".join(f"{name} {size}" for name, size in self.class_sizes.items())
            found.append(f"classes ({self.label_name}): {len(self.class_sizes)}: {sizes}")
        width = "" if self.sigma is None else f", sigma {self.sigma:.6g} (rule: mean)"
        found.append(f"suggested kernel: {self.kernel or 'none'}{width}: {self.kernel_reason}")
        if self.reach is not None:
            found.append(
                f"reach: {self.reach.mean_angle:.0f}° from the mean on average, "
                f"{self.reach.largest_angle:.0f}° at most: {self.reach.meaning}"
            )
        if self.solver is not None:
            found.append(f"solver: {self.solver}: {self.plan_reason}")
            found.append(f"Gram matrix or coordinates: {_STORAGE[self.storage or 'auto']}")
        found += [f"estimate: {each.line()}" for each in self.estimates]
        if self.available_bytes is not None:
            found.append(f"available memory: {format_bytes(self.available_bytes)}")
        found += [f"note: {note}" for note in self.notes]
        return found + [f"advice: {advice}" for advice in self.advice]


def describe(data: Data, *, n_components: int = 10, probe: bool = True) -> Info:
    """Describe data, suggest a kernel, and estimate what a run will take.

    Parameters
    ----------
    data : Data
        The data.
    n_components : int, default=10
        The number of components of an embedding.
    probe : bool, default=True
        Whether to estimate time and memory, by running methods on a small sample.

    Returns
    -------
    Info
        Facts, suggestions and estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.app.info import describe
    >>> from orthodrome.app.inputs import Data
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> data = Data("x.csv", "table", X, ("a", "b", "c"), tuple(map(str, range(60))))
    >>> info = describe(data, probe=False)
    >>> info.kernel, info.solver, info.constant_columns
    ('gaussian', 'dense', ())
    """
    n = len(data)
    flat = data.X.reshape(n, -1)
    scales = _Scales(flat, data.columns)
    notes, advice = list(data.notes), scales.advice(standardize=data.kind == "table")
    n_duplicates = n - len(_distinct(flat))
    if n_duplicates:
        notes.append(f"{n_duplicates} of {n} rows repeat another row.")
    useless = scales.useless()
    name, reason = (None, useless) if useless else _suggested_kernel(data, flat)
    kernel = _fitted(name, data, notes)
    sigma = getattr(kernel, "sigma_", None)
    plan = None if kernel is None else plan_of(data, name, min(n_components, n))
    estimates = _estimates(data, name, plan, notes) if probe and plan is not None else ()
    available = available_memory()
    sizes = _class_sizes(data, advice)
    advice += _memory_advice(estimates, available)
    return Info(
        *(data.path, data.kind, n, flat.shape[1], tuple(data.X.shape), str(data.X.dtype)),
        columns=data.columns,
        id_name=data.id_name,
        label_name=data.label_name,
        class_sizes=sizes,
        constant_columns=scales.constant,
        n_duplicates=n_duplicates,
        scale_ratio=scales.ratio,
        kernel=name,
        kernel_reason=reason,
        sigma=None if sigma is None else float(sigma),
        reach=None if kernel is None else _reach(kernel, data, notes),
        solver=None if plan is None else plan.name,
        storage=None if plan is None else plan.storage,
        plan_reason=None if plan is None else plan.reason,
        estimates=estimates,
        available_bytes=available,
        notes=tuple(notes),
        advice=tuple(advice),
    )


# ---------------------------------------------------------------------------- columns and rows


class _Scales:
    """How far the numbers of each column spread, and whether they can be squared.

    Distances are sums of squares, and so are standard deviations.
    """

    def __init__(self, flat: NDArray[Any], columns: Sequence[str]) -> None:
        self.n, self.columns = len(flat), columns
        # without squares of very large or small numbers
        self.sizes = np.abs(flat).max(axis=0).astype(np.float64)
        found = (flat / np.where(self.sizes > 0, self.sizes, 1.0)).std(axis=0) * self.sizes
        varies = (flat != flat[0]).any(axis=0)
        smallest = np.finfo(np.float64).smallest_subnormal
        self.spreads = np.where(varies, np.maximum(found, smallest), 0.0)
        self.constant = self._names(self.spreads == 0)
        self.ratio = 1.0
        if varies.any():
            with np.errstate(over="ignore"):
                ratio = float(self.spreads.max() / self.spreads[varies].min())
            self.ratio = min(ratio, float(np.finfo(np.float64).max))  # JSON has no infinity
        limits = np.finfo(flat.dtype)
        self.huge = self.sizes > np.sqrt(float(limits.max)) / _MARGIN
        self.tiny = varies & (self.spreads < np.sqrt(float(limits.tiny)) * _MARGIN)

    def _names(self, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, one in zip(self.columns, chosen, strict=True) if one)

    def useless(self) -> str:
        """Return why no method can use these numbers, or ""."""
        if not self.spreads.any():
            return "all rows are equal" if self.n > 1 else "there is only one row"
        if self.huge.any():
            return "some values are so large that their squares overflow"
        if (self.tiny | (self.spreads == 0)).all():
            return "the values differ so little that squares of differences vanish"
        return ""

    def advice(self, *, standardize: bool) -> list[str]:
        """Return which columns to leave out, to standardise, or to give in other units."""
        if not self.spreads.any():
            found = "All rows are equal" if self.n > 1 else "There is only one row"
            return [f"{found}: nothing can be embedded, clustered or classified."]
        advice = []
        if standardize and self.constant:
            advice.append(
                f"Columns of one value carry no information; leave them out: "
                f"{listed(self.constant)}."
            )
        if standardize and self.ratio > _SCALES and not (self.huge | self.tiny).any():
            smallest = self.columns[int(np.argmin(np.where(self.spreads, self.spreads, np.inf)))]
            advice.append(
                f"Spreads of columns differ {self.ratio:.2g}-fold, from {smallest} to "
                f"{self.columns[int(np.argmax(self.spreads))]}, so distances depend on the latter "
                "alone: use --standardize."
            )
        unusable = "cannot be used, because their squares"
        units = "use other units (--standardize would fail too):"
        if self.huge.any():
            advice.append(
                f"Values as large as {self.sizes.max():.2g} {unusable} overflow; {units} "
                f"{listed(self._names(self.huge))}."
            )
        if self.tiny.any():
            advice.append(
                f"Spreads as small as {self.spreads[self.tiny].min():.2g} {unusable} vanish; "
                f"{units} {listed(self._names(self.tiny))}."
            )
        return advice


def _distinct(flat: NDArray[Any]) -> NDArray[Any]:
    """Return the different rows, as bytes."""
    rows = np.ascontiguousarray(flat + 0.0)  # one zero for -0.0 and 0.0
    return np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))))


def _class_sizes(data: Data, advice: list[str]) -> dict[str, int] | None:
    if data.labels is None:
        return None
    names, counts = np.unique(data.labels, return_counts=True)
    sizes = {str(name): int(size) for name, size in zip(names, counts, strict=True)}
    alone = [name for name, size in sizes.items() if size == 1]
    if len(sizes) == 1:
        advice.append("There is only one class; a classifier needs two.")
    elif len(sizes) > len(data) / 2:
        advice.append(
            f"{data.label_name} has {len(sizes)} different values in {len(data)} rows: is it a "
            "name of each row, or a measured quantity?"
        )
    elif alone:
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
        return "veronese_whitney", "planar shapes, whatever their position, size and rotation"
    landmarks = len(data.columns) // 2
    if landmarks > 2 and data.columns == columns_of_landmarks(landmarks, 2):
        return "veronese_whitney", "the columns x1, y1, x2, y2, … are planar landmarks"
    lengths = np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64))
    if flat.shape[1] > 1 and np.allclose(lengths, 1.0, rtol=0.0, atol=1e-5):
        return "linear", "the rows are unit vectors, so they are on a sphere already"
    return "gaussian", "it suits measurements of any kind, and has one bandwidth"


def _fitted(name: str | None, data: Data, notes: list[str]) -> Kernel | None:
    """Return the kernel fitted to the data; None, with a note, if that fails."""
    if name is None:
        return None
    try:
        return as_fitted_kernel(name, data.X)
    except ValueError as problem:
        notes.append(f"The kernel {name} cannot be used: {problem}")
        return None


def _reach(kernel: Kernel, data: Data, notes: list[str]) -> Reach | None:
    rows = drawn(len(data), _REACH_ROWS, 0)
    try:
        gram = gram_operator(kernel, kernel.validate(data.X[rows]))
        unit = Scaled(gram, 1.0 / squared_radius(gram.diagonal()))
        mean = find_mean(unit, None, tol=1e-8, max_iter=100)
    except ValueError as problem:
        notes.append(f"How far the data spread is not defined: {problem}")
        return None
    angles = np.degrees(np.arccos(np.clip(mean.cosines, -1.0, 1.0)))
    middle, largest = float(angles.mean()), float(angles.max())
    return Reach(middle, largest, len(angles), _meaning(middle, largest))


def _meaning(middle: float, largest: float) -> str:
    """Return what angles from the mean mean; a tangent vector is θ/sin θ times its chord's part."""
    if largest >= 90.0:
        return (
            "some points lie beyond a quarter of a great circle, where the mean need not be "
            "unique; a larger bandwidth brings them closer"
        )
    if middle >= _ALONE:
        return (
            "nearly all points are at right angles to each other, so hardly any has neighbours; "
            "try a larger bandwidth"
        )
    stretch = 0.0 if largest < 1e-6 else math.radians(largest) / math.sin(math.radians(largest)) - 1
    if largest < _FLAT:
        return (
            "a nearly flat cap: kernel PGA gives the same as kernel PCA, to within "
            f"{max(stretch, 1e-3):.1%}"
        )
    return (
        f"curvature matters: distances from the mean along the sphere are up to {stretch:.0%} "
        "longer than in kernel PCA, so kernel PGA is worth using"
    )


# ---------------------------------------------------------------------------- what runs will take


def _estimates(data: Data, kernel: str | None, plan: Any, notes: list[str]) -> tuple[Estimate, ...]:
    clusters = _DEFAULT_CLUSTERS if data.labels is None else len(np.unique(data.labels))
    counts = {"embed": plan.k, "cluster": min(clusters, len(data))}
    found: list[Estimate] = []
    for command, number in counts.items():
        options: dict[str, Any] = {"command": command, "kernel": kernel, "count": number}
        started = found[-1].start_seconds if found else 0.0
        try:
            found.append(estimate(data, plan, started=started, **options))
        except (ValueError, ImportError) as problem:  # the command itself would fail too
            notes.append(f"No estimate: {problem}")
    return tuple(found)


def _memory_advice(estimates: Sequence[Estimate], available: int | None) -> list[str]:
    return [
        f"{each.command} would take {format_bytes(each.extra_bytes)} more memory, and "
        f"{format_bytes(available)} are available: take a sample of the rows."
        for each in estimates
        if available is not None and each.extra_bytes > available
    ]
