"""Verdicts on published numbers, and the page of all experiments."""

import importlib
import json
import math
import sys
from types import SimpleNamespace

import pytest

from real_data import REPOSITORY

FOLDER = REPOSITORY / "experiments"


@pytest.fixture(scope="module")
def shared():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        names = ("verdicts", "pages", "reproduce")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    del sys.modules["reproduce"]


# ---------------------------------------------------------------------------- the rule


def test_number(shared):
    for published, deviation, ours, error, finding in (
        (80.0, 0.0, 82.0, 1.0, "agrees"),  # two standard errors
        (80.0, 0.0, 82.1, 1.0, "differs"),
        (80.0, 3.0, 82.9, 0.1, "agrees"),  # the printed deviation
        (80.0, 3.0, 76.9, 0.1, "differs"),
        (80.0, 0.0, 80.0, 0.0, "agrees"),
        (0.3, 0.0, 0.1 + 0.2, 0.0, "agrees"),
        (80.0, 0.0, math.nan, 1.0, "differs"),
    ):
        number = shared.verdicts.Compared.number("Table 1", "x", published, deviation, ours, error)
        assert number.finding == finding, number


def test_order(shared):
    for ours, error, finding in (
        (2.1, 1.0, "holds"),
        (2.0, 1.0, "open"),
        (-2.0, 1.0, "open"),
        (-2.1, 1.0, "contradicted"),
        (0.0, 0.0, "open"),
        (1e-8, 0.0, "holds"),
        (1e-12, 0.0, "open"),  # rounding
        (-1e-12, 1e-15, "open"),
        (math.nan, 1.0, "open"),
    ):
        order = shared.verdicts.Compared.order("Figure 1", "x", ours, error)
        assert order.finding == finding, order
    assert shared.verdicts.Compared.order("", "x", 1.0, 3e-15).error == 0
    assert shared.verdicts.Compared.order("", "x", 1.0, 1e-6).error == 1e-6


def compared(shared, *findings):
    ours = {"agrees": 1.0, "differs": 2.0}
    gains = {"holds": 1.0, "open": 0.0, "contradicted": -1.0}
    return [
        shared.verdicts.Compared.number("", each, 1.0, 0.0, ours[each], 0.0)
        if each in ours
        else shared.verdicts.Compared.order("", each, gains[each], 0.0)
        for each in findings
    ]


def test_verdict_and_tally(shared):
    for findings, verdict in (
        (["agrees", "agrees"], "reproduced"),
        (["agrees", "holds"], "reproduced"),
        (["agrees", "open"], "reproduced"),
        (["agrees", "contradicted"], "not reproduced"),
        (["agrees", "differs", "holds"], "same ordering"),
        (["holds", "holds"], "same ordering"),
        (["differs", "holds", "open"], "not reproduced"),
        (["differs"], "not reproduced"),
        (["open"], "not reproduced"),
        ([], "not reproduced"),
    ):
        made = compared(shared, *findings)
        assert shared.verdicts.verdict(made, quick=False) == verdict, findings
        assert shared.verdicts.verdict(made, quick=True) == "indicative"
    made = compared(shared, "agrees", "differs", "holds", "contradicted", "open")
    expected = "1 of 2 numbers agree, 1 of 3 orders hold, 1 open, 1 contradicted"
    assert shared.verdicts.tally(made) == expected
    assert shared.verdicts.tally([]) == "nothing published to compare with"


# ---------------------------------------------------------------------------- the page


@pytest.fixture
def made(shared, tmp_path, monkeypatch):
    """Two experiments of an invented paper, one of them without data."""
    monkeypatch.setattr(shared.reproduce, "HERE", tmp_path)
    monkeypatch.setattr(shared.reproduce, "PAPERS", {"paper": "Somebody (1999)"})
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper/published.toml").write_text(
        '[made]\ntitle = "Made <b>up</b>"\nwhere = "Table 7"\nsays = "It is 3."\nvalue = 3.0\n'
        'discussion = "Why."\n'
        '[none]\ntitle = "Without data"\nwhere = "Table 8"\nsays = "?"\ndiscussion = "-"\n'
    )
    (tmp_path / "paper/made.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(FOLDER)!r})\n"
        "from pathlib import Path\n"
        "from pages import published, record\n"
        "from verdicts import Compared\n"
        "here = Path(__file__).parent\n"
        "value = published(here, 'made')['value']\n"
        "number = Compared.number('Table 7', 'a number', value, 0.5, 3.25, 0.125)\n"
        "record(here, 'made', [number], quick='--quick' in sys.argv)\n"
    )
    (tmp_path / "paper/none.py").write_text(
        "import sys\nsys.stderr.write('Place iris.csv there.\\n')\n"
        f"sys.exit({shared.pages.NEEDS_DATA})\n"
    )
    return tmp_path


def run_all(shared, made, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--out", str(made / "out"), *arguments])
    shared.reproduce.main()
    return (made / "out/index.html").read_text(encoding="utf-8")


def test_page_has_numbers_of_the_run(shared, made, monkeypatch, capsys):
    text = run_all(shared, made, monkeypatch)
    assert "Made &lt;b&gt;up&lt;/b&gt;" in text
    assert "Indicative: 1 of 1 numbers agree." in text
    assert "3.25" in text
    assert "0.12" in text
    assert "python experiments/paper/made.py --quick" in text
    assert "Not run. Place iris.csv there." in text
    assert not (made / "RESULTS.md").exists()
    assert capsys.readouterr().out.strip().endswith("index.html")


def test_a_full_run_gives_verdicts_that_follow_the_published_number(shared, made, monkeypatch):
    text = run_all(shared, made, monkeypatch, "--full")
    assert "Reproduced: 1 of 1 numbers agree." in text
    table = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert "| [paper/made](paper/made.md) | Made <b>up</b> | Table 7 | reproduced |" in table
    assert "| not run | Place iris.csv there. |" in table
    run = json.loads((made / "paper/made_run.json").read_text())
    assert run["quick"] is False
    assert run["command"] == "python experiments/paper/made.py"
    # another published number, another verdict
    said = made / "paper/published.toml"
    said.write_text(said.read_text().replace("value = 3.0", "value = 4.0"))
    assert "Not reproduced: 0 of 1 numbers agree." in run_all(shared, made, monkeypatch, "--full")
    # a failed run leaves no older result
    (made / "paper/made.py").write_text("raise SystemExit('broken here')")
    with pytest.raises(RuntimeError, match=r"paper/made failed[\s\S]*broken here"):
        run_all(shared, made, monkeypatch, "--full")
    text = run_all(shared, made, monkeypatch, "--full", "--page")
    assert "a number" not in text
    assert "It has not been run." in text
