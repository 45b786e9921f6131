"""Laws of the generators: norms, ranks, moments, shapes, seeds and counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthodrome.datasets import make_landmark_shapes, make_spirals, make_von_mises_fisher

GENERATORS = [make_von_mises_fisher, make_spirals, make_landmark_shapes]

# The law of large numbers at four standard errors: the seeds are fixed, so it holds or it does not.
STANDARD_ERRORS = 4.0


def as_arrays(result):
    return result if isinstance(result, tuple) else (result,)


def preshapes(landmarks):
    """Complex, centred, unit-norm configurations."""
    complex_points = landmarks[..., 0] + 1j * landmarks[..., 1]
    centred = complex_points - complex_points.mean(axis=1, keepdims=True)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


# All generators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", GENERATORS)
def test_random_states(generator):
    first, again, other = (as_arrays(generator(25, random_state=seed)) for seed in (3, 3, 4))
    for left, right in zip(first, again, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not np.array_equal(first[0], other[0])
    assert first[0].dtype == np.float64
    assert len(first[0]) == 25
    assert np.isfinite(first[0]).all()
    global_state = np.random.mtrand._rand
    before = global_state.get_state()[1].copy()
    state = np.random.RandomState(7)
    one, two = (as_arrays(generator(20, random_state=state))[0] for _ in range(2))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(before, global_state.get_state()[1])


@pytest.mark.parametrize(
    ("generator", "classes"),
    [
        (make_spirals, "n_arms"),
        (make_landmark_shapes, "n_classes"),
    ],
)
@pytest.mark.parametrize("shuffle", [True, False])
def test_classes_are_balanced(generator, classes, shuffle):
    _, labels = generator(32, shuffle=shuffle, random_state=0, **{classes: 5})
    assert np.bincount(labels).tolist() == [7, 7, 6, 6, 6]
    assert (np.diff(labels) >= 0).all() == (not shuffle)


# von Mises-Fisher ---------------------------------------------------------------------------------


@given(
    n_dimensions=st.integers(2, 40),
    data=st.data(),
    concentration=st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
    seed=st.integers(0, 1000),
)
@settings(deadline=None)
def test_vectors_are_unit_and_span_the_subspace(n_dimensions, data, concentration, seed):
    sphere_dimension = data.draw(st.integers(1, n_dimensions - 1))
    X = make_von_mises_fisher(
        n_dimensions + 5, n_dimensions, sphere_dimension, concentration, random_state=seed
    )
    assert X.shape == (n_dimensions + 5, n_dimensions)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-14)
    singular_values = np.linalg.svd(X, compute_uv=False)
    assert (singular_values[sphere_dimension + 1 :] < 1e-12 * singular_values[0]).all()


@pytest.mark.parametrize("concentration", [0.0, 0.5, 8.8, 100.0])
@pytest.mark.parametrize("n_dimensions", [3, 20])
def test_mean_resultant_on_the_two_sphere(concentration, n_dimensions):
    n_samples = 20_000
    mean_direction = np.arange(1.0, n_dimensions + 1)
    X = make_von_mises_fisher(
        n_samples, n_dimensions, 2, concentration, mean_direction=mean_direction, random_state=0
    )
    cosines = X @ (mean_direction / np.linalg.norm(mean_direction))
    expected = 1 / np.tanh(concentration) - 1 / concentration if concentration else 0.0
    error = STANDARD_ERRORS * cosines.std() / np.sqrt(n_samples)
    assert abs(cosines.mean() - expected) < error
    # Across the mean direction the law is symmetric: nothing remains there but noise.
    across = X.mean(axis=0) - cosines.mean() * mean_direction / np.linalg.norm(mean_direction)
    assert np.linalg.norm(across) < STANDARD_ERRORS / np.sqrt(n_samples)


# Spirals and circles ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_arms", [1, 2, 4])
def test_noiseless_spirals_lie_on_their_arm(n_arms):
    X, y = make_spirals(100, n_arms, noise=0.0, n_turns=1.5, random_state=0)
    radius = np.linalg.norm(X, axis=1)
    assert radius.min() >= 0.1 - 1e-12
    assert radius.max() <= 1 + 1e-12
    angle = 2 * np.pi * (1.5 * radius + y / n_arms)
    expected = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(X, expected, atol=1e-12)


def test_noise_has_the_standard_deviation_asked_for():
    n_samples = 20_000
    clean, _ = make_spirals(n_samples, noise=0.0, random_state=0)
    noisy, _ = make_spirals(n_samples, noise=0.3, random_state=0)
    error = STANDARD_ERRORS * 0.3 / np.sqrt(4 * n_samples)
    assert abs((noisy - clean).std() - 0.3) < error


@pytest.mark.parametrize("n_landmarks", [3, 10, 40])
def test_without_variation_shapes_are_their_template(n_landmarks):
    X, y = make_landmark_shapes(40, n_landmarks, 4, variation=0.0, random_state=0)
    assert X.shape == (40, n_landmarks, 2)
    # |<u, v>| is the cosine of the Procrustes distance: 1 exactly within a class, less across.
    cosines = np.abs(preshapes(X) @ preshapes(X).conj().T)
    same_class = y[:, None] == y
    np.testing.assert_allclose(cosines[same_class], 1.0, rtol=1e-12)
    assert cosines[~same_class].max() < 1 - 1e-4
