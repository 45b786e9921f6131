"""Gram operators: N x N matrices of inner products of which only products are needed."""

from .anchors import Anchors, choose_anchors
from .base import CrossOperator, GramOperator
from .centered import Centered, squared_distance_to_mean
from .combined import Combined
from .dask_features import DaskFeatures
from .dask_gram import DaskCross, DaskGram
from .dask_source import DaskSource
from .degree import Degree, DegreeCross
from .dense import DenseGram
from .factor import Isometry, feature_coordinates, isometric_coordinates, pivoted_cholesky
from .factory import choose_storage, cross_operator, gram_diagonal, gram_operator
from .feature_gram import FeatureCross, FeatureGram, FeatureRows
from .feature_map import (
    CenteredSums,
    DiagonalSums,
    FeatureMap,
    FrameRows,
    Lengths,
    LogSums,
    PullSums,
)
from .inputs import as_source, kind_of
from .local_sources import ArraySource, BatchSource, ZarrSource
from .moments import fit_kernel, row_moments
from .nystroem import NystroemFeatures, nystroem_features
from .pivots import PartialCholesky, partial_cholesky
from .sources import RowCheck, RowSource, spread_rows
from .tangent import Tangent
from .tiled import TiledGram
from .unit import Scaled, squared_radius

__all__ = [
    "Anchors",
    "ArraySource",
    "BatchSource",
    "Centered",
    "CenteredSums",
    "Combined",
    "CrossOperator",
    "DaskCross",
    "DaskFeatures",
    "DaskGram",
    "DaskSource",
    "Degree",
    "DegreeCross",
    "DenseGram",
    "DiagonalSums",
    "FeatureCross",
    "FeatureGram",
    "FeatureMap",
    "FeatureRows",
    "FrameRows",
    "GramOperator",
    "Isometry",
    "Lengths",
    "LogSums",
    "NystroemFeatures",
    "PartialCholesky",
    "PullSums",
    "RowCheck",
    "RowSource",
    "Scaled",
    "Tangent",
    "TiledGram",
    "ZarrSource",
    "as_source",
    "choose_anchors",
    "choose_storage",
    "cross_operator",
    "feature_coordinates",
    "fit_kernel",
    "gram_diagonal",
    "gram_operator",
    "isometric_coordinates",
    "kind_of",
    "nystroem_features",
    "partial_cholesky",
    "pivoted_cholesky",
    "row_moments",
    "spread_rows",
    "squared_distance_to_mean",
    "squared_radius",
]
