"""Errors of means, principal geodesics, nested spheres and mixtures, mostly of narrow clouds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from measuring import measurement
from oracles import (
    Vector,
    angle,
    combined,
    digits,
    dot,
    exact,
    gram,
    karcher_mean,
    log_map,
    matrix,
    mpmath,
    off,
    squared_distance,
    unit,
    vector,
)
from orthodrome import KernelPGA
from orthodrome.gram import gram_operator
from orthodrome.kernels import Gaussian, Linear
from orthodrome.rows import ArrayRows
from orthodrome.sphere import karcher_mean as found_mean
from orthodrome.sphere.mixture import Cloud, Mixture, scatter
from orthodrome.sphere.nested import fit_subsphere

SPREADS = {
    np.float64: (1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12),
    np.float32: (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6),
}


def rotation(d: int, seed: int) -> Any:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def cloud(spread: float, n: int = 8, q: int = 3, seed: int = 0) -> Any:
    """Return unit vectors around the pole e_1, with angles of about half the spread."""
    z = np.random.default_rng(seed).normal(size=(n, q)) * spread / 4
    lengths = np.linalg.norm(z, axis=1, keepdims=True)
    return np.column_stack([np.cos(lengths), np.sinc(lengths / np.pi) * z])


WEIGHTS = np.arange(1.0, 9.0)


def variance_about(mean: Vector, rows: list[Vector]) -> Any:
    squares = [angle(row, mean) ** 2 for row in rows]
    return dot(vector(WEIGHTS), squares) / exact(WEIGHTS.sum())


def means(dtype: Any, turn: Any) -> Iterator[tuple[float, Any, list[Vector], Vector]]:
    """Yield spreads, means that were found of turned clouds, their points and exact means."""
    for spread in SPREADS[dtype]:
        points = (cloud(spread) @ turn.T).astype(dtype)
        found = found_mean(points, WEIGHTS, tol=0)
        with digits(60):
            rows = [vector(point) for point in points]
            yield spread, found, rows, karcher_mean(rows, vector(WEIGHTS), vector(found.point))


@measurement("fits.karcher_at_pole")
def of_means_at_the_pole(dtype: Any) -> Iterator[Any]:
    """At the pole, where small coordinates are exact."""
    for spread, found, rows, right in means(dtype, np.eye(4)):
        yield off(found.point[1:], right[1:]) / spread
        variance = variance_about(right, rows)
        yield abs(exact(found.variance) - variance) / variance


@measurement("fits.karcher_anywhere")
def of_means_anywhere(dtype: Any) -> Iterator[Any]:
    """Elsewhere, where coordinates are rounded."""
    for _, found, _, right in means(dtype, rotation(4, 1)):
        yield off(found.point, right)


@measurement("fits.karcher_of_far_points")
def of_means_of_far_points(dtype: Any) -> Iterator[Any]:
    """Two points at an angle of nearly π; errors times the curvature."""
    for rest in (1.0, 0.1, 1e-2) if dtype == np.float32 else (1.0, 0.1, 1e-2, 1e-4, 1e-6):
        theta = np.pi - rest
        R = rotation(4, 2)
        points = np.array([R[0], np.cos(theta) * R[0] + np.sin(theta) * R[1]]).astype(dtype)
        found = found_mean(points, [1.0, 1.0], tol=0)
        with digits(60):
            a, b = (unit(vector(point)) for point in points)
            right = unit(combined(1, a, 1, b))
            half = angle(a, b) / 2
            yield off(found.point, right) * half / mpmath.tan(half)


@measurement("fits.karcher_with_far_points")
def of_means_with_far_points(dtype: Any) -> Iterator[Any]:
    """A cloud and a light point nearly opposite to it."""
    for rest in (0.5, 0.3, 0.2):
        far = [[np.cos(np.pi - rest), np.sin(np.pi - rest), 0.0, 0.0]]
        points = (np.vstack([cloud(0.5), far]) @ rotation(4, 4).T).astype(dtype)
        weights = np.append(WEIGHTS, 0.5)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*lie a quarter of a great circle or more")
            found = found_mean(points, weights, tol=0)
        with digits(40):
            rows = [vector(point) for point in points]
            yield off(found.point, karcher_mean(rows, vector(weights), vector(found.point)))


@measurement("fits.karcher_of_gram")
def of_means_over_a_gram_matrix(dtype: Any) -> Iterator[Any]:
    """Absolute errors of cosines with the mean, and of the variance."""
    for spread in SPREADS[dtype]:
        points = (cloud(spread) @ rotation(4, 3).T).astype(dtype)
        found = found_mean(gram_operator(Linear().fit(points), points), WEIGHTS, tol=0)
        with digits(60):
            rows = [vector(point) for point in points]
            right = karcher_mean(rows, vector(WEIGHTS), vector(WEIGHTS @ points))
            yield max(
                abs(exact(c) - dot(unit(row), right))
                for c, row in zip(found.cosines, rows, strict=True)
            )
            yield abs(exact(found.variance) - variance_about(right, rows))


def tangents_of(kernel: Any) -> Any:
    """Return the Gram matrix of Log maps at the Karcher mean over n, from a Gram matrix."""
    factor, n = mpmath.cholesky(kernel), kernel.rows
    points = [list(factor[i, :]) for i in range(n)]
    ones = [mpmath.mpf(1)] * n
    mean = karcher_mean(points, ones, [mpmath.fsum(column) for column in zip(*points, strict=True)])
    logs = [log_map(point, mean) for point in points]
    return gram(lambda x, y: dot(x, y) / n, logs)


def pga_cases(dtype: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield a fit, its exact variances, and exact coordinates up to signs."""
    X = np.random.default_rng(4).normal(size=(9, 3)) * [4.0, 2.0, 1.0]
    for sigma in (4.0, 40.0, 400.0, 4e3) if dtype == np.float64 else (4.0, 40.0, 120.0):
        given = X.astype(dtype)
        model = KernelPGA(2, kernel=Gaussian(sigma)).fit(given)
        with digits(60):
            rows = [vector(row) for row in given]
            kernel = gram(
                lambda x, y, s=sigma: mpmath.exp(-squared_distance(x, y) / (2 * exact(s) ** 2)),
                rows,
            )
            values, vectors = mpmath.eigsy(tangents_of(kernel))
            order = sorted(range(len(rows)), key=lambda i, v=values: -v[i])[:2]
            coordinates = [
                [vectors[n, i] * mpmath.sqrt(values[i] * len(rows)) for n in range(len(rows))]
                for i in order
            ]
            yield model, [values[i] for i in order], coordinates


@measurement("fits.pga_eigenvalues")
def of_pga_eigenvalues(dtype: Any) -> Iterator[Any]:
    for model, values, _ in pga_cases(dtype):
        for found, right in zip(model.eigenvalues_, values, strict=True):
            yield abs(exact(found) - right)


@measurement("fits.pga_coordinates")
def of_pga_coordinates(dtype: Any) -> Iterator[Any]:
    """Errors times the standard deviation of the component."""
    for model, values, coordinates in pga_cases(dtype):
        with digits(60):
            for found, value, right in zip(model.embedding_.T, values, coordinates, strict=True):
                sign = 1 if dot(vector(found), right) > 0 else -1
                yield off(sign * found, right) * mpmath.sqrt(value) / mpmath.sqrt(len(right))


def best_circle(rows: list[Vector], axis: Vector, radius: Any) -> tuple[Vector, Any]:
    """Minimise squares of θ - r, by Newton's method from a near circle."""
    v = unit(axis)
    a = unit(log_map([mpmath.mpf(1), mpmath.mpf(2), mpmath.mpf(-1)], v))
    b = [v[i - 2] * a[i - 1] - v[i - 1] * a[i - 2] for i in range(3)]

    def moved(x: Any, y: Any) -> Vector:
        return unit(combined(1, v, 1, combined(x, a, y, b)))

    def slope(x: Any, y: Any, r: Any) -> Vector:
        """Return the gradient in the tangent space and in the radius."""
        center, total = moved(x, y), [mpmath.mpf(0)] * 3
        for row in rows:
            theta = angle(row, center)
            residual, direction = theta - r, log_map(row, center)
            total[0] += residual * dot(direction, a) / theta
            total[1] += residual * dot(direction, b) / theta
            total[2] += residual
        return total

    x, y, r = mpmath.findroot(slope, (0, 0, radius), tol=mpmath.mpf(10) ** -60)
    return moved(x, y), r


def small_circles() -> Iterator[Any]:
    """Yield points near circles of decreasing radii."""
    for radius in (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5):
        rng = np.random.default_rng(6)
        around, theta = rng.uniform(0, 6, 12), radius * (1 + 0.05 * rng.normal(size=12))
        points = np.column_stack(
            [np.sin(theta) * np.cos(around), np.sin(theta) * np.sin(around), np.cos(theta)]
        )
        points = points @ rotation(3, 5).T
        yield points / np.linalg.norm(points, axis=1, keepdims=True)


@measurement("fits.small_circles")
def of_small_circles(dtype: Any) -> Iterator[Any]:
    """Errors of axis and radius, relative to the radius."""
    for points in small_circles():
        found = fit_subsphere(points, np.ones(12))
        with digits(60):
            rows = [vector(point) for point in points]
            axis, r = best_circle(rows, vector(found.axis), exact(found.radius))
            yield abs(exact(found.radius) - r) / r
            yield angle(vector(found.axis), axis) / r


@measurement("fits.small_circle_residuals")
def of_residuals_of_small_circles(dtype: Any) -> Iterator[Any]:
    """Errors of residuals of points near a small circle."""
    for points in small_circles():
        circle = fit_subsphere(points, np.ones(12))
        with digits(60):
            for found, split, point in zip(
                circle.residuals(points), circle.split(points)[1], points, strict=True
            ):
                right = angle(vector(point), vector(circle.axis)) - exact(circle.radius)
                yield abs(exact(found) - right)
                yield abs(exact(split) - right)


def narrow_laws(seed: int = 7) -> Iterator[tuple[Any, Any]]:
    """Yield mixtures of two distant laws, and points of both."""
    rng = np.random.default_rng(seed)
    for spread in (1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        means = rotation(4, seed)[:2]
        covariances = []
        for _ in range(2):
            a = rng.normal(size=(3, 3))
            covariances.append((a @ a.T + np.eye(3)) * (spread / 4) ** 2)
        laws = Mixture(np.array([0.3, 0.7]), means, np.array(covariances), "full")
        points = laws.sample(10, np.random.RandomState(seed))[0]
        yield laws, points


def frame_at(mean: Vector) -> list[Vector]:
    """Return the frame at the pole e_1, transported to a point."""
    toward = [mean[0] + 1, *mean[1:]]
    columns = []
    for j in range(1, len(mean)):
        column = [-mean[j] / (1 + mean[0]) * x for x in toward]
        column[j] += 1
        columns.append(column)
    return columns


def tangent_of(point: Any, mean: Any) -> Vector:
    m = unit(vector(mean))
    t = log_map(vector(point), m)
    return [dot(t, column) for column in frame_at(m)]


def terms_of(point: Any, mean: Any, covariance: Any) -> tuple[Any, Any]:
    """Return the squared Mahalanobis distance, and the log of the determinant of 2π C."""
    C, t = matrix(covariance), mpmath.matrix(tangent_of(point, mean))
    square = (t.T * mpmath.lu_solve(C, t))[0]
    return square, 3 * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(C))


@measurement("fits.log_densities")
def of_log_densities(dtype: Any) -> Iterator[Any]:
    """Errors over 1 + the squared Mahalanobis distance, of a point from its own law."""
    with digits(60):
        for laws, points in narrow_laws():
            logs = laws.log_densities(points)
            for n, point in enumerate(points):
                own = int(np.argmax(points[n] @ laws.means.T))
                square, constant = terms_of(point, laws.means[own], laws.covariances[own])
                right = -(square + constant) / 2
                yield abs(exact(logs[n, own]) - right) / (1 + square + abs(constant))


@measurement("fits.likelihood")
def of_likelihoods(dtype: Any) -> Iterator[Any]:
    """Errors of the mean log-likelihood of a mixture."""
    with digits(60):
        for laws, points in narrow_laws(8):
            found = Cloud(ArrayRows.of(points)).expected(laws, "karcher")
            logs = []
            for point in points:
                terms = [
                    terms_of(point, *law) for law in zip(laws.means, laws.covariances, strict=True)
                ]
                densities = [mpmath.exp(-(square + constant) / 2) for square, constant in terms]
                logs.append(mpmath.log(dot(vector(laws.weights), densities)))
            size = max(1, *map(abs, logs))
            yield abs(exact(found.likelihood) - mpmath.fsum(logs) / len(logs)) / size


@measurement("fits.covariances")
def of_covariances(dtype: Any) -> Iterator[Any]:
    """Errors of covariances of a narrow law, relative to their trace."""
    with digits(60):
        for laws, points in narrow_laws(9):
            mean = laws.means[0]
            own = points[points @ mean > 0.7]
            found = scatter(own, np.ones(len(own)), mean)
            right = mpmath.matrix(3)
            for point in own:
                t = mpmath.matrix(tangent_of(point, mean))
                right += t * t.T
            trace = mpmath.fsum(right[i, i] for i in range(3))
            error = max(abs(exact(found[i, j]) - right[i, j]) for i in range(3) for j in range(3))
            yield error / trace
