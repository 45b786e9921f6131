"""Reader and writer for TPS files, the landmark files of tpsDig and related programs.

A specimen is a block of coordinates and some fields, in any order::

    LM=3
    104.5 220.0
    98.25 311.0
    150.0 275.5
    IMAGE=leaf_01.jpg
    ID=caerulea_1
    SCALE=0.0125

We do not use the reader of ktch 0.11 because it reports no line numbers and fails on missing IDs,
exponents, double blanks, NA, decimal commas, remarks and lower-case keywords. The tests compare the
two readers on files that both can read.
"""

from .reader import TPSFile, read_tps
from .writer import write_tps

__all__ = ["TPSFile", "read_tps", "write_tps"]
