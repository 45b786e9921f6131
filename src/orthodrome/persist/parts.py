"""Check the consistency of the fitted attributes of a loaded model.

`_TABLES` specifies the kind and the shape of each fitted attribute, by class. A class inherits the
entries of its bases and may override them. A letter stands for a size, which must be the same
everywhere in an object and in the objects that share the letter.

======================  ========================================================================
``float(n,k)``          array of that kind and shape, without NaN and infinity; also ``complex``,
                        ``int``, ``weights`` (nonnegative), ``any``; ``_`` is any size
``int(n)<d``            integers from 0 to d - 1
``size(k)``             the size k itself
``rows(n)``             n rows of data that the kernel accepts
``points(n)``           n points that the kernel has prepared
``number``              a value; the kinds are the keys of `_VALUES`
``Mixture:c,q``         object of that class, which shares the letters c and q
``[c]Subspace:d``       list or tuple of c such objects
``-...``, ``...?``      may be missing; may be None
``A/B:m``               object of one of these classes
``condition ? a : b``   a if the condition of `_CONDITIONS` or the attribute is true, else b
``A B | a b: ...; c:``  attributes a, b and c of classes A and B
======================  ========================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline

from ..eigen.features import FeatureMoments
from ..kernels import Geodesic, Kernel, Normalized, Precomputed
from ..kernels._prepared import Prepared
from ..kernels._profiles import has_profile
from ..preimage.manifold import has_fixed_point
from .allowed import OBJECTS
from .nodes import parameter_names

Scope = dict[str, Any]  # sizes by letter, and the kernel

_TABLES = """
BaseEstimator | n_features_in_: size(d); feature_names_in_: -any(d);
    _sklearn_output_config: -texts
KernelEstimator | kernel_: Kernel:d
SpectralDecomposition ExplicitDecomposition CenterClustering KernelSpectralClustering |
    X_fit_: precomputed ? rows(m)? : rows(m); _columns_: precomputed ? int(m)<d : int(m)<d?;
    n_anchors_: size(m)?; anchor_indices_: int(m)?; n_iter_: number; converged_: flag
SpectralDecomposition | _columns_: full_gram ? int(m)<d? : precomputed ? int(m)<d : int(m)<d?;
    inverse_alpha: number; n_components_: size(k);
    eigenvalues_ explained_variance_ratio_ residuals_: float(k); eigenvectors_: -float(n,k);
    embedding_: n_anchors_ ? -float(n,k) : float(n,k); sample_weight_: weights(n)?;
    dual_coef_: full_gram ? float(d,k) : float(m,k); _ridge_: ridge ? RidgeMap : RidgeMap?;
    solver_: text; _partial_: -PartialFit:d
KernelPCA | intercept_: float(k); _mean_coef_: n_anchors_ ? float(m) : float(m)?;
    _mean_square: number; _constant_diagonal: -number?
KernelPGA | mean_: full_gram ? float(d) : float(m); mean_cosines_: -float(n);
    _squared_radius: positive; geodesic_variance_: number; mean_drift_: -number;
    _decoder_: float(m,m)?
ExplicitDecomposition | _decoder_: float(m,b); _squared_radius_: positive; n_components_: size(k);
    embedding_: float(n,k)
KernelPNS | nested_spheres_: NestedSpheres:b,s; _mean_: float(k+1); _directions_: float(k+1,k);
    explained_variance_ratio_: float(s+1); radii_: float(s); axes_: float(s,b);
    sphere_coordinates_: float(n,b); residuals_: float(n,s+1)
RobustKernelPCA | inverse_alpha: number; _center_: float(b); _directions_: float(b,k);
    dual_coef_: float(m,k); dispersions_ explained_variance_ratio_: float(k);
    _own_embedding_: float(o,k); _own_weights_: weights(o)
GeodesicMixture | pga_: KernelPGA; _columns_: precomputed ? int(_)<d : int(_)<d?;
    n_modes_: size(q); _floor_: number; _assignment_: text; _mixture_: Mixture:c,q;
    weights_: weights(c); means_: float(c,q+1); covariances_: any; labels_: -int(_)<c
CenterClustering | _decoder_: float(m,m)?; inertia_: number; labels_: -int(_)<c
KernelKMeans | cluster_centers_: float(c,m); _center_squares_: float(c); _mean_diagonal_: number
HypersphericalKMeans | _centers_are_inputs_: profile ? flag : false;
    cluster_centers_: _centers_are_inputs_ ? rows(c) : float(c,m);
    _squared_radius_: _centers_are_inputs_ ? -number : positive
KernelSpectralClustering | kernel_: Kernel:d,m; extension_: AffineExtension/GraphExtension:m,k;
    eigenvalues_ residuals_: float(k); _mean_diagonal_: number; _decoder_: float(m,m)?;
    cluster_centers_: float(c,k); embedding_: -float(n,k); labels_: -int(_)<c
ClassResidualClassifier | classes_: any(c); alphas_: weights(a); alpha_: number;
    class_alphas_: weights(c); class_kernels_: [c]Kernel:d; support_: int(_);
    _subspaces_: [c]Subspace:d; _mean_diagonal_: precomputed ? number : -number;
    _later_: dict:c,kernel
KernelRidgeRegressionClassifier | sigmas_: any(_)
NestedSpheresClassifier | classes_: any(c); decomposition_: KernelPNS; features_: float(_,f);
    _circle_: flag; svm_: LinearSVC:c,f; n_components_: size(f); temperature_: -positive
KernelDenoiser | n_components_: size(k); model_: n_components_ ? KernelPCA:k : KernelPCA?;
    explained_variance_ratio_: float(k); noise_: number_or_nan; blend_: number

AffineExtension | matrix: float(m,k); constant: float(k)
GraphExtension | vectors: float(m,k); eigenvalues: float(k); weights inverse_roots: float(m);
    unit_rows: flag
Canonical | data: rows(m); weights: weights(m); inverse: int(t); index: int(m)<t
FeatureMoments | count: positive; trace squared captured: number; mean: float(m);
    scatter: float(m,m); input_mean: vectors ? float(e) : float(e)?;
    cross: vectors ? float(m,e) : float(m,e)?
Anchors | points: precomputed ? rows(m)? : rows(m); indices: int(m)?; decoder: float(m,m)
Mixture | weights: weights(c); means: float(c,q+1); kind: text; covariances: any
NestedSpheres | basis: float(b,z); subspheres: [s]Subsphere;
    mean_angle wrap orientation n_lost: number; axes: -float(s,b)
Subsphere | axis: float(_); radius objective n_iter: number; converged: flag
PartialFit | n_seen: positive; kernel: Kernel:d?; anchors: kernel ? Anchors:m,kernel : Anchors?;
    moments: kernel ? FeatureMoments/TangentMoments:m,kernel : FeatureMoments/TangentMoments?;
    radius: -positive?; rows: [r]any; weights: [r]weights(_)
Reservoir | vectors: float(r,m); weights: weights(r); lengths keys: float(r);
    threshold: number_or_nan
TangentMoments | base: float(m); n_seen sample_size: positive; seed captured: number;
    sample: Reservoir:m; plain stretched: float(m+1,m+1); scaled: float(m+1)
RidgeMap | center: float(e); origin: float(g); matrix: float(g,e)
Subspace | kernel: Kernel:d; points: precomputed ? points(p)? : points(p);
    index: precomputed ? int(p)<d : int(p); triangular: flag;
    directions: hermitian ? complex(p,_) : float(p,_)
dict | judgement: -_Judgement:c; scores: -[_]float(_); training: -_Training:c,kernel;
    parameters: -dict
_Judgement | score temperature: number; residuals: float(_,c)
_Training | n_rows: size(t); members: [c]int(_)<t; merged: [c]Canonical:kernel; chosen: [c]int(_);
    alone: int(_)<t; unmatched_data: any; given prepared: any?

Kernel | fitted_: true
Radial | origin_: float(d)
Radial Wrapper Polynomial | positive_definite: flag
ScaledRadial DistanceGaussian | sigma_: positive
_WithGamma Laplacian RBF | gamma_: positive
RBF | sigma_: -positive
_WithGamma | coef0: number
Polynomial | degree: positive
Matern | nu: -number_or_nan
ExtrinsicGaussian | kernel_: Gaussian
ComplexGaussian | mean_: float(_,2)
Wrapper | kernel_: Kernel:d
Geodesic | _reference_: points(r); _radius_: positive; _coefficients_: float(r)
Precomputed | n_features_in_: number
NeighborGraph | neighbors_: int(m,_)<m

TableCleaner | choose_columns: flag; missing text: text; kinds_: [d]text; fill_values_: float(d);
    categories_: [d]words

LinearSVC | n_features_in_: size(f); classes_: any(c); coef_: binary ? float(1,f) : float(c,f);
    intercept_: binary ? float(1) : float(c)
Normalizer | n_features_in_: -size(d); norm: text
MaxAbsScaler MinMaxScaler Normalizer RobustScaler StandardScaler | copy: flag
MaxAbsScaler | max_abs_ scale_: float(d)
MinMaxScaler | clip: flag; feature_range: [2]number;
    scale_ min_ data_min_ data_max_ data_range_: float(d)
RobustScaler | with_centering with_scaling: flag; center_: with_centering ? float(d) : float(d)?;
    scale_: with_scaling ? float(d) : float(d)?
StandardScaler | with_mean with_std: flag; mean_: with_mean ? float(d) : float(d)?;
    scale_: with_std ? float(d) : float(d)?; var_: float(d)?
"""

_COVARIANCES = {"full": "c,q,q", "tied": "q,q", "diag": "c,q", "spherical": "c"}


def _is_precomputed(obj: Any, kernel: Any) -> bool:
    return isinstance(kernel, Precomputed)


def _has_full_gram(obj: Any, kernel: Any) -> bool:
    """Return whether a model was fitted to a precomputed matrix without anchors."""
    return _is_precomputed(obj, kernel) and getattr(obj, "n_anchors_", None) is None


def _needs_ridge(obj: Any, kernel: Any) -> bool:
    """Return whether pre-images need a ridge map: only for some fits with anchors."""
    no_map = _is_precomputed(obj, kernel) or has_fixed_point(kernel, obj.X_fit_)
    return obj.n_anchors_ is not None and not no_map and not hasattr(obj, "mean_drift_")


_CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "": lambda obj, kernel: True,
    "precomputed": _is_precomputed,
    "full_gram": _has_full_gram,
    "ridge": _needs_ridge,
    "profile": lambda obj, kernel: has_profile(kernel),
    "vectors": lambda obj, kernel: kernel.takes_vectors and not has_profile(kernel),
    "hermitian": lambda obj, kernel: kernel.hermitian,
    "binary": lambda obj, kernel: len(obj.classes_) == 2,
}

# Accepted dtype kinds, by kind of array.
_DTYPES = {
    "float": "f",
    "weights": "f",
    "complex": "c",
    "finite": "fc",
    "int": "iu",
    "any": "biufcUSO",
}
_INTEGERS = (int, np.integer)


def _is_number(value: Any) -> bool:
    return isinstance(value, (*_INTEGERS, float, np.float32)) and not isinstance(value, bool)


# Checks of single values, by kind.
_VALUES: dict[str, Callable[[Any], bool]] = {
    "size": lambda value: _is_number(value) and isinstance(value, _INTEGERS),
    "number": lambda value: _is_number(value) and math.isfinite(value),
    "positive": lambda value: _is_number(value) and 0 < value < math.inf,
    "number_or_nan": _is_number,
    "flag": lambda value: isinstance(value, (bool, np.bool_)),
    "true": lambda value: value is True,
    "false": lambda value: value is False,
    "text": lambda value: isinstance(value, str),
    "words": lambda value: type(value) is list and {*map(type, value)} <= {str},
    "texts": lambda value: type(value) is dict and {*map(type, value.values())} <= {str},
}
_SPEC = re.compile(
    r"(?P<optional>-?)(\[(?P<count>\w)\])?(?P<kind>[\w/]+)(\((?P<shape>[^)]*)\))?"
    r"(<(?P<below>\w))?(:(?P<shared>[\w,]+))?(?P<none>\??)"
)

Spec = list[tuple[str, Any]]  # condition and match of _SPEC; the last condition is empty


def _parse_spec(text: str) -> Spec:
    *cases, last = text.split(" : ")
    pairs = [*(case.split(" ? ") for case in cases), ("", last)]
    return [(condition, _SPEC.fullmatch(choice)) for condition, choice in pairs]


def _parse_tables(text: str) -> dict[str, dict[str, Spec]]:
    """Return the specification of each attribute of each class."""
    tables: dict[str, dict[str, Spec]] = {}
    for line in text.replace("\n    ", " ").splitlines():
        heads, _, entries = line.partition(" | ")
        for names, spec in (entry.split(": ", 1) for entry in entries.split("; ") if entry):
            for head in heads.split():
                tables.setdefault(head, {}).update(dict.fromkeys(names.split(), _parse_spec(spec)))
    return tables


_SPECS = _parse_tables(_TABLES)


def table_of(kind: type) -> dict[str, Spec]:
    """Return the specifications of a class and its bases, with index arrays last."""
    tables = [_SPECS.get(base.__name__, {}) for base in reversed(kind.__mro__)]
    merged = {name: spec for table in tables for name, spec in table.items()}
    return dict(sorted(merged.items(), key=lambda item: bool(item[1][-1][1]["below"])))


def check_parts(model: Any, where: str = "") -> None:
    """Raise a ValueError if attributes of a model are missing or inconsistent.

    The model, or a step of a pipeline, may be unfitted; objects inside a fitted model must be
    fitted. Kinds, shapes, and ranges of indices, weights and scales are checked. Other wrong
    numbers are not detected. Messages name the model `where`, by default its class.
    """
    where = where or type(model).__name__
    if not isinstance(model, Pipeline):
        _check_object(model, {}, where, fitted=_is_fitted(model))
        return
    if not isinstance(model.steps, list) or not model.steps:
        raise ValueError(f"{where}.steps is not a list of steps")
    for number, step in enumerate(model.steps):
        step_path = f"{where}.steps[{number}]"
        kinds = [type(item) for item in step] if isinstance(step, tuple) else []
        if len(kinds) != 2 or kinds[0] is not str or kinds[1] not in OBJECTS.values():
            raise ValueError(f"{step_path} is not a pair of a name and an estimator")
        if number + 1 < len(model.steps) and not hasattr(step[1], "transform"):
            raise ValueError(f"{step_path} is not the last step and needs a transform")
        check_parts(step[1], f"{step_path}[1]")


def _is_fitted(model: Any) -> bool:
    """Return whether a model has an attribute that `fit` always sets, or there is none."""
    table = table_of(type(model))
    always = {name for name, spec in table.items() if not spec[0][1]["optional"]}
    fitted = always - {"n_features_in_", *parameter_names(model)}
    return not fitted or bool(fitted & vars(model).keys())


def _check_object(obj: Any, scope: Scope, where: str, fitted: bool = True) -> None:
    """Check the attributes of an object with the table of its class; set sizes in `scope`."""
    attributes = obj if isinstance(obj, dict) else vars(obj)
    if isinstance(obj, Kernel):
        scope.setdefault("kernel", obj)
    for name, choices in table_of(type(obj)).items():
        if not fitted and (name not in attributes or name in parameter_names(obj)):
            continue
        spec = next(spec for condition, spec in choices if _is_true(condition, obj, scope))
        if name in attributes:
            _check_value(attributes[name], spec, scope, f"{where}.{name}")
        elif not spec["optional"]:
            raise ValueError(f"{where} has no {name}")
        if name in ("kernel_", "kernel") and not isinstance(obj, Kernel):
            scope["kernel"] = attributes.get(name)
    for base in type(obj).__mro__:
        if fitted and base.__name__ in _EXTRA_CHECKS:
            _EXTRA_CHECKS[base.__name__](obj, scope, where)


def _is_true(condition: str, obj: Any, scope: Scope) -> Any:
    if condition in _CONDITIONS:
        return _CONDITIONS[condition](obj, scope.get("kernel"))
    return getattr(obj, condition, False)


def _check_value(value: Any, spec: Any, scope: Scope, where: str) -> None:
    if not spec["count"]:
        _check_item(value, spec, scope, where)
        return
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{where} is not a list")
    _bind(scope, spec["count"], len(value), where)
    for number, item in enumerate(value):
        _check_item(item, spec, scope, f"{where}[{number}]")


def _check_item(value: Any, spec: Any, scope: Scope, where: str) -> None:
    kind, shape, below = spec["kind"], spec["shape"], spec["below"]
    if value is None and spec["none"]:
        return
    if kind in _VALUES:
        if not _VALUES[kind](value):
            raise ValueError(f"{where} must be of kind {kind!r}; got {value!r:.50}")
        if shape:
            _bind(scope, shape, int(value), where)
    elif kind == "rows":
        _check_rows(value, scope.get("kernel"), where)
        _bind(scope, shape, value.shape[0], where)
    elif kind == "points":
        _check_points(value, scope["kernel"], where)
        _bind(scope, shape, len(value), where)
    elif kind in _DTYPES:
        if shape:
            _check_array(value, kind, shape, scope, where)
        if below and below not in scope:
            raise ValueError(f"{where} has indices, but the model is not fitted")
        if below:
            _check_range(value, 0, scope[below], where)
    else:
        _check_nested(value, kind, (spec["shared"] or "").split(","), scope, where)


def _check_nested(value: Any, kind: str, shared: list[str], scope: Scope, where: str) -> None:
    """Check an object inside another one, with which it shares letters."""
    allowed = type(value) is dict or type(value) in OBJECTS.values()
    bases = {base.__name__ for base in type(value).mro()}
    if not allowed or bases.isdisjoint(kind.split("/")):
        raise ValueError(f"{where} is not an object of class {kind}")
    inner_scope = {letter: scope[letter] for letter in shared if letter in scope}
    _check_object(value, inner_scope, where)
    for letter in inner_scope.keys() & set(shared) - {"kernel"}:
        _bind(scope, letter, inner_scope[letter], where)


def _check_array(value: Any, kind: str, shape: str, scope: Scope, where: str) -> None:
    letters = shape.split(",")
    if not isinstance(value, np.ndarray) or value.ndim != len(letters):
        raise ValueError(f"{where} is not an array of {len(letters)} dimensions")
    _check_numbers(value, kind, where)
    for size, letter in zip(value.shape, letters, strict=True):
        _bind(scope, letter, size, where)


def _check_numbers(value: Any, kind: str, where: str) -> None:
    """Check the dtype and the values of an array or sparse array."""
    fits_intp = kind != "int" or np.can_cast(value.dtype, np.intp)
    if value.dtype.kind not in _DTYPES[kind] or not fits_intp:
        raise ValueError(f"{where} has dtype {value.dtype}, not {kind}")
    numbers = value.data if scipy.sparse.issparse(value) else value
    if kind not in ("int", "any") and not np.isfinite(numbers).all():
        raise ValueError(f"{where} has NaN or infinity")
    if kind == "weights" and (numbers < 0).any():
        raise ValueError(f"{where} has negative values")


def _bind(scope: Scope, letter: str, size: int, where: str) -> None:
    """Set the size of a letter, or check it if it is set; k+1 is one more than k."""
    if letter == "_":
        return
    name, extra = ("", int(letter)) if letter.isdigit() else (letter[0], int(letter[1:] or 0))
    expected = extra + (scope.setdefault(name, size - extra) if name else 0)
    if size != expected:
        raise ValueError(f"{where} has size {size}, but other attributes imply {expected}")


def _check_same(size: int, other: int, where: str) -> None:
    _bind({"n": other}, "n", size, where)


def _check_range(values: Any, first: int, end: int, where: str) -> None:
    if values.size and (values.min() < first or values.max() >= end):
        raise ValueError(f"{where} has indices outside {first} to {end - 1}")


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or scipy.sparse.issparse(value)


def _check_rows(value: Any, kernel: Any, where: str) -> None:
    """Check rows of data with the kernel, which determines the shape of a row."""
    if not _is_array(value) or value.ndim < 2:
        raise ValueError(f"{where} is not an array of 2 or more dimensions")
    _check_numbers(value, "finite", where)
    if isinstance(kernel, Kernel) and not isinstance(kernel, Precomputed):
        try:
            kernel.validate(value, reset=False)
        except ValueError as error:
            raise ValueError(f"{where} is not valid data for its kernel: {error}") from None


def _check_points(value: Any, kernel: Kernel, where: str) -> None:
    """Check that prepared points have the form of an example prepared by the kernel."""
    if isinstance(kernel, Geodesic) and where.endswith("_reference_"):
        kernel = kernel.kernel_
    if not isinstance(value, Prepared):
        raise ValueError(f"{where} are not prepared points")
    found, expected = _leaves(value), _leaves(_prepared_example(kernel))
    if scipy.sparse.issparse(found[0]):  # sparse rows are not centred
        expected[2] = None
    if [_form(array) for array in found] != [_form(array) for array in expected]:
        raise ValueError(f"{where} have shapes or dtypes that do not match the kernel")
    for array in found:
        if array is not None:
            _check_same(array.shape[0], len(value), where)
            _check_numbers(array, "finite", where)


def _leaves(points: Any) -> list[Any]:
    """Return the arrays of prepared points, coordinates first."""
    if not isinstance(points, Prepared):
        return [points]
    return [*_leaves(points.coordinates), points.per_point, points.given]


def _form(array: Any) -> Any:
    """Return the shape of a row and the dtype kind of an array."""
    return (array.shape[1:], array.dtype.kind) if _is_array(array) else array


def _prepared_example(kernel: Kernel) -> Prepared:
    if isinstance(kernel, Geodesic):  # the example may lie off its sphere
        return Prepared(_prepared_example(kernel.kernel_), np.zeros((1, 3)))
    if isinstance(kernel, Normalized):
        return Prepared(_prepared_example(kernel.kernel_), np.zeros(1))
    return kernel.prepare(_example(kernel))


def _example(kernel: Kernel) -> Any:
    """Return one row that a fitted kernel accepts: a matrix, landmarks, or a vector."""
    d = kernel.n_features_in_
    side, angles = math.isqrt(d), np.linspace(0.0, 3.0, max(d // 2, 1))
    for row in (np.eye(side), np.column_stack([np.cos(angles), np.sin(2 * angles)]), np.ones(d)):
        if row.size == d:
            with suppress(ValueError):
                return kernel.validate(row[None], reset=False)
    raise ValueError(f"{type(kernel).__name__} does not accept data with {d} features")


# ---------------------------------------------------------------------- Checks not in the tables


def _check_classifier(obj: Any, scope: Scope, where: str) -> None:
    keys = obj._later_.keys()
    if not (keys >= {"judgement", "scores"} or keys >= {"training", "parameters"}):
        raise ValueError(f"{where}._later_ has neither leave-one-out results nor training points")
    if "parameters" in keys:
        type(obj)(**obj._later_["parameters"])._check_parameters()


def _check_mixture(obj: Any, scope: Scope, where: str) -> None:
    mixture = getattr(obj, "_mixture_", obj)
    if mixture.kind not in _COVARIANCES:
        raise ValueError(f"{where} has covariances of the unknown kind {mixture.kind!r}")
    found = obj.covariances_ if mixture is not obj else obj.covariances
    _check_array(found, "float", _COVARIANCES[mixture.kind], scope, where)


def _check_extrinsic(obj: Any, scope: Scope, where: str) -> None:
    if hasattr(obj, "mean_"):
        _bind(scope, "d", obj.mean_.size, f"{where}.mean_")
    size = obj._embed(_example(obj)).shape[1]
    _check_same(obj.kernel_.n_features_in_, size, f"{where}.kernel_")


def _check_spheres(obj: Any, scope: Scope, where: str) -> None:
    for number, subsphere in enumerate(obj.subspheres):
        _bind(scope, f"z-{number}", len(subsphere.axis), f"{where}.subspheres[{number}]")


def _check_partial(obj: Any, scope: Scope, where: str) -> None:
    for rows, weights in zip(obj.rows, obj.weights, strict=True):
        _check_rows(rows, None, f"{where}.rows")
        _check_same(rows.shape[0], len(weights), f"{where}.rows")
        _bind(scope, "d", math.prod(rows.shape[1:]), f"{where}.rows")
    _check_same_form(obj.rows, f"{where}.rows")
    if isinstance(obj.kernel, Precomputed):
        raise ValueError(f"{where}.kernel must not be precomputed")
    has_features = isinstance(obj.moments, FeatureMoments)
    if has_features and (obj.moments.cross is None) != (obj.moments.input_mean is None):
        raise ValueError(f"{where}.moments has only one of input_mean and cross")


def _check_same_form(batches: Any, where: str) -> None:
    """Raise a ValueError if batches cannot be stacked."""
    forms = {(scipy.sparse.issparse(X), X.shape[1:], X.dtype.kind) for X in batches}
    if len(forms) > 1:
        raise ValueError(f"{where} have different shapes, dtypes or formats and cannot be stacked")


def _check_training(obj: Any, scope: Scope, where: str) -> None:
    for members, merged, chosen in zip(obj.members, obj.merged, obj.chosen, strict=True):
        _check_same(len(merged.inverse), len(members), f"{where}.merged")
        _check_range(merged.inverse, -1, len(merged.weights), f"{where}.merged")
        _check_range(chosen, 0, len(merged.weights), f"{where}.chosen")
        if not len(chosen) or len(np.unique(chosen)) != len(chosen):
            raise ValueError(f"{where}.chosen is empty or has an index twice")
    single_rows = [obj.unmatched_data] if len(obj.alone) else []
    for rows in single_rows:
        _check_rows(rows, scope["kernel"], f"{where}.unmatched_data")
        _check_same(rows.shape[0], len(obj.alone), f"{where}.unmatched_data")
    if not isinstance(scope["kernel"], Precomputed):
        _check_same_form([*(found.data for found in obj.merged), *single_rows], f"{where}.merged")


_EXTRA_CHECKS: dict[str, Callable[[Any, Scope, str], None]] = {
    "ClassResidualClassifier": _check_classifier,
    "ExtrinsicGaussian": _check_extrinsic,
    "GeodesicMixture": _check_mixture,
    "Mixture": _check_mixture,
    "NestedSpheres": _check_spheres,
    "PartialFit": _check_partial,
    "_Training": _check_training,
}
