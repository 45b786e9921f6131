"""On a cluster of two workers: the same results, no large results, and lost workers."""

import os
import signal

import numpy as np
import pytest

from orthodrome import GeodesicMixture, KernelPCA, KernelPGA, KernelSpectralClustering
from orthodrome.eigen import Nystroem
from orthodrome.metrics import variation_of_information

da = pytest.importorskip("dask.array", reason="needs dask: pip install orthodrome[distributed]")
plugins = pytest.importorskip(
    "distributed.diagnostics.plugin", reason="needs dask: pip install orthodrome[distributed]"
)

BLOCK, D, ANCHORS = 1000, 12, 40


def points(n_blocks, d=D, rows=BLOCK, dtype="f8"):
    """Points that workers make, in groups."""

    def make(block_info=None):
        rng = np.random.default_rng(block_info[None]["chunk-location"][0])
        groups = np.linspace(0, 1, 4)[rng.integers(4, size=rows)]
        return (rng.random((rows, d), dtype=dtype) + groups[:, None]).astype(dtype)

    return da.map_blocks(make, chunks=((rows,) * n_blocks, (d,)), dtype=dtype)


class Watch(plugins.SchedulerPlugin):
    """Record the sizes of the results of tasks, and which of them leave the cluster."""

    def __init__(self, scheduler, after=lambda count: None):
        self.scheduler, self.after = scheduler, after
        self.sizes, self.wanted = {}, {}

    def transition(self, key, start, finish, *args, **kwargs):
        if finish == "memory":
            task = self.scheduler.tasks[key]
            self.sizes[key] = task.nbytes
            if task.who_wants and isinstance(key, str):  # blocks that are kept are wanted, and stay
                self.wanted[key] = task.nbytes
            self.after(len(self.sizes))


@pytest.fixture
def watch(client):
    plugin = Watch(client.cluster.scheduler)
    plugin.scheduler.add_plugin(plugin, name="watch")
    yield plugin
    plugin.scheduler.remove_plugin("watch")


def pga(**options):
    return KernelPGA(3, solver=Nystroem(n_anchors=ANCHORS, random_state=0), **options)


def mixture():
    anchors = points(1).compute(scheduler="synchronous")[:ANCHORS]
    return GeodesicMixture(4, n_modes=2, solver=Nystroem(anchors=anchors), random_state=0)


def spectral():
    anchors = points(1).compute(scheduler="synchronous")[:ANCHORS]
    solver = Nystroem(anchors=anchors)
    return KernelSpectralClustering(2, solver=solver, n_init=2, random_state=0)


MODELS = {
    "nystroem pca": lambda: KernelPCA(3, solver=Nystroem(n_anchors=ANCHORS, random_state=0)),
    "nystroem pga": pga,
    "krylov pga": lambda: KernelPGA(2, solver="krylov", random_state=0, tol=1e-12),
    "mixture": mixture,
    "spectral clustering": spectral,
}


def check_same(name, lazy, local):
    if name == "mixture":
        np.testing.assert_allclose(lazy.means_, local.means_, atol=1e-9)
        np.testing.assert_array_equal(lazy.labels_.compute(), local.labels_)
    elif name == "spectral clustering":
        np.testing.assert_allclose(lazy.eigenvalues_, local.eigenvalues_, rtol=1e-8)
        np.testing.assert_allclose(lazy.embedding_.compute(), local.embedding_, atol=1e-5)
        assert variation_of_information(lazy.labels_.compute(), local.labels_) == 0
    else:
        np.testing.assert_allclose(lazy.eigenvalues_, local.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(np.asarray(lazy.embedding_), local.embedding_, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("nystroem pca", "threads"),
        *[pytest.param(name, "cluster", marks=pytest.mark.slow) for name in MODELS],
    ],
    indirect=["client"],
)
def test_results_equal_the_local_ones_and_are_small(name, client, watch):
    X = points(6)
    local = MODELS[name]().fit(X.compute(scheduler="synchronous"))
    lazy = MODELS[name]().fit(X)
    sizes = list(watch.sizes.values())
    check_same(name, lazy, local)
    assert len(sizes) > 6
    block, square = BLOCK * D * 8, ANCHORS**2 * 8
    assert max(sizes) <= max(block, square) + 10_000  # overhead


@pytest.mark.slow
def test_what_leaves_the_cluster_does_not_grow_with_the_rows(client, watch):
    taken = []
    for n_blocks in (10, 20):  # more rows than the sample, and than the candidates
        watch.wanted.clear()
        solver = Nystroem(anchors=np.linspace(0, 2, 20)[:, None] * np.ones(D))
        KernelPGA(3, solver=solver).fit(points(n_blocks))
        taken.append(sum(watch.wanted.values()))
    assert taken[1] < 1.2 * taken[0]
    assert taken[1] < points(20).nbytes


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_lost_worker_changes_nothing(name, own_cluster):
    X = points(6)
    local = MODELS[name]().fit(X.compute(scheduler="synchronous"))
    scheduler, killed = own_cluster.cluster.scheduler, []

    def kill(count):
        if count == 15 and not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    workers = own_cluster.run(os.getpid)
    persisted = own_cluster.persist(X)
    scheduler.add_plugin(Watch(scheduler, kill))
    lazy = MODELS[name]().fit(persisted)
    assert killed
    assert killed[0] not in own_cluster.run(os.getpid).values()
    check_same(name, lazy, local)


WIDE, ROWS, BLOCKS = 1000, 8000, 48


def pca_of_wide():
    return KernelPCA(3, solver=Nystroem(n_anchors=24, random_state=0))


def spectral_of_wide():
    anchors = points(1, WIDE, 24, "f4").compute(scheduler="synchronous")
    solver = Nystroem(anchors=anchors)
    return KernelSpectralClustering(2, solver=solver, n_init=1, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("make", [pca_of_wide, spectral_of_wide])
def test_the_data_may_be_larger_than_the_memory_of_a_worker(make, client, watch):
    X = points(BLOCKS, WIDE, ROWS, "f4")
    workers = client.scheduler_info()["workers"]
    assert all(worker["memory_limit"] < X.nbytes for worker in workers.values())
    processes = client.run(os.getpid)
    model = make().fit(X)
    # one that takes more than its limit is paused, and then killed and started anew
    assert client.run(os.getpid) == processes
    assert not any(event["status"] == "paused" for event in status_changes(client, workers))
    assert max(watch.sizes.values()) <= ROWS * WIDE * 4 + 10_000
    assert sum(watch.wanted.values()) < X.nbytes / 4
    assert model.embedding_.shape == (BLOCKS * ROWS, len(model.eigenvalues_))
    if make is pca_of_wide:
        variances = model.embedding_.var(axis=0).compute() * len(X)
        np.testing.assert_allclose(variances, model.eigenvalues_, rtol=1e-3)


def status_changes(client, workers):
    """Return the status changes of workers that the scheduler recorded."""
    events = [event for address in workers for _, event in client.get_events(address)]
    return [event for event in events if event.get("action") == "worker-status-change"]
