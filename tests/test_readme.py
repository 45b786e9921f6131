"""The examples of README.md and of the folder examples run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orthodrome.app import main

ROOT = Path(__file__).resolve().parents[1]


def readme_blocks(language):
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


#: What the examples print, in their order.
PRINTED = {
    "landmarks": r"(9\d|100)\.\d% of the other leaves classified correctly\n",
    "covariances": r"(9\d|100)\.\d% accuracy\n",
    "directions": r"adjusted Rand index 0\.[67]\d\n",
    "tables": r"(9\d|100)\.\d% accuracy\n",
    "large": r"\(1, 3\)\n",
}


def test_every_readme_example_is_run():
    assert len(readme_blocks("python")) == len(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_readme_examples_run(name, capsys, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # some of them write files
    example = readme_blocks("python")[list(PRINTED).index(name)]
    exec(compile(example, "README.md", "exec"), {})
    assert re.fullmatch(PRINTED[name], capsys.readouterr().out)


def test_readme_commands_run(capsys, tmp_path, monkeypatch):
    for package in ("typer", "matplotlib", "pandas"):
        pytest.importorskip(package)
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.findall(r"^    orthodrome (.*)$", text, re.MULTILINE)
    lines = [shlex.split(line, comments=True) for line in found]
    assert [line[0] for line in lines] == [
        *("classify", "classify", "info", "embed", "cluster", "classify", "predict", "compare")
    ]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert main(line) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert "disagree for 0.0% of the rows" in printed
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
