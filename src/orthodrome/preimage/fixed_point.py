"""Pre-images for radial kernels by a batched fixed point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.threads import n_threads, run_in_threads
from ..kernels import Radial
from ..kernels._prepared import Prepared
from ..kernels.radial import squared_distances

__all__ = ["FixedPoint", "fixed_point"]

BLOCK_ELEMENTS = 2**21  # kernel values held at once: 16 MiB in float64


@dataclass(frozen=True)
class FixedPoint:
    """Stationary points reached from a batch of starts.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        The points.
    objective : ndarray of shape (m,)
        Σ_n β_n k(x_n, z), which is maximised.
    n_iter : int
        Iterations of the slowest start.
    converged : ndarray of bool, shape (m,)
        Which starts met the tolerance.
    """

    points: NDArray[Any]
    objective: NDArray[Any]
    n_iter: int
    converged: NDArray[np.bool_]


def fixed_point(
    kernel: Radial,
    X: NDArray[Any],
    coefficients: NDArray[Any],
    starts: NDArray[Any],
    *,
    expansion: NDArray[np.intp] | None = None,
    tol: float,
    max_iter: int,
) -> FixedPoint:
    r"""Maximise :math:`\rho(z) = \sum_n \beta_n h(\|z - x_n\|^2)` from each start.

    .. math:: z \leftarrow \frac{\sum_n \beta_n h'(\|z - x_n\|^2)\, x_n}
                               {\sum_n \beta_n h'(\|z - x_n\|^2)}

    The step is shortened, for each start by itself, until ρ does not fall; where the denominator
    has the wrong sign (the fixed point would descend) the step is turned round. Starts that have
    converged drop out of the batch. A training point at distance 0 has the weight h'(0), except
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
    expansion : ndarray of shape (m,), optional
        The row of `coefficients` that each start belongs to. Default: start i to row i.
    tol : float
        Stop a start when its step is at most tol times the root mean squared distance of X from
        its mean.
    max_iter : int
        The most iterations.
    """
    scale = float(np.sqrt(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))))
    z = np.array(starts, dtype=np.result_type(X.dtype, np.float32))
    points = kernel.prepare(X)
    owner = np.arange(len(z)) if expansion is None else expansion
    target, value = _evaluate(kernel, points, coefficients, owner, z)
    eps = float(np.finfo(z.dtype).eps)
    resolution = 4 * eps * float(np.abs(X).max())
    # points that coincide to rounding have no scale: a step of rounding is none
    limit = tol * scale if scale > resolution else resolution
    fraction = np.ones(len(z))
    converged = np.zeros(len(z), dtype=bool)
    active = np.arange(len(z))
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        step = fraction[active, None] * (target[active] - z[active])
        moved = z[active] + step
        new_target, new_value = _evaluate(kernel, points, coefficients, owner[active], moved)
        slack = 4 * eps * np.abs(value[active])
        better = new_value >= value[active] - slack
        accepted = active[better]
        z[accepted], target[accepted] = moved[better], new_target[better]
        value[accepted] = new_value[better]
        fraction[accepted] = np.minimum(1.0, 2 * fraction[accepted])
        fraction[active[~better]] /= 4
        # a rejected step that is already below the tolerance cannot lead anywhere either
        done = np.linalg.norm(step, axis=1) <= limit
        converged[active[done]] = True
        active = active[~done]
    return FixedPoint(z, value, n_iter, converged)


def _evaluate(
    kernel: Radial,
    points: Prepared,
    coefficients: NDArray[Any],
    owner: NDArray[np.intp],
    z: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the fixed-point target and the objective at each z, in blocks of rows, in threads."""
    target, value = np.empty_like(z), np.empty(len(z), dtype=z.dtype)
    step = max(1, min(BLOCK_ELEMENTS // len(points), -(-len(z) // n_threads())))
    blocks = [slice(start, start + step) for start in range(0, len(z), step)]

    def fill(share: int, n_shares: int) -> None:
        for rows in blocks[share::n_shares]:
            beta = coefficients[owner[rows]]
            target[rows], value[rows] = _evaluate_block(kernel, points, beta, z[rows])

    run_in_threads(fill, len(blocks))
    return target, value


def _evaluate_block(
    kernel: Radial, points: Prepared, beta: NDArray[Any], z: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    d2 = squared_distances(kernel.prepare(z), points)
    value = np.einsum("ij,ij->i", beta, kernel.profile(d2))
    slope = kernel.profile_derivative(d2)
    if kernel.cusp:
        slope[d2 == 0] = 0.0
    weights = beta * slope
    total, size = weights.sum(axis=1), np.abs(weights).sum(axis=1)
    usable = (np.abs(total) > 1e-12 * size) & (size > 0)
    # from the origin of the kernel, which keeps digits when the data lie far from 0
    mean = weights @ points.coordinates / np.where(usable, total, 1.0)[:, None] + kernel.origin_
    toward = np.where(usable, -np.sign(total), 0.0)[:, None]
    return z + toward * (mean - z), value
