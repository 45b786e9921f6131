"""One self-contained HTML page: text, figures, tables and code, without external requests.

A page is a list of sections, a section a list of blocks, and a block renders its own HTML; a new
kind of block needs an ``html`` method and, if it needs styles or scripts, a method ``assets``. All
text is escaped, so nothing from the data (a column's or a class's name) can inject markup; only
scripts that blocks declare run, by their hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .._core.files import Content, write_together
from .._core.machine import versions
from ._matplotlib import png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Assets",
    "Block",
    "Code",
    "Note",
    "Picture",
    "Row",
    "Section",
    "Table",
    "Text",
    "render_report",
    "versions",
    "write_report",
]


class Block(Protocol):
    """Anything that can stand in a section."""

    def html(self) -> str:
        """Return the block as HTML, everything in it escaped."""
        ...


@runtime_checkable
class _WithAssets(Protocol):
    def assets(self) -> Assets: ...


@dataclass(frozen=True)
class Assets:
    """What blocks of a kind need on the page, once however many there are.

    Attributes
    ----------
    styles : tuple of str
        Style sheets, after the page's own.
    scripts : tuple of str
        Scripts that run when the page has been read, in this order.
    """

    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A closing tag, or an opening one in a comment, would move the end of the element; line
        # ends of other kinds and zeros a browser reads as another text than the hash is of.
        for name, texts, forbidden in (
            ("styles", self.styles, "</style"),
            ("scripts", self.scripts, "</script|<!--.*<script|\r|\0"),
        ):
            found = [re.search(forbidden, text, re.IGNORECASE | re.DOTALL) for text in texts]
            for match in filter(None, found):
                raise ValueError(f"{name} of Assets must not contain {match.group()[:40]!r}.")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def html(self) -> str:
        """Return a paragraph."""
        return f"<p>{html.escape(self.text)}</p>"


@dataclass(frozen=True)
class Note:
    """A highlighted paragraph: a limit or a caveat."""

    text: str

    def html(self) -> str:
        """Return an aside."""
        return f'<p class="note">{html.escape(self.text)}</p>'


@dataclass(frozen=True)
class Picture:
    """A figure with a caption for all readers and a description for those who cannot see it.

    Attributes
    ----------
    name : str
        Name of its file, without ending, if it is also written next to the page.
    data : bytes
        The PNG file, or a GIF file that moves.
    alt : str
        What the figure shows, in words.
    caption : str
        The line under it.
    width : float
        Width in CSS pixels at which text in it has its natural size.
    """

    name: str
    data: bytes
    alt: str
    caption: str
    width: float

    @classmethod
    def of(cls, figure: Figure, name: str, *, alt: str, caption: str) -> Picture:
        """Draw a matplotlib figure into a picture."""
        return cls(name, png(figure), alt, caption, 96 * float(figure.get_figwidth()))

    @property
    def ending(self) -> str:
        """The ending of its file, by what it begins with."""
        return "gif" if self.data.startswith(b"GIF8") else "png"

    def html(self) -> str:
        """Return a figure with the image inside the page."""
        encoded = base64.b64encode(self.data).decode("ascii")
        return (
            f'<figure style="max-width:{self.width + 24:.0f}px">'
            f'<img src="data:image/{self.ending};base64,{encoded}" alt="{html.escape(self.alt)}">'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True)
class Row:
    """Pictures side by side, below each other where the screen is narrow."""

    pictures: Sequence[Picture]

    def html(self) -> str:
        """Return the figures in a box that wraps."""
        return f'<div class="row">{"".join(picture.html() for picture in self.pictures)}</div>'


@dataclass(frozen=True)
class Table:
    """A table; numbers are set right, floats to four digits, everything else as its ``str``."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"Table {self.caption!r} has {len(self.header)} columns and a row of "
                    f"{len(row)}: {row!r}."
                )

    def html(self) -> str:
        """Return a table that scrolls by itself where it is too wide."""
        head = "".join(
            f'<th scope="col"{_NUMBER if self._is_number(i) else ""}>'
            f"<span>{html.escape(name)}</span></th>"
            for i, name in enumerate(self.header)
        )
        body = "".join(
            "<tr>"
            + "".join(_cell(cell, i == 0, self._is_number(i)) for i, cell in enumerate(row))
            + "</tr>"
            for row in self.rows
        )
        caption = html.escape(self.caption)
        return (
            f'<div class="scroll{self._width()}" tabindex="0" role="region" '
            f'aria-label="{caption}"><table>'
            f"<caption>{caption}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _width(self) -> str:
        """Return the classes of a table that would not fit on paper as it is."""
        if len(self.header) <= _WIDE:
            return ""
        return " wide" if len(self.header) <= _VERY_WIDE else " wide very-wide"

    def _is_number(self, column: int) -> bool:
        return column > 0 and bool(self.rows) and all(_numeric(row[column]) for row in self.rows)


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str
    caption: str = ""

    def html(self) -> str:
        """Return preformatted text."""
        caption = f"<p>{html.escape(self.caption)}</p>" if self.caption else ""
        return f'{caption}<pre tabindex="0"><code>{html.escape(self.text.strip())}</code></pre>'


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)

    def pictures(self) -> list[Picture]:
        """Return all pictures of the section, in order."""
        found: list[Picture] = []
        for block in self.blocks:
            if isinstance(block, Row):
                found.extend(block.pictures)
            elif isinstance(block, Picture):
                found.append(block)
        return found


def write_report(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[Section],
    *,
    lead: str = "",
    pictures_beside: bool = False,
) -> Path:
    """Write a page atomically.

    Parameters
    ----------
    path : str or path
        The file to write; its folder is made if it is missing.
    title : str
        Title of the page.
    sections : sequence of Section
        What stands on it.
    lead : str, default=""
        The paragraph under the title.
    pictures_beside : bool, default=False
        Also write each picture as ``name.png`` (or ``.gif``) into the same folder. The page does
        not need them.

    Returns
    -------
    Path
        The file.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # A name of a file that is not UTF-8 has halves of surrogates; they become question marks.
    page = render_report(title, sections, lead=lead).encode("utf-8", errors="replace")
    files: dict[str | os.PathLike[str], Content] = {target: page}
    if pictures_beside:
        pictures = [picture for section in sections for picture in section.pictures()]
        names = [picture.name for picture in pictures]
        if len(set(names)) < len(names) or any(
            not name or Path(name).name != name for name in names
        ):
            raise ValueError(f"Pictures of a report need plain, different names; got {names}.")
        for picture in pictures:
            files[target.parent / f"{picture.name}.{picture.ending}"] = picture.data
    write_together(files)
    return target


def render_report(title: str, sections: Sequence[Section], *, lead: str = "") -> str:
    """Return the page as a string of HTML."""
    name = html.escape(title)
    numbered = list(enumerate(sections, start=1))
    contents = "".join(
        f'<li><a href="#section-{n}">{html.escape(section.title)}</a></li>'
        for n, section in numbered
    )
    body = "\n".join(
        f'<section aria-labelledby="section-{n}">\n'
        f'<h2 id="section-{n}">{html.escape(section.title)}</h2>\n'
        + "\n".join(block.html() for block in section.blocks)
        + "\n</section>"
        for n, section in numbered
    )
    opening = f'<p class="lead">{html.escape(lead)}</p>' if lead else ""
    assets = _assets(sections)
    return _PAGE.format(
        policy=_policy(assets.scripts),
        title=name,
        style="\n".join((_page_style(), *assets.styles)),
        lead=opening,
        contents=contents,
        body=body,
        scripts="".join(f"<script>{script}</script>\n" for script in assets.scripts),
    )


def _assets(sections: Sequence[Section]) -> Assets:
    """Return the styles and scripts of all blocks, each once, in the order of their first use."""
    wanted = [
        block.assets()
        for section in sections
        for block in section.blocks
        if isinstance(block, _WithAssets)
    ]
    return Assets(
        tuple(dict.fromkeys(style for assets in wanted for style in assets.styles)),
        tuple(dict.fromkeys(script for assets in wanted for script in assets.scripts)),
    )


@cache
def _page_style() -> str:
    return files(__package__).joinpath("report.css").read_text("utf-8")


def _policy(scripts: Sequence[str]) -> str:
    """Return the page's policy: no request, and no script but these."""
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    hashes = "".join(f" 'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    return _POLICY + (f"; script-src{hashes}" if scripts else "")


_NUMBER = ' class="number"'
# Columns that fit on paper with headings that lie, and in small letters with headings that stand.
_WIDE, _VERY_WIDE = 10, 30


def _numeric(value: Any) -> bool:
    """Whether a cell is a number, or a text that is one: set right, under each other."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _cell(value: Any, first: bool, number: bool) -> str:
    formatted = isinstance(value, str | int) or not _numeric(value)
    text = str(value) if formatted else f"{float(value):.4g}"
    if first:
        return f'<th scope="row">{html.escape(text)}</th>'
    return f"<td{_NUMBER if number else ''}>{html.escape(text)}</td>"


# Figures are drawn for a white background and stand on a white card in both colour schemes. The
# policy forbids every request; images and styles are inside the page, and so are scripts.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1>{lead}</header>
<nav aria-label="Contents"><ul>{contents}</ul></nav>
<main>
{body}
</main>
{scripts}</body>
</html>
"""
