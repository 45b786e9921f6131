"""Classification: thin scikit-learn estimators on kernels."""

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
from .nested_spheres import NestedSpheresClassifier
from .perturbo import PerTurbo
from .ridge import KernelRidgeRegressionClassifier

__all__ = [
    "ClassSpectrum",
    "Filter",
    "KernelRidgeRegressionClassifier",
    "LeftOutTangents",
    "NestedSpheresClassifier",
    "PerTurbo",
    "Perturbation",
    "RidgeResidual",
    "Truncation",
    "captured",
    "class_spectrum",
    "folded_residuals",
    "left_out_mean_cosines",
    "leveled",
    "remainder",
]
