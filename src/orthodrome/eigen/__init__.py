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
from .kha import Hebbian, HebbianResult, hebbian
from .krylov import Krylov
from .leading import SOLVERS, Choice, Options, choose_solver, leading, resolve_solver
from .pairs import Eigenpairs, orient

__all__ = [
    "SOLVERS",
    "Choice",
    "Components",
    "Dense",
    "Eigenpairs",
    "Hebbian",
    "HebbianResult",
    "Krylov",
    "Options",
    "affine_map",
    "choose_solver",
    "hebbian",
    "leading",
    "make_components",
    "orient",
    "resolve_solver",
    "solve_components",
    "tangent_frame",
    "weighted_problem",
]
