"""The Kernel Hebbian Algorithm (KHA) and its variants KHA/t, KHA/et and KHA-SMD."""

from .run import HebbianResult
from .solver import Hebbian, hebbian

__all__ = ["Hebbian", "HebbianResult", "hebbian"]
