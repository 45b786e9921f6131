"""Coordinates of points in feature space: by anchors, or by the eigenvectors of a Gram matrix."""

from .anchors import Anchors, choose_anchors
from .blocks import AnchorMap, Block
from .gram import CoordinateCross, CoordinateGram, CoordinateRows
from .isometry import (
    Isometry,
    isometric_coordinates,
    pivoted_cholesky,
    principal_coordinates,
)
from .pivots import PartialCholesky, partial_cholesky
from .points import Coordinates, Sample, anchor_coordinates

__all__ = [
    "AnchorMap",
    "Anchors",
    "Block",
    "CoordinateCross",
    "CoordinateGram",
    "CoordinateRows",
    "Coordinates",
    "Isometry",
    "PartialCholesky",
    "Sample",
    "anchor_coordinates",
    "choose_anchors",
    "isometric_coordinates",
    "partial_cholesky",
    "pivoted_cholesky",
    "principal_coordinates",
]
