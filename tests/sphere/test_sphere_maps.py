"""Laws of Log, Exp and distance, in coordinates and in coefficients over a Gram operator."""

import numpy as np
import pytest

from laws_sphere import DTYPES, KINDS, chart, slow_exp, slow_log, unit
from orthodrome.sphere import distance, exp, exp_at_pole, log, log_at_pole


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=DTYPES, ids=["float64", "float32"])
def space(request, kind):
    return chart(kind, request.param)


def test_maps_equal_the_slow_ones_and_are_inverse(space):
    points, base = space.points(40, seed=1), space.point(seed=2)
    logs = log(points, base_point=base, **space.options)
    assert logs.dtype == space.dtype
    slow = [slow_log(y, space.lift(base)) for y in space.lift(points)]
    np.testing.assert_allclose(space.lift(logs), slow, atol=space.tolerance)
    np.testing.assert_allclose(space.lift(logs) @ space.lift(base), 0, atol=space.tolerance)
    back = exp(logs, base_point=base, **space.options)
    np.testing.assert_allclose(back, points, atol=space.tolerance)

    tangents = space.tangents(40, base, seed=3)
    ends = exp(tangents, base_point=base, **space.options)
    assert ends.dtype == space.dtype
    slow = [slow_exp(t, space.lift(base)) for t in space.lift(tangents)]
    np.testing.assert_allclose(space.lift(ends), slow, atol=space.tolerance)
    np.testing.assert_allclose(space.lengths(ends), 1, atol=space.tolerance)
    again = log(ends, base_point=base, **space.options)
    np.testing.assert_allclose(again, tangents, atol=2 * space.tolerance)

    for each, vectors in ((points, logs), (ends, tangents)):  # distances are lengths of tangents
        angles = distance(each, base, **space.options)
        np.testing.assert_allclose(angles[1:], space.lengths(vectors[1:]), atol=space.tolerance)


def test_distance_is_a_metric_and_equals_the_slow_one(space):
    points = space.points(30, seed=1)
    angles = np.array([distance(points, y, **space.options) for y in points])
    assert angles.dtype == space.dtype
    slow = np.arccos(np.clip(space.lift(points) @ space.lift(points).T, -1, 1))
    others = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(angles[others], slow[others], atol=space.tolerance)
    np.testing.assert_array_equal(angles, angles.T)
    assert np.all(angles[:, None] <= angles[:, :, None] + angles[None] + space.tolerance)
    assert np.all(angles[others] > 0)
    np.testing.assert_array_equal(distance(points, points, **space.options), 0)
    np.testing.assert_array_equal(log(points[0], base_point=points[0], **space.options), 0)
    np.testing.assert_allclose(distance(points, -points, **space.options), np.pi, rtol=1e-6)


@pytest.mark.parametrize(
    ("angle", "dtype"),
    [
        *[(angle, np.float64) for angle in (1e-300, 1e-200, 1e-150, 1e-16, 1e-8, 1e-4, 1.0, 3.0)],
        *[(angle, np.float32) for angle in (1e-30, 1e-18, 1e-8, 1e-4, 1.0, 3.0)],
        (np.pi - 1e-7, np.float64),
    ],
)
def test_angles_are_accurate_at_every_scale(angle, dtype):
    """At 1e-9 the cosine is 1 and arccos returns 0."""
    pole = np.array([1, 0], dtype=dtype)
    point = np.array([np.cos(angle), np.sin(angle)], dtype=dtype)
    rtol = 8 * float(np.finfo(dtype).eps)
    # far away the rounding of the coordinates moves the point
    rounded = float(np.arctan2(*point[::-1].astype(np.longdouble)))
    exact = rounded if angle > 2 else angle
    np.testing.assert_allclose(log(point, base_point=pole)[1], exact, rtol=rtol)
    np.testing.assert_allclose(distance(point, pole), exact, rtol=rtol)


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("q", [1, 2, 7])
def test_maps_at_the_pole(q, dtype):
    space = chart("coordinates", dtype)
    pole = np.eye(q + 1, dtype=dtype)[0]
    directions = unit(np.random.default_rng(5).normal(size=(30, q)))
    coordinates = (np.linspace(0, 2.5, 30)[:, None] * directions).astype(dtype)
    points = exp_at_pole(coordinates)
    assert points.shape == (30, q + 1)
    assert points.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=space.tolerance)
    tangents = np.column_stack([np.zeros(30, dtype=dtype), coordinates])
    np.testing.assert_allclose(points, exp(tangents, base_point=pole), atol=space.tolerance)
    back = log_at_pole(points)
    assert back.dtype == dtype
    np.testing.assert_allclose(back, coordinates, atol=space.tolerance)
    np.testing.assert_allclose(exp_at_pole(back), points, atol=space.tolerance)
    np.testing.assert_allclose(back, log(points, base_point=pole)[:, 1:], atol=space.tolerance)


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
def test_tangents_must_be_orthogonal_up_to_rounding(dtype, kind):
    space = chart(kind, dtype)
    base, allowed = space.point(seed=2), {np.float64: 2e-6, np.float32: 2e-5}[dtype]
    for part, refused in ((0.5, False), (1.5, True), (-1.5, True)):
        tangents = space.tangents(6, base, seed=3)
        tangents[4] += part * allowed * np.linspace(0, 2.5, 6)[4] * base
        if refused:
            with pytest.raises(ValueError, match=r"^tangents must be orthogonal .* row 4 "):
                exp(tangents, base_point=base, **space.options)
        else:
            exp(tangents, base_point=base, **space.options)


BAD = [np.nan, 1.0, 0.0]
TWO = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log([E1, BAD], base_point=E1), "contains NaN"),
        (lambda: log(E1, base_point=[E1]), "base_point must be a single point, one-dim"),
        # also where NumPy would stretch a single number over all coordinates
        (lambda: log(TWO, base_point=[1.0]), "points must have 1 coordinates; got 3"),
        (lambda: distance([1.0], TWO), "second must have 1 coordinates; got 3"),
        (lambda: distance(np.eye(3)[:2], np.eye(3)), "number of points.*got 2 and 3"),
        # the tangent with the largest component is named, not a short one with a larger part
        (
            lambda: exp([[1.0, 0.5, 0.0], [3.0, 100.0, 0.0], [0.0, 1.0, 0.0]], base_point=E1),
            r"row 1 \(length 1e\+02\) has inner product 3 with it",
        ),
        (lambda: exp([1e-5, 1e-5, 0.0], base_point=E1), r"row 0 \(.*\) has inner product 1e-05 "),
        (
            lambda: log([1.0, 0.0], base_point=["a", "b"]),
            "base_point of log must hold numbers",
        ),
        (lambda: log_at_pole([[0.0, 1.0], [-1.0, 0.0]]), r"\(row 1\) is antipodal"),
    ],
)
def test_invalid_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_that_overflow_are_refused(dtype):
    largest = np.finfo(dtype).max
    with pytest.raises(ValueError, match="length of row 1 of coordinates overflows in float"):
        exp_at_pole(np.array([[0, 0], [largest, largest]], dtype))
    with pytest.raises(ValueError, match="length of row 0 of tangents overflows in float"):
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
def test_exp_accepts_log_of_near_points(space, angle):
    base = space.point(seed=2)
    tangents = space.tangents(20, base, seed=3, longest=angle)
    points = exp(tangents, base_point=base, **space.options)
    again = exp(log(points, base_point=base, **space.options), base_point=base, **space.options)
    np.testing.assert_allclose(again, points, atol=space.tolerance)
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
