"""The demonstration, small: its page in a parser and in a browser, and the Python lines on it."""

import html
import re
import warnings

import pytest

pytest.importorskip("matplotlib")

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
