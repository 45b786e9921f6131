"""Runs that are interrupted, killed, extended: the end is that of a run never interrupted."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laws_hebbian import GAINS, Counted, check_same_run, random_start, without_limit
from orthodrome import KernelPCA, KernelPGA
from orthodrome._core.status import Status
from orthodrome.eigen import Hebbian, hebbian
from orthodrome.eigen.kha.checkpoint import Checkpoint, Record
from orthodrome.eigen.kha.sweep import State
from orthodrome.gram import DenseGram
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import FromCallable, Gaussian

N, R, BLOCK = 150, 3, 32  # five blocks, the last one shorter
ESTIMATE = 64  # rows of an error estimate
COMPARED = 32  # rows that are compared with those of the file
N_PASSES = 5

every_gain = pytest.mark.parametrize("gain", GAINS)


def matrix(seed=0, moved=0.0):
    X = np.random.default_rng(seed).standard_normal((N, 20)) * 0.8 ** np.arange(20)
    X[77, 0] += moved
    return X @ X.T


def counted(limit=np.inf):
    return Counted(DenseGram(matrix()), limit, interrupt)


def run(K, checkpoint=None, r=R, **arguments):
    settings = {"n_passes": N_PASSES, "tol": 0, "block_size": BLOCK, "random_state": 0}
    settings |= {"start": "orthonormal"}
    operator = Counted(DenseGram(K)) if isinstance(K, np.ndarray) else K
    return hebbian(operator, r, checkpoint=checkpoint, **{**settings, **arguments})


def rows_until(n_pass, block, **arguments):
    """Rows asked for before this block of this pass (both from 0)."""
    operator = counted()
    run(operator, **arguments | {"n_passes": 0})
    return operator.n_rows - ESTIMATE + n_pass * (N + ESTIMATE) + block * BLOCK


class Interrupted(BaseException):
    pass


def interrupt(*_):
    raise Interrupted


def stop_after(n_pass):
    def stop(entry):
        if entry["n_pass"] == n_pass and not entry["diverged"]:
            raise Interrupted

    return stop


@pytest.mark.parametrize(("n_pass", "block"), [(0, 0), (0, 3), (2, 0), (2, 4)])
@every_gain
def test_a_failure_in_the_middle_of_a_pass(gain, n_pass, block, tmp_path):
    """The pass is repeated from its start."""
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        run(counted(rows_until(n_pass, block)), path, gain=gain)
    operator = counted()
    check_same_run(run(operator, path, gain=gain), run(matrix(), gain=gain))
    first = COMPARED if n_pass else 4 * R
    assert operator.n_rows == first + (N_PASSES - n_pass) * (N + ESTIMATE)


def test_a_result_and_a_file(tmp_path):
    """The one with more passes counts; of different seeds neither does."""
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    further, operator = run(matrix(), n_passes=3), counted()
    found = run(operator, path, initial=further, n_passes=2)
    check_same_run(found, run(matrix(), n_passes=5))
    assert operator.n_rows < 3 * (N + ESTIMATE)  # not the passes of the result
    check_same_run(run(matrix(), path, n_passes=5), found)
    other = tmp_path / "other"
    run(matrix(), other, random_state=None, n_passes=1)
    with pytest.raises(ValueError, match=r"not from the same run: their seeds differ"):
        run(matrix(), other, random_state=None, initial=run(matrix(), random_state=3, n_passes=1))


@pytest.mark.parametrize("gain", ["et", "smd"])
@pytest.mark.parametrize("block", [0, 2])
def test_gains_stay_halved_after_a_divergence(gain, block, monkeypatch, tmp_path):
    """Damping, and the passes undone, are in the file too."""
    without_limit(monkeypatch, 64.0)
    path = tmp_path / "run"
    with pytest.warns(ConvergenceWarning, match="half the gains"):
        whole = run(matrix(), gain=gain)
    assert whole.state.damping == 0.5 ** sum(entry["diverged"] for entry in whole.history) < 1
    with pytest.warns(ConvergenceWarning, match="half the gains"), pytest.raises(Interrupted):
        run(matrix(), path, gain=gain, callback=stop_after(2))
    with pytest.raises(Interrupted):
        run(counted(block * BLOCK), path, gain=gain)
    check_same_run(run(matrix(), path, gain=gain), whole)


OTHERS = {
    "data": {"K": matrix(seed=1)},
    "one point": {"K": matrix(moved=1e-3)},
    "precision": {"K": matrix().astype(np.float32)},
    "components": {"r": R + 1},
    "gain": {"gain": "smd"},
    "eta0": {"eta0": 0.1},
    "mu": {"mu": 0.1},
    "xi": {"xi": 0.9},
    "rho0": {"rho0": 0.5},
    "updates": {"eigenvalue_updates": "step"},
    "start": {"start": "pilot"},
    "block_size": {"block_size": 16},
    "seed": {"random_state": 1},
    "order": {"order": np.tile(np.arange(N), (N_PASSES, 1))},
    "initial": {"initial": random_start(R, N)},
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_run_is_refused(other, tmp_path):
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    before = path.read_bytes()
    message = r"run is the checkpoint of (another run.*Delete it|a run on another matrix)"
    with pytest.raises(ValueError, match=message):
        run(**{"K": matrix(), "checkpoint": path, **OTHERS[other]})
    assert path.read_bytes() == before


def points(seed=0):
    return np.random.default_rng(seed).standard_normal((N, 4))


def gram(function):
    return TiledGram(FromCallable(function).fit(points()), points(), "memory")


WEIGHTS = np.arange(N) % 3 + 1.0
SCALE = 1.0


def of_a_global(X, Y):
    return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2) / SCALE)


def test_a_kernel_that_reads_a_global_is_detected(monkeypatch, tmp_path):
    path = tmp_path / "run"
    operator = gram(of_a_global)
    run(operator, path, n_passes=2)
    assert run(operator, path).n_passes == N_PASSES
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with pytest.raises(ValueError, match="run is the checkpoint of a run on another matrix"):
        run(gram(of_a_global), path)


def state_of(coefficients=(3, 5), projections=(3, 5), log_gains=(3,), eigenvalues=(3,), **numbers):
    arrays = map(np.zeros, (coefficients, projections, log_gains))
    return State(*arrays, eigenvalues=np.zeros(eigenvalues), **numbers)


INCONSISTENT = {
    "other products": {"projections": (3, 4)},
    "other gains": {"log_gains": (2,), "eigenvalues": (2,)},
    "other eigenvalues": {"eigenvalues": (2,)},
    "another run": {"coefficients": (3, 6), "projections": (3, 6)},
    "half a pass": {"n_passes": 0.5},
    "no number": {"n_passes": True},
}


@pytest.mark.parametrize("parts", INCONSISTENT.values(), ids=INCONSISTENT)
def test_inconsistent_arrays_and_counts_are_rejected(parts, tmp_path):
    file = Checkpoint(tmp_path / "run", "a run")
    file.write(Record(state_of(**parts), seed=0, history=[]))
    with pytest.raises(ValueError, match="inconsistent"):
        file.read((3, 5))


def test_unusable_files_raise_before_the_first_pass(tmp_path):
    operator, foreign = counted(), tmp_path / "foreign.npz"
    for meta in ("{", "[1, 2]", '{"format": "of the future"}'):
        np.savez(foreign, meta=np.array(meta))
        with pytest.raises(ValueError, match=r"cannot be read as a checkpoint.*Delete it"):
            run(operator, foreign)
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        run(operator, tmp_path)
    with pytest.raises(ValueError, match=r"checkpoint of hebbian must be a path.* got 5"):
        run(operator, 5)
    with pytest.raises(ValueError, match=r"nowhere is missing"):
        run(operator, tmp_path / "nowhere" / "run")
    assert operator.n_rows == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_go_on_from_a_checkpoint(Estimator, dtype, tmp_path):
    def fit(n_passes=4, data=0, sigma=2.0, sample_weight=WEIGHTS, path=tmp_path / "run"):
        settings = {"n_passes": n_passes, "tol": 0, "block_size": BLOCK, "random_state": 0}
        solver = Hebbian(checkpoint=path, **settings)
        estimator = Estimator(R, Gaussian(sigma=sigma), solver=solver)
        return estimator.fit(points(data).astype(dtype), sample_weight=sample_weight)

    fit(2)
    resumed, whole = fit(), fit(path=None)
    for name in ("eigenvalues_", "embedding_", "dual_coef_", "n_iter_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    for other in ({"data": 1}, {"sigma": 2.01}, {"sample_weight": None}):
        with pytest.raises(ValueError, match="checkpoint of a run on another matrix"):
            fit(**other)


def test_a_finished_run_can_be_extended(tmp_path):
    path, settings = tmp_path / "run", {"n_passes": 200, "random_state": None}
    first = run(matrix(), path, tol=0.05, **settings)
    second = run(matrix(), path, tol=0.01, **settings)
    assert first.converged
    assert second.seed == first.seed  # without a seed, that of the file is used
    check_same_run(second, run(matrix(), tol=0.01, n_passes=200, random_state=first.seed))
    assert second.n_passes > first.n_passes
    assert run(matrix(), path, tol=0.5, **settings).n_passes == second.n_passes


def test_a_run_that_diverged_stays_so(tmp_path):
    """The same call again ends in the same way, and does not try the pass again."""
    path, operator = tmp_path / "run", counted()
    with pytest.warns(ConvergenceWarning):
        first = run(matrix(), path, eta0=1e3)
    with pytest.warns(ConvergenceWarning, match="Pass 1 diverged and was undone"):
        again = run(operator, path, eta0=1e3)
    check_same_run(again, first)
    assert again.status is Status.DIVERGED
    assert operator.n_rows == COMPARED + ESTIMATE
