"""The one door to the eigensolvers, and the rule by which one is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .._core.checks import check_choice, check_integer
from ..gram import DenseGram, GramOperator
from .dense import Dense
from .krylov import Krylov
from .pairs import Eigenpairs

__all__ = ["Choice", "choose_solver", "leading"]

SOLVERS = ("auto", "dense", "krylov")

# Measured on two cores: at these sizes LAPACK on the whole matrix takes well under a second, and
# is exact; beyond, a few products with blocks are faster for as many pairs as people look at.
_DENSE_ROWS = 1000
_DENSE_FRACTION = 0.2


class Choice(NamedTuple):
    """A solver's name and why it was chosen."""

    solver: str
    reason: str


def choose_solver(n: int, k: int) -> Choice:
    """Say which solver ``"auto"`` takes for k leading pairs of an n x n operator, and why.

    Examples
    --------
    >>> choose_solver(10_000, 16).solver
    'krylov'
    >>> choose_solver(150, 2)
    Choice(solver='dense', reason='n = 150 is at most 1000: LAPACK is exact and cheap')
    """
    if n <= _DENSE_ROWS:
        return Choice("dense", f"n = {n} is at most {_DENSE_ROWS}: LAPACK is exact and cheap")
    if k > _DENSE_FRACTION * n:
        return Choice(
            "dense",
            f"{k} of {n} pairs are more than {_DENSE_FRACTION:.0%}: a Krylov basis would span "
            "most of the space",
        )
    return Choice("krylov", f"n = {n} is large and {k} pairs are few: a few products suffice")


def leading(
    operator: Any,
    k: int,
    *,
    solver: Any = "auto",
    tol: float = 1e-8,
    max_iter: int = 200,
    random_state: Any = None,
    initial: NDArray[Any] | None = None,
    memory_budget: str | float | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> Eigenpairs:
    """Compute the k algebraically largest eigenpairs of a symmetric operator.

    Parameters
    ----------
    operator : GramOperator or array-like of shape (n, n)
        The symmetric matrix, or an operator with products, ``shape`` and ``dtype``.
    k : int
        How many pairs, 1 to n.
    solver : {"auto", "dense", "krylov"} or solver object, default="auto"
        ``"auto"`` is explained by :func:`choose_solver`. An object (``Dense()``,
        ``Krylov(block_size=…)``) has its own `tol` and `max_iter`; `random_state`, `initial` and
        `memory_budget` hold where it leaves them None.
    tol : float, default=1e-8
        For krylov: stop when ‖K v - λ v‖ <= tol max|λ| for every pair.
    max_iter : int, default=200
        For krylov: the most products with the operator.
    random_state : int, RandomState, Generator or None
        For krylov: source of the starting block.
    initial : ndarray of shape (n, m), optional
        For krylov: approximate eigenvectors to start from.
    memory_budget : str or number, optional
        For dense: what the whole matrix may take; default: not checked.
    callback : callable, optional
        Called with each entry of the history as it is made.

    Returns
    -------
    Eigenpairs
        Values (descending), vectors, residuals, status and history.

    Examples
    --------
    >>> import numpy as np
    >>> leading(np.diag([1.0, 3.0, 2.0]), 2).values
    array([3., 2.])
    """
    if not isinstance(operator, GramOperator):
        operator = DenseGram(operator)
    n = operator.shape[0]
    if check_integer(k, "k", "leading") > n:
        raise ValueError(f"k of leading must be at most n = {n}; got {k}.")
    options = Krylov(
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        initial=initial,
        memory_budget=memory_budget,
    )
    return resolve_solver(solver, n, k, options).solve(operator, k, callback=callback)


def resolve_solver(solver: Any, n: int, k: int, options: Krylov) -> Any:
    """Return the solver object that `solver` stands for; `options` are those of a Krylov run."""
    if not isinstance(solver, str):
        if not hasattr(solver, "solve"):
            raise ValueError(f"solver must be one of {SOLVERS} or a solver object; got {solver!r}.")
        return _completed(solver, options)
    check_choice(solver, SOLVERS, "solver", "leading")
    name = choose_solver(n, k).solver if solver == "auto" else solver
    return Dense(options.memory_budget) if name == "dense" else options


def _completed(solver: Any, options: Krylov) -> Any:
    """Fill in what a solver object leaves open: where to start, the seed, the memory budget."""
    if not isinstance(solver, (Krylov, Dense)):
        return solver
    open_fields = {
        field.name: getattr(options, field.name)
        for field in fields(solver)
        if field.name in ("initial", "random_state", "memory_budget")
        and getattr(solver, field.name) is None
    }
    return replace(solver, **open_fields)
