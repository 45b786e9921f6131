"""Maximise sums of functions of distances from data with a batched fixed-point iteration.

The functions are kernel values for pre-images of expansions, and negated squared angles for
pre-images of Karcher means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np

from .._core.threads import n_threads, run_in_threads
from .._core.types import Array, Indices
from .._core.unit import angles_from_complements
from ..kernels import ComplexGaussian, Kernel, Radial, VeroneseWhitney
from ..kernels.base import Prepared
from ..kernels.manifolds import (
    ExtrinsicGaussian,
    paired_sines,
    prepared_preshapes,
    profile_of,
    squared_distances_of,
)
from ..spaces import as_points
from ..spaces.shapes import complex_preshapes, phase, rotated_to

# Numbers of Lanczos directions for a step, and for a mean shape as a start. With 3, shapes of 100
# landmarks need about as many steps as with exact eigenvectors.
_DIRECTIONS, _MEAN_DIRECTIONS = 3, 8


class _Points(ABC):
    """The data in the space of the fixed-point iteration.

    Attributes
    ----------
    kernel : Radial
        The kernel of the data is its profile, applied to squared distances in this space.
    points : ndarray of shape (n, c)
        The data in this space.
    prepared : Prepared
        The points, prepared for distances.
    """

    kernel: Radial
    points: Array
    prepared: Prepared

    @abstractmethod
    def paired(self, a: Array, b: Array) -> Array:
        """Return squared distances between corresponding rows, shape (n,)."""

    @abstractmethod
    def means(self, weights: Array) -> Array:
        """Return means of the data for rows of weights, which sum to 1, shape (m, c)."""

    @property
    def real_dtype(self) -> np.dtype[Any]:
        """The dtype of distances."""
        return self.points.real.dtype

    def spread(self, p: Array) -> float:
        """Return the root mean squared distance of the data from their mean, for weights p."""
        mean = np.broadcast_to(self.means(p[None]), self.points.shape)
        return float(np.sqrt(p @ self.paired(self.points, mean)))

    @cached_property
    def extent(self) -> float:
        """The spread of the data, unweighted."""
        n = len(self.points)
        return self.spread(np.full(n, 1.0 / n))

    def subset(self, rows: Indices) -> Self:
        """Return the domain restricted to some of the data."""
        return replace(self, points=self.points[rows])  # type: ignore[type-var]


@dataclass(eq=False)
class Vectors(_Points):
    """Vectors, or data that are embedded as vectors.

    Parameters
    ----------
    kernel : Radial
        Fitted.
    points : ndarray of shape (n, d)
        The data.
    embed, inverse : callable, optional
        The map from inputs to vectors, and its inverse. Default: the identity.
    unit : bool, default=False
        Whether all vectors have length 1. Then their means are normalised.
    """

    kernel: Radial
    points: Array
    embed: Callable[[Array], Array] | None = None
    inverse: Callable[[Array], Array] | None = None
    unit: bool = False

    search_tol = 0.0  # iterate every start to the final tolerance

    def __post_init__(self) -> None:
        self.prepared = self.kernel.prepare(self.points)

    def prepare(self, z: Array) -> Prepared:
        """Prepare points for distances."""
        return self.kernel.prepare(z)

    def squares(self, a: Prepared, b: Prepared) -> Array:
        """Return squared distances, shape (m, n)."""
        return squared_distances_of(self.kernel, a, b)

    def paired(self, a: Array, b: Array) -> Array:
        """Return squared distances between corresponding rows, shape (n,)."""
        difference = a - b
        return np.einsum("ij,ij->i", difference, difference)

    def means(self, weights: Array) -> Array:
        """Return means of the data for rows of weights, which sum to 1, shape (m, d)."""
        return self._normalized(weights @ self.points)

    def targets(self, z: Array, weights: Array) -> Array:
        """Return weighted means, or their reflections in z if the weights have a positive sum."""
        total, size = weights.sum(axis=1), np.abs(weights).sum(axis=1)
        usable = (np.abs(total) > 1e-12 * size) & (size > 0)
        # relative to the kernel's origin, for accuracy if the data are far from 0
        sums = weights @ self.prepared.coordinates
        mean = sums / np.where(usable, total, 1.0)[:, None] + self.kernel.origin_
        toward = np.where(usable, -np.sign(total), 0.0)[:, None]
        return self._normalized(z + toward * (mean - z))

    def step_toward(self, z: Array, targets: Array, fraction: Array) -> tuple[Array, Array]:
        """Move each z by a fraction of the way to its target; return also the distances."""
        step = fraction[:, None] * (targets - z)
        return self._normalized(z + step), np.linalg.norm(step, axis=1)

    def next_iterate(self, z: Array, weights: Array) -> tuple[Array, float]:
        """Return the next iterate from one z, to full precision, and its distance."""
        total = float(weights.sum())
        if not total < 0:
            return z, 0.0
        step = weights @ (self.points - z) / total
        if self.unit:
            step = self._normalized((z + step)[None])[0] - z
        return z + step, float(np.linalg.norm(step))

    def coordinates(self, inputs: Array) -> Array:
        """Return validated inputs as vectors, shape (m, d)."""
        return inputs if self.embed is None else self.embed(inputs)

    def inputs(self, z: Array) -> Array:
        """Return vectors as inputs, in the form and precision of validated data."""
        return z if self.inverse is None else self.inverse(z)

    @property
    def largest_square(self) -> float:
        """The magnitude that determines the rounding error of squared distances."""
        return float(self.prepared.per_point.max()) if self.kernel.decreasing else 1.0

    def limit(self, tol: float) -> float:
        """Return the length of a step that is tol times the extent of the data."""
        rounding_error = 4 * float(np.finfo(self.points.dtype).eps * np.abs(self.points).max())
        # if all points coincide up to rounding error, they define no scale
        return tol * self.extent if self.extent > rounding_error else rounding_error

    def _normalized(self, z: Array) -> Array:
        """Normalise vectors if the data are unit vectors."""
        if not self.unit:
            return z
        lengths = np.linalg.norm(z, axis=1, keepdims=True)
        return z / np.where(lengths > 0, lengths, 1).astype(z.dtype)


@dataclass(eq=False)
class Shapes(_Points):
    r"""Planar shapes under the Veronese-Whitney kernel, as pre-shapes in complex128.

    The squared distance is :math:`1 - |u^* v|^2`. A sum of functions φ of squared distances, with
    weights β, is stationary at eigenvectors of
    :math:`A = -\sum_n \beta_n \varphi'_n\, u_n u_n^*`; for positive β the maximum is at the leading
    eigenvector. Instead of the eigenvector, a step uses the best u in the span of u, Au and A²u,
    which costs O(nk) instead of O(nk² + k³). :math:`u^* A u` increases along the step, and so does
    the sum if the step is short enough.

    Parameters
    ----------
    shape_kernel : VeroneseWhitney
        Fitted.
    points : ndarray of shape (n, k), complex128
        Pre-shapes.
    dtype : dtype
        The precision of the data.
    """

    shape_kernel: VeroneseWhitney
    points: Array
    dtype: Any

    search_tol = 1e-3  # to compare starts; only the best is iterated further
    largest_square = 1.0

    def __post_init__(self) -> None:
        self.kernel = profile_of(self.shape_kernel)
        self.prepared = self.prepare(self.points)

    def prepare(self, z: Array) -> Prepared:
        """Prepare points for distances."""
        return prepared_preshapes(z)

    def squares(self, a: Prepared, b: Prepared) -> Array:
        """Return squared full Procrustes distances, shape (m, n)."""
        return squared_distances_of(self.shape_kernel, a, b)

    def paired(self, a: Array, b: Array) -> Array:
        """Return squared distances between corresponding rows, shape (n,)."""
        return paired_sines(a, b) ** 2

    def means(self, weights: Array) -> Array:
        """Return approximate mean shapes, as starts, shape (m, k)."""
        start = self.points[np.argmax(weights, axis=1)]
        return leading_vectors(self.points, weights, start, _MEAN_DIRECTIONS)

    def targets(self, z: Array, weights: Array) -> Array:
        """Return the best shape in the span of a few directions from each z, rotated to z."""
        found = leading_vectors(self.points, -weights, z, _DIRECTIONS)
        return found * phase(np.einsum("ij,ij->i", found.conj(), z))[:, None]

    def step_toward(self, z: Array, targets: Array, fraction: Array) -> tuple[Array, Array]:
        """Move each z by a fraction of the way to its target; return also the distances."""
        new = z + fraction[:, None] * (targets - z)
        lengths = np.linalg.norm(new, axis=1, keepdims=True)
        new = new / np.where(lengths > 0, lengths, 1.0)
        return new, paired_sines(z, new)

    def next_iterate(self, z: Array, weights: Array) -> tuple[Array, float]:
        """Return the next iterate from one z, and its distance."""
        if not weights.sum() < 0:
            return z, 0.0
        target = self.targets(z[None], weights[None])
        return target[0], float(paired_sines(z[None], target)[0])

    def limit(self, tol: float) -> float:
        """Return the length of a step that is tol times the extent, at least the rounding error."""
        return max(tol * self.extent, 64 * float(np.finfo(self.points.dtype).eps))

    def coordinates(self, inputs: Array) -> Array:
        """Return landmarks as pre-shapes, shape (m, k)."""
        return complex_preshapes(inputs).astype(np.complex128)

    def inputs(self, z: Array) -> Array:
        """Return pre-shapes as landmarks, rotated to the first data point, shape (m, k, 2)."""
        return as_points(rotated_to(z, self.points[0])).astype(self.dtype, copy=False)


#: A space of the fixed-point iteration.
Domain: TypeAlias = Vectors | Shapes


def domain_of(kernel: Kernel, X: Array) -> Domain:
    """Return the domain of the fixed-point iteration for a fitted kernel and validated data."""
    if isinstance(kernel, Radial):
        return Vectors(kernel, X)
    if isinstance(kernel, ExtrinsicGaussian):
        vectors, inverse = kernel.as_vectors(X)
        unit = isinstance(kernel, ComplexGaussian)
        return Vectors(kernel.kernel_, vectors, kernel._embed, inverse, unit=unit)
    if isinstance(kernel, VeroneseWhitney):
        return Shapes(kernel, complex_preshapes(X).astype(np.complex128), X.dtype)
    raise TypeError(f"{type(kernel).__name__} has no fixed point.")


def leading_vectors(u: Array, weights: Array, start: Array, n_directions: int) -> Array:
    r"""Return unit vectors v of large :math:`v^* A v`, :math:`A = \sum_n w_n u_n u_n^*`.

    For each row of weights and its start b, v maximises :math:`v^* A v` in the span of b, Ab, A²b,
    … (Lanczos).

    Parameters
    ----------
    u : ndarray of shape (n, k), complex
        Pre-shapes.
    weights : ndarray of shape (m, n)
        Weights of any sign.
    start : ndarray of shape (m, k), complex
        Unit vectors b; rows of zeros are returned unchanged.
    n_directions : int
        The dimension of the span, at most k - 1.

    Returns
    -------
    ndarray of shape (m, k), complex
        Unit vectors.
    """
    m, k = start.shape
    size = min(n_directions, k - 1)  # the dimension of centred landmarks
    conjugate = np.ascontiguousarray(u.conj().T)
    basis = np.zeros((m, size, k), dtype=start.dtype)
    images = np.zeros_like(basis)
    total = np.abs(weights).sum(axis=1)  # a bound on the eigenvalues
    basis[:, 0] = start
    for j in range(size):
        images[:, j] = (basis[:, j] @ conjugate * weights) @ u
        if j + 1 < size:
            basis[:, j + 1] = _next_direction(basis[:, : j + 1], images[:, j], total)
    form = np.einsum("mik,mjk->mij", basis.conj(), images)
    # give missing directions the smallest value
    missing = ~basis.any(axis=2)
    form[:, range(size), range(size)] -= 2 * total[:, None] * missing
    best = np.linalg.eigh((form + form.conj().transpose(0, 2, 1)) / 2)[1][:, :, -1]
    found = np.einsum("mj,mjk->mk", best, basis)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    usable = (lengths[:, 0] > 0) & (total > 0)
    return np.where(usable[:, None], found / np.where(lengths > 0, lengths, 1.0), start)


def _next_direction(basis: Array, image: Array, total: Array) -> Array:
    """Return the normalised part of an image orthogonal to a basis, or 0 if negligible."""
    for _ in range(2):  # reorthogonalise
        image = _project_out(basis, image)
    lengths = np.linalg.norm(image, axis=1)
    kept = lengths > 64 * np.finfo(lengths.dtype).eps * total
    # again, since rounding errors of short vectors are large after normalisation
    image = _project_out(basis, image / np.where(kept, lengths, 1.0)[:, None])
    return np.where(kept[:, None], image, 0.0)


def _project_out(basis: Array, image: Array) -> Array:
    """Centre images and subtract their projections on a basis."""
    image = image - image.mean(axis=1, keepdims=True)
    return image - np.einsum("mj,mjk->mk", np.einsum("mjk,mk->mj", basis.conj(), image), basis)


#: ``objective(kernel, d2, beta)`` returns, for rows of squared distances and of weights β, the
#: value Σ_n β_n φ(d²_n) of each row and the matrix β_n φ'(d²_n).
Objective = Callable[[Radial, Array, Array], tuple[Array, Array]]

BLOCK_ELEMENTS = 2**21  # kernel values in memory at once: 16 MiB in float64
THREAD_ELEMENTS = 2**14  # minimum number of kernel values per thread


@dataclass(frozen=True)
class FixedPoint:
    """Stationary points reached from a batch of starts.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The points.
    objective : ndarray of shape (m,)
        Σ_n β_n φ(‖z - x_n‖²), which is maximised.
    steps : ndarray of shape (m,)
        The length of the next full step.
    n_iter : int
        Iterations of the slowest start.
    converged : ndarray of bool, shape (m,)
        Whether each start met the tolerance.
    """

    points: Array
    objective: Array
    steps: Array
    n_iter: int
    converged: Array


def similarities(kernel: Radial, d2: Array, beta: Array) -> tuple[Array, Array]:
    """Return Σ β h(d²) and β h'(d²), for pre-images of expansions (Mika et al.)."""
    return np.einsum("ij,ij->i", beta, kernel.profile(d2)), beta * _slopes(kernel, d2)


def negated_squared_angles(kernel: Radial, d2: Array, beta: Array) -> tuple[Array, Array]:
    """Return -Σ β θ² and β h' θ / sin θ, θ = arccos h(d²), for pre-images of Karcher means.

    The factor 2 of the derivative is omitted, as in eq. (9) of Courty et al. (see
    :func:`karcher_mean_preimage`).
    """
    angles, ratios = angles_from_complements(kernel.one_minus(d2))
    return -np.einsum("ij,ij->i", beta, angles**2), beta * _slopes(kernel, d2) * ratios


def _slopes(kernel: Radial, d2: Array) -> Array:
    slopes = kernel.profile_derivative(d2)
    if kernel.cusp:
        slopes[d2 == 0] = 0.0
    return slopes


def fixed_point(
    domain: Domain,
    coefficients: Array,
    starts: Array,
    tol: float,
    max_iter: int,
    *,
    expansion: Indices | int | None = None,
    objective: Objective = similarities,
) -> FixedPoint:
    r"""Maximise :math:`\rho(z) = \sum_n \beta_n \varphi(\|z - x_n\|^2)` from each start.

    .. math:: z \leftarrow \frac{\sum_n \beta_n \varphi'(\|z - x_n\|^2)\, x_n}
                               {\sum_n \beta_n \varphi'(\|z - x_n\|^2)}

    (for vectors; :class:`Shapes` uses another step). The step of each start is shortened until ρ
    does not decrease. If the denominator has the wrong sign, so that ρ would decrease, the step is
    reversed. Starts that have converged are removed from the batch. A training point at distance 0
    has the weight φ'(0). If the kernel has a cusp, φ'(0) is infinite and would fix the iterate at
    this point, so its weight is 0.

    Parameters
    ----------
    domain : Domain
        The n points of the expansion and their kernel.
    coefficients : ndarray of shape (e, n)
        β of each expansion.
    starts : ndarray of shape (m, c)
        The starts.
    tol : float
        Stop a start when its step is at most tol times the root mean squared distance of the data
        from their mean.
    max_iter : int
        The maximum number of iterations.
    expansion : ndarray of shape (m,), or int, optional
        The row of `coefficients` of each start. Default: start i has row i.
    objective : callable, optional
        Computes ρ and the weights from φ and its derivative. Default: φ is the profile of the
        kernel.
    """
    z = np.array(starts, dtype=np.result_type(domain.points.dtype, np.float32))
    expansion = np.arange(len(z)) if expansion is None else np.broadcast_to(expansion, len(z))
    target, value = _evaluate(domain, coefficients, expansion, objective, z)
    eps = float(np.finfo(z.dtype).eps)
    limit = domain.limit(tol)
    fraction = np.ones(len(z))
    converged = np.zeros(len(z), dtype=bool)
    active = np.arange(len(z))
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        new, lengths = domain.step_toward(z[active], target[active], fraction[active])
        new_target, new_value = _evaluate(domain, coefficients, expansion[active], objective, new)
        slack = 4 * eps * np.abs(value[active])
        better = new_value >= value[active] - slack
        accepted = active[better]
        z[accepted], target[accepted] = new[better], new_target[better]
        value[accepted] = new_value[better]
        fraction[accepted] = np.minimum(1.0, 2 * fraction[accepted])
        fraction[active[~better]] /= 4
        # even if the step was rejected: a shorter one would not help
        done = lengths <= limit
        converged[active[done]] = True
        active = active[~done]
    steps = domain.step_toward(z, target, np.ones(len(z)))[1]
    return FixedPoint(z, value, steps, n_iter, converged)


def _evaluate(
    domain: Domain, coefficients: Array, expansion: Indices, objective: Objective, z: Array
) -> tuple[Array, Array]:
    """Return the next iterate and the objective of each z, in blocks of rows, in threads."""
    n = len(domain.points)
    target, value = np.empty_like(z), np.empty(len(z), dtype=z.real.dtype)
    rows_per_thread = max(-(-len(z) // n_threads()), THREAD_ELEMENTS // n)
    step = max(1, min(BLOCK_ELEMENTS // n, rows_per_thread))
    blocks = [slice(start, start + step) for start in range(0, len(z), step)]

    def fill(worker: int, n_workers: int) -> None:
        for rows in blocks[worker::n_workers]:
            squares = domain.squares(domain.prepare(z[rows]), domain.prepared)
            value[rows], weights = objective(domain.kernel, squares, coefficients[expansion[rows]])
            target[rows] = domain.targets(z[rows], weights)

    run_in_threads(fill, len(blocks))
    return target, value
