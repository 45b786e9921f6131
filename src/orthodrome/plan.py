"""The plan of a fit: how points are represented, which solver runs, and why."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._core.memory import format_bytes, parse_bytes
from .eigen import Dense, Krylov, Nystroem, choose_solver
from .eigen.leading import resolve_solver
from .gram import choose_storage
from .gram.factory import storage_within
from .gram.tiled import stored_bytes
from .kernels import Kernel, NeighborGraph, Precomputed
from .rows import ArrayRows, Rows

# Number of components computed first for a fraction of the variance, as in `solve_components`.
_FIRST_COMPONENTS = 16

# Limits for the use of a kernel's own coordinates. With more coordinates, eigenvectors of the
# covariance take longer than products with the Gram matrix. For methods without eigenvectors, the
# limit is higher: only their matrices with one row and one column per coordinate grow.
_MAX_COORDINATES = {True: 2048, False: 4096}
_MIN_ROWS_PER_COORDINATE = 3

# Tolerance of eigenpairs that are computed from vectors, whose products are cheap.
_VECTORS_TOL = 1e-10

# Passes over the Gram matrix that Krylov, or k-means, usually needs.
_USUAL_PASSES = 10


@dataclass(frozen=True)
class Request:
    """Parameters of an estimator that determine the plan, under the same names.

    Attributes
    ----------
    owner : str
        The name of the estimator, for messages.
    n_components : int, float or None
        The number of components, or the fraction of the variance.
    exact : bool
        Whether "auto" must not use coordinates.
    kernel_coordinates : bool
        Whether "auto" may use the coordinates of a linear or cosine kernel.
    eigenpairs : bool
        Whether the method needs eigenpairs, or kernel values only.
    passes : int
        Approximate number of passes of the method over all coordinates.
    factors : bool
        Whether the method factors the whole Gram matrix, or all vectors, in memory.
    """

    owner: str
    n_components: int | float | None = None
    solver: Any = "auto"
    tol: float | None = None
    max_iter: int | None = None
    n_anchors: int | None = None
    memory_budget: str | float = "2GiB"
    storage: str = "auto"
    random_state: Any = None
    exact: bool = False
    kernel_coordinates: bool = True
    eigenpairs: bool = True
    passes: int = 2
    factors: bool = False

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Request:
        """Return a request with the parameters of an estimator; `others` override them."""
        given = {"owner": type(estimator).__name__}
        for name in cls.__dataclass_fields__:
            if name in vars(estimator):
                given[name] = getattr(estimator, name)
        return cls(**given | others)

    def resolved(self, n: int, k: int, solver: Any = None) -> Any:
        """Return the solver object for k components of n points."""
        return resolve_solver(
            self.solver if solver is None else solver,
            n,
            k,
            exact=self.exact,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            memory_budget=self.memory_budget,
            n_anchors=self.n_anchors,
        )


@dataclass(frozen=True)
class Plan:
    """How a fit is done.

    Attributes
    ----------
    face : {"gram", "coordinates"}
        Whether points are represented by the Gram matrix, or as vectors.
    name : str
        The name of the solver.
    solver : solver object
        The solver.
    k : int
        The number of components computed first.
    storage : str
        Where the Gram matrix or the vectors are stored. "auto" for vectors if their dimension
        depends on a tolerance and is not known yet.
    passes : int
        Approximate number of passes over the Gram matrix, or over the rows.
    memory : int
        Approximate size of the largest arrays in bytes, without the data.
    reason : str
        The reason for this solver and this storage.
    request : Request
        The parameters of the estimator.
    tol : float
        The tolerance of the solver with the Gram matrix; 1e-8 for LAPACK, which has no tolerance.
    """

    face: str
    name: str
    solver: Any
    k: int
    storage: str
    passes: int
    memory: int
    reason: str
    request: Request
    tol: float = 1e-8

    def __str__(self) -> str:
        where = {"gram": "the Gram matrix", "coordinates": "vectors"}[self.face]
        size = f"about {format_bytes(self.memory)}, passes: about {self.passes}"
        return f"{self.name} on {where} ({self.storage}, {size}): {self.reason}"

    def eigensolver(self) -> tuple[Any, float]:
        """Return the solver of an eigenproblem of the points, and its tolerance."""
        if self.face == "gram":
            return self.solver, self.tol
        max_iter = self.request.max_iter
        options: dict[str, Any] = {} if max_iter is None else {"max_iter": max_iter}
        return Krylov(_VECTORS_TOL, **options), _VECTORS_TOL


def plan_fit(estimator: Any, rows: Rows, kernel: Kernel, **others: Any) -> Plan:
    """Return the plan of an estimator's fit, and print it if ``verbose`` is set.

    `others` replace or complete the parameters of the estimator. Raise if the memory budget is
    too small.
    """
    request, n = Request.of(estimator, **others), rows.shape[0]
    plan = make_plan(rows, kernel, request)
    if request.factors:
        plan = _for_factors(plan, n)
    elif request.eigenpairs and isinstance(plan.solver, Dense):
        plan.solver.check_memory(n, rows.dtype)
    if estimator.verbose:
        print(f"plan: {plan}")  # noqa: T201
    return plan


def _for_factors(plan: Plan, n: int) -> Plan:
    """Return the plan of a method that factors the Gram matrix, or all vectors, in memory.

    The Gram matrix is read only once. The number of anchors does not depend on `n_components`.
    """
    request, in_gram = plan.request, plan.face == "gram"
    m = n if in_gram else min(n, plan.solver.max_anchors(1))
    needed, budget = 5 * 8 * n * m, parse_bytes(request.memory_budget)
    if needed > max(budget, 2**23):  # a few megabytes are always allowed
        what = "factors the Gram matrix" if in_gram else f"makes {m} features"
        fewer = "points" if request.solver == "dense" else "anchors (n_anchors)"
        raise ValueError(
            f"{request.owner} {what} of {n} points, which needs {format_bytes(needed)}, but "
            f"memory_budget is {format_bytes(budget)}. Raise memory_budget, or fit to fewer "
            f"{fewer}."
        )
    storage = "recompute" if in_gram else plan.storage
    return replace(plan, k=1, storage=storage, memory=needed)


def make_plan(rows: Rows, kernel: Kernel, request: Request) -> Plan:
    """Return the plan of a fit to these rows.

    Linear and cosine kernels have coordinates of their own, which are used if there are more than
    three rows per coordinate. Coordinates from anchors are used if `n_anchors` or
    ``solver="nystroem"`` is given, if the rows are read in blocks, or if there are more than
    200,000 rows. Otherwise, and with other solvers, the Gram matrix is used.
    """
    n, n_components = rows.shape[0], request.n_components
    few = min(
        int(n_components) if isinstance(n_components, numbers.Integral) else _FIRST_COMPONENTS, n
    )
    k = n if n_components is None else few
    in_blocks = not isinstance(rows, ArrayRows)
    automatic = request.solver == "auto" and not request.exact
    d = rows.shape[1] if len(rows.shape) == 2 and kernel.has_coordinates else n
    few_coordinates = d <= _MAX_COORDINATES[request.eigenpairs] and n > _MIN_ROWS_PER_COORDINATE * d
    no_anchors = request.n_anchors is None and request.kernel_coordinates
    if automatic and no_anchors and few_coordinates:
        solver = Nystroem(anchors=np.eye(d, dtype=rows.dtype), sphere="angles")
        reason = f"the kernel has {d} coordinates, and there are many more rows, {n}"
        return _on_vectors(rows, "coordinates", solver, d, k, reason, request)
    found = request.resolved(n, few, "nystroem" if in_blocks and automatic else None)
    if isinstance(found, Nystroem):
        if request.solver != "auto":
            reason = "requested"
        elif request.n_anchors is not None:
            reason = f"n_anchors={request.n_anchors} is given"
        else:
            reason = "the rows are read in blocks" if in_blocks else choose_solver(n, few).reason
        m = min(n, found.max_anchors(few))
        return _on_vectors(rows, found.name, found, m, k, reason, request)
    if in_blocks and not rows.lazy:
        raise ValueError(
            f"solver={request.solver!r} of {request.owner} compares all rows with each other, and "
            "cannot be used for rows that are read in blocks. Use solver='nystroem', or pass an "
            "array in memory or a memory map."
        )
    return _on_gram(rows, kernel, found if k == few else request.resolved(n, k), k, request)


def partial_plan(request: Request, kernel: Kernel) -> Plan:
    """Return the plan of `partial_fit`, which always uses coordinates from anchors."""
    owner = f"partial_fit of {request.owner}"
    if isinstance(kernel, Precomputed):
        raise ValueError(f"{owner} needs rows of features, not rows of a precomputed Gram matrix.")
    solver = request.resolved(1, 1, "nystroem" if request.solver == "auto" else None)
    if not isinstance(solver, Nystroem):
        raise ValueError(f"{owner} needs solver='nystroem'; got {request.solver!r}.")
    if not isinstance(solver.anchors, str) and np.ndim(solver.anchors) == 1:
        raise ValueError(
            f"{owner} accepts anchors as points or as the name of a rule, not as row numbers, "
            "since the rows come in batches."
        )
    n_components = request.n_components
    k = n_components if isinstance(n_components, numbers.Integral) else 1
    why = "rows are read once"
    return Plan("coordinates", solver.name, solver, int(k), "recompute", 1, 0, why, request)


def _on_vectors(
    rows: Rows, name: str, solver: Nystroem, m: int, k: int, reason: str, request: Request
) -> Plan:
    """Return the plan of a fit to m coordinates of each row."""
    storage, memory = request.storage, rows.shape[0] * m * rows.dtype.itemsize
    if rows.lazy:
        storage = "recompute"
    elif solver.tol is None and (storage != "memory" or solver.n_anchors is not None):
        # the number of coordinates is known
        slow, what = getattr(rows, "serial", False), "the features take"
        storage, why = storage_within(request.memory_budget, storage, memory, what, slow=slow)
        reason = f"{reason}; {why}"
    passes = request.passes
    if storage == "recompute":
        memory = 8 * m * m
    else:  # one pass to choose anchors, one to compute the coordinates
        passes = 2
    return Plan("coordinates", name, solver, k, storage, passes, memory, reason, request)


def _on_gram(rows: Rows, kernel: Kernel, solver: Any, k: int, request: Request) -> Plan:
    """Return the plan of a fit to the Gram matrix."""
    n, size, name = rows.shape[0], rows.dtype.itemsize, getattr(solver, "name", "")
    n_components, reason = request.n_components, "requested"
    if getattr(solver, "checkpoint", None) is not None and isinstance(n_components, float):
        raise ValueError(
            f"n_components of {request.owner} must be an integer with a checkpoint, which stores "
            f"one run; a fraction needs several runs. Got {n_components!r}."
        )
    if not request.eigenpairs:
        reason = "the method needs kernel values, no eigenpairs"
    elif request.solver == "auto":
        reason = choose_solver(n, k, exact=True).reason
    storage = "recompute" if rows.lazy else request.storage
    if not rows.lazy and not isinstance(kernel, Precomputed | NeighborGraph):
        storage, why = choose_storage(kernel, rows, request.memory_budget, storage)
        reason = f"{reason}; {why}"
    if not request.eigenpairs:
        name = "exact"
    memory = n * n * size if name == "dense" else n * k * size
    if storage == "memory":
        memory += stored_bytes(n, size)
    passes = 1 if name == "dense" else getattr(solver, "n_passes", _USUAL_PASSES)
    tol = getattr(solver, "tol", None)
    tol = 1e-8 if tol is None else float(tol)
    return Plan("gram", name, solver, k, storage, passes, memory, reason, request, tol)
