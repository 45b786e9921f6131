"""Base class of the classifiers by residuals from the span of each class."""

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
from .._core.checks import check_classes, check_sample_weight, check_targets
from .._core.memory import format_bytes, parse_bytes
from .._core.parameters import choice, grid, optional, or_word, positive
from .._core.progress import tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..base import KernelEstimator, last_fit_kept, rows_renumbered
from ..kernels import Kernel, Precomputed
from ..kernels.base import symmetric_block
from ..rows.base import stacked
from .calibration import residual_temperature, softmax_of_residuals
from .filters import leveled, remainder
from .subspaces import (
    SMALL_CLASS,
    ClassPoints,
    captured_by_each,
    check_lengths,
    check_overflow,
    over_classes,
)

#: Values of α for ``alpha="loo"``: 1e-8, 3e-8, 1e-7, … 3, 10.
DEFAULT_ALPHAS = (*[float(f"{d}e{power}") for power in range(-8, 1) for d in (1, 3)], 10.0)

# Progress bar: approximate share of the decompositions in the time of a fit; the rest is
# leave-one-out.
_SPECTRA_SHARE = 0.6

Report = Callable[[float], None]


@dataclass(frozen=True)
class Rules:
    """How residuals from a class are computed, and which values of α are tried.

    ``alpha``, ``alpha_scale`` and ``alphas`` are parameters of the estimators. ``filter(alpha)``
    makes the filter for an absolute α, or for several. ``left_out(points, alphas)`` returns the
    residual of each point of a class from the others, a column for each absolute α; by default that
    of the filter. ``class_kernel(kernel, data, weights)`` fits the kernel of a class; it is None if
    all classes share one. ``entry_size`` is that of `class_spectrum`.
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
        """Return the residual of each point from the others, a column for each absolute α."""
        if self.left_out is not None:
            return self.left_out(points, alphas)
        return self.filter(alphas).left_out(points.spectrum)


# ---------------------------------------------------------------------- training points


@dataclass(frozen=True)
class _Training:
    """The training points of each class, for leave-one-out.

    ``members`` are the rows of each class, ``merged`` its distinct points, those that span its
    subspace first, and ``chosen`` the numbers of the latter. ``alone`` are the rows of weight 0
    that equal no other, ``strays`` their data. ``given`` is the data, or None if they were not
    kept. ``prepared`` are the distinct points of all classes, prepared by the kernel; kernels that
    differ in scale only can use the same. It is None if each class has its own kernel.
    """

    members: list[NDArray[np.intp]]
    merged: list[Canonical]
    chosen: list[NDArray[np.intp]]
    n_rows: int
    alone: NDArray[np.intp]
    strays: Any
    given: Any
    prepared: Any = None

    @property
    def sizes(self) -> list[int]:
        """The number of points that span the subspace of each class."""
        return [len(each) for each in self.chosen]

    @property
    def starts(self) -> NDArray[np.intp]:
        """The first distinct point of each class among those of all, and their total number."""
        return np.cumsum([0, *[len(found.weights) for found in self.merged]])

    @property
    def index(self) -> NDArray[np.intp]:
        """A row of the training data for each distinct point of all classes."""
        pairs = zip(self.members, self.merged, strict=True)
        return np.concatenate([rows[found.index] for rows, found in pairs])

    def blas(self) -> AbstractContextManager[None]:
        """Limit BLAS to one thread for small matrices: its threads would wait for each other."""
        return single_threaded_blas() if max(self.sizes) <= SMALL_CLASS else nullcontext()

    def prepared_by(self, kernel: Kernel, rules: Rules) -> _Training:
        """Prepare the points of all classes for the kernel, if they share one."""
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
    """Merge the equal points of each class; ``draw(n)`` chooses which of n points span it."""
    with_twin, merged, sizes = np.zeros(X.shape[0], dtype=bool), [], []
    for rows in members:
        given = None if weights is None else weights[rows]
        if precomputed:
            found = canonical_gram(X[np.ix_(rows, rows)], given)
        else:
            found = canonical_rows(X[rows], given)
        with_twin[rows[found.inverse >= 0]] = True
        chosen = draw(len(found.weights))
        merged.append(_spanning_first(found, chosen, precomputed))
        sizes.append(np.arange(len(chosen)))
    alone = np.flatnonzero(~with_twin)
    return _Training(members, merged, sizes, X.shape[0], alone, X[alone], X)


def _spanning_first(found: Canonical, chosen: NDArray[np.intp], precomputed: bool) -> Canonical:
    """Sort the distinct points of a class so that the chosen ones come first."""
    n = len(found.weights)
    if len(chosen) == n:
        return found
    order = np.concatenate([chosen, np.setdiff1d(np.arange(n), chosen)])
    place = np.append(np.argsort(order), -1)  # -1 for rows without a twin
    data = found.data[np.ix_(order, order)] if precomputed else found.data[order]
    return Canonical(data, found.weights[order], found.index[order], place[found.inverse])


def _sorted(training: _Training) -> _Training:
    """Put the points that span a class first; in model files of 0.1.0.dev0 they may not be."""
    pairs = zip(training.merged, training.chosen, strict=True)
    merged = [_spanning_first(found, chosen, precomputed=False) for found, chosen in pairs]
    return replace(training, merged=merged, chosen=[np.arange(size) for size in training.sizes])


def _refuse_large_classes(sizes: list[int], memory_budget: Any, owner: str) -> None:
    """Raise before any work if the matrices of the classes do not fit."""
    # in float64: each matrix and its eigenvectors, and the workspace of the largest
    largest, budget = max(sizes), parse_bytes(memory_budget)
    needed = sum(2 * 8 * n * n for n in sizes) + 4 * 8 * largest**2
    if needed > max(budget, 2**23):  # a few megabytes are never refused
        raise ValueError(
            f"{owner} decomposes the Gram matrix of each class, {largest} x {largest} for the "
            f"largest. They take {format_bytes(needed)}, and memory_budget is "
            f"{format_bytes(budget)}. Raise memory_budget, or fit to fewer points."
        )


# ---------------------------------------------------------------------- fitting


@dataclass(frozen=True)
class _Trial:
    """Leave-one-out results of a kernel, for each α.

    ``residuals`` has shape (n, n_classes, n_alphas), for the distinct points of all classes;
    ``owners`` are their classes, ``weights`` their weights, and ``scores`` the weighted fraction
    that is classified correctly.
    """

    kernel: Kernel
    classes: list[ClassPoints]
    residuals: NDArray[np.float64]
    owners: NDArray[np.intp]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class _Judgement:
    """Leave-one-out results of the fit."""

    score: float
    residuals: NDArray[np.float64]
    temperature: float


def _decomposed(
    training: _Training, kernel: Kernel, rules: Rules, report: Report
) -> list[ClassPoints]:
    """Return the points of each class, and their Gram matrix."""
    starts = training.starts

    def class_points(number: int) -> ClassPoints:
        found, size = training.merged[number], training.sizes[number]
        index, weights = training.members[number][found.index[:size]], found.weights[:size]
        if isinstance(kernel, Precomputed):
            gram = found.data[:size, :size]
            return ClassPoints(kernel, None, None, index, weights, gram, None)
        own, data = kernel, found.data[:size]
        with single_threaded_blas(), rows_renumbered(index):
            if rules.class_kernel is None:
                points = training.prepared[starts[number] : starts[number] + size]
            else:
                own = rules.class_kernel(kernel, data, weights)
                points = own.prepare(data)
            gram = symmetric_block(own, points)
        return ClassPoints(own, data, points, index, weights, gram, rules.entry_size)

    classes = over_classes(
        class_points,
        training.sizes,
        serial=not kernel.threadsafe,
        report=lambda fraction: report(_SPECTRA_SHARE * fraction),
    )
    check_lengths(classes)
    return classes


def _tried(training: _Training, kernel: Kernel, rules: Rules, report: Report) -> _Trial:
    """Decompose the classes with a kernel, and leave out each point."""
    classes, starts = _decomposed(training, kernel, rules, report), training.starts
    candidates, n = rules.candidates(classes), len(classes)
    owners = np.repeat(np.arange(n), np.diff(starts))
    weights = np.concatenate([found.weights for found in training.merged])
    residuals = np.empty((len(owners), n, len(candidates)))
    sizes = np.zeros(len(owners))
    for c, points in enumerate(classes):
        absolute = rules.absolute(candidates, points)
        own = np.zeros(len(owners), dtype=bool)
        own[starts[c] : starts[c] + len(points.index)] = True
        residuals[own, c] = rules.left_out_residuals(points, absolute)
        # all others are new points to the class, also those of it that do not span its subspace
        gains = rules.filter(absolute).gains(points.spectrum)
        found, size = _new_residuals(training, points, np.flatnonzero(~own), gains)
        residuals[~own, c], sizes[~own] = found, np.maximum(sizes[~own], size)
        report(_SPECTRA_SHARE + (1 - _SPECTRA_SHARE) * (c + 1) / n)
    residuals = leveled(residuals, sizes)
    right = np.argmin(residuals, axis=1) == owners[:, None]
    return _Trial(kernel, classes, residuals, owners, weights, weights @ right / weights.sum())


def _new_residuals(
    training: _Training, points: ClassPoints, which: NDArray[np.intp], gains: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the residuals of some training points from a class, one column per gain; k(x, x)."""
    index = training.index[which]
    with rows_renumbered(index):
        if points.points is None:
            new, own = training.given[index], np.diagonal(training.given)[index]
        else:
            if training.prepared is None:
                data = stacked([found.data for found in training.merged])
                new = points.kernel.prepare(data[which])
            else:
                new = training.prepared[which]
            own = points.kernel.diagonal(new)
        check_overflow(own)
        return remainder(own, points.subspace().captured(new, gains)), own


def _judged(
    training: _Training,
    trial: _Trial,
    number: int,
    residuals_of: Callable[[Any], NDArray[np.float64]],
) -> _Judgement:
    """Return leave-one-out results with the α of this number, for all training rows.

    A row without a twin is a new point.
    """
    residuals = trial.residuals[:, :, number]
    every = np.empty((training.n_rows, residuals.shape[1]))
    for first, rows, found in zip(training.starts, training.members, training.merged, strict=False):
        twins = found.inverse >= 0
        every[rows[twins]] = residuals[first + found.inverse[twins]]
    if len(training.alone):
        every[training.alone] = residuals_of(training.strays)
    temperature = residual_temperature(residuals, trial.owners, trial.weights)
    return _Judgement(float(trial.scores[number]), every, temperature)


def _best_trial(
    training: _Training, kernels: list[Kernel], rules: Rules, report: Report
) -> tuple[_Trial, int, list[NDArray[np.float64]]]:
    """Return the trial of the best kernel, the number of its best α, and all scores."""
    best, scores = None, []
    for i, kernel in enumerate(kernels):

        def part(fraction: float, done: int = i) -> None:
            report((done + fraction) / len(kernels))

        trial = _tried(training, kernel, rules, part)
        scores.append(trial.scores)
        # among kernels that tie take the last, which smooths most
        if best is None or trial.scores.max() >= best.scores.max() - 1e-12:
            best = trial
    assert best is not None  # there is at least one kernel
    # among ties take the largest α, which smooths most; sums in another order may differ in a bit
    number = int(np.flatnonzero(best.scores >= best.scores.max() - 1e-12)[-1])
    return best, number, scores


def _settled(classes: list[ClassPoints], kernel: Kernel, rules: Rules, number: int) -> Any:
    """Return the fitted attributes that place new points, with the α of this number."""
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
    """Base of the classifiers that choose the class with the smallest residual.

    A subclass supplies the rules; see :mod:`orthodrome.classification.filters`. It has the
    parameters ``alpha``, ``alpha_scale``, ``alphas``, ``memory_budget`` and ``verbose``.
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "alpha": or_word("loo", positive(or_zero=True)),
        "alpha_scale": choice("relative", "absolute"),
        "alphas": optional(grid(or_zero=True)),
    }

    # Results of leave-one-out, or what is needed to compute them. A dict, so that computing them
    # later changes no attribute.
    _later_: dict[str, Any]

    # ------------------------------------------------------------------ of the subclass

    @abstractmethod
    def _rules(self) -> Rules:
        """Return the rules for the parameters."""

    def _draw(self) -> Callable[[int], NDArray[np.intp]]:
        """Return a function of n that chooses which of n points span a class: all."""
        return np.arange

    def _weights(
        self, labels: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of all points: those that were given."""
        return weights

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        """Raise if the fitted kernel cannot be used for the data."""

    def _trial_kernels(self, kernel: Kernel) -> list[Kernel]:
        """Return the fitted kernels to choose from."""
        return [kernel]

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the span of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; 2 means the same as repeating the row, 0 as leaving it out.

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
        of = "points" if weights is None else "points of positive weight"
        self.classes_ = check_classes(present, owner, of)
        rules, precomputed = self._rules(), isinstance(kernel, Precomputed)
        members = [np.flatnonzero(labels == label) for label in self.classes_]
        training = _training_of(X, members, weights, precomputed, self._draw())
        _refuse_large_classes(training.sizes, self.memory_budget, owner)
        with tracked(self, bool(self.verbose)) as progress, training.blas():
            kernel = _fitted_kernel(kernel, X, weights)
            self._check_kernel(kernel, X)
            training, kernels = training.prepared_by(kernel, rules), self._trial_kernels(kernel)
            report = partial(progress.advance, name="classes")
            # a point antipodal to the reference of another class must be an error of fit
            chooses = rules.chooses or precomputed or rules.class_kernel is not None
            if chooses or len(kernels) > 1:
                best, number, scores = _best_trial(training, kernels, rules, report)
                self.__dict__.update(_settled(best.classes, best.kernel, rules, number))
                judgement = _judged(training, best, number, self._residuals)
                self._later_ = {"judgement": judgement, "scores": scores}
            else:
                classes = _decomposed(training, kernels[0], rules, report)
                self.__dict__.update(_settled(classes, kernels[0], rules, 0))
                kept = replace(training, given=None, prepared=None)
                parameters = self.get_params(deep=False)
                self._later_ = {"training": kept, "parameters": parameters}

    def _judgement(self) -> _Judgement:
        """Return leave-one-out results; compute them now if nothing was chosen by them."""
        check_is_fitted(self)
        if "judgement" not in self._later_:
            # parameters may have changed since the fit
            rules, kernel = type(self)(**self._later_["parameters"])._rules(), self.kernel_
            training = _sorted(self._later_["training"]).prepared_by(kernel, rules)
            with training.blas():
                trial = _tried(training, kernel, rules, lambda fraction: None)
            judgement = _judged(training, trial, 0, self._residuals)
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
        """Residuals of the training points, from their own class without them."""
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
            shape (n_samples, n_training_samples). Then k(x, x) is not known. It is replaced by the
            mean of the training diagonal, or by what a class captures if that is more; differences
            between classes do not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Nonnegative residuals, in the order of ``classes_``.
        """
        check_is_fitted(self)
        X = _in_double_precision(self.kernel_, X, estimator=self, reset=False)
        return self._residuals(X)

    def _residuals(self, X: Any) -> NDArray[np.float64]:
        own, taken = captured_by_each(self._subspaces_, X)
        if own is None:
            size = np.maximum(taken.max(axis=1), self._mean_diagonal_)
            return leveled(remainder(size, taken), size)
        return leveled(own.astype(np.float64) - taken, own.max(axis=1))

    def decision_function(self, X: Data) -> NDArray[np.float64]:
        """Return the negated residuals; for two classes their difference.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`class_residuals`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The larger, the better; for two classes positive means ``classes_[1]``.
        """
        residuals = self.class_residuals(X)
        return residuals[:, 0] - residuals[:, 1] if len(self.classes_) == 2 else -residuals

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the class with the smallest residual; the first of those that tie.

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
        r"""Return probabilities of the classes.

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

    Residuals are differences: in float32 rounding would decide them, the more so for small α.
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
