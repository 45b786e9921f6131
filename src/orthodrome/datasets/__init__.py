"""Data: the papers' sets, from this machine or where they are published, and simulated data.

=============================  ===================================================================
:func:`available`              names of the sets that can be loaded
:func:`load`                   a set as a Bunch, ``(X, y)`` or data frames, checked by SHA-256
:func:`path`                   where the file of a set lies
:func:`cache_folder`           where downloaded sets are kept
:func:`make_von_mises_fisher`  unit vectors on a subsphere of R^d
:func:`make_spirals`           interleaved spirals in the plane
:func:`make_noisy_circles`     concentric circles in the plane
:func:`make_landmark_shapes`   planar landmark configurations with classes
=============================  ===================================================================

The files are looked for in ``data_home``, in the folder that the environment variable
``ORTHODROME_DATA`` names, and in the cache; only then, and only when :func:`load` is called, a set
is downloaded from where it is published. A set is the same if its parsed arrays are, whatever file
they come from.
"""

from orthodrome.datasets._folders import cache_folder
from orthodrome.datasets._generate import (
    make_landmark_shapes,
    make_noisy_circles,
    make_spirals,
    make_von_mises_fisher,
)
from orthodrome.datasets._load import available, load, path

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
