"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .base import CrossOperator, GramOperator
from .centered import Centered, squared_distance_to_mean
from .combined import Combined
from .degree import Degree, DegreeCross
from .dense import DenseGram
from .factor import Isometry, isometric_coordinates, pivoted_cholesky
from .factory import choose_storage, cross_operator, gram_operator
from .tangent import Tangent
from .tiled import TiledGram
from .unit import Scaled, squared_radius

__all__ = [
    "Centered",
    "Combined",
    "CrossOperator",
    "Degree",
    "DegreeCross",
    "DenseGram",
    "GramOperator",
    "Isometry",
    "Scaled",
    "Tangent",
    "TiledGram",
    "choose_storage",
    "cross_operator",
    "gram_operator",
    "isometric_coordinates",
    "pivoted_cholesky",
    "squared_distance_to_mean",
    "squared_radius",
]
