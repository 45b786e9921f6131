"""Slow and obvious oracles in mpmath, with any number of digits.

Floats are converted exactly. Vectors are lists, matrices are mpmath's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from optional import optional

mpmath = optional("mpmath")

Vector = list[Any]


def digits(number: int) -> Any:
    """Return a context in which mpmath computes with this number of digits."""
    return mpmath.workdps(number)


def exact(value: Any) -> Any:
    """Convert a float exactly."""
    return mpmath.mpf(float(value))


def vector(values: Iterable[Any]) -> Vector:
    return [exact(value) for value in values]


def matrix(values: Any) -> Any:
    return mpmath.matrix([vector(row) for row in np.asarray(values)])


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return mpmath.fsum(x * y for x, y in zip(a, b, strict=True))


def norm(a: Sequence[Any]) -> Any:
    return mpmath.sqrt(dot(a, a))


def combined(a: Any, x: Sequence[Any], b: Any, y: Sequence[Any]) -> Vector:
    """Return a x + b y."""
    return [a * p + b * q for p, q in zip(x, y, strict=True)]


def squared_distance(x: Sequence[Any], y: Sequence[Any]) -> Any:
    difference = combined(1, x, -1, y)
    return dot(difference, difference)


def unit(a: Sequence[Any]) -> Vector:
    length = norm(a)
    return [x / length for x in a]


def off(found: Any, right: Sequence[Any]) -> Any:
    """Return the distance of an array of floats from the exact vector."""
    return norm(combined(1, vector(found), -1, right))


def angle(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Return the angle between vectors; needs twice the digits of a small one."""
    a, b = unit(a), unit(b)
    return 2 * mpmath.atan2(norm(combined(1, a, -1, b)), norm(combined(1, a, 1, b)))


def log_map(y: Sequence[Any], base: Sequence[Any]) -> Vector:
    y, base = unit(y), unit(base)
    across = combined(1, y, -dot(y, base), base)
    length = norm(across)
    return [angle(y, base) / length * x for x in across] if length else across


def exp_map(tangent: Sequence[Any], base: Sequence[Any]) -> Vector:
    length = norm(tangent)
    if not length:
        return list(base)
    return combined(mpmath.cos(length), base, mpmath.sin(length) / length, tangent)


def karcher_mean(
    points: Sequence[Sequence[Any]], weights: Sequence[Any], start: Sequence[Any]
) -> Vector:
    """Return the Karcher mean by gradient descent from a nearby start."""
    total = mpmath.fsum(weights)
    mean = unit(start)
    for _ in range(100_000):
        logs = [log_map(point, mean) for point in points]
        step = [
            mpmath.fsum(w * t[i] for w, t in zip(weights, logs, strict=True)) / total
            for i in range(len(mean))
        ]
        mean = unit(exp_map(step, mean))
        if norm(step) < mpmath.mpf(10) ** (8 - mpmath.mp.dps):
            return mean
    raise ArithmeticError("gradient descent did not converge")


def eigenvalues(symmetric: Any) -> Vector:
    """Return all eigenvalues of a symmetric matrix, descending."""
    return sorted(mpmath.eigsy(symmetric, eigvals_only=True), reverse=True)


def smaller(symmetric: Any, row: int) -> Any:
    """Return a matrix without a row and its column."""
    kept = [i for i in range(symmetric.rows) if i != row]
    return mpmath.matrix([[symmetric[i, j] for j in kept] for i in kept])


def gram(kernel: Callable[[Vector, Vector], Any], rows: Sequence[Vector]) -> Any:
    """The matrix k(x_i, x_j)."""
    found = mpmath.matrix(len(rows))
    for i, x in enumerate(rows):
        for j in range(i + 1):
            found[i, j] = found[j, i] = kernel(x, rows[j])
    return found
