"""The list of classes that a model file may hold. Functions are never allowed.

Objects of these classes are plain data: numbers, text, arrays, and objects of other listed classes.
Kernels that call a user's function (``FromCallable``, ``Embedded``) are excluded. So are random
generators and ``HebbianResult``, because compiled code uses their state without checking it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import pipeline, preprocessing, svm

from .. import classification, cluster, coordinates, decomposition, denoising, eigen, kernels
from .. import preprocessing as tables
from .._core import canonical
from ..classification import base, subspaces
from ..cluster import laplacians
from ..decomposition import partial
from ..eigen import features, mrcd
from ..preimage import ridge
from ..sphere import incremental, mixture, nested, von_mises_fisher

# NestedSpheresClassifier holds a LinearSVC; pipelines hold scalers.
_CLASSES: dict[ModuleType, str] = {
    classification: "KernelRidgeRegressionClassifier NestedSpheresClassifier PerTurbo",
    cluster: "GeodesicMixture HypersphericalKMeans KernelKMeans KernelSpectralClustering",
    decomposition: "KernelMRCD KernelPCA KernelPGA KernelPNS RobustKernelPCA",
    denoising: "PatchDenoiser SequenceDenoiser",
    eigen: "Dense Hebbian Krylov Nystroem",
    kernels: (
        "AdditiveChi2 Chi2 Circular ComplexGaussian Cosine Exponential FullProcrustes Gaussian "
        "Geodesic HermitianLinear Laplacian Linear Log LogEuclidean Matern NeighborGraph "
        "Normalized Polynomial Power Precomputed RBF RationalQuadratic RiemannianShape Sigmoid "
        "Spherical VeroneseWhitney Wave"
    ),
    # classes of fitted attributes
    canonical: "Canonical",
    base: "_Judgement",
    subspaces: "Subspace TrainingPoints _Training",
    laplacians: "AffineExtension GraphExtension",
    coordinates: "Anchors",
    partial: "PartialFit",
    kernels.base: "Prepared",
    features: "FeatureMoments",
    mrcd: "RobustCovariance",
    ridge: "RidgeMap",
    incremental: "Reservoir TangentMoments",
    mixture: "Mixture",
    von_mises_fisher: "DirectionMixture",
    nested: "NestedSpheres Subsphere",
    pipeline: "Pipeline",
    preprocessing: "MaxAbsScaler MinMaxScaler Normalizer RobustScaler StandardScaler",
    svm: "LinearSVC",
    tables: "TableCleaner",
}


def name_of(kind: type) -> str:
    """Return the name of a class as stored in a file.

    Our own classes are named without their modules, which may change.
    """
    is_own = kind.__module__.startswith("orthodrome.")
    return f"{'orthodrome' if is_own else kind.__module__}.{kind.__name__}"


#: Classes with attributes, by name. Subclasses are not allowed.
OBJECTS: dict[str, Any] = {
    name_of(kind): kind
    for module, names in _CLASSES.items()
    for kind in (getattr(module, name) for name in names.split())
}

SPARSE: dict[str, Any] = {
    name_of(kind): kind for kind in (scipy.sparse.csr_array, scipy.sparse.csr_matrix)
}

#: Python types that are stored as JSON text. As in skops, their nodes name the class ``str``.
PRIMITIVES = (type(None), bool, int, float, str)

# Without float16 and longdouble, which compiled loops do not support.
_NUMBERS = frozenset(map(np.dtype, "?bhilqBHILQfdFD"))

ARRAY = "numpy.ndarray"
_SCALARS = {name_of(dtype.type) for dtype in (*_NUMBERS, np.dtype("U"), np.dtype("S"))}

#: The kind of node of skops (``__loader__``) for every class that a file may name.
LOADERS: dict[str, str] = {
    "builtins.dict": "DictNode",
    "builtins.list": "ListNode",
    "builtins.str": "JsonNode",
    "builtins.tuple": "TupleNode",
    **dict.fromkeys((*_SCALARS, ARRAY), "NdArrayNode"),
    **dict.fromkeys(SPARSE, "SparseMatrixNode"),
    **dict.fromkeys(OBJECTS, "ObjectNode"),
}


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Return whether files may hold this dtype: native numbers, or text of known length."""
    text = dtype.kind in "US" and dtype.itemsize > 0
    return dtype.isnative and (text or dtype in _NUMBERS)
