"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .base import CrossOperator, GramOperator
from .centered import Centered
from .combined import Combined
from .dense import DenseGram
from .factory import choose_storage, gram_operator
from .tiled import TiledGram

__all__ = [
    "Centered",
    "Combined",
    "CrossOperator",
    "DenseGram",
    "GramOperator",
    "TiledGram",
    "choose_storage",
    "gram_operator",
]
