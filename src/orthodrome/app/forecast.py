"""Estimate the time and memory of a command before it runs.

A probe runs the command on a sample of the rows, with the solver and the storage that will be used
for all rows. Its time is extrapolated to n rows as n^p, where p depends on the plan of the fit: 3
if LAPACK decomposes the whole Gram matrix, 2 for products with the Gram matrix, 1 for explicit
coordinates. The memory is that of the plan. Expect only the right order of magnitude.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

from .._core.memory import format_bytes
from ..kernels import as_kernel
from ..plan import Plan, Request, make_plan
from ..plots._matplotlib import house_style
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
_NEIGHBORS_BYTES = 32  # per pair of rows when neighbours are compared

# The method of each command, and its options up to the number of components or clusters.
_COMMANDS = {"embed": ("kpga", "--method kpga --components"), "cluster": ("mixture", "-k")}


def estimate_line(values: dict[str, Any]) -> str:
    """Format an estimate as one line of text."""
    return (
        f"{values['command']} ({values['method']}): {format_seconds(values['seconds'])} and "
        f"{format_bytes(values['peak_bytes'])} of memory for `{values['arguments']}`; a rough "
        "estimate"
    )


def kpga_plan(data: Data, kernel: str | None, n_components: int) -> Plan:
    """Return the plan of a kernel PGA fit: solver and storage."""
    choice = Choice("kpga", kernel, parameters={"n_components": n_components})
    model = last_step(make_model(choice, data))
    kernel_object = as_kernel(model.kernel)
    rows = as_rows(data.X, kernel_object, model)
    return make_plan(rows, kernel_object, Request.of(model, passes=model._geometry.passes))


def estimate(
    data: Data, plan: Plan, command: str, kernel: str | None, count: int
) -> dict[str, Any]:
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

    Returns
    -------
    dict
        The command, its method and arguments; seconds, from start to end; peak_bytes, the memory
        of the process; extra_bytes, the memory of the run itself; probed_rows.

    Raises
    ------
    ValueError
        If the method cannot run on these data. The command would raise the same error.
    """
    method, options = _COMMANDS[command]
    choice = Choice(method, kernel, parameters={"n_components": count})
    n, on_vectors = len(data), plan.face == "coordinates"
    size = min(n, _ANCHOR_PROBE_ROWS if on_vectors else _PROBE_ROWS)
    _probe(data, choice, plan, _WARM_UP_ROWS)  # loads compiled code and plotting
    seconds = _IMPORT_SECONDS + data.read_seconds
    for step, duration in _probe(data, choice, plan, size).items():
        power = 1 if on_vectors else 3 if plan.name == "dense" and step != "clustering" else 2
        if step == "neighbourhoods":  # computed for a sample
            seconds += duration * (min(n, MAX_NEIGHBOR_ROWS) / min(size, MAX_NEIGHBOR_ROWS)) ** 2
        else:
            seconds += duration * (1 if step == "page" else (n / size) ** power)
    extra = plan.memory
    if command == "embed":
        extra = max(extra, _NEIGHBORS_BYTES * min(n, MAX_NEIGHBOR_ROWS) ** 2)
    extra += 2 * data.X.nbytes
    return {
        "command": command,
        "method": method,
        "arguments": f"orthodrome {command} {options} {count}",
        "seconds": seconds,
        "peak_bytes": (resident_memory() or 0) + extra,
        "extra_bytes": extra,
        "probed_rows": size,
    }


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
    return result.work.seconds | {"page": time.perf_counter() - begin}


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
