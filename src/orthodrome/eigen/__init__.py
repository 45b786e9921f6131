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
from .features import (
    FeatureAxes,
    FeatureMoments,
    centered_covariance,
    feature_axes,
    tangent_covariance,
)
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
from .nystroem import Nystroem
from .pairs import Eigenpairs, orient, orient_by_moments

__all__ = [
    "SOLVERS",
    "Choice",
    "ClassSpectrum",
    "Components",
    "Dense",
    "Eigenpairs",
    "FeatureAxes",
    "FeatureMoments",
    "Filter",
    "Hebbian",
    "HebbianResult",
    "Krylov",
    "LeftOutTangents",
    "Nystroem",
    "Options",
    "Perturbation",
    "RidgeResidual",
    "Truncation",
    "affine_map",
    "captured",
    "centered_covariance",
    "choose_solver",
    "class_spectrum",
    "feature_axes",
    "folded_residuals",
    "hebbian",
    "leading",
    "left_out_mean_cosines",
    "leveled",
    "make_components",
    "orient",
    "orient_by_moments",
    "remainder",
    "resolve_solver",
    "solve_components",
    "tangent_covariance",
    "tangent_frame",
    "weighted_problem",
]
