"""What the experiments of the RKHS-GEO paper share: where they are, and the way to `pages`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # where pages.py is; scripts import this module before it

import pages

publish = partial(pages.publish, HERE)
