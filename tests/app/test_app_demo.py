"""The demonstration: its page in a parser and in a browser, and the Python lines on it."""

import html
import re

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("skimage")

from browser import external, opened
from orthodrome.app.demo import run_demo

SECTIONS = (
    "Shapes: three kinds of leaves",
    "Covariance matrices: grass or gravel?",
    "Directions: a map of texts",
    "A table: three cultivars of wine",
    "How to reproduce this page",
)


@pytest.fixture(scope="module")
def progress():
    return []


@pytest.fixture(scope="module")
def page(tmp_path_factory, progress):
    return run_demo(
        tmp_path_factory.mktemp("demo") / "report",
        command=["orthodrome", "demo", "--out", "a <b> folder"],
        report=lambda *step: progress.append(step),
    )


def test_page_has_its_sections_figures_and_command(page, progress):
    text = page.read_text("utf-8")
    titles = [html.unescape(title) for title in re.findall(r"<h2[^>]*>(.*?)</h2>", text)]
    assert tuple(titles) == SECTIONS
    assert text.count('<svg class="drawing"') == 3
    assert text.count('class="scatter"') == 4
    assert "orthodrome demo --out &#x27;a &lt;b&gt; folder&#x27;" in text
    words = re.sub(r"<(script|style|svg)[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", words)
    assert [fraction for fraction, _ in progress] == [0, 0.25, 0.5, 0.75]


def test_sections_end_with_results_that_their_lines_of_python_print(
    page, tmp_path, monkeypatch, capsys
):
    text = html.unescape(page.read_text("utf-8"))
    sections = text.split("<h2")[1:5]
    last = re.compile(r'<p class="note">(Result: .*?)</p>\s*</section>')
    results = [last.search(section)[1] for section in sections]
    programs = re.findall(r"<code>(from .*?)</code>", text, re.DOTALL)
    assert len(programs) == 4
    monkeypatch.chdir(tmp_path)
    for program in programs:
        exec(compile(program, "page", "exec"), {})
    shapes, covariances, directions, table = map(float, capsys.readouterr().out.split())
    said = (f"{shapes:.0f} of 90", f"{covariances:.1%}", f"{directions:.2f} (1:", f"{table:.1%}")
    assert all(number in result for number, result in zip(said, results, strict=True))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["globe.png", "modes.png"]


@pytest.mark.parametrize("options", [{"width": 1280}, {"width": 390, "color_scheme": "dark"}])
def test_page_fits_and_makes_no_requests(browser, page, options):
    with opened(browser, page, **options) as found:
        found.page.locator(".scatter-plot svg").nth(3).wait_for(state="attached")
        width = found.page.evaluate("document.documentElement.scrollWidth")
        assert width <= options["width"]
        assert found.complaints == []
        assert external(found.requests) == []


def test_a_failure_leaves_no_folder_behind(tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "a" / "b", report=stop)
    assert list(tmp_path.iterdir()) == []
