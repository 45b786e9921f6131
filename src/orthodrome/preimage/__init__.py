"""Pre-images: from feature space back to inputs."""

from .centers import PreimageCenters
from .fixed_point import FixedPoint, fixed_point
from .karcher import KarcherPreimage, geodesic_kernel, karcher_mean_preimage, left_out_preimages
from .manifold import Preimages, fixed_point_preimages, has_fixed_point
from .preimage import preimage
from .ridge import RidgeMap, decode_components, ridge

__all__ = [
    "FixedPoint",
    "KarcherPreimage",
    "PreimageCenters",
    "Preimages",
    "RidgeMap",
    "decode_components",
    "fixed_point",
    "fixed_point_preimages",
    "geodesic_kernel",
    "has_fixed_point",
    "karcher_mean_preimage",
    "left_out_preimages",
    "preimage",
    "ridge",
]
