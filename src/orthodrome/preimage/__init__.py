"""Pre-images: inputs whose feature vectors are near given points of feature space."""

from .manifold import KarcherPreimage, Preimages, geodesic_kernel, karcher_mean_preimage, preimage

__all__ = [
    "KarcherPreimage",
    "Preimages",
    "geodesic_kernel",
    "karcher_mean_preimage",
    "preimage",
]
