"""Geometry of the unit sphere, in explicit coordinates and in coefficients over a Gram operator."""

from .karcher import KarcherMean, karcher_mean
from .maps import distance, exp, exp_at_pole, log, log_at_pole

__all__ = [
    "KarcherMean",
    "distance",
    "exp",
    "exp_at_pole",
    "karcher_mean",
    "log",
    "log_at_pole",
]
