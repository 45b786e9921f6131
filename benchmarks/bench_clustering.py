"""Clustering on the sphere compared with scikit-learn and geomstats; pre-images."""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import Comparison, Measured, Missing, Peer, compare, size
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from orthodrome import HypersphericalKMeans
from orthodrome.kernels import Gaussian
from orthodrome.metrics import clustering_error
from orthodrome.preimage import KarcherPreimage, karcher_mean_preimage
from orthodrome.rows import ArrayRows
from orthodrome.sphere import exp_at_pole
from orthodrome.sphere.mixture import Cloud, MixtureFit, expectation_maximization, first_mixture

N_ITERATIONS = 15
N_MIXTURE, N_GROUPS, N_CLOUD = size((20_000, 5_000, 1_000), (1_000, 500, 60))

# ---------------------------------------------------------------------------- the mixture


@cache
def coordinates(n: int = N_MIXTURE) -> tuple[np.ndarray, np.ndarray]:
    """Tangent vectors of 10 modes in 5 groups that overlap, within a radian of the pole."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=n)
    centers = 0.12 * rng.standard_normal((5, 10))
    factors = 0.08 * rng.standard_normal((5, 10, 10))
    noise = np.einsum("nij,nj->ni", factors[y], rng.standard_normal((n, 10)))
    return centers[y] + noise, y


@cache
def start(n: int = N_MIXTURE) -> np.ndarray:
    """Labels to begin with: those of the nearest of five random points."""
    Z, _ = coordinates(n)
    chosen = Z[np.random.default_rng(1).choice(len(Z), 5, replace=False)]
    return np.argmin(((Z[:, None] - chosen) ** 2).sum(axis=-1), axis=1)


def ours(mean_update: str, n: int = N_MIXTURE) -> MixtureFit:
    Z, _ = coordinates(n)
    points, shares = exp_at_pole(Z), np.eye(5)[start(n)].T / len(Z)
    return expectation_maximization(
        Cloud(ArrayRows.of(points)),
        first_mixture(points, shares, "full", 1e-8, unit_mass=1 / len(Z)),
        mean_update=mean_update,
        floor=1e-8,
        tol=0.0,
        max_iter=N_ITERATIONS,
    )


def theirs(n: int = N_MIXTURE) -> GaussianMixture:
    Z, _ = coordinates(n)
    groups = [Z[start(n) == c] for c in range(5)]
    model = GaussianMixture(
        5,
        tol=0.0,
        max_iter=N_ITERATIONS,
        weights_init=[len(group) / len(Z) for group in groups],
        means_init=[group.mean(axis=0) for group in groups],
        precisions_init=[np.linalg.inv(np.cov(group.T)) for group in groups],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(Z)


def iterations_missing(result: Any) -> float:
    """All iterations must have been made, or the times do not compare."""
    return float(
        N_ITERATIONS - (result.n_iter if isinstance(result, MixtureFit) else result.n_iter_)
    )


def mixture_error(result: Any, n: int = N_MIXTURE) -> float:
    """Return how many iterations are missing; else the share of points in the wrong component."""
    Z, y = coordinates(n)
    if isinstance(result, np.ndarray):  # the labels of the peer, which makes all of them
        return clustering_error(y, result)
    if iterations_missing(result):
        return float("inf")
    if isinstance(result, MixtureFit):
        joint = result.mixture.log_densities(exp_at_pole(Z)) + np.log(result.mixture.weights)
        return clustering_error(y, joint.argmax(axis=1))
    return clustering_error(y, result.predict(Z))


def mixtures() -> list[Measured]:
    return [
        compare(
            Comparison(
                name=f"EM, {N_ITERATIONS} iterations, N = {N_MIXTURE:,}, 10 modes, 5 full "
                f"components, means by {update!r}",
                ours=lambda update=update: ours(update),  # type: ignore[misc]
                theirs=theirs,
                ours_label="GeodesicMixture's EM, given the embedding",
                theirs_label="sklearn GaussianMixture on the same coordinates",
                accuracy=mixture_error,
                required=0.02,
                target=1.5,
                note="Both from the same labels, with tol=0. Error: fraction of points in the "
                "wrong component after these iterations (the groups overlap).",
            )
        )
        for update in ("karcher", "likelihood")
    ]


def saved(folder: str, n: int = N_MIXTURE) -> str:
    """Write points, start and number of iterations for geomstats; return where."""
    path = Path(folder) / "mixture.npz"
    points = exp_at_pole(coordinates(n)[0])
    np.savez(path, points=points, labels=start(n), iterations=N_ITERATIONS)
    return str(path)


def compared_with_geomstats() -> Measured | Missing:
    if not Peer.can_run("geomstats"):
        return Missing("the mixture by geomstats", "its environment is not there")
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer("geomstats", saved(folder), "0")
        failure = peer.run("own_mixture 1000").get("error")
        own = f" Its own RiemannianEM ends on this sphere with {failure}" if failure else ""
        measured = compare(
            Comparison(
                name=f"EM compared with geomstats, {N_ITERATIONS} iterations, "
                f"N = {N_MIXTURE:,}, S¹⁰, 5 full components",
                ours=lambda: ours("karcher"),
                theirs=lambda: np.array(peer.run("mixture")["labels"]),
                ours_label="GeodesicMixture's EM, given the embedding",
                theirs_label=f"a loop over geomstats {peer.version}: FrechetMean and Log",
                accuracy=mixture_error,
                required=0.02,
                note="From the same labels; geomstats in a process of its own, its means to the "
                f"tolerance of its own EM. Error: fraction of points in the wrong component.{own}",
            )
        )
        peer.close()
    return measured


# ---------------------------------------------------------------------------- k-means


@cache
def groups() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(N_GROUPS, n_features=16, centers=10, cluster_std=3.0, random_state=0)
    return X, y


@cache
def gamma() -> float:
    return 0.5 / Gaussian().fit(groups()[0]).sigma_ ** 2


def group_error(model: Any) -> float:
    return clustering_error(groups()[1], model.labels_)


def k_means() -> list[Measured]:
    def spectral() -> SpectralClustering:
        return SpectralClustering(10, gamma=gamma(), n_init=1, random_state=0).fit(groups()[0])

    return [
        compare(
            Comparison(
                name=f"HypersphericalKMeans(centers={centers!r}), N = {N_GROUPS:,}, d = 16, 10 "
                "clusters, one start, σ = mean",
                ours=lambda centers=centers: HypersphericalKMeans(  # type: ignore[misc]
                    10, centers=centers, n_init=1, random_state=0
                ).fit(groups()[0]),
                theirs=spectral,
                ours_label="orthodrome.HypersphericalKMeans",
                theirs_label="sklearn SpectralClustering, same Gaussian affinity",
                accuracy=group_error,
                required=0.25,
                target=0.2,
                note="Error: fraction of points in the wrong cluster. One start of k-means may "
                "miss a group; its default is 10.",
            )
        )
        for centers in ("preimage", "intrinsic")
    ]


# ---------------------------------------------------------------------------- pre-images


@cache
def cloud() -> tuple[np.ndarray, Gaussian]:
    """Three groups at a scale at which the objective has several minima."""
    X, _ = make_blobs(N_CLOUD, n_features=8, centers=3, cluster_std=1.5, random_state=0)
    kernel = Gaussian(sigma=0.3 * Gaussian().fit(X).sigma_).fit(X)
    return X, kernel


def paper_loop(tol: float = 1e-9, max_iter: int = 500) -> tuple[np.ndarray, float]:
    """Algorithm 1 as it is written: one start after the other, the best is kept."""
    X, kernel = cloud()
    sigma = kernel.sigma_
    scale = np.sqrt(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    best, least = X[0], np.inf
    for x in [X.mean(axis=0), *X]:
        for _ in range(max_iter):
            k = np.exp(-np.sum((X - x) ** 2, axis=1) / (2 * sigma**2))
            theta = np.arccos(np.minimum(k, 1.0))
            alpha = k / np.sinc(theta / np.pi)
            moved = alpha @ X / alpha.sum()
            step = np.linalg.norm(moved - x)
            x = moved
            if step <= tol * scale:
                break
        k = np.exp(-np.sum((X - x) ** 2, axis=1) / (2 * sigma**2))
        value = float(np.mean(np.arccos(np.minimum(k, 1.0)) ** 2))
        if value < least:
            best, least = x, value
    return best, least


@cache
def least_objective() -> float:
    return paper_loop()[1]


def excess(result: Any) -> float:
    value = result.objective if isinstance(result, KarcherPreimage) else result[1]
    return float(value - least_objective())


def preimages() -> list[Measured]:
    X, kernel = cloud()
    sides = {
        "the default, the mean and the five best points": {},
        'starts="all", the mean and all points': {"starts": "all"},
    }
    return [
        compare(
            Comparison(
                name=f"Karcher-mean pre-image, N = {N_CLOUD:,}, d = 8, {what}",
                ours=lambda options=options: karcher_mean_preimage(  # type: ignore[misc]
                    kernel, X, **options
                ),
                theirs=paper_loop,
                ours_label=f"karcher_mean_preimage, {what.split(',')[0]}",
                theirs_label="Algorithm 1, a NumPy loop over all starts",
                accuracy=excess,
                required=1e-9,
                target=0.05,
                note="Error: excess of the objective over the best of all starts.",
            )
        )
        for what, options in sides.items()
    ]


def run() -> list[Measured | Missing]:
    return [*mixtures(), compared_with_geomstats(), *k_means(), *preimages()]
