"""Learning on Hilbert spheres and shape spaces, compatible with scikit-learn."""

from .classification import KernelRidgeRegressionClassifier, NestedSpheresClassifier, PerTurbo
from .cluster import GeodesicMixture, HypersphericalKMeans, KernelKMeans, KernelSpectralClustering
from .decomposition import KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
from .denoising import PatchDenoiser
from .persist import load, save

__version__ = "0.1.0.dev0"

__all__ = [
    "GeodesicMixture",
    "HypersphericalKMeans",
    "KernelKMeans",
    "KernelPCA",
    "KernelPGA",
    "KernelPNS",
    "KernelRidgeRegressionClassifier",
    "KernelSpectralClustering",
    "NestedSpheresClassifier",
    "PatchDenoiser",
    "PerTurbo",
    "RobustKernelPCA",
    "__version__",
    "load",
    "save",
]
