"""A plugin of pytest for mutation.py: which tests run which lines, and tests in a given order.

MUTATION_MAP names a file to write: each test with its seconds and the lines it runs. MUTATION_ORDER
names a file with the tests to run, in their order; MUTATION_FAILED one to write the first that
fails to. MUTATION_MEMORY and MUTATION_SECONDS are bounds: of bytes, and of computing.
"""

from __future__ import annotations

import functools
import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

HERE = Path(__file__).resolve().parent


def pytest_configure(config: pytest.Config) -> None:
    # Beside other work everything takes longer: a slow example is no failure.
    settings.register_profile("mutants", settings(deadline=None))
    settings.load_profile("mutants")
    if memory := os.environ.get("MUTATION_MEMORY"):
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    if seconds := os.environ.get("MUTATION_SECONDS"):
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    if target := os.environ.get("MUTATION_MAP"):
        config.pluginmanager.register(Recorder(Path(target), Path(os.environ["MUTATION_SOURCE"])))
    if order := os.environ.get("MUTATION_ORDER"):
        config.pluginmanager.register(Selection(json.loads(Path(order).read_text())))


class Selection:
    """Runs the wanted tests, in their order, after those of which nothing is known."""

    def __init__(self, said: dict[str, list[str]]) -> None:
        self.place = {name: place for place, name in enumerate(said["wanted"])}
        self.others = set(said["known"]) - set(self.place)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        kept = [item for item in items if item.nodeid not in self.others]
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid in self.others])
        items[:] = sorted(kept, key=lambda item: self.place.get(item.nodeid, -1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            Path(os.environ["MUTATION_FAILED"]).write_text(report.nodeid)


class Recorder:
    """Writes what each test runs, with coverage's contexts."""

    def __init__(self, target: Path, source: Path) -> None:
        import coverage

        self.target, self.source = target, source
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        functools.cache = _forgetful(functools.cache)
        include = [f"{source}/*"]
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=include)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        number = {name: i for i, name in enumerate(self.seconds)}
        lines = {
            Path(file).relative_to(self.source).as_posix(): {
                line: [number[name] for name in names if name in number]
                for line, names in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        tests = [[name, round(seconds, 3)] for name, seconds in self.seconds.items()]
        said = {"tests": tests, "failed": self.failed, "lines": lines}
        self.target.write_text(json.dumps(said))


def _forgetful(cache: Callable[..., Any]) -> Callable[..., Any]:
    """What tests remember for each other would be run by the first of them only."""

    def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
        ours = Path(function.__code__.co_filename).is_relative_to(HERE)
        return function if ours else cache(function)

    return remembered
