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
from .features import CenteredSums, FeatureAxes, FeatureMoments, feature_axes, second_moment
from .kha import Hebbian, HebbianResult, hebbian
from .krylov import Krylov
from .leading import SOLVERS, Choice, Options, choose_solver, leading, resolve_solver
from .nystroem import Nystroem
from .pairs import Eigenpairs, orient, orient_by_moments

__all__ = [
    "SOLVERS",
    "CenteredSums",
    "Choice",
    "Components",
    "Dense",
    "Eigenpairs",
    "FeatureAxes",
    "FeatureMoments",
    "Hebbian",
    "HebbianResult",
    "Krylov",
    "Nystroem",
    "Options",
    "affine_map",
    "choose_solver",
    "feature_axes",
    "hebbian",
    "leading",
    "make_components",
    "orient",
    "orient_by_moments",
    "resolve_solver",
    "second_moment",
    "solve_components",
    "tangent_frame",
    "weighted_problem",
]
