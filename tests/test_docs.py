"""The documentation is complete and its code runs. `make docs` checks links and formulas."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import orthodrome

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Written by the build: the gallery, copies of pages from elsewhere, stubs of the API.
GENERATED = ("_build", "gallery", "repository", "api/generated", "api/backreferences")
MARKDOWN = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not page.relative_to(DOCS).as_posix().startswith((*GENERATED, "_templates"))
)
NOT_PUBLIC = {"base", "plan"}
ROOMS = sorted(
    room.name
    for room in pkgutil.iter_modules(orthodrome.__path__)
    if not room.name.startswith("_") and room.name not in NOT_PUBLIC
)
MODULES = [orthodrome, *(importlib.import_module(f"orthodrome.{room}") for room in ROOMS)]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def test_every_public_name_is_on_an_api_page():
    """The build checks that listed names exist."""
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.rst")]
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", "\n".join(pages), re.MULTILINE))
    public = {name for module in MODULES for name in module.__all__ if not name.startswith("__")}
    assert public - listed == set()


INCLUDE = re.compile(r'{include} (\S+)\n:start-after: "(.+)"\n:end-before: "(.+)"\n')


def test_included_sections_exist():
    """Titles in RESULTS.md change with the benchmarks."""
    sections = [
        (page, *found) for page in MARKDOWN for found in INCLUDE.findall(page.read_text("utf-8"))
    ]
    assert sections
    for page, file, title, end in sections:
        _, found, rest = (page.parent / file).read_text("utf-8").partition(f"\n{title}\n")
        assert found, (name_of(page), title)
        assert end in rest, (name_of(page), title)


# ------------------------------------------------------------------------ code of the pages


def blocks(page, language):
    """Return the code of a page in one language, with empty lines for the rest."""
    lines, inside = [], False
    for line in page.read_text("utf-8").splitlines():
        fence = line.strip().startswith("```")
        if fence:
            inside = line.strip() == f"```{language}"
        lines.append(line if inside and not fence else "")
    return "\n".join(lines) + "\n"


def pages_with(language):
    return [page for page in MARKDOWN if blocks(page, language).strip()]


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_code_of_pages_runs(page, tmp_path, monkeypatch, capsys):
    if "import pyriemann" in blocks(page, "python") or "from pyriemann" in blocks(page, "python"):
        pytest.importorskip("pyriemann")
    monkeypatch.chdir(tmp_path)  # some of it writes files
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    # pages may continue from a fitted model
    vars(module)["model"] = orthodrome.KernelPCA(2).fit([[0.0, 1.0], [2.0, 3.0], [5.0, 4.0]])
    exec(compile(blocks(page, "python"), str(page), "exec"), vars(module))


@pytest.mark.parametrize("page", pages_with("pycon"), ids=name_of)
def test_doctests_of_pages_pass(page):
    test = doctest.DocTestParser().get_doctest(blocks(page, "pycon"), {}, page.stem, str(page), 0)
    assert test.examples
    complaints = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not runner.run(test, out=complaints.append).failed, "".join(complaints)


def transcript(page):
    """Return the commands of a page as lists of words, each with the lines below it."""
    found = []
    for line in filter(None, blocks(page, "console").splitlines()):
        if line.startswith("$ orthodrome "):
            found.append((shlex.split(line)[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_the_console_shows_what_commands_print(tmp_path, monkeypatch, capsys):
    """A line with only an ellipsis matches all following lines."""
    for module in ("typer", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} comes with the extra [cli]")
    main = importlib.import_module("orthodrome.app").main
    shutil.copytree(DOCS.parent / "examples/data", tmp_path / "examples/data")
    monkeypatch.chdir(tmp_path)
    commands = transcript(DOCS / "command_line.md")
    assert {words[0] for words, _ in commands} >= {"info", "embed", "cluster", "classify"}
    for words, shown in commands:
        failed = main(words)
        printed = capsys.readouterr()
        text = printed.err.splitlines()[-1] if failed else printed.out
        lines = text.replace(str(tmp_path.resolve()), "…").splitlines()
        if shown[-1] == "…":
            shown, lines = shown[:-1], lines[: len(shown) - 1]
        assert lines == shown, words


def test_the_page_of_the_command_line_is_complete():
    pytest.importorskip("typer", reason="typer comes with the extra [cli]")
    commands = importlib.import_module("orthodrome.app.commands")
    registered = commands.application.registered_commands
    page = (DOCS / "command_line.md").read_text("utf-8")
    shown = re.findall(r"(?m)^```\{orthodrome-help\} (\w+)$", page)
    assert sorted(shown) == sorted(command.name for command in registered)
    given = {
        command.name: inspect.signature(command.callback).parameters.get("out")
        for command in registered
    }
    folders = dict(re.findall(r"(?m)^\| `(\w+)` \| `(\w+)` \|", page))
    assert folders == {name: out.default for name, out in given.items() if out and out.default}
    codes = set(re.findall(r"(?m)^\| (\d+) \|", page))
    assert codes == {"0", "2", str(commands.FAILED), str(commands.INTERRUPTED)}
