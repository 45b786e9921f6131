"""What the demonstration computes of kernel PCA against kernel PGA: which keeps neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ...datasets import make_von_mises_fisher
from ...decomposition import KernelPCA, KernelPGA
from ...metrics import neighborhood_area, neighborhood_preservation
from ...sphere import distance
from .studies import Array, Fitted, Settings, Studies, Study, timed_fit

__all__ = [
    "GEODESIC_TASKS",
    "METHODS",
    "Comparison",
    "Directions",
    "Geodesic",
    "run_geodesic",
]

# The last one is kernel PGA with distances along the sphere instead of straight ones in the plane.
METHODS = ("kernel PCA", "kernel PGA", "kernel PGA, geodesic")

GEODESIC_TASKS = (
    "directions: kernel PCA against kernel PGA",
    "wine and digits: kernel PCA against kernel PGA",
)


@dataclass(frozen=True)
class Comparison:
    """Two decompositions of the same data under the same kernel.

    ``quality[count][method]`` is the curve Q(κ) with so many components.
    """

    flat: KernelPCA
    curved: Fitted
    quality: dict[int, dict[str, Array]]

    def area(self, count: int, method: str) -> float:
        """Return the area under a rescaled curve, on the logarithmic scale."""
        return neighborhood_area(self.quality[count][method])

    def gain(self, count: int) -> float:
        """Return by how much kernel PGA is better, with straight distances for both."""
        return self.area(count, METHODS[1]) - self.area(count, METHODS[0])

    @property
    def angles(self) -> Array:
        """Distances from the mean along the sphere, in degrees."""
        return np.degrees(np.arccos(np.clip(self.curved.model.mean_cosines_, -1, 1)))


@dataclass(frozen=True)
class Directions:
    """Simulated directions: all components of both methods, and the neighbours that two keep.

    ``neighbour_angles`` are mean distances along the sphere, in degrees, from a point to the
    nearest one in each method's plane.
    """

    X: Array
    comparison: Comparison
    neighbour_angles: dict[str, float]

    @property
    def far(self) -> int:
        """How many points lie a quarter of a great circle or more from the mean."""
        return int(np.count_nonzero(self.comparison.angles >= 90))


@dataclass(frozen=True)
class Geodesic:
    """Everything that the page shows of kernel PGA."""

    directions: Directions
    wine: Comparison
    digits: Comparison


def run_geodesic(studies: Studies, begin: Callable[[], None]) -> Geodesic:
    """Compute everything; `begin` is called before each of the tasks."""
    begin()
    directions = simulate_directions(studies.settings)
    begin()
    wine, digits = (
        compare(study, models["gaussian"].model, studies.settings)
        for study, models in (
            (studies.wine, studies.wine_models),
            (studies.digits, studies.digits_models),
        )
    )
    return Geodesic(directions, wine, digits)


def simulate_directions(settings: Settings) -> Directions:
    """Draw directions on a sphere S² inside many dimensions, and decompose them both ways."""
    X = make_von_mises_fisher(
        settings.directions,
        settings.dimensions,
        2,
        settings.concentration,
        random_state=settings.seed,
    )
    flat = KernelPCA(kernel="linear", random_state=settings.seed).fit(X)
    with warnings.catch_warnings():
        # that many points are far from the mean is said on the page
        warnings.filterwarnings("ignore", ".* a quarter of a great circle or more", UserWarning)
        curved = timed_fit(KernelPGA(kernel="linear", random_state=settings.seed), X)
    nearest = {
        method: _nearest_angle(X, model.embedding_[:, :2])
        for method, model in zip(METHODS, (flat, curved.model), strict=False)
    }
    comparison = Comparison(flat, curved, _quality(X, flat, curved.model, (2,)))
    return Directions(X, comparison, nearest)


def compare(study: Study, flat: KernelPCA, settings: Settings) -> Comparison:
    """Set kernel PGA beside a kernel PCA that was fitted to the same data."""
    model = KernelPGA(study.n_components, flat.kernel, random_state=settings.seed)
    curved = timed_fit(model, study.inputs)
    counts = settings.neighbourhood_counts
    return Comparison(flat, curved, _quality(study.inputs, flat, curved.model, counts))


def _nearest_angle(X: Array, plane: Array) -> float:
    """Return how far apart on the sphere nearest neighbours in a plane are, in degrees."""
    found = NearestNeighbors(n_neighbors=1).fit(plane).kneighbors(return_distance=False)[:, 0]
    return float(np.degrees(distance(X, X[found])).mean())


def _quality(
    X: Array, flat: KernelPCA, curved: KernelPGA, counts: Sequence[int]
) -> dict[int, dict[str, Array]]:
    """Return the curves of each number of components; the first ones are a smaller model's."""
    kernel = curved.kernel_
    found = {}
    for count in counts:
        plane, tangent = flat.embedding_[:, :count], curved.embedding_[:, :count]
        curves = (
            neighborhood_preservation(X, plane, kernel=kernel),
            neighborhood_preservation(X, tangent, kernel=kernel),
            neighborhood_preservation(X, tangent, kernel=kernel, metric="geodesic"),
        )
        found[count] = dict(zip(METHODS, curves, strict=True))
    return found
