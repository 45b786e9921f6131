"""The command info: describe data, suggest a kernel, and estimate time and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.memory import format_bytes
from ..gram import Scaled, gram_operator
from ..gram.unit import squared_radius
from ..kernels import Kernel, as_fitted_kernel
from ..sphere.karcher import find_mean
from .forecast import estimate, estimate_line, kpga_plan
from .inputs import Data
from .inputs.checks import column_names, format_names
from .memory import available_memory
from .pages import count
from .results import sample_rows

_MAX_SPREAD_ROWS = 1000
# Angle in degrees up to which tangent vectors are at most 2 % longer than chords.
_FLAT_ANGLE = 20.0
_ISOLATED_ANGLE = 75.0  # mean angle above which most points have hardly any neighbours
_DEFAULT_CLUSTERS = 3
_MAX_SCALE_RATIO = 1e3  # above this, columns should be standardised
_SQUARE_MARGIN = 1e3  # safety factor for sums of squared differences
_STORAGE = {
    "memory": "kept in memory",
    "disk": "kept on disk",
    "recompute": "recomputed for each product",
    "auto": "chosen during the fit",
}


def describe(data: Data, *, n_components: int = 10, probe: bool = True) -> dict[str, Any]:
    """Describe data, suggest a kernel, and estimate the time and memory of a run.

    Parameters
    ----------
    data : Data
        The data.
    n_components : int, default=10
        Number of components of the embedding to estimate.
    probe : bool, default=True
        Whether to estimate time and memory by running methods on a small sample.

    Returns
    -------
    dict
        The description, ready for JSON: dicts, lists, strings and finite numbers.

        - path, kind, n, d, shape, dtype, columns, id_name, label_name: the data;
        - class_sizes: number of rows in each class, if there are labels;
        - constant_columns: columns with a single value;
        - n_duplicates: number of rows that repeat another row;
        - scale_ratio: ratio of the largest to the smallest standard deviation of a column;
        - kernel, kernel_reason, sigma: the suggested kernel, the reason, and its bandwidth;
        - reach: angles between the points and their Karcher mean, in degrees, and their meaning;
        - solver, storage, plan_reason: what "auto" chooses for kernel PGA, and why;
        - estimates: one for each command, see :func:`orthodrome.app.forecast.estimate`;
        - available_bytes: available memory, if known;
        - notes, advice: remarks on the data, and what to do.

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
    matrix = data.X.reshape(n, -1)
    scales = _Scales(matrix, data.columns)
    notes, advice = list(data.notes), scales.advice(standardize=data.kind == "table")
    n_duplicates = n - len(_distinct(matrix))
    if n_duplicates:
        notes.append(f"{n_duplicates} of {n} rows are duplicates of another row.")
    unusable = scales.unusable()
    name, reason = (None, unusable) if unusable else _suggest_kernel(data, matrix)
    kernel = _fit_kernel(name, data, notes)
    sigma = getattr(kernel, "sigma_", None)
    plan = None if kernel is None else kpga_plan(data, name, min(n_components, n))
    estimates = _estimates(data, name, plan, notes) if probe and plan is not None else []
    available = available_memory()
    sizes = _class_sizes(data, advice)
    advice += _memory_advice(estimates, available)
    return {
        "path": data.path,
        "kind": data.kind,
        "n": n,
        "d": matrix.shape[1],
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
        "estimates": estimates,
        "available_bytes": available,
        "notes": notes,
        "advice": advice,
    }


def description_lines(info: dict[str, Any]) -> list[str]:
    """Return the description as lines of the form "name: text"."""
    size = f"{count(info['n'], 'row')} of {count(info['d'], 'feature')}"
    if info["kind"] == "shapes":
        _, k, dimension = info["shape"]
        size = f"{count(info['n'], 'shape')} of {count(k, 'landmark')} in {dimension} dimensions"
    lines = [f"data: {size}, {info['dtype']}", f"features: {format_names(info['columns'])}"]
    if info["id_name"] is not None:
        lines.append(f"row names: {info['id_name']}")
    if info["class_sizes"] is not None:
        sizes = ", ".join(f"{name} {size}" for name, size in info["class_sizes"].items())
        lines.append(f"classes ({info['label_name']}): {len(info['class_sizes'])}: {sizes}")
    width = "" if info["sigma"] is None else f", sigma {info['sigma']:.6g} (rule: mean)"
    lines.append(f"suggested kernel: {info['kernel'] or 'none'}{width}: {info['kernel_reason']}")
    if info["reach"] is not None:
        lines.append(
            "spread on the sphere: {mean_angle:.0f}° from the mean on average, "
            "{largest_angle:.0f}° at most: {meaning}".format(**info["reach"])
        )
    if info["solver"] is not None:
        lines.append(f"solver: {info['solver']}: {info['plan_reason']}")
        lines.append(f"Gram matrix or coordinates: {_STORAGE[info['storage']]}")
    lines += [f"estimate: {estimate_line(each)}" for each in info["estimates"]]
    if info["available_bytes"] is not None:
        lines.append(f"available memory: {format_bytes(info['available_bytes'])}")
    lines += [f"note: {note}" for note in info["notes"]]
    return lines + [f"advice: {advice}" for advice in info["advice"]]


# ---------------------------------------------------------------------------- columns and rows


class _Scales:
    """The spread of each column, and whether its values can be squared without overflow.

    Distances and standard deviations are computed from squares.
    """

    def __init__(self, matrix: NDArray[Any], columns: Sequence[str]) -> None:
        self.n, self.columns = len(matrix), columns
        # scaled first, so that no square overflows or underflows
        self.sizes = np.abs(matrix).max(axis=0).astype(np.float64)
        spreads = (matrix / np.where(self.sizes > 0, self.sizes, 1.0)).std(axis=0) * self.sizes
        varies = (matrix != matrix[0]).any(axis=0)
        smallest = np.finfo(np.float64).smallest_subnormal
        self.spreads = np.where(varies, np.maximum(spreads, smallest), 0.0)
        self.constant = self._names(self.spreads == 0)
        self.ratio = 1.0
        if varies.any():
            with np.errstate(over="ignore"):
                ratio = float(self.spreads.max() / self.spreads[varies].min())
            self.ratio = min(ratio, float(np.finfo(np.float64).max))  # JSON has no infinity
        limits = np.finfo(matrix.dtype)
        self.huge = self.sizes > np.sqrt(float(limits.max)) / _SQUARE_MARGIN
        self.tiny = varies & (self.spreads < np.sqrt(float(limits.tiny)) * _SQUARE_MARGIN)

    def _names(self, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, keep in zip(self.columns, chosen, strict=True) if keep)

    def unusable(self) -> str:
        """Return why no method can use these data, or an empty string."""
        if not self.spreads.any():
            return "all rows are equal" if self.n > 1 else "there is only one row"
        if self.huge.any():
            return "some values are too large: their squares overflow"
        if (self.tiny | (self.spreads == 0)).all():
            return "the differences are too small: their squares underflow to zero"
        return ""

    def advice(self, *, standardize: bool) -> list[str]:
        """Return which columns to remove, to standardise, or to convert to other units."""
        if not self.spreads.any():
            reason = "All rows are equal" if self.n > 1 else "There is only one row"
            return [f"{reason}: nothing can be embedded, clustered or classified."]
        advice = []
        if standardize and self.constant:
            advice.append(f"Constant columns carry no information: {format_names(self.constant)}.")
        if standardize and self.ratio > _MAX_SCALE_RATIO and not (self.huge | self.tiny).any():
            smallest = self.columns[int(np.argmin(np.where(self.spreads, self.spreads, np.inf)))]
            advice.append(
                f"Standard deviations of the columns differ by a factor of {self.ratio:.2g}, from "
                f"{smallest} to {self.columns[int(np.argmax(self.spreads))]}, so distances depend "
                "almost only on the latter. Use --standardize."
            )
        units = "Use other units (--standardize would fail too):"
        if self.huge.any():
            advice.append(
                f"Squares of values as large as {self.sizes.max():.2g} overflow. {units} "
                f"{format_names(self._names(self.huge))}."
            )
        if self.tiny.any():
            advice.append(
                f"Squares of differences as small as {self.spreads[self.tiny].min():.2g} are zero. "
                f"{units} {format_names(self._names(self.tiny))}."
            )
        return advice


def _distinct(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct rows, as bytes."""
    rows = np.ascontiguousarray(matrix + 0.0)  # turns -0.0 into 0.0
    return np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))))


def _class_sizes(data: Data, advice: list[str]) -> dict[str, int] | None:
    if data.labels is None:
        return None
    names, counts = np.unique(data.labels, return_counts=True)
    sizes = {str(name): int(size) for name, size in zip(names, counts, strict=True)}
    singletons = [name for name, size in sizes.items() if size == 1]
    if len(sizes) == 1:
        advice.append("There is only one class; a classifier needs at least two.")
    elif len(sizes) > len(data) / 2:
        advice.append(
            f"{data.label_name} has {len(sizes)} different values in {len(data)} rows. Check that "
            "it holds classes, not row names or measurements."
        )
    elif singletons:
        text = format_names(singletons)
        advice.append(f"Classes with a single row cannot be cross-validated: {text}.")
    return sizes


# ---------------------------------------------------------------------------- kernel and sphere


def _suggest_kernel(data: Data, matrix: NDArray[Any]) -> tuple[str | None, str]:
    if data.kind == "shapes":
        if data.X.shape[2] == 3:
            return None, (
                "there is no kernel for shapes in three dimensions; align the specimens and save "
                "their coordinates as a table"
            )
        return "veronese_whitney", "for planar shapes; it ignores position, size and rotation"
    landmarks = len(data.columns) // 2
    if landmarks > 2 and data.columns == column_names(landmarks, 2):
        return "veronese_whitney", "the columns x1, y1, x2, y2, … are planar landmarks"
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    if matrix.shape[1] > 1 and np.allclose(lengths, 1.0, rtol=0.0, atol=1e-5):
        return "linear", "the rows are unit vectors, that is, points on a sphere"
    return "gaussian", "a general choice for measurements"


def _fit_kernel(name: str | None, data: Data, notes: list[str]) -> Kernel | None:
    """Return the kernel fitted to the data, or None with a note if it cannot be fitted."""
    if name is None:
        return None
    try:
        return as_fitted_kernel(name, data.X)
    except ValueError as problem:
        notes.append(f"The kernel {name} cannot be used: {problem}")
        return None


def _reach(kernel: Kernel, data: Data, notes: list[str]) -> dict[str, Any] | None:
    """Return the angles between (at most 1,000) rows and their mean on the sphere."""
    rows = sample_rows(len(data), _MAX_SPREAD_ROWS, 0)
    try:
        gram = gram_operator(kernel, kernel.validate(data.X[rows]))
        unit = Scaled(gram, 1.0 / squared_radius(gram.diagonal()))
        mean = find_mean(unit, None, tol=1e-8, max_iter=100)
    except ValueError as problem:
        notes.append(f"The spread on the sphere is not defined: {problem}")
        return None
    angles = np.degrees(np.arccos(np.clip(mean.cosines, -1.0, 1.0)))
    mean_angle, largest = float(angles.mean()), float(angles.max())
    return {
        "mean_angle": mean_angle,
        "largest_angle": largest,
        "n_rows": len(angles),
        "meaning": _meaning(mean_angle, largest),
    }


def _meaning(mean_angle: float, largest: float) -> str:
    """Interpret the angles: a tangent vector is θ/sin θ times the projection of its chord."""
    if largest >= 90.0:
        return (
            "some points are farther from the mean than a quarter of a great circle, so the mean "
            "may not be unique; try a larger bandwidth"
        )
    if mean_angle >= _ISOLATED_ANGLE:
        return (
            "nearly all points are orthogonal to each other, so few have close neighbours; try a "
            "larger bandwidth"
        )
    stretch = 0.0 if largest < 1e-6 else math.radians(largest) / math.sin(math.radians(largest)) - 1
    if largest < _FLAT_ANGLE:
        return (
            "the data are nearly flat, so kernel PGA and kernel PCA agree to within "
            f"{max(stretch, 1e-3):.1%}"
        )
    return (
        f"distances from the mean along the sphere are up to {stretch:.0%} longer than in kernel "
        "PCA, so kernel PGA is worth using"
    )


# ---------------------------------------------------------------------------- time and memory


def _estimates(data: Data, kernel: str | None, plan: Any, notes: list[str]) -> list[dict[str, Any]]:
    clusters = _DEFAULT_CLUSTERS if data.labels is None else len(np.unique(data.labels))
    estimates = []
    for command, number in (("embed", plan.k), ("cluster", min(clusters, len(data)))):
        try:
            estimates.append(estimate(data, plan, command, kernel, number))
        except (ValueError, ImportError) as problem:  # the command itself would fail too
            notes.append(f"No estimate for {command}: {problem}")
    return estimates


def _memory_advice(estimates: list[dict[str, Any]], available: int | None) -> list[str]:
    return [
        f"{each['command']} would need {format_bytes(each['extra_bytes'])} of memory, but only "
        f"{format_bytes(available)} are available. Use a sample of the rows."
        for each in estimates
        if available is not None and each["extra_bytes"] > available
    ]
