"""Kernels that are functions of the Euclidean distance, k(x, y) = h(‖x - y‖²).

Each kernel provides its profile h, the derivative of h with respect to d² (pre-images need it) and
1 - h without cancellation (angles on the sphere need it).
"""

from .base import Radial, ScaledRadial, resolve_sigma
from .compact import Circular, Spherical
from .distances import squared_distances
from .matern import Exponential, Matern
from .smooth import RBF, Gaussian, RationalQuadratic, Wave
from .unbounded import Log, Power

__all__ = [
    "RBF",
    "Circular",
    "Exponential",
    "Gaussian",
    "Log",
    "Matern",
    "Power",
    "Radial",
    "RationalQuadratic",
    "ScaledRadial",
    "Spherical",
    "Wave",
    "resolve_sigma",
    "squared_distances",
]
