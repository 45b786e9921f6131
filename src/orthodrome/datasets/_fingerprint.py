"""SHA-256 over the arrays of a data set, independent of the file format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

# Names of columns are ours, not the publisher's; the others are views or copies of `data`.
_NOT_COUNTED = {
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

    Two files give the same hash if and only if they hold the same arrays: the format, the
    compression, how a number is written (7 or 7.0), the byte order, the sign of a zero and the
    names of the features do not count.

    Parameters
    ----------
    fields : mapping of str to object
        The fields of a Bunch, as the readers make them.

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
    for name in sorted(set(fields) - _NOT_COUNTED):
        head, body = _described(fields[name])
        result.update(f"{name} {head} {len(body)};".encode())
        result.update(body)
    return result.hexdigest()


def _described(value: Any) -> tuple[str, memoryview | bytes]:
    """Return shape and dtype as text, and the values as bytes."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        if array.dtype.kind == "f":
            array = array + array.dtype.type(0)  # a new array, with one zero
            array[np.isnan(array)] = np.nan  # and one NaN
        return f"{array.dtype.str} {array.shape}", array.reshape(-1).view(np.uint8).data
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    # The width of a string dtype depends on the reader, so it does not count.
    return "text", json.dumps(listed, sort_keys=True).encode()
