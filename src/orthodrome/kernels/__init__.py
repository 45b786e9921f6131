"""Kernels as parameter objects: evaluated in blocks, cloned and grid-searched like estimators."""

from .bandwidth import mean_squared_distance, median_distance
from .base import Kernel
from .geodesic import Geodesic
from .manifolds import (
    ComplexGaussian,
    FullProcrustes,
    HermitianLinear,
    LogEuclidean,
    RiemannianShape,
    VeroneseWhitney,
)
from .neighbors import NeighborGraph
from .pairwise import AdditiveChi2, Chi2, Cosine, Laplacian, Linear, Polynomial, Sigmoid
from .radial import (
    RBF,
    Circular,
    Exponential,
    Gaussian,
    Log,
    Matern,
    Power,
    Radial,
    RationalQuadratic,
    Spherical,
    Wave,
)
from .wrappers import (
    KERNELS,
    Embedded,
    FromCallable,
    Normalized,
    Precomputed,
    as_fitted_kernel,
    as_kernel,
)

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
