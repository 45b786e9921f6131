"""Coordinates of points in feature space, from anchors or eigenvectors of a Gram matrix."""

from .anchors import Anchors, choose_anchors
from .isometry import isometric_coordinates, pivoted_cholesky
from .pivots import PartialCholesky, partial_cholesky
from .points import Coordinates, anchor_coordinates

__all__ = [
    "Anchors",
    "Coordinates",
    "PartialCholesky",
    "anchor_coordinates",
    "choose_anchors",
    "isometric_coordinates",
    "partial_cholesky",
    "pivoted_cholesky",
]
