"""A version without .dev is complete: fixtures, changelog, citation, no placeholders."""

import os
import re
from pathlib import Path

import orthodrome

ROOT = Path(__file__).resolve().parents[1]
#: Words that the owner replaces before the first release, and where.
PLACEHOLDERS = {
    "pyproject.toml": "OWNER",
    "CONTRIBUTING.md": "OWNER",
    "CODE_OF_CONDUCT.md": "CONTACT",
    "paper.md": "AUTHOR|AFFILIATION|DATE",
}


def missing(version: str) -> list[str]:
    """Return what the release of a version lacks."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    complete = {
        "models: run tests/persist/write_models.py": (
            ROOT / f"tests/persist/models/{version}.zip"
        ).is_file(),
        "date in CHANGELOG.md": re.search(
            rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
        ),
        "version in CITATION.cff": f"\nversion: {version}\n" in citation,
    } | {
        f"{word} in {name}": not re.search(rf"\b({word})\b", (ROOT / name).read_text("utf-8"))
        for name, word in PLACEHOLDERS.items()
    }
    return [name for name, found in complete.items() if not found]


def test_a_release_is_complete():
    tag = os.environ.get("ORTHODROME_RELEASE")  # set by release.yml
    if tag:
        assert tag.removeprefix("v") == orthodrome.__version__
    if tag or ".dev" not in orthodrome.__version__:
        assert missing(orthodrome.__version__) == []
