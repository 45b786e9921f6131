"""Initial cluster centres, chosen among the points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core.types import Floats, Indices

#: ``squared(indices)`` returns the squared distances between all points and m of them, (n, m).
SquaredDistances = Callable[[Indices], Floats]


def k_means_plus_plus(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw points with probabilities proportional to squared distances from earlier points.

    Of 2 + log k candidates, keep the one that reduces the sum of squares most (Arthur and
    Vassilvitskii, "k-means++: the advantages of careful seeding", 2007).
    """
    chosen = [_draw(weights, random)]
    nearest = squared(np.array(chosen))[:, 0]
    for _ in range(1, k):
        probabilities = weights * np.maximum(nearest, 0.0)
        if not probabilities.any():
            break
        candidates = np.unique([_draw(probabilities, random) for _ in range(2 + int(np.log(k)))])
        distances = np.minimum(squared(candidates), nearest[:, None])
        best = int(np.argmin(weights @ distances))
        chosen.append(int(candidates[best]))
        nearest = distances[:, best]
    return np.array(chosen)


def farthest_first(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw the first point, then repeatedly choose the point farthest from those chosen.

    (Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985.)
    """
    chosen = [_draw(weights, random)]
    nearest = squared(np.array(chosen))[:, 0]
    for _ in range(1, k):
        farthest = int(np.argmax(np.where(weights > 0, nearest, -np.inf)))
        if not nearest[farthest] > 0:
            break
        chosen.append(farthest)
        nearest = np.minimum(nearest, squared(np.array([farthest]))[:, 0])
    return np.array(chosen)


def random_points(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw distinct points, with probabilities proportional to the weights."""
    return random.choice(len(weights), size=k, replace=False, p=weights / weights.sum())


#: Functions that choose k points; they return fewer if the others coincide with those.
SEEDINGS = {
    "k-means++": k_means_plus_plus,
    "farthest-first": farthest_first,
    "random": random_points,
}


def _draw(weights: Floats, random: np.random.RandomState) -> int:
    """Draw an index with probabilities proportional to the weights."""
    sums = np.cumsum(weights)
    index = int(np.searchsorted(sums, random.uniform() * sums[-1], side="right"))
    return min(index, int(np.flatnonzero(weights)[-1]))
