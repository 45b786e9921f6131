"""Laws of Log, Exp and distance, against slow ones."""

import numpy as np
import pytest

from laws_sphere import DTYPES, slow_exp, slow_log, unit
from orthodrome.sphere import distance, exp, exp_at_pole, log, log_at_pole


@pytest.fixture(params=DTYPES, ids=["float64", "float32"])
def dtype(request):
    return request.param


def tolerance_of(dtype):
    return 100 * float(np.finfo(dtype).eps)


def random_points(m, seed, dtype):
    return unit(np.random.default_rng(seed).normal(size=(m, 6))).astype(dtype)


def random_tangents(m, base, seed, longest=2.5):
    """Vectors orthogonal to a point, of lengths up to `longest`, the first of them 0."""
    b = base.astype(np.float64)
    vectors = random_points(m, seed, np.float64)
    for _ in range(2):  # again, because of rounding
        vectors = vectors - np.outer(vectors @ b, b)
    return (np.linspace(0, longest, m)[:, None] * unit(vectors)).astype(base.dtype)


def test_maps_equal_the_slow_ones_and_are_inverse(dtype):
    points, base = random_points(40, 1, dtype), random_points(1, 2, dtype)[0]
    logs = log(points, base_point=base)
    assert logs.dtype == dtype
    slow = [slow_log(y, base) for y in points]
    np.testing.assert_allclose(logs, slow, atol=tolerance_of(dtype))
    np.testing.assert_allclose(logs @ base, 0, atol=tolerance_of(dtype))
    back = exp(logs, base_point=base)
    np.testing.assert_allclose(back, points, atol=tolerance_of(dtype))

    tangents = random_tangents(40, base, 3)
    ends = exp(tangents, base_point=base)
    assert ends.dtype == dtype
    slow = [slow_exp(t, base) for t in tangents]
    np.testing.assert_allclose(ends, slow, atol=tolerance_of(dtype))
    np.testing.assert_allclose(np.linalg.norm(ends, axis=1), 1, atol=tolerance_of(dtype))
    again = log(ends, base_point=base)
    np.testing.assert_allclose(again, tangents, atol=2 * tolerance_of(dtype))

    for each, vectors in ((points, logs), (ends, tangents)):  # distances are lengths of tangents
        angles = distance(each, base)
        np.testing.assert_allclose(
            angles[1:], np.linalg.norm(vectors[1:], axis=1), atol=tolerance_of(dtype)
        )


def test_distance_is_a_metric_and_equals_the_slow_one(dtype):
    points = random_points(30, 1, dtype)
    angles = np.array([distance(points, y) for y in points])
    assert angles.dtype == dtype
    exact = points.astype(np.float64)
    slow = np.arccos(np.clip(exact @ exact.T, -1, 1))
    others = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(angles[others], slow[others], atol=tolerance_of(dtype))
    np.testing.assert_array_equal(angles, angles.T)
    assert np.all(angles[:, None] <= angles[:, :, None] + angles[None] + tolerance_of(dtype))
    assert np.all(angles[others] > 0)
    np.testing.assert_array_equal(distance(points, points), 0)
    np.testing.assert_array_equal(log(points[0], base_point=points[0]), 0)
    np.testing.assert_allclose(distance(points, -points), np.pi, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_is_refused_where_the_cosine_is_minus_one_to_rounding(dtype):
    edge = np.sqrt(2 * 16 * float(np.finfo(dtype).eps))  # 1 + cos(π - δ) = δ²/2
    pole = np.array([-1, 0], dtype=dtype)
    inside, outside = (
        np.array([np.cos(angle), np.sin(angle)], dtype=dtype) for angle in (0.9 * edge, 1.1 * edge)
    )
    assert np.all(np.isfinite(log(outside, base_point=pole)))
    with pytest.raises(ValueError, match=r"^1 of the points \(row 0\) is antipodal"):
        log(inside, base_point=pole)


E1 = [1.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_may_differ_from_1_by_rounding(dtype):
    points, allowed = np.eye(3, dtype=dtype), {np.float64: 1e-6, np.float32: 1e-5}[dtype]
    base, zero = points[0], np.zeros(3, dtype=dtype)
    points[1, 1] += 0.7 * allowed
    distance(points, base)
    points[1, 1] += 0.7 * allowed
    for call, name, row in (
        (lambda: distance(points, base), "first", 1),
        (lambda: distance(base, points), "second", 1),
        (lambda: log(points, base_point=base), "points", 1),
        (lambda: log(base, base_point=points[1]), "base_point", 0),
        (lambda: exp(zero, base_point=points[1]), "base_point", 0),
    ):
        with pytest.raises(
            ValueError, match=rf"^{name} must have unit length; row {row} has length 1\."
        ):
            call()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tangents_must_be_orthogonal_up_to_rounding(dtype):
    base, allowed = random_points(1, 2, dtype)[0], {np.float64: 2e-6, np.float32: 2e-5}[dtype]
    for part, refused in ((0.5, False), (1.5, True), (-1.5, True)):
        tangents = random_tangents(6, base, 3)
        tangents[4] += part * allowed * np.linspace(0, 2.5, 6)[4] * base
        if refused:
            with pytest.raises(ValueError, match=r"^tangents must be orthogonal .* row 4 "):
                exp(tangents, base_point=base)
        else:
            exp(tangents, base_point=base)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_that_overflow_are_refused(dtype):
    largest = np.finfo(dtype).max
    with pytest.raises(ValueError, match="vector in row 1 overflows in float"):
        exp_at_pole(np.array([[0, 0], [largest, largest]], dtype))
    with pytest.raises(ValueError, match="vector in row 0 overflows in float"):
        exp(np.array([0, largest, largest], dtype), base_point=np.array(E1, dtype))
    far = np.full((2, 3), largest / 2, dtype)
    for call in (
        lambda: log(far, base_point=E1),
        lambda: log(E1, base_point=far[0]),
        lambda: distance(far, E1),
        lambda: log_at_pole(far),
    ):
        with pytest.raises(ValueError, match="must have unit length; row 0 has length inf"):
            call()


@pytest.mark.parametrize("angle", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6])
def test_exp_accepts_log_of_near_points(dtype, angle):
    base = random_points(1, 2, dtype)[0]
    tangents = random_tangents(20, base, 3, longest=angle)
    points = exp(tangents, base_point=base)
    again = exp(log(points, base_point=base), base_point=base)
    np.testing.assert_allclose(again, points, atol=tolerance_of(dtype))
    # also where lengths are wrong in the eighth digit, which float64 input may be
    rounded = unit(np.ones(5) + angle * np.random.default_rng(0).normal(size=(50, 5)))
    rounded = rounded.astype(np.float32).astype(np.float64)
    back = exp(log(rounded, base_point=rounded[0]), base_point=rounded[0])
    np.testing.assert_allclose(back, rounded, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [0.25, 0.5, 0.75, 0.9])
def test_huge_tangents_lead_to_the_sphere(dtype, power):
    """To some point on the great circle of the tangent."""
    size = dtype(float(np.finfo(dtype).max) ** power)
    directions = unit(np.random.default_rng(0).standard_normal((5, 3))).astype(dtype)
    points = exp_at_pole(size * directions)
    assert points.dtype == dtype
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=tolerance)
    across = points[:, 1:] - np.vecdot(points[:, 1:], directions)[:, None] * directions
    np.testing.assert_allclose(across, 0, atol=tolerance)
    tangents = np.column_stack([np.zeros(5, dtype), size * directions])
    base = np.eye(4, dtype=dtype)[0]
    np.testing.assert_allclose(exp(tangents, base_point=base), points, atol=tolerance)
