"""Models that were saved by earlier versions load, and answer as they did."""

import io
import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator

import laws_persist as laws
import orthodrome
from orthodrome import load
from orthodrome.persist.allowed import OBJECTS

pytest.importorskip("skops")

ARCHIVES = sorted((Path(__file__).parent / "models").glob("*.zip"))
FIXTURES = [
    pytest.param(archive, Path(member).stem, id=f"{archive.stem}-{Path(member).stem}")
    for archive in ARCHIVES
    for member in ZipFile(archive).namelist()
    if member.endswith(".orthodrome")
]


def model_bytes(archive: Path, name: str) -> bytes:
    with ZipFile(archive) as opened:
        return opened.read(f"{name}.orthodrome")


def loaded(archive: Path, name: str, folder: Path):
    path = folder / "model.orthodrome"
    path.write_bytes(model_bytes(archive, name))
    return load(path)


def stored_answers(archive: Path, name: str) -> dict:
    with ZipFile(archive) as opened:
        return dict(np.load(io.BytesIO(opened.read(f"{name}.npz"))))


def new_rows(stored: dict):
    """Take the input rows out of the answers, in the form in which the model was given them."""
    new, columns = stored.pop("new", None), stored.pop("columns", None)
    if stored.pop("csr", False):
        return scipy.sparse.csr_array(new)
    if columns is not None:
        return pytest.importorskip("pandas").DataFrame(new, columns=columns)
    return new


@pytest.mark.parametrize(("archive", "name"), FIXTURES)
def test_a_saved_model_answers_as_it_did(archive, name, tmp_path):
    model, stored = loaded(archive, name, tmp_path), stored_answers(archive, name)
    if "parameters" in stored:
        found = {key: repr(value) for key, value in model.get_params().items()}
        assert found == json.loads(str(stored["parameters"]))
        return
    new = new_rows(stored)
    answers = laws.outputs(model, new, "inverse_transform" in stored)
    single = any(value.dtype == np.float32 for value in stored.values())
    # a pre-image is where an iteration stops; other answers differ by the rounding of the BLAS
    inverse = {"inverse_transform"} & stored.keys()
    for keys, tolerance in ((stored.keys() - inverse, 1e-9), (inverse, 1e-5)):
        laws.assert_same_answers(
            {key: answers[key] for key in keys},
            {key: stored[key] for key in keys},
            1e-4 if single else tolerance,
        )
    assert answers.keys() == stored.keys()


def test_every_estimator_and_kernel_is_in_the_fixtures(tmp_path):
    """A class that is newer than the last fixtures is named here until the next release."""
    newer: set[type] = set()
    expected = {kind for kind in OBJECTS if issubclass(kind, BaseEstimator)}
    assert {getattr(orthodrome, name) for name in laws.ESTIMATORS} <= expected
    found = set()
    for param in FIXTURES:
        found |= classes(loaded(*param.values, tmp_path))
    assert expected - newer <= found


def classes(value) -> set[type]:
    """Return the classes of a model and of everything in it."""
    if isinstance(value, dict):
        return set().union(*map(classes, value.values()))
    if isinstance(value, (list, tuple)):
        return set().union(*map(classes, value))
    return {type(value)} | classes(vars(value)) if type(value) in OBJECTS else set()
