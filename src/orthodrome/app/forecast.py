"""Estimate the time and memory of a command before it runs.

A probe runs the command on a sample of the rows, with the solver and the storage that will be used
for all rows. The time of each step is extrapolated to n rows as a + b n^p, where p depends on the
plan of the fit: 3 if LAPACK decomposes the whole Gram matrix, 2 for products with the Gram matrix,
1 for explicit coordinates. Expect only the right order of magnitude.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

from .._core.memory import format_bytes, parse_bytes
from ..gram.tiled import stored_bytes
from ..kernels import as_kernel
from ..plan import Plan, plan_fit
from ..plots._matplotlib import house_style
from ..plots.interactive import MAX_POINTS
from ..plots.report import render_report
from ..rows import as_rows
from .clustering import cluster
from .embedding import MAX_NEIGHBOR_ROWS, embed
from .inputs import Data
from .memory import resident_memory
from .models import Choice, last_step, make_model
from .results import sample_rows, select_rows

_WARM_UP_ROWS, _PROBE_ROWS, _ANCHOR_PROBE_ROWS = 32, 500, 2000  # rows of the probes
# Seconds to import the package; capped, since the process may have done other work before.
_IMPORT_SECONDS = min(time.process_time(), 10.0)
# Vectors and matrices in addition to the Gram matrix, measured with tracemalloc.
_KRYLOV_VECTORS, _KRYLOV_OTHERS = 26, 100  # vectors per component; other vectors
_DENSE_MATRICES = {"embed": 2.1, "cluster": 3.1}
_NEIGHBORS_BYTES = 32  # per pair of rows when neighbours are compared
_COORDINATE_VECTORS = 60  # vectors of length n, in addition to the coordinates
_COORDINATE_MATRICES = 8  # square matrices; the size is the number of anchors

# The method of each command, and its options up to the number of components or clusters.
_COMMANDS = {"embed": ("kpga", "--method kpga --components"), "cluster": ("mixture", "-k")}


@dataclass(frozen=True)
class Estimate:
    """Estimated time and memory of a command for all rows.

    Attributes
    ----------
    command, method : str
        The command and its method.
    arguments : str
        The command line without the file.
    seconds : float
        Total time of the command.
    start_seconds : float
        Start-up time, included in `seconds`: imports and loading of compiled code.
    peak_bytes : int
        Peak memory of the process.
    extra_bytes : int
        Memory of the run itself, included in `peak_bytes`.
    parts : dict of str to float
        Seconds of each step of the command.
    probed_rows : int
        Number of rows in the sample.
    """

    command: str
    method: str
    arguments: str
    seconds: float
    start_seconds: float
    peak_bytes: int
    extra_bytes: int
    parts: dict[str, float]
    probed_rows: int


def estimate_line(values: dict[str, Any]) -> str:
    """Format an estimate (a dict) as one line of text."""
    return (
        f"{values['command']} ({values['method']}): {format_seconds(values['seconds'])}, including "
        f"{format_seconds(values['start_seconds'])} to start, and "
        f"{format_bytes(values['peak_bytes'])} of memory for `{values['arguments']}`; a rough "
        "estimate"
    )


def kpga_plan(data: Data, kernel: str | None, n_components: int) -> Plan:
    """Return the plan of a kernel PGA fit: solver and storage."""
    choice = Choice("kpga", kernel, parameters={"n_components": n_components})
    model = last_step(make_model(choice, data))
    kernel_object = as_kernel(model.kernel)
    rows = as_rows(data.X, kernel_object, model)
    return plan_fit(model, rows, kernel_object, passes=model._geometry.passes)


def estimate(
    data: Data, plan: Plan, command: str, kernel: str | None, count: int, started: float = 0.0
) -> Estimate:
    """Estimate the time and memory of a command.

    Parameters
    ----------
    data : Data
        All rows.
    plan : Plan
        The plan of a decomposition of all rows.
    command : {"embed", "cluster"}
        "embed" uses kernel PGA, "cluster" a mixture.
    kernel : str or None
        The name of the kernel.
    count : int
        The number of components or clusters.
    started : float, default=0.0
        Start-up seconds from an earlier estimate in this process, whose code is already loaded.

    Raises
    ------
    ValueError
        If the method cannot run on these data. The command would raise the same error.
    """
    method, options = _COMMANDS[command]
    choice = Choice(method, kernel, parameters={"n_components": count})
    size = min(len(data), _ANCHOR_PROBE_ROWS if plan.face == "coordinates" else _PROBE_ROWS)
    half = max(size // 2, 1)
    warm_up = _probe(data, choice, plan, _WARM_UP_ROWS)  # loads compiled code and plotting
    times = {m: _probe(data, choice, plan, m) for m in (half, size)}
    loading = max(sum(warm_up.values()) - sum(times[half].values()), 0.0)
    start = (started or _IMPORT_SECONDS) + loading
    parts = {"start": start, "reading": data.read_seconds}
    for name, seconds in times[size].items():
        power, n = _growth(name, plan, len(data))
        max_slope = seconds / size**power
        slope = max(seconds - times[half][name], 0.0) / max(size**power - half**power, 1)
        # the smaller sample may be slower by chance, which would make the slope zero
        slope = min(slope, max_slope) or max_slope
        parts[name] = seconds + slope * max(n**power - size**power, 0)
    extra = _bytes(plan, data, command)
    peak, arguments = (resident_memory() or 0) + extra, f"orthodrome {command} {options} {count}"
    total = sum(parts.values())
    return Estimate(command, method, arguments, total, start, peak, extra, parts, size)


def _probe(data: Data, choice: Choice, plan: Plan, size: int) -> dict[str, float]:
    """Run a command on a sample of the rows; return the seconds of each step."""
    sample = select_rows(data, sample_rows(len(data), size, 0))
    parameters = dict(choice.parameters) | {"storage": plan.storage}
    parameters["n_components"] = min(parameters["n_components"], len(sample))
    if plan.name in ("dense", "krylov", "nystroem"):
        parameters["solver"] = plan.name
    run: Any = embed if choice.method == "kpga" else cluster
    with warnings.catch_warnings(), house_style():
        warnings.simplefilter("ignore")  # the command itself will warn
        result = run(sample, replace(choice, parameters=parameters))
        begin = time.perf_counter()
        render_report("", result.sections())
        rendered = time.perf_counter()
        result.files()
    return result.seconds | {"page": rendered - begin, "files": time.perf_counter() - rendered}


def _growth(step: str, plan: Plan, n: int) -> tuple[int, int]:
    """Return the exponent p of a step's time n^p, and the number of rows the step uses."""
    if step == "neighbourhoods":
        return 2, min(n, MAX_NEIGHBOR_ROWS)
    if step == "page":
        return 1, min(n, MAX_POINTS)
    if step == "files" or plan.face == "coordinates":
        return 1, n
    return (3 if plan.name == "dense" and step != "clustering" else 2), n


def _bytes(plan: Plan, data: Data, command: str) -> int:
    """Return the bytes that a run adds to the memory of the process."""
    n, itemsize = len(data), data.X.dtype.itemsize
    budget = parse_bytes(plan.request.memory_budget)
    if plan.face == "coordinates":
        is_explicit = plan.name == "coordinates"  # coordinates of the kernel, without anchors
        d = data.X.shape[1] if is_explicit else min(n, plan.solver.max_anchors(plan.k))
        stored = n * d * itemsize if n * d * itemsize <= budget else 0
        extra = stored + 8 * d * d * _COORDINATE_MATRICES + 8 * n * _COORDINATE_VECTORS
    else:
        extra = stored_bytes(n, itemsize) if plan.storage == "memory" else 0
        if plan.name == "dense":
            extra += int(_DENSE_MATRICES[command] * n**2 * itemsize)
        else:
            extra += (_KRYLOV_VECTORS * plan.k + _KRYLOV_OTHERS) * n * itemsize
    if command == "embed":
        extra = max(extra, _NEIGHBORS_BYTES * min(n, MAX_NEIGHBOR_ROWS) ** 2)
    return extra + 2 * data.X.nbytes


def format_seconds(seconds: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> from orthodrome.app.forecast import format_seconds
    >>> format_seconds(0.04), format_seconds(75), format_seconds(9000)
    ('less than 0.1 s', 'about 1.2 min', 'about 2.5 h')
    """
    if seconds < 0.1:
        return "less than 0.1 s"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"about {seconds / size:.2g} {unit}"
    return f"about {seconds:.2g} s"
