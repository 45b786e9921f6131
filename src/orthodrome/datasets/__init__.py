"""Data: the papers' sets from a folder on this machine, and generators of simulated data.

=============================  ===================================================================
:func:`available`              names of the sets that can be loaded
:func:`load`                   a set as a Bunch or ``(X, y)``, checked against its SHA-256
:func:`path`                   where the file of a set lies
:func:`make_von_mises_fisher`  unit vectors on a subsphere of R^d
:func:`make_spirals`           interleaved spirals in the plane
:func:`make_noisy_circles`     concentric circles in the plane
:func:`make_landmark_shapes`   planar landmark configurations with classes
=============================  ===================================================================

The files are looked for in ``data_home``, then in the folder that the environment variable
``ORTHODROME_DATA`` names. Nothing is downloaded or written.
"""

from orthodrome.datasets._generate import (
    make_landmark_shapes,
    make_noisy_circles,
    make_spirals,
    make_von_mises_fisher,
)
from orthodrome.datasets._load import available, load, path

__all__ = [
    "available",
    "load",
    "make_landmark_shapes",
    "make_noisy_circles",
    "make_spirals",
    "make_von_mises_fisher",
    "path",
]
