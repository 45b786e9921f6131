"""Seeds from ``random_state``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .checks import check_random_state


def one_seed(random_state: Any) -> int:
    """Return an integer seed: the given one, one drawn from a generator, or for None a new one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]  # it is an integer
    return int(random_state)


def as_random_state(random_state: Any, owner: str) -> np.random.RandomState:
    """Return a RandomState for a seed, a generator of either kind, or None."""
    check_random_state(random_state, owner)
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(one_seed(random_state) % 2**32)


def draw_seeds(random_state: Any, n: int, owner: str) -> list[int]:
    """Draw n seeds for independent computations."""
    source = as_random_state(random_state, owner)
    return [int(seed) for seed in source.randint(2**31 - 1, size=n)]
