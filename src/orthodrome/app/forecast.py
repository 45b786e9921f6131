"""Time and memory of a command before it starts: from the plan of the fit and one small probe.

The probe runs the command on a sample of the rows, with the solver and the storage that all rows
will get. Each part of its time is extrapolated as a + b m^p, where p follows from the plan: 3 if
LAPACK gets the whole Gram matrix, 2 for products with it, 1 for coordinates. Only the order of
magnitude is meant.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

from .._core.memory import format_bytes, parse_bytes
from ..gram.tiled import stored_bytes
from ..kernels import as_kernel
from ..plan import Plan, Request, make_plan
from ..plots._matplotlib import house_style
from ..plots.interactive import MAX_POINTS
from ..plots.report import render_report
from ..rows import as_rows
from .clustering import cluster
from .embedding import MOST_NEIGHBORS, embed
from .inputs import Data
from .memory import resident_memory
from .models import Choice, last_step, make_model
from .results import drawn, rows_of

_TINY, _SAMPLE, _ANCHOR_SAMPLE = 32, 500, 2000  # rows of the probe
# Seconds of the imports; a process that is older has done other things before.
_IMPORTS = min(time.process_time(), 10.0)
# Vectors and matrices besides the Gram matrix, measured with tracemalloc.
_KRYLOV_VECTORS, _KRYLOV_OTHERS = 26, 100  # for each component, and in all
_DENSE_MATRICES = {"embed": 2.1, "cluster": 3.1}
_NEIGHBORS_BYTES = 32  # for each pair of rows whose neighbours are compared
_COORDINATE_VECTORS = 60  # of n numbers, besides the coordinates
_COORDINATE_SQUARES = 8  # of as many rows and columns as there are anchors


# The method of a command, and its options before the number of components or clusters.
_COMMANDS = {"embed": ("kpga", "--method kpga --components"), "cluster": ("mixture", "-k")}


@dataclass(frozen=True)
class Estimate:
    """An estimate of what a command takes for all rows.

    Attributes
    ----------
    command, method : str
        The command and its method.
    arguments : str
        The command line, without the file.
    seconds : float
        Time of the whole command, from its start to the last file written.
    start_seconds : float
        How much of it is the start of the program: imports, and loading compiled code.
    peak_bytes : int
        The most memory that the process will have.
    extra_bytes : int
        How much of it is for this run, in addition to what the process has now.
    parts : dict of str to float
        The seconds of each part of the command.
    probed_rows : int
        The size of the sample.
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


def estimate_line(found: dict[str, Any]) -> str:
    """Return an estimate, given as a dict, for people."""
    return (
        f"{found['command']} ({found['method']}): {format_seconds(found['seconds'])} for the whole "
        f"command ({found['arguments']}), of which {format_seconds(found['start_seconds'])} to "
        f"start, and {format_bytes(found['peak_bytes'])} of memory; a rough estimate"
    )


def plan_of(data: Data, kernel: str | None, n_components: int) -> Plan:
    """Return how kernel PGA would be fitted to the data."""
    choice = Choice("kpga", kernel, parameters={"n_components": n_components})
    model = last_step(make_model(choice, data))
    own = as_kernel(model.kernel)
    return make_plan(as_rows(data.X, own, model), own, Request.of(model))


def estimate(
    data: Data, plan: Plan, command: str, kernel: str | None, count: int, started: float = 0.0
) -> Estimate:
    """Estimate what a command takes.

    Parameters
    ----------
    data : Data
        All rows.
    plan : Plan
        How a decomposition is fitted to them.
    command : {"embed", "cluster"}
        Kernel PGA, or a mixture.
    kernel : str or None
        The name of the kernel.
    count : int
        The number of components or clusters.
    started : float, default=0.0
        The start of an earlier estimate: code that it has loaded is not loaded again.

    Raises
    ------
    ValueError
        If the method cannot run on these data; the run itself would raise it too.
    """
    method, options = _COMMANDS[command]
    choice = Choice(method, kernel, parameters={"n_components": count})
    size = min(len(data), _ANCHOR_SAMPLE if plan.face == "coordinates" else _SAMPLE)
    half = max(size // 2, 1)
    loading = _probe(data, choice, plan, _TINY)  # loads compiled code and plotting
    times = {m: _probe(data, choice, plan, m) for m in (half, size)}
    start = (started or _IMPORTS) + max(sum(loading.values()) - sum(times[half].values()), 0.0)
    parts = {"start": start, "reading": data.read_seconds}
    for name, seconds in times[size].items():
        power, n = _growth(name, plan, len(data))
        most = seconds / size**power
        slope = max(seconds - times[half][name], 0.0) / max(size**power - half**power, 1)
        # noise may make the smaller sample the slower one
        slope = min(slope, most) or most
        parts[name] = seconds + slope * max(n**power - size**power, 0)
    extra = _bytes(plan, data, command)
    peak, arguments = (resident_memory() or 0) + extra, f"orthodrome {command} {options} {count}"
    total = sum(parts.values())
    return Estimate(command, method, arguments, total, start, peak, extra, parts, size)


def _probe(data: Data, choice: Choice, plan: Plan, size: int) -> dict[str, float]:
    """Return the seconds of each part of a command on a sample of the rows."""
    sample = rows_of(data, drawn(len(data), size, 0))
    parameters = dict(choice.parameters) | {"storage": plan.storage}
    parameters["n_components"] = min(parameters["n_components"], len(sample))
    if plan.name in ("dense", "krylov", "nystroem"):
        parameters["solver"] = plan.name
    run: Any = embed if choice.method == "kpga" else cluster
    with warnings.catch_warnings(), house_style():
        warnings.simplefilter("ignore")  # the run itself will warn
        found = run(sample, replace(choice, parameters=parameters))
        begin = time.perf_counter()
        render_report("", found.sections())
        written = time.perf_counter()
        found.files()
    return found.seconds | {"page": written - begin, "files": time.perf_counter() - written}


def _growth(part: str, plan: Plan, n: int) -> tuple[int, int]:
    """Return the power of m with which the time of a part grows, and up to how many rows."""
    if part == "neighbourhoods":
        return 2, min(n, MOST_NEIGHBORS)
    if part == "page":
        return 1, min(n, MAX_POINTS)
    if part == "files" or plan.face == "coordinates":
        return 1, n
    return (3 if plan.name == "dense" and part != "clustering" else 2), n


def _bytes(plan: Plan, data: Data, command: str) -> int:
    """Return the memory of a run, in addition to that of the data."""
    n, itemsize = len(data), data.X.dtype.itemsize
    budget = parse_bytes(plan.request.memory_budget)
    if plan.face == "coordinates":
        own = plan.name == "coordinates"  # those of the kernel itself
        d = data.X.shape[1] if own else min(n, plan.solver.most_anchors(plan.k))
        kept = n * d * itemsize if n * d * itemsize <= budget else 0
        found = kept + 8 * d * d * _COORDINATE_SQUARES + 8 * n * _COORDINATE_VECTORS
    else:
        found = stored_bytes(n, itemsize) if plan.storage == "memory" else 0
        if plan.name == "dense":
            found += int(_DENSE_MATRICES[command] * n**2 * itemsize)
        else:
            found += (_KRYLOV_VECTORS * plan.k + _KRYLOV_OTHERS) * n * itemsize
    if command == "embed":
        found = max(found, _NEIGHBORS_BYTES * min(n, MOST_NEIGHBORS) ** 2)
    return found + 2 * data.X.nbytes


def format_seconds(seconds: float) -> str:
    """Write a time for people.

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
