"""Data and naive oracles for planar shapes and positive definite matrices."""

import warnings

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

FORMS = ["complex", "points", "flat"]
every_form = pytest.mark.parametrize("form", FORMS)


PLAIN = """LM=3
1.5 2.75
100 0.25
3 4
IMAGE=photos/edulis_1.jpg
ID=edulis_1
SCALE=0.5
LM=3
5 6
7 8
9 10.5
IMAGE=photos/caerulea_2.jpg
ID=caerulea_2
SCALE=0.25
"""
POINTS = np.array([[[1.5, 2.75], [100, 0.25], [3, 4]], [[5, 6], [7, 8], [9, 10.5]]])


def landmarks(n: int = 12, k: int = 5, seed: int = 0) -> NDArray:
    """Specimens of no particular shape, complex, each with its own place and size."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, k)) + 1j * rng.standard_normal((n, k))
    return z * rng.uniform(0.5, 3, (n, 1)) + 5 * rng.standard_normal((n, 1))


def near(n: int = 12, k: int = 5, seed: int = 0, spread: float = 0.1) -> NDArray:
    """Specimens of about the same shape, complex, turned in every direction."""
    rng = np.random.default_rng(seed)
    base = np.exp(2j * np.pi * np.arange(k) / k) * (1 + 0.3 * np.arange(k) / k)
    noise = rng.standard_normal((n, k)) + 1j * rng.standard_normal((n, k))
    return moved(base + spread * noise, seed + 1)


def moved(z: NDArray, seed: int = 0) -> NDArray:
    """Each specimen elsewhere, of another size, and turned; all three by moderate numbers."""
    rng = np.random.default_rng(seed)
    n = len(z)
    place = 3 * (rng.standard_normal((n, 1)) + 1j * rng.standard_normal((n, 1)))
    factor = rng.uniform(0.3, 4, (n, 1)) * np.exp(1j * rng.uniform(0, 2 * np.pi, (n, 1)))
    return factor * z + place


def three_leaves(n: int = 45, seed: int = 0, spread: float = 0.25) -> tuple[NDArray, NDArray]:
    """Three kinds of six landmarks that overlap, turned and placed at random, with names."""
    rng = np.random.default_rng(seed)
    angles = np.exp(2j * np.pi * np.arange(6) / 6)
    kinds = np.array([angles, angles * [1, 0.6, 1, 0.6, 1, 0.6], angles.real + 0.5j * angles.imag])
    which = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    noise = rng.standard_normal((n, 6)) + 1j * rng.standard_normal((n, 6))
    return moved(kinds[which] + spread * noise, seed + 1), np.array(["fern", "ivy", "rue"])[which]


def in_form(z: NDArray, form: str) -> NDArray:
    """Complex landmarks (n, k) or (k,) in a form."""
    if form == "complex":
        return z
    points = np.stack([z.real, z.imag], axis=-1)
    return points if form == "points" else points.reshape(*z.shape[:-1], -1)


def naive_preshape(z: NDArray) -> NDArray:
    """(z - mean)/norm of one specimen, one landmark at a time."""
    mean = sum(z) / len(z)
    size = sum(abs(value - mean) ** 2 for value in z) ** 0.5
    return np.array([(value - mean) / size for value in z])


def naive_embedding(z: NDArray) -> NDArray:
    """The k x k matrix uu* of one specimen."""
    u = naive_preshape(z)
    return np.outer(u, u.conj())


def naive_extrinsic(X: NDArray, Y: NDArray) -> NDArray:
    """‖uu* - vv*‖_F, a pair at a time."""
    return np.array(
        [[np.linalg.norm(naive_embedding(a) - naive_embedding(b)) for b in Y] for a in X]
    )


def naive_cosines(X: NDArray, Y: NDArray) -> NDArray:
    """|u*v|, a pair at a time."""
    return np.array([[abs(np.vdot(naive_preshape(a), naive_preshape(b))) for b in Y] for a in X])


def naive_hermitian_ridge(members: NDArray, z: NDArray, alpha: float) -> float:
    """‖u - Uβ‖² with β = (U*U + λ)⁻¹U*u, as (6) and (7) of the paper have it."""
    U = np.column_stack([naive_preshape(member) for member in members])
    u = naive_preshape(z)
    beta = np.linalg.solve(U.conj().T @ U + alpha * np.eye(U.shape[1]), U.conj().T @ u)
    return float(np.linalg.norm(u - U @ beta) ** 2)


def matrices(n: int = 10, d: int = 3, seed: int = 0) -> NDArray:
    """Positive definite matrices of different sizes and orientations."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, d, 2 * d + 3))
    return factors @ factors.transpose(0, 2, 1) * rng.uniform(0.2, 3, (n, 1, 1))


def two_kinds_of_matrices(n: int = 40, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Covariances of few observations whose axes differ between two classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    scales = np.array([[3.0, 1.0, 1.0], [1.0, 1.0, 3.0]])[y]
    samples = rng.standard_normal((n, 15, 3)) * scales[:, None, :]
    return np.einsum("nij,nik->njk", samples, samples) / 15, np.array(["long", "wide"])[y]


def naive_log(A: NDArray) -> NDArray:
    """SciPy's logarithms, a matrix at a time."""
    with warnings.catch_warnings():  # its estimate of its own error is far too large
        warnings.filterwarnings("ignore", "logm result may be inaccurate")
        return np.array([scipy.linalg.logm(matrix) for matrix in A])


def naive_log_distance(A: NDArray, B: NDArray) -> NDArray:
    return np.array([[np.linalg.norm(a - b) for b in naive_log(B)] for a in naive_log(A)])
