"""Fits of kernel PCA and kernel PGA, from the Gram matrix or from coordinates."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.memory import parse_bytes
from .._core.progress import Progress
from .._core.threads import single_threaded_blas
from .._core.types import Floats
from .._core.warn import warn_user
from ..base import SAMPLE, fitted_kernel
from ..coordinates import Anchors, Coordinates
from ..coordinates.blocks import AnchorMap, Block
from ..eigen import Eigenpairs, Hebbian, leading
from ..eigen.components import (
    make_components,
    solve_components,
    warn_if_indefinite,
    warn_unless_solved,
    weighted_problem,
)
from ..eigen.features import feature_axes
from ..eigen.pairs import orient, orient_by_moments
from ..gram import gram_operator
from ..kernels import Kernel, Precomputed
from ..plan import Plan
from ..preimage.manifold import has_fixed_point
from ..preimage.ridge import RidgeMap, decode_components, ridge_from_moments
from ..rows import ArrayRows, Rows
from .geometry import Geometry, Origin, constant
from .view import points_by_anchors, warn_if_few_anchors

#: Fitted attributes with one entry per training row.
ROW_ATTRIBUTES = ("embedding_", "eigenvectors_", "mean_cosines_", "sphere_coordinates_")

# Fraction of the progress bar for the first evaluation of the Gram matrix and the mean.
_GRAM_FRACTION = 0.2

# Fraction of the memory budget for the coordinates and eigenvectors of all rows.
_ROW_FRACTION = 0.25

# Size of the sample that decides the signs if third moments are 0 up to rounding errors.
_SAMPLE_SIZE = 1024

# Default maximum number of steps in the search for the mean.
_MEAN_STEPS = 200


# ---------------------------------------------------------------------- Gram matrix


def fit_gram(
    rows: Any, kernel: Kernel, geometry: Geometry, plan: Plan, progress: Progress, initial: Any
) -> dict[str, Any]:
    """Fit components to the Gram matrix, and return the fitted attributes.

    The search starts from `initial`, an earlier solution, if it is given.
    """
    X, weights, request = rows.whole(), rows.columns.get("weights"), plan.request
    n, steps = X.shape[0], _MEAN_STEPS
    if request.max_iter is not None and not isinstance(plan.solver, Hebbian):
        steps = int(request.max_iter)  # with hebbian, max_iter counts passes
    with single_threaded_blas():
        kernel = fitted_kernel(kernel, rows)
        gram = gram_operator(kernel, X, memory_budget=request.memory_budget, storage=plan.storage)
        operator, attributes, mean_converged = geometry.wrap(gram, weights, steps)
    progress.advance(_GRAM_FRACTION, "Gram matrix")
    problem = weighted_problem(operator, weights)

    def solve(k: int, start: NDArray[Any] | None) -> Eigenpairs:
        return leading(
            problem,
            k,
            solver=plan.solver if k == plan.k else request.resolved(n, k),
            initial=initial if start is None else start,
            callback=progress.residual_callback(plan.tol, _GRAM_FRACTION),
        )

    pairs = solve_components(problem, request.n_components, solve)
    drop_null = request.n_components is None
    components = make_components(pairs, operator, weights, drop_null=drop_null)
    count = float(n if weights is None else weights.sum())
    divisor, k = count if geometry.variances else 1.0, len(components.eigenvalues)
    attributes |= geometry.frame_of(components, operator) | {
        "eigenvalues_": components.eigenvalues / divisor,
        "eigenvectors_": components.eigenvectors,
        "embedding_": components.embedding,
        "explained_variance_ratio_": components.explained_variance_ratio,
        "n_components_": k,
        "solver_": pairs.solver,
        "n_iter_": pairs.n_iter,
        "residuals_": pairs.residuals[:k] / divisor,
        "history_": list(pairs.history),
        "converged_": pairs.converged and mean_converged,
        "kernel_": kernel,
        # copy, because the caller may change the array; a memory map is not copied
        "X_fit_": None if isinstance(kernel, Precomputed) else X if rows.mapped else X.copy(),
        "sample_weight_": weights,
        "n_anchors_": None,
        "anchor_indices_": None,
        "_columns_": None,
        "_ridge_": None,
        "_solution_": pairs.vectors if pairs.resume is None else pairs.resume,
    }
    if not np.any(components.eigenvalues > 0):
        _warn_if_distinct(X, components.rounding, kernel)
    warn_if_indefinite(request.owner, components, pairs, kernel, problem)
    warn_unless_solved(pairs, request.owner, plan.tol)
    return attributes


# ---------------------------------------------------------------------- coordinates


@dataclass(frozen=True)
class PrincipalAxes:
    """Principal axes of points with coordinates.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Variances along the axes, descending.
    axes : ndarray of shape (m, k)
        The axes.
    origin : Origin
        The center of the points.
    rounding : float
        Rounding error of the variances.
    """

    variances: Floats
    axes: Floats
    origin: Origin
    rounding: float


def fit_coordinates(
    rows: Rows, kernel: Kernel, geometry: Geometry, plan: Plan, progress: Progress, alpha: float
) -> dict[str, Any]:
    """Fit components to coordinates of the points, and return the fitted attributes.

    The rows are read in passes. Of the data, only the anchors are stored. `alpha` is the ridge
    penalty of the inverse map.
    """
    request = plan.request
    with single_threaded_blas():
        kernel = fitted_kernel(kernel, rows)
        progress.advance(0.1, "kernel")
        radius = geometry.radius_of(kernel, rows)
        k = request.n_components if isinstance(request.n_components, numbers.Integral) else 1
        unit = geometry.on_sphere and plan.solver.sphere == "unit"
        anchors, points = points_by_anchors(rows, kernel, plan, int(k), radius, unit=unit)
        anchor_map = replace(points.by, stored=False)
        progress.advance(0.5, "features")
        origin = geometry.find_origin(points, request.max_iter or _MEAN_STEPS)
        found = find_axes(points.dtype, origin, geometry, request.n_components, points.shape[0])
        in_memory = isinstance(rows, ArrayRows) and not rows.mapped
        size = rows.shape[0], len(found.variances)
        fits = in_memory or table_fits(*size, rows.dtype, request.memory_budget)
        keep = fits and not rows.lazy
        found, row_attributes, function = _choose_signs(found, points, geometry, keep)
        attributes = attributes_of(found, anchor_map, points.shape[0], geometry, plan, anchors)
        attributes |= row_attributes | {"kernel_": kernel, "sample_weight_": points.weights}
        sample = rows.take(rows.spread(_SAMPLE_SIZE, points.weights)[0])
        if isinstance(kernel, Precomputed):
            attributes["_constant_diagonal"] = constant(points.own)
        elif not has_fixed_point(kernel, sample):
            k = attributes["n_components_"]
            attributes["_ridge_"] = _ridge(rows, anchor_map, kernel, geometry, function, k, alpha)
    if not np.any(attributes["eigenvalues_"] > 0):
        _warn_if_distinct(sample, found.rounding, kernel)
    return attributes


def find_axes(
    dtype: Any, origin: Origin, geometry: Geometry, n_components: int | float | None, n: int
) -> PrincipalAxes:
    """Return the principal axes, with arbitrary signs."""
    eps = float(np.finfo(dtype).eps)
    floor = 10 * origin.term_size * (eps / np.sqrt(n) + float(np.finfo(np.float64).eps))
    variances, axes = feature_axes(
        origin.covariance, n_components, total=origin.total, n=n, floor=floor, eps=eps
    )
    return PrincipalAxes(variances, geometry.axes_of(axes, origin), origin, floor)


def _choose_signs(
    found: PrincipalAxes, points: Coordinates, geometry: Geometry, keep: bool
) -> tuple[PrincipalAxes, dict[str, Any], Any]:
    """Choose the signs that make third moments positive.

    Return the axes, the fitted attributes with one entry per row (if `keep`), and the map from
    blocks to coordinates.
    """
    function, k, table = geometry.embedding(found.origin, found.axes), found.axes.shape[1], None
    if keep:
        table = points.map(function)
        # one column at a time, since temporaries need several times the memory of a column
        signs = np.concatenate([orient(table[:, [j]], points.weights) for j in range(k)])
        table[:, :k] *= signs
    else:
        sums = points.reduce(partial(_third_moments, function, k))
        sample = (points.sample(_SAMPLE_SIZE).vectors - found.origin.point) @ found.axes
        signs = orient_by_moments(*sums, fallback=sample)
    found = replace(found, axes=found.axes * signs)
    function = geometry.embedding(found.origin, found.axes)
    if points.rows.lazy:
        table = points.map(function)
    attributes = {} if table is None else _row_attributes(table, found, points)
    if table is not None and geometry.on_sphere:  # copy, so that the table can be freed
        attributes["mean_cosines_"] = table[:, k].copy()
    return found, attributes, function


def _third_moments(function: Any, k: int, block: Block) -> tuple[Any, ...]:
    """Return the sums of the cubes of coordinates, and of their absolute values."""
    cubes = function(block)[:, :k] ** 3
    weights = np.ones(len(cubes)) if block.weights is None else block.weights
    return weights @ cubes, weights @ np.abs(cubes)


def table_fits(n: int, k: int, dtype: np.dtype[Any], memory_budget: str | float) -> bool:
    """Return whether coordinates and eigenvectors of all rows fit in the memory budget.

    Coordinates are computed in float64, with an extra column on the sphere.
    """
    needed = n * (8 * (k + 1) + 2 * k * np.dtype(dtype).itemsize)
    return needed <= _ROW_FRACTION * parse_bytes(memory_budget)


def _row_attributes(table: Any, found: PrincipalAxes, points: Coordinates) -> dict[str, Any]:
    """Return the coordinates and eigenvectors of the rows; dask arrays stay lazy."""
    k, dtype, weights = len(found.variances), points.dtype, points.weights
    embedding, roots = table[:, :k], np.sqrt(found.variances)
    lengths = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    p = 1.0 / points.shape[0] if weights is None else weights / found.origin.count
    factor = np.sqrt(p)[:, None] if np.ndim(p) else np.sqrt(p)
    if isinstance(embedding, np.ndarray):  # avoid temporaries of the same size
        vectors = np.empty(embedding.shape, dtype=dtype)
        np.multiply(embedding, lengths, out=vectors, casting="same_kind")
        vectors *= factor
        coordinates = np.ascontiguousarray(embedding, dtype=dtype)
        return {"eigenvectors_": vectors, "embedding_": coordinates}
    vectors = (factor * embedding * lengths).astype(dtype)
    return {"eigenvectors_": vectors, "embedding_": embedding.astype(dtype)}


def attributes_of(
    found: PrincipalAxes,
    anchor_map: AnchorMap,
    n: int,
    geometry: Geometry,
    plan: Plan,
    anchors: Anchors,
) -> dict[str, Any]:
    """Return the attributes of a size independent of the number of rows; warn about few anchors."""
    origin, dtype, solver = found.origin, anchor_map.dtype, plan.solver
    left_out, count = max(origin.left_out, 0.0), len(anchors.decoder)
    sums = 1.0 if geometry.variances else origin.count
    ratio = found.variances / origin.total if origin.total > 0 else np.zeros_like(found.variances)
    history = {
        "n_anchors": count,
        "trace_error": origin.trace_error,
        "max_residual": left_out / (float(found.variances[0]) or np.inf),
    }
    status = solver.status(origin.trace_error, count, n)
    warn_if_few_anchors(status, plan, count, origin.trace_error)
    points = anchors.points
    return geometry.attributes(anchor_map, origin, found.axes) | {
        "eigenvalues_": (found.variances * sums).astype(dtype),
        "explained_variance_ratio_": ratio.astype(dtype),
        "n_components_": len(found.variances),
        "solver_": plan.name,
        "n_iter_": 1,
        "residuals_": np.full(len(found.variances), left_out * sums, dtype=dtype),
        "history_": [history],
        "converged_": status.converged and origin.converged,
        "X_fit_": None if points is None else points.copy(),
        "_columns_": anchors.indices if points is None else None,
        "anchor_indices_": anchors.indices,
        "n_anchors_": count,
        "_squared_radius": anchor_map.radius or 1.0,
        "_ridge_": None,
    }


# ---------------------------------------------------------------------- inverse map


def input_sums(rows: Any, center: Floats, features: Floats, weights: Floats) -> tuple[Any, Any]:
    """Return the sums of inputs, and of their products with features, about a center.

    The center of sparse inputs is 0, because differences would not be sparse.
    """
    x = rows if scipy.sparse.issparse(rows) else rows.astype(np.float64) - center
    return x.T @ weights, np.asarray((x.T @ (features * weights[:, None])).T)


def _ridge_sums(
    function: Any, k: int, geometry: Geometry, origin: Floats, center: Floats, block: Block
) -> tuple[Any, ...]:
    """Return moments of coordinates and inputs, about points near their means."""
    w = np.ones(block.n) if block.weights is None else block.weights
    f = geometry.regressors(function(block)[:, :k]) - origin
    return w.sum(), w @ f, (f * w[:, None]).T @ f, *input_sums(block.rows, center, f, w)


def _ridge(
    rows: Rows,
    anchor_map: AnchorMap,
    kernel: Kernel,
    geometry: Geometry,
    function: Any,
    k: int,
    alpha: float,
) -> RidgeMap:
    """Return the map from k coordinates to inputs, fitted with ridge regression to all rows.

    For shapes and matrices, only a sample of the rows is used, because their conversion to vectors
    depends on the sample.
    """
    size = _SAMPLE_SIZE if kernel.takes_vectors else SAMPLE
    chosen, counts = rows.spread(size, rows.columns.get("weights"))
    sample, p = rows.take(chosen), counts / counts.sum()
    coordinates = geometry.regressors(function(anchor_map.block(sample))[:, :k])
    if not kernel.takes_vectors:
        return decode_components(coordinates, kernel.as_vectors(sample)[0], p, alpha)
    sparse = scipy.sparse.issparse(sample)
    center = np.zeros(sample.shape[1]) if sparse else p @ sample
    origin = p @ coordinates
    sums = partial(_ridge_sums, function, k, geometry, origin, center)
    count, first, second, mean, cross = Coordinates(rows, anchor_map).reduce(sums)
    shift, input_shift = first / count, mean / count
    return ridge_from_moments(
        center + input_shift,
        origin + shift,
        second / count - np.outer(shift, shift),
        cross / count - np.outer(shift, input_shift),
        alpha,
    )


# ---------------------------------------------------------------------- warnings


def _warn_if_distinct(X: Any, rounding: float, kernel: Kernel) -> None:
    """Warn that all components are zero, unless all points are equal."""
    if isinstance(kernel, Precomputed):
        return
    difference = X[1:] != X[:-1]
    if difference.nnz if scipy.sparse.issparse(difference) else np.any(difference):
        warn_user(
            f"All components are zero: the variance of {type(kernel).__name__} over these data is "
            f"below the rounding error, {rounding:.1e}. Choose a smaller scale (sigma), centre the "
            "data, or pass float64.",
            UserWarning,
        )
