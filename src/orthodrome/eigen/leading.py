"""Leading eigenpairs with any solver, and the choice of the solver."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

from .._core.checks import check_callback, check_choice, check_integer
from .._core.parameters import integer, optional, positive, seed
from .._core.types import Callback
from ..gram import DenseGram, GramOperator
from .dense import Dense
from .kha import Hebbian, HebbianResult
from .krylov import Krylov
from .nystroem import Nystroem
from .pairs import Eigenpairs, Solver

_KINDS = {"dense": Dense, "krylov": Krylov, "hebbian": Hebbian, "nystroem": Nystroem}
SOLVERS = ("auto", *_KINDS)

# Measured on two cores: up to this size LAPACK takes well under a second on the whole matrix;
# beyond it, a few products with blocks are faster for the usual numbers of pairs.
_DENSE_ROWS = 1000
_DENSE_FRACTION = 0.2

# With more rows, a pass evaluates more than 2e10 kernel values, and Krylov needs about ten passes.
_KRYLOV_ROWS = 200_000


class Choice(NamedTuple):
    """A solver's name and why it was chosen."""

    solver: str
    reason: str


_CHECKS = {
    "tol": optional(positive(or_zero=True)),
    "max_iter": optional(integer()),
    "random_state": seed,
}
# Options used for parameters of a solver object that are None.
_FILLED_IF_NONE = ("initial", "random_state", "memory_budget", "n_anchors")


def choose_solver(n: int, k: int, *, exact: bool = False) -> Choice:
    """Return which solver ``"auto"`` chooses for k of n pairs, and why.

    With `exact`, as in :func:`leading`, the solver computes the pairs of the operator itself,
    however long that takes. Estimators use Nyström features above 200,000 rows, where every pass
    over the Gram matrix takes minutes, and if `n_anchors` is given.

    Examples
    --------
    >>> choose_solver(10_000, 16).solver
    'krylov'
    >>> choose_solver(150, 2)
    Choice(solver='dense', reason='n = 150 is at most 1000: LAPACK is exact and cheap')
    >>> choose_solver(1_000_000, 16).solver, choose_solver(1_000_000, 16, exact=True).solver
    ('nystroem', 'krylov')
    """
    check_integer(n, "n", "choose_solver")
    check_integer(k, "k", "choose_solver")
    if n <= _DENSE_ROWS:
        return Choice("dense", f"n = {n} is at most {_DENSE_ROWS}: LAPACK is exact and cheap")
    if n > _KRYLOV_ROWS and not exact:
        return Choice(
            "nystroem",
            f"n = {n} is more than {_KRYLOV_ROWS}: a pass over the whole matrix is too expensive",
        )
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
    tol: float | None = None,
    max_iter: int | None = None,
    random_state: Any = None,
    initial: Any = None,
    memory_budget: str | float | None = None,
    callback: Callback | None = None,
) -> Eigenpairs:
    """Compute the k algebraically largest eigenpairs of a symmetric operator.

    Parameters
    ----------
    operator : GramOperator or array-like of shape (n, n)
        The symmetric matrix, or the operator of one; see :func:`orthodrome.gram.gram_operator`.
    k : int
        Number of pairs, 1 to n.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        ``"auto"`` is explained by :func:`choose_solver` with ``exact=True``; it never
        chooses hebbian or nystroem, which need a positive semidefinite matrix and are less
        accurate. An object (``Dense()``, ``Krylov(block_size=…)``, ``Hebbian(gain="smd")``,
        ``Nystroem(n_anchors=…)``) has its own `tol` and number of iterations; `random_state`,
        `initial` and `memory_budget` are used if those of the object are None.
    tol : float, optional
        Stop when ‖K v - λ v‖ <= tol max|λ| for every pair. Default: 1e-8 for krylov, 1e-2 for
        hebbian, which estimates the residuals from a sample of rows. For nystroem, see
        :class:`Nystroem`.
    max_iter : int, optional
        Maximum number of products with the operator (krylov, default 200) or of passes over its
        rows (hebbian, default 50).
    random_state : int, RandomState, Generator or None
        Source of the start of krylov and hebbian, and of the anchors of nystroem.
    initial : ndarray of shape (n, m), "nystroem" or ``Eigenpairs.resume``, optional
        Approximate eigenvectors to start from, a start from anchors, or a run of hebbian to
        continue.
    memory_budget : str or number, optional
        For dense: maximum memory of the whole matrix; default: not checked.
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
    check_callback(callback, "leading")
    check_solver(solver, "solver", "leading")
    options = {"tol": tol, "max_iter": max_iter, "random_state": random_state}
    for name, check in _CHECKS.items():
        check(options[name], name, "leading")
    options |= {"initial": initial, "memory_budget": memory_budget}
    return resolve_solver(solver, n, k, **options).solve(operator, k, callback=callback)


def check_solver(solver: Any, name: str, owner: str) -> None:
    """Raise unless `solver` is the name of a solver or an object with a method `solve`."""
    if isinstance(solver, str):
        check_choice(solver, SOLVERS, name, owner)
    elif isinstance(solver, type) or not hasattr(solver, "solve"):
        raise ValueError(
            f"{name} of {owner} must be one of {SOLVERS} or a solver object; got {solver!r}."
        )


def resolve_solver(solver: Any, n: int, k: int, *, exact: bool = True, **options: Any) -> Any:
    """Return the solver object that runs for a valid `solver`, a name or an object.

    `exact` is as in :func:`choose_solver`. `options` are parameters of the solver, and `max_iter`;
    None means its default. Those of an object are replaced only if they are None.
    """
    if solver == "auto":
        by_anchors = options.get("n_anchors") is not None and not exact
        solver = "nystroem" if by_anchors else choose_solver(n, k, exact=exact).solver
    is_name = isinstance(solver, str)
    found = _KINDS[solver]() if is_name else solver
    if not isinstance(found, Solver):
        return found
    given: dict[str, Any] = {}
    for field in fields(found):
        current = getattr(found, field.name)
        value = options.get("max_iter" if field.name == "n_passes" else field.name)
        replaced = current is None and field.name in _FILLED_IF_NONE
        # an earlier result is a better start than anchors
        replaced = replaced or (field.name == "initial" and isinstance(current, str))
        if value is not None and (is_name or replaced):
            given[field.name] = value
    if isinstance(given.get("initial"), HebbianResult) and not isinstance(found, Hebbian):
        given["initial"] = given["initial"].eigenvectors
    found = replace(found, **given)
    return found.for_size(n, k) if isinstance(found, Hebbian) else found
