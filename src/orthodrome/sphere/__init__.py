"""Geometry of the unit sphere, in coordinates and, for means, over a Gram operator."""

from .karcher import KarcherMean, karcher_mean
from .maps import distance, exp, exp_at_pole, geodesic_distances, log, log_at_pole
from .nested import NestedSpheres, nested_spheres

__all__ = [
    "KarcherMean",
    "NestedSpheres",
    "distance",
    "exp",
    "exp_at_pole",
    "geodesic_distances",
    "karcher_mean",
    "log",
    "log_at_pole",
    "nested_spheres",
]
