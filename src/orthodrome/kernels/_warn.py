"""Warnings that point at the line of the user, however deep a kernel is."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

__all__ = ["outside", "warn_caller"]

# A kernel is fitted by its user, by an estimator, or by another kernel, from different depths;
# scikit-learn wraps the methods of estimators.
_INSIDE = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *sklearn.__path__))


def outside() -> int:
    """Return the ``stacklevel`` of the nearest line outside of this package and of scikit-learn.

    1 is the function that calls this one.
    """
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, depth = frame.f_back, depth + 1
    return depth


def warn_caller(message: str) -> None:
    """Give a UserWarning at the nearest line outside of this package and of scikit-learn."""
    warnings.warn(message, UserWarning, stacklevel=outside())
