"""Learning on Hilbert spheres and shape spaces, compatible with scikit-learn."""

from .decomposition import KernelPCA

__version__ = "0.1.0.dev0"

__all__ = ["KernelPCA", "__version__"]
