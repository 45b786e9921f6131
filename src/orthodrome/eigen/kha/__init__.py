"""The Kernel Hebbian Algorithm and its family: KHA, KHA/t, KHA/et and KHA-SMD."""

from .run import HebbianResult
from .solver import Hebbian, hebbian

__all__ = ["Hebbian", "HebbianResult", "hebbian"]
