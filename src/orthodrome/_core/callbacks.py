"""Callbacks for scikit-learn before 1.9, which has no `sklearn.callback`.

Only what :mod:`orthodrome._core.progress` uses, with the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any


class CallbackSupportMixin:
    """Keep callbacks in the attribute in which scikit-learn keeps them."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Call these objects during fits."""
        self._skl_callbacks = list(callbacks)
        return self

    def _init_callback_context(self, max_subtasks: int) -> Context:
        context = Context(list(getattr(self, "_skl_callbacks", [])), max_subtasks)
        self._skl_callbacks_to_teardown = context.callbacks
        for callback in context.callbacks:
            callback.setup(self, context)
        return context


@dataclass(eq=False)
class Context:
    """Pass the begin and the end of a task to callbacks."""

    callbacks: list[Any]
    max_subtasks: int = 0
    task_name: str = "fit"
    parent: Context | None = None

    def subcontext(self, task_name: str) -> Context:
        """Return the context of a part of this task."""
        return Context(self.callbacks, task_name=task_name, parent=self)

    def call_on_fit_task_begin(self, estimator: Any) -> None:
        """Tell the callbacks that the task begins."""
        for callback in self.callbacks:
            callback.on_fit_task_begin(estimator, self)

    def call_on_fit_task_end(self, estimator: Any) -> None:
        """Tell the callbacks that the task has ended."""
        for callback in self.callbacks:
            callback.on_fit_task_end(estimator, self)


def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Tear down the callbacks of an estimator after its fit, even if it fails."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return fit(self, *args, **kwargs)
        finally:
            for callback in vars(self).pop("_skl_callbacks_to_teardown", []):
                callback.teardown(self, None)

    return wrapped


class ProgressBar:
    """Show a bar of rich."""

    def __init__(self) -> None:
        from rich.progress import Progress

        self._bar = Progress()

    def setup(self, estimator: Any, context: Any) -> None:
        """Show an empty bar."""
        self._task = self._bar.add_task(type(estimator).__name__, total=context.max_subtasks)
        self._bar.start()

    def teardown(self, estimator: Any, context: Any) -> None:
        """Leave the bar as it is."""
        self._bar.stop()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: the bar moves when a task ends."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Move the bar by one step."""
        if context.parent is not None:
            self._bar.advance(self._task)
