"""Classification: thin scikit-learn estimators on kernels."""

from .nested_spheres import NestedSpheresClassifier
from .perturbo import PerTurbo

__all__ = ["NestedSpheresClassifier", "PerTurbo"]
