"""Seeds from whatever a user gives as random_state."""

import numpy as np
import pytest

from orthodrome._core.random import as_random_state, one_seed, several_seeds


def sources(seed):
    return {
        "integer": lambda: seed,
        "numpy integer": lambda: np.int64(seed),
        "state": lambda: np.random.RandomState(seed),
        "generator": lambda: np.random.default_rng(seed),
    }


@pytest.mark.parametrize("kind", sources(0))
def test_the_same_source_gives_the_same(kind):
    make, other = sources(3)[kind], sources(4)[kind]
    assert one_seed(make()) == one_seed(make()) != one_seed(other())
    assert several_seeds(make(), 3, "me") == several_seeds(make(), 3, "me")
    assert several_seeds(make(), 3, "me") != several_seeds(other(), 3, "me")
    draws = [as_random_state(source(), "me").random_sample() for source in (make, make, other)]
    assert draws[0] == draws[1] != draws[2]


def test_integers_are_seeds_as_they_are():
    assert one_seed(7) == 7
    assert type(one_seed(np.int64(7))) is int
    expected = np.random.RandomState(7).random_sample()
    assert as_random_state(7, "me").random_sample() == expected


def test_a_source_moves_on():
    for source in (np.random.RandomState(0), np.random.default_rng(0)):
        assert one_seed(source) != one_seed(source)
    state = np.random.RandomState(0)
    assert as_random_state(state, "me") is state


def test_without_a_source_every_call_differs():
    assert one_seed(None) != one_seed(None)
    assert several_seeds(None, 2, "me") != several_seeds(None, 2, "me")
    assert len(set(several_seeds(0, 50, "me"))) == 50


@pytest.mark.parametrize("bad", ["seed", -1, 1.5, True])
def test_what_is_no_source_is_refused(bad):
    for function in (as_random_state, lambda value, owner: several_seeds(value, 2, owner)):
        with pytest.raises(ValueError, match="random_state of me must be an integer"):
            function(bad, "me")
