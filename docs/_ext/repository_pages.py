"""Pages that live elsewhere in the repository, copied under docs/repository with what they link to.

They keep their places relative to each other, so that their links hold. Nothing is edited twice: a
page is what its file says when the documentation is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAGES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CITATION.cff",
    "benchmarks/RESULTS.md",
    "experiments/RESULTS.md",
)
_LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")


def links_of(text: str) -> list[str]:
    """Return the relative links and images of a Markdown text, without their anchors."""
    return [link for link in _LINK.findall(text) if not link.startswith("/")]


def pages_of(root: Path, patterns: Iterable[str] = PAGES) -> list[Path]:
    """Return the pages of the repository that the documentation shows."""
    return sorted({page for pattern in patterns for page in root.glob(pattern)})


def copy_pages(root: Path, docs: Path) -> None:
    """Copy the pages, and the files that they link to, to the same places under docs/repository."""
    contents: dict[Path, bytes] = {}
    for page in pages_of(root):
        if page.suffix != ".md":
            contents[page] = page.read_bytes()
            continue
        text = page.read_text(encoding="utf-8")
        for link in links_of(text):
            file = (page.parent / link).resolve()
            if file.is_relative_to(docs):  # a page of ours: from the top of the documentation
                text = text.replace(f"]({link}", f"](/{file.relative_to(docs).as_posix()}")
            elif file.is_file() and file.suffix != ".md":
                contents[file] = file.read_bytes()
        contents[page] = text.encode()
    target = docs / "repository"
    copies = {target / file.relative_to(root): content for file, content in contents.items()}
    for left in {file for file in target.rglob("*") if file.is_file()} - set(copies):
        left.unlink()
    for copy, content in copies.items():
        if not copy.exists() or copy.read_bytes() != content:  # else Sphinx would read it again
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


def setup(app: Any) -> dict[str, Any]:
    """Copy the pages before Sphinx looks for its sources."""
    docs = Path(app.confdir).resolve()
    copy_pages(docs.parent, docs)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
