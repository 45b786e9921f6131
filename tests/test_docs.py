"""The documentation: nothing public is left out, links lead somewhere, formulas and code work.

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
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import orthodrome

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
# Made by the build, not written: the gallery, copies of pages from elsewhere, stubs of the API.
GENERATED = ("_build", "gallery", "repository", "api/generated", "api/backreferences")
PAGES = sorted(
    page
    for page in (*DOCS.rglob("*.md"), *DOCS.rglob("*.rst"))
    if not page.relative_to(DOCS).as_posix().startswith((*GENERATED, "_templates"))
)
MARKDOWN = [page for page in PAGES if page.suffix == ".md"]

# Not public: what the estimators share.
NOT_PUBLIC = {"base", "plan"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def extension(name: str) -> ModuleType:
    """A module of docs/_ext, which is on no path but Sphinx's."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------ API pages


def documented() -> dict[str, Path]:
    """Full name of everything that an API page lists, and the page."""
    found: dict[str, Path] = {}
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


def thing(name: str) -> Any:
    """What a dotted name stands for; an AttributeError if nothing."""
    parts, found = name.split("."), importlib.import_module(name.split(".")[0])
    for position, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            found = importlib.import_module(".".join(parts[:position]))
        else:
            found = getattr(found, part)
    return found


def rooms() -> list[str]:
    found = (room.name for room in pkgutil.iter_modules(orthodrome.__path__))
    return sorted(room for room in found if not room.startswith("_") and room not in NOT_PUBLIC)


@pytest.mark.parametrize("room", ["", *rooms()])
def test_every_public_name_is_in_the_api_pages(room: str) -> None:
    module = importlib.import_module(f"orthodrome.{room}" if room else "orthodrome")
    listed = {id(thing(name)) for name in documented()}
    missing = [
        name
        for name in module.__all__
        if not name.startswith("__") and id(getattr(module, name)) not in listed
    ]
    assert not missing, f"not in docs/api: {', '.join(missing)} of {module.__name__}"


def test_what_the_api_pages_list_exists_and_is_public() -> None:
    public = {
        id(getattr(module, name))
        for room in ("", *rooms())
        for module in [importlib.import_module(f"orthodrome.{room}" if room else "orthodrome")]
        for name in module.__all__
    }
    for name, page in documented().items():
        assert id(thing(name)) in public, f"{name_of(page)} lists {name}, which is not public"


def test_every_api_page_is_in_the_contents() -> None:
    contents = (DOCS / "api/index.rst").read_text(encoding="utf-8").split()
    for page in (DOCS / "api").glob("*.rst"):
        assert page.stem == "index" or page.stem in contents, name_of(page)


# ------------------------------------------------------------------------ examples


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_example_has_a_title_and_is_linked(example: Path) -> None:
    docstring = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8")))
    assert docstring, "an example begins with its title and what it shows"
    title, line, empty, *text = docstring.split("\n")
    assert line == "=" * len(title), "the title is underlined by ="
    assert not empty, "an empty line follows the title"
    assert text, "and then what the example shows"
    assert (example.parent / "GALLERY_HEADER.rst").is_file(), "its folder needs a GALLERY_HEADER"
    link = f"gallery/{example.parent.name}/{example.stem}.rst"
    assert any(link in page.read_text(encoding="utf-8") for page in MARKDOWN), (
        f"no page of docs links to {link}"
    )


def test_there_is_a_gallery() -> None:
    assert len(EXAMPLES) >= 15
    headers = [
        *(ROOT / "examples").glob("*/GALLERY_HEADER.rst"),
        ROOT / "examples/GALLERY_HEADER.rst",
    ]
    for header in headers:
        title, line = header.read_text(encoding="utf-8").splitlines()[:2]
        assert line in ("=" * len(title), "-" * len(title)), name_of(header)


# ------------------------------------------------------------------------ formulas


def docstring_formulas() -> Iterator[tuple[str, str, bool]]:
    """Where, the formula, whether it stands by itself: of all docstrings of the package."""
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            text = ast.get_docstring(node) or ""
            for match in re.finditer(r":math:`([^`]+)`", text):
                yield name_of(file), match[1], False
            for match in re.finditer(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*|\s*$))*)", text, re.M):
                yield name_of(file), match[2], True


def page_formulas() -> Iterator[tuple[str, str, bool]]:
    for page in MARKDOWN:
        text = without_code(page)
        for match in re.finditer(r"\$\$(.+?)\$\$", text, re.S):
            yield name_of(page), match[1], True
        for match in re.finditer(
            r"(?<!\$)\$([^$\n]+)\$(?!\$)", re.sub(r"(?s)\$\$.+?\$\$", "", text)
        ):
            yield name_of(page), match[1], False


def test_every_formula_converts() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml comes with the extra [docs]")
    to_mathml = extension("mathml").to_mathml
    formulas = [*docstring_formulas(), *page_formulas()]
    assert len(formulas) > 200  # or they are not found any more
    for where, formula, block in formulas:
        found = to_mathml(inspect.cleandoc(formula), block=block)
        assert "\\" not in found, where


def test_a_formula_that_cannot_be_converted_is_an_error() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml comes with the extra [docs]")
    to_mathml = extension("mathml").to_mathml
    for formula in (r"\nosuchthing x", r"\frac{1}", r"a & b"):
        with pytest.raises(ValueError, match="cannot convert"):
            to_mathml(formula)
    assert "<mi>ℰ</mi>" in to_mathml(r"\mathcal E")  # browsers leave mathvariant="script" out


# ------------------------------------------------------------------------ links


def without_code(page: Path) -> str:
    return re.sub(r"(?ms)^(`{3,})(?:python|pycon|sh|text)\n.*?^\1$", "", page.read_text("utf-8"))


def source_of(target: Path) -> Path:
    """The file that a page made by the build comes from; else the file itself."""
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


def slugs(page: Path) -> set[str]:
    """Anchors of the headings of a page, as MyST makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = without_code(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        target = source_of((page.parent / file).resolve()) if file else page
        assert target.is_file(), f"{name_of(page)} links to {link}, which is not there"
        assert not anchor or anchor in slugs(target), f"{name_of(page)}: no heading #{anchor}"
    for name in re.findall(r"\{py:\w+\}`~?([\w.]+)`", text):
        thing(name)
    for entry in re.findall(r"(?m)^:link: (\S+)$", text):
        assert page_at(page.parent / entry), f"{name_of(page)}: no page {entry}"


def page_at(path: Path) -> bool:
    return any(source_of(path.with_suffix(suffix)).is_file() for suffix in (".md", ".rst"))


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_contents_and_includes_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    for options in re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```$", text):
        entries = [line for line in options.splitlines() if line and not line.startswith(":")]
        for entry in entries:
            if "*" not in entry:
                assert page_at(page.parent / entry), f"{name_of(page)} lists {entry}, not there"
    for file, options in re.findall(r"(?ms)^```\{(?:literal)?include\} (\S+)\n(.*?)^```$", text):
        included = (page.parent / file).read_text("utf-8")
        for marker in re.findall(r'(?m)^:(?:start-after|end-before): "(.+)"$', options):
            assert marker in included, f"{name_of(page)}: {file} has no {marker!r}"


def test_sections_that_are_shown_are_those_that_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed", reason="needs dask: pip install orthodrome[distributed]")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    bench = importlib.import_module("bench_dask")
    for name in ("bench_dask", "harness", "peak"):
        sys.modules.pop(name, None)
    shown = re.findall(r"(?m)^```\{measured\} (.+)$", (DOCS / "distributed.md").read_text("utf-8"))
    assert shown == [bench.growth_title(bench.N)]


@pytest.mark.parametrize("measured", [True, False])
def test_a_section_that_was_not_measured_is_no_error(tmp_path: Path, measured: bool) -> None:
    pytest.importorskip("myst_parser", reason="needs what the documentation is built with")
    docs, results = tmp_path / "docs", tmp_path / "benchmarks/RESULTS.md"
    docs.mkdir()
    results.parent.mkdir()
    section = (
        "### Other\n\n7 s\n\n<!-- end -->\n\n### Many, 9\n\n| a |\n|---|\n| 5 s |\n\n<!-- end -->\n"
    )
    results.write_text(f"# All\n\n{section if measured else ''}")
    (docs / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'measured']\n"
    )
    (docs / "index.md").write_text("# Page\n\n```{measured} Many, 9\nNot yet.\n```\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "text", str(docs), str(docs / "_")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (docs / "_/index.txt").read_text("utf-8")
    assert ("5 s" in text, "Not yet." in text) == (measured, not measured)
    assert "7 s" not in text


def test_every_page_is_in_some_contents() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for entry in re.findall(r"(?m)^ *([\w/]+)$", page.read_text("utf-8")):
            listed |= {(page.parent / entry).with_suffix(suffix) for suffix in (".md", ".rst")}
    assert not set(PAGES) - listed


def test_every_command_is_on_its_page() -> None:
    pytest.importorskip("typer", reason="typer comes with the extra [cli]")
    commands = importlib.import_module("orthodrome.app.commands").application.registered_commands
    shown = re.findall(
        r"(?m)^```\{orthodrome-help\} (\w+)$", (DOCS / "command_line.md").read_text()
    )
    assert sorted(shown) == sorted(command.name for command in commands)


def test_pages_of_the_repository_keep_their_links(tmp_path: Path) -> None:
    docs, experiment = tmp_path / "docs", tmp_path / "experiments/paper"
    docs.mkdir()
    experiment.mkdir(parents=True)
    (docs / "guide.md").touch()
    (docs / "repository").mkdir()
    (docs / "repository/OLD.md").touch()
    (tmp_path / "CHANGELOG.md").write_text("[guide](docs/guide.md#part), [web](https://a.org/b)")
    (experiment / "page.md").write_text("![curve](curve.png) [all](../RESULTS.md)")
    (experiment / "curve.png").write_bytes(b"picture")
    (tmp_path / "experiments/RESULTS.md").write_text("[page](paper/page.md)")
    extension("repository_pages").copy_pages(tmp_path, docs)
    copies = docs / "repository"
    assert (copies / "CHANGELOG.md").read_text() == (
        "[guide](/guide.md#part), [web](https://a.org/b)"
    )
    assert (copies / "experiments/paper/curve.png").read_bytes() == b"picture"
    assert (copies / "experiments/RESULTS.md").read_text() == "[page](paper/page.md)"
    assert not (copies / "OLD.md").exists(), "what is no page any more is removed"


# ------------------------------------------------------------------------ code of the pages


def blocks(page: Path, language: str) -> str:
    """All code of a page in one language, the rest as empty lines, so that line numbers hold."""
    lines, inside = [], False
    for line in page.read_text("utf-8").splitlines():
        fence = line.strip().startswith("```")
        if fence:
            inside = line.strip() == f"```{language}"
        lines.append(line if inside and not fence else "")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "page", [page for page in MARKDOWN if blocks(page, "python").strip()], ids=name_of
)
def test_code_of_pages_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # some of it writes files
    # a module of its own, as for someone who types it: classes and functions know where they are
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    # pages may go on from a fitted model
    vars(module)["model"] = orthodrome.KernelPCA(2).fit([[0.0, 1.0], [2.0, 3.0], [5.0, 4.0]])
    exec(compile(blocks(page, "python"), str(page), "exec"), vars(module))


@pytest.mark.parametrize(
    "page", [page for page in MARKDOWN if blocks(page, "pycon").strip()], ids=name_of
)
def test_answers_on_pages_are_what_comes_out(page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(blocks(page, "pycon"), {}, page.stem, str(page), 0)
    assert test.examples
    complaints: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not runner.run(test, out=complaints.append).failed, "".join(complaints)


def transcript(page: Path) -> list[tuple[list[str], list[str]]]:
    """The commands of a page's console, each as words, with the lines that the page shows."""
    found: list[tuple[list[str], list[str]]] = []
    for line in filter(None, blocks(page, "console").splitlines()):
        if line.startswith("$ orthodrome "):
            found.append((shlex.split(line)[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_the_console_shows_what_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line by line; one that is only an ellipsis stands for all that follow."""
    for module in ("typer", "plotly", "skops"):
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


def test_defaults_of_folders_and_exit_codes_are_as_the_page_says() -> None:
    pytest.importorskip("typer", reason="typer comes with the extra [cli]")
    commands = importlib.import_module("orthodrome.app.commands")
    page = (DOCS / "command_line.md").read_text("utf-8")
    folders = dict(re.findall(r"(?m)^\| `(\w+)` \| `(\w+)` \|", page))
    given = {
        command.name: inspect.signature(command.callback).parameters.get("out")
        for command in commands.application.registered_commands
    }
    assert folders == {name: out.default for name, out in given.items() if out and out.default}
    codes = set(re.findall(r"(?m)^\| (\d+) \|", page))
    assert codes == {"0", "2", str(commands.FAILED), str(commands.INTERRUPTED)}
