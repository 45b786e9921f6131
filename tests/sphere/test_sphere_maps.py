"""Laws of Log, Exp and distance, in coordinates and in coefficients over a Gram operator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws_sphere import DTYPES, KINDS, chart, rotation, slow_exp, slow_log, unit
from orthodrome.gram import DenseGram
from orthodrome.sphere import distance, exp, exp_at_pole, log, log_at_pole


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=DTYPES, ids=["float64", "float32"])
def space(request, kind):
    return chart(kind, request.param)


# Laws ---------------------------------------------------------------------------------------------


def test_the_maps_are_those_of_the_formulas_and_inverse(space):
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


def test_exp_beyond_the_antipode_comes_back(space):
    base = space.point(seed=2)
    tangents = space.tangents(2, base, seed=3, longest=2.0)[1:]
    longer = (1 + 2 * np.pi / 2.0) * tangents
    twice = exp(np.vstack([tangents, longer]), base_point=base, **space.options)
    np.testing.assert_allclose(twice[0], twice[1], atol=4 * space.tolerance)


def test_distance_is_a_metric_and_the_slow_one(space):
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


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotations_go_through(dtype):
    space = chart("coordinates", dtype)
    R = rotation(6).astype(dtype)
    points, base = space.points(40, seed=1), space.point(seed=2)
    tangents = log(points, base_point=base)
    turned = log(unit(points @ R.T), base_point=unit(R @ base))
    np.testing.assert_allclose(turned, tangents @ R.T, atol=2 * space.tolerance)
    np.testing.assert_allclose(
        exp(turned, base_point=unit(R @ base)), points @ R.T, atol=2 * space.tolerance
    )
    np.testing.assert_allclose(
        distance(points @ R.T, R @ base), distance(points, base), atol=space.tolerance
    )


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-12, 3.1), st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_round_trips_at_any_angle(angle, seed, dimension):
    rng = np.random.default_rng(seed)
    base = unit(rng.normal(size=dimension))
    direction = slow_log(unit(rng.normal(size=dimension)), base)
    direction = unit(direction - (direction @ base) * base)
    point = unit(np.cos(angle) * base + np.sin(angle) * direction)
    rounding = 1e-14 / np.sin(angle) if angle > 1 else 1e-14
    tangent = log(point, base_point=base)
    np.testing.assert_allclose(distance(point, base), angle, rtol=0, atol=rounding)
    np.testing.assert_allclose(tangent, angle * direction, rtol=0, atol=10 * rounding)
    np.testing.assert_allclose(exp(tangent, base_point=base), point, rtol=0, atol=10 * rounding)


# Small and large angles ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("angle", "dtype"),
    [
        *[(angle, np.float64) for angle in (1e-300, 1e-200, 1e-150, 1e-16, 1e-8, 1e-4, 1.0, 3.0)],
        *[(angle, np.float32) for angle in (1e-30, 1e-18, 1e-8, 1e-4, 1.0, 3.0)],
        (np.pi - 1e-7, np.float64),
    ],
)
def test_angles_keep_their_digits(angle, dtype):
    """At 1e-9 the cosine is 1 and arccos returns 0."""
    pole = np.array([1, 0], dtype=dtype)
    point = np.array([np.cos(angle), np.sin(angle)], dtype=dtype)
    rtol = 8 * float(np.finfo(dtype).eps)
    # far away the rounding of the coordinates moves the point
    rounded = float(np.arctan2(*point[::-1].astype(np.longdouble)))
    exact = rounded if angle > 2 else angle
    np.testing.assert_allclose(log(point, base_point=pole)[1], exact, rtol=rtol)
    np.testing.assert_allclose(distance(point, pole), exact, rtol=rtol)


@pytest.mark.parametrize("angle", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6])
def test_exp_takes_what_log_gives_for_near_points(space, angle):
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
def test_the_antipode_begins_where_the_cosine_is_minus_one_to_rounding(dtype):
    edge = np.sqrt(2 * 16 * float(np.finfo(dtype).eps))  # 1 + cos(π - δ) = δ²/2
    pole = np.array([-1, 0], dtype=dtype)

    def beside(factor):
        return np.array([np.cos(factor * edge), np.sin(factor * edge)], dtype=dtype)

    assert np.all(np.isfinite(log(beside(1.1), base_point=pole)))
    with pytest.raises(ValueError, match=r"^1 of the points \(row 0\) is antipodal"):
        log(beside(0.9), base_point=pole)


# At the pole --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("q", [1, 2, 7])
def test_the_maps_at_the_pole_are_the_maps_at_the_first_axis(q, dtype):
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


# Shapes and input ---------------------------------------------------------------------------------


def test_one_point_or_rows_of_them(space):
    points, base = space.points(4, seed=1), space.point(seed=2)
    options = space.options
    angles, tangents = distance(points, base, **options), log(points, base_point=base, **options)
    assert np.ndim(distance(points[0], base, **options)) == 0
    assert distance(points[:1], base, **options).shape == (1,)
    assert distance(base, points[:1], **options).shape == (1,)
    atol = space.tolerance
    np.testing.assert_allclose(distance(base, points, **options), angles, atol=atol)
    back = exp(tangents, base_point=base, **options)
    for row in range(4):
        np.testing.assert_allclose(distance(points[row], base, **options), angles[row], atol=atol)
        one = log(points[row], base_point=base, **options)
        assert one.shape == base.shape
        np.testing.assert_allclose(one, tangents[row], atol=atol)
        one = exp(tangents[row], base_point=base, **options)
        assert one.shape == base.shape
        np.testing.assert_allclose(one, back[row], atol=atol)


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        np.asfortranarray,
        lambda a: np.lib.stride_tricks.as_strided(a, a.shape, a.strides, writeable=False),
    ],
    ids=["list", "fortran", "read-only"],
)
def test_inputs_of_other_kinds(kind, convert):
    space = chart(kind, np.float64)
    points, base, options = space.points(9, seed=1), space.point(seed=2), space.options
    before = points.copy(), base.copy()
    tangents = log(points, base_point=base, **options)
    same = {"rtol": 1e-13, "atol": 1e-15}
    np.testing.assert_allclose(
        log(convert(points), base_point=base.tolist(), **options), tangents, **same
    )
    np.testing.assert_allclose(
        exp(convert(tangents), base_point=base.tolist(), **options),
        exp(tangents, base_point=base, **options),
        **same,
    )
    np.testing.assert_allclose(
        distance(convert(points), base.tolist(), **options),
        distance(points, base, **options),
        **same,
    )
    np.testing.assert_array_equal(points, before[0])
    np.testing.assert_array_equal(base, before[1])
    np.testing.assert_allclose(log([[0, 1]], base_point=[1, 0]), [[0, np.pi / 2]], atol=1e-15)


# Errors -------------------------------------------------------------------------------------------

E1 = [1.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_may_differ_by_rounding_only(dtype):
    allowed = {np.float64: 1e-6, np.float32: 1e-5}[dtype]
    points = np.eye(3, dtype=dtype)
    base = points[0]
    points[1, 1] += 0.7 * allowed
    distance(points, base)
    points[1, 1] += 0.7 * allowed
    with pytest.raises(ValueError, match=r"^first must have unit length; row 1 has length 1\.0000"):
        distance(points, base)
    with pytest.raises(ValueError, match=r"^second must have unit length; row 1 "):
        distance(base, points)
    with pytest.raises(ValueError, match=r"^points must have unit length; row 1 "):
        log(points, base_point=base)
    for function in (log, exp):
        with pytest.raises(ValueError, match=r"^base_point must have unit length; row 0 "):
            function(np.zeros(3, dtype=dtype) + (function is log) * base, base_point=points[1])


def test_lengths_are_those_of_the_gram_matrix(kind):
    space = chart(kind, np.float64)
    points = space.points(5, seed=1)
    points[3] *= 2
    with pytest.raises(ValueError, match=r"must have unit length; row 3 has length 2\. Divide"):
        distance(points, points[0], **space.options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tangents_may_lean_by_rounding_only(dtype, kind):
    space = chart(kind, dtype)
    allowed = {np.float64: 2e-6, np.float32: 2e-5}[dtype]
    base = space.point(seed=2)
    tangents = space.tangents(6, base, seed=3)
    lengths = np.linspace(0, 2.5, 6)
    tangents[4] += 0.5 * allowed * lengths[4] * base
    exp(tangents, base_point=base, **space.options)
    tangents[4] += lengths[4] * allowed * base
    message = r"^tangents must be orthogonal to base_point; row 4 has the inner product"
    with pytest.raises(ValueError, match=message):
        exp(tangents, base_point=base, **space.options)
    tangents[4] -= 3 * lengths[4] * allowed * base  # to the other side
    with pytest.raises(ValueError, match=message):
        exp(tangents, base_point=base, **space.options)


@pytest.mark.parametrize(("length", "lean"), [(0.5, 2e-6), (1.0, 2e-6), (4.0, 8e-6)])
def test_a_lean_is_measured_against_the_length_or_1(length, lean):
    for part, refused in ((0.9, False), (1.1, True)):
        tangent = np.array([part * lean, length, 0.0])
        if refused:
            with pytest.raises(ValueError, match="orthogonal to base_point"):
                exp(tangent, base_point=E1)
        else:
            exp(tangent, base_point=E1)


@pytest.mark.parametrize("kind", KINDS)
def test_antipodes_are_named(kind):
    space = chart(kind, np.float64)
    points = space.points(5, seed=1)
    points[[1, 4]] = -points[0]
    with pytest.raises(ValueError, match=r"^2 of the points \(row 1, 4\) are antipodal"):
        log(points, base_point=points[0], **space.options)


BAD = [np.nan, 1.0, 0.0]
TWO = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
THREE = DenseGram(np.eye(3))
INDEFINITE = DenseGram(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log([E1, BAD], base_point=E1), "contains NaN"),
        (lambda: exp([[np.inf, 0.0, 0.0]], base_point=E1), "contains infinity"),
        (lambda: distance(BAD, E1), "contains NaN"),
        (lambda: distance(1j * np.eye(3), E1), "Complex data not supported"),
        (lambda: log(E1, base_point=[E1]), "base_point must be a single point, one-dim"),
        (lambda: exp([0.0, 1.0, 0.0], base_point=1.0), "base_point must be a single point"),
        # also where NumPy would stretch a single number over all coordinates
        (lambda: log(TWO, base_point=[1.0]), "points must have 1 coordinates; got 3"),
        (lambda: exp(TWO, base_point=[1.0, 0.0]), "tangents must have 2 coordinates; got 3"),
        (lambda: distance(TWO, [1.0]), "second must have 3 coordinates; got 1"),
        (lambda: distance([1.0], TWO), "second must have 1 coordinates; got 3"),
        (lambda: distance(np.eye(3)[:2], np.eye(3)), "number of points.*got 2 and 3"),
        (lambda: log([1.0, 0.0], base_point=E1, gram=THREE), "points must have 3 coefficients"),
        (lambda: log(E1, base_point=[1.0, 0.0], gram=THREE), "base_point must have 3 coeff"),
        (lambda: exp([1.0, 0.0], base_point=E1, gram=THREE), "tangents must have 3 coefficients"),
        (lambda: distance([1.0, 0.0], E1, gram=THREE), "first must have 3 coefficients"),
        (lambda: distance(E1, [1.0, 0.0], gram=THREE), "second must have 3 coefficients"),
        (lambda: distance([1.0, -1.0], [1.0, 0.0], gram=INDEFINITE), "row 0 has length 0"),
        # the tangent that leans farthest is named, not a short one that leans by a larger part
        (
            lambda: exp([[1.0, 0.5, 0.0], [3.0, 100.0, 0.0], [0.0, 1.0, 0.0]], base_point=E1),
            "row 1 has the inner product 3 with it and the length 1",
        ),
        (lambda: exp([1e-5, 1e-5, 0.0], base_point=E1), "row 0 has the inner product 1e-05 with"),
        (
            lambda: log([1.0, 0.0], base_point=["a", "b"]),
            "base_point of the sphere must hold numbers",
        ),
        (lambda: log_at_pole([[0.0, 1.0], [-1.0, 0.0]]), r"\(row 1\) is antipodal"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Huge numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [0.25, 0.5, 0.75, 0.9])
def test_huge_tangents_lead_to_the_sphere(dtype, power):
    """To a point on the great circle of the tangent, though none can say which."""
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


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_that_overflow_are_refused_quietly(dtype):
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
