"""The blocked iterates of the Kernel Hebbian family are the paper's, sample by sample."""

from functools import cache

import numpy as np
import pytest

from laws_hebbian import (
    GAINS,
    N_POINTS,
    OPERATORS,
    Counted,
    automatic_iterates,
    paper_iterates,
    random_orders,
    random_start,
    relative_difference,
)
from orthodrome.eigen import hebbian
from orthodrome.eigen.kha import sweep
from orthodrome.gram import tiled

R = 4
N_PASSES = 5
INTERVAL = 10  # samples between updates of the eigenvalues
# After 670 samples the two ways to sum agree to about 2e-14; the bound leaves room for other BLAS.
EXACT = 1e-11

every_gain = pytest.mark.parametrize("gain", GAINS)
every_rule = pytest.mark.parametrize("rule", ["paper", "automatic"])
every_operator = pytest.mark.parametrize("operator", OPERATORS)


@pytest.fixture(autouse=True, params=[0, 2**60], ids=["compiled", "plain"])
def _both_ways(request, monkeypatch):
    """Run every test with compiled loops, and without."""
    monkeypatch.setattr(sweep, "_PLAIN_SAMPLES", request.param)


@pytest.fixture(autouse=True)
def several_tiles(monkeypatch):
    monkeypatch.setattr(tiled, "TILE", 32)


def numbers(K, gain, rule):
    """Gains in the paper's manner that neither diverge nor stand still."""
    if rule == "automatic":
        return {}
    scale = np.mean(np.diag(K))
    eta0 = (0.015 if gain in ("et", "smd") else 0.05) / scale
    return {"eta0": eta0, "mu": 0.05 / scale}


def expected_iterates(K, A, order, gain, rule, interval=None):
    if rule == "automatic":
        sort = gain == "et" and interval == INTERVAL
        return automatic_iterates(K, A, order, gain, interval=interval, sort=sort)
    return paper_iterates(K, A, order, gain, interval=interval, **numbers(K, gain, rule))


@cache
def oracle(operator, gain, rule, repeats=False, interval=None):
    K = OPERATORS[operator](np.float64).toarray()
    return expected_iterates(K, random_start(R, N_POINTS), orders(repeats), gain, rule, interval)


def orders(repeats=False):
    if not repeats:
        return random_orders(N_PASSES, N_POINTS)
    # about one visit in three is to one of five points, so that each block has several copies
    rng = np.random.default_rng(3)
    order = rng.integers(N_POINTS, size=(N_PASSES, N_POINTS))
    return np.where(rng.random(order.shape) < 1 / 3, order % 5, order)


def run(operator, gain, rule, *, repeats=False, dtype=np.float64, **arguments):
    operator = OPERATORS[operator](dtype)
    settings = {
        "initial": random_start(R, N_POINTS),
        "order": orders(repeats),
        "n_passes": N_PASSES,
        "block_size": 16,
        "tol": 0,
        "polish": False,
        "eigenvalue_updates": "pass",
        **numbers(operator.toarray(), gain, rule),
        **arguments,
    }
    return hebbian(operator, R, gain=gain, **settings)


def check_iterates(found, expected, tol=EXACT):
    state = found.state
    assert relative_difference(found.coefficients, expected.A) <= tol
    assert relative_difference(state.components, expected.A) <= tol
    assert len(found.history) == found.n_passes == N_PASSES
    assert relative_difference(np.array(found.history[-1]["gains"]), expected.gains) <= tol
    if len(state.coefficients) > R:
        assert relative_difference(state.coefficients[R:], expected.B) <= tol
        np.testing.assert_allclose(state.log_gains, expected.rho, rtol=0, atol=tol)


# Every operator; blocks of one sample, of a number that does not divide l, of more than there are;
# samples that repeat within a block.
BLOCKS = [
    *[(operator, 16, False) for operator in OPERATORS],
    *[("centered", block_size, False) for block_size in (1, 7, 256)],
    *[(operator, size, True) for operator in ("centered", "weighted") for size in (16, 256)],
]


@pytest.mark.parametrize(("operator", "block_size", "repeats"), BLOCKS)
@every_rule
@every_gain
def test_iterates_are_those_of_the_oracle(gain, rule, operator, block_size, repeats):
    found = run(operator, gain, rule, repeats=repeats, block_size=block_size)
    check_iterates(found, oracle(operator, gain, rule, repeats))
    if operator == "centered" and not repeats:  # S K' is updated, never computed again
        exact = found.state.coefficients @ OPERATORS[operator](np.float64).toarray()
        assert relative_difference(found.state.projections, exact) <= 1e-12


@pytest.mark.parametrize(("block_size", "repeats"), [(1, False), (7, False), (256, True)])
@pytest.mark.parametrize(("updates", "interval"), [("block", INTERVAL), ("step", 1)])
@every_rule
@every_gain
def test_eigenvalue_updates(gain, rule, updates, interval, block_size, repeats, monkeypatch):
    """Every few samples, or at each sample; the size of blocks does not matter."""
    monkeypatch.setattr(sweep, "_INTERVAL", INTERVAL)
    options = {"block_size": block_size, "eigenvalue_updates": updates, "repeats": repeats}
    found = run("centered", gain, rule, **options)
    expected = oracle("centered", gain, rule, repeats, interval)
    # with gains that follow each step, differences of rounding grow faster
    check_iterates(found, expected, 10 * EXACT)
    once_per_pass = oracle("centered", gain, rule, repeats)
    if gain in ("et", "smd"):
        assert relative_difference(expected.A, once_per_pass.A) > 1e-4


@pytest.mark.parametrize(("gain", "eta0"), [("et", 0.01), ("smd", "auto"), ("et", "auto")])
def test_the_default_of_eigenvalue_updates(gain, eta0, monkeypatch):
    monkeypatch.setattr(sweep, "_INTERVAL", INTERVAL)
    options = {"gain": gain, "eta0": eta0, "n_passes": 2, "random_state": 0}
    K = OPERATORS["centered"](np.float64)
    given = [
        hebbian(K, R, eigenvalue_updates=updates, **options).coefficients
        for updates in ("auto", "block" if (gain, eta0) == ("et", "auto") else "pass")
    ]
    np.testing.assert_array_equal(*given)


@pytest.mark.parametrize(("gain", "updates"), [("et", "block"), ("et", "pass"), ("smd", "block")])
def test_only_the_default_sorts_the_components(gain, updates):
    """Then it does not matter which of them is given first."""
    A = random_start(R, N_POINTS)
    one, other = (
        run("centered", gain, "automatic", eigenvalue_updates=updates, initial=initial)
        for initial in (A, A[::-1])
    )
    same = relative_difference(one.coefficients, other.coefficients) <= EXACT
    assert same == ((gain, updates) == ("et", "block"))


@every_gain
def test_clipped_steps_are_counted(gain):
    found = run("centered linear", gain, "automatic")
    expected = oracle("centered linear", gain, "automatic").n_clipped
    assert [entry["clipped"] * N_POINTS for entry in found.history] == pytest.approx(expected)
    if gain in ("et", "smd"):
        assert sum(expected) > 10  # else the limit is not tested at all
    assert not any(entry["clipped"] for entry in run("centered linear", gain, "paper").history)


def test_log_gains_have_bounds_on_both_sides():
    """With a large μ they run into them within a pass (after several, rounding would be felt)."""
    K = OPERATORS["centered"](np.float64).toarray()
    mu, order = 20 / np.mean(np.diag(K)), orders()[:1]
    expected = automatic_iterates(K, random_start(R, N_POINTS), order, "smd", mu=mu)
    assert (expected.rho.min(), expected.rho.max()) == (-1.5, 1.5)
    found = run("centered", "smd", "automatic", mu=mu, n_passes=1)
    np.testing.assert_allclose(found.state.log_gains, expected.rho, rtol=0, atol=1e-9)
    assert relative_difference(found.coefficients, expected.A) <= 1e-9


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        *[(rule, {"xi": xi}) for rule in ("paper", "automatic") for xi in (0.0, 0.5, 1.0)],
        ("automatic", {"mu": 0.05}),
        ("automatic", {"rho0": -0.5}),
        ("paper", {"rho0": 0.2}),
        ("automatic", {"eta0": 0.01}),  # leaves mu = 0.2 / mean k'(x, x)
    ],
)
def test_options_of_meta_descent(rule, given):
    K = OPERATORS["centered"](np.float64).toarray()
    options = numbers(K, "smd", rule) | given
    A, order = random_start(R, N_POINTS), orders()[:3]
    if "eta0" in options:
        mu = {"mu": 0.2 / np.mean(np.diag(K))}
        expected = paper_iterates(K, A, order, "smd", **mu | options)
    else:
        expected = automatic_iterates(K, A, order, "smd", **options)
    found = run("centered", "smd", "automatic", n_passes=3, **options)
    assert relative_difference(found.coefficients, expected.A) <= EXACT
    assert relative_difference(found.state.coefficients[R:], expected.B) <= EXACT


@every_operator
@every_rule
@every_gain
def test_float32_operators(gain, rule, operator):
    """Only rows and steps are rounded to float32; the iterates stay near those of float64."""
    found = run(operator, gain, rule, dtype=np.float32)
    expected = oracle(operator, gain, rule)
    for name in ("coefficients", "eigenvalues", "eigenvectors", "residuals"):
        assert getattr(found, name).dtype == np.float32
    assert found.state.coefficients.dtype == np.float64
    assert relative_difference(found.coefficients, expected.A) <= 2e-4


@every_rule
@every_gain
def test_seeds_fix_the_order(gain, rule):
    """The orders that a run draws for itself are permutations, another one in each pass."""
    operator = Counted(OPERATORS["centered"](np.float64))
    A = random_start(R, N_POINTS)
    settings = {"gain": gain, "n_passes": 3, "tol": 0, "polish": False, "initial": A}
    settings |= numbers(operator.operator.toarray(), gain, rule) | {"random_state": 5}
    settings["eigenvalue_updates"] = "pass"
    found = hebbian(operator, R, **settings)
    # a pass is one block here; estimates ask for fewer rows
    order = np.array([chosen for chosen in operator.asked if len(chosen) == N_POINTS])
    np.testing.assert_array_equal(np.sort(order, axis=1), [np.arange(N_POINTS)] * 3)
    assert len(np.unique(order, axis=0)) == 3
    expected = expected_iterates(operator.operator.toarray(), A, order, gain, rule)
    assert relative_difference(found.coefficients, expected.A) <= EXACT
