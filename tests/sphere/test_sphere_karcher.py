"""Laws of the Karcher mean, in coordinates and over every kind of Gram operator."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from laws_sphere import (
    DTYPES,
    OPERATORS,
    cap,
    rotation,
    slow_gradient,
    slow_karcher_mean,
    slow_objective,
    unit,
)
from orthodrome._core.status import Status
from orthodrome.gram import DenseGram, gram_operator
from orthodrome.kernels import Gaussian, Wave
from orthodrome.sphere import karcher_mean

EQUAL = np.full(25, 1 / 25)
WEIGHTS = np.random.default_rng(9).random(25) + 0.1


def explicit(points):
    return points, lambda mean: mean


def coefficients(points):
    return DenseGram(points @ points.T), lambda mean: mean @ points


#: Two ways to give points, each with the way from the result to coordinates.
both = pytest.mark.parametrize("way", [explicit, coefficients])
wide_is_fine = pytest.mark.filterwarnings("ignore:.* points? lie a quarter:UserWarning")


def on_circle(angles):
    return np.column_stack([np.cos(angles), np.sin(angles)])


def wide_points(n, seed):
    return unit(np.random.default_rng(seed).normal(size=(n, 3)))


@both
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("d", [2, 3, 8, 40])
def test_mean_equals_the_end_of_gradient_descent(way, weights, d):
    p = EQUAL if weights is None else weights / weights.sum()
    for radius in (0.01, 0.5, 1.0, 1.5):
        points = cap(25, d, radius, seed=d)
        given, lift = way(points)
        result, slow = karcher_mean(given, weights), slow_karcher_mean(points, weights)
        np.testing.assert_allclose(lift(result.point), slow, rtol=0, atol=1e-10)
        np.testing.assert_allclose(result.cosines, points @ slow, rtol=0, atol=1e-10)
        assert result.variance == pytest.approx(slow_objective(points, p, slow), rel=1e-10, abs=0)
        assert result.converged
        assert result.n_points == 25
        gradient = slow_gradient(points, p, unit(lift(result.point)))
        assert result.gradient_norm <= 1e-10
        assert np.linalg.norm(gradient) <= 1e-10 + 1e-15


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("name", OPERATORS)
def test_coordinates_and_every_operator_give_the_same_mean(name, weighted, dtype):
    gram, points = OPERATORS[name](cap(40, 6, 1.2).astype(dtype))
    weights = np.arange(len(points)) % 4 + 0.5 if weighted else None
    tolerance = {np.float64: 1e-10, np.float32: 1e-6}[dtype]
    slow = slow_karcher_mean(unit(points.astype(np.float64)), weights)
    result, by_coordinates = karcher_mean(gram, weights), karcher_mean(points, weights)
    assert result.converged
    assert by_coordinates.point.dtype == points.dtype
    assert result.point.dtype == result.cosines.dtype == by_coordinates.cosines.dtype == np.float64
    assert result.point.shape == result.cosines.shape == (gram.shape[0],)
    np.testing.assert_allclose(by_coordinates.point, slow, rtol=0, atol=tolerance)
    np.testing.assert_allclose(result.point @ points, slow, rtol=0, atol=tolerance)
    np.testing.assert_allclose(result.cosines, points @ slow, rtol=0, atol=tolerance)
    # unit length in the operator's own inner product
    square = result.point @ (gram.toarray().astype(np.float64) @ result.point)
    assert square == pytest.approx(1, abs=tolerance)


def assert_falling(history, slack):
    objectives = np.array([entry["objective"] for entry in history])
    assert np.all(np.diff(objectives) <= slack * (1 + objectives[:-1]))


@both
@pytest.mark.parametrize("radius", [0.1, 1.5])
def test_objective_never_rises(way, radius):
    points, entries = cap(25, 4, radius), []
    given, lift = way(points)
    start = np.arange(4.0) + 1 if way is explicit else np.arange(25.0) + 1
    result = karcher_mean(given, WEIGHTS, tol=0, initial=start, callback=entries.append)
    assert_falling(result.history, 16 * np.finfo(float).eps)
    assert entries == list(result.history)
    assert len(entries) == result.n_iter + 1
    p, first = WEIGHTS / WEIGHTS.sum(), unit(lift(start))
    assert entries[0]["objective"] == pytest.approx(slow_objective(points, p, first), rel=1e-12)
    norm = np.linalg.norm(slow_gradient(points, p, first))
    assert entries[0]["gradient_norm"] == pytest.approx(norm, rel=1e-12)
    last = {"objective": result.variance, "gradient_norm": result.gradient_norm}
    assert entries[-1] == last


@wide_is_fine
def test_a_few_steps_are_enough():
    """On the long arc steepest descent needs 23, and without transport of directions 13."""
    X = load_digits().data[:500]
    rng = np.random.default_rng(0)
    angles = rng.normal(size=400)
    arc = unit(np.column_stack([on_circle(angles), 0.05 * rng.normal(size=(400, 2))]))
    digits = gram_operator(Gaussian().fit(X), X)
    for points, most in ((digits, 6), (cap(300, 20, 1.5), 7), (arc, 11)):
        result = karcher_mean(points, tol=1e-12)
        assert result.converged
        assert 1 <= result.n_iter <= most


@both
def test_tolerance(way):
    points = cap(25, 4, 1.4)
    given, lift = way(points)
    for tol in (1.0, 1e-2, 1e-4, 1e-8):
        result = karcher_mean(given, tol=tol)
        assert result.status is Status.CONVERGED
        norms = [entry["gradient_norm"] for entry in result.history]
        assert norms[-1] <= tol
        assert all(norm > tol for norm in norms[:-1])
    result = karcher_mean(given, tol=0)
    assert result.converged
    assert result.gradient_norm <= (1e-14 if way is explicit else 1e-8)
    np.testing.assert_allclose(lift(result.point), slow_karcher_mean(points), rtol=0, atol=1e-12)
    exact = karcher_mean([[1.0, 0.0], [1.0, 0.0]], tol=0)
    assert exact.gradient_norm == 0
    assert exact.status is Status.CONVERGED


@both
def test_max_iter_is_reported_to_the_caller(way):
    given, _ = way(wide_points(60, 0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = karcher_mean(given, max_iter=1, tol=1e-14)
    assert [warning.category for warning in caught] == [ConvergenceWarning, UserWarning]
    assert {warning.filename for warning in caught} == {__file__}
    assert "max_iter" in str(caught[0].message)
    assert result.status is Status.MAX_ITER
    assert not result.converged
    assert (result.n_iter, len(result.history)) == (1, 2)


@wide_is_fine
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(6))
def test_wide_points_of_low_rank(dtype, seed):
    """Where the coefficients of the mean would cancel, they do not."""
    points = wide_points(300, seed).astype(dtype)
    result = karcher_mean(DenseGram(points @ points.T), tol=1e-12)
    assert result.converged
    mean = result.point @ points.astype(np.float64)
    tolerance = {np.float64: 1e-12, np.float32: 1e-4}[dtype]
    assert np.linalg.norm(mean) == pytest.approx(1, abs=tolerance)
    np.testing.assert_allclose(result.cosines, points @ mean, rtol=0, atol=tolerance)
    assert np.linalg.norm(result.point) < 1


@wide_is_fine
@pytest.mark.parametrize("undefined", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_without_coordinates_a_wrong_mean_is_reported(seed, undefined, monkeypatch):
    nothing = (np.full((60, 3), np.nan), np.nan)
    if undefined:
        monkeypatch.setattr("orthodrome.sphere.karcher.pivoted_cholesky", lambda *_, **__: nothing)
    monkeypatch.setattr("orthodrome.sphere.karcher._MAX_RANK", 2)
    points = wide_points(60, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = karcher_mean(DenseGram(points @ points.T))
    warned = any("large coefficients cancel" in str(w.message) for w in caught)
    assert warned == (not result.converged)
    assert np.all(np.isfinite(result.point))
    if result.converged:
        assert np.linalg.norm(result.point @ points) == pytest.approx(1, abs=1e-6)
        assert result.gradient_norm <= 1e-6


@both
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, -3.0])
def test_the_start_may_have_any_length(way, scale):
    points = cap(25, 4, 0.7)
    given, lift = way(points)
    start = np.arange(1.0, 5) if way is explicit else np.arange(1.0, 26)
    result = karcher_mean(given, initial=scale * start)
    expected = slow_objective(points, EQUAL, unit(np.sign(scale) * lift(start)))
    assert result.history[0]["objective"] == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(lift(result.point), slow_karcher_mean(points), rtol=0, atol=1e-9)
    again = karcher_mean(given, initial=karcher_mean(given, tol=1e-12).point, tol=1e-11)
    assert again.n_iter == 0


@both
@pytest.mark.parametrize("n_far", [1, 3])
def test_far_points_are_counted(way, n_far):
    axis, *others = rotation(4)
    near = [np.cos(0.2) * axis + np.sin(0.2) * s * e for e in others for s in (1, -1)]
    far = [np.cos(1.9) * axis + np.sin(1.9) * e for e in others[:n_far]]
    given, _ = way(np.array(near * 10 + far))
    with pytest.warns(UserWarning, match=rf"^{n_far} of {60 + n_far} points lie a quarter"):
        karcher_mean(given)
    with pytest.warns(UserWarning, match=rf"^1 of {60 + n_far} points"):  # of those with weight
        karcher_mean(given, np.arange(60 + n_far) <= 60)
    karcher_mean(given, np.arange(60 + n_far) < 60)  # warnings are errors here


@both
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_antipodal_points_have_no_mean(way, dtype, seed):
    point, other = rotation(4, seed)[:2]
    nearly = -point if dtype is np.float64 else unit(-point + 2e-6 * other)
    given, _ = way(np.array([point, nearly]).astype(dtype))
    with pytest.raises(ValueError, match="they cancel, as antipodal points do"):
        karcher_mean(given)
    for row, weights in ((1, [1, 1e-4]), (0, [1e-4, 1])):
        with pytest.raises(ValueError, match=rf"^1 of the points \(row {row}\) is antipodal"):
            karcher_mean(given, weights)


def with_entry(value):
    points = cap(25, 4, 1.0)
    points[7, 2] = value
    return points


def wave():
    X = np.random.default_rng(5).normal(size=(80, 8))
    return DenseGram(Wave(0.5).fit(X)(X))


def undefined(i, j):
    matrix = np.eye(3)
    matrix[i, j] = matrix[j, i] = np.nan
    return DenseGram(matrix, check=False)


NO_TRIANGLE = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": with_entry(3.0)}, r"points must have unit length; row 7 has length 3\."),
        ({"points": DenseGram(4 * np.eye(3))}, r"k\(x, x\) must be the same.*is 4 at row 0"),
        ({"points": DenseGram(np.diag([1.0, 1.0, 2.0]))}, "is 2 at row 2 of points and not 1"),
        ({"points": DenseGram(np.diag([1.0, 0.0, 1.0]))}, r"is 0 at row 1 of points"),
        ({"points": undefined(1, 1)}, "is nan at row 1 of points"),
        ({"points": undefined(0, 2)}, "points"),
        ({"points": DenseGram(NO_TRIANGLE)}, r"^The inner product of row 1 .* is 1\.278.*positive"),
        ({"points": wave()}, r"squared length -0\.00017: .* not positive definite"),
    ],
)
def test_invalid_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        karcher_mean(**{"points": cap(25, 4, 1.0), **arguments})


def test_gradients_of_near_points_are_accurate():
    """From a start of exact coordinates: sums of points, not of differences, would keep half."""
    start = np.full(4, 0.5)
    z = np.random.default_rng(3).normal(size=(30, 4)) * 1e-8
    points = unit(start + z - np.outer(z @ start, start))
    p = np.arange(1.0, 31) / np.arange(1.0, 31).sum()
    differences = (points - start).astype(np.longdouble)
    gradient = p @ (differences - np.outer(differences @ start, start))
    first = karcher_mean(points, p, initial=start, tol=1e-12).history[0]
    expected = float(np.sqrt(gradient @ gradient)), float(p @ np.sum(differences**2, axis=1))
    assert first["gradient_norm"] == pytest.approx(expected[0], rel=1e-12, abs=0)
    assert first["objective"] == pytest.approx(expected[1], rel=1e-12, abs=0)


@pytest.mark.parametrize("seed", range(20))
def test_gradient_norm_is_not_underestimated(seed):
    """Over a singular matrix a small square is rounding, even below 0; it must not pass for 0."""
    rng = np.random.default_rng(seed)
    axis, *others = rotation(4, seed)
    angle = rng.uniform(0.1, 1.3)
    cross = [np.cos(angle) * axis + s * np.sin(angle) * e for e in others for s in (1, -1)]
    points = np.array([axis, *cross, axis] * 2)
    given, lift = coefficients(points)
    result = karcher_mean(given, initial=np.eye(16)[rng.integers(16)])
    gradient = slow_gradient(points, np.full(16, 1 / 16), unit(lift(result.point)))
    assert np.linalg.norm(gradient) <= 2 * result.gradient_norm + 1e-14


@pytest.mark.parametrize("seed", range(8))
def test_coefficients_that_cancel_to_rounding_are_no_start(seed):
    """Their square is not 0, and as often above it as below."""
    points = cap(12, 3, 1.0, seed)
    null = np.linalg.svd(points.T)[2][-1]
    with pytest.raises(ValueError, match="initial of karcher_mean is 0 up to"):
        karcher_mean(DenseGram(points @ points.T), initial=null)
