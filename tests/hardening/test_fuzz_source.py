"""The source uses no pickle, eval or shell, so files cannot run code."""

import ast
import re
from pathlib import Path

import orthodrome

PACKAGE = Path(orthodrome.__file__).parent

#: Modules that turn bytes into objects or code, or start a shell.
MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"),
    *("code", "codeop", "pty", "commands", "popen2", "subprocess", "ctypes", "runpy"),
}
#: Functions that do so, by name and by dotted name.
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
DOTTED = {
    *("joblib.load", "joblib.dump", "pandas.read_pickle", "torch.load", "yaml.load"),
    *("numpy.load", "numpy.fromfile", "numpy.loadtxt", "numpy.genfromtxt"),
    *("skops.loads", "skops.load", "skops.io.loads", "skops.io.load", "scipy.sparse.load_npz"),
}
PROCESSES = re.compile(
    r"(os|posix)\.(system|popen|exec\w+|spawn\w+|posix_spawnp?|startfile)"
    r"|asyncio(\.\w+)*\.create_subprocess_\w+"
)
#: Modules from which `import *` would import such functions.
MIXED = {each.rpartition(".")[0] for each in DOTTED} | {"os", "posix", "asyncio", "builtins"}
#: Usual aliases.
USUAL = {"np": "numpy", "pd": "pandas"}
#: Exceptions: the file, what it uses, and why that is safe.
JUSTIFIED = {
    ("plots/_extras.py", "import_module of a variable"): (
        "callers give constants, the names of optional dependencies."
    ),
    ("_core/compiled.py", "cache=True"): (
        "numba caches machine code as pickles in the package or in the user's cache folder. Anyone "
        "who can write there can change the package, or Python's start-up files, as well."
    ),
}


def is_danger(name):
    return name in CALLS | DOTTED or PROCESSES.fullmatch(name) is not None


def imported(tree):
    """Return the aliases that a source imports."""
    found = dict(USUAL)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {each.asname: each.name for each in names if each.asname}
            case ast.ImportFrom(module=str(module), level=0, names=names):
                found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
    return found


def dotted(node, known):
    """Return the full name of an expression, without `builtins`, or ""."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([known.get(node.id, node.id), *reversed(parts)]).removeprefix("builtins.")


def dangers(source):
    """Return lines and names of dangerous uses in a source."""
    found, tree = [], ast.parse(source)
    known = imported(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [(node.lineno, a.name) for a in names if a.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in MODULES:
                found.append((node.lineno, module))
            case ast.ImportFrom(module=str(module), level=0, names=names):
                full = [f"{module}.{a.name}".removeprefix("builtins.") for a in names]
                found += [(node.lineno, each) for each in full if is_danger(each)]
                found += [
                    (node.lineno, f"{module}.*") for a in names if a.name == "*" and module in MIXED
                ]
                found += [(node.lineno, each) for each in full if each.split(".")[0] in MODULES]
            case ast.Name() | ast.Attribute() if is_danger(dotted(node, known)):
                found.append((node.lineno, dotted(node, known)))
            case ast.Call(func=function, keywords=keywords, args=arguments):
                name = dotted(function, known)
                if name.rpartition(".")[2] == "import_module" and not _is_known(arguments):
                    found.append((node.lineno, "import_module of a variable"))
                for keyword in keywords:
                    risky = ("shell", "allow_pickle", "cache")
                    if keyword.arg in risky and not _is_false(keyword.value):
                        found.append((node.lineno, f"{keyword.arg}=True"))
    return found


def _is_false(value):
    return isinstance(value, ast.Constant) and value.value is False


def _is_known(arguments):
    """Return whether a module, or its package, is a constant."""
    match arguments[:1]:
        case [ast.Constant(value=str())]:
            return True
        case [ast.JoinedStr(values=[ast.Constant(value=str(start)), *_])]:
            return start.startswith((".", "orthodrome."))
    return False


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def test_nothing_in_the_source_runs_what_it_reads():
    found = {
        (name, what): line
        for name in FILES
        for line, what in dangers((PACKAGE / name).read_text("utf-8"))
    }
    unexplained = {f"{name}:{found[name, what]}: {what}" for name, what in found.keys() - JUSTIFIED}
    assert not unexplained, "\n".join(sorted(unexplained))
    assert not JUSTIFIED.keys() - found.keys(), "explained, but not there any more"


def test_the_search():
    found = (
        "def f():\n    import marshal",
        "from pickle import loads",
        "run = eval\nrun('1')",
        "from os import system as harmless\nharmless('ls')",
        "from os import *",
        "import numpy as n\nn.load(path)",
        "read(path, allow_pickle=given)",
        "from importlib import import_module as get\nget(name)",
        "import asyncio\nasyncio.create_subprocess_shell('ls')",
    )
    harmless = (
        "import_module(f'.{name}', __name__)",
        "np.savez(file, allow_pickle=False)",
        "re.compile(pattern)",
        "from json import load\nload(file)",
    )
    assert all(dangers(source) for source in found)
    assert not any(dangers(source) for source in harmless)
