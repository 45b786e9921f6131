"""Verdicts on published numbers, the runner, and the page of all experiments."""

import json
import math
import sys

import pytest

from experiment_scripts import experiment_modules


@pytest.fixture(scope="module")
def shared():
    with experiment_modules("verdicts", "reproduce", "page") as found:
        yield found


# ---------------------------------------------------------------------------- the rule


def test_number(shared):
    v = shared.verdicts
    for printed, repeats, values, own, baseline in (
        ("80.0 (3.0)", 9, [82.0], "reached", "as printed"),  # two errors of the paper
        ("80.0 (3.0)", 9, [82.1], "exceeded", "stronger"),
        ("80.0 (3.0)", 9, [77.9], "short", "weaker"),
        ("80.0 (0.0)", 20, [80.05], "reached", "as printed"),  # the rounding
        ("80", 1, [80.5], "reached", "as printed"),
        ("80.0 (0.0)", 20, [80.06], "exceeded", "stronger"),
        ("80.0 (0.0)", 20, [79.0, 83.0, 79.0, 83.0], "reached", "as printed"),  # our errors
        ("80.0", 1, [83.0, 87.0], "reached", "as printed"),  # the deviation of one of our repeats
        ("80.0", 1, [90.0, 90.0], "exceeded", "stronger"),
    ):
        for is_own, finding in ((True, own), (False, baseline)):
            made = v.number(printed, "x", v.Sample.of(values), own=is_own, repeats=repeats)
            assert made.finding == finding, made
    sample = v.Sample.of([82.1])
    assert v.number("80.0 (3.0)", "x", sample, own=True, repeats=9, better=-1).finding == "short"
    assert v.number("80.0 (3.0)", "x", sample, own=True, repeats=9, better=0).finding == "differs"
    with pytest.raises(ValueError, match=r"'about 80' is not a number such as '65\.1'"):
        v.number("about 80", "x", sample, own=True)


def test_order(shared):
    v = shared.verdicts
    for mean, error, finding in (
        (2.1, 1.0, "holds"),
        (2.0, 1.0, "open"),
        (-2.0, 1.0, "open"),
        (-2.1, 1.0, "contradicted"),
        (0.0, 0.0, "open"),
        (1e-8, 0.0, "holds"),
        (1e-12, 0.0, "open"),  # rounding
        (math.nan, 1.0, "open"),
        (-math.inf, 0.0, "contradicted"),
    ):
        assert v.order("x", v.Sample(mean, error)).finding == finding
    with_divergence = v.Sample.of([1.0, 2.0]) - v.Sample.of([0.5, math.inf])
    assert v.order("x", with_divergence).finding == "contradicted"
    both = v.Sample.of([1.0, math.inf]) - v.Sample.of([0.5, math.inf])
    assert v.order("x", both).finding == "open"


def test_samples(shared):
    Sample = shared.verdicts.Sample
    a, b = Sample.of([1.0, 2.0, 3.0]), Sample.of([0.0, 1.0, 2.0])
    assert (a - b).values == (1.0, 1.0, 1.0)
    moments = Sample(b.mean, b.deviation, b.n)
    apart = a - moments
    assert apart.mean == 1.0
    assert apart.error == pytest.approx(math.hypot(a.error, b.error))
    assert moments.map(lambda x: 3 - 2 * x) == Sample(1.0, 2.0, 3)


def test_verdicts_and_best_variant(shared):
    v = shared.verdicts
    good = v.number("1.0 (0.0)", "x", v.Sample(1.0), own=True, repeats=1)
    bad = v.number("1.0 (0.0)", "x", v.Sample(0.5), own=True, repeats=1)
    base = v.number("1.0 (0.0)", "x", v.Sample(2.0), own=False, repeats=1)
    compared = [good, bad, base, *(v.order("x", v.Sample(x)) for x in (1.0, 1.0, 0.0, -1.0))]
    assert v.verdicts(compared) == {
        "own": "1 of 2 numbers reached; 1 short (by 0.5)",
        "order": "2 hold, 1 open, 1 contradicted",
        "baseline": "1 stronger",
    }
    fitted = shared.reproduce.Fitted("what", {"a": [bad], "b": [good], "c": [good]}, {})
    assert fitted.best == "b"


# ---------------------------------------------------------------------------- runner and page

MODULE = """
from reproduce import About, Part
from verdicts import number, order
def jobs(quick):
    return [(seed,) for seed in range(2 if quick else 4)]
def measure(seed):
    return {"ours": 3.0 + seed / 10, ("other", 1): [1.0, 2.0]}
def compare(found, variant):
    return [number("3.0", "a number", found("ours"), own=True, unit="m"),
            order("ours first", found("ours") - found("other", 1), unit="m")]
PARTS = [Part(compare, ("a", "b"), "the colour")]
ABOUT = About("Made <b>up</b>", "Table 7", "It is 3.", "D.", "T.", "R.")
"""
WITHOUT = MODULE.replace(
    "    return {", "    raise FileNotFoundError('Place iris.csv.')\n    return {"
)


@pytest.fixture
def made(shared, tmp_path, monkeypatch):
    """Two experiments of an invented paper, one of them without data."""
    names = {"paper": ("made", "none")}
    for module in (shared.reproduce, shared.page):
        monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(shared.reproduce, "EXPERIMENTS", names)
    monkeypatch.setattr(shared.page, "PAPERS", {"paper": ("Somebody (1999)", "It is so.")})
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # no other processes
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper/made.py").write_text(MODULE)
    (tmp_path / "paper/none.py").write_text(WITHOUT)
    yield tmp_path
    for name in ("paper", "paper.made", "paper.none"):
        sys.modules.pop(name, None)


def run_all(shared, made, monkeypatch, *arguments):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--out", str(made / "out"), *arguments])
    shared.reproduce.main()
    return (made / "out/index.html").read_text(encoding="utf-8")


def test_quick_page(shared, made, monkeypatch, capsys):
    text = run_all(shared, made, monkeypatch)
    assert "Made &lt;b&gt;up&lt;/b&gt;" in text
    assert "only indicative" in text
    assert "own method: 1 of 1 numbers reached; comparisons: 1 holds" in text
    assert "Not given in the paper: the colour. Of 2 variants, “a” fits best." in text
    assert "Not run. Place iris.csv." in text
    assert "data:image/png" in text
    assert not (made / "RESULTS.md").exists()
    assert capsys.readouterr().out.strip().endswith("index.html")


def test_full_run_is_kept_and_follows_the_published_number(shared, made, monkeypatch):
    run_all(shared, made, monkeypatch, "--full")
    text = (made / "RESULTS.md").read_text(encoding="utf-8")
    assert "| a number | 3 | 3.15 ± 0.065 | reached | paper/made |" in text
    assert "![Made <b>up</b>: published results and ours.](paper/made.png)" in text
    assert (made / "paper/made.png").exists()
    results = json.loads((made / "paper/made.json").read_text())
    assert results["values"]["ours"] == [3.0, 3.1, 3.2, 3.3]
    assert results["values"]["other | 1"] == [1.0, 2.0] * 4
    # finished jobs are not run again; another published number gives another verdict
    changed = MODULE.replace("3.0 + seed / 10", "1 / 0").replace('number("3.0"', 'number("4.0"')
    (made / "paper/made.py").write_text(changed)
    sys.modules.pop("paper.made")
    run_all(shared, made, monkeypatch, "--full")
    assert "| 3.15 ± 0.065 | short |" in (made / "RESULTS.md").read_text(encoding="utf-8")
    sys.modules.pop("paper.made")
    with pytest.raises(ZeroDivisionError):
        run_all(shared, made, monkeypatch, "--full", "--again")
    with pytest.raises(ValueError, match=r"There is no experiment paper/x\. There are: paper/made"):
        run_all(shared, made, monkeypatch, "--only", "paper/x")
