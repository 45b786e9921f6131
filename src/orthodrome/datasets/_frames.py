"""Data sets as pandas data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._registry import DatasetEntry

Fields = dict[str, Any]


def with_frames(fields: Fields, entry: DatasetEntry) -> Fields:
    """Convert `data` and `target` to pandas objects, and add `frame`, which holds both.

    Parameters
    ----------
    fields : dict
        The fields of a Bunch, as returned by the readers.
    entry : DatasetEntry
        The data set, for error messages.

    Returns
    -------
    fields : dict
        The given fields with new `data` (a DataFrame with one row per sample; landmarks and
        matrices are flattened row by row, category columns are categorical), `target` (a Series,
        a DataFrame or None) and `frame`.
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
        indices = _category_indices(rows[:, names.index(name)])
        data[name] = pandas.Categorical.from_codes(indices, categories=list(codes))
    target = fields["target"]
    if target is None:
        return fields | {"data": data, "frame": data}
    if target.ndim == 1:
        target = pandas.Series(target, name="target")
    else:
        target = pandas.DataFrame(target, columns=list(fields["target_names"]))
    frame = pandas.concat([data, target], axis=1)
    return fields | {"data": data, "target": target, "frame": frame}


def _category_indices(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return indices of categories as integers, with -1 for NaN as in pandas."""
    return np.where(np.isnan(column), -1, column).astype(np.int64)
