"""A run of the Kernel Hebbian Algorithm: convergence, scale, Ritz step, estimates, divergence."""

import json

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from laws_hebbian import (
    GAINS,
    OPERATORS,
    estimated_eigenvalues,
    random_start,
    relative_difference,
    semidefinite,
    without_limit,
)
from orthodrome._core.status import Status
from orthodrome.eigen import hebbian
from orthodrome.eigen.kha.starts import Ritz, estimate_residuals
from orthodrome.gram import DenseGram

every_gain = pytest.mark.parametrize("gain", GAINS)
every_operator = pytest.mark.parametrize("operator", OPERATORS)


def gaussian_like(n=200, seed=0):
    """A linear kernel on points whose axes shrink: a full, falling spectrum."""
    X = np.random.default_rng(seed).standard_normal((n, 40)) * 0.8 ** np.arange(40)
    X -= X.mean(axis=0)
    return X @ X.T


def residuals_of(K, found):
    return np.linalg.norm(K @ found.eigenvectors - found.eigenvectors * found.eigenvalues, axis=0)


SPECTRA = {
    "fast": 2.0 ** -np.arange(160),
    "steps": np.r_[8.0, 6, 4, 2, np.full(156, 0.1)],
    "power law": 1 / np.arange(1.0, 161) ** 2,
    "rank 5": np.r_[9.0, 7, 5, 3, 1, np.zeros(155)],
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@every_gain
def test_automatic_gains_find_the_eigenvectors(gain, spectrum):
    values = SPECTRA[spectrum]
    K, vectors = semidefinite(values)
    r = 3
    found = hebbian(K, r, gain=gain, random_state=0, n_passes=300)
    assert not any(entry["diverged"] for entry in found.history)
    assert found.converged
    np.testing.assert_allclose(found.eigenvalues, values[:r], rtol=0, atol=0.01 * values[0])
    # a residual of tol λ_1 is an angle of about tol λ_1 / gap
    gap = values[r - 1] - values[r]
    angle = scipy.linalg.subspace_angles(found.eigenvectors, vectors[:, :r]).max()
    assert angle <= 2 * 1e-2 * values[0] / gap


FACTORS = [0.3, 1e3, 1e-140, 1e140, 4.0**10, 2.0**-901, 2.0**901]


@pytest.mark.parametrize("start", ["orthonormal", "pilot"])
@every_gain
def test_no_scale_changes_more_than_rounding(gain, start):
    """The kernel times c: coefficients over √c; where c is a power of four, bit for bit."""
    settings = {"gain": gain, "start": start, "random_state": 0, "n_passes": 6, "tol": 0}
    one = hebbian(gaussian_like(), 3, **settings)
    for factor in FACTORS:
        other = hebbian(gaussian_like() * factor, 3, **settings)
        # LAPACK may turn an eigenvector round where rounding differs
        signs = np.sign(np.sum(one.eigenvectors * other.eigenvectors, axis=0))
        coefficients = (signs * other.coefficients.T * np.sqrt(factor)).T
        for found, expected, tolerance in (
            (coefficients, one.coefficients, 1e-7),
            (other.eigenvalues / factor, one.eigenvalues, 1e-12),
            (other.residuals / factor, one.residuals, 1e-8),
            (other.state.log_gains, one.state.log_gains, 1e-7),
        ):
            exact = np.log2(factor) % 2 == 0
            assert relative_difference(found, expected) <= (0 if exact else tolerance), factor


@every_operator
@every_gain
def test_the_ritz_step(gain, operator):
    operator = OPERATORS[operator](np.float64)
    K, r = operator.toarray(), 4
    settings = {"gain": gain, "n_passes": 2, "tol": 0, "random_state": 0}
    found = hebbian(operator, r, **settings)
    raw = hebbian(operator, r, polish=False, **settings)
    A, values, vectors = found.coefficients, found.eigenvalues, found.eigenvectors
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose(A @ K @ A.T, np.eye(r), atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(r), atol=1e-10)
    np.testing.assert_allclose(K @ A.T, vectors * np.sqrt(values), atol=1e-10 * values[0])
    # the same span as without it, and within the span the best: (A K² Aᵀ) u = λ (A K Aᵀ) u
    angle = scipy.linalg.subspace_angles(A.T, raw.coefficients.T).max()
    assert angle < 1e-6
    B = raw.coefficients
    best = scipy.linalg.eigh(B @ K @ K @ B.T, B @ K @ B.T, eigvals_only=True)[::-1]
    np.testing.assert_allclose(values, best, rtol=1e-8)
    np.testing.assert_array_equal(raw.state.coefficients, found.state.coefficients)


def test_without_the_ritz_step_nothing_is_turned():
    K, A = gaussian_like(), random_start(3, 200)
    found = hebbian(K, 3, initial=A, n_passes=0, polish=False)
    assert (found.status, found.history, found.n_passes) == (Status.MAX_ITER, (), 0)
    np.testing.assert_array_equal(found.coefficients, A)
    np.testing.assert_allclose(found.eigenvalues, estimated_eigenvalues(A, K))
    AK = A @ K
    np.testing.assert_allclose(found.eigenvectors.T, AK / np.linalg.norm(AK, axis=1)[:, None])
    assert found.residuals.shape == (3,)


def test_squared_estimates_are_right_in_the_mean():
    """A sample of m of l rows holds m / l of the square: over 400 samples to a few per cent."""
    n = 500
    K = gaussian_like(n=n)
    found = hebbian(K, 3, n_passes=1, tol=0, random_state=0)
    pairs = Ritz(found.eigenvalues, found.coefficients, found.eigenvectors.T)
    squares = [
        estimate_residuals(DenseGram(K), pairs, np.random.default_rng(seed), 48) ** 2
        for seed in range(400)
    ]
    np.testing.assert_allclose(np.mean(squares, axis=0), residuals_of(K, found) ** 2, rtol=0.06)
    assert np.std(squares, axis=0).min() > 0  # they are samples


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 3e-3])
@every_gain
def test_it_stops_when_the_error_is_small_and_not_later(gain, tol):
    K = gaussian_like()
    found = hebbian(K, 3, gain=gain, tol=tol, n_passes=500, random_state=0)
    errors = [entry["max_residual"] for entry in found.history]
    assert found.converged
    assert found.status is Status.CONVERGED
    assert errors[-1] <= tol < min(errors[:-1], default=np.inf)
    assert residuals_of(K, found).max() <= 2 * tol * found.eigenvalues[0]


def test_history():
    operator = OPERATORS["centered"](np.float64)
    for gain in GAINS:
        entries = []
        found = hebbian(
            operator, 3, gain=gain, n_passes=3, tol=0, random_state=0, callback=entries.append
        )
        assert tuple(entries) == found.history
        assert json.loads(json.dumps(found.history)) == list(found.history)
        assert [entry["n_pass"] for entry in entries] == [1, 2, 3]
        assert not any(entry["diverged"] for entry in entries)
        np.testing.assert_allclose(entries[-1]["eigenvalues"], found.eigenvalues, rtol=1e-12)


OWN = {gain: {"gain": gain, "mu": 0} for gain in GAINS}
OWN["falling"] = {"gain": "smd", "mu": 0.1}  # log-gains that fall without end


@pytest.mark.parametrize("name", OWN)
def test_large_gains_of_ones_own_diverge_and_the_last_good_pass_is_returned(name):
    """Components whose gains are zero stand still; they are not found."""
    K = gaussian_like()
    settings = {"random_state": 0, "tol": 0, "polish": False, **OWN[name]}
    with pytest.warns(ConvergenceWarning, match="Pass 1 diverged and was undone") as caught:
        found = hebbian(K, 3, eta0=1e3, **settings)
    assert [warning.filename for warning in caught] == [__file__]
    assert found.status is Status.DIVERGED
    assert "eta0='auto'" in found.status.advice
    assert found.n_passes == 0
    before = hebbian(K, 3, n_passes=0, **settings | {"eta0": 1e3})
    np.testing.assert_array_equal(found.coefficients, before.coefficients)
    np.testing.assert_array_equal(found.state.log_gains, before.state.log_gains)
    (entry,) = found.history
    assert (entry["diverged"], entry["n_pass"]) == (True, 1)
    json.dumps(entry, allow_nan=False)
    later = hebbian(K, 3, initial=found, n_passes=3, **settings | {"eta0": 1e-6})
    assert later.status is Status.MAX_ITER
    assert later.n_passes == 3


@pytest.fixture
def unlimited(monkeypatch):
    return lambda factor: without_limit(monkeypatch, factor)


# how much larger than the automatic gains, each a power of two, so that halving is exact
TOO_LARGE = {"constant": 256.0, "t": 64.0, "et": 64.0, "smd": 64.0}


@every_gain
def test_a_divergence_is_rolled_back_and_survived(gain, unlimited):
    K = gaussian_like()
    settings = {"gain": gain, "n_passes": 12, "tol": 0, "random_state": 0, "block_size": 64}
    settings["start"] = "orthonormal"
    unlimited(TOO_LARGE[gain])
    with pytest.warns(ConvergenceWarning, match="diverged; it is repeated with half") as caught:
        found = hebbian(K, 3, **settings)
    undone = [entry for entry in found.history if entry["diverged"]]
    assert 0 < len(undone) == len(caught)
    assert {warning.filename for warning in caught} == {__file__}
    assert found.n_passes == 12
    assert len(found.history) == 12 + len(undone)
    assert found.state.damping == 0.5 ** len(undone)
    assert found.status is Status.MAX_ITER
    assert np.all(np.isfinite(found.coefficients))
    json.dumps(found.history, allow_nan=False)
    exact = np.linalg.eigvalsh(K)[::-1][:3]
    np.testing.assert_allclose(found.eigenvalues, exact, rtol=0, atol=0.1 * exact[0])
    # nothing is left of the passes undone: as if half the gains had been taken from the start
    in_the_first = {entry["n_pass"] for entry in undone} == {1}
    assert in_the_first or gain != "et"  # else this law would have no case
    if in_the_first:
        unlimited(TOO_LARGE[gain] * found.state.damping)
        smaller = hebbian(K, 3, **settings)
        np.testing.assert_array_equal(smaller.coefficients, found.coefficients)
        assert smaller.state.clock == found.state.clock


@pytest.mark.parametrize(
    ("place", "words"),
    [((3, 3), "has NaN or inf"), ((3, 4), "has NaN or infinity")],
)
def test_numbers_that_are_not_finite_are_reported_with_their_row(place, words):
    """A matrix may have been changed since it was checked."""
    A = np.random.default_rng(0).normal(size=(60, 3))
    changed = A @ A.T
    changed[place] = changed[place[::-1]] = np.nan
    gram = DenseGram(A @ A.T)
    gram.matrix = changed
    with pytest.raises(ValueError, match=f"hebbian needs finite numbers; row 3 of .* {words}"):
        hebbian(gram, 2, start="orthonormal", random_state=0)
