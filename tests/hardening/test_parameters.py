"""Absurd parameters: they are used or refused with a clear error, without a hang."""

import copy
import dataclasses
import inspect
import sys

import numpy as np
import pytest
from sklearn.base import clone

import laws_product as product
from absurd import assert_no_complaints, complaints_of, quiet
from optional import needs
from orthodrome import KernelPCA, app
from orthodrome.denoising import PatchDenoiser, SequenceDenoiser
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Gaussian

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


IMAGE = np.random.default_rng(0).normal(size=(12, 9))
FRAMES = np.random.default_rng(0).normal(size=(20, 3, 2)).cumsum(axis=0)
KNOWN = {"kernel": Gaussian(2.0), "n_components": 2, "noise": 0.3, "random_state": 0}
DENOISERS = {
    "PatchDenoiser": (PatchDenoiser(4, **KNOWN), IMAGE),
    "SequenceDenoiser": (SequenceDenoiser(**KNOWN), FRAMES),
}
#: One configuration of each class; the others are slow.
QUICK = {*product.FIRST.values(), *DENOISERS}
CHEAP = {"n_init": 1, "sphere": "great"}
ESTIMATORS = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in (*product.CONFIGURATIONS, *DENOISERS)
]


def model_and_use(name):
    """Return a valid estimator or denoiser, and a function that uses one."""
    if name in DENOISERS:
        model, noisy = DENOISERS[name]
        return model, lambda changed: [changed.denoise(noisy)]
    configuration = product.CONFIGURATIONS[name]
    cheap = {part: CHEAP[part] for part in CHEAP.keys() & configuration.takes if name in QUICK}
    data = product.sample("Gaussian", n=12 if name in QUICK else configuration.n)

    def use(changed):
        changed.fit(data.X, data.y)
        methods = [name for name in ("transform", "predict") if hasattr(changed, name)]
        return [getattr(changed, method)(data.new) for method in methods]

    return configuration("gaussian", **cheap), use


@pytest.mark.parametrize("name", ESTIMATORS)
def test_absurd_values_of_estimators(name):
    """In a child with limited time and memory."""
    model, use = model_and_use(name)
    with quiet():
        use(copy.deepcopy(model))  # valid, and compiles loops

    def use_with(parameter, value):
        changed = copy.deepcopy(model)
        setattr(changed, parameter, value)
        return use(changed)

    assert_no_complaints(
        lambda: complaints_of(
            inspect.signature(type(model)).parameters, use_with, type(model).__name__
        )
    )


@pytest.mark.parametrize("name", product.KERNELS)
def test_absurd_values_of_kernels(name):
    kernel, data = product.KERNELS[name], product.sample(name, n=12)

    def use(parameter, value):
        changed = clone(kernel)
        setattr(changed, parameter, value)
        return [KernelPCA(2, kernel=changed).fit(data.X).embedding_]

    assert_no_complaints(
        lambda: complaints_of(kernel.get_params(deep=False), use, type(kernel).__name__)
    )


SOLVERS = {
    "Krylov": product.KRYLOV,
    "Hebbian": dataclasses.replace(product.HEBBIAN, n_passes=30),
    "Nystroem": Nystroem(12),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_absurd_values_of_solvers(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a string is the name of a checkpoint
    solver, X = SOLVERS[name], product.sample("Gaussian", n=60).X
    names = [field.name for field in dataclasses.fields(solver)]

    def use(parameter, value):
        changed = dataclasses.replace(solver, **{parameter: value})
        return [KernelPCA(2, solver=changed, random_state=0).fit(X).embedding_]

    assert_no_complaints(lambda: complaints_of(names, use, owner=""))


ODD = ["", " ", "\x00", "a\nb", '"', "x" * 200_000, "nan", "-1", "1e999", "(", "../..", "%s{0}"]
OPTIONS = ["--label", "--columns", "--kernel", "--sigma", "--components", "--seed", "--method"]


@needs("typer")
@pytest.mark.parametrize("option", OPTIONS)
def test_odd_texts_of_the_command_line(option, tmp_path, capsys):
    """They are used or refused, and never a bug of the library."""
    table = tmp_path / "table.csv"
    table.write_text("a,b,c\n1,2,x\n2,1,y\n4,4,x\n3,1,y\n")
    start = ["embed", str(table), "--out", str(tmp_path / "out"), "--quiet"]
    start += [] if option in ("--label", "--columns") else ["--label", "c"]
    for text in ODD:
        with quiet():
            code = app.main([*start, f"{option}={text}"])
        errors = capsys.readouterr().err
        assert code in (0, 1, 2), ascii((option, text[:20]))
        assert "This is a bug" not in errors, ascii((option, text[:20], errors[:300]))
        assert "Traceback" not in errors
