"""Decompositions: thin scikit-learn estimators over kernels, Gram operators and eigensolvers."""

from .kernel_mrcd import KernelMRCD
from .kernel_pca import KernelPCA
from .kernel_pga import KernelPGA
from .kernel_pns import KernelPNS
from .robust_kernel_pca import RobustKernelPCA

__all__ = ["KernelMRCD", "KernelPCA", "KernelPGA", "KernelPNS", "RobustKernelPCA"]
