"""The interactive scatter: its data on the page, and the page in a browser."""

import base64
import hashlib
import html
import json
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from browser import external, opened
from drawn import contrast
from orthodrome.plots import embedding, interactive
from orthodrome.plots._classes import COLORS
from orthodrome.plots.interactive import Scatter
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
    )


def many(n_classes, n=300):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % n_classes
    names = np.array([f"a class with quite a long name, {i:03d}" for i in range(n_classes)])
    return Scatter(rng.normal(size=(n, 2)), "Many.", labels=names[labels])


def payload(scatter):
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', scatter.html(), re.S)
    return json.loads(text)


def scripts(page):
    """Return the scripts that run, and those that are data."""
    found = re.findall(r"<script( type=.application/json.)?>(.*?)</script>", page, re.S)
    return [text for kind, text in found if not kind], [text for kind, text in found if kind]


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


def test_only_declared_scripts_are_on_the_page_and_in_its_policy():
    text = re.findall(r'<script type="application/json">(.*)</script>', hostile().html(), re.S)[0]
    assert not set("<>&\n\u2028\u2029") & set(text)
    assert json.loads(text)["ids"] == list(HOSTILE)
    scatters = [hostile(), corners(), corners()]
    page = render_report(ATTACK, [Section(ATTACK, scatters)])
    run, data = scripts(page)
    assert len(data) == 3
    assert run == list(scatters[0].assets()[1])  # one script for three scatters
    assert not re.search(r"<(img|b)\b", page)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in run]
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy).split(";"))
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in hashes]
    assert rules["default-src"] == "'none'"
    assert "unsafe-eval" not in policy
    without = render_report("t", [Section("s", [Text(ATTACK)])])
    assert scripts(without) == ([], [])
    assert "script-src" not in without


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
        ({"ratios": [1.0]}, r"ratios of Scatter .*\(3,\).* column of Z"),
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
    "zoom": corners,
    "touch": corners,
    "ten": lambda: many(10, 20),
    "hostile": hostile,
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    sections = [Section(name, [make()]) for name, make in FIGURES.items()]
    return write_report(tmp_path_factory.mktemp("page") / "page.html", "Scatters", sections)


@pytest.fixture(scope="module")
def desktop(browser, file):
    with opened(browser, file) as shown:
        yield shown


@pytest.fixture
def figure(desktop):
    """Return a function that finds a figure; fail if the page complained or made requests."""
    yield lambda name: find(desktop, name)
    assert desktop.complaints == []
    assert external(desktop.requests) == []


def find(shown, name):
    return shown.page.locator("figure.scatter").nth(list(FIGURES).index(name))


def visible(figure):
    """Return the rows of the visible points."""
    return figure.evaluate("figure => figure.scatter.visible().map(([row]) => row)")


def button(figure, name):
    return figure.get_by_role("button", name=name)


def place(figure, row):
    """Scroll to the plot; return the place of a point on the screen."""
    plot = figure.locator(".scatter-plot")
    plot.scroll_into_view_if_needed()
    x, y = figure.evaluate("(figure, row) => figure.scatter.place(row)", row)
    box = plot.bounding_box()
    return box["x"] + x, box["y"] + y


def point_at(figure, row):
    """Move the mouse to a point; return the text that appears."""
    figure.page.mouse.move(*place(figure, row))
    return figure.locator(".scatter-tip > *").all_text_contents()


def test_pointing_at_a_point_shows_its_row(figure):
    shown = figure("hover")
    lines = ["third", "kind: a", "one: 2", "two: 0.666667", "three: 0.5", "four: 7"]
    lines += ["Component 1: 2", "Component 2: 0"]
    assert point_at(shown, 2) == lines
    assert shown.locator(".scatter-line").inner_text() == " · ".join(lines)
    x, y = place(shown, 2)
    shown.page.mouse.move(x, y - 50)
    assert not shown.locator(".scatter-tip").is_visible()


def test_a_click_in_the_legend_hides_a_class_and_a_key_shows_it(figure):
    shown = figure("legend")
    entry = button(shown, "b 2")
    entry.click()
    assert visible(shown) == [0, 2, 3]
    assert shown.locator(".scatter-plot .scatter-mark:visible").count() == 2
    assert point_at(shown, 1) == []
    assert entry.get_attribute("aria-pressed") == "false"
    assert button(shown, "a 2").get_attribute("aria-pressed") == "true"
    entry.press("Enter")
    assert len(visible(shown)) == 5
    entry.press("Space")
    assert len(visible(shown)) == 3
    button(shown, "Hide all").click()
    assert visible(shown) == []
    button(shown, "Show all").click()
    assert len(visible(shown)) == 5
    assert shown.locator(".scatter-plot .scatter-mark:visible").count() == 3
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
    assert shown.locator(".scatter-tip", has_text="fourth").is_visible()
    plot.press("Escape")
    assert not shown.locator(".scatter-tip").is_visible()


def test_other_coordinates_can_be_chosen(figure):
    shown = figure("axes")
    shown.get_by_label("Vertical").select_option("Component 3")
    assert shown.locator(".ytitle").text_content() == "Component 3"
    assert "Component 3: 1" in point_at(shown, 2)
    shown.get_by_label("Horizontal").select_option("Component 3")
    shown.locator(".scatter-plot").press("Home")
    assert shown.locator(".scatter-line").inner_text().startswith("third")


def changed(page, read, before):
    """Wait until a number changes, and return it. The policy forbids to wait inside the page."""
    for _ in range(200):
        page.wait_for_timeout(25)
        if abs(read() - before) > 1:
            return read()
    raise AssertionError(f"{before} did not change")


def test_wheel_and_drag_zoom_and_move_and_a_button_resets(figure):
    shown = figure("zoom")
    mouse, start = shown.page.mouse, place(shown, 2)
    view = "figure => figure.scatter.view"
    whole = shown.evaluate(view)

    def across(row):
        return shown.evaluate("(figure, row) => figure.scatter.place(row)[0]", row)

    def scrolled():
        return shown.page.evaluate("scrollY")

    before = scrolled()
    mouse.move(*start)
    mouse.wheel(0, 30)  # scrolls the page until the plot is clicked
    changed(shown.page, scrolled, before)
    shown.page.wait_for_timeout(200)  # for the end of a smooth scroll
    assert shown.evaluate(view) == whole
    start = place(shown, 2)
    mouse.click(*start)
    before = across(0)
    mouse.wheel(0, -400)
    changed(shown.page, lambda: across(0), before)
    assert place(shown, 2) == pytest.approx(start, abs=3)  # the point below the pointer stays
    assert len(visible(shown)) < 5
    before = across(2)
    mouse.down()
    mouse.move(start[0] + 40, start[1], steps=2)
    mouse.up()
    assert changed(shown.page, lambda: across(2), before) == pytest.approx(before + 40, abs=2)
    button(shown, "Reset view").click()
    assert shown.evaluate(view) == whole
    shown.locator(".scatter-plot").press("+")
    assert shown.evaluate(view) != whole
    shown.locator(".scatter-plot").press("0")
    button(shown, "Zoom out").click()
    assert shown.evaluate(view)[0][1] > whole[0][1]


def test_text_from_the_data_stays_text(figure):
    shown = figure("hostile")
    assert shown.locator("img, a, .scatter-plot b b, script:not([type])").count() == 0
    names = shown.locator(".scatter-legend button[aria-pressed] span").all_text_contents()
    assert sorted(names) == sorted(HOSTILE)
    for row, name in enumerate(HOSTILE):
        text = point_at(shown, row)
        assert text[0] == name
        assert f"{IMAGE}: {name}" in text
    assert shown.locator(".scatter-words").text_content().count(ATTACK) >= 2
    assert shown.page.evaluate("window.pwned") is None
    button(shown, ATTACK).click()
    assert len(visible(shown)) == 2


# ---------------------------------------------------------------------- dark, paper, phone


def test_a_phone_shows_it_without_scrolling_sideways(browser, file):
    with opened(browser, file, width=390, has_touch=True, is_mobile=True) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390
        figure = find(shown, "touch")
        shown.page.touchscreen.tap(*place(figure, 2))
        assert figure.locator(".scatter-line").inner_text().startswith("third")
        assert figure.locator(".scatter-tip", has_text="third").is_visible()
        entry = button(figure, "b 2")
        assert entry.bounding_box()["height"] >= 24
        entry.tap()
        assert len(visible(figure)) == 3
        box = figure.locator(".scatter-plot > svg").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert shown.complaints == []


def test_every_class_has_contrast_on_a_dark_page():
    groups = payload(many(len(COLORS)))["groups"]
    assert [group["color"] for group in groups] == list(COLORS)
    assert len({group["dark"] for group in groups}) == len(COLORS)
    page = to_rgb("#14181d")
    assert min(contrast(to_rgb(group["dark"]), page) for group in groups) > 3


def test_dark_follows_the_system_and_paper_is_light(browser, file):
    def fills(selector):  # in one step, because the figure may be redrawn between two
        script = """(figure, selector) =>
            [...figure.querySelectorAll(selector)].map(node => getComputedStyle(node).fill)"""
        return figure.evaluate(script, selector)

    light = [f"rgb{tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))}" for color in COLORS]
    with opened(browser, file, color_scheme="dark") as shown:
        figure = find(shown, "ten")
        dark = fills(".scatter-plot .scatter-mark")
        assert "rgb(255, 255, 255)" in dark
        assert "rgb(0, 0, 0)" not in dark
        assert fills(".scatter-legend .scatter-mark") == dark
        assert set(fills("text")) == {"rgb(228, 232, 236)"}
        for media in ({"color_scheme": "light"}, {"color_scheme": "dark", "media": "print"}):
            shown.page.emulate_media(**media)
            assert fills(".scatter-plot .scatter-mark") == light
            assert fills(".scatter-legend .scatter-mark") == light
        assert set(fills("text")) == {"rgb(0, 0, 0)"}
        assert not figure.locator(".scatter-line").is_visible()
        assert shown.complaints == []


def test_a_page_of_many_rows_is_small(tmp_path):
    rng = np.random.default_rng(0)
    Z, details = rng.normal(size=(20_000, 10)), {name: rng.normal(size=20_000) for name in "abcd"}
    sections = [Section("s", [Scatter(Z, "c", labels=Z[:, 0] > 0, details=details)])]
    assert write_report(tmp_path / "page.html", "t", sections).stat().st_size < 1.3e6


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
