"""Pre-images: inputs whose feature vectors are near given points of feature space."""

from .karcher import KarcherPreimage, geodesic_kernel, karcher_mean_preimage
from .manifold import Preimages, preimage

__all__ = [
    "KarcherPreimage",
    "Preimages",
    "geodesic_kernel",
    "karcher_mean_preimage",
    "preimage",
]
