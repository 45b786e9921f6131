"""The page of all experiments: the rule of its verdicts, and that it shows what was run."""

import importlib
import json
import math
import shutil
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest

from browser import external, opened
from experiment_scripts import experiment_scripts
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


@pytest.mark.parametrize(
    ("published", "deviation", "ours", "error", "finding"),
    [
        (80.0, 0.0, 82.0, 1.0, "agrees"),  # two standard errors
        (80.0, 0.0, 82.1, 1.0, "differs"),
        (80.0, 3.0, 82.9, 0.1, "agrees"),  # the printed deviation
        (80.0, 3.0, 76.9, 0.1, "differs"),
        (80.0, 0.0, 80.0, 0.0, "agrees"),
        (0.3, 0.0, 0.1 + 0.2, 0.0, "agrees"),
        (80.0, 0.0, math.nan, 1.0, "differs"),
    ],
)
def test_number(shared, published, deviation, ours, error, finding):
    number = shared.verdicts.Compared.number("Table 1", "x", published, deviation, ours, error)
    assert number.finding == finding


@pytest.mark.parametrize(
    ("ours", "error", "finding"),
    [
        (2.1, 1.0, "holds"),
        (2.0, 1.0, "open"),
        (-2.0, 1.0, "open"),
        (-2.1, 1.0, "contradicted"),
        (0.0, 0.0, "open"),
        (1e-8, 0.0, "holds"),
        (1e-12, 0.0, "open"),  # what rounding leaves
        (-1e-12, 1e-15, "open"),
        (math.nan, 1.0, "open"),
    ],
)
def test_order(shared, ours, error, finding):
    assert shared.verdicts.Compared.order("Figure 1", "x", ours, error).finding == finding


@pytest.mark.parametrize(
    ("gains", "finding"),
    [
        ([1.0, 1.1, 0.9], "holds"),
        ([1.0, -math.inf, 0.9], "contradicted"),
        ([math.inf, -math.inf], "contradicted"),
        ([math.inf, 1.0], "holds"),
        ([math.nan, 1.0], "open"),
        ([math.nan, math.inf], "open"),
        ([math.nan, -math.inf], "contradicted"),
    ],
)
def test_a_divergence_decides(shared, gains, finding):
    assert shared.pages.paired("Figure 1", "x", np.array(gains)).finding == finding


def test_an_error_of_rounding_is_none(shared):
    Compared = shared.verdicts.Compared
    assert Compared.number("", "x", 1.0, 0.0, 1.0, 3e-15).error == 0
    assert Compared.order("", "x", 1.0, 3e-15).error == 0
    assert Compared.order("", "x", 1.0, 1e-6).error == 1e-6


def compared(shared, *findings):
    ours = {"agrees": 1.0, "differs": 2.0}
    gains = {"holds": 1.0, "open": 0.0, "contradicted": -1.0}
    return [
        shared.verdicts.Compared.number("", each, 1.0, 0.0, ours[each], 0.0)
        if each in ours
        else shared.verdicts.Compared.order("", each, gains[each], 0.0)
        for each in findings
    ]


@pytest.mark.parametrize(
    ("findings", "verdict"),
    [
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
    ],
)
def test_verdict(shared, findings, verdict):
    made = compared(shared, *findings)
    assert shared.verdicts.verdict(made, quick=False) == verdict
    assert shared.verdicts.verdict(made, quick=True) == "indicative"


def test_tally(shared):
    made = compared(shared, "agrees", "differs", "holds", "contradicted", "open")
    expected = "1 of 2 numbers agree, 1 of 3 orders hold, 1 open, 1 contradicted"
    assert shared.verdicts.tally(made) == expected
    assert shared.verdicts.tally([]) == "nothing published to compare with"


# ---------------------------------------------------------------------------- what is published


def test_every_experiment_has_its_script_and_its_words(shared):
    found = shared.reproduce.experiments()
    assert {each.paper for each in found} == set(shared.reproduce.PAPERS)
    for each in found:
        assert (FOLDER / each.paper / f"{each.name}.py").exists(), each.key
        for name in ("title", "where", "says", "discussion"):
            assert each.published[name].strip(), (each.key, name)
        first, *more = shared.reproduce.discussion(each)
        assert first.startswith("What differs: "), each.key
        assert any(part.startswith("What was tried: ") for part in more), each.key
        assert more[-1].startswith(("Likely reason: ", "What it ")), each.key
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert all(each.key in makefile for each in found)


def test_unknown_experiment_is_named(shared):
    with pytest.raises(ValueError, match=r"no experiment kpga/nothing.*kpga/sphere"):
        shared.reproduce.experiments(["kpga/nothing"])


@pytest.mark.parametrize("paper", ["kpga", "kha", "rkpns", "rkhs_geo", "krrc"])
def test_committed_comparisons_are_of_the_committed_numbers(shared, paper):
    said = tomllib.loads((FOLDER / paper / "published.toml").read_text(encoding="utf-8"))
    with experiment_scripts(paper, *said) as scripts:
        for name in said:
            rows = shared.pages.read_rows(FOLDER / paper / f"{name}.csv")
            fresh = getattr(scripts, name).compared(rows)
            kept = shared.pages.read_compared(FOLDER / paper / f"{name}_compared.csv")
            assert [(a.what, a.finding) for a in fresh] == [(b.what, b.finding) for b in kept]


WITH_NUMBERS = [
    f"{paper.parent.name}/{name}"
    for paper in sorted(FOLDER.glob("*/published.toml"))
    for name, said in tomllib.loads(paper.read_text(encoding="utf-8")).items()
    if "numbers" in said
]
PRINTED = ("value", "precision", "recall", "f1", "accuracy")  # what is a number in an entry


def toml(value):
    """A value as TOML, in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


class Edited:
    """A copy of a folder of experiments, in whose published.toml numbers can be changed."""

    def __init__(self, key, copy):
        self._paper, self._name = key.split("/")
        self._copy = copy / self._paper
        ignored = shutil.ignore_patterns("scratch", "*.csv", "*.png", "*.gif", "*.md", "*.json")
        shutil.copytree(FOLDER / self._paper, self._copy, ignore=ignored)
        self._text = (self._copy / "published.toml").read_text(encoding="utf-8")
        numbers = tomllib.loads(self._text)[self._name]["numbers"]
        self.entries = [
            (place, word)
            for place, entry in enumerate(numbers)
            for word in PRINTED
            if word in entry
        ]
        self.values = [numbers[place][word] for place, word in self.entries]

    def compared(self, values):
        """The comparisons of these numbers, in the order of the entries."""
        # every one different by rounding at least, so that it is known again
        marked = []
        for value in values:
            while value in marked:
                value = math.nextafter(value, math.inf)
            marked.append(value)
        said = tomllib.loads(self._text)
        for (place, word), value in zip(self.entries, marked, strict=True):
            said[self._name]["numbers"][place][word] = value
        changed = "".join(f"{toml(name)} = {toml(about)}\n" for name, about in said.items())
        (self._copy / "published.toml").write_text(changed, encoding="utf-8")
        with experiment_scripts(self._paper, self._name, folder=self._copy) as scripts:
            rows = scripts.pages.read_rows(FOLDER / self._paper / f"{self._name}.csv")
            made = getattr(scripts, self._name).compared(rows)
        by_value = {each.published: each for each in made if each.kind == "number"}
        return [by_value[value] for value in marked]


@pytest.mark.parametrize("key", WITH_NUMBERS)
def test_a_changed_number_flips_its_verdict(shared, tmp_path, key):
    edited = Edited(key, tmp_path)
    verdict = shared.verdicts.verdict
    # what is fitted to the published numbers follows them, so that ours change with these
    values = edited.values
    for _ in range(5):
        own = edited.compared(values)
        values = [each.ours for each in own]
    own = edited.compared(values)
    # with our own numbers for published ones the experiment is reproduced
    assert verdict(own, quick=False) == "reproduced"
    for place, each in enumerate(own):
        # where no parameter that is fitted can follow
        far = each.ours + 1e3
        made = edited.compared([*values[:place], far, *values[place + 1 :]])
        assert verdict(made, quick=False) == "not reproduced", each.what


# ---------------------------------------------------------------------------- the page


@pytest.fixture
def made(shared, tmp_path, monkeypatch):
    """One experiment of a paper that does not exist, run."""
    monkeypatch.setattr(shared.reproduce, "HERE", tmp_path)
    monkeypatch.setattr(shared.reproduce, "PAPERS", {"paper": "Somebody (1999)"})
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper/published.toml").write_text(
        '[made]\ntitle = "Made <b>up</b>"\nwhere = "Table 7"\nsays = "It is 3."\n'
        'discussion = "Why."\n'
        '[none]\ntitle = "Without data"\nwhere = "Table 8"\nsays = "?"\ndiscussion = "-"\n'
    )
    (tmp_path / "paper/made.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(FOLDER)!r})\n"
        "from pathlib import Path\n"
        "from pages import record\n"
        "from verdicts import Compared\n"
        "number = Compared.number('Table 7', 'a number', 3.0, 0.5, 3.25, 0.125)\n"
        "record(Path(__file__).parent, 'made', [number], quick='--quick' in sys.argv)\n"
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


@pytest.mark.parametrize("width", [pytest.param(1200, marks=pytest.mark.slow), 400])
def test_page_reads_in_a_browser(browser, shared, made, monkeypatch, width):
    run_all(shared, made, monkeypatch)
    with opened(browser, made / "out/index.html", width=width) as shown:
        titles = shown.page.locator("h2").all_inner_texts()
        assert titles == ["Summary", "Made <b>up</b> (paper/made)", "Without data (paper/none)"]
        first = shown.page.locator("table").first
        assert first.locator("tbody tr").count() == 2
        assert "indicative" in first.inner_text()
        # tables may scroll, the page must not
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.complaints == []
        assert external(shown.requests) == []


def test_full_run_makes_verdicts(shared, made, monkeypatch):
    text = run_all(shared, made, monkeypatch, "--full")
    assert "Reproduced: 1 of 1 numbers agree." in text
    table = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert "| [paper/made](paper/made.md) | Made <b>up</b> | Table 7 | reproduced |" in table
    assert "| not run | Place iris.csv there. |" in table
    run = json.loads((made / "paper/made_run.json").read_text())
    assert run["quick"] is False
    assert run["command"] == "python experiments/paper/made.py"


def test_a_resumed_run_is_said_to_be_one(shared, made, monkeypatch):
    monkeypatch.setattr(shared.pages, "KEPT", [2, 1])
    run_all(shared, made, monkeypatch)
    number = shared.pages.read_compared(made / "paper/scratch/made_compared.csv")
    shared.pages.record(made / "paper", "made", number, quick=False)
    run = json.loads((made / "paper/made_run.json").read_text())
    assert run["kept"] == 3
    (experiment,) = shared.reproduce.experiments(["paper/made"])
    assert (
        shared.reproduce.seconds_of(
            shared.reproduce.Outcome(experiment, [], run | {"seconds": 7.0})
        )
        == "7 (resumed)"
    )


def test_an_older_run_is_not_shown(shared, made, monkeypatch):
    run_all(shared, made, monkeypatch)
    (made / "paper/made.py").write_text(f"import sys; sys.exit({shared.pages.NEEDS_DATA})")
    assert "a number" not in run_all(shared, made, monkeypatch)


def test_a_full_run_that_fails_leaves_no_older_result(shared, made, monkeypatch):
    run_all(shared, made, monkeypatch, "--full")
    (made / "paper/made.py").write_text("raise SystemExit('broken here')")
    with pytest.raises(RuntimeError, match="broken here"):
        run_all(shared, made, monkeypatch, "--full")
    text = run_all(shared, made, monkeypatch, "--full", "--page")
    assert "a number" not in text
    assert "It has not been run." in text


def said_so(made, **words):
    """Put these words into what is published of the experiment that was made up."""
    file = made / "paper/published.toml"
    more = "".join(f'{name} = "{text}"\n' for name, text in words.items())
    file.write_text(file.read_text().replace("[none]", more + "[none]"))


@pytest.mark.slow
def test_what_is_run_in_part_is_said(shared, made, monkeypatch):
    text = run_all(shared, made, monkeypatch, "--full")
    assert "in part" not in text
    said_so(made, partial="5 of 30 halves.")
    assert "Run in part, or otherwise, even in full: 5 of 30 halves." in run_all(
        shared, made, monkeypatch, "--full"
    )
    table = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert "| Table 7 | reproduced (run in part) |" in table
    assert "- **Made <b>up</b>** (paper/made): 5 of 30 halves." in table


@pytest.mark.slow
def test_what_differs_is_told_of_reproduced_experiments_too(shared, made, monkeypatch):
    run_all(shared, made, monkeypatch, "--full")
    told = "- **Made <b>up</b>** (paper/made): reproduced, "
    text = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert told + "1 of 1 numbers agree.\n  - Why." in text
    script = made / "paper/made.py"
    order = "Compared.order('Figure 1', 'x', 0.0, 0.0)"
    script.write_text(script.read_text().replace("[number]", f"[number, {order}]"))
    run_all(shared, made, monkeypatch, "--full")
    text = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert told + "1 of 1 numbers agree, 0 of 1 orders hold, 1 open.\n  - Why." in text
    assert "- **paper**: Somebody (1999)" in text
    assert "A published number agrees if it is within two standard errors" in text


@pytest.mark.slow
def test_results_say_whether_they_were_run_for_it(shared, made, monkeypatch):
    page = run_all(shared, made, monkeypatch, "--full")
    assert "which ran every experiment for it" in (made / "RESULTS.md").read_text()
    assert "which ran every experiment for it" in page
    page = run_all(shared, made, monkeypatch, "--full", "--page")
    text = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert "`experiments/reproduce.py --full --page`, which runs nothing" in text
    assert "which runs nothing" in page
    assert "date of the run" in text


@pytest.mark.slow
def test_warnings_are_counted_and_shown(shared, made, monkeypatch, capsys):
    assert "Warning" not in run_all(shared, made, monkeypatch)
    script = made / "paper/made.py"
    warn = "import warnings\nfor n in (1, 2):\n    warnings.warn(f'few <points>', stacklevel=n)\n"
    script.write_text(script.read_text() + warn)
    capsys.readouterr()
    text = run_all(shared, made, monkeypatch)
    assert "UserWarning: few &lt;points&gt;" in text
    assert "Warnings that were not foreseen: paper/made (" in text
    assert "UserWarning: few <points> (" in capsys.readouterr().out
    # the page that is built again without a run has them too
    assert "UserWarning: few &lt;points&gt;" in run_all(shared, made, monkeypatch, "--page")


@pytest.mark.slow
def test_what_moves_is_on_the_page(shared, made, monkeypatch):
    text = run_all(shared, made, monkeypatch)
    assert "data:image/gif" not in text
    (made / "paper/scratch/made_walk.gif").write_bytes(b"GIF89a")
    (made / "paper/scratch/made_walk.png").write_bytes(b"\x89PNG")
    text = run_all(shared, made, monkeypatch, "--page")
    assert text.count("data:image/gif") == text.count("data:image/png") == 1


def test_a_script_that_fails_is_an_error_with_its_words(shared, made, monkeypatch):
    (made / "paper/made.py").write_text("raise SystemExit('broken here')")
    with pytest.raises(RuntimeError, match=r"paper/made failed[\s\S]*broken here"):
        run_all(shared, made, monkeypatch)


# ---------------------------------------------------------------------------- kept runs


@pytest.mark.slow
def test_finished_jobs_are_not_run_again(shared, tmp_path, monkeypatch):
    script = tmp_path / "counted.py"
    script.write_text(
        "from pathlib import Path\n"
        "def job(number):\n"
        "    file = Path(__file__).with_name('runs.txt')\n"
        "    with file.open('a') as stream: stream.write(f'{number} ')\n"
        "    return [{'number': number}]\n"
    )
    code = (
        f"import sys; sys.path[:0] = [{str(FOLDER)!r}, {str(tmp_path)!r}]\n"
        "import counted, pages\n"
        "found = pages.side_by_side(counted.job, [(n,) for n in range({n})], quick=False)\n"
        "print(found, sum(pages.KEPT))\n"
    )

    def run(n):
        finished = subprocess.run(
            [sys.executable, "-c", code.replace("{n}", str(n))],
            capture_output=True,
            text=True,
            check=True,
        )
        return finished.stdout.splitlines()[-1]

    assert run(2) == "[[{'number': 0}], [{'number': 1}]] 0"
    assert run(3) == "[[{'number': 0}], [{'number': 1}], [{'number': 2}]] 2"
    counted = (tmp_path / "runs.txt").read_text().split()
    assert sorted(counted) == ["0", "1", "2"]
    script.write_text(script.read_text().replace("'number': number", "'number': -number"))
    assert run(2) == "[[{'number': 0}], [{'number': -1}]] 0"


def test_what_json_has_no_form_for_is_not_kept(shared, tmp_path):
    kept = shared.pages.Kept(tmp_path, "origin")
    for value in ({1: 2.0}, {("a", 1): 2.0}, [object()], SimpleNamespace()):
        assert kept.write(("job",), value) is value
        assert kept.read(("job",)) is None
    written = kept.write(("job",), [{"x": np.float64(1.5), "n": np.int64(2)}, (math.inf, "a")])
    assert written == kept.read(("job",)) == [{"x": 1.5, "n": 2}, [math.inf, "a"]]
    assert kept.read(("another",)) is None


def test_without_data_a_script_says_so(tmp_path):
    finished = subprocess.run(
        [sys.executable, str(FOLDER / "krrc/passiflora.py"), "--quick"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "ORTHODROME_DATA": str(tmp_path),
            "HOME": str(tmp_path),
            # nothing leaves the machine: there is no proxy at this address
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
        },
    )
    assert finished.returncode == 3
    last = finished.stderr.strip().split("\n")[-1]
    assert "passiflora_landmarks.csv" in last
    assert "Traceback" not in finished.stderr
