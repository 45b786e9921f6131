"""The demonstration, small: its page in a parser and in a browser, and the Python lines on it."""

import html
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from orthodrome.plots.demo import Settings, run_demo
from orthodrome.plots.demo.geodesic import METHODS, Comparison
from orthodrome.plots.demo.geodesic_page import _far_words, _verdict
from orthodrome.plots.demo.page import _accuracy_words, _curve_words
from orthodrome.plots.demo.studies import load_wine_study

from browser import external, opened
from orthodrome import KernelPCA, KernelPGA
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_area, neighborhood_preservation

SMALL = Settings(folds=2, counts=(1, 2, 4), training=200, validation=50, directions=60)
SECTIONS = (
    "Digits: from feature space back to images",
    "Digits: ten classes in two dimensions",
    "Wine: two pictures of three cultivars",
    "Directions: kernel PCA against kernel PGA, side by side",
    "Digits and wine: kernel PCA against kernel PGA, side by side",
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
    assert len(images) == len(pictures) == 21
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
    assert len(programs) == 3
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", FAR)
        for program in programs:
            exec(compile(program, "page", "exec"), {})
    noisy, cleaned, area = map(float, capsys.readouterr().out.split())
    assert cleaned < noisy
    assert f"{area:.3f}" in table(page, "directions, 2")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["digits.png", "sphere.png", "wine.png"]


def test_a_failure_leaves_no_folder_behind(tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "a" / "b", settings=SMALL, progress=stop)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- kernel PCA and kernel PGA

FAR = ".* a quarter of a great circle or more"


def words(page):
    text = re.sub(r"base64,[^\"]*", "", page.read_text("utf-8"))
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


def table(page, row):
    """The cells of the row with a name, as they stand on the page."""
    text = page.read_text("utf-8")
    (cells,) = re.findall(rf'<tr><th scope="row">{row}</th>(.*?)</tr>', text)
    return re.findall(r"<td[^>]*>(.*?)</td>", cells)


def areas(X, flat, curved, kernel):
    """Neighbourhood areas of the three methods, as the page has them, computed here."""
    found = (
        neighborhood_preservation(X, flat, kernel=kernel),
        neighborhood_preservation(X, curved, kernel=kernel),
        neighborhood_preservation(X, curved, kernel=kernel, metric="geodesic"),
    )
    return [f"{neighborhood_area(quality):.3f}" for quality in found]


def test_directions_on_the_page_are_those_of_the_estimators(page):
    X = make_von_mises_fisher(60, 100, 2, SMALL.concentration, random_state=0)
    flat = KernelPCA(kernel="linear").fit(X)
    with pytest.warns(UserWarning, match=FAR):
        curved = KernelPGA(kernel="linear").fit(X)
    assert (flat.n_components_, curved.n_components_) == (3, 2)
    text = words(page)
    assert "Kernel PCA finds 3 components with a variance above zero, kernel PGA 2." in text
    for model in (flat, curved):
        assert ", ".join(f"{ratio:.1%}" for ratio in model.explained_variance_ratio_) in text
    expected = areas(X, flat.embedding_[:, :2], curved.embedding_, "linear")
    assert table(page, "directions, 2") == expected
    assert expected[2] == "1.000"
    assert f"by {float(expected[1]) - float(expected[0]):.2f}" in text
    far = np.count_nonzero(curved.mean_cosines_ <= 0)
    assert f"{far} of 60 points lie a quarter of a great circle or more" in text


@pytest.mark.parametrize("count", [2, 10])
def test_areas_of_real_data_on_the_page_are_those_of_the_estimators(page, count):
    X = load_wine_study().inputs
    flat, curved = (estimator(count).fit_transform(X) for estimator in (KernelPCA, KernelPGA))
    assert table(page, f"wine, {count}") == areas(X, flat, curved, "gaussian")


def test_both_methods_have_every_picture(page):
    names = {path.stem for path in page.parent.glob("*.png")}
    for method in ("kernel-PCA", "kernel-PGA"):
        assert {
            f"directions-embedding-{method}",
            f"directions-spectrum-{method}",
            f"digits-gaussian-{method}",
        } <= names
    assert {
        "directions-sphere",
        "directions-neighbourhoods-2",
        "digits-neighbourhoods-10",
        "wine-neighbourhoods-10",
    } <= names


def comparison(flat, curved):
    """A comparison whose areas are the given numbers: R(κ) constant."""
    others = 50
    sizes = np.arange(1, others + 1)
    curves = [sizes / others + area * (1 - sizes / others) for area in (flat, curved, curved)]
    return Comparison(None, None, {2: dict(zip(METHODS, curves, strict=True))})


@pytest.mark.parametrize(
    ("pairs", "expected", "absent"),
    [
        ([(0.5, 0.75), (0.5, 0.504)], ["Kernel PGA", "2 of 2", "0.250", "In 1 of"], "Kernel PCA"),
        ([(0.75, 0.5), (0.5, 0.25)], ["Kernel PCA", "2 of 2", "by 0.250"], "Kernel PGA"),
        ([(0.5, 0.75), (0.75, 0.5)], ["Kernel PGA", "Kernel PCA", "1 of 2"], "below"),
        ([(0.5, 0.503)], ["Kernel PGA", "by 0.003", "little"], "Kernel PCA"),
    ],
)
def test_the_verdict_says_who_wins_whoever_it_is(pairs, expected, absent):
    compared = [(f"data {i}", 2, comparison(*pair)) for i, pair in enumerate(pairs)]
    verdict = _verdict(compared)
    assert all(word in verdict for word in expected), verdict
    assert absent not in verdict


# ---------------------------------------------------------------------- in a browser


def test_browser_renders_every_section_without_complaint(browser, page):
    with opened(browser, page) as shown:
        assert tuple(shown.page.locator("h2").all_inner_texts()) == SECTIONS
        assert shown.complaints == []
        assert external(shown.requests) == []


def screenshot(browser, page, target, **options):
    image = pytest.importorskip("PIL.Image")
    with opened(browser, page, **options) as shown:
        shown.page.screenshot(path=target)
    with image.open(target) as picture:
        return picture.convert("L").copy()


@pytest.mark.parametrize("width", [1200, 500])
def test_screenshot_is_not_blank(browser, page, tmp_path, width):
    picture = screenshot(browser, page, tmp_path / "page.png", width=width)
    histogram = picture.histogram()
    assert sum(histogram[:128]) > 0.005 * picture.width * picture.height
    assert histogram[255] > 0.5 * picture.width * picture.height


def test_dark_mode_is_dark(browser, page, tmp_path):
    picture = screenshot(browser, page, tmp_path / "dark.png", color_scheme="dark")
    assert picture.getpixel((2, 2)) < 60


def test_words_where_one_kernel_always_wins():
    study = SimpleNamespace(counts=(2, 4))
    accuracy = SimpleNamespace(
        embedded={"gaussian": np.array([[0.9, 0.5]]), "linear": np.array([[0.8, 0.6]])}
    )
    words = _accuracy_words(study, accuracy)
    assert "With 2 components the Gaussian kernel wins in every fold." in words
    assert "With 4 components plain PCA wins in every fold." in words
    assert "neither" not in words


def test_words_where_no_point_is_far():
    words = _far_words(SimpleNamespace(far=0))
    assert words.startswith("All points lie less than a quarter of a great circle from the mean")


def test_words_where_the_way_back_is_exact():
    settings = SimpleNamespace(counts=(2, 4))
    worse, better = np.array([2.0, 2.0]), np.array([1.0, 1.0])
    study = SimpleNamespace(
        validation_error={"linear": worse, "gaussian": better},
        clean_error={"linear": better, "gaussian": worse},
    )
    words = _curve_words(study, settings)
    assert "PCA's way back is the exact inverse of its projection" in words
