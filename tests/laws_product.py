"""Every kernel and estimator of the package, and data for each.

Kernels are found by their class. A new estimator needs a line in CONFIGURATIONS; a test checks it.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone

import orthodrome
from laws_kernels import POINT, bent, squared_plus_one
from laws_shapes import three_leaves, two_kinds_of_matrices
from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelMRCD,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    KernelSpectralClustering,
    NestedSpheresClassifier,
    PerTurbo,
    RobustKernelPCA,
    kernels,
)
from orthodrome.eigen import Hebbian, Krylov
from orthodrome.kernels import Kernel, Normalized

DTYPES = (np.float64, np.float32)

# Kernels ------------------------------------------------------------------------------------------

_ABSTRACT = (kernels.Kernel, kernels.Radial, kernels.Precomputed, kernels.NeighborGraph)
_ARGUMENTS = {
    "Embedded": (bent,),
    "FromCallable": (squared_plus_one,),
    "Geodesic": (kernels.Gaussian(sigma=1.5), POINT),
    "Normalized": (kernels.Polynomial(degree=2),),
    "Sigmoid": (0.02, 0.2),  # not constant on the data below
}


def kernel_classes() -> list[type[Kernel]]:
    """Return all public kernel classes."""
    found = [getattr(kernels, name) for name in kernels.__all__]
    return [
        each
        for each in found
        if inspect.isclass(each) and issubclass(each, Kernel) and each not in _ABSTRACT
    ]


#: One kernel of each class, with its scale, if any, from the data; and one with another rule.
KERNELS: dict[str, Kernel] = {
    each.__name__: each(*_ARGUMENTS.get(each.__name__, ())) for each in kernel_classes()
} | {"Gaussian, median": kernels.Gaussian(sigma="median")}

SHAPES = {"VeroneseWhitney", "FullProcrustes", "ComplexGaussian", "RiemannianShape"}
COMPLEX = {"HermitianLinear"}
MATRICES = {"LogEuclidean"}
NONNEGATIVE = {"Chi2", "AdditiveChi2"}
#: Zero on the diagonal: there is no sphere, and squared distances are -2 k.
CONDITIONAL = {"Power", "Log", "AdditiveChi2"}
PLANAR = {"Circular"}  # positive definite in the plane
#: Their best clustering is the three groups of `sample`.
CLEAR = {"Exponential", "Gaussian", "Gaussian, median", "Laplacian", "Matern", "RBF"}
CLEAR |= {"RationalQuadratic"}


@dataclass(frozen=True)
class Sample:
    """Training rows of three groups, their labels, and new rows."""

    X: NDArray
    y: NDArray
    new: NDArray

    def __getitem__(self, rows: Any) -> Sample:
        return Sample(self.X[rows], self.y[rows], self.new)


def sample(kernel: str, n: int = 24, seed: int = 0, dtype: Any = np.float64, m: int = 7) -> Sample:
    """Return rows for a kernel, in three groups with a clear best clustering."""
    if kernel in SHAPES | COMPLEX:
        z, y = three_leaves(n + m, seed, spread=0.05)
        X = np.stack([z.real, z.imag], axis=-1)
    elif kernel in MATRICES:
        X, y = two_kinds_of_matrices(n + m, seed)
    else:
        rng = np.random.default_rng(seed)
        y = np.array(["ash", "beech", "oak"])[np.arange(n + m) % 3]
        X = rng.gumbel(size=(n + m, 3)) * [0.5, 0.4, 0.3]
        X += np.array([[2, 2, 2.5], [6, 3, 2], [3, 6, 3]])[np.arange(n + m) % 3]
        X = X[:, :2] if kernel in PLANAR else X
        X = np.maximum(X, 0) if kernel in NONNEGATIVE else X
    order = np.random.default_rng(seed + 1).permutation(n + m)
    X, y = X[order].astype(dtype), y[order]
    return Sample(X[:n], y[:n], X[n:])


# Estimators ---------------------------------------------------------------------------------------


def public_classes() -> set[type]:
    """Return the public classes of every package."""
    packages = [importlib.import_module(f"orthodrome.{name}") for name in orthodrome._PACKAGES]
    public = [getattr(each, name) for each in packages for name in getattr(each, "__all__", ())]
    return {each for each in public if inspect.isclass(each)}


def estimator_classes() -> set[type]:
    """Return all public estimators except kernels."""
    found = {each for each in public_classes() if issubclass(each, BaseEstimator)}
    return {each for each in found if not issubclass(each, Kernel)}


#: How precisely results are independent of the order of rows, for a given seed.
BITS = "to the last bit"  # rows are merged and sorted first
ROUNDING = "to rounding"  # sums in another order; iterative solvers to their tolerance
TOLERANCE = "to the tolerance of its solver"  # the iterations depend on the order
ANCHORS = "given the anchors"  # their choice depends on the order
FOLDS = "given the folds"  # they depend on the order


@dataclass(frozen=True)
class Configuration:
    """An estimator with options."""

    make: type
    options: dict[str, Any]
    order: str = BITS
    sphere: bool = False  # whether points must have unit length
    inputs: bool = False  # whether it computes pre-images
    # whether it accepts a Gram matrix; None if the result differs from that with the data
    matrices: bool | None = True
    n: int = 24

    def __call__(self, kernel: Any, **more: Any) -> Any:
        return self.make(**({"kernel": kernel} | self.options | more))

    @property
    def takes(self) -> set[str]:
        return set(inspect.signature(self.make).parameters)

    @property
    def takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(self.make.fit).parameters

    @property
    def is_random(self) -> bool:
        return "random_state" in self.takes

    @property
    def is_clustering(self) -> bool:
        return hasattr(self.make, "fit_predict") and not self.is_detector

    @property
    def is_detector(self) -> bool:
        return issubclass(self.make, OutlierMixin)

    @property
    def is_classifier(self) -> bool:
        return hasattr(self.make, "predict") and not (self.is_clustering or self.is_detector)


#: With blocks so small that they iterate on few rows.
KRYLOV = Krylov(tol=1e-12, block_size=2, max_basis=1, max_iter=2000)
HEBBIAN = Hebbian(tol=1e-3, n_passes=300, block_size=8)


def _spectral(make: type, **options: Any) -> dict[str, Configuration]:
    sphere = make is KernelPGA
    name = make.__name__
    options = {"n_components": 2, "random_state": 0} | options

    def one(order: str, n: int = 24, **more: Any) -> Configuration:
        return Configuration(make, options | more, order, sphere, n=n)

    return {
        f"{name}, auto": one(ROUNDING),
        f"{name}, dense": one(ROUNDING, solver="dense"),
        f"{name}, krylov": one(ROUNDING, solver=KRYLOV),
        f"{name}, hebbian": one(TOLERANCE, solver=HEBBIAN, n=60),
        f"{name}, nystroem": one(ANCHORS, solver="nystroem", n_anchors=12),
    }


def solver_name(solver: Any) -> str:
    return solver if isinstance(solver, str) else solver.name


def _clusterings() -> dict[str, Configuration]:
    three = {"random_state": 0, "n_init": 10}
    found = {}
    for covariance, update, init in (
        ("full", "karcher", "kernel-k-means"),
        ("diag", "likelihood", "k-means"),
        ("tied", "karcher", "random"),
        ("spherical", "likelihood", "kernel-k-means"),
    ):
        found[f"GeodesicMixture, {covariance}"] = Configuration(
            GeodesicMixture,
            three
            | {"n_components": 3, "n_modes": 2, "covariance_type": covariance}
            | {"mean_update": update, "init_params": init, "reg_covar": 1e-3},
            sphere=True,
        )
    plain = {"n_components": 3, "n_modes": 2, "reg_covar": 1e-3} | three
    for solver in ("dense", KRYLOV, HEBBIAN, "nystroem"):
        name, n = solver_name(solver), 60 if solver is HEBBIAN else 24
        few = {"n_anchors": 12} if solver == "nystroem" else {}
        found[f"GeodesicMixture, {name}"] = Configuration(
            GeodesicMixture, plain | {"solver": solver} | few, sphere=True, n=n
        )
        found[f"KernelSpectralClustering, {name}"] = Configuration(
            KernelSpectralClustering, {"n_clusters": 3, "solver": solver} | three | few, n=n
        )
    for laplacian in ("njw", "ncut", "kernel-pca"):
        found[f"KernelSpectralClustering, {laplacian}"] = Configuration(
            KernelSpectralClustering, {"n_clusters": 3, "laplacian": laplacian} | three
        )
    for init in ("k-means++", "farthest-first", "random"):
        found[f"KernelKMeans, {init}"] = Configuration(
            KernelKMeans, {"n_clusters": 3, "init": init} | three
        )
    few = {"n_clusters": 3, "n_anchors": 12} | three
    found["KernelKMeans, exact"] = Configuration(
        KernelKMeans, {"n_clusters": 3, "solver": "exact"} | three
    )
    found["KernelKMeans, nystroem"] = Configuration(KernelKMeans, few | {"solver": "nystroem"})
    intrinsic = {"n_clusters": 3, "centers": "intrinsic"} | three
    found["HypersphericalKMeans, preimage"] = Configuration(
        HypersphericalKMeans,
        {"n_clusters": 3} | three,
        sphere=True,
        inputs=True,
        matrices=False,
    )
    found["HypersphericalKMeans, intrinsic"] = Configuration(
        HypersphericalKMeans, intrinsic, sphere=True
    )
    found["HypersphericalKMeans, exact"] = Configuration(
        HypersphericalKMeans, intrinsic | {"solver": "exact"}, sphere=True
    )
    found["HypersphericalKMeans, nystroem"] = Configuration(
        HypersphericalKMeans, intrinsic | few | {"solver": "nystroem"}, sphere=True
    )
    return found


def _explicit() -> dict[str, Configuration]:
    def nested(**options: Any) -> Configuration:
        return Configuration(KernelPNS, {"n_components": 2} | options, sphere=True, n=15)

    def robust(sphere: bool = False, **options: Any) -> Configuration:
        return Configuration(RobustKernelPCA, {"n_components": 2} | options, sphere=sphere)

    return {
        "KernelPNS, small": nested(sphere="small", negligible=0.0),
        "KernelPNS, dense": nested(sphere="great", solver="dense"),
        "KernelPNS, robust": nested(sphere="bic", p=1.0),
        "KernelPNS, nystroem": nested(solver="nystroem", n_anchors=8, random_state=0),
        "KernelMRCD": Configuration(KernelMRCD, {}),
        "RobustKernelPCA, mrcd": robust(),
        "RobustKernelPCA, spatial-sign": robust(method="spatial-sign"),
        "RobustKernelPCA, mean": robust(method="pursuit"),
        "RobustKernelPCA, spatial-median": robust(method="pursuit", center="spatial-median", p=0.7),
        "RobustKernelPCA, karcher": robust(True, method="pursuit", center="karcher"),
    }


def _classifiers() -> dict[str, Configuration]:
    def ridge(**options: Any) -> Configuration:
        return Configuration(KernelRidgeRegressionClassifier, {"sigmas": None} | options)

    def nested(order: str = ROUNDING, **options: Any) -> Configuration:
        given = {"n_components": 2, "sphere": "great"} | options
        return Configuration(NestedSpheresClassifier, given, order, sphere=True, n=18)

    return {
        "KernelRidgeRegressionClassifier, loo": ridge(),
        "KernelRidgeRegressionClassifier, given": ridge(alpha=0.01, alpha_scale="relative"),
        "KernelRidgeRegressionClassifier, subspaces": ridge(
            subspace_size=5, random_state=0, class_weight="balanced"
        ),
        "PerTurbo, loo": Configuration(PerTurbo, {"sigmas": None}),
        "PerTurbo, scales": Configuration(PerTurbo, {}, matrices=None),
        "PerTurbo, truncated": Configuration(PerTurbo, {"n_components": 3}),
        "PerTurbo, geodesic": Configuration(
            PerTurbo, {"geodesic": True}, sphere=True, inputs=True, matrices=False
        ),
        "PerTurbo, mean": Configuration(
            PerTurbo, {"geodesic": True, "reference": "mean"}, sphere=True, matrices=False
        ),
        "NestedSpheresClassifier, scores": nested(),
        "NestedSpheresClassifier, paper": nested(features="paper"),
        "NestedSpheresClassifier, cv": nested(FOLDS, p="cv", cv=2, ps=(1.0, 2.0)),
    }


CONFIGURATIONS: dict[str, Configuration] = (
    _spectral(KernelPCA) | _spectral(KernelPGA) | _explicit() | _clusterings() | _classifiers()
)
#: The first configuration of each class, which is tested with every kernel.
FIRST: dict[str, str] = {}
for _name, _each in CONFIGURATIONS.items():
    FIRST.setdefault(_each.make.__name__, _name)


def suited(configuration: Configuration, kernel: str) -> Kernel:
    """Return the kernel, normalised if the configuration needs points of unit length."""
    return on_sphere(kernel) if configuration.sphere else clone(KERNELS[kernel])


def on_sphere(kernel: str) -> Kernel:
    """Return the kernel, normalised unless it has unit norm."""
    found = clone(KERNELS[kernel])
    return found if found.unit_norm else Normalized(found)


#: Kernels without pre-images.
WITHOUT_PREIMAGES = {
    *(name for name, each in KERNELS.items() if not isinstance(each, kernels.Radial)),
    *CONDITIONAL,
} - (SHAPES - {"RiemannianShape"} | MATRICES)


def refused(name: str) -> set[str]:
    """Return kernels that a configuration refuses."""
    each = CONFIGURATIONS[name]
    if each.inputs:
        return WITHOUT_PREIMAGES
    found = set()
    residuals = (KernelRidgeRegressionClassifier, PerTurbo)
    if each.sphere or not issubclass(each.make, residuals):
        found |= COMPLEX
    solver = solver_name(each.options.get("solver", "auto"))
    graph = each.make is KernelSpectralClustering and each.options.get("laplacian") != "kernel-pca"
    lengths = (*residuals, KernelMRCD, RobustKernelPCA)
    if each.sphere or graph or issubclass(each.make, lengths) or solver == "nystroem":
        found |= CONDITIONAL
    return found


def examples(number: int) -> settings:
    """Draw this number of examples; in the quick profile a quarter, and at least three."""
    share = settings.default.max_examples / 100
    return settings(
        max_examples=max(3, round(number * share)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),  # examples are names and seeds, which do not shrink
    )


def fitted(model: Any, given: Sample, sample_weight: Any = None) -> Any:
    """Fit without warnings."""
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ConvergenceWarning is one
        return model.fit(given.X, given.y, **options)


# Results of a fit ---------------------------------------------------------------------------------


def _names(text: str) -> set[str]:
    return set(text.split())


#: Fitted attributes with one row for each training row.
OF_ROWS = _names("distances_ embedding_ features_ labels_ loo_residuals_ mean_cosines_")
#: The same for nested spheres; other estimators have one row for each axis.
OF_ROWS_NESTED = {"residuals_", "sphere_coordinates_"}
#: Other fitted attributes that are compared.
OF_ALL = _names("""
    alpha_ alphas_ class_alphas_ classes_ covariances_ cv_scores_ dispersions_ eigenvalues_
    explained_variance_ratio_ geodesic_variance_ inertia_ loo_score_ loo_scores_ lower_bound_ means_
    n_components_ n_anchors_ n_modes_ offset_ p_ radii_ sigmas_ temperature_ weights_
""")
#: Methods for new data, which are compared.
METHODS = _names("""
    class_residuals decision_function embed features_of inverse_transform predict predict_proba
    score_samples sphere_coordinates transform
""")
#: Not compared: they depend on the order of rows, or describe how the fit went.
NOT_COMPARED = _names("""
    X_fit_ anchor_indices_ axes_ class_kernels_ cluster_centers_ converged_ covariance_type_
    decomposition_ dual_coef_ eigenvectors_ extension_ history_ intercept_ kernel_ kernel_choice_
    mean_ mean_gradient_norm_ mean_n_iter_ n_features_in_ n_iter_ nested_spheres_ pga_
    sample_weight_ selection_ solver_ support_ svm_
""")
#: Not called: sums over METHODS, random draws, and methods of scikit-learn.
NOT_CALLED = _names("""
    aic bic fit fit_predict fit_transform get_feature_names_out get_metadata_routing get_params
    partial_fit sample score set_callbacks set_output set_params
""")


def results(
    model: Any, new: Any, rows: Any = slice(None), frame: bool = True
) -> dict[str, NDArray]:
    """Return attributes of some training rows, other attributes, and results for new data.

    Without `frame`, coordinates that a rotation may change are replaced by their inner products
    with the training points.
    """
    names = OF_ROWS | (OF_ROWS_NESTED if isinstance(model, KernelPNS) else set())
    names = names | ({"sphere_coordinates_"} if isinstance(model, KernelPGA) else set())
    found = {name: np.asarray(getattr(model, name)) for name in names if hasattr(model, name)}
    found = {name: value[rows] for name, value in found.items()}
    found |= {name: np.asarray(getattr(model, name)) for name in OF_ALL if hasattr(model, name)}
    found |= results_for(model, new)
    if isinstance(model, KernelPNS) and not frame:
        for name in {"sphere_coordinates_", "sphere_coordinates", "inverse_transform"} & set(found):
            if found[name].shape:
                found[name] = found[name] @ model.sphere_coordinates_.T
    return found


def results_for(model: Any, new: Any) -> dict[str, NDArray]:
    """Return the results of METHODS for new data, or "refused"."""
    found = {}
    for name in sorted(METHODS):
        if not hasattr(model, name):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                if name == "inverse_transform":
                    found[name] = unturned(model.inverse_transform(model.transform(new)[:3]))
                else:
                    found[name] = np.asarray(getattr(model, name)(new))
            except ValueError:  # indefinite kernels
                found[name] = np.array("refused")
    return found


def unturned(points: NDArray) -> NDArray:
    """Return landmarks in a form that does not depend on their rotation; other data unchanged.

    A pre-image of shapes is rotated like one of the training rows, which depends on their order.
    """
    if points.ndim != 3 or points.shape[2] != 2:
        return points
    z = points[..., 0] + 1j * points[..., 1]
    products = z[:, :, None] * z[:, None].conj()
    return np.concatenate([products.real, products.imag], axis=1)


def partition(labels: Any) -> NDArray[np.intp]:
    """Return labels as numbers in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
