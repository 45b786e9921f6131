"""Checks of parameters, weights, matrices and labels, and reports of status and progress."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from orthodrome._core.checks import (
    RowError,
    check_choice,
    check_columns,
    check_finite_vector,
    check_flag,
    check_integer,
    check_path,
    check_positive,
    check_sample_weight,
    check_symmetric,
    check_targets,
)
from orthodrome._core.parameters import (
    count_or_fraction,
    grid,
    memory_size,
    optional,
    or_word,
    positive,
)
from orthodrome._core.status import Status, warn_unless_converged

MASKED, RAGGED = np.ma.masked_equal([0, 1, 2, 1], 1), [[1.0, 2.0], [3.0]]

POSITIVE = {
    "or zero": partial(check_positive, or_zero=True),
    "maximum": partial(check_positive, maximum=2.0),
}
VECTOR, COLUMNS = partial(check_finite_vector, size=2), partial(check_columns, n=2)
# check, accepted values, rejected values, requirement in the message
PARAMETERS = {
    "choice": (
        partial(check_choice, choices=("auto", None, 1)),
        ["auto", None, 1],
        ["Auto", 2, True, np.array([1, 2]), ["auto"]],
        "one of 'auto', None, 1",
    ),
    "integer": (
        partial(check_integer, minimum=3, maximum=9),
        [3, 9, np.int64(3), np.uint8(3)],
        [2, 10, 3.0, "3", None, True, np.True_, np.nan],
        "an integer >= 3 and <= 9",
    ),
    "positive": (
        check_positive,
        [1, 0.5, np.float32(0.25), np.int8(2)],
        [0, -1, np.nan, np.inf, "1", None, True, 1j, 10**400],
        "a finite number > 0",
    ),
    "or zero": (POSITIVE["or zero"], [0, 1.5], [-1e-9, np.nan, np.inf], "a finite number >= 0"),
    "maximum": (POSITIVE["maximum"], [2, 0.1], [0, 2.1, np.inf], "a finite number > 0 and <= 2"),
    "flag": (check_flag, [True, False, np.True_], ["no", 1, None], "True or False"),
    "path": (check_path, ["a", "a/b"], ["", "a\0b", b"a", 3, None], "a path"),
    "fraction": (
        optional(count_or_fraction),
        [1, np.int64(7), 0.5, None],
        [0, 1.0, 0.0, True, "1", np.nan],
        "an integer >= 1 or a fraction between 0 and 1",
    ),
    "grid": (grid(), [[1.0], (2, 3)], [[], [0.0], [1, np.nan], "a"], "(one|finite)"),
    "word": (or_word("cv", positive()), ["cv", 1], ["vc", 0], r".* Or write p='cv'"),
    "memory": (memory_size, ["2GiB", 5], ["lots", -1], "(a number of bytes|finite)"),
    "vector": (VECTOR, [[1, 2], np.ones(2, "f")], [[1], [1, np.nan], [[1, 2]], "ab", [1j, 2]], "2"),
    "bad array": (VECTOR, [[1, 2]], [RAGGED, MASKED], "one array|has masked"),
    "columns": (COLUMNS, [np.ones((2, 3))], [np.ones(2), np.ones((3, 2)), RAGGED], "(one|must)"),
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters(kind):
    check, accepted, rejected, requirement = PARAMETERS[kind]
    for value in accepted:
        found = check(value, name="p", owner="Owner")
        if kind in ("integer", "positive", "maximum", "flag"):
            assert type(found) in (int, float, bool)
            assert found == value
    for value in rejected:
        with pytest.raises(ValueError, match=rf"p of Owner (must be )?{requirement}"):
            check(value, name="p", owner="Owner")


@pytest.mark.parametrize(
    ("total", "dtype", "advice"),
    [
        (1e31, np.float32, "divide"),
        (1e-31, np.float32, "multiply"),
        (1e-305, np.float64, "multiply"),
        (1.0, np.float32, None),
        (1e29, np.float32, None),
        (1e305, np.float64, None),
    ],
)
def test_the_sum_of_weights_fits_the_dtype_of_the_data(total, dtype, advice):
    weights = np.full(4, total / 4)
    if advice is None:
        np.testing.assert_array_equal(check_sample_weight(weights, 4, "Owner", dtype), weights)
        return
    with pytest.raises(ValueError, match=f"sum of sample_weight of Owner.*{advice} the weights"):
        check_sample_weight(weights, 4, "Owner", dtype)


@pytest.mark.parametrize("n", [3, 2500])  # the second is checked in more than one piece
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_symmetry(n, dtype):
    matrix = np.random.default_rng(0).normal(size=(n, n)).astype(dtype)
    matrix = matrix + matrix.T
    check_symmetric(matrix, "K")
    matrix[0, 1] *= 1 + 1e-6 if dtype == np.float32 else 1 + 1e-12  # rounding
    check_symmetric(matrix, "K")
    i, j = n - 2, n - 1
    for value, message in [
        (matrix[j, i] + 0.5, rf"entries \(({i}, {j}|{j}, {i})\) and .* are .*\(K \+ K.T\) / 2"),
        (np.nan, rf"K must be finite.* entry \(({i}, {j}|{j}, {i})\) is nan"),
        (np.finfo(dtype).max / 2, "overflow"),
    ]:
        bad = matrix.copy()
        bad[j, i] = value
        with pytest.raises(ValueError, match=message):
            check_symmetric(bad, "K")


def test_labels():
    np.testing.assert_array_equal(check_targets(np.ma.masked_equal([0, 1], 7), 2, "Owner"), [0, 1])
    pandas = pytest.importorskip("pandas")
    mixed = [["a", None, "b"], ["a", 1, "b"], pandas.Series(["a", pandas.NA], dtype="string")]
    for bad, message in [
        (None, "Owner requires y"),
        (MASKED, "y of Owner has masked entries"),
        (RAGGED, "y of Owner must be one array"),
        *((np.array(labels, dtype=object), "labels of one type") for labels in mixed),
    ]:
        with pytest.raises(ValueError, match=message):
            check_targets(bad, 0 if bad is None else len(bad), "Owner")


# Status and progress ------------------------------------------------------------------------------


def test_every_status_but_convergence_has_advice_and_one_warning():
    assert {status for status in Status if status.converged} == {Status.CONVERGED, Status.ROUNDING}
    for status in Status:
        assert bool(status.advice) is not status.converged
        if status.converged:
            warn_unless_converged(status, "A fit", "detail")  # silent: warnings are errors
            continue
        with pytest.warns(ConvergenceWarning, match=rf"A fit: {status.value} \(detail\)"):
            warn_unless_converged(status, "A fit", "detail")


def test_row_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(RowError("Row {0} of {{}} is {{odd}}.", 1)))
    assert str(error) == "Row 1 of {} is {odd}."
    assert str(error.renumbered(np.array([4, 7]))) == "Row 7 of {} is {odd}."
