"""Save and load model files, which hold data and no code."""

from .archive import load, save

__all__ = ["load", "save"]
