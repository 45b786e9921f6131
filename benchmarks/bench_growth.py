"""How each method grows with N, compared with its peers: seconds and peak memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import bench_clustering
import bench_hebbian
import bench_nested
import bench_shapes
import bench_sphere
import numpy as np
from harness import Curve, Method, Missing, Peer, data_folder, grow, peak_after_fork, size
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.pipeline import make_pipeline
from skpns import IntrinsicPNS

from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Krylov, Nystroem, leading
from orthodrome.gram import Centered, gram_operator
from orthodrome.kernels import Gaussian
from orthodrome.sphere import karcher_mean, nested_spheres

K = 16
ANCHORS = size(256, 32)
EXACT = size((500, 1_000, 2_000, 4_000, 8_000, 16_000), (100, 200))
BY_ANCHORS = size((2_000, 4_000, 8_000, 16_000, 32_000, 64_000), (200, 400))
ON_SPHERE = size((1_000, 4_000, 16_000, 64_000), (600, 1_200))
CHAINS = size((125, 250, 500, 1_000, 2_000), (30, 60))
LEAVES = size((250, 500, 1_000, 1_990), (100, 200))
PASSES = size((500, 1_000, 2_000, 4_000), (100, 200))

Work = Callable[[], Any]

# ---------------------------------------------------------------------------- kernel PCA and PGA


@cache
def points(n: int) -> np.ndarray:
    """Normal points in 32 coordinates of falling spread."""
    return np.random.default_rng(1).standard_normal((n, 32)) * np.linspace(2, 0.2, 32)


@cache
def sigma(n: int) -> float:
    return float(Gaussian().fit(points(n)).sigma_)


@cache
def eigenvalues(n: int) -> np.ndarray:
    gram = gram_operator(Gaussian(sigma=sigma(n)).fit(points(n)), points(n))
    return leading(Centered(gram), K, solver=Krylov(tol=1e-12, random_state=7)).values


def eigenvalue_error(model: Any, n: int) -> float:
    exact = geodesic_eigenvalues(n) if isinstance(model, KernelPGA) else eigenvalues(n)
    return float(np.max(np.abs(model.eigenvalues_ / exact - 1)))


@cache
def geodesic_eigenvalues(n: int) -> np.ndarray:
    solver = Krylov(tol=1e-12, random_state=7)
    return KernelPGA(K, Gaussian(sigma=sigma(n)), solver=solver).fit(points(n)).eigenvalues_


def flat(n: int) -> Work:
    return lambda: KernelPCA(K, Gaussian(sigma=sigma(n)), random_state=0).fit(points(n))


def geodesic(n: int) -> Work:
    return lambda: KernelPGA(K, Gaussian(sigma=sigma(n)), random_state=0).fit(points(n))


def sklearn(solver: str, n: int) -> Work:
    model = SklearnKernelPCA(
        K, kernel="rbf", gamma=0.5 / sigma(n) ** 2, eigen_solver=solver, random_state=0
    )
    return lambda: model.fit(points(n))


def kernel_pca(full: bool) -> Curve:
    sizes = EXACT if full else EXACT[:3]
    return grow(
        f"Kernel PCA and PGA, d = 32, {K} components, to N = {sizes[-1]:,}",
        methods("kernel_pca", full),
        sizes,
        error=eigenvalue_error,
        required=1e-8,
        note="Error: largest relative error of the eigenvalues, each method's own, at the worst N, "
        "against a Krylov run to a tolerance of 1e-12.",
    )


# ---------------------------------------------------------------------------- anchors


def our_features(n: int) -> Work:
    solver = Nystroem(n_anchors=ANCHORS, random_state=0)
    model = KernelPCA(K, Gaussian(sigma=sigma(n)), solver=solver)
    return lambda: model.fit(points(n)).embedding_


def our_geodesic_features(n: int) -> Work:
    solver = Nystroem(n_anchors=ANCHORS, random_state=0)
    model = KernelPGA(K, Gaussian(sigma=sigma(n)), solver=solver)
    return lambda: model.fit(points(n))


def their_features(n: int) -> Work:
    features = SklearnNystroem(gamma=0.5 / sigma(n) ** 2, n_components=ANCHORS, random_state=0)
    pipeline = make_pipeline(features, PCA(K, random_state=0))
    return lambda: pipeline.fit_transform(points(n))


@cache
def captured(n: int) -> float:
    """The variance that four times as many anchors capture."""
    solver = Nystroem(n_anchors=4 * ANCHORS, random_state=1)
    model = KernelPCA(K, Gaussian(sigma=sigma(n)), solver=solver).fit(points(n))
    return float(model.embedding_.var(axis=0).sum())


def variance_apart(result: Any, n: int) -> float:
    if isinstance(result, KernelPGA):
        return abs(1 - float(result.eigenvalues_.sum()) / geodesic_variance(n))
    return abs(1 - float(result.var(axis=0).sum()) / captured(n))


@cache
def geodesic_variance(n: int) -> float:
    solver = Nystroem(n_anchors=4 * ANCHORS, random_state=1)
    model = KernelPGA(K, Gaussian(sigma=sigma(n)), solver=solver).fit(points(n))
    return float(model.eigenvalues_.sum())


def by_anchors(full: bool) -> Curve:
    sizes = BY_ANCHORS if full else BY_ANCHORS[:3]
    return grow(
        f"By {ANCHORS} anchors, d = 32, {K} components, to N = {sizes[-1]:,}",
        methods("by_anchors", full),
        sizes,
        error=variance_apart,
        required=0.02,
        note="Error: relative difference of the captured variance from that with four times as "
        "many anchors, at the worst N.",
    )


# ---------------------------------------------------------------------------- on the sphere


def our_mean(n: int) -> Work:
    X, weights = bench_sphere.directions(n)
    return lambda: karcher_mean(X, weights, tol=bench_sphere.GRADIENT).point


def our_tangent_pca(n: int) -> Work:
    return lambda: bench_sphere.our_tangent_pca(n)


def our_mixture(n: int) -> Work:
    bench_clustering.start(n)
    return lambda: bench_clustering.ours("karcher", n)


def sklearn_mixture(n: int) -> Work:
    bench_clustering.start(n)
    return lambda: bench_clustering.theirs(n)


def mean_error(point: Any, n: int) -> float:
    X, weights = bench_sphere.directions(n)
    cosines = X @ point
    pulls = weights / weights.sum() * np.arccos(cosines) / np.sqrt(1 - cosines**2)
    return float(np.linalg.norm(pulls @ (X - np.outer(cosines, point))))


#: Of each task of geomstats: where its data are written, its epsilon, and what to keep of it.
PEER_TASKS: dict[str, tuple[Callable[..., str], float, Callable[[dict, int], Any]]] = {
    "mean": (bench_sphere.saved, bench_sphere.EPSILON, lambda a, n: np.array(a["point"])),
    "pca": (
        bench_sphere.saved,
        bench_sphere.EPSILON,
        lambda a, n: np.array(a["variances"]) * (n - 1) / n,
    ),
    "mixture": (bench_clustering.saved, 0.0, lambda a, n: np.array(a["labels"])),
}


class Geomstats:
    """A task of geomstats at one N after the other, each in a process of its own."""

    def __init__(self, task: str) -> None:
        self.task = task
        self._peer: Peer | None = None

    def _start(self, n: int) -> Peer:
        save, epsilon, _ = PEER_TASKS[self.task]
        with tempfile.TemporaryDirectory() as folder:
            return Peer("geomstats", save(folder, n), str(epsilon))  # it reads the file at once

    def prepare(self, n: int) -> Work:
        if self._peer is not None:
            self._peer.close()
        peer = self._peer = self._start(n)
        keep = PEER_TASKS[self.task][2]
        return lambda: keep(peer.run(self.task), n)

    def memory(self, n: int) -> float:
        peer = self._start(n)
        found = peer.run(f"peak {self.task}")["bytes"]
        peer.close()
        return float(found)

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()


def compared_with_geomstats(
    family: str,
    task: str,
    name: str,
    full: bool,
    error: Callable[[Any, int], float],
    required: float,
    note: str,
) -> list[Curve | Missing]:
    sizes = ON_SPHERE if full else ON_SPHERE[:2]
    ours = methods(family, full)
    if not Peer.can_run("geomstats"):
        curve = grow(f"{name}, to N = {sizes[-1]:,}", ours, sizes, error=error, required=required)
        return [curve, Missing(f"{family} by geomstats", "its environment is not there")]
    peer = Geomstats(task)
    label = {"mixture": "a loop over geomstats"}.get(task, "geomstats")
    theirs = Method(label, peer.prepare, peer.memory if full else None)
    curve = grow(
        f"{name}, to N = {sizes[-1]:,}",
        [*ours, theirs],
        sizes,
        error=error,
        required=required,
        longest=6.0,
        note=note,
    )
    peer.close()
    return [curve]


def on_the_sphere(full: bool) -> list[Curve | Missing]:
    mean = compared_with_geomstats(
        "karcher_mean",
        "mean",
        "Weighted Karcher mean on S⁵⁰",
        full,
        mean_error,
        bench_sphere.GRADIENT,
        "Error: the norm of the gradient, recomputed, at the worst N.",
    )
    pca = compared_with_geomstats(
        "tangent_pca",
        "pca",
        f"Tangent PCA on S⁵⁰, {bench_sphere.MODES} modes",
        full,
        bench_sphere.variance_error,
        1e-8,
        "Error: largest relative error of the variances, at the worst N.",
    )
    mixture = compared_with_geomstats(
        "mixture",
        "mixture",
        f"EM, {bench_clustering.N_ITERATIONS} iterations, 10 modes, 5 full components",
        full,
        bench_clustering.mixture_error,
        0.05,
        "Error: fraction of points in the wrong component, at the worst N (the groups overlap).",
    )
    return [*mean, *pca, *mixture]


# ---------------------------------------------------------------------------- nested spheres


def our_chain(n: int) -> Work:
    arc = bench_nested.arc(n)
    return lambda: nested_spheres(arc, sphere="small", negligible=0.0)


def their_chain(n: int) -> Work:
    arc = bench_nested.arc(n)
    return lambda: IntrinsicPNS(tol=bench_nested.PEER_TOLERANCE).fit(arc)


def nested(full: bool) -> Curve:
    sizes = CHAINS if full else CHAINS[:3]
    return grow(
        f"Nested spheres on S²⁰, to N = {sizes[-1]:,}",
        methods("nested", full),
        sizes,
        longest=10.0,
        note="That both reach the same accuracy is checked in bench_nested, at N = 1,000.",
    )


# ---------------------------------------------------------------------------- classification


def some_leaves(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y, _, _ = bench_shapes.leaves()
    chosen = np.random.default_rng(1).permutation(len(y))[:n]
    return X[chosen], y[chosen]


def classify(how: str, n: int) -> Work:
    learn = some_leaves(n)
    bench_shapes.sigma()
    function = getattr(bench_shapes, how)
    return lambda: function(*learn)


def leaf_error(predicted: Any, n: int) -> float:
    return bench_shapes.error(predicted)


def classification(full: bool) -> Curve | Missing:
    try:
        bench_shapes.leaves()
    except FileNotFoundError:
        reason = f"passiflora is not in {data_folder()}; set ORTHODROME_DATA"
        return Missing("KRRC over N", reason)
    sizes = LEAVES if full else LEAVES[:2]
    tested = len(bench_shapes.leaves()[2])
    return grow(
        f"KRRC: fit to N leaves and predict {tested:,} others, to N = {sizes[-1]:,}",
        methods("classification", full),
        sizes,
        error=leaf_error,
        required=0.35,
        note="Error: fraction of test leaves in the wrong class, at the worst N (the fewest "
        "leaves to learn from).",
    )


# ---------------------------------------------------------------------------- Hebbian passes


def hebbian_pass(how: str, n: int) -> Work:
    bench_hebbian.begun(n)
    function = getattr(bench_hebbian, how)
    return lambda: function(n)


def hebbian(full: bool) -> Curve:
    sizes = PASSES if full else PASSES[:2]
    return grow(
        f"A KHA-SMD pass, r = {bench_hebbian.R}, dense K', to N = {sizes[-1]:,}",
        methods("hebbian", full),
        sizes,
        error=bench_hebbian.coefficient_error,
        required=1e-9,
        longest=10.0,
        note="Error: the distance of the coefficients from the mean of both sides, at the worst N.",
    )


# ---------------------------------------------------------------------------- all of them

FAMILIES: dict[str, dict[str, Callable[[int], Work]]] = {
    "kernel_pca": {
        "orthodrome.KernelPCA": flat,
        "orthodrome.KernelPGA": geodesic,
        "sklearn KernelPCA (dense)": partial(sklearn, "dense"),
        "sklearn KernelPCA (arpack)": partial(sklearn, "arpack"),
        "sklearn KernelPCA (randomized)": partial(sklearn, "randomized"),
    },
    "by_anchors": {
        "orthodrome.KernelPCA": our_features,
        "orthodrome.KernelPGA": our_geodesic_features,
        "sklearn Nystroem + PCA": their_features,
    },
    "karcher_mean": {"orthodrome.sphere.karcher_mean": our_mean},
    "tangent_pca": {"orthodrome.KernelPGA (linear)": our_tangent_pca},
    "mixture": {
        "GeodesicMixture's EM": our_mixture,
        "sklearn GaussianMixture": sklearn_mixture,
    },
    "nested": {"orthodrome.sphere.nested_spheres": our_chain, "scikit-pns": their_chain},
    "classification": {
        "KernelRidgeRegressionClassifier": partial(classify, "ours"),
        "SVC, Gram matrices by NumPy": partial(classify, "support_vectors"),
        "a loop over pairs": partial(classify, "loop_over_pairs"),
    },
    "hebbian": {
        "orthodrome.eigen.hebbian": partial(hebbian_pass, "our_pass"),
        "the loop over samples in NumPy": partial(hebbian_pass, "plain_pass"),
    },
}


def methods(family: str, full: bool) -> list[Method]:
    """The methods of a family; their memory is measured by a full run only."""
    return [
        Method(label, prepare, partial(memory_of, family, label) if full else None)
        for label, prepare in FAMILIES[family].items()
    ]


def memory_of(family: str, label: str, n: int) -> float:
    return peak_after_fork(prepared, family, label, n)


def prepared(family: str, label: str, n: int) -> Work:
    """The work at N, after a small one: compiled loops are loaded, and BLAS has its buffers."""
    prepare = FAMILIES[family][label]
    prepare(SMALL[family])()
    return prepare(n)


SMALL = dict.fromkeys(FAMILIES, 120) | {
    "nested": 30,
    "mixture": 600,
    "by_anchors": 2 * ANCHORS,
}


def run(full: bool = False) -> list[Curve | Missing]:
    return [
        kernel_pca(full),
        by_anchors(full),
        *on_the_sphere(full),
        nested(full),
        classification(full),
        hebbian(full),
    ]
