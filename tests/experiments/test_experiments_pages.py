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


def script_and_rows(scripts, key):
    paper, name = key.split("/")
    # rows of a past run, which are only an example here
    return getattr(scripts, name), scripts.pages.read_rows(FOLDER / paper / f"{name}.csv")


@pytest.mark.parametrize("key", SAID)
def test_pages_are_written_and_all_numbers_compared(key):
    with experiment_scripts(*key.split("/")) as scripts:
        script, rows = script_and_rows(scripts, key)
        assert script.page(rows).startswith("# ")
        if hasattr(script, "compared"):
            made = [each.published for each in script.compared(rows) if each.kind == "number"]
            entries = SAID[key].get("numbers", [])
            numbers = [entry[word] for entry in entries for word in PRINTED if word in entry]
            for number in numbers:
                assert any(math.isclose(number, each) for each in made), number


@pytest.mark.slow
@pytest.mark.parametrize("key", SAID)
def test_figures_are_drawn(key):
    pytest.importorskip("matplotlib")
    with experiment_scripts(*key.split("/")) as scripts:
        script, rows = script_and_rows(scripts, key)
        if hasattr(script, "figure"):
            assert script.figure(rows).axes
