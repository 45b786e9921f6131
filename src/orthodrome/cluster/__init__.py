"""Clustering: thin scikit-learn estimators over kernels, Gram operators and eigensolvers."""

from .kmeans import HypersphericalKMeans, KernelKMeans
from .mixture import GeodesicMixture
from .spectral import KernelSpectralClustering

__all__ = ["GeodesicMixture", "HypersphericalKMeans", "KernelKMeans", "KernelSpectralClustering"]
