"""Formulas as MathML, written into the pages: no script and no request to another host.

What cannot be converted is an error, not a backslash on the page.
"""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from typing import Any

#: What latex2mathml does not know, in terms that it does.
_REWRITTEN = {
    r"\\arg(?![a-zA-Z])": r"\\operatorname{arg}",
    r"\\tr(?![a-zA-Z])": r"\\operatorname{tr}",
    r"\\(begin|end)\{aligned\}": r"\\\1{split}",
}

# Browsers leave out mathvariant but for "normal"; the letters exist in Unicode.
_ALPHABETS = {"script": "SCRIPT", "bold": "BOLD", "double-struck": "DOUBLE-STRUCK"}

# How many parts a MathML element has; latex2mathml makes one of \\frac{1} all the same.
_PARTS = {
    "mfrac": 2,
    "mroot": 2,
    "msub": 2,
    "msup": 2,
    "mover": 2,
    "munder": 2,
    "msubsup": 3,
    "munderover": 3,
}
_SCRIPTED = ("msub", "msup", "msubsup", "munder", "mover", "munderover")
_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_THIN = "0.167em"


def to_mathml(latex: str, *, block: bool = False) -> str:
    """Convert a formula; a ValueError names what cannot be converted."""
    from latex2mathml.converter import convert

    source = latex.strip()
    for pattern, replacement in _REWRITTEN.items():
        source = re.sub(pattern, replacement, source)
    if block and r"\\" in source and r"\begin" not in source:
        source = rf"\begin{{split}}{source}\end{{split}}"
    try:
        found = convert(source, display="block" if block else "inline")
        # what is not XML, such as a stray ampersand, is an error too
        root = ElementTree.fromstring(found.replace(f' xmlns="{_NAMESPACE}"', ""))
    except Exception as error:  # its parser raises many kinds, some of them bare
        raise ValueError(f"cannot convert the formula {latex!r}: {error!r}") from error
    if unknown := re.findall(r"\\[a-zA-Z]*", found):
        raise ValueError(f"cannot convert {', '.join(unknown)} in the formula {latex!r}")
    for element in root.iter():
        if len(element) != _PARTS.get(element.tag, len(element)):
            raise ValueError(f"cannot convert {latex!r}: a part of {element.tag} is missing")
    _set_letters(root)
    _set_functions(root)
    if block:
        _set_large(root)
    root.set("xmlns", _NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


def _set_letters(root: ElementTree.Element) -> None:
    """Write script, bold and double-struck letters as the letters that they are."""
    for element in root.iter("mi"):
        alphabet = _ALPHABETS.get(element.get("mathvariant", ""))
        if alphabet and element.text:
            element.text = "".join(_letter(letter, alphabet) for letter in element.text)
            del element.attrib["mathvariant"]


def _letter(letter: str, alphabet: str) -> str:
    case = "CAPITAL" if letter.isupper() else "SMALL"
    # some letters were in Unicode before the alphabets were: SCRIPT CAPITAL E is not with the rest
    for name in (
        f"MATHEMATICAL {alphabet} {case} {letter.upper()}",
        f"{alphabet} {case} {letter.upper()}",
    ):
        try:
            return unicodedata.lookup(name)
        except KeyError:
            continue
    return letter


def _set_functions(root: ElementTree.Element) -> None:
    """Set sin, Log and the like as names, with a thin space between them and what they are of."""
    for parent in list(root.iter()):
        if parent.tag in _SCRIPTED:
            continue  # a place there is a part, and a space would be one too many
        children = list(parent)
        for child in children:
            if not _is_function(child):
                continue
            _base(child).tag = "mi"
            at = list(parent).index(child)
            after = parent[at + 1] if at + 1 < len(parent) else None
            if after is not None and after.tag not in ("mo", "mspace"):
                parent.insert(at + 1, ElementTree.Element("mspace", width=_THIN))
            if at and parent[at - 1].tag not in ("mo", "mspace"):
                parent.insert(at, ElementTree.Element("mspace", width=_THIN))


def _base(element: ElementTree.Element) -> ElementTree.Element:
    return _base(element[0]) if element.tag in _SCRIPTED else element


def _is_function(element: ElementTree.Element) -> bool:
    base = _base(element)
    name = (base.text or "").strip()
    return base.tag in ("mi", "mo") and len(name) > 1 and name.isascii() and name.isalpha()


def _set_large(root: ElementTree.Element) -> None:
    """Make sums large and put limits below, with and without a font for mathematics."""
    for element in root.iter():
        base = _base(element)
        if base.tag == "mo" and base.text in ("\N{N-ARY SUMMATION}", "\N{N-ARY PRODUCT}"):
            base.set("largeop", "false")
            base.set("style", "font-size: 1.5em")
        if element.tag == "msub" and base.text in ("min", "max"):
            element.tag = "munder"


def _visit(self: Any, node: Any, *, block: bool) -> None:
    from docutils import nodes
    from sphinx.util import logging

    try:
        found = to_mathml(node.astext(), block=block)
    except ValueError as error:
        logging.getLogger(__name__).warning("%s", error, location=node, type="math")
        found = f"<code>{self.encode(node.astext())}</code>"
    if block:
        self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
        self.body.append(f"{found}</div>\n")
    else:
        self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
        self.body.append(f"{found}</span>")
    raise nodes.SkipNode


def _visit_inline(self: Any, node: Any) -> None:
    _visit(self, node, block=False)


def _visit_block(self: Any, node: Any) -> None:
    _visit(self, node, block=True)


def setup(app: Any) -> dict[str, Any]:
    """Make it the renderer `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
