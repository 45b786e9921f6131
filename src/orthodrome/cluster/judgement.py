"""What a mixture says of points, by their coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from ..sphere import exp_at_pole
from ..sphere.mixture import Mixture

__all__ = ["Judgement", "unit_points"]


@dataclass(frozen=True)
class Judgement:
    """What a mixture says of coordinates: labels, posterior probabilities, or log-densities.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    what : {"labels", "posterior", "evidence"}
        What to return.
    weighted : bool, default=True
        Whether labels are by posterior probabilities; else by densities alone.
    """

    mixture: Mixture
    what: str
    weighted: bool = True

    def __call__(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return one row, or one number, for each row of coordinates of kPGA."""
        return self.of(self.mixture.log_densities(unit_points(coordinates, self.mixture.n_modes)))

    def of(self, densities: NDArray[np.float64]) -> NDArray[Any]:
        """Return the same from log-densities."""
        joint = densities + np.log(self.mixture.weights)
        if self.what == "labels":
            return np.argmax(joint if self.weighted else densities, axis=1).astype(np.int32)
        if self.what == "posterior":
            return np.asarray(scipy.special.softmax(joint, axis=1))
        return np.asarray(scipy.special.logsumexp(joint, axis=1))


def unit_points(coordinates: NDArray[Any], n_modes: int) -> NDArray[np.float64]:
    """Return the unit vectors that kPGA's coordinates stand for."""
    return exp_at_pole(coordinates[:, :n_modes].astype(np.float64))
