"""The directive ``accuracy``: bounds of errors from tests/hardening, and the largest seen."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

_PRECISIONS = ("float64", "float32")


def table(rows: dict[str, Any], seen: dict[str, dict[str, float]], room: str) -> list[str]:
    """Return the lines of a table: what of, in which sense, and the bound and the error of each."""
    head = [
        "of",
        "error",
        *(f"{each}: {kind}" for each in _PRECISIONS for kind in ("bound", "seen")),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, row in rows.items():
        cells = [row["of"], row["error"]]
        for precision in _PRECISIONS:
            known = precision in row["bound"]
            cells += (
                [f"{row['bound'][precision]:g}", f"{seen[f'{room}.{name}'][precision]:g}"]
                if known
                else ["–", "–"]
            )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


class Accuracy(SphinxDirective):
    """``{accuracy} room`` shows the bounds of a room of bounds.toml beside accuracy.json."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        folder = Path(self.env.app.confdir).resolve().parent / "tests/hardening"
        bounds, record = folder / "bounds.toml", folder / "accuracy.json"
        for file in (bounds, record):
            self.env.note_dependency(str(file))
        (room,) = self.arguments
        rows = tomllib.loads(bounds.read_text(encoding="utf-8"))[room]
        lines = table(rows, json.loads(record.read_text(encoding="utf-8")), room)
        holder = nodes.container()
        content = StringList(lines, source=str(bounds))
        self.state.nested_parse(content, self.content_offset, holder)
        return list(holder.children)


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("accuracy", Accuracy)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
