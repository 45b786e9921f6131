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


@pytest.mark.parametrize("key", SAID)
def test_page_figure_and_comparisons_are_made(key):
    """Of the rows of a past run, which are only an example here."""
    paper, name = key.split("/")
    with experiment_scripts(paper, name) as scripts:
        script = getattr(scripts, name)
        rows = scripts.pages.read_rows(FOLDER / paper / f"{name}.csv")
        assert script.page(rows).startswith("# ")
        if hasattr(script, "figure"):
            pytest.importorskip("matplotlib")
            assert script.figure(rows).axes
        if hasattr(script, "compared"):
            made = [each.published for each in script.compared(rows) if each.kind == "number"]
            entries = SAID[key].get("numbers", [])
            numbers = [entry[word] for entry in entries for word in PRINTED if word in entry]
            for number in numbers:
                assert any(math.isclose(number, each) for each in made), number
