"""Decompositions: thin scikit-learn estimators over kernels, Gram operators and eigensolvers."""

from .kernel_pca import KernelPCA

__all__ = ["KernelPCA"]
