"""Fit k-means with centers in feature space, on its unit sphere, or at points of input space."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.canonical import Canonical
from .._core.checks import rows_renumbered
from .._core.memory import parse_bytes
from .._core.progress import Progress
from .._core.random import draw_seeds
from .._core.status import warn_unless_converged
from .._core.types import Floats, Indices
from .._core.unit import angles_from_complements, angles_from_cosines, check_cosines, squared_radius
from .._core.warn import warn_user
from ..coordinates import Coordinates
from ..coordinates.blocks import AnchorMap
from ..coordinates.points import Sample
from ..decomposition.view import View, fitted_view
from ..eigen import Nystroem
from ..gram import cross_operator
from ..gram.factory import prepared_points
from ..kernels import Kernel
from ..kernels.manifolds import profile_of, squared_distances_of
from ..plan import Plan, Request
from ..preimage.centers import PreimageCenters
from ..rows import ArrayRows, Rows
from ..sphere.lloyd import SEEDINGS, FlatCenters, GeodesicCenters, Run, lloyd, numbered_by_first
from ..sphere.vector_lloyd import (
    Assignment,
    VectorRun,
    geodesic_steps,
    lloyd_on_vectors,
    with_better_centers,
)
from .base import GRAM_FRACTION, warn_if_fewer

# float32 is too coarse if the squared distance of centers, relative to their squared lengths, is at
# most this many machine epsilons. Labels were still right at 12, and wrong at 2.
_MIN_SEPARATION = 32 * float(np.finfo(np.float32).eps)

# Number of products of centers that are computed at once.
_BLOCK_VALUES = 2**20

# Size of the sample from which runs on coordinates start.
_MIN_SAMPLE, _SAMPLE_PER_CLUSTER = 4096, 64


# ---------------------------------------------------------------------- geometries


@dataclass(frozen=True)
class _Geometry:
    """The points to cluster, and the properties of a geometry."""

    view: View
    reseed: bool = True
    on_sphere = True
    needs_gram = True
    extra_inits: ClassVar[tuple[str, ...]] = ()


class Flat(_Geometry):
    """Means in feature space, with Euclidean distances."""

    on_sphere = False

    @cached_property
    def centers(self) -> FlatCenters:
        """The centers that :func:`~orthodrome.sphere.lloyd.lloyd` updates."""
        return FlatCenters(self.view.gram, self.view.weights)

    def nearest_input(self, inputs: Any) -> Indices:
        """Return the index of the nearest input of each point."""
        products = self.view.gram.cross(inputs).toarray().T
        return np.argmin(_diagonal(self.view.kernel, inputs) - 2 * products, axis=1)

    def attributes(self, found: Any, kept: Indices) -> dict[str, Any]:
        """Return the fitted attributes for the clusters with indices `kept`."""
        if self.view.anchors is None:
            coefficients, squared_norms = found[0][:, kept].T, found[1][kept]
        else:
            vectors = found[kept]
            coefficients = vectors @ self.view.anchors.decoder.T
            squared_norms = np.vecdot(vectors, vectors)
        return {
            "cluster_centers_": np.ascontiguousarray(coefficients),
            "_center_squares_": squared_norms,
            "_mean_diagonal_": self.view.mean_diagonal,
        }


class Sphere(_Geometry):
    """Karcher means on the sphere in feature space, with geodesic distances."""

    @cached_property
    def centers(self) -> GeodesicCenters:
        """The centers that :func:`~orthodrome.sphere.lloyd.lloyd` updates."""
        return GeodesicCenters(self.view.gram, self.view.weights)

    def nearest_input(self, inputs: Any) -> Indices:
        """Return the index of the nearest input of each point."""
        squared_radius(_diagonal(self.view.kernel, inputs), self.view.radius, what="init")
        return np.argmax(self.view.gram.cross(inputs).toarray(), axis=0)

    def attributes(self, found: Any, kept: Indices) -> dict[str, Any]:
        """Return the fitted attributes for the clusters with indices `kept`."""
        anchors = self.view.anchors
        if anchors is None:
            coefficients = found.coefficients[:, kept].T
        else:
            coefficients = found[kept] @ anchors.decoder.T
        return {
            "cluster_centers_": np.ascontiguousarray(coefficients),
            "_centers_are_inputs_": False,
            "_squared_radius_": self.view.radius,
        }


class Inputs(_Geometry):
    """Centers at points of input space, with geodesic distances between feature vectors."""

    needs_gram = False
    extra_inits = ("bounding-box",)

    @cached_property
    def centers(self) -> PreimageCenters:
        """The centers that :func:`~orthodrome.sphere.lloyd.lloyd` updates."""
        view = self.view
        return PreimageCenters(
            view.kernel, view.canonical.data, view.weights, keep_empty=not self.reseed
        )

    def nearest_input(self, inputs: Any) -> Indices:
        """Return the index of the nearest input of each point."""
        return np.argmin(self.centers.squared(self.centers.domain.coordinates(inputs)), axis=1)

    def attributes(self, found: Any, kept: Indices) -> dict[str, Any]:
        """Return the fitted attributes for the clusters with indices `kept`."""
        inputs = self.centers.domain.inputs(found.points[kept])
        return {"cluster_centers_": inputs, "_centers_are_inputs_": True}


def _diagonal(kernel: Kernel, inputs: Any) -> Floats:
    """Return k(x, x) for each input x."""
    return kernel.diagonal(kernel.prepare(inputs)).astype(np.float64)


# ---------------------------------------------------------------------- fitting


def reads_blocks(rows: Rows, kernel: Kernel, memory_budget: str | float) -> bool:
    """Return whether rows are a memory map with coordinates, too large for copies in memory."""
    size = math.prod(rows.shape) * rows.dtype.itemsize
    return rows.mapped and kernel.has_coordinates and 4 * size > parse_bytes(memory_budget)


def plan_of_coordinates(estimator: Any, rows: Rows, k: int) -> Plan:
    """Return a plan that uses the coordinates of a linear or cosine kernel for any data."""
    solver = Nystroem(anchors=np.eye(rows.shape[1], dtype=rows.dtype), sphere="angles")
    request = Request.of(estimator, n_components=k, eigenpairs=False, tol=None)
    storage = "recompute" if rows.mapped or rows.lazy else estimator.storage
    reason = "the method uses the coordinates of the kernel"
    return Plan("coordinates", "coordinates", solver, k, storage, 1, 0, reason, request)


@dataclass(frozen=True)
class Start:
    """Parameters of the estimator that determine the initial labels."""

    n_clusters: int
    init: Any
    reseed: bool
    n_init: int
    random_state: Any
    owner: str

    def labels(self, space: Any, k: int) -> list[Indices]:
        """Return the initial labels of each run."""
        view, centers = space.view, space.centers
        if not isinstance(self.init, str):
            inputs = self._given_centers(view.kernel)[: len(view.weights)]
            return [space.nearest_input(inputs)]
        if self.init == "bounding-box":
            X = view.canonical.data
            low, extent = X.min(axis=0), np.ptp(X, axis=0)
            shape = (k, X.shape[1])
            draws = [random.uniform(size=shape).astype(X.dtype) for random in self._randoms()]
            return [np.argmin(centers.squared(low + extent * draw), axis=1) for draw in draws]
        seeding = SEEDINGS[self.init]
        return [
            centers.nearest(seeding(centers.squared_from, view.weights, k, random))
            for random in self._randoms()
        ]

    def given_vectors(self, view: View, *, sphere: bool) -> NDArray[Any]:
        """Return the coordinates of the centers given as `init`."""
        inputs = self._given_centers(view.kernel)[: len(view.weights)]
        if sphere:
            squared_radius(_diagonal(view.kernel, inputs), view.radius, what="init")
        return view.points.of(inputs).toarray()

    def vectors(self, sample: Sample, k: int, *, sphere: bool = False) -> list[NDArray[Any]]:
        """Return the initial centers of each run as vectors of a sample."""
        vectors, starts = sample.vectors, []
        squares = np.vecdot(vectors, vectors)

        def squared(chosen: Indices) -> NDArray[Any]:
            products = vectors @ vectors[chosen].T
            if sphere:
                distances = angles_from_cosines(products)[0] ** 2
            else:
                distances = np.maximum(squares[:, None] - 2 * products + squares[chosen], 0.0)
            distances[chosen, np.arange(len(chosen))] = 0.0  # exactly
            return distances

        for random in self._randoms():
            chosen = SEEDINGS[self.init](squared, sample.weights, k, random)
            # all other points of the sample coincide with these; repeated centers are reseeded
            starts.append(vectors[np.resize(chosen, k)])
        return starts

    def _randoms(self) -> list[np.random.RandomState]:
        """Return the random numbers of each run."""
        seeds = draw_seeds(self.random_state, self.n_init, self.owner)
        return [np.random.RandomState(seed) for seed in seeds]

    def _given_centers(self, kernel: Kernel) -> NDArray[Any]:
        """Return the centers given as `init`, validated."""
        # the kernel was fitted without column names, so the centers must not have them either
        given = self.init.to_numpy() if hasattr(self.init, "to_numpy") else self.init
        try:
            inputs = kernel.validate(given, reset=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"init of {self.owner} is not valid data: {error}") from None
        if inputs.shape[0] != self.n_clusters:
            raise ValueError(
                f"init of {self.owner} must have n_clusters={self.n_clusters} rows; got "
                f"{inputs.shape[0]}."
            )
        return inputs


def best_run(view: View, start: Start, options: dict[str, Any]) -> VectorRun:
    """Return the best run of Lloyd's algorithm on coordinates.

    If there are many points, the runs are made with a sample. The best one is improved there, and
    goes on with all points.
    """
    points, k, sphere = view.points, view.plan.k, options["sphere"]
    sample = points.sample(max(_MIN_SAMPLE, _SAMPLE_PER_CLUSTER * k))
    if not isinstance(start.init, str):
        return lloyd_on_vectors(points, start.given_vectors(view, sphere=sphere), **options)
    if len(sample.vectors) == points.shape[0]:
        starts = start.vectors(sample, k, sphere=sphere)
        runs = [lloyd_on_vectors(points, vectors, **options) for vectors in starts]
        return min(runs, key=lambda run: run.inertia)
    # chords and single precision suffice for a start
    sample = Sample(sample.vectors.astype(np.float32), sample.weights)
    columns = {"weights": sample.weights, "captured": np.vecdot(sample.vectors, sample.vectors)}
    by = replace(points.by, stored=True, dtype=np.dtype(np.float32))
    part = Coordinates(ArrayRows.of(sample.vectors).zip(**columns), by)
    flat = options | {"sphere": False, "callback": None}
    runs = [lloyd_on_vectors(part, vectors, **flat) for vectors in start.vectors(sample, k)]
    best = with_better_centers(part, min(runs, key=lambda run: run.inertia))
    lengths = np.linalg.norm(best.centers, axis=1, keepdims=True)
    centers = best.centers / np.where(lengths > 0, lengths, 1.0) if sphere else best.centers
    return lloyd_on_vectors(points, centers, **options)


def fit_centers(
    canonical: Canonical,
    kernel: Kernel,
    geometry: type[Flat | Sphere | Inputs],
    plan: Plan,
    start: Start,
    max_iter: int,
    progress: Progress,
) -> tuple[dict[str, Any], NDArray[np.int32]]:
    """Return attributes and labels of the best run of Lloyd's algorithm from all starts."""

    def report(entry: dict[str, Any]) -> None:
        done = entry["n_done"] / entry["n_runs"]
        progress.advance(GRAM_FRACTION + (1 - GRAM_FRACTION) * done, "k-means")

    on_sphere, needs_gram = geometry.on_sphere, geometry.needs_gram
    with rows_renumbered(canonical.index):
        view = fitted_view(canonical, kernel, plan, on_sphere=on_sphere, needs_gram=needs_gram)
        space = geometry(view, start.reseed)
    options: dict[str, Any] = {"max_iter": max_iter, "reseed": start.reseed, "callback": report}
    best: Run | VectorRun
    progress.advance(GRAM_FRACTION, "Gram matrix" if view.points is None else "features")
    if view.points is None:
        starts = start.labels(space, plan.k)  # not renumbered: errors refer to rows of `init`
        with rows_renumbered(canonical.index):
            runs = lloyd(space.centers, starts, plan.k, **options)
        best = min(runs, key=lambda run: run.inertia)
    else:
        best = best_run(view, start, options | {"sphere": on_sphere})
    progress.advance(1.0, "k-means")
    labels, kept = numbered_by_first(best.labels)
    # coordinates do not span the points completely; add the squared lengths that they leave out
    missing = 0.0 if on_sphere else float(view.weights @ view.left_out)
    view.warn()
    warn_if_fewer(len(kept), start.n_clusters, start.owner, canonical.data.dtype)
    warn_unless_converged(
        best.status,
        start.owner,
        f"{best.history[-1]['n_changed']} of {len(labels)} distinct points changed clusters "
        f"in iteration {best.n_iter}",
    )
    trace = {} if view.points is None else {"trace_error": view.trace_error}
    history = [entry | {"inertia": entry["inertia"] + missing} | trace for entry in best.history]
    own = plan.name == "coordinates"
    separation = math.inf  # centers at inputs are compared by differences
    if isinstance(best, VectorRun):
        separation = separation_of(best)
    elif needs_gram:
        separation = _separation_in_gram(best, view)
    found = {
        "_separation_": separation,
        "_masses_": best.masses[kept] if own and isinstance(best, VectorRun) else None,
        "inertia_": best.inertia + missing,
        "n_iter_": best.n_iter,
        "converged_": best.status.converged and view.status.converged,
        "history_": history,
    }
    return view.attributes() | space.attributes(best.centers, kept) | found, labels


# ---------------------------------------------------------------------- centers that are close


def separation_of(run: VectorRun) -> float:
    """Return the separation of the centers of clusters that are not empty."""
    return _separation(run.centers[run.masses > 0])


def _separation(centers: Floats) -> float:
    """Return the smallest squared distance of centers, relative to their squared lengths."""
    squares, separation = np.vecdot(centers, centers), math.inf
    step = max(1, _BLOCK_VALUES // max(1, len(centers)))
    for first in range(0, len(centers), step):
        block = slice(first, first + step)
        sums = squares[block, None] + squares
        squared = sums - 2 * centers[block] @ centers.T
        separation = min(separation, _smallest_ratio(squared, sums, first))
    return separation


def _separation_in_gram(run: Run, view: View) -> float:
    """Return the separation of centers that are known by their distances from the points.

    The mean of ‖x - b‖² - ‖x - a‖² over the points x of cluster a is ‖b - a‖². On the sphere, the
    same holds approximately for clusters that are small and close together.
    """
    found, labels = np.unique(run.labels, return_inverse=True)
    n = len(labels)
    members = scipy.sparse.csr_array((view.weights, (labels, np.arange(n))), (len(found), n))
    masses = members.sum(axis=1)[:, None]
    means = members @ run.squared[:, found] / masses
    diagonal = members @ view.diagonal[:, None] / masses
    return _smallest_ratio(means - np.diag(means)[:, None], diagonal + diagonal.T)


def _smallest_ratio(squared: Floats, sums: Floats, first: int = 0) -> float:
    """Return the smallest ratio of rows from `first` on, off the diagonal; infinite if none."""
    ratios = np.divide(squared, sums, out=np.full_like(squared, np.inf), where=sums > 0)
    np.fill_diagonal(ratios[:, first:], np.inf)
    return float(ratios.min())


def warn_if_close(separation: float, dtype: Any, owner: str) -> None:
    """Warn if rounding errors of float32 data may decide labels, because centers are close."""
    if np.dtype(dtype) == np.float32 and separation <= _MIN_SEPARATION:
        warn_user(
            f"{owner}: clusters are so close together, or so narrow, compared with the lengths of "
            "the points, that rounding errors of float32 may decide labels. Convert the data to "
            "float64.",
            UserWarning,
        )


def updated_centers(model: Any, rows: Rows) -> dict[str, Any]:
    """Return new attributes of a model whose centers have been moved towards a batch of rows."""
    kernel, decoder, k = model.kernel_, model._decoder_, len(model.cluster_centers_)
    points = prepared_points(kernel, model.X_fit_)
    sphere = hasattr(model, "_squared_radius_")
    radius = model._squared_radius_ if sphere else None
    by = AnchorMap(kernel, points, decoder, rows.dtype, unit=sphere, radius=radius, explicit=True)
    centers = model.cluster_centers_ / decoder[0, 0]  # the decoder is a multiple of the identity
    masses, sums, scatters, *_ = rows.reduce(Assignment(by, centers, sphere, at_centers=sphere))
    totals = model._masses_ + masses
    rates = np.divide(masses, totals, out=np.zeros(k), where=totals > 0)
    if sphere:
        centers = geodesic_steps(centers, masses, sums, rates)
    else:
        means = sums / np.where(masses > 0, masses, 1.0)[:, None]
        centers = centers + rates[:, None] * (means - centers)
    found = {"cluster_centers_": centers * decoder[0, 0], "_masses_": totals}
    found |= {"_separation_": _separation(centers)}
    found |= {} if sphere else {"_center_squares_": np.vecdot(centers, centers)}
    return found | {"inertia_": float(scatters.sum()), "n_iter_": model.n_iter_ + 1}


# ---------------------------------------------------------------------- new points


class _Distances(ABC):
    """Functions of blocks of rows, by their squared distances from the centers."""

    @abstractmethod
    def __call__(self, rows: Any) -> Floats:
        """Return the squared distances of rows from the centers, shape (n_rows, n_centers)."""

    def nearest(self, rows: Any, start: int) -> NDArray[np.int32]:
        """Return the index of the nearest center of each row."""
        return np.argmin(self(rows), axis=1).astype(np.int32)

    def distances(self, rows: Any, start: int) -> NDArray[Any]:
        """Return the distances of rows from the centers."""
        return np.sqrt(np.maximum(self(rows), 0.0)).astype(rows.dtype, copy=False)

    def inertia(self, rows: Any, start: int, weights: Any = None) -> tuple[Any]:
        """Return the weighted sum of squared distances from the nearest centers."""
        smallest = self(rows).min(axis=1)
        return (smallest.sum() if weights is None else weights @ smallest,)


@dataclass(frozen=True)
class _CombinedCenters(_Distances):
    """Centers that are linear combinations of the feature vectors of fitted points.

    Row i of `centers` holds the coefficients of center i.
    """

    kernel: Kernel
    points: Any
    columns: Indices | None
    centers: Floats

    def products(self, rows: Any) -> Floats:
        """Return the inner products of rows with the centers, shape (n_rows, n_centers)."""
        rows = rows if self.columns is None else rows[:, self.columns]
        if _is_basis(self.kernel, self.points):
            given = self.kernel.prepare(rows).coordinates
            return np.asarray(given @ self.centers.T.astype(rows.dtype), dtype=np.float64)
        operator = cross_operator(self.kernel, rows, self.points)
        return np.asarray(operator @ self.centers.T, dtype=np.float64)


def _is_basis(kernel: Kernel, points: Any) -> bool:
    """Return whether fitted points are the standard basis, so that rows are coordinates."""
    if not kernel.has_coordinates or scipy.sparse.issparse(points.coordinates):
        return False
    return np.array_equal(points.coordinates, np.eye(*points.coordinates.shape))


@dataclass(frozen=True)
class FlatDistances(_CombinedCenters):
    """Squared Euclidean distances of rows from centers in feature space."""

    squared_norms: Floats
    mean_diagonal: float

    def __call__(self, rows: Any) -> Floats:
        """Return the distances of a block of rows."""
        if self.points is None:  # k(x, x) is unknown; use the mean over the training points
            diagonal = np.full(rows.shape[0], self.mean_diagonal)
        else:
            diagonal = _diagonal(self.kernel, rows)
        return diagonal[:, None] - 2 * self.products(rows) + self.squared_norms


@dataclass(frozen=True)
class SphereDistances(_CombinedCenters):
    """Squared geodesic distances of rows from centers on the sphere in feature space."""

    radius: float
    decoder: Floats | None

    def __call__(self, rows: Any) -> Floats:
        """Return the distances of a block of rows."""
        kernel, points, radius = self.kernel, self.points, self.radius
        if self.decoder is not None:
            anchors = self.columns if points is None else points
            own = _is_basis(kernel, points)
            to_features = AnchorMap(
                kernel, anchors, self.decoder, rows.dtype, True, radius, explicit=own
            )
            cosines = to_features.block(rows).over_anchors(self.centers.T)
        else:
            if points is not None:
                squared_radius(_diagonal(kernel, rows), radius)
            cosines = self.products(rows) / radius
        largest = cosines[np.arange(len(cosines)), np.abs(cosines).argmax(axis=1)]
        check_cosines(largest, float(np.finfo(rows.dtype).eps), "X")
        return angles_from_cosines(cosines)[0] ** 2


@dataclass(frozen=True)
class InputDistances(_Distances):
    """Squared geodesic distances of rows from centers at points of input space.

    If `monotone`, return squared distances in input space instead. They have the same order as the
    geodesic distances, and remain distinct where kernel values underflow to 0.
    """

    kernel: Kernel
    centers: Any
    monotone: bool = False

    def __call__(self, rows: Any) -> Floats:
        """Return the distances of a block of rows."""
        points = self.kernel.prepare(rows)
        squares = squared_distances_of(self.kernel, points, self.centers).astype(np.float64)
        if self.monotone:
            return squares
        return angles_from_complements(profile_of(self.kernel).one_minus(squares))[0] ** 2
