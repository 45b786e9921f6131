"""Access to data: rows in memory, on disk, in batches or on a Dask cluster."""

from .base import Rows
from .dask import DaskRows
from .inputs import as_rows, kind_of
from .local import ArrayRows, BatchRows, ZarrRows

__all__ = ["ArrayRows", "BatchRows", "DaskRows", "Rows", "ZarrRows", "as_rows", "kind_of"]
