"""Models saved by earlier versions load, and give the same results."""

import functools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import laws_persist as laws
import orthodrome
from orthodrome import KernelRidgeRegressionClassifier
from orthodrome.kernels import NeighborGraph, RiemannianShape
from orthodrome.persist.allowed import OBJECTS
from orthodrome.persist.archive import pack, unpack
from orthodrome.preprocessing import TableCleaner


@pytest.mark.parametrize(("archive", "name"), laws.FIXTURES)
def test_a_saved_model_answers_as_it_did(archive, name, tmp_path):
    model, stored = laws.loaded(archive, name, tmp_path), laws.stored_answers(archive, name)
    if "parameters" in stored:
        for key, value in json.loads(str(stored["parameters"])).items():
            found = repr(functools.reduce(getattr, renamed(key).split("__"), model))
            assert found == renamed(value)
        return
    new = laws.new_rows(stored)
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


@pytest.mark.parametrize(
    ("kernel", "sigmas"), [("veronese_whitney", [0.3, 0.6]), (RiemannianShape(sigma=0.7), None)]
)
@pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")
def test_scales_of_format_1_0_are_converted(kernel, sigmas):
    """Kernels of shapes were exp(-ρ²/σ²) there, and are exp(-ρ²/2σ²) now."""
    X, _, labels = laws.data_for("complex_gaussian")
    model = KernelRidgeRegressionClassifier(kernel, sigmas=sigmas).fit(X, labels)
    old, _ = unpack(laws.forged(laws.members_of(pack(model)), format=[1, 0]))
    given = ("", "sigmas") if sigmas else ("kernel", "sigma")
    for owner, name in (given, ("", "sigmas_"), ("kernel_", "sigma_")):
        found, value = (getattr(getattr(m, owner, m), name) for m in (old, model))
        np.testing.assert_allclose(found, np.sqrt(0.5) * np.asarray(value), rtol=1e-15)


def test_every_estimator_and_kernel_is_in_the_fixtures(tmp_path):
    """A class that is newer than the last fixtures is named here until the next release."""
    newer: set[type] = {TableCleaner, NeighborGraph, orthodrome.KernelMRCD}
    expected = {kind for kind in OBJECTS.values() if issubclass(kind, BaseEstimator)}
    assert {getattr(orthodrome, name) for name in laws.ESTIMATORS} <= expected
    found: set[type] = set()
    kinds = ("unfitted-", "kernel-", "pipeline-", "nested-")
    for param in laws.FIXTURES:
        if not param.values[1].startswith(kinds):
            continue
        found |= {type(owner) for owner in objects_of(laws.loaded(*param.values, tmp_path))}
    assert expected - newer <= found


def renamed(text: str) -> str:
    """Return the name of a parameter, or how a solver is shown, as it is today."""
    text = text.replace("landmarks", "anchors").replace("checkpoint_seconds=9.0, ", "")
    return text.replace("n_passes=", "rho0='auto', eigenvalue_updates='auto', n_passes=")


def objects_of(value: Any) -> Iterator[Any]:
    """Yield all objects that a model consists of."""
    if type(value) in OBJECTS.values():
        yield value
        value = vars(value)
    if isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from objects_of(item)
