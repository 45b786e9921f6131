"""What the experiments of the KRRC paper share: the leaves, and the way to `pages`."""

from __future__ import annotations

import sys
from functools import cache, partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # where pages.py is; scripts import this module before it

import numpy as np
import pages
from numpy.typing import NDArray

publish = partial(pages.publish, HERE)


@cache
def leaves() -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Landmarks x1, y1, x2, y2, … of all leaves, and their classes."""
    found = pages.load("passiflora")
    return found.data.reshape(len(found.data), -1), found.target
