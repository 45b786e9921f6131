"""Maximise sums of functions of distances from data with a batched fixed-point iteration.

The functions are kernel values for pre-images of expansions, and negated squared angles for
pre-images of Karcher means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._core.threads import n_threads, run_in_threads
from .._core.types import Array, Indices
from .._core.unit import angles_from_complements
from ..kernels import Radial
from .domains import Domain

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
