"""Names for types that many signatures share."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Data"]

#: Samples: an array-like, a SciPy sparse array or a DataFrame; a kernel's ``validate`` decides.
Data: TypeAlias = Any
