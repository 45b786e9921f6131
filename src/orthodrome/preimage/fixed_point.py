"""Points that maximise a sum of functions of their distances from data, by a batched fixed point.

What is summed is a *pull*: kernel values for the pre-image of an expansion, squared angles for the
pre-image of a Karcher mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.threads import n_threads, run_in_threads
from .._core.types import Indices
from .._core.unit import angles_from_complements
from ..kernels import Radial
from .domains import Domain, Vectors

__all__ = ["FixedPoint", "Pull", "climb", "fixed_point", "negated_squared_angles", "similarities"]

#: ``pull(kernel, d2, beta)`` returns, for rows of squared distances and of weights β, the value
#: Σ_n β_n φ(d²_n) of each row and the matrix β_n φ'(d²_n).
Pull = Callable[[Radial, NDArray[Any], NDArray[Any]], tuple[NDArray[Any], NDArray[Any]]]

BLOCK_ELEMENTS = 2**21  # kernel values held at once: 16 MiB in float64
THREAD_ELEMENTS = 2**14  # kernel values that are worth a thread


@dataclass(frozen=True)
class FixedPoint:
    """Stationary points reached from a batch of starts.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The points.
    objective : ndarray of shape (m,)
        Σ_n β_n φ(‖z - x_n‖²), which is maximised; φ is the profile of the kernel unless another
        pull was asked for.
    steps : ndarray of shape (m,)
        The length of the full step that the fixed point would take next: 0 where it stands still.
    n_iter : int
        Iterations of the slowest start.
    converged : ndarray of bool, shape (m,)
        Which starts met the tolerance.
    """

    points: NDArray[Any]
    objective: NDArray[Any]
    steps: NDArray[Any]
    n_iter: int
    converged: NDArray[np.bool_]


def similarities(
    kernel: Radial, d2: NDArray[Any], beta: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Σ β h(d²) and β h'(d²): what the pre-image of an expansion maximises (Mika et al.)."""
    return np.einsum("ij,ij->i", beta, kernel.profile(d2)), beta * _slopes(kernel, d2)


def negated_squared_angles(
    kernel: Radial, d2: NDArray[Any], beta: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """-Σ β θ² and its derivative, θ = arccos h(d²): what a Karcher mean's pre-image maximises.

    The derivative is 2 β h' θ / sin θ; the factor 2 is left out, here and in eq. (9).
    """
    angles, stretches = angles_from_complements(kernel.one_minus(d2))
    return -np.einsum("ij,ij->i", beta, angles**2), beta * _slopes(kernel, d2) * stretches


def _slopes(kernel: Radial, d2: NDArray[Any]) -> NDArray[Any]:
    slopes = kernel.profile_derivative(d2)
    if kernel.cusp:
        slopes[d2 == 0] = 0.0
    return slopes


def fixed_point(
    kernel: Radial,
    X: NDArray[Any],
    coefficients: NDArray[Any],
    starts: NDArray[Any],
    *,
    expansion: Indices | int | None = None,
    pull: Pull = similarities,
    tol: float,
    max_iter: int,
) -> FixedPoint:
    r"""Maximise :math:`\rho(z) = \sum_n \beta_n \varphi(\|z - x_n\|^2)` from each start.

    .. math:: z \leftarrow \frac{\sum_n \beta_n \varphi'(\|z - x_n\|^2)\, x_n}
                               {\sum_n \beta_n \varphi'(\|z - x_n\|^2)}

    The step is shortened, for each start by itself, until ρ does not fall; where the denominator
    has the wrong sign (the fixed point would descend) the step is turned round. Starts that have
    converged drop out of the batch. A training point at distance 0 has the weight φ'(0), except
    for kernels with a cusp, where that is infinite and would pin the iterate: it is left out.

    Parameters
    ----------
    kernel : Radial
        A fitted radial kernel.
    X : ndarray of shape (n, d)
        The points of the expansion.
    coefficients : ndarray of shape (e, n)
        β of each expansion.
    starts : ndarray of shape (m, d)
        Where to start.
    expansion : ndarray of shape (m,), or int, optional
        The row of `coefficients` that each start belongs to. Default: start i to row i.
    pull : callable, optional
        φ and its derivative; default: the profile of the kernel.
    tol : float
        Stop a start when its step is at most tol times the root mean squared distance of X from
        its mean.
    max_iter : int
        The most iterations.
    """
    return climb(
        Vectors(kernel, X), coefficients, starts, tol, max_iter, expansion=expansion, pull=pull
    )


def climb(
    domain: Domain,
    coefficients: NDArray[Any],
    starts: NDArray[Any],
    tol: float,
    max_iter: int,
    *,
    expansion: Indices | int | None = None,
    pull: Pull = similarities,
) -> FixedPoint:
    """Do what :func:`fixed_point` does for vectors, for the points of any domain."""
    z = np.array(starts, dtype=np.result_type(domain.points.dtype, np.float32))
    owner = np.arange(len(z)) if expansion is None else np.broadcast_to(expansion, len(z))
    target, value = _evaluate(domain, coefficients, owner, pull, z)
    eps = float(np.finfo(z.dtype).eps)
    limit = domain.limit(tol)
    fraction = np.ones(len(z))
    converged = np.zeros(len(z), dtype=bool)
    active = np.arange(len(z))
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        moved, lengths = domain.moved(z[active], target[active], fraction[active])
        new_target, new_value = _evaluate(domain, coefficients, owner[active], pull, moved)
        slack = 4 * eps * np.abs(value[active])
        better = new_value >= value[active] - slack
        accepted = active[better]
        z[accepted], target[accepted] = moved[better], new_target[better]
        value[accepted] = new_value[better]
        fraction[accepted] = np.minimum(1.0, 2 * fraction[accepted])
        fraction[active[~better]] /= 4
        # a rejected step that is already below the tolerance cannot lead anywhere either
        done = lengths <= limit
        converged[active[done]] = True
        active = active[~done]
    steps = domain.moved(z, target, np.ones(len(z)))[1]
    return FixedPoint(z, value, steps, n_iter, converged)


def _evaluate(
    domain: Domain, coefficients: NDArray[Any], owner: Indices, pull: Pull, z: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the fixed-point target and the objective at each z, in blocks of rows, in threads."""
    n = len(domain.points)
    target, value = np.empty_like(z), np.empty(len(z), dtype=z.real.dtype)
    share = max(-(-len(z) // n_threads()), THREAD_ELEMENTS // n)
    step = max(1, min(BLOCK_ELEMENTS // n, share))
    blocks = [slice(start, start + step) for start in range(0, len(z), step)]

    def fill(share: int, n_shares: int) -> None:
        for rows in blocks[share::n_shares]:
            squares = domain.squares(domain.prepare(z[rows]), domain.prepared)
            value[rows], weights = pull(domain.kernel, squares, coefficients[owner[rows]])
            target[rows] = domain.targets(z[rows], weights)

    run_in_threads(fill, len(blocks))
    return target, value
