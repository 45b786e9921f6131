"""Every experiment writes its page and figure, and compares all published numbers."""

import math
import tomllib

import pytest

from experiment_scripts import experiment_scripts
from real_data import REPOSITORY

FOLDER = REPOSITORY / "experiments"
SAID = {
    f"{file.parent.name}/{name}": said
    for file in sorted(FOLDER.glob("*/published.toml"))
    for name, said in tomllib.loads(file.read_text(encoding="utf-8")).items()
}
PRINTED = ("value", "precision", "recall", "f1", "accuracy")  # keys of published numbers
SHIFT = 1000.0


def script_and_rows(scripts, key):
    paper, name = key.split("/")
    # rows of a past run serve as an example
    return getattr(scripts, name), scripts.pages.read_rows(FOLDER / paper / f"{name}.csv")


def shifted(said):
    """What a paper says, with all its numbers increased by SHIFT."""
    numbers = [
        {key: value + SHIFT if key in PRINTED else value for key, value in entry.items()}
        for entry in said.get("numbers", [])
    ]
    return said | {"numbers": numbers}


def compared_numbers(key):
    """The published numbers that a script compares, with their findings."""
    with experiment_scripts(*key.split("/")) as scripts:
        script, rows = script_and_rows(scripts, key)
        compared = script.compared(rows) if hasattr(script, "compared") else []
        return {each.published: each.finding for each in compared if each.kind == "number"}


@pytest.mark.parametrize("key", SAID)
def test_all_published_numbers_decide_and_the_page_is_written(key, monkeypatch):
    with experiment_scripts(*key.split("/")) as scripts:
        script, rows = script_and_rows(scripts, key)
        assert script.page(rows).startswith("# ")
        pages = scripts.pages
    entries = SAID[key].get("numbers", [])
    numbers = [entry[word] for entry in entries for word in PRINTED if word in entry]
    found = compared_numbers(key)
    assert all(any(math.isclose(number, each) for each in found) for number in numbers)
    monkeypatch.setattr(pages, "published", lambda home, name: shifted(SAID[key]))
    found = compared_numbers(key)
    for number in numbers:
        (finding,) = {each for value, each in found.items() if math.isclose(number + SHIFT, value)}
        assert finding == "differs"


@pytest.mark.slow
@pytest.mark.parametrize("key", SAID)
def test_figures_are_drawn(key):
    pytest.importorskip("matplotlib")
    with experiment_scripts(*key.split("/")) as scripts:
        script, rows = script_and_rows(scripts, key)
        if hasattr(script, "figure"):
            assert script.figure(rows).axes
