"""Learning on Hilbert spheres and shape spaces, compatible with scikit-learn.

Public names are imported on first use, so that ``import orthodrome`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classification import KernelRidgeRegressionClassifier, NestedSpheresClassifier, PerTurbo
    from .cluster import (
        GeodesicMixture,
        HypersphericalKMeans,
        KernelKMeans,
        KernelSpectralClustering,
    )
    from .decomposition import KernelMRCD, KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
    from .denoising import PatchDenoiser
    from .persist import load, save

__version__ = "0.1.0.dev0"

__all__ = [
    "GeodesicMixture",
    "HypersphericalKMeans",
    "KernelKMeans",
    "KernelMRCD",
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

_PACKAGE_OF = {
    "GeodesicMixture": "cluster",
    "HypersphericalKMeans": "cluster",
    "KernelKMeans": "cluster",
    "KernelMRCD": "decomposition",
    "KernelPCA": "decomposition",
    "KernelPGA": "decomposition",
    "KernelPNS": "decomposition",
    "KernelRidgeRegressionClassifier": "classification",
    "KernelSpectralClustering": "cluster",
    "NestedSpheresClassifier": "classification",
    "PatchDenoiser": "denoising",
    "PerTurbo": "classification",
    "RobustKernelPCA": "decomposition",
    "load": "persist",
    "save": "persist",
}
_PACKAGES = (
    "app",
    "classification",
    "cluster",
    "datasets",
    "decomposition",
    "denoising",
    "eigen",
    "gram",
    "kernels",
    "metrics",
    "persist",
    "plots",
    "preimage",
    "spaces",
    "sphere",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGE_OF:
        return getattr(import_module(f".{_PACKAGE_OF[name]}", __name__), name)
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
