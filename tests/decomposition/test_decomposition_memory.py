"""Peak anonymous memory of a fresh process, by reading /proc while it works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orthodrome
from laws_decomposition import every_estimator
from orthodrome import KernelPCA

SCRIPT = """
import json, sys, threading, time
import numpy as np
import orthodrome

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

name, n, d, k, budget = json.loads(sys.argv[1])
Estimator = getattr(orthodrome, name)
rng = np.random.default_rng(1)
X = rng.standard_normal((n, d)) * np.linspace(2, 0.2, d)
Estimator(2, solver="krylov").fit(X[:200])  # compile
idle = peak = anonymous()
working = True

def watch():
    global peak
    while working:
        peak = max(peak, anonymous())
        time.sleep(0.005)

watcher = threading.Thread(target=watch)
watcher.start()
model = Estimator(k, memory_budget=budget, random_state=0).fit(X)
fitted = peak
Z = model.transform(X)
score = model.score(X)
working = False
watcher.join()
print(json.dumps({
    "fit": fitted - idle,
    "all": peak - idle,
    "converged": model.converged_,
    "score": score,
    "explained": float(model.explained_variance_ratio_.sum()),
}))
"""

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads /proc, which only Linux has"
)


def measure(Estimator, n, d, k, budget):
    source = Path(orthodrome.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([Estimator.__name__, n, d, k, budget])],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["converged"]
    assert result["score"] == pytest.approx(result["explained"], rel=1e-6)
    return result


@needs_proc
@every_estimator
def test_a_matrix_beyond_the_budget_is_never_made(Estimator):
    """The whole matrix would take 122 MiB, the stored half 61 MiB."""
    assert measure(Estimator, n=4000, d=8, k=4, budget="16MiB")["all"] < 48 * 2**20


@pytest.mark.slow
@needs_proc
@every_estimator
def test_a_matrix_within_the_budget_is_held_by_half(Estimator):
    assert measure(Estimator, n=4000, d=8, k=4, budget="1GiB")["all"] < (61 + 48) * 2**20


@needs_proc
@pytest.mark.slow
def test_twenty_thousand_rows_in_half_a_gibibyte():
    """Scikit-learn needs over 3 GiB for this."""
    assert measure(KernelPCA, n=20_000, d=32, k=16, budget="512MiB")["all"] < 2**30


@every_estimator
def test_a_spectrum_beyond_the_budget_is_refused_before_the_kernel_is_called(Estimator):
    calls = []

    def linear(X, Y):
        calls.append(len(X))
        return X @ Y.T

    X = np.random.default_rng(0).standard_normal((1100, 2))
    with pytest.raises(ValueError, match="memory_budget is 1 MiB"):
        Estimator(kernel=linear, memory_budget="1MiB").fit(X)
    assert not calls
