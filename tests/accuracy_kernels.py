"""Errors of kernels: values and distances, of nearly coincident points, near and far ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from laws_kernels import (
    circular,
    exponential,
    gaussian,
    matern,
    rational_quadratic,
    spherical,
    wave,
)
from measuring import measurement
from oracles import Vector, digits, dot, exact, mpmath, norm, squared_distance, vector
from orthodrome import kernels
from orthodrome.kernels import _loops
from orthodrome.kernels.radial import squared_distances
from orthodrome.sphere import geodesic_distances

# Not integers, for which mpmath is slow: tests/kernels covers those.
ORDERS = (0.05, 0.25, 0.7, 1.01, 3.2, 7.3, 15.5, 29.9, 39.9, 40.1, 150.3)
CLOSED = (0.5, 1.5, 2.5, math.inf)
POWERS = (1e-2, 1.0, 1.7, 30.0)

#: Kernels of a scale, with their profiles.
FAMILIES: dict[str, list[tuple[Callable[[float], Any], Any]]] = {
    "gaussian": [(kernels.Gaussian, gaussian)],
    "exponential": [(kernels.Exponential, exponential)],
    "matern_closed": [(partial(kernels.Matern, nu), matern(nu)) for nu in CLOSED],
    "matern": [(partial(kernels.Matern, nu), matern(nu)) for nu in ORDERS],
    "rational_quadratic": [
        (partial(kernels.RationalQuadratic, alpha), rational_quadratic(alpha)) for alpha in POWERS
    ],
    "spherical": [(kernels.Spherical, spherical)],
    "circular": [(kernels.Circular, circular)],
    "wave": [(kernels.Wave, wave)],
}
#: Their values do not have all digits where they are tiny.
ABSOLUTE = ("spherical", "circular", "wave")

NEAR = {
    np.float64: (1e-140, 1e-100, 1e-50, 1e-16),
    np.float32: (1e-16, 1e-14, 1e-12, 1e-10),
}
RATIOS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.29, 0.31, 0.42, 0.5, 0.7, 0.9)
RATIOS += (0.99, 0.9999, 0.999999, 1.0001, 1.3, 1.6, 2.2, 3.0, 4.0, 6.0, 9.0, 15.0, 25.0, 35.0)
SCALES = {np.float64: (1.5, 1e-100, 1e100), np.float32: (1.5, 1e-12, 1e12)}


def squares(name: str, dtype: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield a kernel, its profile in mpmath, and squared distances."""
    for sigma in SCALES[dtype][: 1 if name == "matern" else 3]:
        for make, profile in FAMILIES[name]:
            kernel = make(sigma)
            # elsewhere 1 - k is so small that Bessel functions would need hundreds of digits
            near = NEAR[dtype] if getattr(kernel, "nu", 0) <= 0.25 or name != "matern" else ()
            ratios = np.array([*(r for r in near if r * sigma > 1e-150), *RATIOS])
            with np.errstate(over="ignore", under="ignore"):
                s = ((ratios * sigma) ** 2).astype(dtype)
            s = s[(s > 10 * np.finfo(dtype).tiny) & np.isfinite(s)]
            yield kernel, partial(profile, sigma=exact(sigma)), s


def value_errors(name: str, dtype: Any) -> Iterator[Any]:
    """Yield errors of kernel values for exact squared distances.

    The relative error of exp(x) is x times that of x, so errors are divided by 1 + |log k|.
    """
    relative = name not in ABSOLUTE
    with digits(60):
        for kernel, profile, s in squares(name, dtype):
            block = np.stack([s, s])
            kernel._apply_profile(block[:1], None)
            kernel._apply_profile(block[1:], _loops)
            for found, x in zip(block.ravel(), [*s, *s], strict=True):
                right = profile(exact(x))
                size = right * (1 - mpmath.log(right)) if relative and right > 0 else 1
                if right > 1e3 * np.finfo(dtype).tiny or not relative:
                    yield abs(exact(found) - right) / size


def complement_errors(name: str, dtype: Any) -> Iterator[Any]:
    with digits(100 if name == "matern" else 340):
        for kernel, profile, s in squares(name, dtype):
            for found, x in zip(kernel.one_minus(s), s, strict=True):
                right = 1 - profile(exact(x))
                yield abs(exact(found) - right) / right


def distance_errors(name: str, dtype: Any) -> Iterator[Any]:
    """Yield errors of angles between two feature vectors."""
    with digits(100 if name == "matern" else 340):
        for kernel, profile, s in squares(name, dtype):
            lengths = np.sqrt(s.astype(np.float64)).astype(dtype)
            lengths = lengths[lengths < 10 * kernel.sigma]
            pairs = np.column_stack([lengths, 0 * lengths])
            found = geodesic_distances(pairs, np.zeros((1, 2), dtype=dtype), kernel=kernel)
            for theta, length in zip(found[:, 0], lengths, strict=True):
                k = profile(exact(length) ** 2)
                right = 2 * mpmath.atan2(mpmath.sqrt(1 - k), mpmath.sqrt(1 + k))
                yield abs(exact(theta) - right) / right


def of_family(name: str) -> None:
    slow = name == "matern"
    measurement(f"kernels.{name}", slow=slow)(lambda dtype: value_errors(name, dtype))
    measurement(f"complements.{name}", slow=slow)(lambda dtype: complement_errors(name, dtype))
    measurement(f"distances.{name}", slow=slow)(lambda dtype: distance_errors(name, dtype))


for family in FAMILIES:
    of_family(family)


def clouds(dtype: Any, d: int = 3) -> Any:
    """Return rows near 0 and far from it, with very near neighbours."""
    rng = np.random.default_rng(d)
    least = -140 if dtype == np.float64 else -14
    offsets = [10.0**power for power in (least, least / 2, -12, -8, -6, -4, -3, -2, -1, 0, 1)]
    rows = [center + offset * rng.normal(size=d) for center in (0.0, 40.0) for offset in offsets]
    return np.array(rows).astype(dtype)


@measurement("kernels.squared_distances")
def of_squared_distances(dtype: Any) -> Iterator[Any]:
    with digits(340):
        for d in (3, 60):
            X = clouds(dtype, d)
            found = squared_distances(*[kernels.Gaussian(1.0).fit(X).prepare(X)] * 2)
            rows = [vector(row) for row in X]
            for i, x in enumerate(rows):
                for j in range(i):
                    right = squared_distance(x, rows[j])
                    if right > 1e3 * np.finfo(dtype).tiny:
                        yield abs(exact(found[i, j]) - right) / right


@measurement("kernels.radial")
def of_radial_blocks(dtype: Any) -> Iterator[Any]:
    X = clouds(dtype)
    rows = [vector(row) for row in X]
    with digits(60):
        pairs = [
            (i, j, squared_distance(rows[i], rows[j]))
            for i, j in zip(*np.triu_indices(len(X), 1), strict=True)
        ]
        for sigma in (1e-3, 1.0, 30.0):
            for name in FAMILIES.keys() - {"matern"}:
                for make, profile in FAMILIES[name]:
                    block = make(sigma)(X)
                    for i, j, s in pairs:
                        right = profile(s, exact(sigma)) if s else 1
                        yield abs(exact(block[i, j]) - right)


def pairs_of(X: Any, Y: Any, kernel: Any) -> Iterator[tuple[Any, Vector, Vector]]:
    block = kernel(X, Y)
    lists = [[vector(row) for row in rows] for rows in (X, Y)]
    for i, x in enumerate(lists[0]):
        for j, y in enumerate(lists[1]):
            yield exact(block[i, j]), x, y


def two_sets(dtype: Any, *, positive: bool = False) -> tuple[Any, Any]:
    X = clouds(dtype)[4:]
    X = np.abs(X) if positive else X
    return X, X[::-1]


@measurement("kernels.unbounded")
def of_power_and_log(dtype: Any) -> Iterator[Any]:
    X, Y = two_sets(dtype)
    with digits(340):
        for beta in (0.5, 1.0, 2.0):
            half = mpmath.mpf(beta) / 2
            for found, x, y in pairs_of(X, Y, kernels.Power(beta)):
                right = squared_distance(x, y) ** half
                yield abs(found + right) / right if right else abs(found)
            for found, x, y in pairs_of(X, Y, kernels.Log(beta)):
                right = mpmath.log1p(squared_distance(x, y) ** half)
                yield abs(found + right) / right if right else abs(found)


@measurement("kernels.dot_products")
def of_dot_products(dtype: Any) -> Iterator[Any]:
    X, Y = two_sets(dtype)
    with digits(60):
        for found, x, y in pairs_of(X, Y, kernels.Linear()):
            yield abs(found - dot(x, y)) / (norm(x) * norm(y))
        gamma, c, degree = 0.25, 0.5, 7
        for found, x, y in pairs_of(X, Y, kernels.Polynomial(degree, gamma, c)):
            size = degree * (gamma * norm(x) * norm(y) + c) ** degree
            yield abs(found - (gamma * dot(x, y) + c) ** degree) / size
        for found, x, y in pairs_of(X, Y, kernels.Sigmoid(gamma, c)):
            yield abs(found - mpmath.tanh(gamma * dot(x, y) + c)) / (1 + norm(x) * norm(y))


def cosine(x: Vector, y: Vector) -> Any:
    return dot(x, y) / norm(x) / norm(y)


def normalized(x: Vector, y: Vector) -> Any:
    """Return (x·y/4 + 1)⁵ of normalised feature vectors."""
    xy, xx, yy = ((dot(a, b) / 4 + 1) ** 5 for a, b in ((x, y), (x, x), (y, y)))
    return xy / mpmath.sqrt(xx * yy)


def city_block(x: Vector, y: Vector) -> Any:
    return mpmath.fsum(abs(a - b) for a, b in zip(x, y, strict=True))


def chi2(x: Vector, y: Vector) -> Any:
    return mpmath.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True))


NORMALIZED = kernels.Normalized(kernels.Polynomial(5, 0.25, 1.0))


@measurement("kernels.cosine")
def of_cosine(dtype: Any) -> Iterator[Any]:
    """Also for rows whose squares nearly overflow or underflow."""
    X, _ = two_sets(dtype)
    lengths = (1.0, 1e-150, 1e150) if dtype == np.float64 else (1.0, 1e-16, 1e16)
    with digits(60):
        for length in lengths:
            Y = X / np.linalg.norm(X.astype(float), axis=1, keepdims=True) * length
            for found, x, y in pairs_of(Y.astype(dtype), X, kernels.Cosine()):
                yield abs(found - cosine(x, y))


@measurement("kernels.normalized")
def of_normalized(dtype: Any) -> Iterator[Any]:
    with digits(60):
        for found, x, y in pairs_of(*two_sets(dtype), NORMALIZED):
            yield abs(found - normalized(x, y))


def exponential_errors(dtype: Any, kernel: Any, formula: Any) -> Iterator[Any]:
    """Yield errors of exp(-formula / 2), where it is not too small."""
    for found, x, y in pairs_of(*two_sets(dtype, positive=formula is chi2), kernel):
        exponent = formula(x, y) / 2
        if exponent < 80:
            yield abs(found * mpmath.exp(exponent) - 1) / (1 + exponent)


@measurement("kernels.laplacian")
def of_laplacian(dtype: Any) -> Iterator[Any]:
    with digits(60):
        yield from exponential_errors(dtype, kernels.Laplacian(gamma=0.5), city_block)


@measurement("kernels.chi2")
def of_chi2(dtype: Any) -> Iterator[Any]:
    with digits(60):
        for found, x, y in pairs_of(*two_sets(dtype, positive=True), kernels.AdditiveChi2()):
            right = chi2(x, y)
            yield abs(found + right) / right if right else abs(found)
        yield from exponential_errors(dtype, kernels.Chi2(gamma=0.5), chi2)


@measurement("distances.from_values")
def of_distances_from_values(dtype: Any) -> Iterator[Any]:
    """Errors of θ² where only k is known."""
    X, Y = two_sets(dtype, positive=True)
    formulas: dict[Any, Callable[[Vector, Vector], Any]] = {
        kernels.Laplacian(gamma=0.5): lambda x, y: mpmath.exp(-city_block(x, y) / 2),
        kernels.Chi2(gamma=0.5): lambda x, y: mpmath.exp(-chi2(x, y) / 2),
        kernels.Cosine(): cosine,
        NORMALIZED: normalized,
    }
    with digits(60):
        for kernel, formula in formulas.items():
            found = geodesic_distances(X, Y, kernel=kernel)
            for i, x in enumerate(map(vector, X)):
                for j, y in enumerate(map(vector, Y)):
                    right = mpmath.acos(min(formula(x, y), mpmath.mpf(1)))
                    yield abs(exact(found[i, j]) ** 2 - right**2)


@measurement("kernels.geodesic")
def of_geodesic_kernel(dtype: Any) -> Iterator[Any]:
    """Errors of inner products of Log maps, relative to the larger squared length."""
    X, Y = two_sets(dtype)
    reference, sigma = X[3], exact(2.0)
    kernel = kernels.Geodesic(kernels.Gaussian(2.0), reference)
    with digits(120):

        def k(x: Vector, y: Vector) -> Any:
            return gaussian(squared_distance(x, y), sigma)

        def polar(x: Vector) -> tuple[Any, Any]:
            c = k(x, vector(reference))
            theta = mpmath.acos(c)
            return c, theta

        for found, x, y in pairs_of(X, Y, kernel):
            (c, theta), (e, phi) = polar(x), polar(y)
            if theta and phi:
                right = theta / mpmath.sin(theta) * (k(x, y) - c * e) * phi / mpmath.sin(phi)
                yield abs(found - right) / max(theta, phi) ** 2


def landmarks(dtype: Any) -> Any:
    """Return complex specimens, some with nearly the same shape."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(3, 6)) + 1j * rng.normal(size=(3, 6))
    near = [
        (z[i] + offset * (rng.normal(size=6) + 1j * rng.normal(size=6))) * turn + 3
        for i in (0, 1)
        for offset in (1e-7, 1e-5, 1e-3, 1e-2, 0.1)
        for turn in (1.0, 2j)
    ]
    complexes = np.complex64 if dtype == np.float32 else np.complex128
    return np.concatenate([z, near]).astype(complexes)


def preshape(specimen: Any) -> Vector:
    """Return a pre-shape as complex numbers of mpmath."""
    z = [mpmath.mpc(float(value.real), float(value.imag)) for value in specimen]
    center = mpmath.fsum(z) / len(z)
    size = mpmath.sqrt(mpmath.fsum(abs(value - center) ** 2 for value in z))
    return [(value - center) / size for value in z]


def hermitian(u: Vector, v: Vector) -> Any:
    return mpmath.fsum(mpmath.conj(a) * b for a, b in zip(u, v, strict=True))


#: Kernels of σ = 1/2, as functions of the Hermitian product of pre-shapes.
SHAPE_KERNELS: dict[Any, Callable[[Any], Any]] = {
    kernels.VeroneseWhitney(0.5): lambda product: mpmath.exp(-4 * (1 - abs(product) ** 2)),
    kernels.FullProcrustes(0.5): lambda product: mpmath.exp(-2 * (1 - abs(product) ** 2)),
    kernels.RiemannianShape(0.5): lambda product: mpmath.exp(
        -2 * mpmath.acos(min(abs(product), 1)) ** 2
    ),
    kernels.HermitianLinear(): lambda product: product,
}


@measurement("kernels.shapes")
def of_shape_kernels(dtype: Any) -> Iterator[Any]:
    Z = landmarks(dtype)
    with digits(40):
        shapes = [preshape(z) for z in Z]
        for kernel, formula in SHAPE_KERNELS.items():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "RiemannianShape is not positive definite")
                block = kernel(Z)
            for i, j in zip(*np.tril_indices(len(Z), -1), strict=True):
                found = mpmath.mpc(float(block[i, j].real), float(block[i, j].imag))
                yield abs(found - formula(hermitian(shapes[i], shapes[j])))


@measurement("kernels.complex_gaussian")
def of_complex_gaussian(dtype: Any) -> Iterator[Any]:
    Z = landmarks(dtype)
    kernel = kernels.ComplexGaussian(0.5).fit(Z)
    block = kernel(Z)
    with digits(40):
        center = preshape(kernel.mean_[:, 0] + 1j * kernel.mean_[:, 1])
        turned = []
        for u in map(preshape, Z):
            product = hermitian(u, center)
            turned.append([value * product / abs(product) for value in u])
        for i in range(len(Z)):
            for j in range(i):
                square = mpmath.fsum(
                    abs(a - b) ** 2 for a, b in zip(turned[i], turned[j], strict=True)
                )
                yield abs(exact(block[i, j]) - mpmath.exp(-2 * square))


@measurement("distances.shapes")
def of_distances_between_shapes(dtype: Any) -> Iterator[Any]:
    """Errors of angles under the Veronese-Whitney kernel."""
    Z = landmarks(dtype)
    found = geodesic_distances(Z, kernel=kernels.VeroneseWhitney(0.5))
    with digits(60):
        shapes = [preshape(z) for z in Z]
        for i, j in zip(*np.tril_indices(len(Z), -1), strict=True):
            k = mpmath.exp(-4 * (1 - abs(hermitian(shapes[i], shapes[j])) ** 2))
            right = 2 * mpmath.atan2(mpmath.sqrt(1 - k), mpmath.sqrt(1 + k))
            yield abs(exact(found[i, j]) - right)


@measurement("kernels.log_euclidean")
def of_log_euclidean(dtype: Any) -> Iterator[Any]:
    """Errors divided by the condition of the matrices."""
    rng = np.random.default_rng(6)
    spread = (0, 1, 2, 4, 8) if dtype == np.float64 else (0, 1, 2, 3)
    matrices = []
    for power in spread:
        q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        matrices.append((q * 10.0 ** np.array([-power / 2, 0, power / 2])) @ q.T)
        matrices.append(matrices[-1] * (1 + 1e-5))
    A = np.array(matrices).astype(dtype)
    A = (A + A.transpose(0, 2, 1)) / 2
    sigma = 8.0
    block = kernels.LogEuclidean(sigma)(A)
    with digits(60):
        logs, conditions = [], []
        for each in A:
            values, vectors = mpmath.eigsy(mpmath.matrix([vector(row) for row in each]))
            conditions.append(max(values) / min(values))
            logs.append(vectors * mpmath.diag([mpmath.log(x) for x in values]) * vectors.T)
        for i in range(len(A)):
            for j in range(i):
                difference = logs[i] - logs[j]
                square = mpmath.fsum(x**2 for x in difference)
                right = mpmath.exp(-square / (2 * sigma**2))
                yield abs(exact(block[i, j]) - right) / max(conditions[i], conditions[j])
