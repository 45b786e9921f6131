"""Data spaces: planar shapes, their TPS files, and symmetric positive definite matrices."""

from .digitizing import (
    LandmarkErrors,
    estimate_landmarks,
    find_landmark_errors,
    find_mirrored,
    reflect_specimens,
)
from .landmark_text import (
    LandmarkFile,
    TableLandmarks,
    landmarks_from_table,
    match_labels,
    read_morphologika,
    read_nts,
)
from .shapes import (
    as_complex,
    as_points,
    centroid_size,
    extrinsic_mean,
    helmertize,
    preshape,
    procrustes_align,
    procrustes_distance,
    riemannian_distance,
)
from .spd import (
    check_spd,
    log_euclidean_distance,
    log_euclidean_mean,
    spd_exp,
    spd_log,
    symmetric_matrices,
    symmetric_vectors,
)
from .tps import TPSFile, read_tps, write_tps

__all__ = [
    "LandmarkErrors",
    "LandmarkFile",
    "TPSFile",
    "TableLandmarks",
    "as_complex",
    "as_points",
    "centroid_size",
    "check_spd",
    "estimate_landmarks",
    "extrinsic_mean",
    "find_landmark_errors",
    "find_mirrored",
    "helmertize",
    "landmarks_from_table",
    "log_euclidean_distance",
    "log_euclidean_mean",
    "match_labels",
    "preshape",
    "procrustes_align",
    "procrustes_distance",
    "read_morphologika",
    "read_nts",
    "read_tps",
    "reflect_specimens",
    "riemannian_distance",
    "spd_exp",
    "spd_log",
    "symmetric_matrices",
    "symmetric_vectors",
    "write_tps",
]
