"""Choose an eigensolver and compute leading eigenpairs with it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

from .._core.checks import check_callback, check_choice, check_integer
from .._core.types import Callback
from ..gram import DenseGram, GramOperator
from .dense import Dense
from .kha import Hebbian, HebbianResult
from .krylov import Krylov
from .nystroem import Nystroem
from .pairs import Eigenpairs, Solver

_KINDS = {"dense": Dense, "krylov": Krylov, "hebbian": Hebbian, "nystroem": Nystroem}
SOLVERS = ("auto", *_KINDS)

# Up to this many rows, LAPACK is faster than krylov (benchmarks/bench_solvers.py, on two cores).
_DENSE_ROWS = 400
# Also for up to 1000 rows, if there are fewer rows per pair. Such a matrix fits in 8 MiB, which any
# budget allows.
_FEW_ROWS, _ROWS_PER_PAIR = 1000, 16
# If krylov has not converged after this many products with such a matrix, LAPACK takes over.
_FEW_PRODUCTS = 50
# If more than this fraction of all pairs is wanted, a Krylov basis would span most of the space.
_DENSE_FRACTION = 0.2

# With more rows, a pass over the matrix evaluates more than 2e10 kernel values (only one of each
# symmetric pair), and krylov needs about ten passes.
_KRYLOV_ROWS = 200_000


class Choice(NamedTuple):
    """A solver's name and why it was chosen."""

    solver: str
    reason: str


# If one of these parameters of a solver object is None, the option of the same name is used.
_FILLED_IF_NONE = ("initial", "random_state", "memory_budget", "n_anchors")


def choose_solver(n: int, k: int, *, exact: bool = False) -> Choice:
    """Return which solver ``"auto"`` chooses for k of n eigenpairs, and why.

    If `exact`, the chosen solver computes eigenpairs of the operator itself and not of an
    approximation, however long that takes. :func:`leading` uses ``exact=True``. Estimators use
    ``exact=False``. Their "auto" means nystroem for more than 200,000 rows, because every pass over
    the Gram matrix would take minutes. It also means nystroem if `n_anchors` is given.

    Examples
    --------
    >>> choose_solver(10_000, 16).solver
    'krylov'
    >>> choose_solver(150, 2)
    Choice(solver='dense', reason='n = 150 is at most 400: LAPACK is exact and cheap')
    >>> choose_solver(1_000_000, 16).solver, choose_solver(1_000_000, 16, exact=True).solver
    ('nystroem', 'krylov')
    """
    check_integer(n, "n", "choose_solver")
    check_integer(k, "k", "choose_solver")
    if n <= _DENSE_ROWS:
        return Choice("dense", f"n = {n} is at most {_DENSE_ROWS}: LAPACK is exact and cheap")
    if n <= _FEW_ROWS and n < _ROWS_PER_PAIR * k:
        return Choice("dense", f"{k} of {n} pairs are many: LAPACK is exact and cheap")
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
        The symmetric matrix K, or an operator; see :func:`orthodrome.gram.gram_operator`.
    k : int
        Number of pairs, 1 to n.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        ``"auto"`` is the choice of :func:`choose_solver` with ``exact=True``. It is never hebbian
        or nystroem, because these need a positive semidefinite matrix and are less accurate. A
        solver object, such as ``Dense()``, ``Krylov(block_size=…)``, ``Hebbian(gain="smd")`` or
        ``Nystroem(n_anchors=…)``, has its own tolerance and number of iterations; `tol` and
        `max_iter` are then ignored. `random_state`, `initial` and `memory_budget` are used if the
        object's own parameter of that name is None.
    tol : float, optional
        Stop when the residual ‖K v - λ v‖ of every pair of an eigenvalue λ and eigenvector v is at
        most tol max|λ|. Default: 1e-8 for krylov; 1e-2 for hebbian, which estimates the residuals
        from a sample of rows. For nystroem, see :class:`Nystroem`.
    max_iter : int, optional
        Maximum number of products with the operator (krylov, default 200) or of passes over its
        rows (hebbian, default 50).
    random_state : int, RandomState, Generator or None
        Seed or generator for the start of krylov and hebbian, and for the anchors of nystroem.
    initial : ndarray of shape (n, m), "nystroem" or ``Eigenpairs.resume``, optional
        Where to start: approximate eigenvectors in columns; "nystroem", to compute them from
        anchors; or the attribute `resume` of an earlier result of hebbian, to continue that run.
    memory_budget : str or number, optional
        For dense: maximum memory of the whole matrix. By default, the memory is not checked.
    callback : callable, optional
        Called after each iteration with the new entry of the history.

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
    chosen = resolve_solver(
        solver,
        n,
        k,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        initial=initial,
        memory_budget=memory_budget,
    )
    return chosen.solve(operator, k, callback=callback)


def check_solver(solver: Any, name: str, owner: str) -> None:
    """Raise unless `solver` is the name of a solver or an object with a method `solve`."""
    if isinstance(solver, str):
        check_choice(solver, SOLVERS, name, owner)
    elif isinstance(solver, type) or not hasattr(solver, "solve"):
        raise ValueError(
            f"{name} of {owner} must be one of {SOLVERS} or a solver object; got {solver!r}."
        )


def resolve_solver(solver: Any, n: int, k: int, *, exact: bool = True, **options: Any) -> Any:
    """Return the solver object to run for a valid `solver`, which is a name or an object.

    `exact` is as in :func:`choose_solver`. `options` are `max_iter` and parameters of the solver;
    an option that is None means the solver's default. If `solver` is an object, an option is used
    only if the object's parameter is None.
    """
    if solver == "auto":
        by_anchors = options.get("n_anchors") is not None and not exact
        solver = "nystroem" if by_anchors else choose_solver(n, k, exact=exact).solver
        if solver == "krylov" and n <= _FEW_ROWS and options.get("max_iter") is None:
            options = options | {"max_iter": _FEW_PRODUCTS, "or_dense": True}
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
