"""Kernels and their slow oracles; a kernel joins the laws by one line in CASES.

The oracles of radial kernels are formulas in mpmath with 60 digits, for values, derivatives and
1 - k at tiny distances; the others are plain loops over coordinates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone

from oracles import digits, mpmath, squared_distance, vector
from orthodrome import kernels

DIGITS = 60
SIGMA = 1.5
DTYPES = [np.float64, np.float32]

# Units in the last place of the largest value, for what a block of moderate numbers accumulates:
# 1e-12 in float64, 1e-5 in float32.
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


def tolerance(dtype) -> float:
    return TOLERANCE[np.dtype(dtype)]


def gaussian(s, sigma):
    return mpmath.exp(-s / (2 * sigma**2))


def exponential(s, sigma):
    return mpmath.exp(-mpmath.sqrt(s) / sigma)


def matern(nu: float) -> Callable:
    def profile(s, sigma):
        u = mpmath.sqrt(2 * mpmath.mpf(nu) * s) / sigma
        if not u:
            return mpmath.mpf(1)
        return 2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * u**nu * mpmath.besselk(nu, u)

    return gaussian if math.isinf(nu) else profile


def rational_quadratic(alpha: float) -> Callable:
    return lambda s, sigma: (1 + s / (2 * mpmath.mpf(alpha) * sigma**2)) ** -mpmath.mpf(alpha)


def spherical(s, sigma):
    t = min(mpmath.sqrt(s) / sigma, mpmath.mpf(1))
    return 1 - 3 * t / 2 + t**3 / 2


def circular(s, sigma):
    t = min(mpmath.sqrt(s) / sigma, mpmath.mpf(1))
    return 2 / mpmath.pi * (mpmath.acos(t) - t * mpmath.sqrt(1 - t * t))


def wave(s, sigma):
    t = mpmath.sqrt(s) / sigma
    return mpmath.sin(t) / t if t else mpmath.mpf(1)


def dot(x, y) -> float:
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def cityblock(x, y) -> float:
    return math.fsum(abs(a - b) for a, b in zip(x, y, strict=True))


def chi_squared(x, y) -> float:
    return math.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0)


def normalized(k) -> Callable[..., float]:
    return lambda x, y: k(x, y) / math.sqrt(k(x, x) * k(y, y))


def geodesic(k, reference, coefficients=(1.0,)) -> Callable[..., float]:
    """The kernel of Log maps as eq. (15) of its paper, with a reference of several points."""
    pairs = list(zip(coefficients, reference, strict=True))
    length = math.sqrt(sum(a * b * k(r, s) for a, r in pairs for b, s in pairs))

    def cosine(x) -> float:
        return sum(a * k(x, r) for a, r in pairs) / length

    def oracle(x, y) -> float:
        c, d = cosine(x), cosine(y)
        stretch = math.acos(c) / math.sqrt(1 - c * c) * math.acos(d) / math.sqrt(1 - d * d)
        return stretch * (k(x, y) - c * d)

    return oracle


def bent(X):
    """An embedding for Embedded: three coordinates to four; importable, so that it pickles."""
    X = np.asarray(X)
    return np.column_stack([X[:, 0] ** 2, np.abs(X[:, 1]), X[:, 2], X[:, 0] * X[:, 1]])


def squared_plus_one(X, Y):
    """A callable kernel; importable, so that it pickles."""
    products = X @ Y.T
    return (products.toarray() if hasattr(products, "toarray") else products) ** 2 + 1


@dataclass(frozen=True)
class Case:
    """A kernel with numbers for parameters and k(x, y) of two rows of three numbers, slowly."""

    kernel: kernels.Kernel
    oracle: Callable[..., float]
    profile: Callable | None = None
    nonnegative: bool = False

    def make(self) -> kernels.Kernel:
        return clone(self.kernel)

    def data(self, n: int, seed: int = 0, dtype=np.float64) -> np.ndarray:
        """Rows for this kernel, within a few scales of one another."""
        X = np.random.default_rng(seed).normal(size=(n, 3))
        return (np.abs(X) if self.nonnegative else X).astype(dtype)

    def block(self, X, Y) -> np.ndarray:
        """The block k(X, Y) by the oracle, one entry at a time."""
        return np.array([[self.oracle(x.tolist(), y.tolist()) for y in Y] for x in X])


def radial(kernel: kernels.Kernel, profile: Callable, embedding=None) -> Case:
    """A case whose oracle is a function of the squared distance, in mpmath."""

    def oracle(x, y) -> float:
        if embedding is not None:
            x, y = embedding(np.array([x, y])).tolist()
        with digits(DIGITS):
            return float(profile(squared_distance(vector(x), vector(y))))

    return Case(kernel, oracle, profile)


def scaled(kernel_class: type[kernels.Radial], profile: Callable, **parameters) -> Case:
    return radial(kernel_class(sigma=SIGMA, **parameters), partial(profile, sigma=SIGMA))


ORDERS = [0.5, 0.7, 1.5, 2.5, 3.2, 40.3, 90.5, math.inf]
CASES = {
    "gaussian": scaled(kernels.Gaussian, gaussian),
    "rbf": radial(kernels.RBF(gamma=0.25), lambda s: mpmath.exp(-s / 4)),
    "exponential": scaled(kernels.Exponential, exponential),
    **{f"matern-{nu}": scaled(kernels.Matern, matern(nu), nu=nu) for nu in ORDERS},
    "rational_quadratic": scaled(kernels.RationalQuadratic, rational_quadratic(1.7), alpha=1.7),
    "spherical": scaled(kernels.Spherical, spherical),
    "circular": scaled(kernels.Circular, circular),
    "wave": scaled(kernels.Wave, wave),
    "power-1": radial(kernels.Power(beta=1.0), lambda s: -mpmath.sqrt(s)),
    "power-2": radial(kernels.Power(beta=2.0), lambda s: -s),
    "log-1": radial(kernels.Log(beta=1.0), lambda s: -mpmath.log1p(mpmath.sqrt(s))),
    "log-2": radial(kernels.Log(beta=2.0), lambda s: -mpmath.log1p(s)),
    "linear": Case(kernels.Linear(), dot),
    "polynomial": Case(
        kernels.Polynomial(degree=3, gamma=0.3, coef0=0.5),
        lambda x, y: (0.3 * dot(x, y) + 0.5) ** 3,
    ),
    "sigmoid": Case(
        kernels.Sigmoid(gamma=0.3, coef0=0.2), lambda x, y: math.tanh(0.3 * dot(x, y) + 0.2)
    ),
    "cosine": Case(kernels.Cosine(), normalized(dot)),
    "laplacian": Case(kernels.Laplacian(gamma=0.4), lambda x, y: math.exp(-0.4 * cityblock(x, y))),
    "chi2": Case(
        kernels.Chi2(gamma=0.7), lambda x, y: math.exp(-0.7 * chi_squared(x, y)), nonnegative=True
    ),
    "additive_chi2": Case(
        kernels.AdditiveChi2(), lambda x, y: -chi_squared(x, y), nonnegative=True
    ),
    "normalized-polynomial": Case(
        kernels.Normalized(kernels.Polynomial(degree=2, gamma=0.3, coef0=1.0)),
        normalized(lambda x, y: (0.3 * dot(x, y) + 1.0) ** 2),
    ),
    "normalized-linear": Case(kernels.Normalized("linear"), normalized(dot)),
    "embedded": radial(
        kernels.Embedded(bent, kernels.Gaussian(SIGMA)),
        partial(gaussian, sigma=SIGMA),
        embedding=bent,
    ),
    "callable": Case(kernels.FromCallable(squared_plus_one), lambda x, y: dot(x, y) ** 2 + 1),
}

# two points of reference, and one; the inner kernels have positive values only
POINT, POINTS = [0.3, -1.2, 0.5], [[0.1, 0.7, -0.4], [1.0, 0.2, 0.3]]
positive = normalized(lambda x, y: (0.3 * dot(x, y) + 1.0) ** 2)
CASES |= {
    "geodesic": Case(
        kernels.Geodesic(kernels.Gaussian(sigma=1.5), POINT),
        geodesic(CASES["gaussian"].oracle, [POINT]),
    ),
    "geodesic-expansion": Case(
        kernels.Geodesic(kernels.Gaussian(sigma=1.5), POINTS, [2.0, 1.0]),
        geodesic(CASES["gaussian"].oracle, POINTS, [2.0, 1.0]),
    ),
    "geodesic-polynomial": Case(
        kernels.Geodesic(
            kernels.Normalized(kernels.Polynomial(degree=2, gamma=0.3, coef0=1.0)), POINT
        ),
        geodesic(positive, [POINT]),
    ),
}

RADIAL = {name: case for name, case in CASES.items() if isinstance(case.kernel, kernels.Radial)}
