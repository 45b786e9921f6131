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
    "digits": r"krylov: \d+% of the variance of new digits explained\n",
    "directions": (
        r"3 flat components, 2 geodesic ones\n"
        r"kPCA: 9\d\.\d% of all neighbourhoods kept in two dimensions\n"
        r"kPGA: 100\.0% of all neighbourhoods kept in two dimensions\n"
    ),
    "passes": r"[1-5] passes, largest residual \de-03\n",
    "applications": r"0.00 nats from the two rings\n\d\d% of the mean squared error left\n",
    "groups": (
        r"mixture: \d\.\d% of the wines misplaced\n"
        r"the surest is sure to 100\.0%, BIC -\d+\n"
        r"k-means: \d\.\d%, centres of \(3, 13\)\n"
        r"PerTurbo: \d+\.\d% right, α = [\d.e-]+\n"
    ),
    "nested": (
        r"two modes: \d\d\.\d% of the variance\n"
        r"back on the sphere of 178 coordinates: \(5, 178\)\n"
        r"robust directions: \d\d\.\d% about the median\n"
        r"(9\d|100)\.\d% of the wines right\n"
    ),
    "shapes": (
        r"9\d\.\d% of new outlines of shape \(10, 2\) right\n"
        r"three outlines along the first mode: \(3, 10, 2\)\n"
        r"a mixture without labels errs on 1\d\.\d%\n"
        r"([ABC])-0 is of class \1\n"
    ),
    "stream": r"\(20000, 3\)\n20000 0\.1\d+\n",
    "dask": r"\[0\.\d+ 0\.\d+ 0\.\d+ *\]\n",
    "saved": r"\(1, 2\)\n",
}
NEEDED = {"applications": "skimage", "dask": "dask"}


def test_every_readme_example_is_run():
    assert len(readme_blocks("python")) == len(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_readme_examples_run(name, capsys, tmp_path, monkeypatch):
    pytest.importorskip(NEEDED.get(name, "numpy"))
    monkeypatch.chdir(tmp_path)  # some of them write files
    example = readme_blocks("python")[list(PRINTED).index(name)]
    exec(compile(example, "README.md", "exec"), {})
    assert re.fullmatch(PRINTED[name], capsys.readouterr().out)
    assert (tmp_path / "digits.checkpoint").exists() == (name == "passes")


def test_readme_commands_run(capsys, tmp_path, monkeypatch):
    for package in ("typer", "plotly", "pandas"):
        pytest.importorskip(package)
    text = (ROOT / "README.md").read_text("utf-8")
    lines = [shlex.split(line) for line in re.findall(r"^    orthodrome (.*)$", text, re.MULTILINE)]
    assert [line[0] for line in lines] == [
        *("info", "embed", "cluster", "classify", "predict", "compare")
    ]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert main(line) == 0, capsys.readouterr().err
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
