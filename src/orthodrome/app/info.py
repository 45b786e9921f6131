"""The command info: a description of data, a suggestion, and what a run will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.memory import format_bytes
from ..gram import Scaled, gram_operator
from ..gram.unit import squared_radius
from ..kernels import Kernel, as_fitted_kernel
from ..sphere.karcher import find_mean
from .forecast import Estimate, estimate, estimate_line, plan_of
from .inputs import Data
from .inputs.data import column_names, listed
from .memory import available_memory
from .pages import count
from .results import drawn

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


def describe(data: Data, *, n_components: int = 10, probe: bool = True) -> dict[str, Any]:
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
    dict
        Facts for JSON: dicts, lists, texts and finite numbers.

        - path, kind, n, d, shape, dtype, columns, id_name, label_name: the data;
        - class_sizes: rows of each class, if there are labels;
        - constant_columns, n_duplicates: columns of one value, rows that repeat another row;
        - scale_ratio: the largest standard deviation of a column over the smallest;
        - kernel, kernel_reason, sigma: the suggested kernel, why, and its bandwidth;
        - reach: angles of the points from their Karcher mean, in degrees, and their meaning;
        - solver, storage, plan_reason: what "auto" chooses, where the Gram matrix is kept, why;
        - estimates: for each command, see :class:`orthodrome.app.forecast.Estimate`;
        - available_bytes: the available memory, if known;
        - notes, advice: remarks, and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.app.info import describe
    >>> from orthodrome.app.inputs import Data
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> data = Data("x.csv", "table", X, ("a", "b", "c"), tuple(map(str, range(60))))
    >>> info = describe(data, probe=False)
    >>> info["kernel"], info["solver"], info["constant_columns"]
    ('gaussian', 'dense', ())
    """
    n = len(data)
    flat = data.X.reshape(n, -1)
    scales = _Scales(flat, data.columns)
    notes, advice = list(data.notes), scales.advice(standardize=data.kind == "table")
    n_duplicates = n - len(_distinct(flat))
    if n_duplicates:
        notes.append(f"{n_duplicates} of {n} rows repeat another row.")
    unusable = scales.unusable()
    name, reason = (None, unusable) if unusable else _suggested_kernel(data, flat)
    kernel = _fitted(name, data, notes)
    sigma = getattr(kernel, "sigma_", None)
    plan = None if kernel is None else plan_of(data, name, min(n_components, n))
    estimates = _estimates(data, name, plan, notes) if probe and plan is not None else []
    available = available_memory()
    sizes = _class_sizes(data, advice)
    advice += _memory_advice(estimates, available)
    return {
        "path": data.path,
        "kind": data.kind,
        "n": n,
        "d": flat.shape[1],
        "shape": data.X.shape,
        "dtype": str(data.X.dtype),
        "columns": data.columns,
        "id_name": data.id_name,
        "label_name": data.label_name,
        "class_sizes": sizes,
        "constant_columns": scales.constant,
        "n_duplicates": n_duplicates,
        "scale_ratio": scales.ratio,
        "kernel": name,
        "kernel_reason": reason,
        "sigma": None if sigma is None else float(sigma),
        "reach": None if kernel is None else _reach(kernel, data, notes),
        "solver": None if plan is None else plan.name,
        "storage": None if plan is None else plan.storage,
        "plan_reason": None if plan is None else plan.reason,
        "estimates": [asdict(each) for each in estimates],
        "available_bytes": available,
        "notes": notes,
        "advice": advice,
    }


def described_lines(info: dict[str, Any]) -> list[str]:
    """Return one line "name: text" for each fact."""
    what = f"{count(info['n'], 'row')} of {count(info['d'], 'feature')}"
    if info["kind"] == "shapes":
        _, k, dimension = info["shape"]
        what = f"{count(info['n'], 'shape')} of {count(k, 'landmark')} in {dimension} dimensions"
    found = [f"data: {what}, {info['dtype']}", f"features: {listed(info['columns'])}"]
    if info["id_name"] is not None:
        found.append(f"row names: {info['id_name']}")
    if info["class_sizes"] is not None:
        sizes = ", ".join(f"{name} {size}" for name, size in info["class_sizes"].items())
        found.append(f"classes ({info['label_name']}): {len(info['class_sizes'])}: {sizes}")
    width = "" if info["sigma"] is None else f", sigma {info['sigma']:.6g} (rule: mean)"
    found.append(f"suggested kernel: {info['kernel'] or 'none'}{width}: {info['kernel_reason']}")
    if info["reach"] is not None:
        found.append(
            "reach: {mean_angle:.0f}° from the mean on average, {largest_angle:.0f}° at most: "
            "{meaning}".format(**info["reach"])
        )
    if info["solver"] is not None:
        found.append(f"solver: {info['solver']}: {info['plan_reason']}")
        found.append(f"Gram matrix or coordinates: {_STORAGE[info['storage']]}")
    found += [f"estimate: {estimate_line(each)}" for each in info["estimates"]]
    if info["available_bytes"] is not None:
        found.append(f"available memory: {format_bytes(info['available_bytes'])}")
    found += [f"note: {note}" for note in info["notes"]]
    return found + [f"advice: {advice}" for advice in info["advice"]]


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

    def unusable(self) -> str:
        """Return why no method can use these numbers, or an empty text."""
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
            advice.append(f"Constant columns carry no information: {listed(self.constant)}.")
        if standardize and self.ratio > _SCALES and not (self.huge | self.tiny).any():
            smallest = self.columns[int(np.argmin(np.where(self.spreads, self.spreads, np.inf)))]
            advice.append(
                f"Spreads of columns differ {self.ratio:.2g}-fold, from {smallest} to "
                f"{self.columns[int(np.argmax(self.spreads))]}, so distances depend on the latter "
                "alone: use --standardize."
            )
        units = "use other units (--standardize would fail too):"
        if self.huge.any():
            advice.append(
                f"Squares of values as large as {self.sizes.max():.2g} overflow; {units} "
                f"{listed(self._names(self.huge))}."
            )
        if self.tiny.any():
            advice.append(
                f"Squares of spreads as small as {self.spreads[self.tiny].min():.2g} vanish; "
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
    if landmarks > 2 and data.columns == column_names(landmarks, 2):
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


def _reach(kernel: Kernel, data: Data, notes: list[str]) -> dict[str, Any] | None:
    """Return how far the data spread on the sphere in feature space, for at most 1,000 rows."""
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
    return {
        "mean_angle": middle,
        "largest_angle": largest,
        "n_rows": len(angles),
        "meaning": _meaning(middle, largest),
    }


def _meaning(middle: float, largest: float) -> str:
    """Interpret angles from the mean; a tangent vector is θ/sin θ times its chord's part."""
    if largest >= 90.0:
        return (
            "some points lie beyond a quarter of a great circle, where the mean need not be "
            "unique; a larger bandwidth brings them closer"
        )
    if middle >= _ALONE:
        return (
            "nearly all points are at right angles to each other, so few have neighbours; try a "
            "larger bandwidth"
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


def _estimates(data: Data, kernel: str | None, plan: Any, notes: list[str]) -> list[Estimate]:
    clusters = _DEFAULT_CLUSTERS if data.labels is None else len(np.unique(data.labels))
    found: list[Estimate] = []
    for command, number in (("embed", plan.k), ("cluster", min(clusters, len(data)))):
        started = found[-1].start_seconds if found else 0.0
        try:
            found.append(estimate(data, plan, command, kernel, number, started))
        except (ValueError, ImportError) as problem:  # the command itself would fail too
            notes.append(f"No estimate: {problem}")
    return found


def _memory_advice(estimates: Sequence[Estimate], available: int | None) -> list[str]:
    return [
        f"{each.command} would take {format_bytes(each.extra_bytes)} more memory, and "
        f"{format_bytes(available)} are available: take a sample of the rows."
        for each in estimates
        if available is not None and each.extra_bytes > available
    ]
