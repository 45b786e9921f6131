"""Kernels and their slow oracles; a kernel joins the laws by one line in CASES.

The oracles of radial kernels are formulas in `decimal` with 60 digits, for values, derivatives and
1 - k at tiny distances; the others are plain loops over coordinates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from sklearn.base import clone

from orthodrome.kernels import (
    RBF,
    AdditiveChi2,
    Chi2,
    Circular,
    Cosine,
    Embedded,
    Exponential,
    FromCallable,
    Gaussian,
    Geodesic,
    Kernel,
    Laplacian,
    Linear,
    Log,
    Matern,
    Normalized,
    Polynomial,
    Power,
    Radial,
    RationalQuadratic,
    Sigmoid,
    Spherical,
    Wave,
)

DIGITS = 60
DTYPES = [np.float64, np.float32]

# Units in the last place of the largest value, for what a block of moderate numbers accumulates:
# 1e-12 in float64 (the promise of the issue), 1e-5 in float32.
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


def tolerance(dtype) -> float:
    return TOLERANCE[np.dtype(dtype)]


# Decimal functions that the module does not have -------------------------------------------------

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def power(base: Decimal, exponent: Decimal) -> Decimal:
    return (exponent * base.ln()).exp() if base else Decimal(0)


def alternating(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """Sum a series from its first term and the ratios of consecutive terms."""
    total = term = first
    for n in range(1, 2000):
        term *= ratio(n)
        total += term
        if abs(term) <= abs(total) * Decimal(10) ** -DIGITS:
            return total
    raise ArithmeticError("the series of an oracle did not converge")


def sine(t: Decimal) -> Decimal:
    return alternating(t, lambda n: -t * t / (2 * n * (2 * n + 1)))


def arctangent(x: Decimal) -> Decimal:
    """Euler's series, after halving the angle until it converges fast."""
    halvings = 0
    while abs(x) > Decimal("0.1"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    y = x * x / (1 + x * x)
    series = alternating(x / (1 + x * x), lambda n: y * 2 * n / (2 * n + 1))
    return series * 2**halvings


def arccosine(t: Decimal) -> Decimal:
    return 2 * arctangent(((1 - t) / (1 + t)).sqrt())


def bernoulli(n: int) -> list[Fraction]:
    """The numbers B_0 … B_n, by their recurrence."""
    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum(math.comb(m + 1, k) * numbers[k] for k in range(m)) / (m + 1))
    return numbers


BERNOULLI = bernoulli(40)


def gamma(x: Decimal) -> Decimal:
    """Γ(x) for x > 0: Stirling's series at x + 40, divided back; good to 45 digits."""
    z, product = x, Decimal(1)
    for _ in range(40):
        product, z = product * z, z + 1
    log = (z - Decimal("0.5")) * z.ln() - z + (2 * PI).ln() / 2
    for k in range(2, 41, 2):
        term = Decimal(BERNOULLI[k].numerator) / Decimal(BERNOULLI[k].denominator)
        log += term / (k * (k - 1) * z ** (k - 1))
    return log.exp() / product


def matern_series(s: Decimal, nu: Decimal, sigma: Decimal) -> Decimal:
    """Γ(1-ν) (u/2)^ν (I_-ν(u) - I_ν(u)), for ν not an integer."""
    q = nu * s / (2 * sigma * sigma)  # (u/2)²
    regular = alternating(Decimal(1), lambda n: q / (n * (n - nu)))
    if nu > 60:  # the other part is below 1e-50
        return regular
    # Γ(1-ν)/Γ(1+ν) by reflection; in floats its rounding, times the series, would reach 1e-12
    constant = PI / (sine(PI * (nu % 2)) * nu * gamma(nu) ** 2)
    singular = alternating(Decimal(1), lambda n: q / (n * (n + nu)))
    return regular - constant * power(q, nu) * singular


# Profiles h(d²) in Decimal -----------------------------------------------------------------------

SIGMA = Decimal("1.5")  # exact in binary


def gaussian(s: Decimal) -> Decimal:
    return (-s / (2 * SIGMA**2)).exp()


def exponential(s: Decimal) -> Decimal:
    return (-s.sqrt() / SIGMA).exp()


def matern(nu: float) -> Callable[[Decimal], Decimal]:
    def closed(s: Decimal) -> Decimal:
        u = (2 * Decimal(nu) * s).sqrt() / SIGMA
        polynomial = {0.5: Decimal(1), 1.5: 1 + u, 2.5: 1 + u + u * u / 3}[nu]
        return polynomial * (-u).exp()

    if nu in (0.5, 1.5, 2.5):
        return closed
    return gaussian if math.isinf(nu) else lambda s: matern_series(s, Decimal(nu), SIGMA)


def rational_quadratic(alpha: float) -> Callable[[Decimal], Decimal]:
    a = Decimal(alpha)
    return lambda s: power(1 + s / (2 * a * SIGMA**2), -a)


def spherical(s: Decimal) -> Decimal:
    t = min(s.sqrt() / SIGMA, Decimal(1))
    return 1 - 3 * t / 2 + t**3 / 2


def circular(s: Decimal) -> Decimal:
    t = min(s.sqrt() / SIGMA, Decimal(1))
    return 2 / PI * (arccosine(t) - t * (1 - t * t).sqrt())


def wave(s: Decimal) -> Decimal:
    t = s.sqrt() / SIGMA
    return sine(t) / t if t else Decimal(1)


def minus_power(beta: float) -> Callable[[Decimal], Decimal]:
    return lambda s: -power(s, Decimal(beta) / 2)


def minus_log(beta: float) -> Callable[[Decimal], Decimal]:
    return lambda s: -(1 + power(s, Decimal(beta) / 2)).ln()


# Kernels of two rows as plain loops --------------------------------------------------------------


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


# The registry ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A kernel with numbers for parameters and k(x, y) of two rows of three numbers, slowly."""

    kernel: Kernel
    oracle: Callable[..., float]
    profile: Callable[[Decimal], Decimal] | None = None
    nonnegative: bool = False

    def make(self) -> Kernel:
        return clone(self.kernel)

    def data(self, n: int, seed: int = 0, dtype=np.float64) -> np.ndarray:
        """Rows for this kernel, within a few scales of one another."""
        X = np.random.default_rng(seed).normal(size=(n, 3))
        return (np.abs(X) if self.nonnegative else X).astype(dtype)

    def block(self, X, Y) -> np.ndarray:
        """The block k(X, Y) by the oracle, one entry at a time."""
        return np.array([[self.oracle(x.tolist(), y.tolist()) for y in Y] for x in X])


def radial(kernel: Radial, profile: Callable[[Decimal], Decimal], embedding=None) -> Case:
    """A case whose oracle is a function of the squared distance, exact in Decimal."""

    def oracle(x, y) -> float:
        if embedding is not None:
            x, y = embedding(np.array([x, y])).tolist()
        with localcontext(prec=DIGITS):
            squared = sum((Decimal(a) - Decimal(b)) ** 2 for a, b in zip(x, y, strict=True))
            return float(profile(squared))

    return Case(kernel, oracle, profile)


CASES = {
    "gaussian": radial(Gaussian(sigma=1.5), gaussian),
    "rbf": radial(RBF(gamma=0.25), lambda s: (-s / 4).exp()),
    "exponential": radial(Exponential(sigma=1.5), exponential),
    "matern-0.5": radial(Matern(nu=0.5, sigma=1.5), matern(0.5)),
    "matern-0.7": radial(Matern(nu=0.7, sigma=1.5), matern(0.7)),
    "matern-1.5": radial(Matern(nu=1.5, sigma=1.5), matern(1.5)),
    "matern-2.5": radial(Matern(nu=2.5, sigma=1.5), matern(2.5)),
    "matern-3.2": radial(Matern(nu=3.2, sigma=1.5), matern(3.2)),
    "matern-40.3": radial(Matern(nu=40.3, sigma=1.5), matern(40.3)),
    "matern-400.5": radial(Matern(nu=400.5, sigma=1.5), matern(400.5)),
    "matern-inf": radial(Matern(nu=math.inf, sigma=1.5), matern(math.inf)),
    "rational_quadratic": radial(RationalQuadratic(alpha=1.7, sigma=1.5), rational_quadratic(1.7)),
    "spherical": radial(Spherical(sigma=1.5), spherical),
    "circular": radial(Circular(sigma=1.5), circular),
    "wave": radial(Wave(sigma=1.5), wave),
    "power-1": radial(Power(beta=1.0), minus_power(1.0)),
    "power-2": radial(Power(beta=2.0), minus_power(2.0)),
    "log-1": radial(Log(beta=1.0), minus_log(1.0)),
    "log-2": radial(Log(beta=2.0), minus_log(2.0)),
    "linear": Case(Linear(), dot),
    "polynomial": Case(
        Polynomial(degree=3, gamma=0.3, coef0=0.5), lambda x, y: (0.3 * dot(x, y) + 0.5) ** 3
    ),
    "sigmoid": Case(Sigmoid(gamma=0.3, coef0=0.2), lambda x, y: math.tanh(0.3 * dot(x, y) + 0.2)),
    "cosine": Case(Cosine(), normalized(dot)),
    "laplacian": Case(Laplacian(gamma=0.4), lambda x, y: math.exp(-0.4 * cityblock(x, y))),
    "chi2": Case(
        Chi2(gamma=0.7), lambda x, y: math.exp(-0.7 * chi_squared(x, y)), nonnegative=True
    ),
    "additive_chi2": Case(AdditiveChi2(), lambda x, y: -chi_squared(x, y), nonnegative=True),
    "normalized-polynomial": Case(
        Normalized(Polynomial(degree=2, gamma=0.3, coef0=1.0)),
        normalized(lambda x, y: (0.3 * dot(x, y) + 1.0) ** 2),
    ),
    "normalized-linear": Case(Normalized("linear"), normalized(dot)),
    "embedded": radial(Embedded(bent, Gaussian(sigma=1.5)), gaussian, embedding=bent),
    "callable": Case(FromCallable(squared_plus_one), lambda x, y: dot(x, y) ** 2 + 1),
}

# two points of reference, and one; the inner kernels have positive values only
POINT, POINTS = [0.3, -1.2, 0.5], [[0.1, 0.7, -0.4], [1.0, 0.2, 0.3]]
positive = normalized(lambda x, y: (0.3 * dot(x, y) + 1.0) ** 2)
CASES |= {
    "geodesic": Case(
        Geodesic(Gaussian(sigma=1.5), POINT), geodesic(CASES["gaussian"].oracle, [POINT])
    ),
    "geodesic-expansion": Case(
        Geodesic(Gaussian(sigma=1.5), POINTS, [2.0, 1.0]),
        geodesic(CASES["gaussian"].oracle, POINTS, [2.0, 1.0]),
    ),
    "geodesic-polynomial": Case(
        Geodesic(Normalized(Polynomial(degree=2, gamma=0.3, coef0=1.0)), POINT),
        geodesic(positive, [POINT]),
    ),
}

RADIAL = {name: case for name, case in CASES.items() if isinstance(case.kernel, Radial)}
