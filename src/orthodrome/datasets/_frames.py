"""Data sets as pandas data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._registry import DatasetEntry

Fields = dict[str, Any]


def with_frames(fields: Fields, entry: DatasetEntry) -> Fields:
    """Replace `data` and `target` by pandas objects and add `frame`, which holds both.

    Parameters
    ----------
    fields : dict
        The fields of a Bunch, as the readers make them.
    entry : DatasetEntry
        The set, for messages.

    Returns
    -------
    fields : dict
        As given, except for `data` (a DataFrame with one row per sample; landmarks and matrices
        are flattened row by row, category columns hold their codes), `target` (a Series, a
        DataFrame or None) and `frame`.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install 'orthodrome[data]'") from error
    names = list(fields["feature_names"])
    if not names:
        raise ValueError(
            f"The data set {entry.name!r} is one image, not a table of samples; load it with "
            "as_frame=False."
        )
    rows = fields["data"].reshape(len(fields["data"]), -1)
    data = pandas.DataFrame(rows, columns=names)
    for name, codes in fields.get("categories", {}).items():
        position = _positions(rows[:, names.index(name)])
        data[name] = pandas.Categorical.from_codes(position, categories=list(codes))
    target = fields["target"]
    if target is None:
        return fields | {"data": data, "frame": data}
    if target.ndim == 1:
        target = pandas.Series(target, name="target")
    else:
        target = pandas.DataFrame(target, columns=list(fields["target_names"]))
    frame = pandas.concat([data, target], axis=1)
    return fields | {"data": data, "target": target, "frame": frame}


def _positions(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return category positions as integers, and -1 for NaN, as pandas does."""
    return np.where(np.isnan(column), -1, column).astype(np.int64)
