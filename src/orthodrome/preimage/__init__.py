"""Pre-images: from feature space back to inputs."""

from .fixed_point import FixedPoint, fixed_point
from .preimage import Preimages, preimage, radial_preimages
from .ridge import decode_components, ridge

__all__ = [
    "FixedPoint",
    "Preimages",
    "decode_components",
    "fixed_point",
    "preimage",
    "radial_preimages",
    "ridge",
]
