"""Clusters of two workers on this machine."""

import logging

import pytest

from optional import optional

distributed = optional("distributed.client")
deploy = optional("distributed.deploy.local")

# bytes that a worker may use: what Python with this library takes, and room for some blocks of
# the widest test (a worker pauses at 0.8 of this), but not for all of its data
MEMORY_LIMIT = 1000 * 2**20


def make_cluster(*, processes=True, **options):
    """Two workers of one thread each, which listen to this machine only."""
    return deploy.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp://",  # even where workers share a process, they exchange bytes
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        **options,
    )


@pytest.fixture(scope="session")
def cluster():
    """Started once in each process that runs tests."""
    with make_cluster(memory_limit=MEMORY_LIMIT) as running:
        yield running


@pytest.fixture
def threads():
    """Workers in this process: quick to start, for they import nothing again."""
    with make_cluster(processes=False) as running:
        yield running


@pytest.fixture
def client(request):
    """Dask computes on the cluster while a test has this; the parameter is the kind of workers."""
    running = request.getfixturevalue(getattr(request, "param", "cluster"))
    with distributed.Client(running) as connected:
        yield connected


@pytest.fixture
def own_cluster():
    """A cluster that a test may damage."""
    with make_cluster() as running, distributed.Client(running) as connected:
        yield connected
