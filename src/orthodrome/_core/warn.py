"""Warnings that show the user's line of code."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import sklearn

# scikit-learn's wrappers, pipelines and searches call our methods.
_SKIPPED = tuple(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *sklearn.__path__))


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the location of the innermost caller outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
