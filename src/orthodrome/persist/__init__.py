"""Model files that hold data and no code: ``save`` and ``load``."""

from .files import load, save

__all__ = ["load", "save"]
