"""Errors of angles, Log and Exp on the sphere, from coincident points to antipodal ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from measuring import measurement
from oracles import angle, digits, dot, exact, exp_map, log_map, mpmath, norm, off, unit, vector
from orthodrome.kernels import Linear
from orthodrome.sphere import distance, exp, exp_at_pole, geodesic_distances, log, log_at_pole

# Enough to add squares of 1e-320 to 1.
DIGITS = 400
SMALL = {np.float64: (1e-160, 1e-100, 1e-30, 1e-20), np.float32: (1e-30, 1e-20, 1e-15, 1e-10)}
MIDDLE = (1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-4, 1e-3, 1e-2, 0.015, 0.03, 0.1, 0.3)
MIDDLE += (1.0, 1.5, 1.6, 2.0)
# Distances from π; closer points are refused as antipodal.
REST = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 2e-7)


def edge(dtype: Any) -> float:
    return 6 * float(np.sqrt(np.finfo(dtype).eps))


def angles(dtype: Any) -> list[float]:
    rest = [each for each in REST if each > edge(dtype)]
    return [*SMALL[dtype], *MIDDLE, *(np.pi - each for each in rest), np.pi - 1.01 * edge(dtype)]


def base_and_direction(rng: Any, dtype: Any, anywhere: int) -> tuple[Any, Any]:
    """Return a rounded base point, the pole or another, and a unit tangent vector there."""
    base, direction = np.eye(1, 4)[0], rng.normal(size=4)
    if anywhere:
        base = rng.normal(size=4)
        base = (base / np.linalg.norm(base)).astype(dtype).astype(float)
    direction -= (direction @ base) * base / (base @ base)
    return base, direction / np.linalg.norm(direction)


def pairs(dtype: Any, count: int = 3) -> Iterator[tuple[Any, Any]]:
    """Yield points and base points at all angles, at the pole and elsewhere.

    At the pole small angles are exact; elsewhere coordinates are rounded.
    """
    rng = np.random.default_rng(0)
    for theta in angles(dtype):
        for number in range(2 * count):
            base, direction = base_and_direction(rng, dtype, number % 2)
            point = np.cos(theta) * base + np.sin(theta) * direction
            point = (point / np.linalg.norm(point)).astype(dtype)
            if np.any(point != base.astype(dtype)):
                yield point, base.astype(dtype)


def off_relatively(found: Any, right: Any) -> Any:
    return abs(exact(found) - right) / right


@measurement("sphere.distance")
def of_distance(dtype: Any) -> Iterator[Any]:
    with digits(DIGITS):
        for point, base in pairs(dtype):
            yield off_relatively(distance(point, base), angle(vector(point), vector(base)))


@measurement("sphere.geodesic_distances")
def of_geodesic_distances(dtype: Any) -> Iterator[Any]:
    with digits(DIGITS):
        for point, base in pairs(dtype):
            found = geodesic_distances(point[None], base[None])[0, 0]
            yield off_relatively(found, angle(vector(point), vector(base)))


@measurement("sphere.log")
def of_log(dtype: Any) -> Iterator[Any]:
    with digits(DIGITS):
        for point, base in pairs(dtype):
            right = log_map(vector(point), vector(base))
            yield off(log(point, base_point=base), right) / norm(right)


@measurement("sphere.log_at_pole")
def of_log_at_pole(dtype: Any) -> Iterator[Any]:
    with digits(DIGITS):
        for point, base in pairs(dtype):
            if base[0] == 1:
                right = log_map(vector(point), vector(base))[1:]
                yield off(log_at_pole(point)[0], right) / norm(right)


def tangents(dtype: Any) -> Iterator[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    for theta in (*angles(dtype), np.pi, 4.0, 6.0):
        for number in range(4):
            base, direction = base_and_direction(rng, dtype, number % 2)
            yield (theta * direction).astype(dtype), base.astype(dtype)


@measurement("sphere.exp")
def of_exp(dtype: Any) -> Iterator[Any]:
    with digits(DIGITS):
        for tangent, base in tangents(dtype):
            b = unit(vector(base))
            t = vector(tangent)
            t = [x - dot(t, b) * y for x, y in zip(t, b, strict=True)]
            yield off(exp(tangent, base_point=base), exp_map(t, b))


@measurement("sphere.exp_at_pole")
def of_exp_at_pole(dtype: Any) -> Iterator[Any]:
    """Errors relative to the length of the tangent vector."""
    with digits(DIGITS):
        for tangent, base in tangents(dtype):
            if base[0] != 1:
                continue
            length = norm(vector(tangent[1:]))
            right = exp_map([mpmath.mpf(0), *vector(tangent[1:])], vector(base))
            found = exp_at_pole(tangent[None, 1:])[0]
            yield abs(exact(found[0]) - right[0])
            yield off(found[1:], right[1:]) / min(length, mpmath.mpf(1))


@measurement("sphere.from_cosines")
def of_distances_from_cosines(dtype: Any) -> Iterator[Any]:
    """Errors of θ², or (π - θ)², from inner products of unit vectors."""
    with digits(DIGITS):
        for point, base in pairs(dtype):
            found = exact(geodesic_distances(point[None], base[None], kernel=Linear())[0, 0])
            right = angle(vector(point), vector(base))
            nearest = mpmath.pi if right > 2 else 0
            yield abs((nearest - found) ** 2 - (nearest - right) ** 2)
