"""Classifiers for kernels, in the style of scikit-learn."""

from .nested_spheres import NestedSpheresClassifier
from .perturbo import PerTurbo
from .ridge import KernelRidgeRegressionClassifier

__all__ = [
    "KernelRidgeRegressionClassifier",
    "NestedSpheresClassifier",
    "PerTurbo",
]
