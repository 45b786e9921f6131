"""Fixtures of several folders."""

import pytest
from threadpoolctl import threadpool_limits

from browser import browser
from orthodrome._core import threads

__all__ = ["browser"]


@pytest.fixture
def small_work_in_threads(monkeypatch):
    """Use threads for work of any size, where BLAS has several."""
    monkeypatch.setattr(threads, "_SMALL_WORK", 0)


@pytest.fixture
def two_threads(monkeypatch, small_work_in_threads):
    """Two threads for work of any size, whatever the machine has."""
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    with threadpool_limits(2, user_api="blas"):
        yield
