"""The folder of real data: ORTHODROME_DATA, or ../shared/data next to the checkout."""

import os
from pathlib import Path
from typing import Any

import pytest

from orthodrome import datasets

REPOSITORY = Path(__file__).resolve().parents[1]


def real_folder() -> Path:
    named = os.environ.get("ORTHODROME_DATA")
    return Path(named) if named else REPOSITORY.parent / "shared" / "data"


def load_or_skip(name: str) -> Any:
    """Load a data set, or skip the test with a word where it is not there."""
    try:
        return datasets.load(name, data_home=real_folder(), download_if_missing=False)
    except FileNotFoundError:
        pytest.skip(f"{name} is not in {real_folder()}; set ORTHODROME_DATA")
