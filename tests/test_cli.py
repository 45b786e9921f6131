"""The command line, through real processes."""

import errno
import io
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import orthodrome
from orthodrome import app as cli

pytest.importorskip("typer")
pytest.importorskip("rich")
from orthodrome.app import commands as options
from orthodrome.app import models
from orthodrome.app.streams import printable, progress

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "orthodrome", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **options,
    )


def assert_one_line(stderr):
    assert "Traceback" not in stderr
    assert len(stderr.strip().splitlines()) == 1, stderr


def test_version():
    result = run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"orthodrome {orthodrome.__version__}\n"


def test_the_module_is_the_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["orthodrome", "--version"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("orthodrome", run_name="__main__")
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"orthodrome {orthodrome.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_names_the_commands_and_where_to_begin(arguments, capsys):
    assert cli.main(arguments) == 0
    text = capsys.readouterr().out
    assert "demo" in text
    assert "Begin with: orthodrome demo" in text


def test_help_of_the_demo_teaches(capsys):
    assert cli.main(["demo", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--out" in text
    assert "Example:" in text


@pytest.mark.parametrize("arguments", [("nonsense",), ("demo", "--nonsense"), ("demo", "--out")])
def test_commands_that_cannot_be_understood(arguments, capsys):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error" in captured.err


@pytest.mark.slow
def test_unknown_command_in_a_process():
    result = run("nonsense")
    assert result.returncode == 2
    assert "No such command 'nonsense'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["embed", "--help"], ["embed"]])
def test_the_help_does_not_wait_for_the_library(arguments):
    code = (
        f"import sys; from orthodrome.app import main; main({arguments})\n"
        "print('loaded:', *{'numpy', 'scipy', 'sklearn', 'numba', 'pandas'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stdout.endswith("loaded:\n")


def test_methods_in_the_help_are_those_there_are():
    for kind in ("CLASSIFIERS", "CLUSTERINGS", "DECOMPOSITIONS"):
        assert getattr(options, kind) == tuple(getattr(models, kind))


def test_missing_typer_is_one_line_of_advice():
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "from orthodrome.app import main\nsys.exit(main(['--version']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 1
    assert_one_line(result.stderr)
    assert "pip install 'orthodrome[cli]'" in result.stderr


@pytest.mark.parametrize("name", ["typer", "rich.console"])
def test_what_the_command_line_needs_is_named(monkeypatch, capsys, name):
    def absent(*_):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(cli.importlib, "import_module", absent)
    assert cli.main(["--version"]) == 1
    advice = f"orthodrome: the command line needs {name}: pip install 'orthodrome[cli]'\n"
    assert capsys.readouterr().err == advice


def test_a_module_that_the_program_itself_lacks_is_a_fault(monkeypatch):
    def broken(*_):
        raise ModuleNotFoundError("No module named 'click'", name="click")

    monkeypatch.setattr(cli.importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="click"):
        cli.main(["--version"])


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_module_that_a_command_lacks_is_one_line_and_tells_where_if_asked(debug):
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "from orthodrome.app import main; sys.exit(main(['info', 'x.csv']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"ORTHODROME_DEBUG": debug},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 1
    assert "scipy" in result.stderr.splitlines()[-1]
    assert ("Traceback" in result.stderr) == bool(debug)
    assert debug or len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "orthodrome: interrupted"),
        (MemoryError(), 1, "orthodrome: out of memory; orthodrome info DATA says what a run"),
        (PermissionError(13, "Permission denied", "a/m"), 1, "orthodrome: Permission denied: a/m"),
        (OSError(28, "No space left on device"), 1, "orthodrome: No space left on device"),
        (ValueError("two\n  lines"), 1, "orthodrome: two lines"),
        (ValueError(), 1, "orthodrome: ValueError"),
        (
            KeyError("k"),
            1,
            "orthodrome: unexpectedly, KeyError: 'k'. This is a fault of orthodrome",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_goes_wrong_is_one_line_and_a_code(monkeypatch, capsys, error, code, line):
    pytest.importorskip("plotly")

    def fail(*_, **__):
        raise error

    monkeypatch.delenv("ORTHODROME_DEBUG", raising=False)
    monkeypatch.setattr("orthodrome.persist.load", fail)
    assert cli.main(["predict", "model", "data.csv"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_one_line(printed.err)
    assert printed.err.strip().startswith(line)


@pytest.mark.parametrize("fault", [KeyError("k"), ImportError("cannot import name")], ids=repr)
def test_a_fault_tells_where_if_asked(monkeypatch, fault):
    pytest.importorskip("plotly")

    def fail(*_, **__):
        raise fault

    monkeypatch.setenv("ORTHODROME_DEBUG", "1")
    monkeypatch.setattr("orthodrome.persist.load", fail)
    with pytest.raises(type(fault)):
        cli.main(["predict", "model", "data.csv"])


@pytest.mark.parametrize("as_json", [False, True])
def test_the_demo_tells_its_page_and_its_progress(tmp_path, monkeypatch, capsys, as_json):
    demo = pytest.importorskip("orthodrome.plots.demo")

    def run_demo(out, *, command, progress):
        progress(1, 4, "digits")
        return Path(out) / "index.html"

    monkeypatch.setattr(demo, "run_demo", run_demo)
    assert cli.main(["demo", "--out", str(tmp_path), *["--json"] * as_json]) == 0
    printed = capsys.readouterr()
    assert "digits" in printed.err
    where = str((tmp_path / "index.html").resolve())
    found = json.loads(printed.out)["files"]["index.html"] if as_json else printed.out.strip()
    assert found == where


# ---------------------------------------------------------------------- streams

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
one_line_of_output = pytest.mark.parametrize("arguments", [("--version",), ("demo", "--help")])


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("plotly")
    (tmp_path / "one.csv").write_text("σ,v\n1,2\n3,4\n5,7\n", "utf-8")
    return str(tmp_path / "one.csv")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_is_closed_is_no_error(monkeypatch, capsys, table, name):
    monkeypatch.setattr(sys, name, None)
    assert cli.main(["info", table]) == 0
    assert cli.main(["nonsense"]) == 2
    assert getattr(sys, name) is None


@full
@one_line_of_output
@pytest.mark.parametrize("buffering", [1, -1], ids=["lines", "blocks"])
def test_a_full_disk_is_one_line(monkeypatch, capsys, arguments, buffering):
    with open("/dev/full", "w", buffering, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(arguments) == 1
    assert capsys.readouterr().err == "orthodrome: No space left on device: standard output\n"


@full
@pytest.mark.parametrize("buffering", [1, -1], ids=["lines", "blocks"])
def test_a_command_on_a_full_disk_is_one_line(monkeypatch, capsys, table, buffering):
    with open("/dev/full", "w", buffering, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(["info", table, "--quiet"]) == 1
    assert capsys.readouterr().err == "orthodrome: No space left on device: standard output\n"


@full
def test_where_complaints_do_not_fit_the_code_is_all(monkeypatch, capsys):
    with open("/dev/full", "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert cli.main(["info", "no such file"]) == 1


@pytest.mark.parametrize("kind", ["full", "a pipe that nobody reads"])
def test_progress_and_notes_that_nobody_takes_do_not_hinder(monkeypatch, tmp_path, table, kind):
    """The files are there, and the code says so."""
    if kind == "full" and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    pytest.importorskip("matplotlib")
    reading, writing = os.pipe()
    os.close(reading)
    with open("/dev/full" if kind == "full" else os.dup(writing), "w", 1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert cli.main(["embed", table, "--method", "kpca", "--out", str(tmp_path / "out")]) == 0
    os.close(writing)
    assert (tmp_path / "out" / "report.html").exists()


def test_a_pipe_that_breaks_within_the_work_is_a_failure(monkeypatch, capsys, table):
    def broken(*_, **__):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("orthodrome.app.describe", broken)
    assert cli.main(["info", table, "--quiet"]) == 1
    assert capsys.readouterr().err == "orthodrome: Broken pipe\n"


def test_an_error_stream_that_somebody_has_closed_is_no_error(monkeypatch, capsys, table):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert cli.main(["info", table]) == 0
    assert "3 rows" in capsys.readouterr().out


def test_streams_are_afterwards_as_they_were(monkeypatch, table):
    for encoding, errors in (("ascii", "strict"), ("utf-8", "surrogateescape")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding, errors)
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(["info", table]) == 0
        assert sys.stdout is stream
        assert stream.errors == errors
        monkeypatch.undo()


def test_what_a_terminal_would_obey_is_made_visible():
    plain = "a\u00a0b, naïve, \u0645\u06cc\u200c\u062e\u0648, \U0001f469\u200d\U0001f52c"
    assert printable(plain) == plain
    assert printable("\x1b[2J\r\n\x07\u202e\u2028\ud800") == (
        "\\x1b[2J\\r\\n\\x07\\u202e\\u2028\\ud800"
    )


@pytest.mark.slow
@full
@one_line_of_output
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_in_a_process(arguments, unbuffered):
    with open("/dev/full", "w") as stream:
        result = subprocess.run(
            [sys.executable, "-m", "orthodrome", *arguments],
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert result.returncode == 1
    assert_one_line(result.stderr)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_in_a_process(table, closed):
    line = f"{shlex.quote(sys.executable)} -m orthodrome info {shlex.quote(table)} {closed}"
    result = subprocess.run(line, shell=True, capture_output=True, check=False, timeout=120)
    assert result.returncode == 0
    assert b"Traceback" not in result.stderr


@one_line_of_output
@pytest.mark.parametrize("buffering", [1, -1], ids=["lines", "blocks"])
def test_a_pipe_that_nobody_reads_is_no_error(monkeypatch, capsys, arguments, buffering):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", buffering, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.main(arguments) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_signs_that_a_stream_has_not_are_written_in_others(monkeypatch, table, encoding):
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding) for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    assert cli.main(["info", table]) == 0
    assert cli.main(["info", table, "--json"]) == 0
    last = streams["stdout"].buffer.getvalue().splitlines()[-1]
    assert json.loads(last)["columns"] == ["σ", "v"]
    assert cli.main(["info", "--help"]) == 0
    assert cli.main(["embed", table, "--sigma", "σ"]) == 1
    printed = {name: stream.buffer.getvalue() for name, stream in streams.items()}
    assert "° from the mean".encode(encoding, "backslashreplace") in printed["stdout"]
    assert b"--sigma \\u03c3: give a number" in printed["stderr"]


@pytest.mark.slow
@pytest.mark.parametrize("below", ["", "report"])
def test_folder_that_cannot_be_written(tmp_path, below):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / below
    result = run("demo", "--out", str(out), "--quiet")
    assert result.returncode == 1
    assert result.stdout == ""
    assert_one_line(result.stderr)
    assert str(out) in result.stderr
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.slow
def test_missing_matplotlib_is_one_line_of_advice(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from orthodrome.app import main\n"
        f"sys.exit(main(['demo', '--out', {str(tmp_path / 'report')!r}]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 1
    assert_one_line(result.stderr)
    assert "pip install 'orthodrome[plot]'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_interrupt_while_the_program_starts(monkeypatch, capsys):
    def interrupted(*names):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.importlib, "import_module", interrupted)
    assert cli.main(["--version"]) == 130
    assert capsys.readouterr().err == "\northodrome: interrupted\n"


def test_importing_the_package_is_cheap():
    """So that an interrupt in the first second finds the command line, not an import."""
    code = (
        "import sys, orthodrome.app; sys.exit('numba' in sys.modules or 'sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_interrupt_leaves_no_file(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "report"
    process = subprocess.Popen(
        [sys.executable, "-m", "orthodrome", "demo", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that runs the tests in the background has them ignore the signal
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert first.startswith("[  0%] ")
    assert process.returncode == 130
    assert stdout == ""
    assert "Traceback" not in stderr
    assert stderr.endswith("orthodrome: interrupted\n")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- progress


def test_progress_without_a_terminal_is_plain_lines(capsys):
    with progress(quiet=False) as report:
        report(0.0, "first")
        report(0.2, "first")
        report(0.5, "second")
        report(1.0, "")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "[  0%] first\n[ 50%] second\n")


def test_progress_is_silent_when_asked(capsys):
    with progress(quiet=True) as report:
        report(0.0, "first")
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with progress(quiet=False) as report:
        report(0.0, "first")
        report(0.5, "second")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "second" in captured.err
    assert "50%" in captured.err


# ---------------------------------------------------------------------- the real thing


@pytest.mark.slow
def test_demo_writes_its_page_and_prints_the_path(tmp_path):
    pytest.importorskip("matplotlib")
    result = run("demo", "--out", "my report", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    page = Path(result.stdout.splitlines()[-1])
    assert page == (tmp_path / "my report" / "index.html").resolve()
    assert "python -m orthodrome demo --out &#x27;my report&#x27;" in page.read_text("utf-8")
    assert all(re.match(r"\[ *\d+%\] ", line) for line in result.stderr.splitlines())
    assert not list(page.parent.glob(".*"))


def readme_blocks(language):
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_readme_examples_run(capsys, tmp_path, monkeypatch):
    for package in ("skimage", "dask"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # some of them write files
    printed = []
    for example in readme_blocks("python"):
        exec(compile(example, "README.md", "exec"), {})
        printed.append(capsys.readouterr().out)
    digits, directions, passes, applications, groups, nested, shapes, stream, dask, saved = printed
    assert saved == "(1, 2)\n"
    assert re.fullmatch(r"\(20000, 3\)\n20000 0\.1\d+\n", stream)
    assert re.fullmatch(r"\[0\.\d+ 0\.\d+ 0\.\d+ *\]\n", dask)
    assert re.fullmatch(
        r"9\d\.\d% of new outlines of shape \(10, 2\) right\n"
        r"three outlines along the first mode: \(3, 10, 2\)\n"
        r"a mixture without labels errs on 1\d\.\d%\n"
        r"([ABC])-0 is of class \1\n",
        shapes,
    )
    assert re.fullmatch(
        r"two modes: \d\d\.\d% of the variance\n"
        r"back on the sphere of 178 coordinates: \(5, 178\)\n"
        r"robust directions: \d\d\.\d% about the median\n"
        r"(9\d|100)\.\d% of the wines right\n",
        nested,
    )
    assert re.fullmatch(
        r"mixture: \d\.\d% of the wines misplaced\n"
        r"the surest is sure to 100\.0%, BIC -\d+\n"
        r"k-means: \d\.\d%, centres of \(3, 13\)\n"
        r"PerTurbo: \d+\.\d% right, α = [\d.e-]+\n",
        groups,
    )
    assert re.fullmatch(r"[1-5] passes, largest residual \de-03\n", passes)
    assert (tmp_path / "digits.checkpoint").exists()
    assert re.fullmatch(
        r"0.00 nats from the two rings\n\d\d% of the mean squared error left\n", applications
    )
    assert re.fullmatch(r"krylov: \d+% of the variance of new digits explained\n", digits)
    assert re.fullmatch(
        r"3 flat components, 2 geodesic ones\n"
        r"kPCA: 9\d\.\d% of all neighbourhoods kept in two dimensions\n"
        r"kPGA: 100\.0% of all neighbourhoods kept in two dimensions\n",
        directions,
    )


def test_readme_commands_run(capsys, tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text("utf-8")
    lines = [shlex.split(line) for line in re.findall(r"^    orthodrome (.*)$", text, re.MULTILINE)]
    assert [line[0] for line in lines] == [
        *("info", "embed", "cluster", "classify", "predict", "compare")
    ]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert cli.main(line) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert "0.0% of the rows disagree with the labels" in printed
    pages = sorted(path.parent.name for path in tmp_path.glob("*/report.html"))
    assert pages == ["classification", "clustering", "comparison", "embedding"]


def test_readme_names_files_that_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*/plot_*.py")), ids=lambda path: path.stem
)
def test_example_runs(example, tmp_path):
    pytest.importorskip("matplotlib")
    result = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )
    assert result.returncode == 0, result.stderr
