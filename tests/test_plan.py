"""The plan of a fit: one decision, with its reason."""

import numpy as np
import pytest

from orthodrome import (
    GeodesicMixture,
    KernelKMeans,
    KernelPCA,
    KernelPGA,
    KernelPNS,
    RobustKernelPCA,
)
from orthodrome.eigen import Hebbian
from orthodrome.kernels import Gaussian, Linear
from orthodrome.plan import Request, make_plan
from orthodrome.rows import as_rows

X = np.random.default_rng(0).standard_normal((1500, 4))


def plan_of(data=X, kernel=None, **request):
    kernel = Gaussian() if kernel is None else kernel
    return make_plan(as_rows(data, kernel, KernelPCA()), kernel, Request("KernelPCA", **request))


@pytest.mark.parametrize(
    ("data", "request_", "face", "name", "storage", "reason"),
    [
        (X[:50], {"n_components": 2}, "gram", "dense", "memory", "at most 400"),
        (X, {"n_components": 2}, "gram", "krylov", "memory", "a few products suffice"),
        (X, {"n_components": None}, "gram", "dense", "memory", "more than 20%"),
        (X, {"n_components": 0.9}, "gram", "krylov", "memory", "a few products suffice"),
        (X, {"memory_budget": "1MiB"}, "gram", "dense", "recompute", "the budget is 1 MiB"),
        (X, {"n_anchors": 9}, "coordinates", "nystroem", "memory", "n_anchors=9 is given"),
        (X, {"solver": "nystroem"}, "coordinates", "nystroem", "memory", "requested"),
        (X, {"n_anchors": 9, "tol": 0.1}, "coordinates", "nystroem", "auto", "n_anchors=9"),
        (X, {"eigenpairs": False}, "gram", "exact", "memory", "no eigenpairs"),
        ([X[:9], X[9:]], {}, "coordinates", "nystroem", "memory", "read in blocks"),
    ],
)
def test_the_decision_and_its_reason(data, request_, face, name, storage, reason):
    plan = plan_of(data, **request_)
    assert (plan.face, plan.name, plan.storage) == (face, name, storage)
    assert reason in plan.reason
    assert plan.reason in str(plan)


def test_own_coordinates_need_a_kernel_that_has_them_and_many_rows():
    assert plan_of(kernel=Linear()).name == "coordinates"
    assert plan_of(X[:12], kernel=Linear()).face == "gram"
    assert plan_of(kernel=Linear(), kernel_coordinates=False).face == "gram"
    assert plan_of(kernel=Linear(), solver="krylov").name == "krylov"
    assert plan_of(kernel=Linear(), exact=True).face == "gram"
    wide = np.broadcast_to(np.float32(1), (9_000, 2_500))
    assert plan_of(wide, kernel=Linear()).face == "gram"  # eigenvectors would take longer
    assert plan_of(wide, kernel=Linear(), eigenpairs=False).name == "coordinates"


def test_memory_and_passes():
    half = 1500 * 1500 * 8 / 2
    assert plan_of(n_components=2).memory == pytest.approx(half, rel=0.4)  # in whole tiles
    assert plan_of(n_components=None).memory == pytest.approx(3 * half, rel=0.2)
    assert plan_of(n_anchors=9).memory == 1500 * 9 * 8
    assert plan_of(n_components=2, solver="dense").passes == 1
    assert plan_of(n_components=2, solver=Hebbian(n_passes=7)).passes == 7
    recomputed = plan_of(n_anchors=9, storage="recompute", passes=8)
    assert (recomputed.passes, recomputed.memory) == (8, 9 * 9 * 8)
    assert plan_of(n_anchors=9, passes=8).passes == 2  # the vectors are kept


def test_what_cannot_be_done_is_refused():
    with pytest.raises(ValueError, match="solver='krylov' of KernelPCA compares all rows"):
        plan_of([X[:9], X[9:]], solver="krylov")
    with pytest.raises(ValueError, match="storage='memory' does not fit"):
        plan_of(n_anchors=500, storage="memory", memory_budget="1MiB")
    with pytest.raises(ValueError, match=r"integer with a checkpoint.*Got 0\.5"):
        plan_of(n_components=0.5, solver=Hebbian(checkpoint="file"))


@pytest.mark.parametrize(
    ("estimator", "shown"),
    [
        (KernelPCA(2, verbose=True), "plan: dense on the Gram matrix"),
        (KernelPGA(2, n_anchors=9, verbose=True), "plan: nystroem on vectors"),
        (KernelKMeans(2, random_state=0, verbose=True), "plan: exact on the Gram matrix"),
        (GeodesicMixture(2, random_state=0, verbose=True), "plan: dense on the Gram matrix"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_verbose_prints_the_plan_once(estimator, shown, capsys):
    pytest.importorskip("rich")
    estimator.fit(X[:40])
    printed = capsys.readouterr().out
    assert printed.count("plan: ") == 1
    assert shown in printed


@pytest.mark.parametrize("estimator", [KernelPNS(2), RobustKernelPCA(2)], ids=repr)
def test_estimators_that_need_all_rows_reject_batches(estimator):
    with pytest.raises(ValueError, match=r"only one array in memory\. Join lists"):
        estimator.fit([X[:20], X[20:40]])
