"""Clustering: thin scikit-learn estimators over kernels, Gram operators and eigensolvers."""

from .spectral import KernelSpectralClustering

__all__ = ["KernelSpectralClustering"]
