"""Battery "fuzz": nothing in the source runs what it reads: no pickle, no eval, no shell."""

import ast
import re
from pathlib import Path

import orthodrome

PACKAGE = Path(orthodrome.__file__).parent

#: Modules that make objects or code of bytes, or hand text to a shell.
MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"),
    *("code", "codeop", "pty", "commands", "popen2", "subprocess", "ctypes", "runpy"),
}
#: Functions that do so, by their bare name and by their dotted one.
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
#: Modules of which an asterisk would bring such functions in.
MIXED = {each.rpartition(".")[0] for each in DOTTED} | {"os", "posix", "asyncio", "builtins"}
#: What names stand for where no import says otherwise.
USUAL = {"np": "numpy", "pd": "pandas"}
#: What is there all the same: the file, what it uses, and why that runs nothing of a file's.
JUSTIFIED = {
    ("plots/_extras.py", "import_module of a variable"): (
        "callers give constants, the names of optional dependencies."
    ),
    ("_core/compiled.py", "cache=True"): (
        "numba keeps machine code in pickles beside the package, or in the user's own folder of "
        "caches: who can write there can write the package, or what Python starts with, too."
    ),
}


def is_danger(name):
    return name in CALLS | DOTTED or PROCESSES.fullmatch(name) is not None


def imported(tree):
    """What names stand for, by the imports of a source: n for numpy, get for numpy.load."""
    found = dict(USUAL)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {each.asname: each.name for each in names if each.asname}
            case ast.ImportFrom(module=str(module), level=0, names=names):
                found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
    return found


def dotted(node, known):
    """The full name of what an expression is, without `builtins`; "" if it is no name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([known.get(node.id, node.id), *reversed(parts)]).removeprefix("builtins.")


def dangers(source):
    """Return what a source uses that could run what it reads, with the lines."""
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
    """Whether a module is named in the source, at least the package that it is of."""
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
    assert all(len(reason) > 20 for reason in JUSTIFIED.values())


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
