"""Memory and time of a run before it starts, from a probe of this machine with these data.

What is foretold is the whole command: its start, reading, the work, the page and the files. The
probe is the work itself on two small samples of the rows, with the eigensolver and the storage of
the Gram matrix that all rows will get; :mod:`.overheads` has the rest. Times are extrapolated as
a + b m^p: p = 2 where products with the Gram matrix are what takes the time (the number of
products hardly depends on how many rows there are), 3 where LAPACK has the whole matrix, 1 for the
iterations of EM, and for everything on features by anchors, which are as many in the samples.
Memory is added up from what is kept at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .._core.memory import format_bytes, parse_bytes
from .._core.threads import n_threads
from ..coordinates.anchors import most_candidates
from ..eigen import Nystroem, choose_solver
from ..gram import choose_storage
from ..gram.tiled import stored_bytes
from ..kernels import as_kernel
from ..kernels.base import TILE
from .embedding import MOST_NEIGHBORS, quality_of
from .inputs import Data
from .memory import resident_memory
from .models import Choice, last_step, make_model
from .overheads import TINY, sample_of, seconds_of, start_seconds, writing_seconds

__all__ = ["Estimate", "estimate_cluster", "estimate_embed", "format_seconds"]

_BUDGET = "2GiB"  # of the estimators: the Gram matrix is kept up to there
_WHOLE = 64  # so many rows or fewer are not worth a sample
_LARGEST_PROBE = 1000
# Short samples are timed again, up to so often and within so many seconds, and the fastest one
# counts: another program may have been busy. Longer ones are less easily disturbed.
_REPEATS = 3
_REPEAT_SECONDS = 0.6
# What is kept beside the Gram matrix, measured with tracemalloc. Of the krylov solver vectors, its
# basis among them; of the dense one matrices: the whole one, and what LAPACK and NumPy copy; and a
# mixture has one more.
_KRYLOV_VECTORS = 26  # for each component
_KRYLOV_OTHERS = 100
_DENSE_MATRICES = 2.1
_MIXTURE_MATRICES = 3.1
# Of features by anchors: rows that are looked at together when these are chosen, beside the
# factor of the candidates; beside the features themselves vectors of float64 for each component and
# for all, squares of as many rows as there are anchors, and the blocks of a thread.
_CHOOSING_ROWS = 192
_FEATURES_VECTORS = 5
_FEATURES_OTHERS = 12
_FEATURES_SQUARES = 4
_FEATURES_BLOCKS = 2**23
# Rows of samples: with fewer than these for each anchor, choosing anchors is all that is seen.
_ROWS_PER_ANCHOR = 8
# Of the comparison of neighbours: bytes for each distance, and distances at once in each thread.
_NEIGHBORS_BYTES = 32
_NEIGHBORS_BLOCK = 2**20
_MODES = 5  # of GeodesicMixture, as its default is

Times = dict[str, float]


@dataclass(frozen=True)
class Estimate:
    """What a command will take on all rows.

    Attributes
    ----------
    command, method : str
        What would be run.
    arguments : str
        The command as it would be given, but for the file.
    seconds : float
        Time of the whole command, from its start to the last file written.
    start_seconds : float
        How much of it is the start of the program: imports, and compiled code that is loaded.
    peak_bytes : int
        The most memory that the program will have.
    extra_bytes : int
        How much of it is for this run, over what the program has now.
    parts : tuple of (str, float)
        The seconds of each part of the command.
    probed_rows : tuple of int
        The sizes of the samples that were timed.
    """

    command: str
    method: str
    arguments: str
    seconds: float
    start_seconds: float
    peak_bytes: int
    extra_bytes: int
    parts: tuple[tuple[str, float], ...]
    probed_rows: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate for JSON."""
        return asdict(self) | {"parts": dict(self.parts)}

    def line(self) -> str:
        """Return the estimate for people."""
        return (
            f"{self.command} ({self.method}): {format_seconds(self.seconds)} for the whole command "
            f"({self.arguments}), of which {format_seconds(self.start_seconds)} to start, and "
            f"{format_bytes(self.peak_bytes)} of memory; to within a factor of 3"
        )


def estimate_embed(
    data: Data, *, method: str = "kpga", kernel: str | None = None, n_components: int = 10
) -> Estimate:
    """Estimate what an embedding of the data will take.

    Parameters
    ----------
    data : Data
        All the data; at most a thousand rows of it or so are used.
    method : {"kpga", "kpca"}, default="kpga"
        The decomposition.
    kernel : str, optional
        The name of the kernel; by default that of the kind of data.
    n_components : int, default=10
        How many components.

    Returns
    -------
    Estimate
        Within a factor of 3 of what is then measured, on a machine that is as busy then as now.

    Raises
    ------
    ValueError
        Where the method cannot run on these data; it is what the run itself would raise.
    """
    start = start_seconds()
    n, k = len(data), min(n_components, len(data))
    choice = Choice(method, kernel, parameters={"n_components": k})
    plan = _Plan.of(data, choice, k)

    def times(sample: Data, chosen: Choice) -> Times:
        model = make_model(chosen, sample)
        return {
            "decomposition": seconds_of(lambda: model.fit(sample.X)),
            "neighbourhoods": seconds_of(lambda: quality_of(model, sample, model.embedding_)),
        }

    probe = _probe(data, plan, choice, "n_components", times)
    compared = min(n, MOST_NEIGHBORS)
    parts = (
        ("decomposition", probe.extrapolated("decomposition", n, plan.power)),
        ("neighbourhoods", probe.extrapolated("neighbourhoods", compared, 2)),
    )
    ranked = min(compared**2, n_threads() * _NEIGHBORS_BLOCK) * _NEIGHBORS_BYTES
    extra = max(plan.bytes(k, _DENSE_MATRICES), ranked) + 2 * data.X.nbytes
    arguments = f"orthodrome embed --method {method} --components {k}"
    return _whole(data, choice, arguments, start, probe, parts, extra)


def estimate_cluster(data: Data, *, kernel: str | None = None, n_clusters: int = 3) -> Estimate:
    """Estimate what a clustering of the data by a mixture on the sphere will take.

    Parameters
    ----------
    data : Data
        All the data; at most a thousand rows of it or so are used.
    kernel : str, optional
        The name of the kernel; by default that of the kind of data.
    n_clusters : int, default=3
        How many clusters.

    Returns
    -------
    Estimate
        As of :func:`estimate_embed`; how many iterations EM takes differs more from one set of
        rows to another than products with a matrix do.
    """
    start = start_seconds()
    n, k = len(data), min(n_clusters, len(data))
    choice = Choice("mixture", kernel, parameters={"n_components": k})
    plan = _Plan.of(data, choice, _MODES)

    def times(sample: Data, chosen: Choice) -> Times:
        short = replace(chosen, parameters={**chosen.parameters, "max_iter": 1})
        prepared = seconds_of(lambda: make_model(short, sample).fit(sample.X))
        whole = seconds_of(lambda: make_model(chosen, sample).fit(sample.X).predict_proba(sample.X))
        shared = {name: chosen.parameters[name] for name in ("solver", "storage")}
        two = shared | {"n_components": min(2, len(sample))}
        flat = make_model(Choice("kpca", kernel, parameters=two), sample)
        return {
            "starts": min(prepared, whole),
            "EM": max(whole - prepared, 0.0),
            "picture": seconds_of(lambda: flat.fit_transform(sample.X)),
        }

    probe = _probe(data, plan, choice, "n_components", times)
    parts = (
        # products with the Gram matrix, for the decomposition and for kernel k-means
        ("starts", probe.extrapolated("starts", n, min(2, plan.power))),
        ("EM", probe.extrapolated("EM", n, 1)),
        ("picture", probe.extrapolated("picture", n, plan.power)),
    )
    extra = plan.bytes(_MODES, _MIXTURE_MATRICES) + 2 * data.X.nbytes
    return _whole(data, choice, f"orthodrome cluster -k {k}", start, probe, parts, extra)


# ---------------------------------------------------------------------------- how all rows will run


@dataclass(frozen=True)
class _Plan:
    """Which solver and storage all rows get, and the samples to time with them."""

    n: int
    itemsize: int
    solver: str
    storage: str
    sizes: tuple[int, ...]
    anchors: int = 0  # where the solver has any

    @classmethod
    def of(cls, data: Data, choice: Choice, k: int) -> _Plan:
        n = len(data)
        kernel = last_step(make_model(choice, data)).kernel
        storage, _ = choose_storage(kernel, data.X, _BUDGET, "auto")
        solver = choose_solver(n, min(k, n)).solver
        if solver == "nystroem":
            return cls._of_features(n, data.X.dtype.itemsize, kernel, k)
        if n <= _WHOLE:
            sizes: tuple[int, ...] = (n,)
        elif solver == "dense":
            sizes = (n // 4, n // 2)
        else:
            # below 22 vectors for each component krylov hands over to LAPACK
            largest = min(n // 2, max(_LARGEST_PROBE, 2 * _KRYLOV_VECTORS * k))
            sizes = (largest // 2, largest)
        return cls(n, data.X.dtype.itemsize, solver, storage, sizes)

    @classmethod
    def _of_features(cls, n: int, itemsize: int, kernel: Any, k: int) -> _Plan:
        anchors = min(n, Nystroem().most_anchors(k))
        beyond = "recompute" if as_kernel(kernel).threadsafe else "disk"
        storage = "memory" if n * anchors * itemsize <= parse_bytes(_BUDGET) else beyond
        largest = min(n // 2, _ROWS_PER_ANCHOR * anchors)
        return cls(n, itemsize, "nystroem", storage, (largest // 2, largest), anchors)

    @property
    def power(self) -> int:
        return {"dense": 3, "nystroem": 1}.get(self.solver, 2)

    def bytes(self, k: int, matrices: float) -> int:
        """Return the memory of a decomposition, over that of the data.

        It has k components, or so many whole `matrices` where the solver is dense.
        """
        if self.solver == "nystroem":
            return self._feature_bytes(k)
        kept = stored_bytes(self.n, self.itemsize) if self.storage == "memory" else 0
        per_side = -(-self.n // TILE)
        busy = min(n_threads(), per_side * (per_side + 1) // 2)
        tiles = busy * TILE * TILE * self.itemsize
        if self.solver == "dense":
            return int(kept + tiles + matrices * self.n**2 * self.itemsize)
        vectors = _KRYLOV_VECTORS * k + _KRYLOV_OTHERS
        return kept + tiles + vectors * self.n * self.itemsize

    def _feature_bytes(self, k: int) -> int:
        """Return the larger of what choosing anchors takes, and what features take after it."""
        n, m = self.n, self.anchors
        choosing = 8 * (m + _CHOOSING_ROWS) * min(n, most_candidates(m))
        kept = n * m * self.itemsize if self.storage == "memory" else 0
        squares = 8 * m * m * (_FEATURES_SQUARES + n_threads())
        vectors = 8 * n * (_FEATURES_VECTORS * k + _FEATURES_OTHERS)
        return max(choosing, kept + squares + n_threads() * _FEATURES_BLOCKS) + vectors


@dataclass(frozen=True)
class _Probe:
    """The seconds of each part of the work on samples of growing size."""

    sizes: tuple[int, ...]
    times: tuple[Times, ...]
    start: float

    def extrapolated(self, part: str, n: int, power: int) -> float:
        """Return the seconds of a part on n rows, a + b n^power with a and b >= 0."""
        seconds = [times[part] for times in self.times]
        largest = self.sizes[-1] ** power
        if len(self.sizes) == 1:
            return seconds[0] * n**power / largest
        slope = (seconds[1] - seconds[0]) / (largest - self.sizes[0] ** power)
        # noise may make the larger sample the faster one; then nothing is known of a
        slope = min(max(slope, 0.0), seconds[1] / largest) or seconds[1] / largest
        return max(seconds[1] + slope * (n**power - largest), 0.0)


def _probe(
    data: Data,
    plan: _Plan,
    choice: Choice,
    count: str,
    times: Callable[[Data, Choice], Times],
) -> _Probe:
    """Time the work on samples; `count` is the parameter that no sample may be smaller than."""

    def timed(size: int) -> Times:
        sample = sample_of(data, size)
        parameters = dict(choice.parameters) | {"solver": plan.solver, "storage": plan.storage}
        parameters[count] = min(int(parameters[count]), size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the run has to say it will say itself
            return times(sample, replace(choice, parameters=parameters))

    tiny = min(TINY, len(data))
    first, second = (sum(timed(tiny).values()) for _ in range(2))
    found = []
    for size in plan.sizes:
        repeats = [timed(size)]
        while len(repeats) < _REPEATS and _total(repeats) < _REPEAT_SECONDS:
            repeats.append(timed(size))
        found.append({part: min(one[part] for one in repeats) for part in repeats[0]})
    return _Probe(plan.sizes, tuple(found), max(first - second, 0.0))


def _total(times: Sequence[Times]) -> float:
    return sum(sum(one.values()) for one in times)


def _whole(
    data: Data,
    choice: Choice,
    arguments: str,
    start: float,
    probe: _Probe,
    work: Sequence[tuple[str, float]],
    extra: int,
) -> Estimate:
    """Add to the work what else a command does."""
    started = start + probe.start
    parts = (
        ("start", started),
        ("reading", data.read_seconds),
        *work,
        *writing_seconds(data, choice).items(),
    )
    return Estimate(
        command=arguments.split()[1],
        method=choice.method,
        arguments=arguments,
        seconds=sum(seconds for _, seconds in parts),
        start_seconds=started,
        peak_bytes=(resident_memory() or 0) + extra,
        extra_bytes=extra,
        parts=parts,
        probed_rows=probe.sizes,
    )


def format_seconds(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> from orthodrome.runs.estimates import format_seconds
    >>> format_seconds(0.04), format_seconds(75), format_seconds(9000)
    ('less than 0.1 s', 'about 1.2 min', 'about 2.5 h')
    """
    if seconds < 0.1:
        return "less than 0.1 s"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"about {seconds / size:.2g} {unit}"
    return f"about {seconds:.2g} s"
