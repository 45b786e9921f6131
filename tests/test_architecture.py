"""Imports point left only, and no file carries an address of the machine it was written on."""

import ast
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "orthodrome"

# From left to right; a room may import only rooms of an earlier entry, and itself.
ORDER = (
    {"_core"},
    {"spaces", "datasets"},
    {"kernels"},
    {"rows"},
    {"gram"},
    {"coordinates"},
    {"sphere", "eigen"},
    {"preimage", "metrics"},
    {"plan", "base"},
    {"decomposition"},
    {"cluster", "classification", "denoising"},
    {"plots", "persist"},
    # The package's own namespace gathers the rooms before it, so only app may import from it.
    {PACKAGE},
    {"app"},
)
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
UNRESTRICTED = {"__init__", "__main__"}


def imported_modules(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import, at any depth of the source."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield node.lineno, alias.name
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else ()
                origin = ".".join((*base, *([module] if module else [])))
                for alias in names:
                    yield node.lineno, f"{origin}.{alias.name}"
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, ".".join(package) + name if name.startswith(".") else name


def room_of(module: str) -> str | None:
    """The room a dotted name leads to; the package itself for its own names; None if foreign."""
    head, *rest = module.split(".")
    if head != PACKAGE:
        return None
    return rest[0] if rest and rest[0] in LEVEL else PACKAGE


def violations(source: str, path: str) -> list[str]:
    """What `source`, at `path` relative to the package's folder, imports and should not."""
    parts = Path(path).with_suffix("").parts
    room = parts[0]
    if room in UNRESTRICTED:
        return []
    if room not in LEVEL:
        return [f"{path}: '{room}' is not a room that ORDER knows"]
    found = []
    for line, module in imported_modules(ast.parse(source), (PACKAGE, *parts[:-1])):
        target = room_of(module)
        if target is not None and target != room and LEVEL[target] >= LEVEL[room]:
            found.append(f"{path}:{line}: {room} must not import {target} ({module})")
    return found


def test_imports_point_left_only():
    package = ROOT / "src" / PACKAGE
    found = [
        violation
        for path in sorted(package.rglob("*.py"))
        for violation in violations(path.read_text("utf-8"), path.relative_to(package).as_posix())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kernels/radial.py", "from orthodrome.gram import Dense"),
        ("kernels/radial.py", "import orthodrome.gram.dense as dense"),
        ("kernels/radial.py", "from orthodrome import gram"),
        ("kernels/radial.py", "from ..gram import Dense"),
        ("kernels/radial.py", "from .. import gram"),
        ("kernels/radial.py", "def f():\n    from ..gram.dense import Dense"),
        ("kernels/radial.py", "if TYPE_CHECKING:\n    from ..gram import Dense"),
        ("kernels/radial.py", "importlib.import_module('orthodrome.gram')"),
        ("kernels/__init__.py", "from ..gram import Dense"),
        ("kernels/deep/radial.py", "from ...gram import Dense"),
        ("kernels/radial.py", "from orthodrome import KernelPCA"),
        ("kernels/radial.py", "import orthodrome"),
        ("sphere/karcher.py", "from ..eigen import leading"),
        ("eigen/dense.py", "from orthodrome.sphere import log"),
        ("persist.py", "from .plots import report"),
        ("_core/validation.py", "from orthodrome.datasets import load"),
        ("plots/report.py", "from orthodrome.app import main"),
        ("lumber/room.py", ""),
    ],
)
def test_checker_catches(path, source):
    assert len(violations(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("gram/dense.py", "from orthodrome.kernels import Gaussian\nfrom .._core import check"),
        ("gram/dense.py", "from . import blocked\nfrom .blocked import Blocked"),
        ("gram/dense.py", "from .. import kernels\nimport orthodrome._core.checks"),
        ("gram/dense.py", "import numpy as np\nfrom scipy import linalg\nfrom gram import x"),
        ("app.py", "from orthodrome import __version__, KernelPCA\nfrom .plots import report"),
        ("__init__.py", "from .app import main\nfrom .kernels import Gaussian"),
        ("__main__.py", "from orthodrome.app import main"),
    ],
)
def test_checker_allows(path, source):
    assert violations(source, path) == []


# Put together from pieces, so that this file does not contain what it looks for.
MACHINE_WORDS = (
    "pypi.org" + "/simple",
    "files.python" + "hosted.org",
    "/root" + "/",
    "/home" + "/",
)


def machine_words(content: bytes) -> list[str]:
    return [word for word in MACHINE_WORDS if word.encode() in content]


@pytest.mark.parametrize("word", MACHINE_WORDS)
def test_machine_words_are_found(word):
    assert machine_words(f"see {word}x".encode()) == [word]


def test_no_machine_address_in_tracked_files():
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip(f"git ls-files failed: {listing.stderr.decode().strip()}")
    paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    found = {
        path.relative_to(ROOT).as_posix(): words
        for path in paths
        if path.is_file() and (words := machine_words(path.read_bytes()))
    }
    assert not found
