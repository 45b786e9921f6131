"""Run the tests in other environments: nox -s wheel | oldest | tests [-- options of pytest]."""

import os
import shutil
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# These test files of the repository, not the package.
NOT_IN_WHEEL = ("experiments", "test_architecture.py", "test_benchmarks.py", "test_docs.py")
PYTEST = ("pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow")
ENVIRONMENT = {
    "SCIPY_ARRAY_API": "1",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONPATH": None,
    "ORTHODROME_DATA": os.environ.get("ORTHODROME_DATA", str(ROOT.parent / "shared/data")),
}

nox.options.sessions = ["wheel", "oldest"]
nox.options.default_venv_backend = "venv"


def run_away(session: nox.Session, *requirements: str) -> None:
    """Install the wheel without extras, and run the quick tests in a folder without sources."""
    away = Path(session.create_tmp()) / "away"
    shutil.rmtree(away, ignore_errors=True)
    shutil.copytree(ROOT / "tests", away / "tests")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, away)
    session.install("pip", "wheel")
    session.run("pip", "wheel", "--quiet", "--no-deps", "-w", str(away), str(ROOT))
    (wheel,) = away.glob("*.whl")
    session.install(*requirements, "pytest-xdist", "hypothesis", str(wheel))
    session.chdir(away)
    ignored = [f"--ignore=tests/{name}" for name in NOT_IN_WHEEL]
    session.run(*PYTEST, *ignored, *session.posargs, "tests", env=ENVIRONMENT)


@nox.session
def wheel(session: nox.Session) -> None:
    """Test the wheel with the newest required packages and no optional ones."""
    run_away(session, "pytest")


@nox.session
def oldest(session: nox.Session) -> None:
    """Test the wheel with the oldest supported versions of the required packages."""
    oldest_versions = [each.replace(">=", "==") for each in PROJECT["dependencies"]]
    # pytest 9 warns about generators as parameters, which older scikit-learn uses
    run_away(session, *oldest_versions, "pytest==8.4.*")


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Run the quick tests with another Python and all development dependencies."""
    session.install("-c", "constraints.txt", "-e", ".[plot,cli,image,dev]")
    session.run(*PYTEST, *session.posargs, env=ENVIRONMENT)
