"""The source uses no pickle, eval or shell, so files cannot run code."""

import ast
import re
from pathlib import Path

import orthodrome

PACKAGE = Path(orthodrome.__file__).parent

#: Modules and functions that turn bytes into objects or code, or start a process.
MODULES = re.compile(
    r"(_?pickle|cPickle|dill|cloudpickle|marshal|shelve|yaml|code|codeop|pty|subprocess|ctypes"
    r"|runpy)(\.\w+)*"
)
FUNCTIONS = re.compile(
    r"eval|exec|compile|__import__|builtins\.\w+"
    r"|(os|posix)\.(system|popen|exec\w+|spawn\w+|posix_spawnp?|startfile|\*)"
    r"|asyncio(\.\w+)*\.create_subprocess_\w+"
    r"|joblib\.(load|dump)|pandas\.read_pickle|torch\.load|skops(\.io)?\.loads?"
    r"|numpy\.(load|fromfile|loadtxt|genfromtxt|\*)|scipy\.sparse\.load_npz"
)
#: Keywords that allow pickles, shells, or machine code in a cache.
RISKY = {"shell", "allow_pickle", "cache"}
#: Exceptions: the file, what it uses, and why that is safe.
JUSTIFIED = {
    ("plots/_matplotlib.py", "import_module"): (
        "callers give constants, the names of optional dependencies."
    ),
    ("_core/compiled.py", "cache"): (
        "numba caches machine code as pickles in the package or in the user's cache folder. Anyone "
        "who can write there can change the package, or Python's start-up files, as well."
    ),
}


def imported(tree):
    """Return the full name of each imported name."""
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {each.asname or each.name: each.name for each in names}
            case ast.ImportFrom(module=str(module), level=0, names=names):
                found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
    return found


def dangers(source):
    """Return names of dangerous uses in a source."""
    tree = ast.parse(source)
    known = imported(tree)
    names = set(known.values())
    yield from filter(MODULES.fullmatch, names)

    def full_name(node):
        first, dot, rest = ast.unparse(node).partition(".")
        return known.get(first, first) + dot + rest

    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            names.add(full_name(node))
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in RISKY and ast.unparse(keyword.value) != "False":
                    yield keyword.arg
            # of a constant, or of a module of this package
            called = full_name(node.func).endswith("import_module")
            if called and not re.match(r"'|f'(\.|orthodrome\.)", ast.unparse(node.args[0])):
                yield "import_module"
    yield from filter(FUNCTIONS.fullmatch, names)


def test_nothing_in_the_source_runs_what_it_reads():
    files = PACKAGE.rglob("*.py")
    found = {
        (path.relative_to(PACKAGE).as_posix(), what)
        for path in files
        for what in dangers(path.read_text("utf-8"))
    }
    assert found == JUSTIFIED.keys()
