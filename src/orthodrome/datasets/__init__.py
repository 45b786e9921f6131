"""Data sets of the papers, and generators of simulated data.

=============================  ===================================================================
:func:`available`              names of the data sets that can be loaded
:func:`load`                   a data set as a Bunch or ``(X, y)``
:func:`path`                   path of the file of a data set
:func:`cache_folder`           folder of downloaded data sets
:func:`make_von_mises_fisher`  unit vectors on a subsphere of R^d
:func:`make_spirals`           interleaved spirals in the plane
:func:`make_landmark_shapes`   planar landmark configurations with classes
=============================  ===================================================================

:func:`load` searches ``data_home``, the folder in the environment variable ``ORTHODROME_DATA``, and
the cache. If it finds no file, it downloads tables and images from their publisher. The script
``experiments/data/convert.py`` converts other formats. A file is accepted if the SHA-256 of its
parsed arrays is that of the registry.
"""

from ._generate import make_landmark_shapes, make_spirals, make_von_mises_fisher
from ._load import available, cache_folder, load, path

__all__ = [
    "available",
    "cache_folder",
    "load",
    "make_landmark_shapes",
    "make_spirals",
    "make_von_mises_fisher",
    "path",
]
