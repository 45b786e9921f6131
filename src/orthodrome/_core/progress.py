"""Progress through scikit-learn's callback protocol (`sklearn.callback`, which is experimental).

Only this module uses the protocol, so a change of the protocol affects no other module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, ProgressBar, with_callbacks
except ImportError:  # scikit-learn < 1.9
    from .callbacks import CallbackSupportMixin, ProgressBar, with_callbacks

__all__ = ["SILENT", "CallbackSupportMixin", "Progress", "reporting", "tracked", "with_callbacks"]

TICKS = 20


class Progress:
    """Report the progress of a fit to the callbacks of its estimator, in steps of 1/20.

    Without a context, nothing is reported.
    """

    def __init__(self, estimator: Any, context: Any) -> None:
        self._estimator = estimator
        self._context = context
        self._done = 0

    def advance(self, fraction: float, name: str = "fit") -> None:
        """Report that this fraction of the work is done, unless more was reported before."""
        ticks = int(TICKS * min(max(fraction, 0.0), 1.0))
        while self._context is not None and self._done < ticks:
            self._done += 1
            context = self._context.subcontext(task_name=name)
            context.call_on_fit_task_begin(estimator=self._estimator)
            context.call_on_fit_task_end(estimator=self._estimator)

    def residual_callback(self, tol: float, start: float) -> Callable[[dict[str, Any]], None]:
        """Return a callback for an eigensolver: progress follows the logarithm of the residual.

        The solver starts when the fraction `start` of the fit is done.
        """
        goal = math.log(min(max(tol, 1e-15), 0.5))

        def advance(entry: dict[str, Any]) -> None:
            residual = min(max(entry["max_residual"], 1e-300), 1.0)
            self.advance(start + (1 - start) * min(math.log(residual) / goal, 1.0), "eigenpairs")

        return advance


#: For a fit inside another fit: only the outer one reports progress.
SILENT = Progress(None, None)


@contextmanager
def tracked(estimator: Any, verbose: bool = False) -> Iterator[Progress]:
    """Open the callback context of a fit; with `verbose`, show a progress bar (needs rich).

    The calling method must be decorated with :func:`with_callbacks`, which tears down the
    callbacks even if the fit fails.
    """
    with _progress_bar(estimator) if verbose else nullcontext():
        context = estimator._init_callback_context(max_subtasks=TICKS)
        context.call_on_fit_task_begin(estimator=estimator)
        # without callbacks, do not create 20 unused contexts, which takes a millisecond
        observed = bool(getattr(estimator, "_skl_callbacks", []))
        progress = Progress(estimator, context if observed else None)
        yield progress
        progress.advance(1.0)
        context.call_on_fit_task_end(estimator=estimator)


def _progress_bar(estimator: Any) -> AbstractContextManager[None]:
    """Add a progress bar within the context, unless the estimator has one."""
    if any(isinstance(each, ProgressBar) for each in getattr(estimator, "_skl_callbacks", [])):
        return nullcontext()
    try:
        return _add_callback(estimator, ProgressBar())
    except ImportError as error:
        message = "verbose=True shows a progress bar, which needs rich: pip install "
        raise ImportError(f"{message}'orthodrome[cli]'") from error


@contextmanager
def _add_callback(estimator: Any, callback: Any) -> Iterator[None]:
    """Add a callback to an estimator within the context.

    If the context ends during a fit, the fit still tears down the callback when it ends.
    """
    before = getattr(estimator, "_skl_callbacks", [])
    estimator.set_callbacks(*before, callback)
    try:
        yield
    finally:
        estimator.set_callbacks(*before)


def reporting(estimator: Any, report: Callable[[float], None]) -> AbstractContextManager[None]:
    """Call ``report(fraction)`` while the estimator is fitted, within the context."""
    return _add_callback(estimator, _Reporter(report))


class _Reporter:
    """A callback that reports the fraction of a fit that is done."""

    def __init__(self, report: Callable[[float], None]) -> None:
        self._report = report
        self._done = 0

    def setup(self, estimator: Any, context: Any) -> None:
        self._done = 0

    def teardown(self, estimator: Any, context: Any) -> None:
        self._report(1.0)

    def on_fit_task_begin(self, estimator: Any, context: Any, **given: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any, **given: Any) -> None:
        if context.parent is not None:  # the task without a parent is the fit itself
            self._done += 1
            self._report(min(self._done / TICKS, 1.0))
