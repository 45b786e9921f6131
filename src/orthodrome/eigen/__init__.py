"""Leading eigenpairs of symmetric operators: one call, several solvers, one result."""

from .components import (
    Components,
    affine_map,
    make_components,
    solve_components,
    tangent_frame,
    weighted_problem,
)
from .dense import Dense
from .krylov import Krylov
from .leading import Choice, choose_solver, leading, resolve_solver
from .pairs import Eigenpairs, orient

__all__ = [
    "Choice",
    "Components",
    "Dense",
    "Eigenpairs",
    "Krylov",
    "affine_map",
    "choose_solver",
    "leading",
    "make_components",
    "orient",
    "resolve_solver",
    "solve_components",
    "tangent_frame",
    "weighted_problem",
]
