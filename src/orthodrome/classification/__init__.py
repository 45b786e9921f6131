"""Classification: thin scikit-learn estimators on kernels."""

from .nested_spheres import NestedSpheresClassifier
from .perturbo import PerTurbo
from .ridge import KernelRidgeRegressionClassifier

__all__ = [
    "KernelRidgeRegressionClassifier",
    "NestedSpheresClassifier",
    "PerTurbo",
]
