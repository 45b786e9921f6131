"""The interactive scatter: its data on the page, and the page in a browser."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest

pytest.importorskip("plotly")

from browser import external, opened
from orthodrome.plots import embedding, interactive
from orthodrome.plots.interactive import Scatter
from orthodrome.plots.palette import COLORS
from orthodrome.plots.report import Section, Text, render_report, write_report

ATTACK = "</script><script>window.pwned = 1</script>"
IMAGE = '<img src=x onerror="window.pwned = 1">'
TAGS = '&lt; <b>%{x}</b> <a href="javascript:pwned=1">link</a>\n$y$ {{z}} \'\u2028é😀'
HOSTILE = (ATTACK, IMAGE, TAGS)


def corners(**options):
    """Return a scatter of five known points."""
    arguments = {
        "Z": [[0, 0, 5], [1, 1, 3], [2, 0, 1], [3, 1, 2], [4, 0, 4]],
        "caption": "Five points.",
        "labels": ["a", "b", "a", "c", "b"],
        "label_name": "kind",
        "ids": ["first", "second", "third", "fourth", "fifth"],
        "details": {
            "one": np.arange(5),
            "two": np.arange(5) / 3,
            "three": np.full(5, 0.5),
            "four": [7] * 5,
        },
    }
    return Scatter(**(arguments | options))


def hostile():
    return Scatter(
        np.eye(3)[:, [0, 1]],
        ATTACK,
        labels=list(HOSTILE),
        label_name=ATTACK,
        ids=list(HOSTILE),
        details={IMAGE: list(HOSTILE), ATTACK: [1.0] * 3, TAGS: [2.0] * 3},
        axes=[IMAGE, TAGS],
    )


def many(n_classes, n=300):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % n_classes
    names = np.array([f"a class with quite a long name, {i:03d}" for i in range(n_classes)])
    return Scatter(rng.normal(size=(n, 2)), "Many.", labels=names[labels])


def payload(scatter):
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', scatter.html(), re.S)
    return json.loads(text)


class Scripts(html.parser.HTMLParser):
    """The scripts of a page, and its policy."""

    def __init__(self, text):
        super().__init__()
        self.run, self.data, self.policy, self.tags = [], [], "", set()
        self.into = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.add(tag)
        if tag == "script":
            self.into = self.data if attributes.get("type") == "application/json" else self.run
            self.into.append("")
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_endtag(self, tag):
        self.into = None

    def handle_data(self, data):
        if self.into is not None:
            self.into[-1] += data


# ---------------------------------------------------------------------- the page as text


def test_payload_has_every_point_once_with_its_row():
    data = payload(corners())
    assert data["coordinates"] == [[0, 1, 2, 3, 4], [0, 1, 0, 1, 0], [5, 3, 1, 2, 4]]
    assert [data["groups"][code]["name"] for code in data["codes"]] == ["a", "b", "a", "c", "b"]
    assert data["ids"] == ["first", "second", "third", "fourth", "fifth"]
    assert [name for name, _ in data["details"]] == ["one", "two", "three", "four"]
    assert data["details"][1][1] == [0, 0.333333, 0.666667, 1, 1.33333]


@pytest.mark.parametrize(
    "ordered",
    [
        ["cluster 0", "cluster 2", "cluster 10"],
        ["-3", "2", "10", "1e3"],
        ["10.25", "10.5", "11"],
        ["a", "a1", "a01b", "a2", "b"],
        ["1", "9" * 5000, "x"],
        ["", "2 b", "10 a", "²"],
    ],
)
def test_classes_are_in_natural_order(ordered):
    labels = np.array(ordered)[np.random.default_rng(0).permutation(len(ordered))]
    data = payload(Scatter(np.zeros((len(labels), 2)), "c", labels=labels))
    assert [group["name"] for group in data["groups"]] == ordered
    assert [data["groups"][code]["name"] for code in data["codes"]] == labels.tolist()
    figure = embedding(np.zeros((len(labels), 2)), labels)
    drawn = [text.get_text().replace("\n", "") for text in figure.axes[0].get_legend().get_texts()]
    assert drawn == [name or "(empty)" for name in ordered]


def test_description():
    assert corners().alternative() == (
        "Scatter plot of 5 points, Component 2 over Component 1; 3 coordinates to choose from. "
        "Classes by kind: a (2), b (2), c (1)."
    )
    plain = Scatter(np.eye(2), "c", axes=["u", "v"], ratios=[0.75, 0.2])
    assert plain.alternative() == (
        "Scatter plot of 2 points, v (20.0% of the variance) over u (75.0% of the variance)."
    )
    values = Scatter(np.ones((30, 1)), "c", labels=[np.nan, *range(29)], label_name="age")
    assert values.alternative() == (
        "Scatter plot of 30 points, Component 1 over the rows. Colour is age, from 0 to 28."
    )
    assert "26 classes by class, of 11 to 12 points." in many(26).alternative()


def test_only_declared_scripts_are_on_the_page_and_in_its_policy():
    text = re.findall(r'<script type="application/json">(.*)</script>', hostile().html(), re.S)[0]
    assert not set("<>&\n\u2028\u2029") & set(text)
    assert json.loads(text)["ids"] == list(HOSTILE)
    scatters = [hostile(), corners(), corners()]
    page = Scripts(render_report(ATTACK, [Section(ATTACK, scatters)]))
    assert len(page.data) == 3
    assert page.run == list(scatters[0].assets()[1])  # plotly.js once, for three scatters
    assert not page.tags & {"img", "b"}
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in page.run]
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in hashes]
    assert rules["default-src"] == "'none'"
    assert "unsafe-eval" not in page.policy
    without = Scripts(render_report("t", [Section("s", [Text(ATTACK)])]))
    assert without.run == without.data == []
    assert "script-src" not in without.policy


def test_a_sample_of_many_rows_has_every_class_and_is_stated(monkeypatch):
    monkeypatch.setattr(interactive, "MAX_POINTS", 40)
    labels = ["common"] * 999 + ["rare"]
    made = [Scatter(np.arange(2000.0).reshape(1000, 2), "c", labels=labels) for _ in range(2)]
    data = [payload(scatter) for scatter in made]
    assert data[0] == data[1]
    assert len(data[0]["ids"]) == len(set(data[0]["ids"])) == 40
    assert sum(data[0]["codes"]) == 1
    rows = [int(name.removeprefix("row ")) for name in data[0]["ids"]]
    assert data[0]["coordinates"][0] == [2 * (row - 1) for row in rows]
    assert "40 of the 1,000 rows are shown, drawn at random" in made[0].html()
    assert "of 40 of 1,000 points" in made[0].alternative()
    assert "drawn at random" not in corners().html()
    assert len(payload(Scatter(np.zeros((1000, 2)), "c"))["ids"]) == 40  # without classes


def test_invalid_arguments_are_named():
    for options, message in (
        ({"labels": ["a"]}, r"labels of Scatter .*\(5,\).* row of Z"),
        ({"ids": ["a"]}, r"ids of Scatter .*\(5,\)"),
        ({"axes": ["a"]}, r"axes of Scatter .*\(3,\).* column of Z"),
        ({"ratios": [1.0]}, r"ratios of Scatter .*\(3,\)"),
        ({"details": {"d": [1]}}, r"details\['d'\] of Scatter .*\(5,\)"),
        ({"Z": [[np.nan, 1.0]]}, "Z contains NaN"),
        ({"Z": np.zeros((0, 2))}, "0 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            corners(**options)


# ---------------------------------------------------------------------- the page in a browser

FIGURES = {
    "hover": corners,
    "legend": corners,
    "keys": corners,
    "axes": corners,
    "ten": lambda: many(10, 20),
    "hostile": hostile,
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    sections = [Section(name, [make()]) for name, make in FIGURES.items()]
    return write_report(tmp_path_factory.mktemp("page") / "page.html", "Scatters", sections)


def ready(shown):
    count = "document.querySelectorAll('figure[data-ready]').length"
    shown.page.wait_for_function(f"{count} === {len(FIGURES)}")
    return shown


@pytest.fixture(scope="module")
def desktop(browser, file):
    with opened(browser, file) as shown:
        yield ready(shown)


@pytest.fixture
def figure(desktop):
    """Return a function that finds a figure; fail if the page complained or made requests."""
    yield lambda name: find(desktop, name)
    assert desktop.complaints == []
    assert external(desktop.requests) == []


def find(shown, name):
    return shown.page.locator("figure.scatter").nth(list(FIGURES).index(name))


def points(figure):
    return figure.locator(".points path")


def button(figure, name):
    return figure.get_by_role("button", name=name)


def point_at(figure, index):
    """Move the mouse to a point; return the text that appears."""
    point = points(figure).nth(index)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    mouse = figure.page.mouse
    mouse.move(box["x"] - 60, box["y"] - 40)
    mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    text = figure.locator(".hovertext")
    text.wait_for()
    return "\n".join(text.locator("tspan.line").all_text_contents())


def test_pointing_at_a_point_shows_its_row(figure):
    shown = figure("hover")
    assert points(shown).count() == 5
    text = point_at(shown, 1)  # by class, the second point is the third row
    lines = ["third", "kind: a", "one: 2", "two: 0.666667", "three: 0.5", "four: 7"]
    lines += ["Component 1: 2", "Component 2: 0"]
    assert text.split("\n") == lines
    assert shown.locator(".scatter-line").inner_text() == " · ".join(lines)


def test_a_click_in_the_legend_hides_a_class_and_a_key_shows_it(figure):
    shown = figure("legend")
    entry = button(shown, "b 2")
    entry.click()
    assert points(shown).count() == 3
    assert entry.get_attribute("aria-pressed") == "false"
    assert button(shown, "a 2").get_attribute("aria-pressed") == "true"
    entry.press("Enter")
    assert points(shown).count() == 5
    entry.press("Space")
    assert points(shown).count() == 3
    button(shown, "Hide all").click()
    assert points(shown).count() == 0
    button(shown, "Show all").click()
    assert points(shown).count() == 5
    assert entry.get_attribute("aria-pressed") == "true"


def test_keys_move_through_the_visible_points(figure):
    shown = figure("keys")
    plot, line = shown.locator(".scatter-plot"), shown.locator(".scatter-line")
    assert line.get_attribute("aria-live") == "polite"
    assert plot.get_attribute("tabindex") == "0"
    assert plot.get_attribute("aria-label").startswith("Scatter plot of 5 points")
    button(shown, "b 2").click()
    lines = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Home", "End"):
        plot.press(key)
        lines.append(line.inner_text().split(" · ")[0])
    assert lines == ["first", "third", "fourth", "fourth", "third", "first", "fourth"]
    # plotly waits a little between two labels
    shown.locator(".hovertext", has_text="fourth").wait_for()
    plot.press("Escape")
    assert shown.locator(".hovertext").count() == 0


def test_other_coordinates_can_be_chosen(figure):
    shown = figure("axes")
    shown.get_by_label("Vertical").select_option("Component 3")
    assert shown.locator(".ytitle").text_content() == "Component 3"
    assert "Component 3: 1" in point_at(shown, 1)
    shown.get_by_label("Horizontal").select_option("Component 3")
    shown.locator(".scatter-plot").press("Home")
    assert shown.locator(".scatter-line").inner_text().startswith("third")


def test_text_from_the_data_stays_text(figure):
    shown = figure("hostile")
    assert shown.locator("img, a:not(.modebar-btn), b, script:not([type])").count() == 0
    names = shown.locator(".scatter-legend button[aria-pressed] span").all_text_contents()
    assert sorted(names) == sorted(HOSTILE)
    for index in range(3):
        text = point_at(shown, index)
        row = shown.locator(".scatter-line").text_content()
        (name,) = [name for name in HOSTILE if row.startswith(name)]
        # plotly's labels hold sixty characters of each text, and no line break
        start = " ".join(name.split())[:50]
        assert text.split("\n")[0].startswith(start)
        assert f"{IMAGE}: {start}" in text
        assert shown.locator(".hovertext a, .hovertext [href]").count() == 0
    assert shown.locator(".xtitle").text_content() == IMAGE
    assert shown.locator(".scatter-words").text_content().count(ATTACK) >= 2
    assert shown.page.evaluate("window.pwned") is None
    button(shown, ATTACK).click()
    assert points(shown).count() == 2


# ---------------------------------------------------------------------- dark, paper, phone


def test_without_scripts_the_description_remains(browser, file):
    with opened(browser, file, java_script_enabled=False) as shown:
        figure = find(shown, "hover")
        assert "Classes by kind: a (2), b (2), c (1)." in figure.inner_text()
        assert "needs JavaScript" in figure.inner_text()


class Declared:
    def html(self):
        return '<p id="p">-</p>'

    def assets(self):
        return [], ["window.declared = 1;"]


class Smuggled:
    def html(self):
        return "<script>window.smuggled = 1</script><img src='data:,' onerror='smuggled = 1'>"


def test_only_declared_scripts_run(browser, tmp_path):
    sections = [Section("s", [Declared(), Smuggled()])]
    file = write_report(tmp_path / "page.html", "t", sections)
    with opened(browser, file) as shown:
        assert shown.page.evaluate("window.declared") == 1
        assert shown.page.evaluate("window.smuggled") is None
        blocked = [c for c in shown.complaints if "Content Security Policy" in c]
        assert len(blocked) >= 2


def contrast(first, second):
    """The ratio of WCAG 2 between two colours."""
    shares = [np.array([int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)]) for c in (first, second)]
    linear = [np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4) for s in shares]
    low, high = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
    return (high + 0.05) / (low + 0.05)


def test_every_class_has_contrast_on_a_dark_page():
    groups = payload(many(len(COLORS)))["groups"]
    assert [group["color"] for group in groups] == list(COLORS)
    assert len({group["dark"] for group in groups}) == len(COLORS)
    assert min(contrast(group["dark"], "#14181d") for group in groups) > 3


def fills(figure):
    script = "paths => paths.map(path => getComputedStyle(path).fill)"
    return points(figure).evaluate_all(script)


def color_of(locator, what):
    return locator.evaluate(f"node => getComputedStyle(node).{what}")


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 765


@pytest.mark.slow
def test_dark_follows_the_system_and_paper_is_light(browser, file):
    with opened(browser, file, color_scheme="dark") as shown:
        figure, page = find(ready(shown), "ten"), shown.page
        assert brightness(color_of(figure, "backgroundColor")) < 0.2
        title, tick = figure.locator(".xtitle"), figure.locator(".xtick text").first
        assert brightness(color_of(title, "fill")) > 0.8
        assert brightness(color_of(tick, "fill")) > 0.8
        assert "rgb(255, 255, 255)" in fills(figure)
        assert "rgb(0, 0, 0)" not in fills(figure)

        page.emulate_media(color_scheme="light")
        assert brightness(color_of(title, "fill")) < 0.3
        assert "rgb(0, 0, 0)" in fills(figure)
        swatches = figure.locator(".scatter-legend svg path").evaluate_all(
            "paths => paths.map(path => path.getAttribute('fill'))"
        )
        assert swatches == list(COLORS)

        page.emulate_media(color_scheme="dark")
        page.evaluate(
            "addEventListener('beforeprint', () => {"
            " const figure = document.querySelectorAll('figure.scatter')[4];"
            " window.printed = {"
            " width: figure.querySelector('.main-svg').clientWidth,"
            " fills: Array.from(figure.querySelectorAll('.points path'), p => p.style.fill),"
            "} })"
        )
        page.pdf()
        printed = page.evaluate("window.printed")
        assert printed["width"] == 640
        assert "rgb(0, 0, 0)" in printed["fills"]
        assert "rgb(255, 255, 255)" not in printed["fills"]
        assert "rgb(255, 255, 255)" in fills(figure)
        assert figure.locator(".main-svg").first.bounding_box()["width"] > 900
        assert shown.complaints == []


@pytest.mark.slow
def test_a_phone_shows_it_without_scrolling_sideways(browser, file):
    options = {"has_touch": True, "is_mobile": True}
    with opened(browser, file, width=400, **options) as shown:
        ready(shown)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 400
        figure = find(shown, "legend")
        entry = button(figure, "b 2")
        assert entry.bounding_box()["height"] >= 24
        entry.tap()
        assert points(figure).count() == 3
        for plot in shown.page.locator(".scatter-plot .main-svg").all():
            box = plot.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 400
        points(figure).nth(1).tap(force=True)
        figure.locator(".scatter-line", has_text="third").wait_for()
        assert shown.complaints == []
