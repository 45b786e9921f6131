"""Pre-images: from feature space back to inputs."""

from .centers import PreimageCenters
from .fixed_point import FixedPoint, fixed_point
from .karcher import (
    KarcherPreimage,
    geodesic_kernel,
    karcher_mean_preimage,
    left_out_preimages,
)
from .preimage import Preimages, preimage, radial_preimages
from .ridge import decode_components, ridge

__all__ = [
    "FixedPoint",
    "KarcherPreimage",
    "PreimageCenters",
    "Preimages",
    "decode_components",
    "fixed_point",
    "geodesic_kernel",
    "karcher_mean_preimage",
    "left_out_preimages",
    "preimage",
    "radial_preimages",
    "ridge",
]
