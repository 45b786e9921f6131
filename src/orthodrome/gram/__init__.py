"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .base import CrossOperator, GramOperator
from .centered import Centered, squared_distance_to_mean
from .combined import Combined
from .degree import Degree, DegreeCross
from .dense import DenseGram
from .factor import Isometry, isometric_coordinates, pivoted_cholesky
from .factory import choose_storage, cross_operator, gram_diagonal, gram_operator
from .nystroem import Landmarks, NystroemFeatures, choose_landmarks, nystroem_features
from .pivots import PartialCholesky, partial_cholesky
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
    "Landmarks",
    "NystroemFeatures",
    "PartialCholesky",
    "Scaled",
    "Tangent",
    "TiledGram",
    "choose_landmarks",
    "choose_storage",
    "cross_operator",
    "gram_diagonal",
    "gram_operator",
    "isometric_coordinates",
    "nystroem_features",
    "partial_cholesky",
    "pivoted_cholesky",
    "squared_distance_to_mean",
    "squared_radius",
]
