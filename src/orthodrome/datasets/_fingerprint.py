"""SHA-256 over the arrays of a data set, independent of the file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

# Our own column names, and views or copies of `data`.
_EXCLUDED = {
    "feature_names",
    "images",
    "image",
    "landmarks",
    "frames",
    "frames_per_second",
    "matrices",
    "X_train",
    "X_test",
    "y_train",
    "y_test",
}


def arrays_sha256(fields: Mapping[str, Any]) -> str:
    """Hash the parsed arrays of a data set: names, shapes, dtypes and values.

    Two files have the same hash if and only if they hold the same arrays. The hash does not depend
    on the format, the compression, the notation of numbers (7 or 7.0), the byte order, the sign of
    zeros and the names of the features.

    Parameters
    ----------
    fields : mapping of str to object
        The fields of a Bunch, as returned by the readers.

    Returns
    -------
    sha256 : str
        64 hexadecimal digits.

    Examples
    --------
    >>> import numpy as np
    >>> from orthodrome.datasets._fingerprint import arrays_sha256
    >>> arrays_sha256({"data": np.zeros(2)}) == arrays_sha256({"data": -np.zeros(2)})
    True
    >>> arrays_sha256({"data": np.zeros(2)}) == arrays_sha256({"data": np.zeros((2, 1))})
    False
    """
    result = hashlib.sha256()
    for name in sorted(set(fields) - _EXCLUDED):
        head, body = _header_and_bytes(fields[name])
        result.update(f"{name} {head} {len(body)};".encode())
        result.update(body)
    return result.hexdigest()


def _header_and_bytes(value: Any) -> tuple[str, memoryview | bytes]:
    """Return shape and dtype as text, and the values as bytes."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        if array.dtype.kind == "f":
            array = array + array.dtype.type(0)  # copies, and turns -0 into 0
            array[np.isnan(array)] = np.nan  # NaN has many bit patterns
        return f"{array.dtype.str} {array.shape}", array.reshape(-1).view(np.uint8).data
    items = value.tolist() if isinstance(value, np.ndarray) else value
    # Strings are hashed without their dtype, whose width depends on the reader.
    return "text", json.dumps(items, sort_keys=True).encode()
