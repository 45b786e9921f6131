"""Files of data as arrays: tables, landmarks and images, refused with a reason and advice.

======================  ==========================================================================
:func:`read_data`       a file of data: csv, tsv, txt, parquet, npy, npz or tps
:class:`Data`           what it returns
:func:`read_image`      a PNG or JPEG image
:func:`write_image`     writes one
:class:`InputError`     what is wrong with a file, where, and what to do
======================  ==========================================================================
"""

from .data import Data, InputError, UnknownColumnError
from .images import read_image, write_image
from .reading import read_data

__all__ = ["Data", "InputError", "UnknownColumnError", "read_data", "read_image", "write_image"]
