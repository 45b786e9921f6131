"""Make estimators from command-line options, and the Python code that makes them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from .._core.types import Array
from ..classification import KernelRidgeRegressionClassifier, NestedSpheresClassifier, PerTurbo
from ..cluster import GeodesicMixture, HypersphericalKMeans, KernelKMeans, KernelSpectralClustering
from ..decomposition import KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
from ..kernels import Kernel, Normalized
from ..kernels.manifolds import ShapeKernel, has_profile
from ..kernels.wrappers import KERNELS
from .inputs import Data, InputError

DECOMPOSITIONS: dict[str, type] = {
    "kpga": KernelPGA,
    "kpca": KernelPCA,
    "kpns": KernelPNS,
    "robust": RobustKernelPCA,
    "pca": KernelPCA,  # with the linear kernel
}
CLUSTERINGS: dict[str, type] = {
    "spectral": KernelSpectralClustering,
    "mixture": GeodesicMixture,
    "kmeans": HypersphericalKMeans,
    "kernel-kmeans": KernelKMeans,
}
CLASSIFIERS: dict[str, type] = {
    "krrc": KernelRidgeRegressionClassifier,
    "perturbo": PerTurbo,
    "nested-spheres": NestedSpheresClassifier,
}
# Above this ratio of standard deviations, columns are standardised by default.
_MAX_SPREAD_RATIO = 10.0
# With more rows than this, decompositions and clusterings use anchors.
MAX_EXACT_ROWS = 20_000
_N_ANCHORS = 300
LINEAR = "pca"
_METHODS = DECOMPOSITIONS | CLUSTERINGS | CLASSIFIERS
# Methods that need unit feature vectors; other kernels are normalised for them.
_SPHERE_METHODS = ("kpga", "kpns", "mixture", "kmeans", "nested-spheres")
# Replace parameter names in messages of estimators by command-line options.
_OPTION_NAMES = {
    r"\bsphere='(\w+)'": r"--sphere \1",
    r"\bscale \(sigma\) of the kernel|\bsigma of the kernel": "bandwidth (--sigma)",
    r"\b(sphere|p|sigma) of (?=[A-Z])": r"--\1 of ",
    r"\bn_clusters\b": "-k",
    r"\bnegative='keep'": "--keep-negative",
    r"\brandom_state\b": "--seed",
    r"\bpatch_size\b": "--patch-size",
    r"\bn_splits\b": "--cv",
}
_PYTHON_ONLY = re.compile(
    r"\b(max_iter|tol|memory_budget|n_anchors|n_modes|n_neighbors|reg_covar|solver|storage)\b"
)
_SHAPE_KERNELS = [name for name, kernel in KERNELS.items() if issubclass(kernel, ShapeKernel)]


@dataclass(frozen=True)
class Choice:
    """The options that choose a model.

    Attributes
    ----------
    method : str
        A key of `DECOMPOSITIONS`, `CLUSTERINGS` or `CLASSIFIERS`.
    kernel : str or None
        Name of the kernel; the default depends on the kind of data.
    sigma : float or str or None
        Bandwidth of the kernel, or the rule that chooses it.
    standardize : bool
        Whether to scale columns to mean 0 and variance 1 first.
    seed : int
        Random seed.
    parameters : mapping
        Other parameters of the estimator.
    """

    method: str
    kernel: str | None = None
    sigma: float | str | None = None
    standardize: bool = False
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)


def option_text(text: str) -> str:
    """Return a message of an estimator with names of options instead of parameters.

    Examples
    --------
    >>> from orthodrome.app.models import option_text
    >>> option_text("Reduce n_clusters, or raise max_iter.")
    'Reduce -k, or raise max_iter. (Only in Python: max_iter.)'
    """
    count = "-k" if "GeodesicMixture" in text else "--components"
    for pattern, option in (*_OPTION_NAMES.items(), (r"\bn_components\b", count)):
        text = re.sub(pattern, option, text)
    names = ", ".join(dict.fromkeys(_PYTHON_ONLY.findall(text)))
    return f"{text} (Only in Python: {names}.)" if names else text


def make_model(choice: Choice, data: Data) -> Any:
    """Return the unfitted estimator for a choice.

    Raises
    ------
    ValueError
        If the method or the kernel is unknown or does not suit the data.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.app.inputs import Data
    >>> from orthodrome.app.models import Choice, make_model
    >>> X = np.zeros((3, 2))
    >>> data = Data("x.csv", "table", X, ("a", "b"), ("1", "2", "3"), None, None)
    >>> make_model(Choice("kpga", sigma=2.0, parameters={"n_components": 2}), data)
    KernelPGA(kernel=Gaussian(sigma=2.0), n_components=2, random_state=0)
    """
    estimator = _METHODS[choice.method]()
    known, parameters = estimator.get_params(deep=False), dict(choice.parameters)
    for name in parameters:
        if name not in known:
            raise ValueError(f"--method {choice.method} has no option --{name}.")
    if "kernel" in known:
        parameters["kernel"] = make_kernel(choice, data)
        default = choice.kernel is None and choice.sigma is None and data.kind != "shapes"
        if estimator._chooses_kernel and default:
            parameters["kernel"] = "auto"
        if choice.method == "kmeans" and not has_profile(parameters["kernel"]):
            parameters.setdefault("centers", "intrinsic")  # the kernel has no pre-images
    if choice.method == "robust" and "p" in parameters:
        parameters["method"] = "pursuit"  # the only method with a power
    if choice.method in ("kmeans", "kernel-kmeans"):
        parameters.setdefault("n_init", max(2, min(30, 60_000 // len(data))))
    if "n_anchors" in known and len(data) > MAX_EXACT_ROWS:
        parameters.setdefault("n_anchors", _N_ANCHORS)
        if choice.method == "kmeans":
            parameters["centers"] = "intrinsic"  # pre-images need the Gram matrix
    if "random_state" in known:
        parameters["random_state"] = choice.seed
    estimator.set_params(**parameters)
    if not choice.standardize:
        return estimator
    check_scales(data)
    return make_pipeline(StandardScaler(), estimator)


def resolve_standardize(rule: str, data: Data) -> tuple[bool, str]:
    """Return whether to standardise columns, and a note if rule="auto" chose to do so."""
    if rule != "auto" or data.kind == "shapes":
        return rule == "yes", ""
    spreads = _spreads(data)
    varying = np.flatnonzero(spreads > 0)
    if len(varying) < 2 or invalid_spreads(data).any():
        return False, ""
    low, high = (int(varying[find(spreads[varying])]) for find in (np.argmin, np.argmax))
    ratio = spreads[high] / spreads[low]
    if ratio < _MAX_SPREAD_RATIO:
        return False, ""
    return True, (
        f"Columns were scaled to mean 0 and variance 1, because their spreads differ by a factor "
        f"of {float(f'{ratio:.2g}'):,.0f}, from {data.columns[low]!r} to {data.columns[high]!r}. "
        "Use --standardize no to keep their scales."
    )


def _spreads(data: Data) -> Array:
    """Return the standard deviation of each column; NaN or infinity if it overflows."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(np.std(data.X.reshape(len(data), -1), axis=0))


def invalid_spreads(data: Data) -> Array:
    """Return whether the standard deviation of each column over- or underflows."""
    spreads, X = _spreads(data), data.X.reshape(len(data), -1)
    varies = X.max(axis=0) > X.min(axis=0)
    return np.asarray(~np.isfinite(spreads) | (varies & (spreads == 0)))


def check_scales(data: Data) -> None:
    """Raise if the data are landmarks, or a variance overflows or underflows."""
    if data.kind == "shapes":
        raise InputError(
            f"{data.path}: landmarks cannot be standardised. Remove --standardize; shape kernels "
            "already ignore position, size and rotation."
        )
    invalid = invalid_spreads(data)
    if invalid.any():
        name = data.columns[int(np.argmax(invalid))]
        raise InputError(
            f"{data.path}, column {name!r}: the values are too large or too small to compute a "
            "variance. Convert them to another unit, or remove --standardize."
        )


def make_kernel(choice: Choice, data: Data) -> Kernel:
    """Return the chosen kernel, or the default for the kind of data."""
    name = choice.kernel or ("veronese_whitney" if data.kind == "shapes" else "gaussian")
    if choice.method == LINEAR:
        if data.kind == "shapes":
            raise InputError(f"{data.path} has landmarks. Use --method kpca instead of pca.")
        return KERNELS["linear"]()
    if name not in KERNELS or name == "precomputed":
        names = ", ".join(sorted(set(KERNELS) - {"precomputed"}))
        raise ValueError(f"Unknown kernel {name!r}. Use one of {names}.")
    if data.kind == "shapes" and data.X.shape[-1] == 3:
        raise InputError(
            f"{data.path} has landmarks in three dimensions, but shape kernels are for planar "
            "landmarks. Align the specimens and save their coordinates as a table."
        )
    if data.kind == "shapes" and name not in _SHAPE_KERNELS:
        raise InputError(
            f"{data.path} has landmarks, but the kernel {name} is for tables. Use a shape kernel: "
            f"{', '.join(_SHAPE_KERNELS)}."
        )
    kernel = KERNELS[name]()
    if choice.sigma is not None:
        if "sigma" not in kernel.get_params():
            raise ValueError(f"The kernel {name} has no bandwidth. Remove --sigma.")
        kernel.set_params(sigma=choice.sigma)
    if choice.method in _SPHERE_METHODS and not kernel.unit_norm:
        return Normalized(kernel)
    return kernel


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def anchor_notes(model: Any, n_rows: int) -> list[str]:
    """Return a note on the error of anchors, if a fitted model uses them."""
    estimator = last_step(model)
    estimator = getattr(estimator, "pga_", estimator)
    count = getattr(estimator, "n_anchors_", None)
    if count is None:
        return []
    error = getattr(estimator, "history_", [{}])[0].get("trace_error")
    measured = "" if error is None else f" They leave out {error:.2%} of the trace of the matrix."
    return [
        f"With {n_rows} rows, the Gram matrix was approximated with {count} of them "
        f"(anchors).{measured}"
    ]


# ---------------------------------------------------------------------------- Python code

# The module of each name that the Python code on a page may call.
_MODULES = {
    **{cls.__name__: "orthodrome.kernels" for cls in (*KERNELS.values(), Normalized)},
    **{cls.__name__: "orthodrome" for cls in _METHODS.values()},
    "PatchDenoiser": "orthodrome",
    "Pipeline": "sklearn.pipeline",
    "StandardScaler": "sklearn.preprocessing",
    "StratifiedKFold": "sklearn.model_selection",
    "cross_val_predict": "sklearn.model_selection",
    "training_sample": "orthodrome.app.classification",
    **dict.fromkeys(("read_data", "read_new_rows", "read_image", "write_image"), "orthodrome.app"),
}


def program(*lines: str) -> str:
    """Return Python code with the imports it needs."""
    text = "\n".join(lines)
    called = sorted(set(re.findall(r"\w+(?=\()", text)) & set(_MODULES))
    imports = ["import numpy as np"] if "np." in text else []
    for module in sorted({_MODULES[name] for name in called}):
        names = ", ".join(name for name in called if _MODULES[name] == module)
        imports.append(f"from {module} import {names}")
    return "\n".join([*imports, "", text])


def assignment(model: Any) -> str:
    """Return the Python code that makes an estimator."""
    return "model = " + textwrap.indent(repr(model), " " * len("model = ")).strip()
