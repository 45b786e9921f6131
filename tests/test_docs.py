"""The documentation: it is complete, links work, formulas convert and code runs.

None of this needs Sphinx; `make docs` builds the pages, with warnings as errors.
"""

import ast
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
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
# Written by the build: the gallery, copies of pages from elsewhere, stubs of the API.
GENERATED = ("_build", "gallery", "repository", "api/generated", "api/backreferences")
PAGES = sorted(
    page
    for page in (*DOCS.rglob("*.md"), *DOCS.rglob("*.rst"))
    if not page.relative_to(DOCS).as_posix().startswith((*GENERATED, "_templates"))
)
MARKDOWN = [page for page in PAGES if page.suffix == ".md"]
NOT_PUBLIC = {"base", "plan"}
ROOMS = sorted(
    room.name
    for room in pkgutil.iter_modules(orthodrome.__path__)
    if not room.name.startswith("_") and room.name not in NOT_PUBLIC
)
MODULES = [orthodrome, *(importlib.import_module(f"orthodrome.{room}") for room in ROOMS)]


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def extension(name):
    """Import a module of docs/_ext."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------ API pages


def documented():
    """Map the full name of everything that an API page lists to the page."""
    found = {}
    for page in sorted((DOCS / "api").glob("*.rst")):
        module, listing = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. (?:current)?module:: (\S+)", line):
                module = match[1]
            elif line.startswith(".. autosummary::"):
                listing = True
            elif line and not line.startswith(" "):
                listing = False
            elif listing and (match := re.fullmatch(r"   ([\w.]+)", line)):
                name = f"{module}.{match[1]}"
                assert name not in found, f"{name} is on {found.get(name)} and on {page}"
                found[name] = page
    return found


def thing(name):
    """Return the object with a dotted name."""
    parts, found = name.split("."), importlib.import_module(name.split(".")[0])
    for position, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            found = importlib.import_module(".".join(parts[:position]))
        else:
            found = getattr(found, part)
    return found


def test_api_pages_list_exactly_the_public_names():
    listed = {id(thing(name)): name for name in documented()}
    public = {
        id(getattr(module, name)): f"{module.__name__}.{name}"
        for module in MODULES
        for name in module.__all__
        if not name.startswith("__")
    }
    assert {public[each] for each in set(public) - set(listed)} == set()
    assert {listed[each] for each in set(listed) - set(public)} == set()


# ------------------------------------------------------------------------ examples


def test_examples_have_titles_and_are_linked():
    texts = [page.read_text(encoding="utf-8") for page in MARKDOWN]
    for example in EXAMPLES:
        docstring = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
        title, line, empty, *text = docstring.split("\n")
        assert (line, empty) == ("=" * len(title), ""), name_of(example)
        assert text, name_of(example)
        assert (example.parent / "GALLERY_HEADER.rst").is_file(), name_of(example)
        link = f"gallery/{example.parent.name}/{example.stem}.rst"
        assert any(link in page for page in texts), f"no page of docs links to {link}"


# ------------------------------------------------------------------------ formulas


def docstring_formulas():
    """Yield file, formula and whether it is a block, for all docstrings of the package."""
    documented_nodes = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) or "" if isinstance(node, documented_nodes) else ""
            for match in re.finditer(r":math:`([^`]+)`", text):
                yield name_of(file), match[1], False
            for match in re.finditer(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*|\s*$))*)", text, re.M):
                yield name_of(file), match[2], True


def page_formulas():
    for page in MARKDOWN:
        text = without_code(page)
        for match in re.finditer(r"\$\$(.+?)\$\$", text, re.S):
            yield name_of(page), match[1], True
        inline = re.sub(r"(?s)\$\$.+?\$\$", "", text)
        for match in re.finditer(r"(?<!\$)\$([^$\n]+)\$(?!\$)", inline):
            yield name_of(page), match[1], False


def test_formulas_convert():
    pytest.importorskip("latex2mathml", reason="latex2mathml comes with the group docs")
    to_mathml = extension("mathml").to_mathml
    formulas = [*docstring_formulas(), *page_formulas()]
    assert len(formulas) > 200
    for where, formula, block in formulas:
        assert "\\" not in to_mathml(inspect.cleandoc(formula), block=block), where
    for wrong in (r"\nosuchthing x", r"\frac{1}", r"a & b"):
        with pytest.raises(ValueError, match="cannot convert"):
            to_mathml(wrong)
    assert "<mi>ℰ</mi>" in to_mathml(r"\mathcal E")  # browsers ignore mathvariant="script"


# ------------------------------------------------------------------------ links


def without_code(page):
    return re.sub(r"(?ms)^(`{3,})(?:python|pycon|sh|text)\n.*?^\1$", "", page.read_text("utf-8"))


def source_of(target):
    """Return the file that a page written by the build comes from; else the file itself."""
    try:
        parts = target.relative_to(DOCS).parts
    except ValueError:
        return target
    if parts[0] == "repository":
        return ROOT.joinpath(*parts[1:])
    if parts[0] == "gallery":
        if parts[-1] == "index.rst":
            return ROOT / "examples" / Path(*parts[1:-1]) / "GALLERY_HEADER.rst"
        return (ROOT / "examples").joinpath(*parts[1:]).with_suffix(".py")
    return target


def slugs(page):
    """Return the anchors of the headings of a page, as MyST makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def page_at(path):
    return any(source_of(path.with_suffix(suffix)).is_file() for suffix in (".md", ".rst"))


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_links_contents_and_includes_exist(page):
    text = without_code(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        target = source_of((page.parent / file).resolve()) if file else page
        assert target.is_file(), link
        assert not anchor or anchor in slugs(target), link
    for name in re.findall(r"\{py:\w+\}`~?([\w.]+)`", text):
        thing(name)
    entries = re.findall(r"(?m)^:link: (\S+)$", text)
    for options in re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```$", page.read_text("utf-8")):
        lines = options.splitlines()
        entries += [line for line in lines if line and line[0] != ":" and "*" not in line]
    for entry in entries:
        assert page_at(page.parent / entry), entry
    for file, options in re.findall(r"(?ms)^```\{(?:literal)?include\} (\S+)\n(.*?)^```$", text):
        included = (page.parent / file).read_text("utf-8")
        for marker in re.findall(r'(?m)^:(?:start-after|end-before): "(.+)"$', options):
            assert marker in included, f"{file} has no {marker!r}"


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
