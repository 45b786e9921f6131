"""Pages in the browser of this machine; tests that need one skip, with a word, where there is none.

Playwright drives Debian's chromium (or google-chrome), which it does not bring along.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--disable-gpu", "--disable-quic", "--disable-background-networking"]


@dataclass
class Opened:
    """A page that has been opened, what it complained of, and what it asked the network for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless browser, for the tests of one module."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("no chromium or google-chrome on this machine")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=program, args=OPTIONS, chromium_sandbox=False
        )
        yield running
        running.close()


@contextmanager
def opened(browser: Any, file: Path, width: int = 1200, **options: Any) -> Iterator[Opened]:
    """Open a file in a window of this width; `options` such as ``color_scheme="dark"``."""
    context = browser.new_context(viewport={"width": width, "height": 1600}, **options)
    found = Opened(context.new_page())
    found.page.on(
        "console",
        lambda message: (
            found.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("request", lambda request: found.requests.append(request.url))
    try:
        found.page.goto(file.as_uri(), wait_until="load")
        yield found
    finally:
        context.close()


def external(requests: list[str]) -> list[str]:
    """Those requests that leave the file."""
    return [url for url in requests if not url.startswith(("file:", "data:", "blob:", "about:"))]
