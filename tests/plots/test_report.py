"""The page: no markup from the data, no requests, and tables that fit on paper."""

import html.parser
import re
from pathlib import Path

import pytest

from browser import opened
from orthodrome import plots
from orthodrome.plots import report
from orthodrome.plots.interactive import Scatter
from orthodrome.plots.report import Code, Note, Picture, Row, Section, Table, Text

ATTACK = "</script><img src=x onerror=alert(1)>\"'&<b>"
PNG = b"\x89PNG not really"


def hostile_sections():
    picture = Picture("a", PNG, alt=ATTACK, caption=ATTACK, width=100)
    return [
        Section(
            ATTACK,
            [
                Text(ATTACK),
                Note(ATTACK),
                picture,
                Row([picture]),
                Table(ATTACK, [ATTACK, "n"], [[ATTACK, ATTACK], [ATTACK, 1.5]]),
                Code(ATTACK, ATTACK),
            ],
        ),
        Section("Second"),
    ]


class Page(html.parser.HTMLParser):
    """Tags, attributes and text of a page, and whether every tag is closed."""

    VOID = frozenset({"meta", "link", "img", "br"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def named(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def page():
    return Page(report.render_report(ATTACK, hostile_sections(), lead=ATTACK))


def test_nothing_from_the_data_becomes_a_tag(page):
    assert page.open == []
    assert page.named("script") == [{}]  # that of the copy button
    assert not page.named("b")
    assert len(page.named("img")) == 2
    assert all(set(image) == {"src", "alt"} for image in page.named("img"))
    assert all(image["alt"] == ATTACK for image in page.named("img"))
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    # the title twice, lead, contents, heading, text, note, two captions, table (4), code (2)
    assert page.text.count(ATTACK) >= 13


def test_the_page_makes_no_requests(page):
    for tag, attrs in page.tags:
        for name in ("src", "href", "srcset", "action", "data"):
            value = attrs.get(name, "#")
            assert value.startswith(("data:", "#")), (tag, value)
    text = report.render_report("t", hostile_sections())
    assert not re.search(r"https?://|url\(|@import", text)
    policy = next(m["content"] for m in page.named("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'")


# ---------------------------------------------------------------------- drawings


def two_drawings():
    """Return a section with a matplotlib figure and a scatter plot."""
    pytest.importorskip("matplotlib")
    figure = plots.curves([1, 2], {ATTACK: [1, 2]}, xlabel=ATTACK, ylabel="y")
    drawing = Picture.of(figure, "lines", alt=ATTACK, caption=ATTACK)
    points = Scatter([[0, 0], [1, 2]], "Points.", labels=["up & down", "<b>"])
    return Section("Drawings", [drawing, points])


def test_drawings_are_safe_and_follow_the_page():
    page = report.render_report("t", [two_drawings()])
    assert Page(page).open == []
    assert not Page(page).named("b")
    (drawing,) = re.findall(r'<svg class="drawing".*?</svg>', page, re.DOTALL)
    assert "var(--text)" in drawing
    assert not re.search(r"#000000|#ffffff|https?:|<style|<metadata", drawing)
    assert two_drawings().blocks[0] == two_drawings().blocks[0]  # the same bytes


def test_drawings_are_saved_in_light_colours(browser, tmp_path):
    file = report.write_report(tmp_path / "page.html", "t", [two_drawings()])
    with opened(browser, file, color_scheme="dark") as found:
        for number, words in enumerate(([], ["up &amp; down", "&lt;b&gt;", "Component 1"])):
            with found.page.expect_download() as download:
                found.page.get_by_role("button", name="Save SVG").nth(number).click()
            saved = Path(download.value.path()).read_text("utf-8")
            assert saved.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
            assert "rgb(28, 33, 39)" in saved  # dark text
            assert "var(" not in saved
            assert all(word in saved for word in words)
            glyphs = re.findall(r'<path id="DejaVu[^>]*>', saved)
            assert not any("fill" in glyph for glyph in glyphs)  # text of each colour shares them
        found.page.evaluate("window.print = () => { window.printed = true; }")
        found.page.get_by_role("button", name="Print or PDF").first.click()
        found.page.emulate_media(media="print")
        assert found.page.evaluate("printed")
        assert found.page.locator("figure:visible").count() == 1
        assert found.page.locator("h1:visible").count() == 0
        found.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert found.page.locator("figure:visible").count() == 2
        assert found.complaints == []


# ---------------------------------------------------------------------- on paper

PAPER = {"a4": 794 - 2 * 38, "letter": 816 - 2 * 38}  # CSS pixels, less margins of 10 mm


def test_no_table_is_wider_than_the_paper(browser, tmp_path):
    """Every cell lies on the sheet, and no text sticks out of its cell."""
    tables = [Table("Words", list("abcd"), [["nowrap " * 5, "x" * 90, "a", "b" * 60]])]
    for n_columns in (4, 11, 26, 60):
        header = ["class", *(f"Passiflora number {i}" for i in range(n_columns - 1))]
        rows = [[name, *range(1000, 999 + n_columns)] for name in header[1:5]]
        tables.append(Table("Confusion", header, rows))
    file = report.write_report(tmp_path / "page.html", "Wide", [Section("Tables", tables)])
    with opened(browser, file) as found:
        found.page.emulate_media(media="print")
        for width in PAPER.values():
            found.page.set_viewport_size({"width": width, "height": 1600})
            outside = found.page.evaluate(
                "() => [...document.querySelectorAll('table, th, td, th span')].filter(cell => {"
                " const box = cell.getBoundingClientRect(), width = box.width + 1;"
                " return box.left < 0 || box.right > innerWidth || cell.scrollWidth > width;"
                "}).map(cell => cell.textContent)"
            )
            assert outside == []
            assert found.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_copy_button_copies_the_code(browser, tmp_path):
    file = report.write_report(
        tmp_path / "page.html", "A page", [Section("Do it", [Code("x = 1")])]
    )
    with opened(browser, file, permissions=["clipboard-read", "clipboard-write"]) as found:
        button = found.page.get_by_role("button", name="Copy")
        button.click()
        found.page.get_by_role("button", name="Copied").wait_for()
        assert found.page.evaluate("navigator.clipboard.readText()") == "x = 1"
        assert found.complaints == []
