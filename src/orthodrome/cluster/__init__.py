"""Clustering: thin scikit-learn estimators over kernels, Gram operators and eigensolvers."""

from .kmeans import HypersphericalKMeans, KernelKMeans
from .spectral import KernelSpectralClustering

__all__ = ["HypersphericalKMeans", "KernelKMeans", "KernelSpectralClustering"]
