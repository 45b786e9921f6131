"""Without optional packages the core works, and other functions name the missing extra."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

# Packages of all extras and their dependencies.
OPTIONAL = (
    *("matplotlib", "typer", "rich", "pooch", "tqdm", "rdata", "pandas", "pyarrow"),
    *("polars", "skimage", "pywt", "PIL", "imageio", "dask", "distributed", "zarr"),
    "bokeh",
)

WITHOUT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""

# Each action runs in its own child, after the common imports.
ONE_LINE = """
import os, sys
import orthodrome.decomposition, orthodrome.denoising
for action in {actions!r}:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("{end}", flush=True)
        continue
    os.dup2(1, 2)
    try:
        exec(action)
    except (ImportError, ValueError) as error:  # without dask, a dask array is invalid data
        print(error, flush=True)
    except SystemExit:
        pass
    except BaseException as error:
        print("Traceback", repr(error), flush=True)
    else:
        print("no error", flush=True)
    finally:
        sys.stderr.flush()
        os._exit(0)
{core}
"""
END = "-- end of one --"

# Actions and the extra that each needs.
ACTIONS = {
    "a figure": (
        "plot",
        "import orthodrome as o, orthodrome.plots as p; "
        "p.spectrum(o.KernelPCA(1).fit([[0.0], [1.0]]))",
    ),
    "a progress bar": (
        "cli",
        "import orthodrome as o; o.KernelPCA(1, verbose=True).fit([[0.0], [1.0]])",
    ),
    "a level of noise": (
        "image",
        "import orthodrome as o, numpy as n; o.PatchDenoiser(3).denoise(n.eye(16))",
    ),
    "a table of Parquet": (
        "data",
        "from orthodrome.plots._matplotlib import require; "
        "require('pyarrow.parquet', 'Parquet files', 'data')",
    ),
    "a matrix over workers": (
        "distributed",
        "from orthodrome.gram.dask_gram import DaskGram; from orthodrome.kernels import Linear; "
        "DaskGram(Linear().fit([[0.0]]), [[0.0], [1.0]])",
    ),
    "a command": (
        "cli",
        "from orthodrome.app import main; raise SystemExit(main(['info']))",
    ),
}


def alone(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python without optional packages, with warnings as errors."""
    code = WITHOUT.format(names=set(OPTIONAL)) + code
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def outputs():
    """Return the output of each action and of the core, from one process."""
    actions = [action for _, action in ACTIONS.values()] if hasattr(os, "fork") else []
    result = alone(ONE_LINE.format(actions=actions, end=END, core=CORE))
    assert (result.returncode, result.stderr) == (0, "")
    *words, core = result.stdout.split(f"{END}\n")
    return dict(zip(ACTIONS, words, strict=False)) | {"core": core}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("what", ACTIONS)
def test_the_error_names_the_extra_in_one_line(what, outputs):
    extra, _ = ACTIONS[what]
    words = outputs[what].strip()
    assert "Traceback" not in words
    assert len(words.splitlines()) == 1, words
    assert f"pip install 'orthodrome[{extra}]'" in words


CORE = """
import numpy as np, orthodrome as o
from warnings import filterwarnings
from sklearn.datasets import load_iris
filterwarnings("ignore", "The points take up")  # nested spheres of iris
X, y = (each[::3] for each in load_iris(return_X_y=True))
for name in o.__all__:
    getattr(o, name)
for model in (o.KernelPCA(2), o.KernelPGA(2), o.KernelPNS(2), o.RobustKernelPCA(2)):
    assert model.fit(X).transform(X[:5]).shape == (5, 2)
for model in (o.HypersphericalKMeans(3), o.KernelKMeans(3), o.KernelSpectralClustering(3)):
    assert set(model.set_params(random_state=0).fit(X).labels_) == {0, 1, 2}
assert o.GeodesicMixture(3, 2, random_state=0).fit(X).predict(X).shape == y.shape
for model in (o.KernelRidgeRegressionClassifier(), o.PerTurbo(), o.NestedSpheresClassifier(2)):
    assert model.fit(X, y).score(X, y) > 0.8
assert o.PatchDenoiser(3, noise=0.1, n_components=2).denoise(np.eye(16)).shape == (16, 16)
print("all")
"""


def test_the_core_needs_nothing_optional(outputs):
    assert outputs["core"].strip() == "all"


def test_every_extra_has_an_action_that_needs_it():
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"]
    extras = extras.keys() - {"bench", "docs", "dev", "all"}  # not for users
    assert {extra for extra, _ in ACTIONS.values()} == extras
