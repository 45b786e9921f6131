"""Warnings that point at the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

# scikit-learn wraps the methods of estimators, and calls them in pipelines and searches.
_INSIDE = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *sklearn.__path__))


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
