"""Check that the parts of a loaded model belong together.

`_TABLES` gives the kind and the shape of each fitted attribute, by class; a class in brackets is
one whose lines are taken over. A letter stands for a size: it has one value within an object, and
in the objects that share it.

=====================  =========================================================================
``float(n,k)``         array of that kind and shape; also ``int``, ``complex``, ``any``;
                       ``_`` is any size
``int(n)<d``           with values from 0 to d - 1
``size(k)``            the size k itself
``rows(n)``            n rows of data that the kernel accepts
``points(n)``          n rows as the kernel prepares them
``Mixture:c,q``        object of that class, which shares the letters c and q
``[c]Subspace:d``      list or tuple of c of them
``-...``, ``...?``     may be left out; may be None
``condition ? a : b``  a if the condition holds for the object, see `_CONDITIONS`
=====================  =========================================================================
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ..kernels import Geodesic, Kernel, Normalized, Precomputed
from ..kernels._prepared import Prepared
from ..preimage import has_fixed_point
from .allowed import OBJECTS

__all__ = ["check_parts"]

Scope = dict[str, Any]  # sizes by letter, and the kernel

_TABLES = """
Fitted
    n_features_in_: size(d)
    kernel_: Kernel:d
Points(Fitted)
    X_fit_: precomputed ? rows(m)? : rows(m)
    _columns_: precomputed ? int(m)<d : int(m)<d?
    n_landmarks_: size(m)?
    landmark_indices_: int(m)?
    n_iter_: number
    converged_: flag
Spectral(Points)
    _columns_: whole ? int(m)<d? : precomputed ? int(m)<d : int(m)<d?
    inverse_alpha: number
    n_components_: size(k)
    eigenvalues_ explained_variance_ratio_ residuals_: float(k)
    eigenvectors_ embedding_: -float(n,k)
    sample_weight_: float(n)?
    dual_coef_: whole ? float(d,k) : float(m,k)
    _ridge_: needs_ridge ? RidgeMap : RidgeMap?
    solver_: text
KernelPCA(Spectral)
    intercept_: float(k)
    _mean_coef_: landmarks ? float(m) : float(m)?
    _mean_square: number
    _constant_diagonal: -number?
    _partial_: -PartialFit:d
KernelPGA(Spectral)
    mean_: whole ? float(d) : float(m)
    mean_cosines_: -float(n)
    _squared_radius geodesic_variance_: number
    _decoder_: float(m,m)?
Explicit(Points)
    _decoder_: float(m,b)
    _squared_radius_: number
    n_components_: size(k)
    embedding_: float(n,k)
KernelPNS(Explicit)
    nested_spheres_: NestedSpheres:b,s
    _mean_: float(k+1)
    _directions_: float(k+1,k)
    explained_variance_ratio_: float(s+1)
    radii_: float(s)
    axes_: float(s,b)
    sphere_coordinates_: float(n,b)
    residuals_: float(n,s+1)
RobustKernelPCA(Explicit)
    inverse_alpha: number
    _center_: float(b)
    _directions_: float(b,k)
    dual_coef_: float(m,k)
    dispersions_ explained_variance_ratio_: float(k)
    _own_embedding_: float(o,k)
    _own_weights_: float(o)
GeodesicMixture(Fitted)
    pga_: KernelPGA
    _columns_: precomputed ? int(_)<d : int(_)<d?
    n_modes_: size(q)
    _floor_: number
    _assignment_: text
    _mixture_: Mixture:c,q
    weights_: float(c)
    means_: float(c,q+1)
    covariances_: any
    labels_: -int(_)<c
KMeans(Points)
    _decoder_: float(m,m)?
    inertia_: number
    labels_: int(_)<c
KernelKMeans(KMeans)
    cluster_centers_: float(c,m)
    _center_squares_: float(c)
    _mean_diagonal_: number
HypersphericalKMeans(KMeans)
    _centers_are_inputs_: flag
    cluster_centers_: of_inputs ? rows(c) : float(c,m)
    _squared_radius_: of_inputs ? -number : number
KernelSpectralClustering(Points)
    extension_: affine ? AffineExtension:m,k : GraphExtension:m,k
    eigenvalues_ residuals_: float(k)
    _mean_diagonal_: number
    _decoder_: float(m,m)?
    cluster_centers_: float(c,k)
    embedding_: -float(n,k)
    labels_: -int(_)<c
Classifier(Fitted)
    classes_: any(c)
    alphas_: float(a)
    alpha_: number
    class_alphas_: float(c)
    class_kernels_: [c]Kernel:d
    support_: int(_)
    _subspaces_: [c]Subspace:d
    _mean_diagonal_: precomputed ? number : -number
    _later_: dict:c,kernel
PerTurbo(Classifier)
KernelRidgeRegressionClassifier(Classifier)
    sigmas_: float(_)
NestedSpheresClassifier(Fitted)
    classes_: any(c)
    decomposition_: KernelPNS
    features_: float(_,f)
    _circle_: flag
    svm_: LinearSVC:c,f
    n_components_: size(f)
Denoiser
    n_components_: size(k)
    model_: unchanged ? KernelPCA? : KernelPCA:k
    explained_variance_ratio_: float(k)
    noise_ blend_: number
PatchDenoiser(Denoiser)
SequenceDenoiser(Denoiser)

AffineExtension
    matrix: float(m,k)
    constant: float(k)
GraphExtension
    vectors: float(m,k)
    eigenvalues: float(k)
    weights inverse_roots: float(m)
    unit_rows: flag
Canonical
    data: rows(m)
    weights: float(m)
    inverse: int(t)
    index: int(m)<t
FeatureMoments
    count trace squared captured: number
    mean: float(m)
    scatter: float(m,m)
    input_mean: float(e)?
    cross: float(m,e)?
Landmarks
    points: precomputed ? rows(m)? : rows(m)
    indices: int(m)?
    decoder: float(m,m)
Mixture
    weights: float(c)
    means: float(c,q+1)
    kind: text
    covariances: any
NestedSpheres
    basis: float(b,z)
    subspheres: [s]Subsphere
    mean_angle wrap orientation n_lost: number
    axes: -float(s,b)
Subsphere
    axis: float(_)
    radius objective n_iter: number
    converged: flag
PartialFit
    n_seen: number
    kernel: Kernel:d?
    landmarks: waiting ? Landmarks? : Landmarks:m,kernel
    moments: waiting ? FeatureMoments? : FeatureMoments:m
    rows: [r]any
    weights: [r]float(_)
RidgeMap
    center: float(e)
    origin: float(g)
    matrix: float(g,e)
Subspace
    kernel: Kernel:d
    points: precomputed ? points(p)? : points(p)
    index: precomputed ? int(p)<d : int(p)
    triangular: flag
    directions: hermitian ? complex(p,_) : float(p,_)
dict
    judgement: -_Judgement:c
    scores: -[_]float(_)
    training: -_Training:c,kernel
    parameters: -dict
_Judgement
    score temperature: number
    residuals: float(_,c)
_Training
    n_rows: size(t)
    members: [c]int(_)<t
    merged: [c]Canonical:kernel
    chosen: [c]int(_)
    alone: int(_)<t
    strays: any
    given prepared: any?

Kernel
    n_features_in_: size(d)
    fitted_: flag
Scaled(Kernel)
    sigma_: number
Radial(Kernel)
    origin_: float(d)
    positive_definite: flag
ScaledRadial(Radial)
    sigma_: number
Geodesic(Kernel)
    kernel_: Kernel:d
    positive_definite: flag
    _reference_: points(r)
    _radius_: number
    _coefficients_: float(r)
ComplexGaussian(Scaled)
    mean_: float(_,2)
    kernel_: Kernel
LogEuclidean(Scaled)
    kernel_: Kernel
Normalized(Kernel)
    kernel_: Kernel:d
    positive_definite: flag
Gamma(Kernel)
    gamma_: number
Polynomial(Gamma)
    positive_definite: flag
Precomputed
    n_features_in_: number
    fitted_: flag
RBF(Radial)
    gamma_: number
AdditiveChi2(Kernel)
Chi2(Kernel)
Cosine(Kernel)
HermitianLinear(Kernel)
Linear(Kernel)
FullProcrustes(Scaled)
RiemannianShape(Scaled)
VeroneseWhitney(Scaled)
Laplacian(Gamma)
Sigmoid(Gamma)
Log(Radial)
Power(Radial)
Circular(ScaledRadial)
Exponential(ScaledRadial)
Gaussian(ScaledRadial)
Matern(ScaledRadial)
RationalQuadratic(ScaledRadial)
Spherical(ScaledRadial)
Wave(ScaledRadial)

LinearSVC
    n_features_in_: size(f)
    classes_: any(c)
    coef_: binary ? float(1,f) : float(c,f)
    intercept_: binary ? float(1) : float(c)
Scaler
    n_features_in_: size(d)
    copy: flag
Normalizer
    norm: text
    copy: flag
MaxAbsScaler(Scaler)
    max_abs_ scale_: float(d)
MinMaxScaler(Scaler)
    clip: flag
    feature_range: [2]number
    scale_ min_ data_min_ data_max_ data_range_: float(d)
RobustScaler(Scaler)
    with_centering with_scaling: flag
    center_: with_centering ? float(d) : float(d)?
    scale_: with_scaling ? float(d) : float(d)?
StandardScaler(Scaler)
    with_mean with_std: flag
    mean_: with_mean ? float(d) : float(d)?
    scale_: with_std ? float(d) : float(d)?
    var_: float(d)?
"""

_CONDITIONS: dict[str, Callable[[Any, Scope], Any]] = {
    "precomputed": lambda part, scope: isinstance(scope.get("kernel"), Precomputed),
    "waiting": lambda part, scope: scope.get("kernel") is None,
    "landmarks": lambda part, scope: getattr(part, "n_landmarks_", None) is not None,
    "whole": lambda part, scope: (
        isinstance(scope.get("kernel"), Precomputed) and getattr(part, "n_landmarks_", None) is None
    ),
    "needs_ridge": lambda part, scope: (
        getattr(part, "n_landmarks_", None) is not None
        and not isinstance(scope["kernel"], Precomputed)
        and not has_fixed_point(scope["kernel"], part.X_fit_)
    ),
    "unchanged": lambda part, scope: scope.get("k") == 0,
    "hermitian": lambda part, scope: scope["kernel"].hermitian,
    "of_inputs": lambda part, scope: getattr(part, "_centers_are_inputs_", False),
    "affine": lambda part, scope: (
        type(getattr(part, "extension_", 0)).__name__ == "AffineExtension"
    ),
    "binary": lambda part, scope: scope["c"] == 2,
    "with_centering": lambda part, scope: part.with_centering,
    "with_scaling": lambda part, scope: part.with_scaling,
    "with_mean": lambda part, scope: part.with_mean,
    "with_std": lambda part, scope: part.with_std,
}
_COVARIANCES = {"full": "c,q,q", "tied": "q,q", "diag": "c,q", "spherical": "c"}
_DTYPES = {"float": "f", "complex": "c", "int": "iu", "any": "biufcUSO"}
_SCALARS: dict[str, tuple[type, ...]] = {
    "number": (int, float, np.number),
    "flag": (bool, np.bool_),
    "text": (str,),
    "dict": (dict,),
}
_SPEC = re.compile(
    r"(?P<absent>-?)(\[(?P<count>\w)\])?(?P<kind>\w+)(\((?P<shape>[^)]*)\))?"
    r"(<(?P<below>\w))?(:(?P<shared>[\w,]+))?(?P<none>\??)"
)


def _parsed(text: str) -> dict[str, dict[str, str]]:
    """Return the tables, as specifications by class and attribute."""
    tables: dict[str, dict[str, str]] = {}
    for line in filter(None, text.splitlines()):
        if not line.startswith(" "):
            name, _, base = line.rstrip(")").partition("(")
            tables[name] = dict(tables.get(base, {}))
        else:
            attributes, _, spec = line.partition(": ")
            tables[name] |= dict.fromkeys(attributes.split(), spec)
    return tables


_PARSED = _parsed(_TABLES)


def check_parts(model: Any) -> None:
    """Raise a ValueError if parts of a model are missing or do not belong together.

    Kinds, shapes and the ranges of indices are checked. Wrong numbers cannot be told from others.
    """
    _check_complete(model, type(model).__name__, set())
    if isinstance(model, Pipeline):
        _check_value(model.steps, "[_]step", {}, "Pipeline.steps", [])
        if not model.steps:
            raise ValueError("Pipeline.steps is empty")
    else:
        _check_object(model, {}, type(model).__name__)


def _check_complete(value: Any, where: str, seen: set[int]) -> None:
    """Check that every object has its parameters or fields."""
    if isinstance(value, dict):
        held = value
    elif isinstance(value, (list, tuple)):
        held = dict(enumerate(value))
    elif type(value) in OBJECTS and id(value) not in seen:
        seen.add(id(value))
        held = vars(value)
        for name in _names(value):
            if name not in held:
                raise ValueError(f"{where} has no {name}")
    else:
        return
    for key, item in held.items():
        _check_complete(item, f"{where}.{key}", seen)


def _names(part: Any) -> list[str]:
    """Return the names of the parameters or fields that an object of ours always has."""
    if not isinstance(part, BaseEstimator):
        return [field.name for field in dataclasses.fields(part)]
    # a later scikit-learn may have more parameters than the one that wrote the file
    return part._get_param_names() if type(part).__module__.startswith("orthodrome.") else []


def _check_object(part: Any, scope: Scope, where: str) -> None:
    """Check the attributes of an object by the table of its class; bind letters in `scope`."""
    held = part if isinstance(part, dict) else vars(part)
    table = _PARSED.get(type(part).__name__, {})
    if isinstance(part, Kernel):
        scope.setdefault("kernel", part)
    parameters: Any = ()
    if isinstance(part, BaseEstimator):
        parameters = part._get_param_names()
        table = table | {"feature_names_in_": "-any(d)", "_sklearn_output_config": "-config"}
    required = [name for name in table if not table[name].startswith("-")]
    made = [name for name in required if name not in parameters]  # by fit
    fitted = 2 * sum(name in held for name in made) >= len(made)
    below: list[tuple[str, Any, str]] = []
    for name, spec in table.items():
        if not fitted and name != "n_features_in_" and not (spec.startswith("-") and name in held):
            continue
        while " ? " in spec:
            condition, _, choices = spec.partition(" ? ")
            first, _, second = choices.partition(" : ")
            spec = first if _CONDITIONS[condition](part, scope) else second
        if name in held:
            _check_value(held[name], spec, scope, f"{where}.{name}", below)
        elif fitted and not spec.startswith("-"):
            raise ValueError(f"{where} has no {name}")
        if name in ("kernel_", "kernel") and not isinstance(part, Kernel):
            scope["kernel"] = held.get(name)
    for place, values, letter in below:  # when all sizes are known
        _check_range(values, 0, scope.get(letter, math.inf), place)
    extra = _EXTRA.get(type(part).__name__)
    if extra is not None and fitted:
        extra(part, scope, where)


def _check_value(value: Any, spec: str, scope: Scope, where: str, below: list[Any]) -> None:
    found = _SPEC.fullmatch(spec)
    assert found is not None, spec
    if value is None and found["none"]:
        return
    kind, shape = found["kind"], found["shape"]
    if found["count"]:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{where} is no list")
        _bind(scope, found["count"], len(value), where)
        rest = spec[spec.index("]") + 1 :]
        for number, item in enumerate(value):
            _check_value(item, rest, scope, f"{where}[{number}]", below)
        return
    if kind == "size":
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise ValueError(f"{where} is no integer")
        _bind(scope, shape, int(value), where)
    elif kind in _SCALARS:
        wrong = kind == "number" and isinstance(value, (bool, np.complexfloating))
        if wrong or not isinstance(value, _SCALARS[kind]):
            raise ValueError(f"{where} is {value!r:.50}, no {kind}")
    elif kind == "config":
        if not isinstance(value, dict) or any(type(item) is not str for item in value.values()):
            raise ValueError(f"{where} is no dictionary of texts")
    elif kind == "step":
        kinds = [type(item) for item in value] if isinstance(value, tuple) else []
        if len(kinds) != 2 or kinds[0] is not str or kinds[1] not in OBJECTS:
            raise ValueError(f"{where} is no pair of a name and an estimator")
        _check_object(value[1], {}, f"{where}[1]")
    elif kind == "rows":
        _check_rows(value, scope, shape, where)
    elif kind == "points":
        _check_points(value, scope["kernel"], scope, shape, where)
    elif kind in _DTYPES:
        if shape is not None:
            _check_array(value, kind, shape.split(","), scope, where)
        if found["below"]:
            below.append((where, value, found["below"]))
    elif type(value) not in OBJECTS or not (
        isinstance(value, Kernel) if kind == "Kernel" else type(value).__name__ == kind
    ):
        raise ValueError(f"{where} is no {kind}")
    if kind in _PARSED or kind == "dict":
        shared = (found["shared"] or "").split(",")
        inner = {letter: scope[letter] for letter in shared if letter in scope}
        _check_object(value, inner, where)
        for letter in shared:
            if letter in inner and len(letter) == 1:
                _bind(scope, letter, inner[letter], where)


def _check_array(value: Any, kind: str, shape: list[str], scope: Scope, where: str) -> None:
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{where} is no array")
    if value.dtype.kind not in _DTYPES[kind]:
        raise ValueError(f"{where} is of dtype {value.dtype}, not {kind}")
    if value.ndim != len(shape):
        raise ValueError(f"{where} has {value.ndim} dimensions instead of {len(shape)}")
    for size, letter in zip(value.shape, shape, strict=True):
        _bind(scope, letter, size, where)


def _bind(scope: Scope, letter: str, size: int, where: str) -> None:
    """Give a letter its size, or compare it with the size that it has; k+1 is one more than k."""
    name, more = (letter[:1], int(letter[1:] or 0)) if not letter.isdigit() else ("_", 0)
    known = int(letter) if letter.isdigit() else scope.get(name, size - more)
    if name != "_":
        scope[name] = known
    expected = known + more
    if size != expected:
        raise ValueError(f"{where} has a size of {size}, and other parts of the model {expected}")


def _check_range(values: Any, first: int, end: float, where: str) -> None:
    if values.size and (values.min() < first or values.max() >= end):
        raise ValueError(f"{where} has indices outside of {first} to {end - 1}")


def _check_rows(value: Any, scope: Scope, letter: str, where: str) -> None:
    """Check data by the kernel, which knows what one row is."""
    if not isinstance(value, np.ndarray) and not scipy.sparse.issparse(value):
        raise ValueError(f"{where} is no array")
    kernel = scope.get("kernel")
    if value.ndim < 2 or value.dtype.kind not in "fc":
        raise ValueError(f"{where} is an array of shape {value.shape} and dtype {value.dtype}")
    if isinstance(kernel, Kernel) and not isinstance(kernel, Precomputed):
        try:
            kernel.validate(value, reset=False)
        except ValueError as error:
            raise ValueError(f"{where} does not fit its kernel: {error}") from None
    _bind(scope, letter, value.shape[0], where)


def _check_points(value: Any, kernel: Kernel, scope: Scope, letter: str, where: str) -> None:
    """Check prepared points: they are like those that the kernel makes of an example."""
    if isinstance(kernel, Geodesic) and where.endswith("_reference_"):
        kernel = kernel.kernel_
    inner = value
    while isinstance(inner, Prepared):
        inner = inner.coordinates
    if inner is value or not hasattr(inner, "shape"):
        raise ValueError(f"{where} are no points")
    _bind(scope, letter, len(value), where)
    _check_alike(value, _prepared_example(kernel), len(value), where)


def _check_alike(value: Any, like: Any, n: int, where: str) -> None:
    if isinstance(like, Prepared) and isinstance(value, Prepared):
        sparse = scipy.sparse.issparse(value.coordinates)  # then the origin is not moved
        given = None if sparse else like.given
        for name, other in (
            ("coordinates", like.coordinates),
            ("per_point", like.per_point),
            ("given", given),
        ):
            _check_alike(getattr(value, name), other, n, f"{where}.{name}")
    elif like is None or value is None or isinstance(like, Prepared):
        if like is not value:
            raise ValueError(f"{where} is not what the kernel has for its points")
    else:
        array = isinstance(value, np.ndarray) or scipy.sparse.issparse(value)
        if not array or value.shape != (n, *like.shape[1:]) or value.dtype.kind != like.dtype.kind:
            raise ValueError(f"{where} is not an array of shape {(n, *like.shape[1:])}")


def _prepared_example(kernel: Kernel) -> Prepared:
    if isinstance(kernel, Geodesic):  # the example need not lie on its sphere
        return Prepared(_prepared_example(kernel.kernel_), np.zeros((1, 3)))
    if isinstance(kernel, Normalized):
        return Prepared(_prepared_example(kernel.kernel_), np.zeros(1))
    return kernel.prepare(_example(kernel))


def _example(kernel: Kernel) -> Any:
    """Return one validated row for a fitted kernel: a matrix, landmarks, or a vector."""
    d = kernel.n_features_in_
    side, angles = math.isqrt(d), np.linspace(0.0, 3.0, max(d // 2, 1))
    for row in (np.eye(side), np.column_stack([np.cos(angles), np.sin(2 * angles)]), np.ones(d)):
        if row.size == d:
            try:
                return kernel.validate(row[None], reset=False)
            except ValueError:
                pass
    raise ValueError(f"{type(kernel).__name__} takes no data of {d} features")


# ---------------------------------------------------------------------- what no table says


def _check_classifier(part: Any, scope: Scope, where: str) -> None:
    keys = part._later_.keys()
    if not (keys >= {"judgement", "scores"} or keys >= {"training", "parameters"}):
        raise ValueError(f"{where}._later_ has neither leave-one-out results nor training points")
    if "parameters" in keys:
        part._as_fitted()._check_parameters()


def _check_mixture(part: Any, scope: Scope, where: str) -> None:
    mixture = getattr(part, "_mixture_", part)
    if mixture.kind not in _COVARIANCES:
        raise ValueError(f"{where} has covariances of the unknown kind {mixture.kind!r}")
    found = part.covariances_ if mixture is not part else part.covariances
    _check_array(found, "float", _COVARIANCES[mixture.kind].split(","), scope, where)


def _check_mean_shape(part: Any, scope: Scope, where: str) -> None:
    _bind(scope, "d", part.mean_.size, f"{where}.mean_")


def _check_spheres(part: Any, scope: Scope, where: str) -> None:
    for number, subsphere in enumerate(part.subspheres):
        _bind(scope, f"z-{number}", len(subsphere.axis), f"{where}.subspheres[{number}]")


def _check_partial(part: Any, scope: Scope, where: str) -> None:
    for rows, weights in zip(part.rows, part.weights, strict=True):
        _check_rows(rows, {}, "_", f"{where}.rows")
        _bind({"n": len(weights)}, "n", rows.shape[0], f"{where}.rows")
        _bind(scope, "d", math.prod(rows.shape[1:]), f"{where}.rows")
        first = part.rows[0]
        if rows.shape[1:] != first.shape[1:] or rows.dtype.kind != first.dtype.kind:
            raise ValueError(f"{where}.rows are batches of different kinds")


def _check_training(part: Any, scope: Scope, where: str) -> None:
    for members, merged, chosen in zip(part.members, part.merged, part.chosen, strict=True):
        _bind({"t": len(members)}, "t", len(merged.inverse), f"{where}.merged")
        _check_range(merged.inverse, -1, len(merged.weights), f"{where}.merged")
        _check_range(chosen, 0, len(merged.weights), f"{where}.chosen")
        if len(np.unique(chosen)) != len(chosen):
            raise ValueError(f"{where}.chosen has an index twice")
    if len(part.alone):
        _check_rows(part.strays, {"kernel": scope["kernel"]}, "_", f"{where}.strays")
        _bind({"z": len(part.alone)}, "z", part.strays.shape[0], f"{where}.strays")


_EXTRA: dict[str, Callable[[Any, Scope, str], None]] = {
    "PerTurbo": _check_classifier,
    "KernelRidgeRegressionClassifier": _check_classifier,
    "ComplexGaussian": _check_mean_shape,
    "GeodesicMixture": _check_mixture,
    "Mixture": _check_mixture,
    "NestedSpheres": _check_spheres,
    "PartialFit": _check_partial,
    "_Training": _check_training,
}
