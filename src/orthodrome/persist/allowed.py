"""The classes that a model file may hold: exactly these, by name, and no function.

A class belongs here if an object of it is plain data: numbers, text, arrays, and objects of other
classes of the list. What calls a function of the user (:class:`~orthodrome.kernels.FromCallable`,
:class:`~orthodrome.kernels.Embedded`) is left out. So are random generators, whose compiled code
trusts a state, and what a warm start goes on from (``HebbianResult``), which a compiled loop does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from .._core.canonical import Canonical
from ..classification import KernelRidgeRegressionClassifier, NestedSpheresClassifier, PerTurbo
from ..classification.base import _Judgement, _Training
from ..classification.subspaces import Subspace
from ..cluster import GeodesicMixture, HypersphericalKMeans, KernelKMeans, KernelSpectralClustering
from ..cluster.laplacians import AffineExtension, GraphExtension
from ..coordinates import Anchors
from ..decomposition import KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
from ..decomposition.partial import PartialFit
from ..denoising import PatchDenoiser, SequenceDenoiser
from ..eigen import Dense, FeatureMoments, Hebbian, Krylov, Nystroem
from ..kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Circular,
    ComplexGaussian,
    Cosine,
    Exponential,
    FullProcrustes,
    Gaussian,
    Geodesic,
    HermitianLinear,
    Laplacian,
    Linear,
    Log,
    LogEuclidean,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Precomputed,
    RationalQuadratic,
    RiemannianShape,
    Sigmoid,
    Spherical,
    VeroneseWhitney,
    Wave,
)
from ..kernels._prepared import Prepared
from ..preimage import RidgeMap
from ..sphere._subspheres import Subsphere
from ..sphere.incremental import Reservoir, TangentMoments
from ..sphere.mixture import Mixture
from ..sphere.nested import NestedSpheres

__all__ = ["ARRAYS", "OBJECTS", "SCALARS", "SPARSE", "is_plain", "name_of", "names_of"]

_ESTIMATORS = (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    KernelSpectralClustering,
    NestedSpheresClassifier,
    PerTurbo,
    RobustKernelPCA,
)
_DENOISERS = (PatchDenoiser, SequenceDenoiser)
_KERNELS = (
    AdditiveChi2,
    Chi2,
    Circular,
    ComplexGaussian,
    Cosine,
    Exponential,
    FullProcrustes,
    Gaussian,
    Geodesic,
    HermitianLinear,
    Laplacian,
    Linear,
    Log,
    LogEuclidean,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Precomputed,
    RBF,
    RationalQuadratic,
    RiemannianShape,
    Sigmoid,
    Spherical,
    VeroneseWhitney,
    Wave,
)
_SOLVERS = (Dense, Hebbian, Krylov, Nystroem)
_FITTED_PARTS = (
    AffineExtension,
    Canonical,
    FeatureMoments,
    GraphExtension,
    Anchors,
    Mixture,
    NestedSpheres,
    PartialFit,
    Prepared,
    Reservoir,
    RidgeMap,
    Subspace,
    Subsphere,
    TangentMoments,
    _Judgement,
    _Training,
)
# LinearSVC sits in NestedSpheresClassifier; the others stand before our estimators in a pipeline.
_OF_SCIKIT_LEARN = (
    LinearSVC,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    Pipeline,
    RobustScaler,
    StandardScaler,
)

#: Classes with attributes. A subclass is another class, and is not allowed.
OBJECTS: frozenset[type] = frozenset(
    (*_ESTIMATORS, *_DENOISERS, *_KERNELS, *_SOLVERS, *_FITTED_PARTS, *_OF_SCIKIT_LEARN)
)

#: NumPy's numbers and strings.
SCALARS: frozenset[type] = frozenset(
    (
        np.bool_,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
        np.float16,
        np.float32,
        np.float64,
        np.complex64,
        np.complex128,
        np.str_,
    )
)

ARRAYS: frozenset[type] = frozenset((np.ndarray,))

SPARSE: frozenset[type] = frozenset((scipy.sparse.csr_array, scipy.sparse.csr_matrix))

# Not float16 and longdouble: compiled loops take neither.
_NUMBERS = frozenset(map(np.dtype, "?bhilqBHILQfdFD"))


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether an array in a file may have this dtype: native numbers, or text of fixed length."""
    text = dtype.kind in "US" and dtype.itemsize > 0
    return dtype.isnative and (text or dtype in _NUMBERS)


def name_of(kind: type) -> str:
    """Return the name by which a file calls a class."""
    return f"{kind.__module__}.{kind.__name__}"


def names_of(kinds: Any) -> frozenset[str]:
    """Return the names of several classes."""
    return frozenset(name_of(kind) for kind in kinds)
