"""Data sets of the papers, and generators of simulated data.

=============================  ===================================================================
:func:`available`              names of the sets that can be loaded
:func:`load`                   a set as a Bunch, ``(X, y)`` or data frames, checked by SHA-256
:func:`path`                   path of the file of a set
:func:`cache_folder`           folder of downloaded sets
:func:`make_von_mises_fisher`  unit vectors on a subsphere of R^d
:func:`make_spirals`           interleaved spirals in the plane
:func:`make_noisy_circles`     concentric circles in the plane
:func:`make_landmark_shapes`   planar landmark configurations with classes
=============================  ===================================================================

Files are looked for in ``data_home``, in the folder that the environment variable
``ORTHODROME_DATA`` names, and in the cache. Then :func:`load` downloads tables and pictures from
where they are published. Other formats are converted by ``experiments/data/convert.py``. A set is
accepted if its parsed arrays are those of the registry.
"""

from ._folders import cache_folder
from ._generate import (
    make_landmark_shapes,
    make_noisy_circles,
    make_spirals,
    make_von_mises_fisher,
)
from ._load import available, load, path

__all__ = [
    "available",
    "cache_folder",
    "load",
    "make_landmark_shapes",
    "make_noisy_circles",
    "make_spirals",
    "make_von_mises_fisher",
    "path",
]
