"""Runs that are interrupted, killed, extended: the end is that of a run never interrupted."""

import contextlib
import dataclasses
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from laws_hebbian import GAINS, Counted, check_same_run, random_start, without_limit
from orthodrome import KernelPCA, KernelPGA
from orthodrome._core import threads
from orthodrome._core.status import Status
from orthodrome.eigen import Hebbian, hebbian
from orthodrome.eigen.kha.checkpoint import Checkpoint, Saved
from orthodrome.eigen.kha.sweep import State
from orthodrome.gram import Centered, Combined, DenseGram, Tangent, TiledGram, tiled
from orthodrome.kernels import Exponential, FromCallable, Gaussian, Linear, Polynomial
from orthodrome.sphere import karcher_mean

N, R, BLOCK = 150, 3, 32  # five blocks, the last one shorter
ESTIMATE = 64  # rows that an error estimate looks at
COMPARED = 32  # rows that say whether the matrix is that of the file
N_PASSES = 5

every_gain = pytest.mark.parametrize("gain", GAINS)


def matrix(seed=0):
    X = np.random.default_rng(seed).standard_normal((N, 20)) * 0.8 ** np.arange(20)
    return X @ X.T


def run(K, checkpoint=None, **arguments):
    settings = {"n_passes": N_PASSES, "tol": 0, "block_size": BLOCK, "random_state": 0}
    operator = Counted(DenseGram(K)) if isinstance(K, np.ndarray) else K
    return hebbian(operator, R, checkpoint=checkpoint, **{**settings, **arguments})


def rows_until(n_pass, block, start="orthonormal"):
    """Rows asked for before this block of this pass (both from 0)."""
    operator = Counted(DenseGram(matrix()))
    run(operator, start=start, n_passes=0)
    return operator.n_rows - ESTIMATE + n_pass * (N + ESTIMATE) + block * BLOCK


def rows_from(n_pass, block):
    """Rows from there to the end of the run, with its last estimate."""
    return N - block * BLOCK + (N_PASSES - n_pass - 1) * N + (N_PASSES - n_pass) * ESTIMATE


EACH_BLOCK = {"gain": "smd", "checkpoint_seconds": 0}


class Interrupted(BaseException):
    pass


def interrupt():
    raise Interrupted


# ------------------------------------------------------------------ interrupted


@every_gain
@pytest.mark.parametrize("n_pass", [1, 3, N_PASSES])
def test_a_callback_that_raises(gain, n_pass, tmp_path):
    """What it raises after a pass finds that pass in the file."""

    def stop(entry):
        if entry["n_pass"] == n_pass:
            raise Interrupted

    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        run(matrix(), path, gain=gain, callback=stop)
    operator, seen = Counted(DenseGram(matrix())), []
    resumed = run(operator, path, gain=gain, callback=seen.append)
    check_same_run(resumed, run(matrix(), gain=gain))
    assert [entry["n_pass"] for entry in seen] == list(range(n_pass + 1, N_PASSES + 1))
    left = N_PASSES - n_pass
    assert operator.n_rows == COMPARED + left * N + max(left, 1) * ESTIMATE
    assert operator.n_products == 0


@every_gain
@pytest.mark.parametrize(("n_pass", "block"), [(0, 0), (0, 3), (2, 0), (2, 4)])
@pytest.mark.parametrize("seconds", [None, 0])
def test_a_failure_in_the_middle_of_a_pass(gain, n_pass, block, seconds, tmp_path):
    """With a file per pass the pass is repeated from its start; with one per block, from there."""
    path = tmp_path / "run"
    failing = Counted(DenseGram(matrix()), rows_until(n_pass, block), interrupt)
    with pytest.raises(Interrupted):
        run(failing, path, gain=gain, checkpoint_seconds=seconds)
    operator = Counted(DenseGram(matrix()))
    resumed = run(operator, path, gain=gain, checkpoint_seconds=seconds)
    check_same_run(resumed, run(matrix(), gain=gain))
    begun_anew = n_pass == 0 and (seconds is None or block == 0)
    first = 4 * R if begun_anew else COMPARED
    assert operator.n_rows == first + rows_from(n_pass, 0 if seconds is None else block)


@pytest.mark.parametrize("start", ["orthonormal", "pilot", "paper", "sparse"])
def test_every_start(start, tmp_path):
    path = tmp_path / "run"
    failing = Counted(DenseGram(matrix()), rows_until(2, 1, start), interrupt)
    with pytest.raises(Interrupted):
        run(failing, path, start=start, checkpoint_seconds=0)
    operator = Counted(DenseGram(matrix()))
    resumed = run(operator, path, start=start, checkpoint_seconds=0)
    check_same_run(resumed, run(matrix(), start=start))
    assert operator.n_rows == COMPARED + rows_from(2, 1)
    assert operator.n_products == 0


def test_interrupted_again_and_again(tmp_path):
    """Two blocks further each time, or one estimate."""
    path, found = tmp_path / "run", None
    for _ in range(40):
        try:
            limit = COMPARED + ESTIMATE
            found = run(Counted(DenseGram(matrix()), limit, interrupt), path, **EACH_BLOCK)
            break
        except Interrupted:
            pass
    check_same_run(found, run(matrix(), gain="smd"))


def test_given_starts_and_orders(tmp_path):
    K, path = matrix(), tmp_path / "run"
    order = np.random.default_rng(0).integers(N, size=(N_PASSES, N))
    settings = {"initial": random_start(R, N), "order": order}
    failing = Counted(DenseGram(K), rows_until(2, 2, "paper"), interrupt)
    with pytest.raises(Interrupted):
        run(failing, path, checkpoint_seconds=0, **settings)
    check_same_run(run(K, path, **settings), run(K, **settings))


@every_gain
def test_going_on_from_a_result(gain, tmp_path):
    K, path = matrix(), tmp_path / "run"
    first = run(K, gain=gain, n_passes=2)
    failing = Counted(DenseGram(K), COMPARED + N + ESTIMATE + 40, interrupt)
    with pytest.raises(Interrupted):
        run(failing, path, gain=gain, initial=first, checkpoint_seconds=0)
    operator = Counted(DenseGram(K))
    resumed = run(operator, path, gain=gain, initial=first, checkpoint_seconds=0)
    # not the pass that is done
    assert operator.n_rows < COMPARED + (N_PASSES - 1) * (N + ESTIMATE) + ESTIMATE
    assert resumed.n_passes == 2 + N_PASSES
    check_same_run(resumed, run(K, gain=gain, n_passes=2 + N_PASSES))


def test_going_on_from_a_result_of_another_run_is_refused(tmp_path):
    """Neither the file nor the result is to be preferred: their seeds differ."""
    path = tmp_path / "run"
    run(matrix(), path, random_state=None, n_passes=1)
    other = run(matrix(), random_state=3, n_passes=1)
    with pytest.raises(ValueError, match=r"checkpoint of another run than the result"):
        run(matrix(), path, random_state=None, initial=other)


def test_going_on_from_a_result_that_is_further_than_the_file(tmp_path):
    """The file is of an earlier fit; the result goes on, and replaces it."""
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    further = run(matrix(), n_passes=3)
    operator = Counted(DenseGram(matrix()))
    found = run(operator, path, initial=further, n_passes=2)
    check_same_run(found, run(matrix(), n_passes=5))
    assert operator.n_rows < 3 * (N + ESTIMATE)  # not the passes that the result has made
    check_same_run(run(matrix(), path, n_passes=5), found)


@pytest.mark.parametrize("gain", ["et", "smd"])
@pytest.mark.parametrize("block", [0, 2])
def test_gains_stay_halved_after_a_divergence(gain, block, monkeypatch, tmp_path):
    """Damping, and the passes undone, are in the file too."""
    without_limit(monkeypatch, 64.0)
    path = tmp_path / "run"
    with pytest.warns(ConvergenceWarning, match="half the gains"):
        whole = run(matrix(), gain=gain)
    undone = sum(entry["diverged"] for entry in whole.history)
    assert whole.state.damping == 0.5**undone < 1
    rows = []

    def stop(entry):
        if entry["n_pass"] == 2 and not entry["diverged"]:
            raise Interrupted

    with (
        pytest.warns(ConvergenceWarning, match="half the gains"),
        pytest.raises(Interrupted),
    ):
        run(matrix(), path, gain=gain, callback=stop)
    failing = Counted(DenseGram(matrix()), block * BLOCK, interrupt)
    with pytest.raises(Interrupted):
        run(failing, path, gain=gain, checkpoint_seconds=0)
    resumed = run(matrix(), path, gain=gain, callback=rows.append)
    check_same_run(resumed, whole)


def test_a_divergence_in_the_pass_of_a_resumed_run_is_undone_to_its_start(monkeypatch, tmp_path):
    """Half of the pass is in the file, and so is the state that it began with."""
    K, path = matrix(), tmp_path / "run"
    failing = Counted(DenseGram(K), rows_until(2, 2), interrupt)
    with pytest.raises(Interrupted):
        run(failing, path, checkpoint_seconds=0)
    without_limit(monkeypatch, 1e30)
    with pytest.warns(ConvergenceWarning, match="Pass 3 diverged"):
        found = run(K, path)
    assert found.status is Status.DIVERGED
    monkeypatch.undo()
    good = run(K, n_passes=2)
    np.testing.assert_array_equal(found.coefficients, good.coefficients)
    assert found.state.clock == good.state.clock
    assert found.state.position == 0


def test_a_run_that_diverged_stays_so(tmp_path):
    """The same call again ends in the same way."""
    K, path = matrix(), tmp_path / "run"
    with pytest.warns(ConvergenceWarning):
        first = run(K, path, eta0=1e3)
    operator = Counted(DenseGram(K))
    with pytest.warns(ConvergenceWarning, match="Pass 1 diverged and was undone"):
        again = run(operator, path, eta0=1e3)
    check_same_run(again, first)
    assert again.status is Status.DIVERGED
    assert operator.n_rows == COMPARED + ESTIMATE  # the pass is not tried again


# ------------------------------------------------------------------ killed

CHILD = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from laws_hebbian import Counted
from orthodrome.eigen import hebbian
from orthodrome.gram import DenseGram

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

_, _, matrix, limit, path, arguments, where = sys.argv
if where == "writing":  # the second file is complete, but not yet in its place
    replace, count = os.replace, []
    os.replace = lambda *names: kill() if count else count.append(replace(*names))
operator = Counted(DenseGram(np.load(matrix)), float(limit), kill)
hebbian(operator, checkpoint=path, **json.loads(arguments))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.parametrize(
    ("gain", "seconds", "where"),
    [
        ("smd", None, "visiting"),
        pytest.param("et", 0, "visiting", marks=pytest.mark.slow),
        ("et", None, "writing"),
    ],
)
def test_killed(gain, seconds, where, tmp_path):
    """SIGKILL in the middle of a pass, or of writing: nothing can be tidied up."""
    n_pass, block = (2, 3) if where == "visiting" else (1, 0)
    np.save(tmp_path / "matrix.npy", matrix())
    path = tmp_path / "run"
    arguments = {"n_components": R, "gain": gain, "n_passes": N_PASSES, "tol": 0}
    arguments |= {"block_size": BLOCK, "random_state": 0, "checkpoint_seconds": seconds}
    limit = rows_until(n_pass, block) if where == "visiting" else np.inf
    tests = str(Path(__file__).parents[1])
    given = [tests, str(tmp_path / "matrix.npy"), str(limit), str(path), json.dumps(arguments)]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, *given, where], capture_output=True, text=True, timeout=120
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    operator = Counted(DenseGram(matrix()))
    resumed = run(operator, path, gain=gain, checkpoint_seconds=seconds)
    check_same_run(resumed, run(matrix(), gain=gain))
    # the one that died leaves at most a hidden file, which is removed when it is old
    left = [name for name in os.listdir(tmp_path) if not name.endswith(".orthodrome-part")]
    assert sorted(left) == ["matrix.npy", "run"]
    for name in set(os.listdir(tmp_path)) - set(left):
        os.utime(tmp_path / name, (0, 0))
    run(matrix(), path, gain=gain, n_passes=N_PASSES + 1, checkpoint_seconds=seconds)
    assert sorted(os.listdir(tmp_path)) == ["matrix.npy", "run"]
    assert operator.n_rows == COMPARED + rows_from(n_pass, 0 if seconds is None else block)


# ------------------------------------------------------------------ extended


@every_gain
def test_a_finished_run_can_be_extended(gain, tmp_path):
    path = tmp_path / "run"
    run(matrix(), path, gain=gain, n_passes=2)
    operator = Counted(DenseGram(matrix()))
    check_same_run(run(operator, path, gain=gain), run(matrix(), gain=gain))
    assert operator.n_rows == COMPARED + rows_from(2, 0)
    # and what is done is done: no pass, no row of one
    operator = Counted(DenseGram(matrix()))
    check_same_run(run(operator, path, gain=gain), run(matrix(), gain=gain))
    assert operator.n_rows == COMPARED + ESTIMATE


@pytest.mark.parametrize("arguments", [{"n_passes": 2}, {"tol": 0.99}])
def test_half_a_pass_too_many_is_left_out(arguments, tmp_path):
    """Fewer passes than the file has, or a tolerance that its last whole pass had reached."""
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        run(Counted(DenseGram(matrix()), rows_until(2, 3), interrupt), path, **EACH_BLOCK)
    found = run(matrix(), path, **EACH_BLOCK | arguments)
    whole = run(matrix(), gain="smd", n_passes=2)
    np.testing.assert_array_equal(found.coefficients, whole.coefficients)
    assert found.state.position == 0
    check_same_run(run(matrix(), path, **EACH_BLOCK), run(matrix(), gain="smd"))


def test_a_smaller_tolerance_goes_on_and_a_larger_one_does_not(tmp_path):
    path = tmp_path / "run"
    settings = {"n_passes": 200}
    first = run(matrix(), path, tol=0.05, **settings)
    assert first.converged
    second = run(matrix(), path, tol=0.01, **settings)
    check_same_run(second, run(matrix(), tol=0.01, **settings))
    assert second.n_passes > first.n_passes
    assert run(matrix(), path, tol=0.5, **settings).n_passes == second.n_passes


def test_polish_and_callback_may_differ(tmp_path):
    path = tmp_path / "run"
    run(matrix(), path, polish=False, n_passes=2)
    found, whole = run(matrix(), path, callback=lambda entry: None), run(matrix())
    np.testing.assert_array_equal(found.coefficients, whole.coefficients)
    np.testing.assert_array_equal(found.residuals, whole.residuals)


def test_without_a_seed_the_one_in_the_file_holds(tmp_path):
    for index, make in enumerate(
        (lambda: None, lambda: np.random.RandomState(1), lambda: np.random.default_rng(1))
    ):
        path = tmp_path / f"run {index}"
        part = run(matrix(), path, random_state=make(), n_passes=2)
        resumed = run(matrix(), path, random_state=make())
        assert resumed.seed == part.seed
        check_same_run(resumed, run(matrix(), random_state=part.seed))


def test_checkpoints_change_nothing(tmp_path):
    for seconds in (None, 0, 1e6):
        path = tmp_path / f"run {seconds}"
        check_same_run(run(matrix(), path, checkpoint_seconds=seconds), run(matrix()))
        assert path.exists()  # a run that ends is written, however soon
        check_same_run(run(matrix(), path, checkpoint_seconds=seconds), run(matrix()))


def test_when_it_writes(monkeypatch, tmp_path):
    written = []
    monkeypatch.setattr(
        Checkpoint, "write", lambda self, saved: written.append(saved.state.position)
    )
    run(matrix(), tmp_path / "a")
    assert written == [0] * N_PASSES
    written.clear()
    run(matrix(), tmp_path / "b", checkpoint_seconds=0)
    assert written == [32, 64, 96, 128, 0] * N_PASSES
    written.clear()
    run(matrix(), tmp_path / "c", checkpoint_seconds=1e6)
    assert written == [0]


# ------------------------------------------------------------------ refused


OTHERS = {
    "data": {"K": matrix(seed=1)},
    "one entry": {"K": matrix() + np.diag(np.r_[1e-12, np.zeros(N - 1)])},
    "precision": {"K": matrix().astype(np.float32)},
    "gain": {"gain": "t"},
    "meta-descent": {"gain": "smd"},
    "eta0": {"eta0": 0.1},
    "mu": {"mu": 0.1},
    "xi": {"xi": 0.9},
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
    arguments = {"K": matrix(), **OTHERS[other]}
    with pytest.raises(ValueError, match=r"is the checkpoint of another run.*Delete it") as caught:
        run(arguments.pop("K"), path, **arguments)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_another_number_of_components_is_refused(tmp_path):
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    with pytest.raises(ValueError, match="checkpoint of another run"):
        hebbian(
            Counted(DenseGram(matrix())),
            R + 1,
            tol=0,
            block_size=BLOCK,
            random_state=0,
            checkpoint=path,
        )


def points(seed=0):
    return np.random.default_rng(seed).standard_normal((N, 4))


def gram(kernel, X, storage="memory"):
    return TiledGram(kernel.fit(X), X, storage)


def tangent(weights=None, sigma=2.0):
    operator = gram(Gaussian(sigma=sigma), points())
    mean = karcher_mean(operator, weights)
    return Tangent(operator, mean.point, mean.cosines)


WEIGHTS = np.arange(N) % 3 + 1.0
OPERATORS = {
    "a kernel": lambda: gram(Gaussian(sigma=2.0), points()),
    "its scale": lambda: gram(Gaussian(sigma=2.1), points()),
    "its kind": lambda: gram(Exponential(sigma=2.0), points()),
    "its points": lambda: gram(Gaussian(sigma=2.0), points(1)),
    "linear": lambda: gram(Linear(), points()),
    "polynomial": lambda: gram(Polynomial(degree=2), points()),
    "its degree": lambda: gram(Polynomial(degree=3), points()),
    "centred": lambda: Centered(gram(Gaussian(sigma=2.0), points())),
    "centred with weights": lambda: Centered(gram(Gaussian(sigma=2.0), points()), WEIGHTS),
    "weighted": lambda: Combined(
        Centered(gram(Gaussian(sigma=2.0), points()), WEIGHTS), np.sqrt(WEIGHTS)
    ),
    "tangent": lambda: tangent(),
    "its weights": lambda: tangent(WEIGHTS),
    "tangent of another scale": lambda: tangent(sigma=2.1),
    "dense": lambda: DenseGram(gram(Gaussian(sigma=2.0), points()).toarray()),
}


def test_every_operator_has_a_file_of_its_own(tmp_path):
    for name, make in OPERATORS.items():
        run(make(), tmp_path / name, n_passes=1)
    for name in OPERATORS:
        for other, make in OPERATORS.items():
            if other == name:
                assert run(make(), tmp_path / name, n_passes=1).n_passes == 1
                continue
            with pytest.raises(ValueError, match="checkpoint of another run"):
                run(make(), tmp_path / name, n_passes=1)


@pytest.mark.parametrize("wrap", [lambda gram: gram, Centered], ids=["plain", "centred"])
def test_where_the_matrix_is_kept_does_not_matter(wrap, monkeypatch, tmp_path):
    monkeypatch.setattr(tiled, "TILE", 64)
    X, path = points(), tmp_path / "run"
    operators = {
        storage: wrap(gram(Gaussian(sigma=2.0), X, storage)) for storage in ("memory", "recompute")
    }
    whole = run(operators["memory"])
    run(operators["memory"], path, n_passes=2)
    resumed = run(operators["recompute"], path)
    np.testing.assert_allclose(resumed.eigenvalues, whole.eigenvalues, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda: Centered(OPERATORS["a kernel"]()), tangent])
def test_the_number_of_threads_does_not_matter(make, monkeypatch, tmp_path):
    """Sums over tiles are then rounded in another order, which makes no other matrix."""
    monkeypatch.setattr(tiled, "TILE", 32)
    path = tmp_path / "run"
    whole = run(make())
    run(make(), path, n_passes=2)
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    resumed = run(make(), path)
    np.testing.assert_allclose(resumed.eigenvalues, whole.eigenvalues, rtol=1e-12)


SCALE = 1.0


def of_a_global(X, Y):
    return np.exp(-((X[:, None] - Y[None]) ** 2).sum(axis=2) / SCALE)


def test_a_kernel_that_reads_a_global_is_found_out(monkeypatch, tmp_path):
    """No fingerprint sees what a function finds by name when it runs; the matrix does."""
    path = tmp_path / "run"
    operator = gram(FromCallable(of_a_global), points())
    run(operator, path, n_passes=2)
    assert run(operator, path).n_passes == N_PASSES
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with pytest.raises(ValueError, match="run is the checkpoint of a run on another matrix"):
        run(gram(FromCallable(of_a_global), points()), path)


@pytest.mark.parametrize(
    "arguments",
    [
        {"random_state": np.int64(0)},
        {"eta0": 1},
        {"mu": np.float32(0.5)},
    ],
)
def test_the_same_numbers_of_another_type(arguments, tmp_path):
    path = tmp_path / "run"
    same = {n: int(v) if n == "random_state" else float(v) for n, v in arguments.items()}
    run(matrix() / 1e4, path, n_passes=1, **same)
    assert run(matrix() / 1e4, path, n_passes=2, **arguments).n_passes == 2


# ------------------------------------------------------------------ files


class Trap:
    """What unpickling it would do is seen."""

    sprung = False

    def __reduce__(self):
        return (spring, ())


def spring():
    Trap.sprung = True


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def saved_array():
    file = io.BytesIO()
    np.save(file, np.eye(3))
    return file.getvalue()


FOREIGN = {
    "empty": b"",
    "text": b"hello\n",
    "pickle": pickle.dumps(Trap()),
    "array": saved_array(),
    "other arrays": npz(a=np.eye(3)),
    "no JSON": npz(meta=np.array("{")),
    "no dictionary": npz(meta=np.array("[1, 2]")),
    "no format": npz(meta=np.array("{}")),
    "another format": npz(meta=np.array(json.dumps({"format": "of the future"}))),
    "pickled meta": npz(meta=np.array([Trap()], dtype=object)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(name, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(ValueError, match=r"cannot be read as a checkpoint.*delete it"):
        run(matrix(), path)
    assert path.read_bytes() == FOREIGN[name]
    assert not Trap.sprung


def state_of(coefficients=(3, 5), projections=(3, 5), log_gains=(3,), eigenvalues=(3,), **numbers):
    arrays = map(np.zeros, (coefficients, projections, log_gains))
    return State(*arrays, eigenvalues=np.zeros(eigenvalues), **numbers)


WRONG_SHAPES = {
    "other products": {"projections": (3, 4)},
    "three dimensions": {"coefficients": (3, 5, 2), "projections": (3, 5, 2)},
    "one dimension": {"coefficients": (3,), "projections": (3,)},
    "other gains": {"log_gains": (2,), "eigenvalues": (2,)},
    "a table of gains": {"log_gains": (3, 1)},
    "a table of eigenvalues": {"eigenvalues": (3, 1)},
    "other eigenvalues": {"eigenvalues": (2,)},
    "another run": {"coefficients": (3, 6), "projections": (3, 6)},
}


@pytest.mark.parametrize("which", ["state", "pass_start"])
@pytest.mark.parametrize("shapes", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
def test_arrays_that_do_not_go_together_are_refused(shapes, which, tmp_path):
    states = {"state": state_of(), "pass_start": state_of(), which: state_of(**shapes)}
    file = Checkpoint(tmp_path / "run", "a run", None)
    file.write(Saved(**states, seed=0, history=[]))
    for shape in [(3, 5)] if shapes is WRONG_SHAPES["another run"] else [(3, 5), None]:
        with pytest.raises(ValueError, match="do not go together"):
            file.read(shape)


@pytest.mark.parametrize("rows", [3, 6])
def test_arrays_that_go_together_are_read(rows, tmp_path):
    state = state_of(coefficients=(rows, 5), projections=(rows, 5), position=5)
    file = Checkpoint(tmp_path / "run", "a run", None)
    file.write(Saved(state=state, pass_start=None, seed=0, history=[]))
    for shape in ((rows, 5), None):
        assert file.read(shape).state.position == 5


def test_what_is_saved_is_not_written_over():
    saved = Saved(state=state_of(), pass_start=None, seed=0, history=[])
    with pytest.raises(dataclasses.FrozenInstanceError):
        saved.seed = 1


def test_counts_that_are_none_are_refused(tmp_path):
    file = Checkpoint(tmp_path / "run", "a run", None)
    for numbers in ({"clock": -1}, {"n_passes": 0.5}, {"position": True}, {"position": 6}):
        file.write(Saved(state=state_of(**numbers), pass_start=None, seed=0, history=[]))
        with pytest.raises(ValueError, match="counts of samples and passes are none"):
            file.read((3, 5))


def test_torn_files_are_refused(tmp_path):
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    whole = path.read_bytes()
    for length in (1, 100, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cannot be read as a checkpoint.*delete it"):
            run(matrix(), path)


def test_flipped_bits_are_noticed(tmp_path):
    """A file that is read at all holds the numbers that were written."""
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    whole, good = path.read_bytes(), run(matrix())
    rng = np.random.default_rng(0)
    for position in rng.integers(len(whole), size=60):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with contextlib.suppress(ValueError):  # there are bits that zip does not use
            check_same_run(run(matrix(), path), good)


def test_flipped_bits_of_the_headers_are_noticed(tmp_path):
    """Every bit of the local header and of the directory: sizes, flags, ways to compress."""
    path = tmp_path / "run"
    run(matrix(), path, n_passes=1)
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    for position in (*range(40), *range(directory, directory + 60)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[position] ^= 1 << bit
            path.write_bytes(flipped)
            with contextlib.suppress(ValueError):
                Checkpoint(path, "", None).read()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        run(matrix(), tmp_path)


def test_a_number_is_no_file():
    with pytest.raises(ValueError, match=r"checkpoint of hebbian must be a path.* got 5"):
        run(matrix(), 5)


def test_a_folder_that_is_not_there(tmp_path):
    operator = Counted(DenseGram(matrix()))
    with pytest.raises(ValueError, match=r"checkpoint: there is no folder .*nowhere to write to"):
        run(operator, tmp_path / "nowhere" / "run")
    assert operator.n_rows == 0  # said before the work, not after


def test_what_a_file_holds(tmp_path):
    """Arrays and JSON, readable without pickle; nothing else in the folder."""
    for name, path in (("text", str(tmp_path / "text")), ("path", tmp_path / "path")):
        run(matrix(), path, gain="smd", checkpoint_seconds=0)
        with np.load(tmp_path / name, allow_pickle=False) as file:
            contents = {key: file[key] for key in file.files}
        meta = json.loads(str(contents.pop("meta")))
        assert all(array.dtype == np.float64 for array in contents.values())
        assert contents["coefficients"].shape == (2 * R, N)
        assert meta["numbers"]["n_passes"] == len(meta["history"]) == N_PASSES
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert archive.testzip() is None
    assert sorted(os.listdir(tmp_path)) == ["path", "text"]


def test_a_write_that_fails_leaves_the_old_file(monkeypatch, tmp_path):
    path = tmp_path / "run"
    run(matrix(), path, n_passes=2)
    before = path.read_bytes()

    def no_space(*_):
        raise OSError("No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, no_space)
            with pytest.raises(OSError, match="No space left"):
                run(matrix(), path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["run"]
    check_same_run(run(matrix(), path), run(matrix()))


# ------------------------------------------------------------------ through estimators


@pytest.mark.parametrize("Estimator", [KernelPCA, KernelPGA])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_go_on_from_a_checkpoint(Estimator, weighted, monkeypatch, tmp_path):
    X, path = points(), tmp_path / "run"
    weights = WEIGHTS if weighted else None

    def fit(n_passes=4, data=X, sigma=2.0, sample_weight=weights, checkpoint=path):
        solver = Hebbian(
            n_passes=n_passes, tol=0, block_size=BLOCK, random_state=0, checkpoint=checkpoint
        )
        estimator = Estimator(R, Gaussian(sigma=sigma), solver=solver)
        return estimator.fit(data, sample_weight=sample_weight)

    whole = fit(checkpoint=None)
    written, write = [], Checkpoint.write

    def write_twice(self, saved):
        write(self, saved)
        written.append(saved)
        if len(written) == 2:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "write", write_twice)
        with pytest.raises(Interrupted):
            fit()
    with monkeypatch.context() as patch:
        written.clear()
        patch.setattr(
            Checkpoint, "write", lambda self, saved: written.append(saved) or write(self, saved)
        )
        resumed = fit()
    assert len(written) == 2  # of four passes, two were there
    for name in ("eigenvalues_", "eigenvectors_", "embedding_", "dual_coef_", "residuals_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    assert resumed.n_iter_ == 4
    others = [{"data": points(1)}, {"sigma": 2.5}, {"sample_weight": np.roll(WEIGHTS, 1)}]
    for other in others:
        with pytest.raises(ValueError, match="checkpoint of another run"):
            fit(**other)
    assert fit(6).n_iter_ == 6
