"""What `describe` says is true of the data, and what it foretells is near what is measured."""

import json
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from orthodrome.app.estimates import estimate_cluster, estimate_embed, format_seconds

from optional import needs
from orthodrome import GeodesicMixture, KernelPCA, KernelPGA
from orthodrome._core import machine
from orthodrome.app import estimates, overheads
from orthodrome.app.clustering import cluster
from orthodrome.app.embedding import embed
from orthodrome.app.info import describe
from orthodrome.app.inputs import Data
from orthodrome.app.memory import available_memory, memory_refusal, resident_memory
from orthodrome.app.models import Choice, last_step
from orthodrome.eigen import choose_solver
from orthodrome.kernels import Gaussian

needs_pages = needs("plotly")  # what is drawn is in the estimates


def table(X, labels=None, columns=None):
    X = np.asarray(X)
    names = columns or tuple(f"x{i + 1}" for i in range(X[0].size))
    ids = tuple(f"row {i + 1}" for i in range(len(X)))
    kind = "table" if X.ndim == 2 else "shapes"
    found = None if labels is None else np.array(labels, dtype=np.str_)
    return Data("a.csv", kind, X, names, ids, found, None if labels is None else "kind")


def cloud(n, d=8, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(4, d)) * 3
    return centers[rng.integers(4, size=n)] + spread * rng.normal(size=(n, d))


def described(X, **options):
    return describe(table(X, **options), probe=False)


# ---------------------------------------------------------------------------- facts


def test_facts_of_a_table():
    X = cloud(30, d=3)
    X[4] = X[7] = X[2]
    X[:, 1] = 5.0
    info = described(X, labels=["a"] * 20 + ["b"] * 10)
    assert (info.n, info.d, info.shape, info.dtype, info.kind) == (
        30,
        3,
        (30, 3),
        "float64",
        "table",
    )
    assert info.constant_columns == ("x2",)
    assert info.n_duplicates == 2
    assert info.class_sizes == {"a": 20, "b": 10}
    assert any("'x2'" in advice for advice in info.advice)


def test_zeros_of_both_signs_are_equal_rows():
    assert described([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]]).n_duplicates == 1


@pytest.mark.parametrize(("factor", "advised"), [(900.0, False), (1100.0, True)])
def test_scales_that_differ(factor, advised):
    x = np.linspace(-1, 1, 50)
    info = described(np.column_stack([x, factor * x[::-1], 0 * x + 7]))
    assert info.scale_ratio == pytest.approx(factor)
    assert any("--standardize" in advice for advice in info.advice) == advised


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        (["a"] * 20, "one class"),
        (["a"] * 19 + ["b"], "single row"),
        ([str(i) for i in range(20)], "different values"),
    ],
)
def test_advice_about_labels(labels, word):
    assert any(word in advice for advice in described(cloud(20), labels=labels).advice)


@needs_pages
def test_json_has_numbers_and_texts_only():
    X = cloud(20)
    X[:, 0] = 0
    X[0, 0] = 5e-324  # a spread that underflows
    info = describe(table(X, labels=["a", "b"] * 10), n_components=2)
    found = json.loads(json.dumps(info.as_dict(), allow_nan=False))
    assert found["n"] == 20
    assert found["reach"]["n_rows"] == 20
    assert {one["command"] for one in found["estimates"]} == {"embed", "cluster"}


@needs_pages
def test_lines_say_what_was_found():
    info = describe(table(cloud(40), labels=["a", "b"] * 20), n_components=2)
    text = "\n".join(info.lines())
    for words in (
        "40 rows of 8 features",
        "classes (kind): 2: a 20, b 20",
        f"sigma {info.sigma:.6g}",
        f"{info.reach.largest_angle:.0f}° at most",
        "solver: dense",
        "estimate: embed (kpga)",
        "estimate: cluster (mixture)",
    ):
        assert words in text
    assert all("\n" not in line and ": " in line for line in info.lines())


# ---------------------------------------------------------------------------- kernel and sphere


def test_bandwidth_is_that_of_the_rule():
    X = cloud(50)
    assert described(X).kernel == "gaussian"
    assert described(X).sigma == Gaussian("mean").fit(X).sigma_


def test_kernel_of_shapes():
    shapes = np.random.default_rng(0).normal(size=(10, 5, 2))
    info = described(shapes, columns=tuple("abcdefghij"))
    assert info.kernel == "veronese_whitney"
    names = tuple(f"{axis}{i}" for i in range(1, 6) for axis in "xy")
    flat = described(shapes.reshape(10, 10), columns=names)
    assert flat.kernel == "veronese_whitney"
    assert flat.sigma == pytest.approx(info.sigma)
    assert flat.reach.mean_angle == pytest.approx(info.reach.mean_angle)


def test_lines_about_shapes():
    lines = described(np.random.default_rng(0).normal(size=(6, 5, 2))).lines()
    assert lines[0].startswith("data: 6 shapes of 5 landmarks in 2 dimensions")


def test_shapes_in_three_dimensions_have_no_kernel():
    info = describe(table(np.random.default_rng(0).normal(size=(10, 5, 3))))
    assert info.kernel is None
    assert info.reach is None
    assert info.estimates == ()
    assert "table" in info.kernel_reason


def test_directions_are_on_their_own_sphere():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) * 0.3 + [0, 0, 1]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    info = described(X)
    assert info.kernel == "linear"
    assert info.sigma is None
    assert info.reach.largest_angle < 90


def test_reach_is_the_distance_from_the_mean_of_kernel_pga():
    X = cloud(80)
    model = KernelPGA(2, random_state=0).fit(X)
    angles = np.degrees(np.arccos(model.mean_cosines_))
    reach = described(X).reach
    assert reach.mean_angle == pytest.approx(angles.mean(), abs=1e-5)
    assert reach.largest_angle == pytest.approx(angles.max(), abs=1e-5)
    assert reach.n_rows == 80


def test_reach_of_many_rows_is_that_of_a_sample():
    X = cloud(1500)
    model = KernelPGA(2, random_state=0).fit(X)
    reach = described(X).reach
    assert reach.n_rows == 1000
    assert reach.mean_angle == pytest.approx(
        np.degrees(np.arccos(model.mean_cosines_)).mean(), abs=1.0
    )


def test_a_flat_cap_is_where_both_methods_agree():
    """The words about a nearly flat cap are true: kernel PGA gives kernel PCA's coordinates."""
    angle = np.linspace(-0.15, 0.15, 40)
    height = 0.05 * np.sin(7 * angle)
    X = np.column_stack([np.cos(angle), np.sin(angle), height])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    reach = described(X).reach
    assert reach.largest_angle < 20
    assert "flat" in reach.meaning
    pga = KernelPGA(1, kernel="linear").fit_transform(X)
    pca = KernelPCA(1, kernel="linear").fit_transform(X)
    assert np.allclose(np.abs(pga), np.abs(pca), rtol=0.02, atol=2e-3)


def test_opposite_directions_have_no_mean_to_reach_from():
    info = described([[1.0, 0.0], [-1.0, 0.0]])
    assert info.kernel == "linear"
    assert info.reach is None
    assert any(note.startswith("How far the data reach is not defined: ") for note in info.notes)


def test_words_for_wide_data():
    assert "felt" in described(cloud(80)).reach.meaning
    around = np.linspace(0, 5, 40)
    wide = described(np.column_stack([np.cos(around), np.sin(around)]))
    assert wide.kernel == "linear"
    assert wide.reach.largest_angle > 90
    assert "quarter" in wide.reach.meaning


def test_a_small_bandwidth_leaves_every_point_alone():
    from orthodrome.app.info import _reach

    data = table(cloud(60))
    reach = _reach(Gaussian(sigma=0.05).fit(data.X), data, [])
    assert reach.mean_angle > 75
    assert "larger bandwidth" in reach.meaning


def test_data_in_which_nothing_differs():
    info = describe(table(np.ones((5, 2))))
    assert info.constant_columns == ("x1", "x2")
    assert any("All rows are equal" in advice for advice in info.advice)
    assert info.n_duplicates == 4
    assert info.kernel is None
    assert info.estimates == ()
    assert "suggested kernel: none: all rows are equal" in info.lines()


def test_one_row():
    info = describe(table([[1.0, 2.0]]))
    assert info.n == 1
    assert "data: 1 row of 2 features, float64" in info.lines()
    assert "equal" not in "\n".join(info.lines())
    assert any("one row only" in advice for advice in info.advice)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("direction", [1, -1])
def test_numbers_that_cannot_be_squared(dtype, direction):
    """No warning comes out (they are errors here), and the advice names what to rescale."""
    extreme = dtype(10.0 ** (direction * (30 if dtype is np.float32 else 300)))
    X = cloud(30, d=3).astype(dtype)
    X[:, 1] *= extreme
    info = describe(table(X))
    assert info.scale_ratio > 1e20
    (advice,) = info.advice
    assert "rescale" in advice
    assert "'x2'" in advice
    assert "'x1'" not in advice
    assert (info.kernel is None) == (direction > 0)  # a vanishing column leaves the others
    json.dumps(info.as_dict(), allow_nan=False)
    everywhere = describe(table(cloud(30, d=3).astype(dtype) * extreme))
    assert everywhere.kernel is None
    assert everywhere.scale_ratio < 100
    assert any("rescale" in advice for advice in everywhere.advice)


def test_spreads_to_the_ends_of_the_numbers():
    largest = np.finfo(np.float64).max
    x = np.resize([-1.0, 1.0], 20)
    info = described(np.column_stack([x * largest, x * 5e-324, x]))
    assert info.constant_columns == ()
    assert info.scale_ratio == largest
    spreads = np.std(cloud(30), axis=0)
    assert described(cloud(30)).scale_ratio == pytest.approx(spreads.max() / spreads.min())


# ---------------------------------------------------------------------------- solver and storage


@pytest.mark.parametrize(("n", "k"), [(900, 3), (1200, 3), (1200, 400)])
def test_solver_is_the_one_that_auto_takes(n, k):
    X = np.random.default_rng(0).normal(size=(n, 2))
    info = describe(table(X), n_components=k, probe=False)
    assert (info.solver, info.solver_reason) == tuple(choose_solver(n, k))


def test_large_data_are_not_kept():
    X = np.zeros((40_000, 1), dtype=np.float32)
    X[:, 0] = np.arange(40_000)
    assert described(X).storage == "recompute"
    assert described(X[:1000]).storage == "memory"


# ---------------------------------------------------------------------------- estimates


@needs_pages
@pytest.mark.parametrize("n", [40, 950, 1600])
@pytest.mark.parametrize("command", ["embed", "cluster"])
def test_memory_is_foretold(monkeypatch, n, command):
    monkeypatch.setattr(estimates, "_probe", lambda *arguments: _Nothing())
    monkeypatch.setattr(estimates, "writing_seconds", lambda *arguments: {})
    data = table(cloud(n))
    foretold = (estimate_embed if command == "embed" else estimate_cluster)(data)

    def run():
        if command == "embed":
            return embed(data, Choice("kpga", parameters={"n_components": 10}))
        return cluster(data, Choice("mixture", parameters={"n_components": 3}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()  # what stays from the first run is not the run's
        tracemalloc.start()
        try:
            run()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak / 1.7 < foretold.extra_bytes < 1.7 * peak


def test_memory_of_the_dense_solver():
    """It is hidden in an embedding, where neighbours take more, unless there are few of them."""
    data = table(cloud(700))
    plan = estimates._Plan.of(data, Choice("kpga", parameters={"n_components": 10}), 10)
    tracemalloc.start()
    try:
        KernelPGA(10).fit(data.X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / 1.5 < plan.bytes(10, estimates._DENSE_MATRICES) < 1.5 * peak


def few_rows_for_krylov(monkeypatch, most):
    """Let features by anchors be taken for fewer rows than usual."""
    monkeypatch.setattr(sys.modules["orthodrome.eigen.leading"], "_KRYLOV_ROWS", most)


@pytest.mark.parametrize(("n", "dtype"), [(2000, np.float64), (6000, np.float32)])
@pytest.mark.parametrize("method", ["kpga", "kpca", "mixture"])
def test_memory_of_features(monkeypatch, method, n, dtype):
    few_rows_for_krylov(monkeypatch, 1200)
    data = table(cloud(n).astype(dtype))
    plan = estimates._Plan.of(data, Choice("kpga", parameters={"n_components": 5}), 5)
    assert (plan.solver, plan.storage, plan.power) == ("nystroem", "memory", 1)
    models = {
        "kpga": KernelPGA(5, random_state=0),
        "kpca": KernelPCA(5, random_state=0),
        "mixture": GeodesicMixture(2, n_init=1, max_iter=3, tol=10.0, random_state=0),
    }
    tracemalloc.start()
    try:
        models[method].fit(data.X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / 2 < plan.bytes(5, estimates._DENSE_MATRICES) < 2 * peak


def test_time_and_memory_of_features_grow_with_the_rows():
    """And not with their square; beyond the budget features are not kept."""
    plans = [
        estimates._Plan._of_features(n, 4, "gaussian", 10) for n in (300_000, 3_000_000, 30_000_000)
    ]
    assert [plan.solver for plan in plans] == ["nystroem"] * 3
    assert [plan.storage for plan in plans] == ["memory", "recompute", "recompute"]
    assert [plan.sizes for plan in plans] == [(2048, 4096)] * 3
    small, middle, large = (plan.bytes(10, estimates._DENSE_MATRICES) for plan in plans)
    assert 512 * 300_000 * 4 < small < 2 * 512 * 300_000 * 4
    assert middle < 3_000_000 * 512 * 4 / 3
    assert large < 10.5 * middle


class _Nothing:
    sizes, start = (1,), 0.0

    def extrapolated(self, part, n, power):
        return 0.0


def test_the_estimate_is_of_the_whole_command(monkeypatch):
    """Start, reading, work, page and files are in it, and the words say so."""
    monkeypatch.setattr(estimates, "start_seconds", lambda: 100.0)
    monkeypatch.setattr(estimates, "writing_seconds", lambda *rest: {"page": 20.0, "files": 3.0})
    data = replace(table(cloud(50)), read_seconds=4000.0)
    for foretold, arguments in (
        (estimate_embed(data, n_components=2), "embed --method kpga --components 2"),
        (estimate_cluster(data), "cluster -k 3"),
    ):
        assert foretold.seconds == pytest.approx(4123.0, abs=2.0)
        assert foretold.start_seconds == pytest.approx(100.0, abs=2.0)
        assert sum(dict(foretold.parts).values()) == pytest.approx(foretold.seconds)
        assert f"for the whole command (orthodrome {arguments})" in foretold.line()


def test_writing_grows_along_a_line(monkeypatch):
    """Timed on samples: the page up to the points it draws, the files up to all rows."""
    monkeypatch.setattr(overheads, "_page", lambda found: len(found.data))
    monkeypatch.setattr(overheads, "_files", lambda found: len(found.data))
    monkeypatch.setattr(overheads, "_fastest", lambda work, found: 1.0 + 1e-3 * work(found))
    data = table(np.random.default_rng(0).normal(size=(40_000, 2)))
    for method in ("kpca", "mixture"):
        found = overheads.writing_seconds(data, Choice(method, parameters={"n_components": 2}))
        assert found == {"page": pytest.approx(11.0), "files": pytest.approx(41.0)}
    few = table(cloud(20))
    found = overheads.writing_seconds(few, Choice("kpga", parameters={"n_components": 40}))
    assert found == {"page": pytest.approx(1.02), "files": pytest.approx(1.02)}


@needs_pages
def test_start_is_that_of_a_program():
    """Imports take part of a second at least, and no more than the program is old."""
    assert 0.05 < overheads.start_seconds() < time.process_time() + 3600
    assert overheads._age() <= time.clock_gettime(time.CLOCK_MONOTONIC) + 1


@needs_pages
def test_without_an_extra_there_is_a_note(monkeypatch):
    def missing(*arguments):
        raise ImportError("pip install 'orthodrome[cli]'")

    monkeypatch.setattr(estimates, "writing_seconds", missing)
    info = describe(table(cloud(20)), n_components=2)
    assert info.estimates == ()
    assert any("orthodrome[cli]" in note for note in info.notes)


@needs_pages
def test_peak_is_over_what_the_program_has():
    foretold = estimate_embed(table(cloud(50)), n_components=2)
    assert foretold.peak_bytes > foretold.extra_bytes
    assert foretold.peak_bytes < 20 * resident_memory()


@pytest.mark.parametrize("power", [2, 3])
def test_extrapolation_is_exact_for_its_own_law(power):
    def law(m):
        return 0.2 + 1e-6 * m**power

    probe = estimates._Probe((100, 200), ({"fit": law(100)}, {"fit": law(200)}), 0.0)
    assert probe.extrapolated("fit", 5000, power) == pytest.approx(law(5000))


def test_extrapolation_survives_noise():
    probe = estimates._Probe((100, 200), ({"fit": 0.5}, {"fit": 0.4}), 0.0)
    assert probe.extrapolated("fit", 2000, 2) == pytest.approx(40.0)
    steep = estimates._Probe((100, 200), ({"fit": 0.0}, {"fit": 0.4}), 0.0)
    assert steep.extrapolated("fit", 2000, 2) == pytest.approx(40.0)
    assert probe.extrapolated("fit", 1, 2) >= 0


@needs_pages
def test_samples_run_as_all_rows_will(monkeypatch):
    """The solver, the storage and the sizes of the samples follow from all rows."""
    seen = []
    monkeypatch.setattr(estimates, "quality_of", lambda *arguments, **more: None)
    monkeypatch.setattr(estimates, "writing_seconds", lambda *arguments: {})
    made = estimates.make_model

    def make_model(choice, data):
        seen.append((len(data), dict(choice.parameters)))
        return made(choice, data)

    monkeypatch.setattr(estimates, "make_model", make_model)
    data = table(np.random.default_rng(0).normal(size=(40_000, 2)).astype(np.float32))
    monkeypatch.setattr(estimates, "_LARGEST_PROBE", 300)
    foretold = estimate_embed(data, n_components=2)
    samples = [(m, options) for m, options in seen if m < 40_000 and "solver" in options]
    assert {(options["solver"], options["storage"]) for _, options in samples} == {
        ("krylov", "recompute")
    }
    assert max(m for m, _ in samples) == foretold.probed_rows[-1] == 300
    assert foretold.extra_bytes < 40_000**2


@needs_pages
def test_samples_of_features_have_as_many_anchors_as_all_rows(monkeypatch):
    few_rows_for_krylov(monkeypatch, 1200)
    monkeypatch.setattr(estimates, "quality_of", lambda *arguments, **more: None)
    monkeypatch.setattr(estimates, "writing_seconds", lambda *arguments: {})
    monkeypatch.setattr(estimates, "_ROWS_PER_ANCHOR", 2)
    seen, made = [], estimates.make_model

    def make_model(choice, data):
        model = made(choice, data)
        seen.append((len(data), dict(choice.parameters), model))
        return model

    monkeypatch.setattr(estimates, "make_model", make_model)
    foretold = estimate_embed(table(cloud(5000).astype(np.float32)), n_components=2)
    assert foretold.probed_rows == (512, 1024)
    largest = [model for m, options, model in seen if m == 1024 and "solver" in options]
    assert largest
    for model in largest:
        fitted = last_step(model)
        assert fitted.solver_ == "nystroem"
        assert fitted.n_anchors_ > 256
    # linear in the rows: four times as many of them take at most four times as long
    law = estimates._Probe((512, 1024), ({"fit": 1.0}, {"fit": 2.0}), 0.0)
    assert law.extrapolated("fit", 4096, 1) == pytest.approx(8.0)


@needs_pages
def test_what_cannot_run_is_not_estimated():
    rng = np.random.default_rng(0)
    spoiled = table(rng.normal(size=(80, 4, 2)))
    spoiled.X[3] = 1.0  # one place for all landmarks: no shape
    with pytest.raises(ValueError, match="3"):
        estimate_embed(replace(spoiled, X=spoiled.X[:40]))
    info = describe(spoiled)
    assert info.estimates == ()
    assert any("3" in note for note in info.notes)


def test_seconds_for_people():
    assert format_seconds(0.01) == "less than 0.1 s"
    assert format_seconds(3.14) == "about 3.1 s"


@needs_pages
def test_advice_where_memory_is_short(monkeypatch):
    monkeypatch.setattr("orthodrome.app.info.available_memory", lambda: 1000)
    info = describe(table(cloud(40)), n_components=2)
    assert any("sample of the rows" in advice for advice in info.advice)


@pytest.mark.parametrize(
    ("n", "words"), [(1, ", 1 core, 1 thread, "), (8, ", 8 cores, 8 threads, ")]
)
def test_words_for_this_machine(monkeypatch, n, words):
    monkeypatch.setattr(machine, "n_threads", lambda: n)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: n)
    assert words in machine.machine()


def test_memory_of_this_machine():
    available = available_memory()
    if available is None:
        pytest.skip("this system does not tell")
    assert memory_refusal(available / 4, "x") is None
    assert "about" in memory_refusal(available * 4, "x")


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 2000, 9000])
def test_the_whole_command_is_foretold_within_a_factor_of_three(tmp_path, n):
    """Each command in its own process; of three trials the median, others may be busy in one."""
    file = tmp_path / "cloud.csv"
    np.savetxt(file, cloud(n, d=6, spread=2.0), delimiter=",", header="a,b,c,d,e,f", comments="")
    ratios = {"embed": [], "cluster": []}
    for _ in range(3):
        found, _ = _timed("info", file, "--json")
        for estimate in json.loads(found)["estimates"]:
            words = estimate["arguments"].split()[1:]
            _, seconds = _timed(*words, file, "--out", tmp_path / "out", "--quiet")
            ratios[estimate["command"]].append(estimate["seconds"] / seconds)
    for command, found in ratios.items():
        assert 1 / 3 < np.median(found) < 3, (command, ratios)


def _timed(*words):
    """What a command prints, and how long it takes from its start to its end."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "orthodrome", *map(str, words)], capture_output=True, check=True
    )
    return done.stdout, time.perf_counter() - begin


def test_where_nobody_tells_of_memory(monkeypatch, tmp_path):
    monkeypatch.setattr("orthodrome.app.memory._MEMINFO", tmp_path / "none")
    monkeypatch.setattr("orthodrome.app.memory._LIMITS", ())
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert available_memory() == 2_048_000
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    assert available_memory() is None
    assert resident_memory() is None
    assert memory_refusal(2**70, "x") is None
    info = describe(table(cloud(40)), n_components=2, probe=False)
    assert info.available_bytes is None
    assert not any("memory" in line for line in info.lines() if line.startswith("available"))
    assert overheads._age() == pytest.approx(time.process_time(), abs=1.0)
