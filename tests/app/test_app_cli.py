"""The command line, through real processes."""

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import orthodrome
from orthodrome import app

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pandas")
from orthodrome.app.models import option_text
from orthodrome.app.streams import printable, progress


def test_version():
    command = [sys.executable, "-m", "orthodrome", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"orthodrome {orthodrome.__version__}\n"


def test_help_does_not_import_the_library():
    code = (
        "import sys; from orthodrome.app import main\n"
        "for arguments in (['--version'], ['--help'], ['embed', '--help'], ['embed']):\n"
        "    main(arguments)\n"
        "print('loaded:', *{'numpy', 'scipy', 'sklearn', 'numba', 'pandas'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stdout.endswith("loaded:\n")


def test_errors_while_the_program_starts(monkeypatch, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr(app.importlib, "import_module", fail)
    for name in ("typer", "rich.console"):
        error = ModuleNotFoundError(f"No module named {name!r}", name=name)
        assert app.main(["--version"]) == 1
        assert f"needs {name}: pip install 'orthodrome[cli]'\n" in capsys.readouterr().err
    error = KeyboardInterrupt()
    assert app.main(["--version"]) == 130
    assert capsys.readouterr().err == "\northodrome: interrupted\n"
    error = ModuleNotFoundError("No module named 'click'", name="click")  # not an extra
    with pytest.raises(ModuleNotFoundError, match="click"):
        app.main(["--version"])


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "orthodrome: interrupted"),
        (MemoryError(), 1, "orthodrome: out of memory; `orthodrome info DATA` estimates"),
        (PermissionError(13, "Permission denied", "a/m"), 1, "orthodrome: Permission denied: a/m"),
        (BrokenPipeError(32, "Broken pipe", "a/b"), 1, "orthodrome: Broken pipe: a/b"),
        (OSError(28, "No space left on device"), 1, "orthodrome: No space left on device"),
        (ValueError("two\n  lines"), 1, "orthodrome: two lines"),
        (ValueError(), 1, "orthodrome: ValueError"),
        (KeyError("k"), 1, "orthodrome: unexpected KeyError: 'k'. This is a bug in orthodrome"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_errors_are_one_line_and_a_code(monkeypatch, capsys, error, code, line):
    pytest.importorskip("matplotlib")

    def fail(*_, **__):
        raise error

    monkeypatch.delenv("ORTHODROME_DEBUG", raising=False)
    monkeypatch.setattr("orthodrome.persist.load", fail)
    assert app.main(["predict", "model", "data.csv"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert printed.err.strip().startswith(line)
    if isinstance(error, KeyError):
        monkeypatch.setenv("ORTHODROME_DEBUG", "1")
        with pytest.raises(KeyError):
            app.main(["predict", "model", "data.csv"])


# ---------------------------------------------------------------------- streams


@pytest.fixture
def table(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "one.csv").write_text("σ,v\n1,2\n3,4\n5,7\n", "utf-8")
    return str(tmp_path / "one.csv")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_closed_streams(monkeypatch, capsys, table, name):
    monkeypatch.setattr(sys, name, None)
    assert app.main(["info", table]) == 0
    assert app.main(["nonsense"]) == 2
    assert getattr(sys, name) is None


@pytest.fixture(params=["full", "broken pipe"])
def unwritable(request):
    """Return a function that names a file which cannot be written, and the error message."""
    if request.param == "full":
        if not os.path.exists("/dev/full"):
            pytest.skip("needs /dev/full")
        yield lambda: "/dev/full", "No space left on device"
        return
    reading, writing = os.pipe()
    os.close(reading)
    yield lambda: os.dup(writing), ""
    os.close(writing)


@pytest.mark.parametrize("arguments", [("--version",), ("demo", "--help")])
@pytest.mark.parametrize("buffering", [1, -1], ids=["lines", "blocks"])
def test_unwritable_output(monkeypatch, capsys, unwritable, arguments, buffering):
    """A full disk is an error of one line; a reader that stops early is none."""
    target, message = unwritable
    with open(target(), "w", buffering) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert app.main(arguments) == bool(message)
    line = f"orthodrome: {message}: standard output\n"
    assert capsys.readouterr().err == (line if message else "")


def test_unwritable_errors_and_notes(monkeypatch, tmp_path, table, unwritable):
    """The exit code says the rest, and the files are written."""
    pytest.importorskip("matplotlib")
    with open(unwritable[0](), "w", 1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert app.main(["info", "no such file"]) == 1
        assert app.main(["embed", table, "--method", "kpca", "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "report.html").exists()


def test_control_characters_are_escaped():
    plain = "a\u00a0b, naïve, \u0645\u06cc\u200c\u062e\u0648, \U0001f469\u200d\U0001f52c"
    assert printable(plain) == plain
    assert printable("\x1b[2J\r\n\x07\u202e\u2028\ud800") == (
        "\\x1b[2J\\r\\n\\x07\\u202e\\u2028\\ud800"
    )


def test_progress_without_a_terminal_is_plain_lines(capsys):
    with progress(quiet=False) as report:
        report(0.0, "first")
        report(0.2, "first")
        report(0.5, "second")
        report(1.0, "")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "[  0%] first\n[ 50%] second\n")
    with progress(quiet=True) as report:
        report(0.0, "first")
    assert capsys.readouterr() == ("", "")


# ---------------------------------------------------------------------- demo


def test_demo_prints_the_path_of_its_page(monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    calls = []
    page = tmp_path / "index.html"
    monkeypatch.setattr(
        "orthodrome.app.session.run_demo", lambda out, **_: calls.append(out) or page
    )
    assert app.main(["demo", "--out", "here", "--quiet"]) == 0
    assert app.main(["demo", "--out", "here", "--json", "--quiet"]) == 0
    text, facts = capsys.readouterr().out.splitlines()
    assert text == json.loads(facts)["files"]["index.html"] == str(page.resolve())
    assert calls == ["here", "here"]


@pytest.mark.parametrize("debug", ["", "1"])
def test_missing_module_of_a_command_is_one_line(debug):
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


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_characters_missing_in_the_encoding_are_escaped(monkeypatch, table, encoding):
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding) for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    assert app.main(["info", table]) == 0
    assert app.main(["info", table, "--json"]) == 0
    last = streams["stdout"].buffer.getvalue().splitlines()[-1]
    assert json.loads(last)["columns"] == ["σ", "v"]
    assert app.main(["info", "--help"]) == 0
    assert app.main(["embed", table, "--sigma", "σ"]) == 1
    printed = {name: stream.buffer.getvalue() for name, stream in streams.items()}
    assert "° from the mean".encode(encoding, "backslashreplace") in printed["stdout"]
    assert b"--sigma \\u03c3: give a number" in printed["stderr"]


def test_the_extra_cli_brings_all_that_commands_need():
    pyproject = Path(__file__).resolve().parents[2] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert "orthodrome[plot,image]" in extras["cli"]
    brought = " ".join(extras["cli"] + extras["plot"] + extras["image"])
    needed = "typer rich pandas pyarrow matplotlib scikit-image PyWavelets"
    assert [name for name in needed.split() if name not in brought] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use great subspheres (sphere='great').", "Use great subspheres (--sphere great)."),
        ("sigma of Gaussian must be > 0; got 0.", "--sigma of Gaussian must be > 0; got 0."),
        ("KernelPCA: n_components=9.", "KernelPCA: --components=9."),
        ("GeodesicMixture: Reduce n_components.", "GeodesicMixture: Reduce -k."),
        (
            "Raise max_iter, or loosen tol.",
            "Raise max_iter, or loosen tol. (Only in Python: max_iter, tol.)",
        ),
        ("Lines of text stay.", "Lines of text stay."),
    ],
)
def test_messages_of_estimators_name_options(text, expected):
    assert option_text(text) == expected
