"""Append the sections that the scripts of benchmarks/defaults wrote to the page on the defaults."""

from pathlib import Path
from typing import Any


def append_sections(app: Any, name: str, source: list[str]) -> None:
    """Include all pages of docs/defaults at the end of guide/defaults."""
    if name == "guide/defaults":
        files = sorted((Path(app.srcdir) / "defaults").glob("*.md"))
        includes = [f"```{{include}} ../defaults/{file.name}\n```\n" for file in files]
        source[0] = "\n".join([source[0], *includes])


def setup(app: Any) -> dict[str, bool]:
    """Change the source before it is parsed."""
    app.connect("source-read", append_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
