"""Initial cluster centres, chosen among the points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core.types import Floats, Indices

#: ``squared(indices)`` returns the squared distances of all points from some of them, (n, m).
SquaredDistances = Callable[[Indices], Floats]


def k_means_plus_plus(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw points with probabilities proportional to squared distances from those before.

    Of 2 + log k candidates, keep the one that lowers the sum of squares most (Arthur and
    Vassilvitskii, "k-means++: the advantages of careful seeding", 2007).
    """
    chosen = [_draw(weights, random)]
    nearest = squared(np.array(chosen))[:, 0]
    for _ in range(1, k):
        pull = weights * np.maximum(nearest, 0.0)
        if not pull.any():
            break
        candidates = np.unique([_draw(pull, random) for _ in range(2 + int(np.log(k)))])
        reached = np.minimum(squared(candidates), nearest[:, None])
        best = int(np.argmin(weights @ reached))
        chosen.append(int(candidates[best]))
        nearest = reached[:, best]
    return np.array(chosen)


def farthest_first(
    squared: SquaredDistances, weights: Floats, k: int, random: np.random.RandomState
) -> Indices:
    """Draw the first point, then repeatedly take the one farthest from those taken.

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


#: Ways to choose k of the points; fewer are returned if the rest coincide with them.
SEEDINGS = {
    "k-means++": k_means_plus_plus,
    "farthest-first": farthest_first,
    "random": random_points,
}


def _draw(weights: Floats, random: np.random.RandomState) -> int:
    """Draw an index with a probability proportional to the weights."""
    sums = np.cumsum(weights)
    place = int(np.searchsorted(sums, random.uniform() * sums[-1], side="right"))
    return min(place, int(np.flatnonzero(weights)[-1]))
