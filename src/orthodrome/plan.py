"""The one decision of a fit: how points are represented, which solver runs, and why."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .eigen import Nystroem, Options, choose_solver, resolve_solver
from .gram import choose_storage
from .kernels import Kernel, Precomputed
from .rows import ArrayRows, Rows

__all__ = ["Plan", "Request", "make_plan"]

# Components that are solved for first where only a part of the variance is asked for.
_FIRST = 16

# Where a kernel's own coordinates are used: if they are at most so many, with so many rows each.
# Otherwise the eigenvectors of their covariance take longer than products with the Gram matrix.
_MOST_COORDINATES = 2048
_ROWS_PER_COORDINATE = 3


@dataclass(frozen=True)
class Request:
    """What an estimator asks for; the names are those of its parameters.

    Attributes
    ----------
    owner : str
        The name of the estimator, for messages.
    n_components : int, float or None
        How many components.
    exact : bool
        Whether "auto" must not take coordinates.
    own : bool
        Whether "auto" may take a kernel's own coordinates.
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
    own: bool = True

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Request:
        """Take the parameters of an estimator that has them; `others` are set or replaced."""
        given = {"owner": type(estimator).__name__}
        for name in cls.__dataclass_fields__:
            if name in vars(estimator):
                given[name] = getattr(estimator, name)
        return cls(**given | others)

    def count(self, n: int) -> int:
        """Return how many components are computed first, of n points."""
        if self.n_components is None:
            return n
        return min(int(self.n_components) if self.is_number else _FIRST, n)

    @property
    def is_number(self) -> bool:
        """Whether a number of components is asked for, not a part of the variance."""
        return isinstance(self.n_components, numbers.Integral)

    def resolved(self, n: int, k: int, solver: Any = None) -> Any:
        """Return the solver object that runs for k components of n points."""
        options = Options(
            self.tol,
            self.max_iter,
            random_state=self.random_state,
            memory_budget=self.memory_budget,
            n_anchors=self.n_anchors,
        )
        wanted = self.solver if solver is None else solver
        return resolve_solver(wanted, n, k, options, exact=self.exact)


@dataclass(frozen=True)
class Plan:
    """How a fit is done.

    Attributes
    ----------
    face : {"gram", "coordinates"}
        Whether points are coefficients over the Gram matrix, or vectors.
    name : str
        The name of the solver.
    solver : solver object
        What finds the components.
    k : int
        How many are computed first.
    storage : str
        Where the Gram matrix, or the vectors, live.
    reason : str
        Why.
    request : Request
        What was asked for.
    """

    face: str
    name: str
    solver: Any
    k: int
    storage: str
    reason: str
    request: Request

    def __str__(self) -> str:
        where = {"gram": "the Gram matrix", "coordinates": "vectors"}[self.face]
        return f"{self.name} on {where} ({self.storage}): {self.reason}"

    @property
    def tol(self) -> float:
        """The tolerance of the solver; LAPACK has none and is as good as any."""
        tol = getattr(self.solver, "tol", None)
        return 1e-8 if tol is None else float(tol)

    def with_count(self, n: int, k: int) -> Plan:
        """Return the plan for another number of components."""
        if k == self.k:
            return self
        return replace(self, k=k, solver=self.request.resolved(n, k))


def make_plan(rows: Rows, kernel: Kernel, request: Request) -> Plan:
    """Decide how a fit to these rows is done.

    Linear and cosine kernels have coordinates of their own, which are used if there are more than
    three rows for each. Points get coordinates by anchors if `n_anchors` or ``solver="nystroem"``
    asks for them, if the rows are read in blocks, and beyond 200,000 rows. Otherwise, and if a
    solver of the Gram matrix is asked for, the Gram matrix is used.
    """
    n, k = rows.shape[0], request.count(rows.shape[0])
    budget = request.memory_budget
    if _has_own_coordinates(rows, kernel, request):
        d = rows.shape[1]
        solver = Nystroem(anchors=np.eye(d, dtype=rows.dtype), sphere="angles")
        reason = f"the kernel has {d} coordinates, and the {n} rows are many more"
        return Plan("coordinates", "coordinates", solver, k, request.storage, reason, request)
    in_blocks = not isinstance(rows, ArrayRows)
    asked = "nystroem" if in_blocks and request.solver == "auto" and not request.exact else None
    few = min(_FIRST, n) if request.n_components is None else k
    found = request.resolved(n, few, asked)
    if isinstance(found, Nystroem):
        if request.solver != "auto":
            reason = "asked for"
        elif request.n_anchors is not None:
            reason = f"n_anchors={request.n_anchors} is given"
        elif in_blocks:
            reason = "the rows are read in blocks"
        else:
            reason = choose_solver(n, few).reason
        return Plan("coordinates", found.name, found, k, request.storage, reason, request)
    if in_blocks and not rows.lazy:
        raise ValueError(
            f"solver={request.solver!r} of {request.owner} compares all rows with all others, and "
            "does not take rows that are read in blocks. Take solver='nystroem', or give an array "
            "in memory or a memory map."
        )
    solver = found if k == few else request.resolved(n, k)
    reason = "asked for" if request.solver != "auto" else choose_solver(n, k, exact=True).reason
    storage = "recompute" if rows.lazy else request.storage
    if not rows.lazy and not isinstance(kernel, Precomputed):
        storage, why = choose_storage(kernel, rows, budget, storage)
        reason = f"{reason}; {why}"
    return Plan("gram", getattr(solver, "name", ""), solver, k, storage, reason, request)


def _has_own_coordinates(rows: Rows, kernel: Kernel, request: Request) -> bool:
    """Tell whether the kernel's own coordinates are to be used."""
    if request.solver != "auto" or request.n_anchors is not None:
        return False
    if request.exact or not request.own:
        return False
    if not kernel.has_coordinates or len(rows.shape) != 2:
        return False
    n, d = rows.shape
    return n > _ROWS_PER_COORDINATE * d and d <= _MOST_COORDINATES
