"""Estimators from the options of a command line, and the Python lines that make the same."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ..classification import KernelRidgeRegressionClassifier, NestedSpheresClassifier, PerTurbo
from ..cluster import GeodesicMixture, HypersphericalKMeans, KernelKMeans, KernelSpectralClustering
from ..decomposition import KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA
from ..kernels import Kernel, Normalized
from ..kernels.names import KERNELS
from .inputs import Data, InputError

__all__ = [
    "CLASSIFIERS",
    "CLUSTERINGS",
    "DECOMPOSITIONS",
    "Choice",
    "last_step",
    "make_model",
    "python_lines",
]

DECOMPOSITIONS: dict[str, type] = {
    "kpga": KernelPGA,
    "kpca": KernelPCA,
    "kpns": KernelPNS,
    "robust": RobustKernelPCA,
}
CLUSTERINGS: dict[str, type] = {
    "mixture": GeodesicMixture,
    "kmeans": HypersphericalKMeans,
    "kernel-kmeans": KernelKMeans,
    "spectral": KernelSpectralClustering,
}
CLASSIFIERS: dict[str, type] = {
    "krrc": KernelRidgeRegressionClassifier,
    "perturbo": PerTurbo,
    "nested-spheres": NestedSpheresClassifier,
}
_ALL = DECOMPOSITIONS | CLUSTERINGS | CLASSIFIERS
# Methods on the unit sphere; a kernel that does not put data there is normalised for them.
_ON_THE_SPHERE = ("kpga", "kpns", "mixture", "kmeans", "nested-spheres")
_OF_SHAPES = (
    *("veronese_whitney", "full_procrustes", "complex_gaussian"),
    *("riemannian_shape", "hermitian_linear"),
)
# Kernels whose centres have no pre-images.
_NO_PREIMAGES = (
    *("linear", "polynomial", "poly", "sigmoid", "cosine"),
    *("laplacian", "chi2", "additive_chi2", "hermitian_linear"),
)


@dataclass(frozen=True)
class Choice:
    """The options that choose a model.

    Attributes
    ----------
    method : str
        A key of `DECOMPOSITIONS`, `CLUSTERINGS` or `CLASSIFIERS`.
    kernel : str or None
        The name of a kernel; the default depends on the kind of data.
    sigma : float or str or None
        Its bandwidth, or the rule for it.
    standardize : bool
        Whether columns are scaled to mean 0 and variance 1 first.
    seed : int
        Seed of all random choices.
    parameters : mapping
        Further parameters of the estimator.
    """

    method: str
    kernel: str | None = None
    sigma: float | str | None = None
    standardize: bool = False
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)


def make_model(choice: Choice, data: Data) -> Any:
    """Return the estimator of a choice, not yet fitted.

    Raises
    ------
    ValueError
        If there is no such method or kernel, or they do not suit the data.

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
    if choice.method not in _ALL:
        raise ValueError(f"There is no method {choice.method!r}. There are: {', '.join(_ALL)}.")
    estimator = _ALL[choice.method]()
    known = estimator.get_params(deep=False)
    parameters = dict(choice.parameters)
    for name in parameters:
        if name not in known:
            raise ValueError(f"The method {choice.method} has no parameter {name!r}.")
    kernel = make_kernel(choice, data)
    if choice.method == "kmeans" and choice.kernel in _NO_PREIMAGES:
        parameters.setdefault("centers", "intrinsic")
    if "random_state" in known:
        parameters["random_state"] = choice.seed
    estimator.set_params(kernel=kernel, **parameters)
    if not choice.standardize:
        return estimator
    check_scales(data)
    return make_pipeline(StandardScaler(), estimator)


def check_scales(data: Data) -> None:
    """Raise if the data cannot be standardised: landmarks, or a variance that overflows."""
    if data.kind == "shapes":
        raise InputError(
            f"{data.path}: landmarks cannot be standardised; leave out --standardize. The kernels "
            "of shapes ignore position, size and rotation."
        )
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        deviations = np.std(data.X, axis=0)
    varies = data.X.max(axis=0) > data.X.min(axis=0)
    wrong = ~np.isfinite(deviations) | (varies & (deviations == 0))
    if wrong.any():
        name = data.columns[int(np.argmax(wrong))]
        raise InputError(
            f"{data.path}, column {name!r}: its numbers are too large or too small to compute "
            "a variance; choose another unit before you standardise."
        )


def make_kernel(choice: Choice, data: Data) -> Kernel:
    """Return the kernel of a choice, or the one that suits the data."""
    name = choice.kernel or ("veronese_whitney" if data.kind == "shapes" else "gaussian")
    if name not in KERNELS or name == "precomputed":
        names = ", ".join(sorted(set(KERNELS) - {"precomputed"}))
        raise ValueError(f"There is no kernel {name!r}. There are: {names}.")
    if data.kind == "shapes" and data.X.shape[-1] == 3:
        raise ValueError(
            f"{data.path} has landmarks in three dimensions; the kernels of shapes take planar "
            "ones. Align the specimens first and give their coordinates as a table."
        )
    if data.kind == "shapes" and name not in _OF_SHAPES:
        raise InputError(
            f"{data.path} has landmarks, and the kernel {name} takes tables. Kernels of "
            f"shapes: {', '.join(_OF_SHAPES)}."
        )
    kernel = KERNELS[name]()
    if choice.sigma is not None:
        if "sigma" not in kernel.get_params():
            raise ValueError(f"The kernel {name} has no bandwidth: leave out --sigma.")
        kernel.set_params(sigma=choice.sigma)
    if choice.method in _ON_THE_SPHERE and not kernel.unit_norm:
        return Normalized(kernel)
    return kernel


def last_step(model: Any) -> Any:
    """The estimator itself, or the last one of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def python_lines(model: Any, reading: str, *use: str, more: str = "") -> str:
    """Return the Python lines that do the same: read the file, make the model, use it.

    `reading` is the expression that reads the data, `use` are the lines after ``model = …``, and
    `more` are imports that they need.
    """
    expression = repr(model)
    classes = sorted({name for name in _ALL_NAMES if f"{name}(" in expression})
    kernels = sorted({name for name in _KERNEL_NAMES if f"{name}(" in expression})
    lines = [f"from orthodrome import {', '.join(classes)}"] if classes else []
    if "PCA(" in expression.replace("KernelPCA(", ""):
        lines.append("from sklearn.decomposition import PCA")
    if kernels:
        lines.append(f"from orthodrome.kernels import {', '.join(kernels)}")
    lines.append("from orthodrome.app import read_data")
    if isinstance(model, Pipeline):
        lines += [
            "from sklearn.pipeline import Pipeline",
            "from sklearn.preprocessing import StandardScaler",
        ]
    lines += [more] if more else []
    assigned = textwrap.indent(expression, " " * len("model = ")).strip()
    lines += ["", f"data = {reading}", f"model = {assigned}", *use]
    return "\n".join(lines)


_ALL_NAMES = [cls.__name__ for cls in _ALL.values()]
_KERNEL_NAMES = [*(cls.__name__ for cls in KERNELS.values()), Normalized.__name__]
