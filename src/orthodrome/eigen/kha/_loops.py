"""Compiled loops over the samples of a block of a Hebbian pass, with small matrices.

Inside a block every iterate is S_t = T_t S_0 + V_t Eᵀ, where E holds the unit vectors of the
block's samples. The loops update W = [T, V] and never use vectors as long as the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.compiled import compiled, compiled_helper
from .gains import Rule, set_gains

Array = Any  # numba needs plain arrays

# Maximum absolute value of automatic log-gains. Without it, some log-gain diverged on some data;
# clipping then scales down the gains of all components.
BOUND = 1.5


_set_gains = compiled_helper(set_gains)


@compiled_helper
def _estimate(W: Array, forms: Array, width: int, eigenvalues: Array) -> None:
    """Set λ (eq. 13) from ‖A_i K'‖² and ‖A_i‖², quadratic forms of the rows of W."""
    for i in range(len(eigenvalues)):
        square = length = 0.0
        for k in range(width):
            a = b = 0.0
            for m in range(width):
                a += forms[0, k, m] * W[i, m]
                b += forms[1, k, m] * W[i, m]
            square += W[i, k] * a
            length += W[i, k] * b
        eigenvalues[i] = math.sqrt(square / length) if square > 0 and length > 0 else 0.0


@compiled_helper
def _combine(W: Array, columns: Array, first: int, rows: int, width: int, out: Array) -> None:
    """Set `out` to the products of the first rows of W with one row of `columns`."""
    for i in range(rows):
        # four sums, since consecutive additions to one sum would wait for each other
        a = b = c = d = 0.0
        k = 0
        while k + 4 <= width:
            a += W[i, k] * columns[first, k]
            b += W[i, k + 1] * columns[first, k + 1]
            c += W[i, k + 2] * columns[first, k + 2]
            d += W[i, k + 3] * columns[first, k + 3]
            k += 4
        while k < width:
            a += W[i, k] * columns[first, k]
            k += 1
        out[i] = (a + b) + (c + d)


@compiled_helper
def _clip(gains: Array, y: Array) -> bool:
    """Scale down all gains so that max_i D_i Σ_{j<=i} y_j² <= 1; return whether they changed."""
    largest = total = 0.0
    for i in range(len(y)):
        total += y[i] * y[i]
        largest = max(largest, gains[i] * total)
    if largest > 1.0:
        for i in range(len(y)):
            gains[i] /= largest
        return True
    return False


@compiled_helper
def _forget(X: Array, width: int, gains: Array, y: Array, total: Array) -> None:
    """Compute X <- (I - D lt(y yᵀ)) X for the first rows of X, with running sums over rows."""
    total[:width] = 0.0
    for i in range(len(y)):
        step = gains[i] * y[i]
        for k in range(width):
            total[k] += y[i] * X[i, k]
            X[i, k] -= step * total[k]


@compiled_helper
def _forget_both(
    X: Array, width: int, gains: Array, y: Array, b: Array, xi: float, totals: Array
) -> None:
    """Compute X <- H X for the rows [A; B] of KHA-SMD (eq. 15, 21 without the new column)."""
    r = len(y)
    totals[:, :width] = 0.0
    for i in range(r):
        step, turned = gains[i] * y[i], xi * gains[i] * b[i]
        for k in range(width):
            totals[0, k] += y[i] * X[i, k]  # Σ y_j A_j
            # Σ y_j (A_j + ξ B_j) + ξ b_j A_j
            totals[1, k] += (y[i] + xi * b[i]) * X[i, k] + xi * y[i] * X[r + i, k]
            X[i, k] -= step * totals[0, k]
            X[r + i, k] = xi * X[r + i, k] - step * totals[1, k] - turned * totals[0, k]


@compiled
def visit_with_gains(
    W: Array, columns: Array, forms: Array, eigenvalues: Array, t: int, rule: Rule
) -> int:
    """Visit the samples of a block (eq. 8) with a gain per row; return the number of clips.

    Parameters
    ----------
    W : array of shape (r, r + b)
        [T, V]: the identity and zeros on entry.
    columns : array of shape (b, r + b)
        For each sample of the block, (S_0 K')[:, i] and K'[block, i].
    forms : array of shape (2, r + b, r + b)
        The Gram matrices of the rows of [S_0 K'; K'[block]] and of [S_0; Eᵀ], to estimate λ at each
        sample; of shape (2, 0, 0) to keep λ.
    eigenvalues : array of shape (r,)
        λ, changed in place.
    t : int
        Number of samples visited before this block.
    rule : Rule
        The gains.
    """
    r, n_clips = W.shape[0], 0
    y, base, gains, total = np.empty(r), np.empty(r), np.empty(r), np.empty(W.shape[1])
    _set_gains(eigenvalues, rule, base)
    for j in range(len(columns)):
        width = r + j
        if forms.shape[1]:
            _estimate(W, forms, width, eigenvalues)
            _set_gains(eigenvalues, rule, base)
        _combine(W, columns, j, r, width, y)
        decay = 1.0 / (1.0 + (t + j + 1) / rule.period)
        for i in range(r):
            gains[i] = base[i] * decay
        if rule.limited and _clip(gains, y):
            n_clips += 1
        _forget(W, width, gains, y, total)
        for i in range(r):
            W[i, width] = gains[i] * y[i]
    return n_clips


@compiled
def visit_with_meta_descent(
    W: Array,
    columns: Array,
    forms: Array,
    eigenvalues: Array,
    t: int,
    rule: Rule,
    squares: Array,
    inner: Array,
    log_gains: Array,
    mu: float,
    xi: float,
) -> int:
    """Visit the samples of a block with KHA-SMD (eq. 15, 16, 21); return the number of clips.

    The first parameters are those of :func:`visit_with_gains`, with the rows [A; B] instead of A.

    Parameters
    ----------
    squares : array of shape (b,)
        K'_ii of the samples.
    inner : array of shape (2r, r)
        [A; B] K' Aᵀ, updated for each sample.
    log_gains : array of shape (r,)
        ρ, changed in place.
    mu, xi : float
        μ, the gain of the log-gains, and ξ, the decay of the memory of past steps. If steps are
        limited, μ decays like the other gains.
    """
    r, n_clips, base = len(log_gains), 0, np.empty(len(log_gains))
    _set_gains(eigenvalues, rule, base)
    z, gains, h, turned = np.empty(2 * r), np.empty(r), np.empty(2 * r), np.empty((2 * r, 1))
    y, b = z[:r], z[r:]
    total, totals = np.empty(W.shape[1]), np.empty((2, W.shape[1]))
    transposed = np.empty((r, 2 * r))
    for j in range(len(columns)):
        width = 2 * r + j
        if forms.shape[1]:
            _estimate(W, forms, width, eigenvalues)
            _set_gains(eigenvalues, rule, base)
        _combine(W, columns, j, 2 * r, width, z)
        decay = 1.0 / (1.0 + (t + j + 1) / rule.period)
        for i in range(r):
            correction = 0.0  # Σ_{j<=i} y_j (A K' Bᵀ)_ji
            for m in range(i + 1):
                correction += y[m] * inner[r + i, m]
            change = mu * y[i] * (b[i] - correction)
            if rule.limited:
                change = min(max(decay * change, -BOUND - log_gains[i]), BOUND - log_gains[i])
            log_gains[i] += change
            gains[i] = np.exp(log_gains[i]) * base[i] * decay
        if rule.limited and _clip(gains, y):
            n_clips += 1
        for i in range(r):
            h[i] = gains[i] * y[i]
            h[r + i] = gains[i] * (y[i] + xi * b[i])
        # not by assigning slices: numba would compile their error messages, which takes 2 s
        for i in range(2 * r):
            turned[i, 0] = z[i]
        _forget_both(turned, 1, gains, y, b, xi, totals)  # H z
        _forget_both(W, width, gains, y, b, xi, totals)
        for i in range(2 * r):
            W[i, width] = h[i]
        # S K' Aᵀ <- H (S K' Aᵀ) H_Aᵀ + h (H_A y)ᵀ + (H z) h_Aᵀ + h h_Aᵀ K'_ii
        _forget_both(inner, r, gains, y, b, xi, totals)
        for i in range(2 * r):
            for m in range(r):
                transposed[m, i] = inner[i, m]
        _forget(transposed, 2 * r, gains, y, total)
        for i in range(2 * r):
            new = h[i] * squares[j] + turned[i, 0]
            for m in range(r):
                inner[i, m] = transposed[m, i] + h[i] * turned[m, 0] + new * h[m]
    return n_clips
