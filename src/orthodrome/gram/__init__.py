"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .base import CrossOperator, GramOperator
from .centered import Centered
from .combined import Combined
from .degree import Degree
from .dense import DenseGram
from .factory import choose_storage, cross_operator, gram_diagonal, gram_operator
from .tangent import Tangent
from .unit import Scaled

__all__ = [
    "Centered",
    "Combined",
    "CrossOperator",
    "Degree",
    "DenseGram",
    "GramOperator",
    "Scaled",
    "Tangent",
    "choose_storage",
    "cross_operator",
    "gram_diagonal",
    "gram_operator",
]
