"""The Kernel Hebbian Algorithm: where it starts, what it is given, and what it refuses."""

import numpy as np
import pytest
import scipy.sparse

from laws_hebbian import (
    GAINS,
    OPERATORS,
    check_same_run,
    random_orders,
    random_start,
    relative_difference,
    semidefinite,
)
from orthodrome.eigen import hebbian, leading
from orthodrome.eigen.kha.starts import whitening
from orthodrome.gram import Centered, DenseGram, Tangent

STARTS = ("orthonormal", "pilot", "nystroem", "paper", "sparse")
every_start = pytest.mark.parametrize("start", STARTS)
every_gain = pytest.mark.parametrize("gain", GAINS)


def matrix(n=150, d=6, seed=0):
    """A linear kernel: rank d, with axes of different length."""
    X = np.random.default_rng(seed).standard_normal((n, d)) * np.linspace(3, 0.5, d)
    return X @ X.T


def started(K, r, start="orthonormal", seed=0, **arguments):
    """The state before the first pass."""
    arguments = {"n_passes": 0, "polish": False, **arguments}
    return hebbian(K, r, start=start, random_state=seed, **arguments).state


@every_gain
@every_start
def test_projections_of_the_start(start, gain):
    K = matrix()
    state = started(K, 3, start, gain=gain)
    assert state.coefficients.shape == (6 if gain == "smd" else 3, 150)
    assert not np.any(state.coefficients[3:])  # B is 0
    assert relative_difference(state.projections, state.coefficients @ K) <= 1e-12


def test_the_papers_start_has_its_distribution():
    """A ~ N(0, 1/(rl)); the sparse one has the same mean squared length over 4 r points."""
    r, n = 6, 2000
    A = np.sqrt(r * n) * started(np.eye(n), r, "paper").components
    assert abs(A.mean()) < 4 / np.sqrt(A.size)
    assert abs(np.mean(A**2) - 1) < 4 * np.sqrt(2 / A.size)
    few = np.array([started(np.eye(400), 5, "sparse", seed).components for seed in range(60)])
    assert np.all(np.count_nonzero(np.any(few, axis=1), axis=1) == 20)
    assert np.mean(np.sum(few**2, axis=2)) == pytest.approx(1 / 5, rel=0.05)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_orthonormal_start_is_orthonormal(operator):
    operator = OPERATORS[operator](np.float64)
    for seed in range(3):
        A = started(operator, 4, "orthonormal", seed).components
        assert np.count_nonzero(np.any(A, axis=0)) <= 16
        np.testing.assert_allclose(A @ operator.toarray() @ A.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("start", ["pilot", "nystroem"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_pilot_is_the_best_that_its_points_hold(operator, start):
    """Within the span of the chosen points: orthonormal, and the largest sum of eigenvalues."""
    operator, r = OPERATORS[operator](np.float64), 2
    K = operator.toarray()
    A = started(operator, r, start).components
    np.testing.assert_allclose(A @ K @ A.T, np.eye(r), atol=1e-10)
    chosen = np.flatnonzero(np.any(A, axis=0))
    # there are no more anchors than the rank
    most = np.linalg.matrix_rank(K, tol=1e-8) if start == "nystroem" else len(K)
    assert min(8 * r, most) <= len(chosen) < len(K)
    # of all A over these points with A K Aᵀ = I the sum of squared projections is largest
    values, vectors = np.linalg.eigh(K[np.ix_(chosen, chosen)])
    kept = values > 1e-10 * values[-1]
    basis = (vectors[:, kept] / np.sqrt(values[kept])).T @ K[chosen]
    best = np.linalg.eigvalsh(basis @ basis.T)[::-1][:r]
    np.testing.assert_allclose(np.linalg.norm(A @ K, axis=1) ** 2, best, rtol=1e-6)


def test_a_pilot_has_a_head_start():
    """t begins at 3 to 1000 passes: 1 over twice the residual."""
    for n, d, seed in ((150, 6, 0), (500, 30, 0), (500, 40, 0), (500, 40, 1), (500, 400, 0)):
        K = matrix(n=n, d=d)
        found = hebbian(K, 3, start="pilot", n_passes=0, random_state=seed)
        rest = K @ found.eigenvectors - found.eigenvectors * found.eigenvalues
        ratio = np.linalg.norm(found.eigenvalues) / (2 * np.linalg.norm(rest))
        # the residual is estimated, to a factor of 2 at the worst
        assert np.clip(ratio / 2, 3, 1000) <= found.state.clock / n <= np.clip(2 * ratio, 3, 1000)
    assert started(K, 2, "pilot", eta0=0.1).clock == 0
    assert started(K, 2, "pilot", initial=random_start(2, 500)).clock == 0
    assert started(K, 2, "orthonormal").clock == 0


@every_gain
@pytest.mark.parametrize("given_order", [False, True])
def test_going_on_is_never_having_stopped(gain, given_order):
    """Bit for bit, whatever the gains; `order` holds the passes of the call, not of the run."""
    K = matrix()
    order = random_orders(5, len(K))
    settings = {"gain": gain, "tol": 0, "block_size": 64}

    def run(first, last, **others):
        if given_order:
            others["order"] = order[first:last]
        return hebbian(K, 3, n_passes=last - first, **settings, **others)

    whole, part = run(0, 5, random_state=7), run(0, 2, random_state=7)
    start, kept = part, part.state.copy()
    for first, last in ((2, 3), (3, 3), (3, 5)):
        part = run(first, last, initial=part)
    assert part.n_passes == whole.n_passes == 5
    check_same_run(part, whole)
    np.testing.assert_array_equal(start.state.coefficients, kept.coefficients)  # not changed


@every_start
@every_gain
def test_more_components_than_the_rank(gain, start):
    """The rest are zeros, to the end."""
    n, rank, r = 100, 3, 6
    K, _ = semidefinite(np.r_[9.0, 5.0, 2.0, np.zeros(n - rank)])
    found = hebbian(K, r, gain=gain, start=start, random_state=0, n_passes=40)
    np.testing.assert_allclose(found.eigenvalues, [9, 5, 2, 0, 0, 0], rtol=0, atol=0.05)
    assert np.all(found.eigenvalues[rank:] <= 1e-8)
    big = found.eigenvalues > 1e-8
    np.testing.assert_allclose(np.linalg.norm(found.eigenvectors[:, big], axis=0), 1.0)
    assert np.all(np.isfinite(found.coefficients))
    if start in ("orthonormal", "pilot"):
        assert not np.any(found.eigenvalues[rank:])
        assert not np.any(found.coefficients[rank:])
        assert not np.any(found.eigenvectors[:, rank:])


def shifted_gram(shift):
    X = np.random.default_rng(0).standard_normal((300, 5))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 10) - shift * np.eye(300)


BROKEN = semidefinite(np.r_[np.ones(50), -np.ones(49)])[0]
INDEFINITE = {
    "a negative entry": (-np.eye(5), "matrix; row 0 has -1 on the diagonal"),
    "no diagonal": (shifted_gram(1.0), r"matrix; row \d+ has 0 on the diagonal and an entry of"),
    "negative eigenvalues": (shifted_gram(0.5), "matrix, but this matrix has clearly negative"),
    "many of them": (BROKEN, "matrix; row .* on the diagonal"),
}


@every_gain
@pytest.mark.parametrize("start", ["orthonormal", "pilot"])
def test_indefinite_matrices_are_refused(start, gain):
    for K, message in INDEFINITE.values():
        with pytest.raises(ValueError, match=f"positive semidefinite {message}.*krylov"):
            hebbian(K, min(20, len(K)), gain=gain, start=start, random_state=0, n_passes=10)


def test_rounding_is_not_an_indefinite_matrix():
    """Of data that coincide nothing but rounding is left, and of rank-deficient ones some zeros."""
    coincident = [
        Centered(DenseGram(np.full((n, n), v))) for n in (99, 400) for v in (1.0, 0.1, 7.7)
    ]
    coincident.append(Tangent(DenseGram(np.ones((400, 400))), np.full(400, 1 / 400)))
    for operator in coincident:
        found = hebbian(operator, 2, random_state=0)
        assert not np.any(found.eigenvalues)
        assert found.converged
    X = np.random.default_rng(0).standard_normal((200, 3)) + 1e2
    for dtype in (np.float64, np.float32):
        operator = Centered(DenseGram((X @ X.T).astype(dtype)))
        found = hebbian(operator, 2, random_state=0)
        assert np.all(found.eigenvalues > 0)


def test_null_directions_are_distinguished_from_small_ones():
    """Where there are null directions no Cholesky factor helps, and a cut must say which."""
    for seed in range(20):
        for least in (1e-12, 1e-13):
            spectrum = np.r_[1.0, np.geomspace(0.5, least, 5), np.zeros(3)]
            mixing = whitening(semidefinite(spectrum, seed=seed)[0])
            assert np.count_nonzero(mixing.any(axis=1)) == 6


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.triu(np.ones((5, 5))), r"must be symmetric; entries \(\d, \d\)"),
        (np.ones((3, 4)), r"must be a square matrix; got shape \(3, 4\)"),
        (np.ones(4), "must be a square matrix"),
        (1e-310 * np.eye(5), "so small that hebbian would underflow"),
        (scipy.sparse.eye_array(5), r"dense array or a GramOperator; got dia_array.*toarray"),
    ],
)
def test_matrices_that_are_no_gram(K, message):
    for solve in (hebbian,) if "hebbian" in message else (hebbian, leading):
        with pytest.raises(ValueError, match=message):
            solve(K, 1)


A_RESULT = hebbian(matrix(n=20), 2, n_passes=1, random_state=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components of hebbian must be an integer >= 1 and <= 20; got 0"),
        ({"n_components": 21}, "n_components of hebbian must be an integer >= 1 and <= 20"),
        ({"initial": np.full((2, 20), 1e200)}, r"length \S+, whose fourth power overflows"),
        ({"polish": "no"}, "polish of hebbian must be True or False; got 'no'"),
        ({"callback": 3}, "callback of hebbian must be a function or None; got 3"),
        ({"initial": np.ones((2, 19))}, r"initial of hebbian .*\(2, 20\).*\(2, 19\)"),
        ({"initial": np.full((2, 20), np.nan)}, "initial contains NaN"),
        ({"initial": A_RESULT, "n_components": 3}, r"initial .*another run.*\(2, 20\).*\(3, 20\)"),
        ({"order": [[0] * 20]}, r"order .* 0 to 19, .*\(50, 20\); got int64 .*\(1, 20\)"),
        ({"order": [[20] * 20], "n_passes": 1}, "order of hebbian must hold integers from 0 to 19"),
        ({"order": [[0.0] * 20], "n_passes": 1}, "order of hebbian .* got float64"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        hebbian(matrix(n=20), **{"n_components": 2, **arguments})
