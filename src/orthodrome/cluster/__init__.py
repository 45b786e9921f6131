"""Clustering estimators for kernels, in the style of scikit-learn."""

from .kmeans import HypersphericalKMeans, KernelKMeans
from .mixture import GeodesicMixture
from .spectral import KernelSpectralClustering

__all__ = ["GeodesicMixture", "HypersphericalKMeans", "KernelKMeans", "KernelSpectralClustering"]
