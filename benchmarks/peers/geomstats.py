"""Work on the sphere by geomstats, in its own environment; see harness.Peer.

Each line that it reads is a task and how many of the points to take ("mean 1000"; all, without a
number); with "peak" before it, its peak memory is in the answer.
"""

import json
import logging
import sys
from importlib.metadata import version
from pathlib import Path

# this file has the name of the package, and its folder comes first on the path
sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
from geomstats.geometry.hypersphere import Hypersphere
from geomstats.learning.expectation_maximization import RiemannianEM
from geomstats.learning.frechet_mean import FrechetMean
from geomstats.learning.pca import TangentPCA
from peak import Peak

logging.disable(logging.WARNING)
data = dict(np.load(sys.argv[1]))  # read now, not in the time of a run
epsilon = float(sys.argv[2])
sphere = Hypersphere(data["points"].shape[1] - 1)


def precise(estimator):
    """Let it stop at epsilon, or as it comes where that is 0."""
    if epsilon:
        estimator.set(epsilon=epsilon, max_iter=1000)
    return estimator


def mean(n):
    found = precise(FrechetMean(sphere)).fit(data["points"][:n], weights=data["weights"][:n])
    return {"point": found.estimate_.tolist()}


def pca(n):
    model = TangentPCA(sphere, n_components=int(data["modes"]))
    precise(model.mean_estimator)
    model.fit(data["points"][:n])
    return {"variances": model.explained_variance_.tolist()}


def mixture(n):
    """EM with a Gaussian in the tangent space at each mean, from geomstats' mean and Log map."""
    points, labels = data["points"][:n], data["labels"][:n]
    shares = np.eye(labels.max() + 1)[labels]
    for _ in range(int(data["iterations"])):
        logarithms = np.empty_like(shares)
        for c, share in enumerate(shares.T):
            estimator = FrechetMean(sphere)
            estimator.set(epsilon=1e-4, max_iter=100, init_step_size=1.0)  # as its own EM has it
            center = estimator.fit(points, weights=share).estimate_
            frame = np.linalg.svd(center[None])[2][1:]
            logs = sphere.metric.log(points, center) @ frame.T
            covariance = (logs * share[:, None]).T @ logs / share.sum()
            whitened = np.linalg.solve(np.linalg.cholesky(covariance), logs.T)
            logarithms[:, c] = np.log(share.mean()) - np.linalg.slogdet(covariance)[1] / 2
            logarithms[:, c] -= np.einsum("ij,ij->j", whitened, whitened) / 2
        shares = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
    return {"labels": shares.argmax(axis=1).tolist()}


def own_mixture(n):
    """Its own mixture, or why it ends."""
    try:
        model = RiemannianEM(sphere, int(data["labels"].max()) + 1, "kmeans").fit(
            data["points"][:n]
        )
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"means": model.means_.tolist()}


TASKS = {"mean": mean, "pca": pca, "mixture": mixture, "own_mixture": own_mixture}

print(json.dumps({"version": version("geomstats")}), flush=True)
for line in sys.stdin:
    words = line.split()
    measure = words[0] == "peak"
    task, *rest = words[measure:]
    n = int(rest[0]) if rest else None
    with Peak() as peak:
        answer = TASKS[task](n)
    print(json.dumps(answer | (peak.found() if measure else {})), flush=True)
