"""The demonstration, small: its page in a parser and in a browser, and the Python lines on it."""

import html
import re
import warnings

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("plotly")

from browser import external, opened
from orthodrome.app.demo import Settings, run_demo

SMALL = Settings(training=200, directions=60)
SECTIONS = (
    "Digits: from feature space back to images",
    "Digits: ten classes in two dimensions",
    "Wine: three cultivars in two dimensions",
    "Directions: kernel PCA and kernel PGA",
    "How to reproduce this page",
)
FAR = ".* a quarter of a great circle or more"


@pytest.fixture(scope="module")
def progress():
    return []


@pytest.fixture(scope="module")
def page(tmp_path_factory, progress):
    return run_demo(
        tmp_path_factory.mktemp("demo") / "report",
        command=["orthodrome", "demo", "--out", "a <b> folder"],
        settings=SMALL,
        report=lambda *step: progress.append(step),
    )


def test_page_has_its_sections_figures_and_command(page, progress):
    text = page.read_text("utf-8")
    titles = [html.unescape(title) for title in re.findall(r"<h2[^>]*>(.*?)</h2>", text)]
    assert tuple(titles) == SECTIONS
    images = re.findall(r'<img src="data:image/png;base64,', text)
    pictures = list(page.parent.glob("*.png"))
    assert len(images) == len(pictures) == 7
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert all(html.unescape(alt) for alt in re.findall(r'<img [^>]*alt="([^"]*)"', text))
    assert text.count('class="scatter"') == 8
    assert "orthodrome demo --out &#x27;a &lt;b&gt; folder&#x27;" in text
    words = re.sub(r"<(script|style)[^>]*>.*?</\1>|base64,[^\"]*", "", text, flags=re.DOTALL)
    assert "nan" not in words
    assert [fraction for fraction, _ in progress] == sorted(fraction for fraction, _ in progress)
    assert len({task for _, task in progress}) == 5


def test_python_lines_on_the_page_run(page, tmp_path, monkeypatch, capsys):
    text = page.read_text("utf-8")
    blocks = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", text, re.DOTALL)
    programs = [html.unescape(block) for block in blocks if "import" in block]
    assert len(programs) == 2
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", FAR)
        for program in programs:
            exec(compile(program, "page", "exec"), {})
    noisy, cleaned, area = map(float, capsys.readouterr().out.split())
    assert cleaned < noisy
    for value in (f"{noisy:.4f}", f"{cleaned:.4f}", f"kernel PGA is {area:.3f}"):
        assert value in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits.png", "sphere.png"]


def test_a_failure_leaves_no_folder_behind(tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "a" / "b", settings=SMALL, report=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_browser_renders_the_page(browser, page, tmp_path, width, scheme):
    image = pytest.importorskip("PIL.Image")
    with opened(browser, page, width=width, color_scheme=scheme) as shown:
        assert tuple(shown.page.locator("h2").all_inner_texts()) == SECTIONS
        assert shown.complaints == []
        assert external(shown.requests) == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        shown.page.screenshot(path=tmp_path / "page.png")
    with image.open(tmp_path / "page.png") as opened_picture:
        picture = opened_picture.convert("L")
    if scheme == "dark":
        assert picture.getpixel((2, 2)) < 60
    else:
        histogram = picture.histogram()
        assert sum(histogram[:128]) > 0.005 * picture.width * picture.height
        assert histogram[255] > 0.5 * picture.width * picture.height
