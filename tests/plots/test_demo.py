"""The demonstration, small: its page in a parser and in a browser, and the Python lines on it."""

import html
import os
import re
import shutil
import subprocess

import pytest

pytest.importorskip("matplotlib")

from orthodrome.plots.demo import Settings, run_demo

SMALL = Settings(folds=2, counts=(1, 2, 4), training=200, validation=50)
SECTIONS = (
    "Digits: from feature space back to images",
    "Digits: ten classes in two dimensions",
    "Wine: two pictures of three cultivars",
    "Which solver, and where the Gram matrix lives",
    "How to do this again",
)


@pytest.fixture(scope="module")
def progress():
    return []


@pytest.fixture(scope="module")
def page(tmp_path_factory, progress):
    return run_demo(
        tmp_path_factory.mktemp("demo") / "report",
        command=["orthodrome", "demo", "--out", "a <b> folder"],
        settings=SMALL,
        progress=lambda *step: progress.append(step),
    )


def test_page_has_its_sections_figures_and_command(page):
    text = page.read_text("utf-8")
    titles = [html.unescape(title) for title in re.findall(r"<h2[^>]*>(.*?)</h2>", text)]
    assert tuple(titles) == SECTIONS
    images = re.findall(r'<img src="data:image/png;base64,', text)
    pictures = list(page.parent.glob("*.png"))
    assert len(images) == len(pictures) == 11
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert all(html.unescape(alt) for alt in re.findall(r'<img [^>]*alt="([^"]*)"', text))
    assert "orthodrome demo --out &#x27;a &lt;b&gt; folder&#x27;" in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text)


def test_progress_counts_every_task(page, progress):
    total = progress[0][1]
    assert [done for done, _, _ in progress] == list(range(total + 1))
    assert progress[-1][2] == ""
    assert all(task for _, _, task in progress[:-1])


def test_python_lines_on_the_page_run(page, tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page.read_text("utf-8"), re.DOTALL)
    programs = [html.unescape(block) for block in blocks if "import" in block]
    assert len(programs) == 2
    monkeypatch.chdir(tmp_path)
    for program in programs:
        exec(compile(program, "page", "exec"), {})
    noisy, cleaned = map(float, capsys.readouterr().out.split())
    assert cleaned < noisy
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits.png", "wine.png"]


def test_a_failure_leaves_no_folder_behind(tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "a" / "b", settings=SMALL, progress=stop)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((path for name in names if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no chromium or google-chrome on this machine")

    def run(*arguments):
        profile = tmp_path_factory.mktemp("profile")
        options = "headless no-sandbox disable-gpu disable-quic no-first-run hide-scrollbars "
        options += "disable-background-networking disable-component-update disable-sync"
        return subprocess.run(
            [
                program,
                *(f"--{option}" for option in options.split()),
                f"--user-data-dir={profile}",
                "--enable-logging=stderr",
                "--v=0",
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={**os.environ, "HOME": str(profile)},
        )

    return run


def test_browser_renders_every_section_without_complaint(browser, page):
    result = browser("--dump-dom", page.as_uri())
    for title in SECTIONS:
        assert title in html.unescape(result.stdout)
    complaints = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []


def screenshot(browser, page, target, width, *options):
    image = pytest.importorskip("PIL.Image")
    browser(f"--screenshot={target}", f"--window-size={width},1600", *options, page.as_uri())
    with image.open(target) as opened:
        return opened.convert("L").copy()


@pytest.mark.parametrize("width", [1200, 500])
def test_screenshot_is_not_blank(browser, page, tmp_path, width):
    picture = screenshot(browser, page, tmp_path / "page.png", width)
    histogram = picture.histogram()
    assert sum(histogram[:128]) > 0.005 * picture.width * picture.height
    assert histogram[255] > 0.5 * picture.width * picture.height


def test_dark_mode_is_dark(browser, page, tmp_path):
    dark = "--blink-settings=preferredColorScheme=0"
    picture = screenshot(browser, page, tmp_path / "dark.png", 1200, dark)
    assert picture.getpixel((2, 2)) < 60
