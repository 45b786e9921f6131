"""Checks say which parameter, whose, what it must be and what it got."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from orthodrome._core.checks import (
    RowError,
    check_choice,
    check_columns,
    check_finite_vector,
    check_integer,
    check_positive,
    check_sample_weight,
    check_symmetric,
    check_targets,
)
from orthodrome._core.progress import TICKS, Progress
from orthodrome._core.status import Status, warn_unless_converged

# Parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["auto", None])
def test_choice_accepts_what_is_listed(value):
    check_choice(value, ("auto", None), "solver", "KernelPCA")


@pytest.mark.parametrize("value", ["Auto", 1, True, np.array([1, 2]), ["auto"]], ids=repr)
def test_choice_lists_the_choices(value):
    with pytest.raises(ValueError, match="solver of KernelPCA must be one of 'auto', None; got "):
        check_choice(value, ("auto", None), "solver", "KernelPCA")


def test_choice_tells_true_from_one():
    with pytest.raises(ValueError, match="must be one of 1; got True"):
        check_choice(True, (1,), "p", "Owner")


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integer_returns_an_int(value):
    assert type(check_integer(value, "k", "Owner", minimum=3)) is int


@pytest.mark.parametrize("value", [2, 3.0, "3", None, True, np.True_, np.nan], ids=repr)
def test_integer_refuses(value):
    with pytest.raises(ValueError, match=r"k of Owner must be an integer >= 3; got "):
        check_integer(value, "k", "Owner", minimum=3)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.25), np.int8(2)])
def test_positive_returns_a_float(value):
    result = check_positive(value, "sigma", "Gaussian")
    assert type(result) is float
    assert result == value


@pytest.mark.parametrize(
    ("options", "refused", "requirement"),
    [
        ({}, [0, -1, np.nan, np.inf, "1", None, True, 1j], "a finite number > 0; got"),
        ({"or_zero": True}, [-1e-9, np.nan, np.inf], "a finite number >= 0; got"),
        ({"maximum": 2.0}, [0, 2.1, np.inf], "a finite number > 0 and <= 2; got"),
        ({"infinite": True}, [0, np.nan, -np.inf], "a number > 0; got"),
    ],
)
def test_positive_states_its_range(options, refused, requirement):
    for value in refused:
        with pytest.raises(ValueError, match=f"sigma of Gaussian must be {requirement} "):
            check_positive(value, "sigma", "Gaussian", **options)


def test_positive_at_the_ends_of_its_range():
    assert check_positive(0, "a", "O", or_zero=True) == 0.0
    assert check_positive(2, "a", "O", maximum=2.0) == 2.0
    assert check_positive(np.inf, "a", "O", infinite=True) == np.inf


# Weights ------------------------------------------------------------------------------------------


def test_weights_are_returned_as_float64():
    assert check_sample_weight(None, 3, "Owner") is None
    for given in ([1, 0, 2], np.array([1, 0, 2], dtype=np.float32), (1.0, 0.0, 2.0)):
        weights = check_sample_weight(given, 3, "Owner")
        assert weights.dtype == np.float64
        np.testing.assert_array_equal(weights, [1, 0, 2])
    np.testing.assert_array_equal(check_sample_weight(2.5, 3, "Owner"), [2.5, 2.5, 2.5])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, np.nan, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0], "sample_weight contains infinity"),
        ([1.0, -2.0, 1.0], "sample_weight of Owner must not be negative; entry 1 is -2"),
        ([1.0, 1.0], r"sample_weight of Owner must have shape \(3,\).*got \(2,\)"),
        (np.ones((3, 1)), r"sample_weight of Owner must have shape \(3,\).*got \(3, 1\)"),
        ([1e308, 1e308, 1.0], "The sum of sample_weight of Owner overflows"),
        ([0.0, 0.0, 0.0], "sample_weight of Owner must have a positive entry; all are zero"),
        (0, "sample_weight of Owner must have a positive entry; all are zero"),
        (-1, "sample_weight of Owner must not be negative; entry 0 is -1"),
        (np.nan, "sample_weight contains NaN"),
        (["a", "b", "c"], "could not convert string to float"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        check_sample_weight(weights, 3, "Owner")


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
def test_the_sum_of_weights_fits_the_numbers_that_they_multiply(total, dtype, advice):
    weights = np.full(4, total / 4)
    check_sample_weight(weights, 4, "Owner")  # where they multiply nothing
    if advice is None:
        np.testing.assert_array_equal(check_sample_weight(weights, 4, "Owner", dtype), weights)
        return
    with pytest.raises(ValueError, match=f"sum of sample_weight of Owner.*{advice} the weights"):
        check_sample_weight(weights, 4, "Owner", dtype)


# Symmetry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 2500])  # the second is checked in more than one piece
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_symmetry_names_the_pair(n, dtype):
    matrix = np.random.default_rng(0).normal(size=(n, n)).astype(dtype)
    matrix = matrix + matrix.T
    check_symmetric(matrix, "K")
    matrix[n - 1, n - 2] += 0.5
    i, j = n - 2, n - 1
    message = rf"K must be symmetric; entries \(({i}, {j}|{j}, {i})\) and .* are .*\(K \+ K.T\) / 2"
    with pytest.raises(ValueError, match=message):
        check_symmetric(matrix, "K")


def test_symmetry_allows_rounding_and_wants_a_square():
    matrix = np.eye(4) + 0.5
    matrix[0, 1] *= 1 + 1e-12
    check_symmetric(matrix, "K")
    for shape in ((2, 3), (4,), (2, 2, 2)):
        with pytest.raises(ValueError, match="K must be a square matrix; got shape"):
            check_symmetric(np.ones(shape), "K")


# Status and progress ------------------------------------------------------------------------------


def test_every_status_but_convergence_has_advice_and_one_warning():
    warn_unless_converged(Status.CONVERGED, "A fit", "detail")  # silent: warnings are errors
    for status in Status:
        assert bool(status.advice) is not status.converged
        if not status.converged:
            with pytest.warns(ConvergenceWarning, match=rf"A fit: {status.value} \(detail\)"):
                warn_unless_converged(status, "A fit", "detail")


def test_errors_of_rows_survive_pickling():
    error = pickle.loads(pickle.dumps(RowError("Row {0} of {{}} is {{odd}}.", 1)))
    assert str(error) == "Row 1 of {} is {odd}."
    assert str(error.renumbered(np.array([4, 7]))) == "Row 7 of {} is {odd}."


class Recorder:
    """Stands for scikit-learn's callback context: counts the tasks it is told of."""

    def __init__(self):
        self.begun = self.ended = 0

    def subcontext(self, task_name):
        return self

    def call_on_fit_task_begin(self, estimator):
        self.begun += 1

    def call_on_fit_task_end(self, estimator):
        self.ended += 1


def test_progress_advances_in_ticks_and_never_falls():
    recorder = Recorder()
    progress = Progress(object(), recorder)
    counts = []
    for fraction in (0.0, 0.5, 0.2, -1.0, 0.5, 7.0, 1.0):
        progress.advance(fraction)
        counts.append(recorder.ended)
    assert counts == [0, TICKS // 2, TICKS // 2, TICKS // 2, TICKS // 2, TICKS, TICKS]
    assert recorder.begun == recorder.ended


def test_residuals_advance_progress_on_their_logarithm():
    recorder = Recorder()
    advance = Progress(object(), recorder).residual_callback(tol=1e-8, start=0.5)
    counts = []
    for residual in (1.0, 1e-4, 1e-8, 0.0):
        advance({"max_residual": residual})
        counts.append(recorder.ended)
    assert counts == [TICKS // 2, 3 * TICKS // 4, TICKS, TICKS]


def test_masked_values_are_refused():
    """Nothing looks at the mask: what it hides would be used."""
    hidden = np.ma.masked_equal([0, 1, 2, 1], 1)
    with pytest.raises(ValueError, match="y of Owner has masked entries"):
        check_targets(hidden, 4, "Owner")
    with pytest.raises(ValueError, match="sample_weight of Owner has masked entries"):
        check_sample_weight(hidden, 4, "Owner")
    np.testing.assert_array_equal(check_targets(np.ma.masked_equal([0, 1], 7), 2, "Owner"), [0, 1])


def test_labels_of_several_kinds_are_refused_in_words():
    pandas = pytest.importorskip("pandas")
    for labels in (
        ["a", None, "b"],
        ["a", 1, "b"],
        pandas.Series(["a", pandas.NA], dtype="string"),
    ):
        with pytest.raises(ValueError, match="y of Owner must be labels of one kind"):
            check_targets(np.array(labels, dtype=object), len(labels), "Owner")


def test_lists_of_unlike_lengths_are_refused_in_words():
    ragged = [[1.0, 2.0], [3.0]]
    with pytest.raises(ValueError, match=r"^y of Owner must be .*; got lists of unlike lengths"):
        check_targets(ragged, 2, "Owner")
    with pytest.raises(ValueError, match=r"^mean of Owner must be .*; got lists of unlike lengths"):
        check_finite_vector(ragged, None, "mean", "Owner")
    with pytest.raises(ValueError, match=r"^V of Owner must have shape \(2, m\).* unlike lengths"):
        check_columns(ragged, 2, "V", "Owner")


def test_integers_beyond_all_floats_are_refused():
    with pytest.raises(ValueError, match=r"^tol of Owner must be a finite number > 0; got 10{400}"):
        check_positive(10**400, "tol", "Owner")
