"""The directive ``orthodrome-help``: what the installed command prints, when the page is built."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

#: No colours and no terminal's own width, so that the page is the same wherever it is built.
_ENVIRONMENT = {"COLUMNS": "88", "TERMINAL_WIDTH": "88", "NO_COLOR": "1", "TERM": "dumb"}


class OrthodromeHelp(SphinxDirective):
    """``{orthodrome-help} demo`` shows ``orthodrome demo --help``; a failure is a warning."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the command line and what it prints."""
        words = [*(self.arguments[0].split() if self.arguments else []), "--help"]
        done = subprocess.run(
            [sys.executable, "-m", "orthodrome", *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**os.environ, **_ENVIRONMENT, "PYTHONIOENCODING": "utf-8"},
            timeout=120,
            check=False,
        )
        if done.returncode:
            message = done.stderr.strip() or "nothing on stderr"
            warning = f"orthodrome {' '.join(words)} ended with {done.returncode}: {message}"
            return [self.state.document.reporter.warning(warning, line=self.lineno)]
        shown = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())
        shown = shown.replace("python -m orthodrome", "orthodrome")
        text = f"$ orthodrome {' '.join(words)}\n\n{shown}"
        block = nodes.literal_block(text, text)
        block["language"] = "text"
        return [block]


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("orthodrome-help", OrthodromeHelp)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
