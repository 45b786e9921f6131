"""Leading eigenpairs of symmetric operators: one call, several solvers, one result."""

from .dense import Dense
from .krylov import Krylov
from .leading import Choice, choose_solver, leading, resolve_solver
from .pairs import Eigenpairs, orient

__all__ = [
    "Choice",
    "Dense",
    "Eigenpairs",
    "Krylov",
    "choose_solver",
    "leading",
    "orient",
    "resolve_solver",
]
