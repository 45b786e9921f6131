"""The directive ``measured``: a section of benchmarks/RESULTS.md, when the page is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

#: What ends a section: the runner writes it.
_END = "<!-- end -->"


def section_of(text: str, title: str) -> str | None:
    """Return what is below a heading of the page of results, None if it is not there."""
    heading = f"\n### {title}\n"
    if heading not in text:
        return None
    return text.split(heading, 1)[1].split(_END, 1)[0].strip()


class Measured(SphinxDirective):
    """``{measured} title`` shows the section of this title, without figures.

    The content of the directive is shown instead where nothing of that title was measured: long
    benchmarks run where there is time for them.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the section, or the content."""
        results = Path(self.env.app.confdir).resolve().parent / "benchmarks/RESULTS.md"
        self.env.note_dependency(str(results))
        found = section_of(results.read_text(encoding="utf-8"), self.arguments[0])
        lines = self.content
        if found is not None:
            lines = StringList(found.splitlines(), source=str(results))
        holder = nodes.container()
        self.state.nested_parse(lines, self.content_offset, holder)
        return list(holder.children)


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("measured", Measured)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
