"""Self-contained HTML pages of text, figures, tables and code, without external requests.

A page is a list of sections. A section is a list of blocks. A block has a method ``html``. A block
that needs styles or scripts also has a method ``assets``. All text is escaped, so that data, such
as the name of a column or class, cannot inject markup. Browsers run only the scripts that blocks
declare: the page lists the hashes of these scripts.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from .._core.files import write_atomically
from .._core.machine import versions as versions
from ._matplotlib import Figure, svg

_NUMBER = ' class="number"'
# When printed, tables with more columns than `_WIDE` get small vertical headings, and those with
# more than `_VERY_WIDE` even smaller text.
_WIDE, _VERY_WIDE = 10, 30

# Colours of figures that follow the style of the page; see report.css.
_INKS = {
    "#000000": "var(--text)",
    "#111111": "var(--text)",
    "#222222": "var(--text)",
    "#333333": "var(--edge)",
    "#ffffff": "var(--back)",
    "#eaf0f6": "var(--panel)",
    "#661100": "var(--brown)",
}
# Parts of matplotlib's files that are not for inline SVG: headers, a style for all elements, and
# ids that occur in every figure.
_NOT_INLINE = re.compile(
    r'<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style.*?</style>| xmlns(:xlink)?="[^"]*"'
    r'| id="[A-Za-z0-9]+_\d+"',
    re.DOTALL,
)

#: Style sheets and scripts of a block. Each is included once per page. Scripts run in list order.
Assets = tuple[list[str], list[str]]

# The policy forbids all requests; images, styles and scripts are inside the page.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


class Block(Protocol):
    """Part of a section."""

    def html(self) -> str:
        """Return the block as HTML, with all text escaped."""
        ...


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def html(self) -> str:
        """Return a paragraph."""
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Note:
    """A highlighted paragraph, such as a caveat."""

    text: str

    def html(self) -> str:
        """Return a paragraph with the class ``note``."""
        return f'<p class="note">{escape(self.text)}</p>'


@dataclass(frozen=True)
class Picture:
    """A figure with a caption and a text alternative.

    Attributes
    ----------
    name : str
        Short name of the picture.
    data : bytes
        Content of an SVG file by matplotlib, or of a PNG or GIF file.
    alt : str
        Description of the figure for readers who cannot see it.
    caption : str
        Caption below the figure.
    width : float
        Width in CSS pixels at which the text of the figure has its normal size.
    """

    name: str
    data: bytes
    alt: str
    caption: str
    width: float

    @classmethod
    def of(cls, figure: Figure, name: str, *, alt: str, caption: str) -> Picture:
        """Return a matplotlib figure as a picture."""
        return cls(name, svg(figure), alt, caption, 96 * float(figure.get_figwidth()))

    @property
    def ending(self) -> str:
        """The suffix of the file, from the first bytes of the data."""
        endings = {b"GIF8": "gif", b"<?xm": "svg"}
        return endings.get(self.data[:4], "png")

    def html(self) -> str:
        """Return a figure element with the image inside; SVG follows the style of the page."""
        alt, caption = escape(self.alt), escape(self.caption)
        if self.ending == "svg":
            drawing = _NOT_INLINE.sub("", self.data.decode("utf-8")).strip()
            for color, ink in _INKS.items():
                drawing = drawing.replace(color, ink)
            image = drawing.replace(
                "<svg", f'<svg class="drawing" role="img" aria-label="{alt}"', 1
            )
        else:
            encoded = base64.b64encode(self.data).decode("ascii")
            image = f'<img src="data:image/{self.ending};base64,{encoded}" alt="{alt}">'
        return (
            f'<figure style="max-width:{self.width + 24:.0f}px">{image}'
            f"<figcaption>{caption}</figcaption></figure>"
        )

    def assets(self) -> Assets:
        """Return no styles, and the script that saves SVG."""
        return [], [resource("figures.js")] if self.ending == "svg" else []


@dataclass(frozen=True)
class Row:
    """Pictures side by side, or below each other on a narrow screen."""

    pictures: Sequence[Picture]

    def html(self) -> str:
        """Return the figures in a wrapping box."""
        return f'<div class="row">{"".join(picture.html() for picture in self.pictures)}</div>'

    def assets(self) -> Assets:
        """Return the scripts of the pictures."""
        return [], [script for picture in self.pictures for script in picture.assets()[1]]


@dataclass(frozen=True)
class Table:
    """A table. Numbers are aligned to the right, and floats are rounded to four digits."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def html(self) -> str:
        """Return a table that scrolls if it is too wide."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.header)
        numbers = [bool(column) and all(map(_numeric, column)) for column in columns]
        classes = ["", *(_NUMBER if number else "" for number in numbers[1:])]
        head = "".join(
            f'<th scope="col"{kind}><span>{escape(name)}</span></th>'
            for name, kind in zip(self.header, classes, strict=True)
        )
        body = ""
        for row in self.rows:
            first, *others = (escape(_text(value)) for value in row)
            pairs = zip(others, classes[1:], strict=True)
            cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in pairs)
            body += f'<tr><th scope="row">{first}</th>{cells}</tr>'
        caption = escape(self.caption)
        # CSS classes that shrink wide tables on paper
        wide = " wide" * (len(self.header) > _WIDE) + " very-wide" * (len(self.header) > _VERY_WIDE)
        return (
            f'<div class="scroll{wide}" tabindex="0" role="region" aria-label="{caption}"><table>'
            f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            "</table></div>"
        )


def _text(value: Any) -> str:
    as_is = isinstance(value, str | int) or not _numeric(value)
    return str(value) if as_is else f"{float(value):.4g}"


def _numeric(value: Any) -> bool:
    """Return whether a cell is a number, or text that represents one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


@dataclass(frozen=True)
class Code:
    """Code with a copy button and an optional caption."""

    text: str
    caption: str = ""

    def html(self) -> str:
        """Return preformatted text."""
        caption = f"<p>{escape(self.caption)}</p>" if self.caption else ""
        code = escape(self.text.strip())
        return f'{caption}<div class="code"><pre tabindex="0"><code>{code}</code></pre></div>'

    def assets(self) -> Assets:
        """Return no styles, and the script of the copy button."""
        return [], [resource("copy.js")]


@dataclass(frozen=True)
class Section:
    """A heading and its blocks."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)

    def pictures(self) -> list[Picture]:
        """Return all pictures of the section, in order."""
        groups = [block.pictures if isinstance(block, Row) else [block] for block in self.blocks]
        return [block for group in groups for block in group if isinstance(block, Picture)]


def write_report(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[Section],
    *,
    lead: str = "",
) -> Path:
    """Write a page atomically.

    Parameters
    ----------
    path : str or path
        File to write; its folder is created if needed.
    title : str
        Title of the page.
    sections : sequence of Section
        The sections of the page.
    lead : str, default=""
        Paragraph below the title, such as the main result.

    Returns
    -------
    Path
        The path of the file.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A file name that is not UTF-8 contains lone surrogates; write them as question marks.
    page = render_report(title, sections, lead=lead).encode("utf-8", errors="replace")
    write_atomically(target, page)
    return target


def render_report(title: str, sections: Sequence[Section], *, lead: str = "") -> str:
    """Return the page as a string of HTML."""
    contents, body = "", ""
    for n, section in enumerate(sections, start=1):
        title_text, blocks_html = escape(section.title), "\n".join(b.html() for b in section.blocks)
        contents += f'<li><a href="#section-{n}">{title_text}</a></li>'
        body += (
            f'<section aria-labelledby="section-{n}">\n<h2 id="section-{n}">{title_text}</h2>\n'
            f"{blocks_html}\n</section>\n"
        )
    blocks: list[Any] = [block for section in sections for block in section.blocks]
    assets = [block.assets() for block in blocks if hasattr(block, "assets")]
    # without duplicates, in the order of first use
    styles = dict.fromkeys(style for given, _ in assets for style in given)
    scripts = dict.fromkeys(script for _, given in assets for script in given)
    return resource("report.html").format(
        policy=_policy(list(scripts)),
        title=escape(title),
        style="\n".join((resource("report.css"), *styles)),
        lead=f'<p class="lead">{escape(lead)}</p>' if lead else "",
        contents=contents,
        body=body,
        scripts="".join(f"<script>{script}</script>\n" for script in scripts),
    )


@cache
def resource(name: str) -> str:
    """Return the text of a file in the folder of this module."""
    return files(__package__).joinpath(name).read_text("utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy that allows no requests and only these scripts."""
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    hashes = "".join(f" 'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    return _POLICY + (f"; script-src{hashes}" if scripts else "")
