"""TPS files, the landmark files of tpsDig and its kin: read in their dialects, written exactly.

A specimen is a block of coordinates and some fields, in this order or another::

    LM=3
    104.5 220.0
    98.25 311.0
    150.0 275.5
    IMAGE=leaf_01.jpg
    ID=caerulea_1
    SCALE=0.0125

The reader of ktch 0.11 tells no line numbers and stops at a missing ID, at exponents, double
blanks, NA, decimal commas, remarks and keywords in small letters, so there is one of our own here.
The tests compare the two where both read.
"""

from .reader import TPSFile, read_tps
from .writer import write_tps

__all__ = ["TPSFile", "read_tps", "write_tps"]
