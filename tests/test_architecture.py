"""Imports point left only, and no file contains an address of the developer's machine."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import orthodrome
from orthodrome.base import KernelEstimator

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "orthodrome"

# From left to right; a room may import only rooms of an earlier entry, and itself.
ORDER = (
    {"_core"},
    {"spaces", "datasets", "preprocessing"},
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
    """Yield line and absolute dotted name of every import, at any depth."""
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
    """Return the room of a dotted name, the package for its own names, or None if foreign."""
    head, *rest = module.split(".")
    if head != PACKAGE:
        return None
    return rest[0] if rest and rest[0] in LEVEL else PACKAGE


def violations(source: str, path: str) -> list[str]:
    """Return forbidden imports of `source`, at `path` relative to the package."""
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


def depth(kind):
    """Return the depth of inheritance from estimators of the package, without mixins."""
    bases = [base for base in kind.__bases__ if issubclass(base, KernelEstimator)]
    return 1 + max(map(depth, bases)) if bases else 0


def test_estimators_inherit_at_most_twice():
    kinds = [getattr(orthodrome, name) for name in orthodrome.__all__]
    estimators = [kind for kind in kinds if isinstance(kind, type) and hasattr(kind, "fit")]
    assert len(estimators) > 10
    assert {kind.__name__: depth(kind) for kind in estimators if depth(kind) > 2} == {}


# Concatenated, so that this file does not contain them.
MACHINE_WORDS = (
    "pypi.org" + "/simple",
    "files.python" + "hosted.org",
    "/root" + "/",
    "/home" + "/",
)


def test_no_machine_address_in_tracked_files():
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip(f"git ls-files failed: {listing.stderr.decode().strip()}")
    paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    texts = {path: path.read_bytes() for path in paths if path.is_file()}
    assert not [
        (path, word)
        for path, text in texts.items()
        for word in MACHINE_WORDS
        if word.encode() in text
    ]


IMPORT_ALL = """
import sys
import sklearn.base, sklearn.cluster, sklearn.covariance, sklearn.decomposition
before = {name.split(".")[0] for name in sys.modules}
import orthodrome
for name in orthodrome.__all__:
    getattr(orthodrome, name)
after = {name.split(".")[0] for name in sys.modules} - before - set(sys.stdlib_module_names)
print(*sorted(after))
"""


def test_estimators_import_no_package_that_scikit_learn_does_not():
    """numba, pandas, matplotlib, dask and other packages are imported when they are needed."""
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["orthodrome"]
