"""Compiled elementwise loops: inner products to distances, distances to kernel values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .._core.compiled import compiled, compiled_helper


@intrinsic
def _bits(_context: Any, value: Any) -> Any:
    """Reinterpret a float64 as int64."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _float(_context: Any, value: Any) -> Any:
    """Reinterpret an int64 as float64."""

    def codegen(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # its last 32 bits are zero: n * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it leaves the nearest integer in the low bits
_UNDERFLOW = -708.0


@compiled_helper
def _exp(x: float) -> float:
    """Return exp(x) for x <= 0, in straight-line code that the compiler vectorises.

    exp(x) = 2^n exp(r) with n the integer nearest x / ln 2, |r| <= ln(2)/2, and exp(r) from its
    Taylor polynomial of degree 13 (remainder below 5e-18). The error is at most 2 units in the last
    place. Below -708 the result is 0 (subnormal numbers are flushed). Converting inner products to
    Gaussian values took 0.9 ns per entry on one core, compared with 2.3 ns for NumPy.
    """
    clipped = max(x, _UNDERFLOW)
    shifted = clipped * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (clipped - n * _LN2_HIGH) - n * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power: Any = _float((((_bits(shifted) << 32) >> 32) + 1023) << 52)  # type: ignore[call-arg]  # intrinsics
    return p * power if x > _UNDERFLOW else 0.0


@compiled
def distances_from_products(
    block: Any, left: Any, right: Any, left_norms: Any, right_norms: Any, threshold: float
) -> None:
    """Convert inner products to squared distances, in place: ‖x‖² + ‖y‖² - 2<x, y>.

    If the result is below `threshold` times ‖x‖² + ‖y‖², it is computed again from the
    differences: coincident points get exactly 0.
    """
    for i in range(block.shape[0]):
        norm = left_norms[i]
        cancelled = 0
        for j in range(block.shape[1]):
            total = norm + right_norms[j]
            distance = total - 2.0 * block[i, j]
            cancelled += distance <= threshold * total
            block[i, j] = distance
        if cancelled:
            for j in range(block.shape[1]):
                if block[i, j] <= threshold * (norm + right_norms[j]):
                    distance = 0.0
                    for k in range(left.shape[1]):
                        difference = float(left[i, k]) - float(right[j, k])
                        distance += difference * difference
                    block[i, j] = distance


@compiled
def complements_from_products(
    real: Any, imaginary: Any, left: Any, right: Any, threshold: Any, rounding_error: Any
) -> None:
    """Convert products u*v of unit vectors to 1 - |u*v|² and |u*v|², in place.

    `real` and `imaginary` are the parts of u*v. Rows of `left` are (Re u, Im u), columns of `right`
    are (Re v, Im v). If 1 - |u*v|² is at most `threshold`, it is computed again as ‖v - u (u*v)‖²;
    results of at most `rounding_error` become 0. Both limits must have the dtype of the block:
    with mixed dtypes the compiler does not vectorise the loops.
    """
    one = real.dtype.type(1)
    wider = threshold + threshold  # the loops below may round the same sum in different ways
    remainders = np.zeros(real.shape[1], dtype=real.dtype)
    for i in range(real.shape[0]):
        cancelled = 0
        for j in range(real.shape[1]):
            square = real[i, j] * real[i, j] + imaginary[i, j] * imaginary[i, j]
            cancelled += one - square <= threshold
        # the vectorised loop over a whole row is more than 8 times as fast per pair
        whole_row = 8 * cancelled > real.shape[1]
        if whole_row:
            _row_remainders(real[i], imaginary[i], left[i], right, remainders)
        elif cancelled:
            for j in range(real.shape[1]):
                square = real[i, j] * real[i, j] + imaginary[i, j] * imaginary[i, j]
                if one - square <= wider:
                    remainders[j] = _remainder(real[i, j], imaginary[i, j], left[i], right[:, j])
        for j in range(real.shape[1]):
            square = real[i, j] * real[i, j] + imaginary[i, j] * imaginary[i, j]
            imaginary[i, j] = min(square, one)
            real[i, j] = one - imaginary[i, j]
        if cancelled:
            for j in range(real.shape[1]):
                if real[i, j] <= threshold:
                    real[i, j] = remainders[j] if remainders[j] > rounding_error else 0.0


@compiled_helper
def _remainder(x: Any, y: Any, u: Any, v: Any) -> Any:
    """Return ‖v - u (x + iy)‖², for vectors (Re u, Im u) and (Re v, Im v)."""
    k = len(u) // 2
    total = 0.0
    for m in range(k):
        p = v[m] - (u[m] * x - u[k + m] * y)
        q = v[k + m] - (u[m] * y + u[k + m] * x)
        total += p * p + q * q
    return total


@compiled_helper
def _row_remainders(x: Any, y: Any, u: Any, right: Any, out: Any) -> None:
    """Compute ‖v_j - u (x_j + iy_j)‖² for all columns v_j."""
    k = len(u) // 2
    out[:] = 0
    for m in range(k):
        a, b = u[m], u[k + m]
        for j in range(len(x)):
            p = right[m, j] - (a * x[j] - b * y[j])
            q = right[k + m, j] - (a * y[j] + b * x[j])
            out[j] += p * p + q * q


@compiled
def gaussian(block: Any, rate: float) -> None:
    """Replace d² by exp(-rate d²), in place."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            block[i, j] = _exp(-rate * block[i, j])


@compiled
def exponential_of_distance(block: Any, rate: float) -> None:
    """Replace d² by exp(-rate d), in place."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            block[i, j] = _exp(-rate * math.sqrt(block[i, j]))


@compiled
def matern_three_halves(block: Any, rate: float) -> None:
    """Replace d² by (1 + u) exp(-u) with u = rate d, in place."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            u = rate * math.sqrt(block[i, j])
            block[i, j] = (1.0 + u) * _exp(-u)


@compiled
def matern_five_halves(block: Any, rate: float) -> None:
    """Replace d² by (1 + u + u²/3) exp(-u) with u = rate d, in place."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            u = min(rate * math.sqrt(block[i, j]), 1e4)  # exp(-1e4) is 0; larger u² may overflow
            block[i, j] = (1.0 + u + u * u / 3.0) * _exp(-u)


#: By order.
MATERN = {0.5: exponential_of_distance, 1.5: matern_three_halves, 2.5: matern_five_halves}


@compiled
def spherical(block: Any, rate: float) -> None:
    """Replace d² by 1 - 3t/2 + t³/2 with t = min(rate d, 1), in place."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            t = min(rate * math.sqrt(block[i, j]), 1.0)
            s = 1.0 - t
            block[i, j] = 0.5 * s * s * (2.0 + t)  # factored, so that it is never negative
