"""A callback that records the events of a fit."""

from typing import Any


class Recorder:
    """scikit-learn's FitCallback protocol; `events` lists the calls."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.events.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator: Any, context: Any, **_: Any) -> None:
        self.events.append(("end", context.task_name))
