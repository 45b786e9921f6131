"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .base import CrossOperator, DenseGram, GramOperator, SparseGram
from .factory import choose_storage, cross_operator, gram_operator
from .wrapped import Centered, Degree, Scaled, Tangent, Weighted

__all__ = [
    "Centered",
    "CrossOperator",
    "Degree",
    "DenseGram",
    "GramOperator",
    "Scaled",
    "SparseGram",
    "Tangent",
    "Weighted",
    "choose_storage",
    "cross_operator",
    "gram_operator",
]
