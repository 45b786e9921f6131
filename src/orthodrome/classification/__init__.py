"""Classification: thin scikit-learn estimators over class-wise Gram matrices."""

from .perturbo import PerTurbo

__all__ = ["PerTurbo"]
