"""Warnings point at the user's line."""

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orthodrome
from orthodrome import KernelPCA
from orthodrome.eigen import Krylov

X = np.random.default_rng(0).normal(size=(60, 3))
MODEL = KernelPCA(2, solver=Krylov(tol=1e-15, max_iter=1, block_size=2, max_basis=1))


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_the_line_is_that_of_the_user(steps, method):
    with pytest.warns(ConvergenceWarning) as caught:
        getattr(make_pipeline(*steps, MODEL) if steps else MODEL, method)(X)
    assert {warning.filename for warning in caught} == {__file__}


def test_every_warning_goes_through_the_one_helper():
    """A stack level that is counted by hand is wrong after the next change."""
    package = Path(orthodrome.__file__).parent
    direct = [
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "warn"
        and getattr(node.value, "id", "") == "warnings"
    ]
    assert direct == ["_core/warn.py"]
