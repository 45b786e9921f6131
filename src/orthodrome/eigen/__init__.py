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
from .filters import (
    ClassSpectrum,
    Filter,
    LeftOutTangents,
    Perturbation,
    RidgeResidual,
    Truncation,
    captured,
    class_spectrum,
    folded_residuals,
    left_out_mean_cosines,
    leveled,
    remainder,
)
from .kha import Hebbian, HebbianResult, hebbian
from .krylov import Krylov
from .leading import SOLVERS, Choice, Options, choose_solver, leading, resolve_solver
from .pairs import Eigenpairs, orient

__all__ = [
    "SOLVERS",
    "Choice",
    "ClassSpectrum",
    "Components",
    "Dense",
    "Eigenpairs",
    "Filter",
    "Hebbian",
    "HebbianResult",
    "Krylov",
    "LeftOutTangents",
    "Options",
    "Perturbation",
    "RidgeResidual",
    "Truncation",
    "affine_map",
    "captured",
    "choose_solver",
    "class_spectrum",
    "folded_residuals",
    "hebbian",
    "leading",
    "left_out_mean_cosines",
    "leveled",
    "make_components",
    "orient",
    "remainder",
    "resolve_solver",
    "solve_components",
    "tangent_frame",
    "weighted_problem",
]
