"""Battery "fuzz": nothing in the source runs what it reads: no pickle, no eval, no shell."""

import ast
from pathlib import Path

import pytest

import orthodrome

PACKAGE = Path(orthodrome.__file__).parent

#: Modules that make objects or code of bytes, or hand text to a shell.
MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"),
    *("code", "codeop", "pty", "commands", "popen2", "subprocess", "ctypes", "runpy"),
}
#: Functions that do so, by their bare name and by the end of a dotted one.
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
DOTTED = {
    *("os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "os.spawnlp"),
    *("joblib.load", "joblib.dump", "pandas.read_pickle", "pd.read_pickle", "torch.load"),
    *("np.load", "numpy.load", "np.fromfile", "np.loadtxt", "np.genfromtxt"),
    *("builtins.eval", "builtins.exec", "yaml.load"),
    *("skops.loads", "skops.load", "scipy.sparse.load_npz"),
}
#: What is there all the same: the file, what it uses, and why that runs nothing of a file's.
JUSTIFIED = {
    ("_core/compiled.py", "cache=True"): (
        "numba keeps machine code in pickles beside the package, or in the user's own folder of "
        "caches: who can write there can write the package, or what Python starts with, too."
    ),
    ("persist/files.py", "skops.loads"): (
        "archive.check has read every node before, against an exact list of classes, all of them "
        "data; no function, no reduce and no module of the file's choice is among them."
    ),
    ("persist/archive.py", "scipy.sparse.load_npz"): (
        "the dtype of every part was looked at before: none holds objects; and SciPy passes "
        "allow_pickle=False."
    ),
}


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def dangers(source):
    """Return what a source uses that could run what it reads, with the lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [(node.lineno, a.name) for a in names if a.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module=str(module), level=0) if module.split(".")[0] in MODULES:
                found.append((node.lineno, module))
            case ast.Call(func=function, keywords=keywords, args=arguments):
                name = dotted(function)
                if name in CALLS or name in DOTTED:
                    found.append((node.lineno, name))
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


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as harmless",
        "from pickle import loads",
        "def f():\n    import marshal",
        "import subprocess",
        "eval('1')",
        "exec(text)",
        "__import__(name)",
        "import os\nos.system('ls')",
        "import numpy as np\nnp.load(path)",
        "np.load(path, allow_pickle=True)",
        "read(path, allow_pickle=given)",
        "run(command, shell=True)",
        "joblib.load(path)",
        "importlib.import_module(name)",
        "importlib.import_module(f'{name}.x')",
        "yaml.load(text)",
    ],
)
def test_the_search_finds(source):
    assert dangers(source)


@pytest.mark.parametrize(
    "source",
    [
        "import_module('skops.io')",
        "import_module(f'.{name}', __name__)",
        "np.savez(file, allow_pickle=False)",
        "re.compile(pattern)",
        "model.evaluate(x)",
    ],
)
def test_the_search_leaves_alone(source):
    assert not dangers(source)
