#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Run checks in clean environments: nox -s SESSION [-- options]. The workflows call these."""

import os
import re
import shlex
import shutil
import time
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "venv"

ROOT = Path(__file__).resolve().parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
DEPENDENCIES = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
# These test files of the repository, not the package.
NOT_IN_WHEEL = (
    *("experiments", "published.py", "hardening/test_fuzz_datasets.py", "test_architecture.py"),
    *("test_benchmarks.py", "test_docs.py", "test_readme.py", "test_release.py"),
)
PYTEST = ("pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow")
ENVIRONMENT = {
    "SCIPY_ARRAY_API": "1",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": None,
    "ORTHODROME_DATA": os.environ.get("ORTHODROME_DATA", str(ROOT.parent / "shared/data")),
}
#: Kernels of OpenBLAS that every x86 processor of the last ten years can run.
BLAS_KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell")


def group(*names: str) -> list[str]:
    """Return the requirements of dependency groups."""
    return nox.project.dependency_groups(PROJECT, *names)


def install_wheel(session: nox.Session, *requirements: str, extras: str = "") -> Path:
    """Install a wheel of the working tree, and go to an empty folder, which is returned."""
    away = Path(session.create_tmp()).resolve() / "away"
    shutil.rmtree(away, ignore_errors=True)
    away.mkdir()
    session.install("--quiet", "--upgrade", "pip")
    session.run("pip", "wheel", "--quiet", "--no-deps", "-w", str(away), str(ROOT))
    (wheel,) = away.glob("*.whl")
    session.install(*requirements, f"{wheel}{extras}")
    session.chdir(away)
    return away


def run_away(
    session: nox.Session, *requirements: str, extras: str = "", tests: tuple[str, ...] = ()
) -> None:
    """Install the wheel, and run the quick tests in a folder without its source."""
    away = install_wheel(session, *requirements, extras=extras)
    shutil.copytree(ROOT / "tests", away / "tests")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, away)
    ignored = [f"--ignore=tests/{name}" for name in NOT_IN_WHEEL]
    chosen = tests or session.posargs or ["tests"]
    session.run(*PYTEST, *ignored, *chosen, env=ENVIRONMENT)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and types."""
    session.install("-c", "constraints.txt", "-e", ".[cli]", *group("dev"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def wheel(session: nox.Session) -> None:
    """Test the wheel with the newest required packages and no optional ones."""
    run_away(session, "pytest", "pytest-xdist", "hypothesis")


@nox.session
def oldest(session: nox.Session) -> None:
    """Test the wheel with the oldest supported versions of the required packages."""
    versions = [each.replace(">=", "==") for each in DEPENDENCIES]
    # pytest 9 warns about generators as parameters, which older scikit-learn uses
    run_away(session, *versions, "pytest==8.4.*", "pytest-xdist", "hypothesis")


@nox.session(name="oldest-cli", default=False)
def oldest_cli(session: nox.Session) -> None:
    """Test commands, plots and data frames with the oldest versions of the extra [cli]."""
    wanted = [*DEPENDENCIES, *EXTRAS["cli"][1:], *EXTRAS["plot"], *EXTRAS["image"]]
    versions = [each.replace(">=", "==") for each in wanted]
    files = ("app", "denoising", "plots", "test_conventions.py", "test_preprocessing.py")
    tests = tuple(f"tests/{name}" for name in files)
    # matplotlib 3.9 uses names that pyparsing 3.3 deprecates
    others = ("pyparsing<3.3", "polars", "pytest==8.4.*", "pytest-xdist", "hypothesis")
    run_away(session, *versions, *others, tests=tests)


@nox.session(default=False)
def newest(session: nox.Session) -> None:
    """Test the wheel with the newest versions of all packages, optional ones too."""
    run_away(session, *group("test"), extras="[all]")


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Test the wheel with pre-releases. PIP_EXTRA_INDEX_URL may name an index of nightly builds.

    NumPy is the newest that numba supports: numba does not import with a newer one.
    """
    run_away(session, "--pre", "scipy", "scikit-learn", "pytest", "pytest-xdist", "hypothesis")


@nox.session(default=False)
def arrays(session: nox.Session) -> None:
    """Test the wheel with arrays of PyTorch, on the CPU: nox -s arrays -- torch==2.13.0."""
    packages = ("pytest", "pytest-xdist", "hypothesis", "array-api-strict")
    torch = session.posargs or ["torch"]
    run_away(session, *packages, *torch, tests=("tests/test_array_api.py",))


@nox.session(python=["3.11", "3.12", "3.13", "3.14"], default=False)
def tests(session: nox.Session) -> None:
    """Run the quick tests with another Python and all development dependencies."""
    session.install("-c", "constraints.txt", "-e", ".[cli]", *group("test"))
    session.run(*PYTEST, *session.posargs, env=ENVIRONMENT)


@nox.session(default=False)
def readme(session: nox.Session) -> None:
    """Run the examples and commands of README.md with only the wheel and its extra [cli]."""
    away = install_wheel(session, extras="[cli]")
    shutil.copytree(ROOT / "examples/data", away / "examples/data")
    text = (ROOT / "README.md").read_text("utf-8")
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        session.run("python", "-c", example, silent=False)
    for line in re.findall(r"^    orthodrome (.*)$", text, re.MULTILINE):
        session.run("orthodrome", *shlex.split(line))
    noisy = (
        "import numpy, PIL.Image; x = numpy.hypot(*numpy.indices((64, 64))) % 32 * 6;"
        "x += numpy.random.default_rng(0).normal(scale=20, size=x.shape);"
        "PIL.Image.fromarray(x.clip(0, 255).astype('uint8')).save('photo.png')"
    )
    session.run("python", "-c", noisy)
    session.run("orthodrome", "denoise", "photo.png")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into docs/_build/html, with warnings as errors."""
    session.install("-c", "constraints.txt", "-e", ".[cli]", *group("dev", "docs"))
    options = ("-W", "--keep-going", "-q", "-b", "html", "-d", "docs/_build/doctrees")
    session.run("sphinx-build", *options, "docs", "docs/_build/html", env=ENVIRONMENT)


@nox.session(default=False)
def dist(session: nox.Session) -> None:
    """Build and check the wheel and the sdist; list the required packages in sbom.json."""
    session.install("build", "twine", "cyclonedx-bom")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", "dist")
    files = sorted(map(str, (ROOT / "dist").iterdir()))
    session.run("twine", "check", "--strict", *files)
    used = Path(session.create_tmp()) / "used"
    session.run("python", "-m", "venv", "--clear", "--without-pip", str(used))
    python = str(next(used.glob("[bS]*/python*")))
    session.run("pip", "--python", python, "install", "--quiet", files[0])
    session.run("cyclonedx-py", "environment", "--of", "JSON", "-o", "sbom.json", python)


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz the readers of files with new seeds for some seconds: nox -s fuzz -- 1200."""
    session.install("-c", "constraints.txt", "-e", ".[cli]", *group("test"))
    seconds = float(session.posargs[0]) if session.posargs else 300.0
    start, seed = time.monotonic(), int(time.time())
    while time.monotonic() - start < seconds:
        seed += 1
        env = ENVIRONMENT | {"ORTHODROME_FUZZ_SEED": str(seed)}
        session.run(*PYTEST, "tests/hardening/test_fuzz.py", env=env)


@nox.session(default=False)
def blas(session: nox.Session) -> None:
    """Run the laws and accuracy tests with other kernels of OpenBLAS and new random examples."""
    session.install("-c", "constraints.txt", "-e", ".[cli]", *group("test"))
    for name in BLAS_KERNELS:
        env = ENVIRONMENT | {"OPENBLAS_CORETYPE": name}
        chosen = session.posargs or ["tests/hardening", "tests/sphere", "tests/eigen"]
        session.run(*PYTEST, "--hypothesis-profile=explore", *chosen, env=env)


@nox.session(default=False)
def timings(session: nox.Session) -> None:
    """Add ten timings of the last commit to the history that asv keeps in .asv."""
    session.install("asv", "virtualenv")
    session.run("asv", "machine", "--yes")
    session.run("asv", "run", *(session.posargs or ["HEAD^!"]))


@nox.session(default=False)
def hooks(session: nox.Session) -> None:
    """Run the hooks of pre-commit on all files (downloads them)."""
    session.install("pre-commit")
    session.run("pre-commit", "run", "--all-files", "--show-diff-on-failure")


if __name__ == "__main__":
    nox.main()
