"""Type aliases used in many signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Samples: an array-like, a sparse array or a DataFrame, checked by the kernel's ``validate``.
Data: TypeAlias = Any

#: An array of any type.
Array: TypeAlias = NDArray[Any]

#: An array in double precision.
Floats: TypeAlias = NDArray[np.float64]

#: An array of row numbers or labels.
Indices: TypeAlias = NDArray[np.intp]

#: A function called with each entry of a history.
Callback: TypeAlias = Callable[[dict[str, Any]], None]
