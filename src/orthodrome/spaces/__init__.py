"""Data spaces: planar shapes, their TPS files, and symmetric positive definite matrices."""

from .procrustes import procrustes_align, procrustes_distance, riemannian_distance
from .shapes import as_complex, as_points, centroid_size, extrinsic_mean, helmertize, preshape
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
    "TPSFile",
    "as_complex",
    "as_points",
    "centroid_size",
    "check_spd",
    "extrinsic_mean",
    "helmertize",
    "log_euclidean_distance",
    "log_euclidean_mean",
    "preshape",
    "procrustes_align",
    "procrustes_distance",
    "read_tps",
    "riemannian_distance",
    "spd_exp",
    "spd_log",
    "symmetric_matrices",
    "symmetric_vectors",
    "write_tps",
]
