"""The Kernel Hebbian Algorithm and its family: KHA, KHA/t, KHA/et and KHA-SMD."""

from .run import HebbianResult, hebbian
from .solver import Hebbian

__all__ = ["Hebbian", "HebbianResult", "hebbian"]
