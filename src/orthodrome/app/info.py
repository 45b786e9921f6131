"""The command info: describe data, recommend a method, and estimate time and memory.

The method comparison fits all methods to a sample. The time of kernel PGA is extrapolated to n rows
as n^p, where p depends on the plan of the fit: 3 if LAPACK decomposes the whole Gram matrix, 2 for
products with the Gram matrix, 1 for explicit coordinates. The plan also gives the memory. Expect
only the right order of magnitude.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from joblib.logger import short_format_time
from sklearn.preprocessing import StandardScaler

from .._core.memory import format_bytes
from .._core.types import Array
from .._core.unit import squared_radius
from ..gram import Scaled, gram_operator
from ..kernels import Kernel, as_fitted_kernel, as_kernel
from ..plan import Plan, Request, make_plan
from ..rows import as_rows
from ..sphere.karcher import find_mean
from .embedding import MAX_NEIGHBOR_ROWS, TITLES, Comparison, compare_methods
from .inputs import Data
from .inputs.checks import available_memory, column_names, format_names
from .inputs.cleaning import Description, column_lines
from .inputs.landmarks import fix_mirrored, landmark_notes
from .models import (
    Choice,
    check_scales,
    invalid_spreads,
    last_step,
    make_model,
    resolve_standardize,
)
from .results import Work, count

_MAX_SPREAD_ROWS = 1000
# Angle in degrees up to which tangent vectors are at most 2 % longer than chords.
_FLAT_ANGLE = 20.0
_ISOLATED_ANGLE = 75.0  # mean angle above which most points have hardly any neighbours
# Seconds to import the package; capped, since the process may have done other work before.
_IMPORT_SECONDS = min(time.process_time(), 10.0)
_PAGE_SECONDS = 3.0  # to score the result, and to draw and write the page
_NEIGHBORS_BYTES = 32  # per pair of rows when neighbours are compared


def describe(
    data: Data, *, n_components: int = 2, standardize: str = "auto", probe: bool = True
) -> dict[str, Any]:
    """Describe data, recommend a method, and estimate the time and memory of a run.

    Parameters
    ----------
    data : Data
        The data.
    n_components : int, default=2
        Number of components of the embedding.
    standardize : {"auto", "yes", "no"}, default="auto"
        Whether the commands would standardise the columns.
    probe : bool, default=True
        Whether to run methods on a sample, to recommend one and to estimate the time.

    Returns
    -------
    dict
        The description, ready for JSON: dicts, lists, strings and finite numbers.

        - path, kind, n, d, shape, dtype, columns, id_name, label_name: the data;
        - class_sizes: number of rows in each class, if there are labels;
        - constant_columns: columns with a single value;
        - n_duplicates: number of rows that repeat another row;
        - kernel, kernel_reason, sigma: the suggested kernel, the reason, and its bandwidth;
        - standardize: whether the commands would standardise the columns; if so, the kernel, the
          angles and the plan are those of the standardised data;
        - comparison: scores and recommendation, as the command compare gives them;
        - reach: angles between the points and their Karcher mean, in degrees, and their meaning;
        - solver, storage, plan_reason: what "auto" chooses for kernel PGA, and why;
        - estimate: seconds and bytes of memory of embed or cluster;
        - available_bytes: available memory, if known;
        - notes, advice: remarks on the data, and what to do.

        If some specimens are mirrored, the recommendation and the estimates are for the data with
        these specimens reflected.

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
    notes, advice = list(data.notes), _class_advice(data)
    if data.kind == "shapes":
        notes += landmark_notes(data)
        data = replace(fix_mirrored(data), notes=())
        if data.reflected:
            notes.append("The recommendation is for the data with --fix-mirrored.")
    scaled, note = resolve_standardize(standardize, data)
    notes += [note] if note else []
    if scaled:
        check_scales(data)
    varies = (matrix != matrix[0]).any(axis=0)
    constant = tuple(np.array(data.columns, dtype=object)[~varies])
    advice += _column_advice(data, constant)
    unusable = "" if varies.any() else _all_equal_reason(data)
    n_duplicates = n - len(_distinct(matrix))
    if n_duplicates:
        notes.append(f"{n_duplicates} of {n} rows are duplicates of another row.")
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
        "class_sizes": _class_sizes(data),
        "constant_columns": constant,
        "n_duplicates": n_duplicates,
        "standardize": scaled,
        **_method_facts(data, scaled, n_components, unusable, probe, notes, advice),
        "notes": notes,
        "advice": advice,
    }


def _method_facts(
    data: Data,
    scaled: bool,
    n_components: int,
    unusable: str,
    probe: bool,
    notes: list[str],
    advice: list[str],
) -> dict[str, Any]:
    """Return facts on the kernel, the method, time and memory; append notes and advice."""
    used = replace(data, X=StandardScaler().fit_transform(data.X)) if scaled else data
    name, reason = (None, unusable) if unusable else _suggest_kernel(used)
    try:
        kernel = None if name is None else as_fitted_kernel(name, used.X)
    except ValueError as problem:
        name, kernel, reason = None, None, f"{name} cannot be used: {problem}"
    reach, plan, comparison, forecast = None, None, None, None
    available = available_memory()
    if kernel is not None:
        reach = _reach(kernel, used, notes)
        plan = kpga_plan(used, name, min(n_components, len(data)))
        comparison = _comparison(data, scaled, n_components, notes) if probe else None
    if plan is not None and comparison is not None:
        forecast = estimate(used, plan, comparison)
        if available is not None and forecast["bytes"] > available:
            advice.append(
                f"The commands would need {format_bytes(forecast['bytes'])} of memory, but "
                f"only {format_bytes(available)} are available. Use a sample of the rows."
            )
    sigma = getattr(kernel, "sigma_", None)
    return {
        "comparison": None if comparison is None else comparison.facts(),
        "kernel": name,
        "kernel_reason": reason,
        "sigma": None if sigma is None else float(sigma),
        "reach": reach,
        "solver": getattr(plan, "name", None),
        "storage": getattr(plan, "storage", None),
        "plan_reason": getattr(plan, "reason", None),
        "estimate": forecast,
        "available_bytes": available,
    }


def describe_file(found: Description, **options: Any) -> dict[str, Any]:
    """Describe a file, even if other commands could not use it.

    Parameters
    ----------
    found : Description
        The file.
    **options
        As in :func:`describe`.

    Returns
    -------
    dict
        As in :func:`describe`, and two more keys: file_columns, the facts of each column of a
        table; and problem, the reason why the other commands would stop, or None. If there are no
        data at all: path, n, file_columns, problem, notes and advice.
    """
    facts: dict[str, Any] = {"path": found.path, "n": found.n_rows, "notes": [], "advice": []}
    if found.data is not None:
        facts = describe(found.data, **options)
    return {**facts, "file_columns": found.columns, "problem": found.problem or None}


def description_lines(info: dict[str, Any]) -> list[str]:
    """Return the description as lines of the form "name: text"."""
    lines = _data_lines(info) if "d" in info else [f"data: {count(info['n'], 'row')}"]
    columns = column_lines(info.get("file_columns", []))
    if info.get("problem"):
        columns.append(f"problem: the other commands would stop: {info['problem']}")
    lines[1:1] = columns
    lines += [f"note: {note}" for note in info["notes"]]
    return lines + [f"advice: {advice}" for advice in info["advice"]]


def _data_lines(info: dict[str, Any]) -> list[str]:
    size = f"{count(info['n'], 'row')} of {count(info['d'], 'feature')}"
    if info["kind"] == "shapes":
        _, k, dimension = info["shape"]
        size = f"{count(info['n'], 'shape')} of {count(k, 'landmark')} in {dimension} dimensions"
    lines = [f"data: {size}, {info['dtype']}"]
    if info["class_sizes"] is not None:
        sizes = ", ".join(f"{name} {size}" for name, size in info["class_sizes"].items())
        lines.append(f"classes ({info['label_name']}): {len(info['class_sizes'])}: {sizes}")
    width = "" if info["sigma"] is None else f", sigma {info['sigma']:.6g} (rule: mean)"
    lines.append(f"suggested kernel: {info['kernel'] or 'none'}{width}: {info['kernel_reason']}")
    if info["comparison"] is not None:
        lines.append(f"recommended method: {info['comparison']['recommendation']}")
    if info["reach"] is not None:
        lines.append(
            "spread on the sphere: {mean_angle:.0f}° from the mean on average, "
            "{largest_angle:.0f}° at most: {meaning}".format(**info["reach"])
        )
    if info["estimate"] is not None:
        memory = format_bytes(info["estimate"]["bytes"])
        if info["available_bytes"] is not None:
            memory += f" of {format_bytes(info['available_bytes'])}"
        seconds = short_format_time(info["estimate"]["seconds"]).strip()
        lines.append(
            f"estimate: embed or cluster takes about {seconds}, and {memory} of memory in addition "
            f"to the program itself. Both values are rough. Solver: {info['solver']}, because "
            f"{info['plan_reason']}."
        )
    return lines


# ---------------------------------------------------------------------------- columns and rows


def _column_advice(data: Data, constant: tuple[str, ...]) -> list[str]:
    """Return advice on columns to remove, or to convert to other units."""
    if len(constant) == len(data.columns):
        reason = _all_equal_reason(data)
        return [f"{reason.capitalize()}: nothing can be embedded, clustered or classified."]
    advice = []
    invalid = invalid_spreads(data)
    if invalid.any():
        names = format_names(np.array(data.columns, dtype=object)[invalid])
        advice.append(f"Squares of these columns overflow or are zero. Use other units: {names}.")
    if data.kind == "table" and constant:
        advice.append(f"Constant columns carry no information: {format_names(constant)}.")
    return advice


def _distinct(matrix: Array) -> Array:
    """Return the distinct rows, as bytes."""
    rows = np.ascontiguousarray(matrix + 0.0)  # turns -0.0 into 0.0
    return np.unique(rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))))


def _all_equal_reason(data: Data) -> str:
    return "all rows are equal" if len(data) > 1 else "there is only one row"


def _class_sizes(data: Data) -> dict[str, int] | None:
    if data.labels is None:
        return None
    names, counts = np.unique(data.labels, return_counts=True)
    return {str(name): int(size) for name, size in zip(names, counts, strict=True)}


def _class_advice(data: Data) -> list[str]:
    sizes = _class_sizes(data)
    if sizes is None:
        options = "--label" if data.kind == "table" else "--labels or --label-regex"
        return [f"To classify, give the labels with {options}."]
    if len(sizes) > len(data) / 2:
        return [
            f"{data.label_name} has {len(sizes)} different values in {len(data)} rows. Check that "
            "it holds classes, not row names or measurements."
        ]
    return []


# ---------------------------------------------------------------------------- kernel and sphere


def _comparison(
    data: Data, standardize: bool, n_components: int, notes: list[str]
) -> Comparison | None:
    """Compare the methods, as the command compare does; return None with a note if that fails."""
    work = Work(None, **dict.fromkeys(TITLES, 1.0))
    choice = Choice("kpca", standardize=standardize)
    try:
        return compare_methods(data, choice, work, n_components=n_components)
    except ValueError as problem:
        notes.append(f"No method can be recommended: {problem}")
        return None


def _suggest_kernel(data: Data) -> tuple[str | None, str]:
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
    lengths = np.sqrt(np.einsum("ij,ij->i", data.X, data.X, dtype=np.float64))
    if data.X.shape[1] > 1 and np.allclose(lengths, 1.0, rtol=0.0, atol=1e-5):
        return "linear", "the rows are unit vectors, that is, points on a sphere"
    return "gaussian", "a general choice for measurements"


def _reach(kernel: Kernel, data: Data, notes: list[str]) -> dict[str, Any] | None:
    """Return the angles between (at most 1,000) rows and their mean on the sphere."""
    rows = data.sample_rows(_MAX_SPREAD_ROWS, 0)
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
    """Interpret the angles.

    The Log map of a point is θ/sin θ times its projection on the tangent space at the mean.
    """
    if largest >= 90.0 or mean_angle >= _ISOLATED_ANGLE:
        return "few rows have close neighbours, or the mean is not unique; try a larger bandwidth"
    angle = math.radians(max(largest, 1e-6))
    stretch = max(angle / math.sin(angle) - 1, 1e-3)
    if largest < _FLAT_ANGLE:
        return f"nearly flat, so kernel PGA and kernel PCA agree to within {stretch:.1%}"
    return f"distances from the mean are up to {stretch:.0%} longer than in kernel PCA"


# ---------------------------------------------------------------------------- time and memory


def kpga_plan(data: Data, kernel: str | None, n_components: int) -> Plan:
    """Return the plan of a kernel PGA fit: solver and storage."""
    choice = Choice("kpga", kernel, parameters={"n_components": n_components})
    model = last_step(make_model(choice, data))
    kernel_object = as_kernel(model.kernel)
    rows = as_rows(data.X, kernel_object, model)
    return make_plan(rows, kernel_object, Request.of(model, passes=model._geometry.passes))


def estimate(data: Data, plan: Plan, comparison: Comparison) -> dict[str, float]:
    """Estimate the time and memory of the commands embed and cluster.

    Parameters
    ----------
    data : Data
        All rows.
    plan : Plan
        The plan of a decomposition of all rows.
    comparison : Comparison
        The methods fitted to a sample of the rows, with their times.

    Returns
    -------
    dict
        - seconds: time of the run, without reading the file;
        - bytes: memory of the run, in addition to the memory of the program itself.
    """
    n, fit = len(data), next(each for each in comparison.results if each.method == "kpga")
    power = 1 if plan.face == "coordinates" else 3 if plan.name == "dense" else 2
    seconds = fit.seconds * (n / len(comparison.data)) ** power
    neighbors = _NEIGHBORS_BYTES * min(n, MAX_NEIGHBOR_ROWS) ** 2
    return {
        "seconds": _IMPORT_SECONDS + seconds + _PAGE_SECONDS,
        "bytes": max(plan.memory, neighbors) + 2 * data.X.nbytes,
    }
