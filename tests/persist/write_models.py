"""Write small models of every kind, with their answers, as fixtures for later versions.

Run ``python tests/persist/write_models.py`` before a release. It writes the archive
``tests/persist/models/<version>.zip`` and refuses to replace one. `test_persist_fixtures.py` loads
the models of all versions and compares their answers. Each ``<name>.orthodrome`` has a
``<name>.npz``: ``new`` are the input rows (``csr`` if they were sparse, ``columns`` if they were a
data frame); every other entry is an answer. Unfitted models have ``parameters``, as JSON text.
"""

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
import orthodrome
import orthodrome.kernels as kernels
from orthodrome import (
    GeodesicMixture,
    HypersphericalKMeans,
    KernelKMeans,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    KernelRidgeRegressionClassifier,
    KernelSpectralClustering,
    NestedSpheresClassifier,
    PatchDenoiser,
    PerTurbo,
    RobustKernelPCA,
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


def data_for(kernel: str) -> tuple[Any, Any, Any]:
    """Return the first rows of the data of `laws`; chi-squared kernels take them non-negative."""
    X, new, labels = laws.data_for("complex_gaussian" if kernel in SHAPES else kernel)
    if "chi2" in kernel:
        X, new = np.abs(X), np.abs(new)
    if kernel == "precomputed":
        return X[:N, :N], new[:M, :N], labels[:N]
    return X[:N], new[:M], labels[:N]


def fitted(model: Any, kernel: str = "", **fit: Any) -> Case:
    X, new, labels = data_for(kernel)
    return Case(model.fit(X, labels, **fit), new)


def nystroem(**parameters: Any) -> Nystroem:
    return Nystroem(random_state=0, **parameters)


class Batches:
    """Blocks of rows that can be read again."""

    def __iter__(self) -> Any:
        return iter(np.array_split(data_for("")[0], 3))


def in_batches(model: Any, *sizes: int, weighted: bool = False) -> Case:
    X, new, _ = data_for("")
    start = 0
    for size in sizes:
        rows = X[start : start + size]
        model.partial_fit(rows, sample_weight=np.arange(1.0, size + 1) if weighted else None)
        start += size
    return Case(model, new)


def with_dask(model: Any) -> Case:
    import dask.array

    X, new, _ = data_for("")
    return Case(model.fit(dask.array.from_array(X, chunks=(5, 4))), new)


def with_frame(model: Any) -> Case:
    import pandas as pd

    X, new, labels = data_for("")
    frames = [pd.DataFrame(rows, columns=list("abcd")) for rows in (X, new)]
    return Case(model.fit(frames[0], labels), frames[1])


def with_numbers(model: Any, labels: Any = None) -> Case:
    X, new, text = data_for("")
    return Case(model.fit(X, (text == "right") * 3 if labels is None else labels), new)


def in_float32(model: Any) -> Case:
    X, new, labels = data_for("")
    return Case(model.fit(X.astype(np.float32), labels), new.astype(np.float32))


def of_complex(model: Any, partial: bool = False) -> Case:
    """Fit to landmarks as complex numbers."""
    X, new, labels = data_for("complex_gaussian")
    X, new = (rows[..., 0] + 1j * rows[..., 1] for rows in (X, new))
    return Case(model.partial_fit(X[:6]) if partial else model.fit(X, labels), new)


def on_unit_sphere(model: Any) -> Case:
    X, new, labels = data_for("")
    X, new = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, new))
    return Case(model.fit(X, labels), new)


def of_many(model: Any, n: int = 60) -> Case:
    """Fit to more rows: fewer are given to the dense solver, whatever is asked for."""
    X = np.random.default_rng(9).normal(size=(n, 2))
    return Case(model.fit(X), X[:M] + 0.1)


def refitted(model: Any) -> Case:
    X, new, labels = data_for("")
    return Case(model.fit(X, labels).fit(X, labels), new)


def with_loo(case: Case) -> Case:
    """Ask for the leave-one-out score, which the model then keeps."""
    assert case.model.loo_score_ > 0
    return case


def weights() -> Any:
    return np.array([0.0, *np.linspace(0.5, 2.0, N - 1)])


def three_classes(model: Any) -> Case:
    return with_numbers(model, np.arange(N) % 3)


def doubled(model: Any, kernel: str = "", **fit: Any) -> Case:
    """Fit with every third row twice: copies are merged."""
    X, new, labels = data_for(kernel)
    rows = np.sort(np.concatenate([np.arange(N), np.arange(0, N, 3)]))
    if kernel == "precomputed":
        return Case(model.fit(X[np.ix_(rows, rows)], labels[rows]), new[:, rows])
    return Case(model.fit(X[rows], labels[rows]), new)


def denoised(model: Any) -> Case:
    model.denoise(laws.image() if isinstance(model, PatchDenoiser) else laws.walk()[:20])
    return Case(model, None)


Ridge = KernelRidgeRegressionClassifier
Kmeans, Spherical, Spectral = KernelKMeans, HypersphericalKMeans, KernelSpectralClustering
SEED: Any = {"random_state": 0}

CLASSIFIER_OPTIONS: dict[str, Callable[[Any], Case]] = {
    "alpha": lambda kind: fitted(kind(alpha=0.1)),
    "alpha-judged": lambda kind: with_loo(fitted(kind(alpha=0.1))),
    "alpha-zero": lambda kind: fitted(kind(kernels.Gaussian(0.5), alpha=0.0)),
    "alpha-weights": lambda kind: fitted(kind(alpha=0.1), sample_weight=weights()),
    "alpha-sparse": lambda kind: fitted(kind(alpha=0.1), "sparse"),
    "alpha-shapes": lambda kind: fitted(kind("veronese_whitney", alpha=0.1), "veronese_whitney"),
    "alphas": lambda kind: fitted(kind(alphas=[0.01, 0.1], alpha_scale="relative")),
    "weights": lambda kind: fitted(kind(), sample_weight=weights()),
    "sparse": lambda kind: fitted(kind(), "sparse"),
    "float32": lambda kind: in_float32(kind()),
    "frame": lambda kind: with_frame(kind()),
    "numbers": lambda kind: with_numbers(kind()),
    "three": lambda kind: three_classes(kind()),
    "copies": lambda kind: doubled(kind()),
    "copies-precomputed": lambda kind: doubled(kind("precomputed"), "precomputed"),
}

OPTIONS: dict[str, Callable[[], Case]] = {
    # kernel PCA and PGA
    "pca-all-components": lambda: fitted(KernelPCA()),
    "pca-fraction": lambda: fitted(KernelPCA(0.9)),
    "pca-linear-inverse": lambda: fitted(KernelPCA(2, kernel="linear")),
    "pca-cosine-inverse": lambda: fitted(KernelPCA(2, kernel="cosine", inverse_alpha=1e-3)),
    "pca-dense": lambda: fitted(KernelPCA(2, solver=Dense())),
    "pca-krylov": lambda: of_many(KernelPCA(2, solver=Krylov(random_state=0, max_basis=12))),
    "pca-krylov-initial": lambda: of_many(
        KernelPCA(2, solver=Krylov(random_state=0, max_basis=12, initial="nystroem"))
    ),
    "pca-hebbian": lambda: of_many(KernelPCA(1, solver=Hebbian(tol=0.5, random_state=0)), 260),
    "pca-hebbian-warm": lambda: of_many(
        KernelPCA(1, solver="hebbian", tol=0.5, warm_start=True, **SEED), 260
    ),
    "pca-warm-twice": lambda: refitted(KernelPCA(2, warm_start=True)),
    "pca-weights": lambda: fitted(KernelPCA(2), sample_weight=weights()),
    "pca-copies": lambda: doubled(KernelPCA(2)),
    "pca-float32": lambda: in_float32(KernelPCA(2)),
    "pca-frame": lambda: with_frame(KernelPCA(2).set_output(transform="pandas")),
    "pca-sparse": lambda: fitted(KernelPCA(2), "sparse"),
    "pca-sparse-nystroem": lambda: fitted(KernelPCA(2, n_anchors=5, **SEED), "sparse"),
    "pca-nystroem": lambda: fitted(KernelPCA(2, solver="nystroem", n_anchors=5, **SEED)),
    "pca-nystroem-linear": lambda: fitted(KernelPCA(2, "linear", solver=nystroem(n_anchors=4))),
    "pca-nystroem-indices": lambda: fitted(KernelPCA(2, solver=nystroem(anchors=[0, 3, 6, 9]))),
    "pca-nystroem-points": lambda: fitted(
        KernelPCA(2, solver=nystroem(anchors=data_for("")[1][:4]))
    ),
    "pca-nystroem-tol": lambda: fitted(KernelPCA(2, solver=nystroem(n_anchors=9, tol=0.5))),
    "pca-nystroem-weights": lambda: fitted(
        KernelPCA(2, n_anchors=5, **SEED), sample_weight=weights()
    ),
    "pca-nystroem-float32": lambda: in_float32(KernelPCA(2, n_anchors=5, **SEED)),
    "pca-nystroem-precomputed": lambda: fitted(
        KernelPCA(2, "precomputed", n_anchors=5, **SEED), "precomputed"
    ),
    "pca-nystroem-shapes": lambda: fitted(
        KernelPCA(2, "complex_gaussian", n_anchors=5, **SEED), "complex_gaussian"
    ),
    "pca-nystroem-matrices": lambda: fitted(
        KernelPCA(2, "log_euclidean", n_anchors=5, **SEED), "log_euclidean"
    ),
    "pca-blocks": lambda: Case(
        KernelPCA(2, solver="nystroem", n_anchors=5, **SEED).fit(Batches()), data_for("")[1]
    ),
    "pca-blocks-linear": lambda: Case(
        KernelPCA(2, "linear", solver="nystroem", n_anchors=3, **SEED).fit(Batches()),
        data_for("")[1],
    ),
    "pca-dask": lambda: with_dask(KernelPCA(2, solver="nystroem", n_anchors=5, **SEED)),
    "pca-partial": lambda: in_batches(
        KernelPCA(1, solver=nystroem(anchors=data_for("")[1][:4])), 5, 4
    ),
    "pca-partial-many": lambda: in_batches(KernelPCA(1, n_anchors=1, **SEED), 9, 3, 2),
    "pca-partial-weights": lambda: in_batches(
        KernelPCA(1, "linear", n_anchors=1, **SEED), 9, 3, weighted=True
    ),
    "pca-partial-waiting": lambda: in_batches(KernelPCA(2, n_anchors=5, **SEED), 6, 4),
    "pca-complex": lambda: of_complex(KernelPCA(2, "complex_gaussian")),
    "pca-complex-partial": lambda: of_complex(
        KernelPCA(1, "veronese_whitney", n_anchors=5, **SEED), partial=True
    ),
    "pga-krylov": lambda: of_many(KernelPGA(2, solver=Krylov(random_state=0, max_basis=12))),
    "pga-weights": lambda: fitted(KernelPGA(2), sample_weight=weights()),
    "pga-float32": lambda: in_float32(KernelPGA(2)),
    "pga-cosine": lambda: fitted(KernelPGA(2, kernel="cosine")),
    "pga-copies-precomputed": lambda: doubled(KernelPGA(2, kernel="precomputed"), "precomputed"),
    "pga-nystroem": lambda: fitted(KernelPGA(2, n_anchors=5, **SEED)),
    "pga-nystroem-angles": lambda: fitted(
        KernelPGA(2, solver=nystroem(n_anchors=5, sphere="angles"))
    ),
    "pga-nystroem-cosine": lambda: fitted(KernelPGA(2, "cosine", n_anchors=4, **SEED)),
    "pga-nystroem-precomputed": lambda: fitted(
        KernelPGA(2, "precomputed", n_anchors=5, **SEED), "precomputed"
    ),
    "pga-blocks": lambda: Case(
        KernelPGA(2, solver="nystroem", n_anchors=5, **SEED).fit(Batches()), data_for("")[1]
    ),
    "pga-dask": lambda: with_dask(KernelPGA(2, solver="nystroem", n_anchors=5, **SEED)),
    # nested spheres and robust kernel PCA
    "pns-small": lambda: fitted(KernelPNS(2)),
    "pns-bic": lambda: fitted(KernelPNS(2, sphere="bic")),
    "pns-test": lambda: fitted(KernelPNS(2, sphere="test", p=1.5)),
    "pns-negligible": lambda: fitted(KernelPNS(2, negligible=0.05)),
    "pns-all": lambda: fitted(KernelPNS(kernel="cosine", sphere="great")),
    "pns-nystroem": lambda: fitted(KernelPNS(2, n_anchors=5, sphere="great", **SEED)),
    "pns-nystroem-precomputed": lambda: fitted(
        KernelPNS(2, "precomputed", n_anchors=5, sphere="great", **SEED), "precomputed"
    ),
    "pns-copies": lambda: doubled(KernelPNS(2, sphere="great")),
    "pns-copies-precomputed": lambda: doubled(
        KernelPNS(2, "precomputed", sphere="great"), "precomputed"
    ),
    "robust-karcher": lambda: fitted(RobustKernelPCA(2, center="karcher")),
    "robust-median": lambda: fitted(RobustKernelPCA(2, center="spatial-median", p=1.5)),
    "robust-linear": lambda: fitted(RobustKernelPCA(2, kernel="linear")),
    "robust-copies-precomputed": lambda: doubled(
        RobustKernelPCA(2, kernel="precomputed"), "precomputed"
    ),
    "robust-float32": lambda: in_float32(RobustKernelPCA(2)),
    # mixtures
    **{
        f"mixture-{kind}": lambda kind=kind: fitted(
            GeodesicMixture(2, 3, covariance_type=kind, **SEED)
        )
        for kind in ("full", "tied", "diag", "spherical")
    },
    "mixture-likelihood": lambda: fitted(
        GeodesicMixture(2, 3, mean_update="likelihood", init_params="k-means", **SEED)
    ),
    "mixture-density": lambda: fitted(
        GeodesicMixture(2, 0.8, assignment="density", init_params="random", **SEED)
    ),
    "mixture-nystroem": lambda: fitted(GeodesicMixture(2, 3, n_anchors=5, **SEED)),
    "mixture-dask": lambda: with_dask(
        GeodesicMixture(2, 3, solver="nystroem", n_anchors=5, **SEED)
    ),
    "mixture-copies-precomputed": lambda: doubled(
        GeodesicMixture(2, 3, kernel="precomputed", **SEED), "precomputed"
    ),
    # clustering
    "kmeans-weights": lambda: fitted(Kmeans(2, **SEED), sample_weight=weights()),
    "kmeans-linear": lambda: fitted(Kmeans(2, "linear", init="random", **SEED)),
    "kmeans-given": lambda: fitted(Kmeans(2, init=data_for("")[1][:2], n_init=1)),
    "kmeans-nystroem": lambda: fitted(Kmeans(2, n_anchors=5, **SEED)),
    "kmeans-nystroem-precomputed": lambda: fitted(
        Kmeans(2, "precomputed", n_anchors=5, **SEED), "precomputed"
    ),
    "kmeans-float32": lambda: in_float32(Kmeans(2, **SEED)),
    "spherical-complex": lambda: of_complex(Spherical(2, "veronese_whitney", **SEED)),
    "spherical-preimage": lambda: fitted(Spherical(2, init="bounding-box", **SEED)),
    "spherical-sparse": lambda: fitted(Spherical(2, centers="intrinsic", **SEED), "sparse"),
    "spherical-nystroem": lambda: fitted(Spherical(2, centers="intrinsic", n_anchors=5, **SEED)),
    "spherical-copies-precomputed": lambda: doubled(
        Spherical(2, "precomputed", centers="intrinsic", **SEED), "precomputed"
    ),
    **{
        f"spectral-{kind}": lambda kind=kind: fitted(Spectral(2, laplacian=kind, **SEED))
        for kind in ("njw", "kernel-pca", "ncut")
    },
    **{
        f"spectral-nystroem-{kind}": lambda kind=kind: fitted(
            Spectral(2, laplacian=kind, n_anchors=5, **SEED)
        )
        for kind in ("njw", "kernel-pca", "ncut")
    },
    "spectral-krylov": lambda: of_many(
        Spectral(2, solver=Krylov(random_state=0, max_basis=12), **SEED)
    ),
    "spectral-weights": lambda: fitted(Spectral(2, **SEED), sample_weight=weights()),
    "spectral-nystroem-precomputed": lambda: fitted(
        Spectral(2, "precomputed", n_anchors=5, **SEED), "precomputed"
    ),
    "spectral-dask": lambda: with_dask(Spectral(2, solver="nystroem", n_anchors=5, **SEED)),
    # classifiers
    **{
        f"{name}-{option}": lambda kind=kind, option=option: CLASSIFIER_OPTIONS[option](kind)
        for name, kind in (("ridge", Ridge), ("perturbo", PerTurbo))
        for option in CLASSIFIER_OPTIONS
    },
    "ridge-sigmas": lambda: fitted(Ridge(sigmas=[1.0, 4.0])),
    "ridge-subspace": lambda: fitted(Ridge(sigmas="auto", subspace_size=4, **SEED)),
    "ridge-subspace-alpha": lambda: fitted(Ridge(alpha=0.1, subspace_size=4, **SEED)),
    "ridge-subspace-precomputed": lambda: fitted(
        Ridge("precomputed", subspace_size=4, **SEED), "precomputed"
    ),
    "ridge-class-weight": lambda: fitted(Ridge(class_weight="balanced")),
    "ridge-class-weights": lambda: fitted(
        Ridge(alpha=0.1, class_weight={"left": 2.0, "right": 1.0})
    ),
    "perturbo-components": lambda: fitted(PerTurbo(n_components=2)),
    "perturbo-geodesic": lambda: fitted(PerTurbo(geodesic=True)),
    "perturbo-complex": lambda: of_complex(PerTurbo("full_procrustes", alpha=0.1)),
    "perturbo-geodesic-linear": lambda: on_unit_sphere(
        PerTurbo("linear", geodesic=True, reference="mean")
    ),
    "perturbo-geodesic-mean": lambda: fitted(PerTurbo(geodesic=True, reference="mean")),
    "perturbo-geodesic-alpha": lambda: fitted(PerTurbo(geodesic=True, alpha=0.1)),
    "nested-paper": lambda: fitted(NestedSpheresClassifier(2, features="paper")),
    "nested-great": lambda: fitted(NestedSpheresClassifier(3, sphere="great", C=2.0)),
    "nested-bic": lambda: fitted(NestedSpheresClassifier(2, sphere="bic", negligible=0.05)),
    "nested-auto": lambda: fitted(
        NestedSpheresClassifier(2, p="cv", ps=(1.0, 2.0), cv=2, sphere="great")
    ),
    "nested-three": lambda: three_classes(NestedSpheresClassifier(2, sphere="great")),
    "nested-frame": lambda: with_frame(NestedSpheresClassifier(2, sphere="great")),
    # denoising
    "patches": lambda: denoised(PatchDenoiser(3, max_train=20, noise=0.1, **SEED)),
    "patches-linear": lambda: denoised(
        PatchDenoiser((2, 3), n_components=2, kernel="linear", blend=0.5, max_train=20, **SEED)
    ),
    "patches-nystroem": lambda: denoised(
        PatchDenoiser(3, n_components=2, solver=nystroem(n_anchors=6), max_train=20, **SEED)
    ),
    "sequence-unchanged": lambda: denoised(SequenceDenoiser(noise=0.0)),
    "sequence": lambda: denoised(SequenceDenoiser(noise=0.1, **SEED)),
    # pipelines
    **{
        f"pipeline-{type(scaler).__name__}": lambda scaler=scaler: fitted(
            make_pipeline(scaler, KernelPCA(2))
        )
        for scaler in (
            StandardScaler(),
            MinMaxScaler(feature_range=(-1, 1), clip=True),
            MaxAbsScaler(),
            RobustScaler(quantile_range=(10, 90)),
            Normalizer("l1"),
        )
    },
    "pipeline-without-scale": lambda: fitted(
        make_pipeline(StandardScaler(with_std=False), RobustScaler(with_centering=False), Ridge())
    ),
    "pipeline-frame": lambda: with_frame(make_pipeline(StandardScaler(), PerTurbo())),
    "pipeline-sparse": lambda: fitted(make_pipeline(MaxAbsScaler(), KernelPGA(2)), "sparse"),
    "pipeline-two": lambda: fitted(make_pipeline(KernelPGA(3), Kmeans(2, **SEED))),
}


#: Values that are not the default, for parameters of unfitted estimators.
VALUES: dict[str, Any] = {
    "C": 2.0,
    "alpha": 0.5,
    "alpha_scale": "relative",
    "alphas": [0.1, 1.0],
    "assignment": "density",
    "blend": 0.5,
    "center": "karcher",
    "centers": "intrinsic",
    "class_weight": {0: 1.0, 1: 2.5},
    "covariance_type": "tied",
    "cv": 3,
    "features": "paper",
    "geodesic": True,
    "init": np.arange(8.0).reshape(2, 4),
    "init_params": "random",
    "inverse_alpha": 1e-3,
    "kernel": kernels.Normalized(kernels.Polynomial(degree=2, gamma=0.5, coef0=0.0)),
    "laplacian": "ncut",
    "max_iter": 17,
    "max_train": 30,
    "mean_update": "likelihood",
    "memory_budget": 1e6,
    "n_clusters": 3,
    "n_components": 4,
    "n_init": 2,
    "n_anchors": 6,
    "n_modes": 0.5,
    "negligible": 0.1,
    "noise": 0.2,
    "p": 1.5,
    "patch_size": (3, 4),
    "ps": (1.0, 3.0),
    "random_state": 5,
    "reference": "mean",
    "reg_covar": 1e-4,
    "sigmas": [1.0, 2.0],
    "sphere": "bic",
    "step": 3,
    "storage": "recompute",
    "subspace_size": 7,
    "tol": 0.25,
    "verbose": 2,
    "warm_start": True,
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
        checkpoint_seconds=9.0,
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
    values = VALUES | {"solver": SOLVERS[solver]}
    return Case(kind(**{name: values[name] for name in kind().get_params(deep=False)}), None)


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
    return estimators | OPTIONS | alone | plain


def inverts(model: Any, new: Any) -> bool:
    """Whether the model can go back to inputs."""
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
        parameters = {name: repr(value) for name, value in model.get_params().items()}
        np.savez_compressed(path.with_suffix(".npz"), parameters=json.dumps(parameters))
        return
    told: dict[str, Any] = {}
    if hasattr(new, "columns"):
        told["columns"] = np.array(new.columns, dtype=str)
    if scipy.sparse.issparse(new):
        told["csr"] = np.array(True)
    if new is not None:
        told["new"] = new.toarray() if "csr" in told else np.asarray(new)
    answers = laws.outputs(model, new, inverts(model, new))
    np.savez_compressed(path.with_suffix(".npz"), **told, **answers)


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
