"""Simulated data: directions on a subsphere, spirals, landmark shapes."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from .._core.checks import check_finite_vector, check_flag, check_integer, check_positive
from .._core.memory import format_bytes
from .._core.random import as_random_state
from .._core.types import Floats

# 512 GiB in double precision.
_MAX_ELEMENTS = 2**36

Labelled = tuple[Floats, NDArray[np.int64]]


def make_von_mises_fisher(
    n_samples: int = 100,
    n_dimensions: int = 3,
    sphere_dimension: int = 2,
    concentration: float = 10.0,
    *,
    mean_direction: ArrayLike | None = None,
    random_state: int | RandomState | None = None,
) -> Floats:
    r"""Draw von Mises-Fisher distributed unit vectors on a random subsphere of R^d.

    .. math::

        x = B s, \qquad s \in S^m, \qquad p(s) \propto \exp(\kappa \, s_1), \qquad B e_1 = \mu,

    where the orthonormal columns of B (d x (m + 1)) start with the mean direction and are
    otherwise uniformly random. They span a great subsphere of dimension m.

    Parameters
    ----------
    n_samples : int, default=100
        Number of vectors.
    n_dimensions : int, default=3
        Dimension d of the ambient space.
    sphere_dimension : int, default=2
        Dimension m of the subsphere, from 1 (a circle) to d - 1 (the whole sphere).
    concentration : float, default=10.0
        The concentration κ; 0 gives the uniform distribution on the subsphere.
    mean_direction : array-like of shape (n_dimensions,), default=None
        The mean direction μ, of any nonzero length. By default it is random.
    random_state : int, RandomState or None, default=None
        Pass an int for reproducible data.

    Returns
    -------
    X : ndarray of shape (n_samples, n_dimensions)
        Unit vectors; the rank of X is at most m + 1.

    See Also
    --------
    scipy.stats.vonmises_fisher : Draws the vectors on S^m.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.datasets import make_von_mises_fisher
    >>> X = make_von_mises_fisher(50, n_dimensions=100, sphere_dimension=2, random_state=0)
    >>> X.shape, int(np.linalg.matrix_rank(X))
    ((50, 100), 3)
    """
    owner = "make_von_mises_fisher"
    check_integer(n_samples, "n_samples", owner)
    check_integer(n_dimensions, "n_dimensions", owner, minimum=2)
    check_integer(sphere_dimension, "sphere_dimension", owner, minimum=1, maximum=n_dimensions - 1)
    concentration = check_positive(concentration, "concentration", owner, or_zero=True)
    _check_size(owner, n_samples * n_dimensions, n_dimensions * (sphere_dimension + 1))
    generator = as_random_state(random_state, owner)
    basis = _random_basis(n_dimensions, sphere_dimension + 1, mean_direction, generator)
    north = np.eye(sphere_dimension + 1)[0]
    if concentration == 0:
        # SciPy's vonmises_fisher requires a positive concentration.
        points = stats.uniform_direction.rvs(north.size, size=n_samples, random_state=generator)
    else:
        points = stats.vonmises_fisher.rvs(north, concentration, n_samples, generator)
    embedded: Floats = np.reshape(points, (n_samples, north.size)) @ basis.T
    return np.asarray(embedded / np.linalg.norm(embedded, axis=1, keepdims=True))


def _random_basis(
    n_dimensions: int, n_vectors: int, first: ArrayLike | None, generator: RandomState
) -> Floats:
    """Return orthonormal columns, uniformly random except for a given first direction."""
    vectors = generator.standard_normal((n_dimensions, n_vectors))
    if first is not None:
        owner = "make_von_mises_fisher"
        direction = check_finite_vector(first, n_dimensions, "mean_direction", owner)
        largest = np.abs(direction).max()
        if largest == 0:
            raise ValueError(
                "mean_direction of make_von_mises_fisher must not be the zero vector; pass None "
                "for a random direction."
            )
        vectors[:, 0] = direction / largest
    basis, triangle = np.linalg.qr(vectors)
    # With a positive diagonal, the first column keeps its direction and the others are Haar random.
    return np.asarray(basis * np.where(np.diag(triangle) < 0, -1.0, 1.0))


def make_spirals(
    n_samples: int = 200,
    n_arms: int = 2,
    *,
    noise: float = 0.02,
    n_turns: float = 1.0,
    shuffle: bool = True,
    random_state: int | RandomState | None = None,
) -> Labelled:
    r"""Draw interleaved Archimedean spirals in the plane, one class per arm.

    .. math::

        x = r \, \bigl(\cos \varphi, \sin \varphi\bigr) + \epsilon, \qquad
        \varphi = 2 \pi \Bigl(T r + \frac{a}{A}\Bigr), \qquad
        \epsilon \sim N(0, \sigma^2 I),

    for arm a of A, with T turns per unit of radius. The radius is :math:`r = 0.1 + 0.9 \sqrt{u}`
    with u uniform on [0, 1], so that the points are spread roughly evenly along the arm.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points. Class sizes differ by at most one; the first classes are larger.
    n_arms : int, default=2
        Number A of arms.
    noise : float, default=0.02
        Standard deviation σ of the noise on each coordinate.
    n_turns : float, default=1.0
        Turns T around the centre per unit of radius.
    shuffle : bool, default=True
        Shuffle the rows; otherwise they are sorted by class.
    random_state : int, RandomState or None, default=None
        Pass an int for reproducible data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points.
    y : ndarray of shape (n_samples,)
        Arm of each point, 0 to n_arms - 1.

    Examples
    --------
    >>> from orthodrome.datasets import make_spirals
    >>> X, y = make_spirals(7, n_arms=3, shuffle=False, random_state=0)
    >>> X.shape, y.tolist()
    ((7, 2), [0, 0, 0, 1, 1, 2, 2])
    """
    owner = "make_spirals"
    check_integer(n_arms, "n_arms", owner)
    check_integer(n_samples, "n_samples", owner, minimum=n_arms)
    noise = check_positive(noise, "noise", owner, or_zero=True)
    n_turns = check_positive(n_turns, "n_turns", owner, or_zero=True)
    check_flag(shuffle, "shuffle", owner)
    _check_size(owner, 2 * n_samples)
    generator = as_random_state(random_state, owner)
    labels = _balanced_labels(n_samples, n_arms, shuffle, generator)
    radius = 0.1 + 0.9 * np.sqrt(generator.uniform(size=n_samples))
    angle = 2 * np.pi * (n_turns * radius + labels / n_arms)
    points = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return points + noise * generator.standard_normal(points.shape), labels


def make_landmark_shapes(
    n_samples: int = 150,
    n_landmarks: int = 10,
    n_classes: int = 3,
    *,
    variation: float = 0.1,
    shuffle: bool = True,
    random_state: int | RandomState | None = None,
) -> Labelled:
    r"""Draw planar landmark configurations from noisy class templates.

    Each configuration is rotated, scaled and translated at random.

    With landmarks as complex numbers, sample n of class c is

    .. math::

        z_n = s_n e^{i \theta_n} (w_c + \epsilon_n) + t_n, \qquad
        \theta_n \sim U[0, 2 \pi), \quad \log s_n \sim U[-\log 2, \log 2], \quad
        t_n \sim N(0, I),

    where the template :math:`w_c` is centred and of unit norm, and the noise is Gaussian with
    :math:`E \|\epsilon_n\|^2` = variation². The templates are star-shaped outlines: at the
    angles :math:`\varphi_j = 2 \pi j / k` the radius is
    :math:`\exp(\sum_{h=1}^{4} a_h \cos(h \varphi_j + b_h))` with
    :math:`a_h \sim N(0, 0.3^2)`, :math:`b_h \sim U[0, 2 \pi)`.

    Parameters
    ----------
    n_samples : int, default=150
        Number of configurations. Class sizes differ by at most one; the first classes are larger.
    n_landmarks : int, default=10
        Number k of landmarks per configuration, at least 3.
    n_classes : int, default=3
        Number of templates.
    variation : float, default=0.1
        Size of the landmark noise relative to the template; 0 gives exact copies.
    shuffle : bool, default=True
        Shuffle the rows; otherwise they are sorted by class.
    random_state : int, RandomState or None, default=None
        Pass an int for reproducible data.

    Returns
    -------
    X : ndarray of shape (n_samples, n_landmarks, 2)
        Landmarks.
    y : ndarray of shape (n_samples,)
        Class of each configuration, 0 to n_classes - 1.

    Examples
    --------
    >>> from orthodrome.datasets import make_landmark_shapes
    >>> X, y = make_landmark_shapes(12, n_landmarks=5, random_state=0)
    >>> X.shape, sorted(y.tolist())
    ((12, 5, 2), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """
    owner = "make_landmark_shapes"
    check_integer(n_classes, "n_classes", owner)
    check_integer(n_samples, "n_samples", owner, minimum=n_classes)
    check_integer(n_landmarks, "n_landmarks", owner, minimum=3)
    check_flag(shuffle, "shuffle", owner)
    variation = check_positive(variation, "variation", owner, or_zero=True)
    _check_size(owner, 2 * n_samples * n_landmarks, 4 * n_classes * n_landmarks)
    generator = as_random_state(random_state, owner)
    templates = _shape_templates(n_classes, n_landmarks, generator)
    labels = _balanced_labels(n_samples, n_classes, shuffle, generator)
    # variation² is the expected squared norm over 2 k real coordinates.
    noise = _complex_normal((n_samples, n_landmarks), generator)
    noise = noise * variation / math.sqrt(2 * n_landmarks)
    angle = generator.uniform(0.0, 2 * np.pi, size=(n_samples, 1))
    scale = 2.0 ** generator.uniform(-1.0, 1.0, size=(n_samples, 1))
    shift = _complex_normal((n_samples, 1), generator)
    configurations = scale * np.exp(1j * angle) * (templates[labels] + noise) + shift
    return np.stack([configurations.real, configurations.imag], axis=-1), labels


def _shape_templates(
    n_classes: int, n_landmarks: int, generator: RandomState
) -> NDArray[np.complex128]:
    """Return star-shaped outlines as complex rows, centred and of unit norm."""
    harmonics = np.arange(1, 5)
    angle = 2 * np.pi * np.arange(n_landmarks) / n_landmarks
    amplitude = generator.normal(0.0, 0.3, size=(n_classes, harmonics.size, 1))
    phase = generator.uniform(0.0, 2 * np.pi, size=(n_classes, harmonics.size, 1))
    waves = amplitude * np.cos(harmonics[:, None] * angle + phase)  # (classes, harmonics, k)
    outlines = np.exp(waves.sum(axis=1) + 1j * angle)
    outlines -= outlines.mean(axis=1, keepdims=True)
    return np.asarray(outlines / np.linalg.norm(outlines, axis=1, keepdims=True))


def _complex_normal(shape: tuple[int, ...], generator: RandomState) -> NDArray[np.complex128]:
    real, imaginary = generator.standard_normal((2, *shape))
    return np.asarray(real + 1j * imaginary)


def _balanced_labels(
    n_samples: int, n_classes: int, shuffle: bool, generator: RandomState
) -> NDArray[np.int64]:
    labels = np.sort(np.arange(n_samples, dtype=np.int64) % n_classes)
    if shuffle:
        generator.shuffle(labels)
    return labels


def _check_size(owner: str, *sizes: int) -> None:
    """Raise a ValueError if an array would be too large."""
    if max(sizes) > _MAX_ELEMENTS:
        size = min(8 * max(sizes), 10**24)
        raise ValueError(f"{owner} would make arrays of {format_bytes(size)}; reduce the sizes.")
