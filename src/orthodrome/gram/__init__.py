"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .base import CrossOperator, GramOperator
from .centered import Centered, squared_distance_to_mean
from .combined import Combined
from .dask_gram import DaskCross, DaskGram
from .degree import Degree, DegreeCross
from .dense import DenseGram
from .factory import choose_storage, cross_operator, gram_diagonal, gram_operator
from .tangent import Tangent
from .tiled import TiledGram
from .unit import Scaled, squared_radius

__all__ = [
    "Centered",
    "Combined",
    "CrossOperator",
    "DaskCross",
    "DaskGram",
    "Degree",
    "DegreeCross",
    "DenseGram",
    "GramOperator",
    "Scaled",
    "Tangent",
    "TiledGram",
    "choose_storage",
    "cross_operator",
    "gram_diagonal",
    "gram_operator",
    "squared_distance_to_mean",
    "squared_radius",
]
