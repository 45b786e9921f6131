"""Base class of classifiers that compare residuals from the span of each class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.checks import check_classes, check_sample_weight, check_targets, rows_renumbered
from .._core.memory import format_bytes, parse_bytes
from .._core.parameters import choice, grid, optional, or_word, positive
from .._core.progress import tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..base import KernelEstimator, last_fit_kept
from ..kernels import Kernel, Precomputed
from ..kernels.base import symmetric_block
from ..rows.base import stacked
from .calibration import residual_temperature, softmax_of_residuals
from .filters import remainder, tie_within_rounding
from .subspaces import (
    SMALL_CLASS,
    ClassPoints,
    captured_by_each,
    check_diagonals,
    check_overflow,
    over_classes,
)

#: Values of α for ``alpha="loo"``: 1e-8, 3e-8, 1e-7, … 3, 10.
DEFAULT_ALPHAS = (*[float(f"{d}e{power}") for power in range(-8, 1) for d in (1, 3)], 10.0)

# Fraction of the progress bar for the decompositions; leave-one-out follows.
_SPECTRA_FRACTION = 0.6

Report = Callable[[float], None]


@dataclass(frozen=True)
class Rules:
    """Definition of the residuals from a class, and the values of α to try.

    ``alpha``, ``alpha_scale`` and ``alphas`` are parameters of the estimators. ``filter(alpha)``
    returns the filter for an absolute α, or for an array of them. ``left_out(points, alphas)``
    returns the residual of each point of a class from the others, with a column for each absolute
    α; by default, the filter computes it. ``class_kernel(kernel, data, weights)`` fits the kernel
    of a class; it is None if all classes share one kernel. ``entry_size`` is passed to
    `class_spectrum`.
    """

    alpha: Any
    alpha_scale: str
    alphas: Any
    filter: Callable[[Any], Any]
    left_out: Callable[[ClassPoints, NDArray[np.float64]], NDArray[np.float64]] | None = None
    class_kernel: Callable[[Kernel, Any, NDArray[np.float64]], Kernel] | None = None
    entry_size: float | None = None

    @property
    def chooses(self) -> bool:
        """Whether leave-one-out chooses α."""
        return isinstance(self.alpha, str)

    def candidates(self, classes: list[ClassPoints]) -> NDArray[np.float64]:
        """Return the values of α to choose from, ascending."""
        if not self.chooses:
            return np.array([float(self.alpha)])
        if self.alphas is not None:
            return np.unique(np.asarray(self.alphas, dtype=np.float64))
        unit = _mean_square(classes) if self.alpha_scale == "absolute" else 1.0
        return np.array(DEFAULT_ALPHAS) * unit

    def absolute(self, alphas: Any, points: ClassPoints) -> Any:
        """Return values of α in the units of the kernel."""
        return alphas * (points.spectrum.values[0] if self.alpha_scale == "relative" else 1.0)

    def left_out_residuals(
        self, points: ClassPoints, alphas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the residual of each point from the others, with a column for each absolute α."""
        if self.left_out is not None:
            return self.left_out(points, alphas)
        return self.filter(alphas).left_out(points.spectrum)


# ---------------------------------------------------------------------- training points


@dataclass(frozen=True)
class _Training:
    """The training points of each class, for leave-one-out.

    The names of the fields are part of the format of model files.

    Attributes
    ----------
    members : list of ndarray
        Row indices of each class.
    merged : list of Canonical
        Distinct points of each class; the points that span its subspace come first.
    chosen : list of ndarray
        Indices in `merged` of the points that span the subspace.
    n_rows : int
        Number of training rows.
    alone : ndarray
        Indices of the rows of weight 0 that equal no other row.
    unmatched_data : array
        Data of the rows in `alone`.
    given : array or None
        The training data; None if they were not kept.
    prepared : Prepared or None
        Distinct points of all classes, prepared by the kernel, for all kernels that differ only in
        scale. None if each class has a different kernel.
    """

    members: list[NDArray[np.intp]]
    merged: list[Canonical]
    chosen: list[NDArray[np.intp]]
    n_rows: int
    alone: NDArray[np.intp]
    unmatched_data: Any
    given: Any
    prepared: Any = None

    @property
    def sizes(self) -> list[int]:
        """Number of points that span the subspace of each class."""
        return [len(each) for each in self.chosen]

    @property
    def starts(self) -> NDArray[np.intp]:
        """Offset of each class among the distinct points of all classes, and their total number."""
        return np.cumsum([0, *[len(found.weights) for found in self.merged]])

    @property
    def index(self) -> NDArray[np.intp]:
        """Index of a training row for each distinct point of all classes."""
        pairs = zip(self.members, self.merged, strict=True)
        return np.concatenate([rows[found.index] for rows, found in pairs])

    def blas(self) -> AbstractContextManager[None]:
        """Limit BLAS to one thread for small matrices, where more threads are slower."""
        return single_threaded_blas() if max(self.sizes) <= SMALL_CLASS else nullcontext()

    def prepared_by(self, kernel: Kernel, rules: Rules) -> _Training:
        """Prepare the points of all classes for the kernel, if all classes share it."""
        if isinstance(kernel, Precomputed) or rules.class_kernel is not None:
            return self
        with rows_renumbered(self.index):
            points = kernel.prepare(stacked([found.data for found in self.merged]))
        return replace(self, prepared=points)


def _training_of(
    X: Any,
    members: list[NDArray[np.intp]],
    weights: NDArray[np.float64] | None,
    precomputed: bool,
    draw: Callable[[int], NDArray[np.intp]],
) -> _Training:
    """Merge equal points of each class; ``draw(n)`` chooses which of n points span the class."""
    matched, merged, chosen = np.zeros(X.shape[0], dtype=bool), [], []
    for rows in members:
        given = None if weights is None else weights[rows]
        if precomputed:
            found = canonical_gram(X[np.ix_(rows, rows)], given)
        else:
            found = canonical_rows(X[rows], given)
        matched[rows[found.inverse >= 0]] = True
        drawn = draw(len(found.weights))
        merged.append(_spanning_first(found, drawn, precomputed))
        chosen.append(np.arange(len(drawn)))
    unmatched = np.flatnonzero(~matched)
    return _Training(members, merged, chosen, X.shape[0], unmatched, X[unmatched], X)


def _spanning_first(found: Canonical, chosen: NDArray[np.intp], precomputed: bool) -> Canonical:
    """Sort the distinct points of a class so that the chosen ones come first."""
    n = len(found.weights)
    if len(chosen) == n:
        return found
    order = np.concatenate([chosen, np.setdiff1d(np.arange(n), chosen)])
    position = np.append(np.argsort(order), -1)  # rows without a match stay at -1
    data = found.data[np.ix_(order, order)] if precomputed else found.data[order]
    return Canonical(data, found.weights[order], found.index[order], position[found.inverse])


def _sort_spanning_first(training: _Training) -> _Training:
    """Put the points that span a class first, for model files of 0.1.0.dev0."""
    pairs = zip(training.merged, training.chosen, strict=True)
    merged = [_spanning_first(found, chosen, precomputed=False) for found, chosen in pairs]
    return replace(training, merged=merged, chosen=[np.arange(size) for size in training.sizes])


def _check_memory(sizes: list[int], memory_budget: Any, owner: str) -> None:
    """Raise if the matrices of the classes exceed the memory budget."""
    # in float64: each matrix and its eigenvectors, and workspace for the largest
    largest, budget = max(sizes), parse_bytes(memory_budget)
    needed = sum(2 * 8 * n * n for n in sizes) + 4 * 8 * largest**2
    if needed > max(budget, 2**23):  # always allow a few megabytes
        raise ValueError(
            f"{owner} decomposes the Gram matrix of each class, {largest} x {largest} for the "
            f"largest. This needs {format_bytes(needed)}, but memory_budget is "
            f"{format_bytes(budget)}. Raise memory_budget, or fit to fewer points."
        )


# ---------------------------------------------------------------------- fitting


@dataclass(frozen=True)
class _Trial:
    """Leave-one-out results of a kernel for each α.

    ``residuals`` of the distinct points of all classes has shape (n, n_classes, n_alphas);
    ``owners`` and ``weights`` are the classes and weights of these points. ``scores`` is the
    weighted accuracy for each α.
    """

    kernel: Kernel
    classes: list[ClassPoints]
    residuals: NDArray[np.float64]
    owners: NDArray[np.intp]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class _Judgement:
    """Leave-one-out results of the fit; the names are part of the format of model files."""

    score: float
    residuals: NDArray[np.float64]
    temperature: float


def _decompose(
    training: _Training, kernel: Kernel, rules: Rules, report: Report
) -> list[ClassPoints]:
    """Return the points of each class with their Gram matrix."""
    starts = training.starts

    def class_points(number: int) -> ClassPoints:
        found, size = training.merged[number], training.sizes[number]
        index, weights = training.members[number][found.index[:size]], found.weights[:size]
        if isinstance(kernel, Precomputed):
            gram = found.data[:size, :size]
            return ClassPoints(kernel, None, None, index, weights, gram, None)
        class_kernel, data = kernel, found.data[:size]
        with single_threaded_blas(), rows_renumbered(index):
            if rules.class_kernel is None:
                points = training.prepared[starts[number] : starts[number] + size]
            else:
                class_kernel = rules.class_kernel(kernel, data, weights)
                points = class_kernel.prepare(data)
            gram = symmetric_block(class_kernel, points)
        return ClassPoints(class_kernel, data, points, index, weights, gram, rules.entry_size)

    classes = over_classes(
        class_points,
        training.sizes,
        serial=not kernel.threadsafe,
        report=lambda fraction: report(_SPECTRA_FRACTION * fraction),
    )
    check_diagonals(classes)
    return classes


def _leave_one_out(training: _Training, kernel: Kernel, rules: Rules, report: Report) -> _Trial:
    """Return the leave-one-out results of a kernel for each α."""
    classes, starts = _decompose(training, kernel, rules, report), training.starts
    candidates, n = rules.candidates(classes), len(classes)
    owners = np.repeat(np.arange(n), np.diff(starts))
    weights = np.concatenate([found.weights for found in training.merged])
    residuals = np.empty((len(owners), n, len(candidates)))
    diagonal = np.zeros(len(owners))
    for c, points in enumerate(classes):
        absolute = rules.absolute(candidates, points)
        spanning = np.zeros(len(owners), dtype=bool)
        spanning[starts[c] : starts[c] + len(points.index)] = True
        residuals[spanning, c] = rules.left_out_residuals(points, absolute)
        # other points are new to the class, also its members that do not span its subspace
        gains = rules.filter(absolute).gains(points.spectrum)
        found, largest = _new_residuals(training, points, np.flatnonzero(~spanning), gains)
        residuals[~spanning, c] = found
        diagonal[~spanning] = np.maximum(diagonal[~spanning], largest)
        report(_SPECTRA_FRACTION + (1 - _SPECTRA_FRACTION) * (c + 1) / n)
    residuals = tie_within_rounding(residuals, diagonal)
    correct = np.argmin(residuals, axis=1) == owners[:, None]
    scores = weights @ correct / weights.sum()
    return _Trial(kernel, classes, residuals, owners, weights, scores)


def _new_residuals(
    training: _Training, points: ClassPoints, which: NDArray[np.intp], gains: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return residuals of training points from a class, with a column per gain, and k(x, x)."""
    index = training.index[which]
    with rows_renumbered(index):
        if points.points is None:
            new, diagonal = training.given[index], np.diagonal(training.given)[index]
        else:
            if training.prepared is None:
                data = stacked([found.data for found in training.merged])
                new = points.kernel.prepare(data[which])
            else:
                new = training.prepared[which]
            diagonal = points.kernel.diagonal(new)
        check_overflow(diagonal)
        return remainder(diagonal, points.subspace().captured(new, gains)), diagonal


def _results_for_all_rows(
    training: _Training,
    trial: _Trial,
    number: int,
    residuals_of: Callable[[Any], NDArray[np.float64]],
) -> _Judgement:
    """Return leave-one-out results of all training rows, for the α with index `number`.

    Rows of weight 0 that equal no other row are treated as new points.
    """
    residuals = trial.residuals[:, :, number]
    expanded = np.empty((training.n_rows, residuals.shape[1]))
    for first, rows, found in zip(training.starts, training.members, training.merged, strict=False):
        matched = found.inverse >= 0
        expanded[rows[matched]] = residuals[first + found.inverse[matched]]
    if len(training.alone):
        expanded[training.alone] = residuals_of(training.unmatched_data)
    temperature = residual_temperature(residuals, trial.owners, trial.weights)
    return _Judgement(float(trial.scores[number]), expanded, temperature)


def _best_trial(
    training: _Training, kernels: list[Kernel], rules: Rules, report: Report
) -> tuple[_Trial, int, list[NDArray[np.float64]]]:
    """Return the results of the best kernel, the index of its best α, and all scores."""
    best, scores = None, []
    for i, kernel in enumerate(kernels):

        def report_part(fraction: float, done: int = i) -> None:
            report((done + fraction) / len(kernels))

        trial = _leave_one_out(training, kernel, rules, report_part)
        scores.append(trial.scores)
        # among ties, use the last kernel, which smooths most
        if best is None or trial.scores.max() >= best.scores.max() - 1e-12:
            best = trial
    assert best is not None  # there is at least one kernel
    # among ties, use the largest α, which smooths most; allow for rounding errors of sums
    number = int(np.flatnonzero(best.scores >= best.scores.max() - 1e-12)[-1])
    return best, number, scores


def _fitted_attributes(
    classes: list[ClassPoints], kernel: Kernel, rules: Rules, number: int
) -> dict[str, Any]:
    """Return the fitted attributes for the α with index `number`."""
    alphas = rules.candidates(classes)
    absolute = np.array([float(rules.absolute(alphas[number], points)) for points in classes])
    subspaces = over_classes(
        lambda c: classes[c].subspace(rules.filter(float(absolute[c]))),
        [len(points.index) for points in classes],
    )
    found = {
        "kernel_": kernel,
        "alphas_": alphas,
        "alpha_": float(alphas[number]),
        "class_alphas_": absolute,
        "class_kernels_": [points.kernel for points in classes],
        "support_": np.concatenate([points.index for points in classes]),
        "_subspaces_": subspaces,
    }
    if isinstance(kernel, Precomputed):  # k(x, x) of new points is not known
        found["_mean_diagonal_"] = _mean_square(classes)
    return found


class ClassResidualClassifier(ClassifierMixin, KernelEstimator):
    """Base class of classifiers that choose the class with the smallest residual.

    A subclass defines the rules; see :mod:`orthodrome.classification.filters`. It has the
    parameters ``alpha``, ``alpha_scale``, ``alphas``, ``memory_budget`` and ``verbose``.
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "alpha": or_word("loo", positive(or_zero=True)),
        "alpha_scale": choice("relative", "absolute"),
        "alphas": optional(grid(or_zero=True)),
    }

    # Results of leave-one-out, or the data to compute them. They are in a dict, so that computing
    # them later sets no attribute.
    _later_: dict[str, Any]

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _rules(self) -> Rules:
        """Return the rules for the parameters."""

    def _draw(self) -> Callable[[int], NDArray[np.intp]]:
        """Return a function of n that chooses which of n points span a class; by default all."""
        return np.arange

    def _weights(
        self, labels: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of all points; by default the given ones."""
        return weights

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        """Raise if the fitted kernel cannot be used for the data."""

    def _trial_kernels(self, kernel: Kernel) -> list[Kernel]:
        """Return the fitted kernels to choose from."""
        return [kernel]

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the span of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the row, and 0 to omitting it.

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        """Fit. Not exception-safe; `fit` restores the state."""
        self._check_parameters()
        owner, kernel = type(self).__name__, self._kernel_object()
        X = _in_double_precision(kernel, X, estimator=self)
        weights = check_sample_weight(sample_weight, X.shape[0], owner, np.float64)
        labels = check_targets(y, X.shape[0], owner)
        weights = self._weights(labels, weights)
        present = labels if weights is None else labels[weights > 0]
        counted = "points" if weights is None else "points of positive weight"
        self.classes_ = check_classes(present, owner, counted)
        rules, precomputed = self._rules(), isinstance(kernel, Precomputed)
        members = [np.flatnonzero(labels == label) for label in self.classes_]
        training = _training_of(X, members, weights, precomputed, self._draw())
        _check_memory(training.sizes, self.memory_budget, owner)
        with tracked(self, bool(self.verbose)) as progress, training.blas():
            kernel = _fitted_kernel(kernel, X, weights)
            self._check_kernel(kernel, X)
            training, kernels = training.prepared_by(kernel, rules), self._trial_kernels(kernel)
            report = partial(progress.advance, name="classes")
            # fit must raise for a point antipodal to the reference of another class
            chooses = rules.chooses or precomputed or rules.class_kernel is not None
            if chooses or len(kernels) > 1:
                best, number, scores = _best_trial(training, kernels, rules, report)
                self.__dict__.update(_fitted_attributes(best.classes, best.kernel, rules, number))
                judgement = _results_for_all_rows(training, best, number, self._residuals)
                self._later_ = {"judgement": judgement, "scores": scores}
            else:
                classes = _decompose(training, kernels[0], rules, report)
                self.__dict__.update(_fitted_attributes(classes, kernels[0], rules, 0))
                kept = replace(training, given=None, prepared=None)
                parameters = self.get_params(deep=False)
                self._later_ = {"training": kept, "parameters": parameters}

    def _judgement(self) -> _Judgement:
        """Return leave-one-out results; compute them now if the fit did not need them."""
        check_is_fitted(self)
        if "judgement" not in self._later_:
            # parameters may have changed since the fit
            rules, kernel = type(self)(**self._later_["parameters"])._rules(), self.kernel_
            training = _sort_spanning_first(self._later_["training"]).prepared_by(kernel, rules)
            with training.blas():
                trial = _leave_one_out(training, kernel, rules, lambda fraction: None)
            judgement = _results_for_all_rows(training, trial, 0, self._residuals)
            self._later_ |= {"judgement": judgement, "scores": [trial.scores]}
        return self._later_["judgement"]

    @property
    def loo_score_(self) -> float:
        """Leave-one-out accuracy on the training points."""
        return self._judgement().score

    @property
    def loo_scores_(self) -> NDArray[np.float64]:
        """Leave-one-out accuracy of each kernel and α tried, shape (n_kernels, n_alphas)."""
        self._judgement()
        return np.array(self._later_["scores"])

    @property
    def loo_residuals_(self) -> NDArray[np.float64]:
        """Residuals of the training points; each point is left out of its class."""
        return self._judgement().residuals

    @property
    def temperature_(self) -> float:
        """Temperature of the probabilities; see :meth:`predict_proba`."""
        return self._judgement().temperature

    # ------------------------------------------------------------------ new data

    def class_residuals(self, X: Data) -> NDArray[np.float64]:
        """Return the residual of each point from each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples). The unknown k(x, x) is then replaced by the mean
            of the training diagonal, or by the part that a class captures if that is larger;
            differences between classes do not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Nonnegative residuals, in the order of ``classes_``.
        """
        check_is_fitted(self)
        X = _in_double_precision(self.kernel_, X, estimator=self, reset=False)
        return self._residuals(X)

    def _residuals(self, X: Any) -> NDArray[np.float64]:
        diagonals, captured = captured_by_each(self._subspaces_, X)
        if diagonals is None:
            size = np.maximum(captured.max(axis=1), self._mean_diagonal_)
            return tie_within_rounding(remainder(size, captured), size)
        residuals = diagonals.astype(np.float64) - captured
        return tie_within_rounding(residuals, diagonals.max(axis=1))

    def decision_function(self, X: Data) -> NDArray[np.float64]:
        """Return the negated residuals, or their difference for two classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`class_residuals`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Larger values mean a better fit; for two classes, positive means ``classes_[1]``.
        """
        residuals = self.class_residuals(X)
        return residuals[:, 0] - residuals[:, 1] if len(self.classes_) == 2 else -residuals

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the class with the smallest residual; ties go to the first class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`class_residuals`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        nearest = np.argmin(self.class_residuals(X), axis=1)
        return self.classes_[nearest]

    def predict_proba(self, X: Data) -> NDArray[np.float64]:
        r"""Return the probabilities of the classes.

        .. math:: p_c(x) \propto \exp(-r_c(x) / T)

        The temperature T (``temperature_``) is the same for all classes. It maximises the
        likelihood of the training points when each is left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`class_residuals`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1, in the order of ``classes_``.
        """
        return softmax_of_residuals(self.class_residuals(X), self.temperature_)


def _in_double_precision(kernel: Kernel, X: Any, **options: Any) -> Any:
    """Return validated data as float64; a precomputed matrix keeps its precision.

    Residuals are differences, which rounding errors of float32 would dominate, above all for small
    α.
    """
    X = kernel.validate(X, **options)
    return X if isinstance(kernel, Precomputed) else X.astype(np.float64, copy=False)


def _fitted_kernel(kernel: Kernel, X: Any, weights: NDArray[np.float64] | None) -> Kernel:
    """Return the kernel fitted to the points of all classes."""
    if isinstance(kernel, Precomputed):
        return clone(kernel).fit_validated(X, weights)
    rows = canonical_rows(X, weights)
    with rows_renumbered(rows.index):
        return clone(kernel).fit_validated(rows.data, rows.weights)


def _mean_square(classes: list[ClassPoints]) -> float:
    """Return the weighted mean of k(x, x) over the points of all classes."""
    traces = sum(float(points.weights @ np.diagonal(points.gram).real) for points in classes)
    return traces / sum(float(points.weights.sum()) for points in classes)
