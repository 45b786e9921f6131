"""Kernels as parameter objects: evaluated in blocks, cloned and grid-searched like estimators."""

from .bandwidth import mean_squared_distance, median_distance
from .base import Kernel
from .geodesic import Geodesic
from .matern import Exponential, Matern
from .names import KERNELS, as_fitted_kernel, as_kernel
from .neighbors import NeighborGraph
from .pairwise import AdditiveChi2, Chi2, Cosine, Laplacian, Linear, Polynomial, Sigmoid
from .radial import RBF, Circular, Gaussian, Log, Power, Radial, RationalQuadratic, Spherical, Wave
from .shapes import (
    ComplexGaussian,
    FullProcrustes,
    HermitianLinear,
    RiemannianShape,
    VeroneseWhitney,
)
from .spd import LogEuclidean
from .wrappers import Embedded, FromCallable, Normalized, Precomputed

__all__ = [
    "KERNELS",
    "RBF",
    "AdditiveChi2",
    "Chi2",
    "Circular",
    "ComplexGaussian",
    "Cosine",
    "Embedded",
    "Exponential",
    "FromCallable",
    "FullProcrustes",
    "Gaussian",
    "Geodesic",
    "HermitianLinear",
    "Kernel",
    "Laplacian",
    "Linear",
    "Log",
    "LogEuclidean",
    "Matern",
    "NeighborGraph",
    "Normalized",
    "Polynomial",
    "Power",
    "Precomputed",
    "Radial",
    "RationalQuadratic",
    "RiemannianShape",
    "Sigmoid",
    "Spherical",
    "VeroneseWhitney",
    "Wave",
    "as_fitted_kernel",
    "as_kernel",
    "mean_squared_distance",
    "median_distance",
]
