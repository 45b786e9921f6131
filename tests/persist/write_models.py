"""Write small models of every kind, with their answers, as fixtures for later versions.

Run ``python tests/persist/write_models.py`` before a release. It writes the archive
``tests/persist/models/<version>.zip`` and refuses to replace one. `test_persist_fixtures.py` loads
the models of all versions and compares their answers. Each ``<name>.orthodrome`` has a
``<name>.npz``: ``new`` are the input rows (``csr`` if they were sparse, ``columns`` if they were a
data frame); every other entry is an answer. Unfitted models have ``parameters``, as JSON text.
"""

import functools
import importlib
import inspect
import itertools
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

sys.path.insert(0, str(Path(__file__).parents[1]))

import laws_persist as laws
import laws_product as product
import orthodrome
import orthodrome.kernels as kernels
from orthodrome import (
    HypersphericalKMeans,
    KernelKMeans,
    KernelPCA,
    KernelPGA,
    KernelRidgeRegressionClassifier,
    PatchDenoiser,
    PerTurbo,
)
from orthodrome.denoising import SequenceDenoiser
from orthodrome.eigen import Dense, Hebbian, Krylov, Nystroem

N, M = 14, 5  # training rows and new rows

KERNELS: dict[str, Any] = laws.KERNELS | {
    "exponential": kernels.Exponential(),
    "precomputed": kernels.Precomputed(),
    "veronese_whitney": kernels.VeroneseWhitney(),
    "complex_gaussian": kernels.ComplexGaussian(),
    "log_euclidean": kernels.LogEuclidean(),
    "additive_chi2": kernels.AdditiveChi2(),
    "chi2": kernels.Chi2(gamma=0.5),
    "circular": kernels.Circular(sigma=20.0),
    "cosine": kernels.Cosine(),
    "full_procrustes": kernels.FullProcrustes(),
    "hermitian_linear": kernels.HermitianLinear(),
    "laplacian": kernels.Laplacian(),
    "linear": kernels.Linear(),
    "log": kernels.Log(),
    "matern": kernels.Matern(nu=1.7, sigma="median"),
    "power": kernels.Power(beta=0.5),
    "rbf": kernels.RBF(),
    "rational_quadratic": kernels.RationalQuadratic(alpha=2.0),
    "riemannian_shape": kernels.RiemannianShape(sigma=0.7),
    "sigmoid": kernels.Sigmoid(gamma=0.01),
    "spherical": kernels.Spherical(sigma=20.0),
    "wave": kernels.Wave(sigma=20.0),
    "geodesic": kernels.Geodesic("gaussian", reference=np.ones(4)),
    "geodesic_mean": kernels.Geodesic(
        "gaussian", reference=np.eye(4), coefficients=np.full(4, 0.25)
    ),
    "normalized": kernels.Normalized(kernels.Polynomial(degree=2, gamma=0.3)),
    "polynomial_alone": kernels.Polynomial(degree=2),
}
CONDITIONALLY_DEFINITE = {"additive_chi2", "log", "power"}  # for kernel PCA only
SHAPES = {
    "veronese_whitney",
    "complex_gaussian",
    "full_procrustes",
    "hermitian_linear",
    "riemannian_shape",
}


class Case(NamedTuple):
    """A fitted model and the rows for its answers."""

    model: Any
    new: Any


def data_for(name: str = "") -> tuple[Any, Any, Any]:
    """Return training rows, new rows and labels, by the name of a kernel or of a kind of data."""
    if name == "many":  # fewer rows are always given to the dense solver
        X = np.random.default_rng(9).normal(size=(60, 2))
        return X, X[:M] + 0.1, None
    kernel = {"complex": "complex_gaussian", "copies-precomputed": "precomputed"}.get(name, name)
    X, new, labels = laws.data_for("complex_gaussian" if kernel in SHAPES else kernel)
    X, new, labels = X[:N], new[:M], labels[:N]
    if kernel == "precomputed":
        X, new = X[:, :N], new[:, :N]
    if name in CHANGES:
        X, new = CHANGES[name](X), CHANGES[name](new)
    elif name == "three":
        labels = np.arange(N) % 3
    elif name == "blocks":
        X, labels = np.array_split(X, 3), None
    elif name == "dask":
        X, labels = importlib.import_module("dask.array").from_array(X, chunks=(5, 4)), None
    elif name == "copies":
        X, labels = X[TWICE], labels[TWICE]
    elif name == "copies-precomputed":
        X, new, labels = X[np.ix_(TWICE, TWICE)], new[:, TWICE], labels[TWICE]
    return X, new, labels


def frame(X: Any) -> Any:
    return importlib.import_module("pandas").DataFrame(X, columns=list("abcd"))


TWICE = np.sort(np.concatenate([np.arange(N), np.arange(0, N, 3)]))  # every third row twice
CHANGES: dict[str, Callable[[Any], Any]] = {
    "additive_chi2": np.abs,
    "chi2": np.abs,
    "complex": lambda X: X[..., 0] + 1j * X[..., 1],
    "float32": lambda X: X.astype(np.float32),
    "frame": frame,
    "unit": lambda X: X / np.linalg.norm(X, axis=1, keepdims=True),
}


def fitted(model: Any, data: str = "", **fit: Any) -> Case:
    X, new, labels = data_for(data)
    return Case(model.fit(X, labels, **fit), new)


def weighted(model: Any) -> Case:
    return fitted(model, sample_weight=np.array([0.0, *np.linspace(0.5, 2.0, N - 1)]))


def denoised(model: Any) -> Case:
    model.denoise(laws.image() if isinstance(model, PatchDenoiser) else laws.walk()[:20])
    return Case(model, None)


def batches_of(*sizes: int, weighted: bool = False, data: str = "") -> Callable[[Any], Case]:
    """Return a function that fits a model by batches of these sizes."""
    X, new, _ = data_for(data)
    ends = np.cumsum(sizes)

    def fit(model: Any) -> Case:
        for end, size in zip(ends, sizes, strict=True):
            weights = np.arange(1.0, size + 1) if weighted else None
            model.partial_fit(X[end - size : end], sample_weight=weights)
        return Case(model, new)

    return fit


SEED: Any = {"random_state": 0}
FEW: Any = {"n_anchors": 5, "random_state": 0}
NEW = laws.vectors()[1][:4]


def configured(name: str) -> Case:
    """Fit one of the configurations of `laws_product`."""
    each = product.CONFIGURATIONS[name]
    given = product.sample("Gaussian", each.n)
    return Case(product.fitted(each(kernels.Gaussian(2.0)), given), given.new)


def weighted_models() -> dict[str, Any]:
    """Return each estimator that takes weights."""
    models = {name: make("gaussian") for name, make in laws.ESTIMATORS.items()}
    return {
        f"{name}-weights": (model, weighted)
        for name, model in models.items()
        if "sample_weight" in inspect.signature(model.fit).parameters
    }


def matrix_models() -> dict[str, Any]:
    """Return each estimator with few rows of a matrix as anchors, and with repeated rows."""
    models = {name: make("precomputed") for name, make in laws.ESTIMATORS.items()}
    models = {name: model for name, model in models.items() if hasattr(model, "n_anchors")}
    return {
        f"{name}-anchors-precomputed": (clone(model).set_params(**FEW), "precomputed")
        for name, model in models.items()
    } | {
        f"{name}-copies-precomputed": (model, "copies-precomputed")
        for name, model in models.items()
    }


#: Models with options and data that configurations do not have, and how they are fitted.
MODELS: dict[str, Any] = {
    **weighted_models(),
    **matrix_models(),
    **{
        f"{name}-{data}": (laws.ESTIMATORS[name]("gaussian"), data)
        for name in ("KernelPCA", "PerTurbo", "KernelRidgeRegressionClassifier")
        for data in ("copies", "float32", "frame", "sparse", "three")
    },
    "pca-all-components": KernelPCA(),
    "pca-cosine-inverse": KernelPCA(2, kernel="cosine", inverse_alpha=1e-3),
    "pca-hebbian-warm": (KernelPCA(1, solver=product.HEBBIAN, warm_start=True, **SEED), "many"),
    "pca-frame": (KernelPCA(2).set_output(transform="pandas"), "frame"),
    "pca-nystroem-points": KernelPCA(2, solver=Nystroem(anchors=NEW)),
    "pca-nystroem-shapes": (KernelPCA(2, "complex_gaussian", **FEW), "complex_gaussian"),
    "pca-blocks": (KernelPCA(2, **FEW), "blocks"),
    "pca-dask": (KernelPCA(2, **FEW), "dask"),
    "pca-partial": (KernelPCA(1, solver=Nystroem(anchors=NEW)), batches_of(5, 4)),
    "pca-partial-waiting": (KernelPCA(2, **FEW), batches_of(6, 4)),
    "pca-complex-partial": (KernelPCA(1, "veronese_whitney", **FEW), batches_of(6, data="complex")),
    "pga-nystroem-angles": KernelPGA(2, solver=Nystroem(5, sphere="angles", random_state=0)),
    "pga-partial": (KernelPGA(1, **FEW), batches_of(9, 3)),
    "kmeans-given": KernelKMeans(2, init=NEW[:2], n_init=1),
    "spherical-complex": (HypersphericalKMeans(2, "veronese_whitney", **SEED), "complex"),
    "spherical-bounding-box": HypersphericalKMeans(2, init="bounding-box", **SEED),
    "ridge-sigmas": KernelRidgeRegressionClassifier(sigmas="auto", subspace_size=4, **SEED),
    "perturbo-complex": (PerTurbo("full_procrustes", alpha=0.1), "complex"),
    "patches": (PatchDenoiser(3, max_train=20, noise=0.1, **SEED), denoised),
    "patches-nystroem": (
        PatchDenoiser(3, n_components=2, solver=Nystroem(6), max_train=20, noise=0.1, **SEED),
        denoised,
    ),
    "sequence": (SequenceDenoiser(noise=0.1, **SEED), denoised),
    **{
        f"pipeline-{type(scaler).__name__}": make_pipeline(scaler, KernelPCA(2))
        for scaler in (
            StandardScaler(),
            MinMaxScaler(feature_range=(-1, 1), clip=True),
            MaxAbsScaler(),
            RobustScaler(quantile_range=(10, 90)),
            Normalizer("l1"),
        )
    },
    "pipeline-frame": (make_pipeline(StandardScaler(), PerTurbo()), "frame"),
    "pipeline-sparse": (make_pipeline(MaxAbsScaler(), KernelPGA(2)), "sparse"),
}


SOLVERS = {
    "dense": Dense(memory_budget="1GiB"),
    "hebbian": Hebbian(
        gain="constant",
        eta0=0.5,
        mu=0.1,
        xi=0.9,
        n_passes=3,
        tol=0.1,
        start="sparse",
        block_size=4,
        random_state=3,
        initial="nystroem",
        memory_budget=1e6,
    ),
    "krylov": Krylov(1e-4, 20, 3, 12, random_state=3, initial="nystroem", memory_budget=1e6),
    "nystroem": Nystroem(6, anchors=[1, 2, 5], tol=0.1, sphere="angles", random_state=3),
}

ESTIMATORS = (
    *(getattr(orthodrome, name) for name in orthodrome.__all__),
    SequenceDenoiser,
)


def unfitted(kind: Any, solver: str) -> Case:
    has_solver = "solver" in inspect.signature(kind).parameters
    return Case(kind(solver=SOLVERS[solver]) if has_solver else kind(), None)


def cases() -> dict[str, Callable[[], Case]]:
    """Return all models by name."""
    some = ("gaussian", "precomputed", "veronese_whitney", "log_euclidean")
    each = dict.fromkeys(laws.ESTIMATORS, some)
    each["KernelPCA"] += tuple(CONDITIONALLY_DEFINITE)
    each["PerTurbo"] = tuple(KERNELS.keys() - CONDITIONALLY_DEFINITE)
    estimators = {
        f"{name}-{kernel}": lambda make=make, kernel=kernel: fitted(make(KERNELS[kernel]), kernel)
        for name, make in laws.ESTIMATORS.items()
        for kernel in each[name]
    }
    alone = {
        f"kernel-{name}": lambda name=name, kernel=kernel: Case(
            kernel.fit(data_for(name)[0]), data_for(name)[name != "precomputed"]
        )
        for name, kernel in KERNELS.items()
    }
    kinds = {kind.__name__: kind for kind in ESTIMATORS if isinstance(kind, type)}
    plain = {
        f"unfitted-{name}": lambda kind=kind, solver=solver: unfitted(kind, solver)
        for (name, kind), solver in zip(kinds.items(), itertools.cycle(SOLVERS))
    }
    options = {name: lambda case=case: made(case) for name, case in MODELS.items()}
    configurations = {
        name.replace(", ", "-"): functools.partial(configured, name)
        for name in product.CONFIGURATIONS
    }
    return estimators | configurations | options | alone | plain


def made(case: Any) -> Case:
    """Fit one of `MODELS`."""
    model, how = case if type(case) is tuple else (case, "")
    return how(model) if callable(how) else fitted(model, how)


def inverts(model: Any, new: Any) -> bool:
    """Return whether the model has an inverse transform for these rows."""
    try:
        laws.outputs(model, new, True)
    except (ValueError, AttributeError):
        return False
    return True


def write(path: Path, case: Case) -> None:
    """Save a model and its answers."""
    model, new = case
    orthodrome.save(model, path.with_suffix(".orthodrome"))
    if path.name.startswith("unfitted"):
        found = model.get_params() if hasattr(model, "get_params") else vars(model)
        parameters = {name: repr(value) for name, value in found.items()}
        np.savez_compressed(path.with_suffix(".npz"), parameters=json.dumps(parameters))
        return
    described: dict[str, Any] = {}
    if hasattr(new, "columns"):
        described["columns"] = np.array(new.columns, dtype=str)
    if scipy.sparse.issparse(new):
        described["csr"] = np.array(True)
    if new is not None:
        described["new"] = new.toarray() if "csr" in described else np.asarray(new)
    answers = laws.outputs(model, new, inverts(model, new))
    np.savez_compressed(path.with_suffix(".npz"), **described, **answers)


def main() -> None:
    target = Path(__file__).parent / "models" / f"{orthodrome.__version__}.zip"
    if target.exists():
        raise SystemExit(f"{target} exists: fixtures of a version are never replaced.")
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in cases().items():
            write(Path(folder, name), make())
        with ZipFile(target, "x", ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(Path(folder).iterdir()):
                archive.write(file, file.name)
    print(target)


if __name__ == "__main__":
    main()
