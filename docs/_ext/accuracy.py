"""The directive ``accuracy``: a table of error bounds from tests/hardening/bounds.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def table(rows: dict[str, Any]) -> list[str]:
    """Return the lines of a Markdown table with one row for each bound."""
    lines = ["| of | error | float64 | float32 |", "|---|---|---|---|"]
    for row in rows.values():
        bounds = [row["bound"].get(precision) for precision in ("float64", "float32")]
        cells = ["–" if bound is None else f"{bound:g}" for bound in bounds]
        lines.append("| " + " | ".join([row["of"], row["error"], *cells]) + " |")
    return lines


class Accuracy(SphinxDirective):
    """``{accuracy} room`` shows the bounds of a room."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        file = Path(self.env.app.confdir).resolve().parent / "tests/hardening/bounds.toml"
        self.env.note_dependency(str(file))
        rows = tomllib.loads(file.read_text(encoding="utf-8"))[self.arguments[0]]
        holder = nodes.container()
        self.state.nested_parse(
            StringList(table(rows), source=str(file)), self.content_offset, holder
        )
        return list(holder.children)


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("accuracy", Accuracy)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
