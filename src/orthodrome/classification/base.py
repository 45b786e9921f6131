"""What classifiers share that measure how far a point is from the span of each class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical, canonical_gram, canonical_rows
from .._core.checks import check_classes, check_sample_weight, check_targets
from .._core.memory import format_bytes, parse_bytes
from .._core.parameters import choice, grid, optional, or_word, positive
from .._core.progress import Progress, tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data
from ..base import KernelEstimator, last_fit_kept
from ..gram import gram_operator
from ..kernels import Kernel, Precomputed
from ..kernels.base import symmetric_block
from .calibration import residual_temperature, softmax_of_residuals
from .filters import Filter, leveled, remainder
from .subspaces import (
    SMALL_CLASS,
    ClassPoints,
    captured_by_each,
    check_lengths,
    check_overflow,
    over_classes,
)

__all__ = ["DEFAULT_ALPHAS", "ClassResidualClassifier"]

#: What ``alpha="loo"`` chooses from: 1e-8, 3e-8, 1e-7, … 3, 10.
DEFAULT_ALPHAS = (*[float(f"{d}e{power}") for power in range(-8, 1) for d in (1, 3)], 10.0)

# Of the progress bar: about what the decompositions take of a fit, beside leave-one-out.
_SPECTRA_SHARE = 0.6


@dataclass(frozen=True)
class _Trial:
    """What leave-one-out says of a kernel, for each α.

    ``residuals`` has shape (n, n_classes, n_alphas), for the different points of all classes, one
    class after the other, those beside the subspaces too; ``owners`` are their classes, and
    ``scores`` the share that is recognised.
    """

    kernel: Kernel
    classes: list[ClassPoints]
    residuals: NDArray[np.float64]
    owners: NDArray[np.intp]
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class _Training:
    """The training points of each class, as leave-one-out needs them.

    ``members`` are the rows of each class, ``merged`` its different points, ``chosen`` which of
    these span its subspace; ``alone`` the rows of weight 0 that equal no other, and ``strays`` what
    they are. ``given`` is the data as they came, None when they are not to be had any more, and
    ``prepared`` the different points of all classes, as the kernel has prepared them: other scales
    of the kernel need no more. None where classes have kernels of their own.
    """

    members: list[NDArray[np.intp]]
    merged: list[Canonical]
    chosen: list[NDArray[np.intp]]
    n_rows: int
    alone: NDArray[np.intp]
    strays: Any
    given: Any
    prepared: Any = None

    def places(self) -> list[NDArray[np.intp]]:
        """Return where the different points of each class are in ``prepared``."""
        ends = np.cumsum([len(found.weights) for found in self.merged])
        return [np.arange(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True)]

    def stacked(self) -> Any:
        """Return the different points of all classes, one class after the other."""
        parts = [found.data for found in self.merged]
        if scipy.sparse.issparse(parts[0]):
            return scipy.sparse.vstack(parts, format="csr")
        return np.concatenate(parts)


@dataclass(frozen=True)
class _Judgement:
    """What leave-one-out says of the fit."""

    score: float
    residuals: NDArray[np.float64]
    temperature: float


@contextmanager
def _checked_again(check: Callable[[], Any]) -> Iterator[None]:
    """After an error, make a check on the caller's rows, whose numbers it names."""
    try:
        yield
    except ValueError:
        check()
        raise


class ClassResidualClassifier(ClassifierMixin, KernelEstimator):
    """Base of the classifiers that put a point in the class from whose span it is the least far.

    A subclass supplies the filter of a class's spectrum; see
    :mod:`orthodrome.classification.filters`. It has the parameters ``alpha``, ``alpha_scale``,
    ``alphas``, ``memory_budget`` and ``verbose``.
    """

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "alpha": or_word("loo", positive(or_zero=True)),
        "alpha_scale": choice("relative", "absolute"),
        "alphas": optional(grid(or_zero=True)),
    }

    alpha: Any
    alpha_scale: str
    alphas: Any

    # What leave-one-out needs, or said. Not attributes, so that asking changes no attribute.
    _later_: dict[str, Any]

    # ------------------------------------------------------------------ of the subclass

    @abstractmethod
    def _filter(self, alpha: float | NDArray[np.float64]) -> Filter:
        """Return the filter for an absolute α, or for several."""

    @abstractmethod
    def _left_out(self, points: ClassPoints, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the residual of each point from the others, a column for each absolute α."""

    def _class_kernel(self, data: Any, weights: NDArray[np.float64]) -> Kernel:
        """Return the fitted kernel of a class."""
        return self.kernel_

    def _entry_size(self) -> float | None:
        """Return how large the terms are whose difference an entry of a Gram matrix is."""
        return None

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the span of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
        y : array-like of shape (n_samples,)
            The class of each, numbers or strings.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; a weight of 2 is the same as the row written twice, 0 as the row left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        """Fit; what fails on the way may leave anything behind."""
        self._check_parameters()
        X = _in_double_precision(self._kernel_object(), X, estimator=self)
        weights = check_sample_weight(sample_weight, X.shape[0], type(self).__name__, np.float64)
        labels = check_targets(y, X.shape[0], type(self).__name__)
        weights = self._weights(labels, weights)
        present = labels if weights is None else labels[weights > 0]
        of = "points" if weights is None else "points of positive weight"
        self.classes_ = check_classes(present, type(self).__name__, of)
        members = [np.flatnonzero(labels == label) for label in self.classes_]
        training = self._training(X, members, weights)
        with tracked(self, bool(self.verbose)) as progress, _blas_for(training):
            with _checked_again(lambda: self._fit_kernel(X, weights).prepare(X)):
                self._prepare_kernel(X, weights)
            training = self._prepared(training)
            kernels = self._trial_kernels(X, weights)
            if len(kernels) == 1 and self._judged_later():
                self._settle(self._decomposed(training, kernels[0], partial(_advance, progress)))
                self._later_ = {
                    "training": replace(training, given=None, prepared=None),
                    "parameters": self.get_params(deep=False),
                }
            else:
                self._choose(training, kernels, progress)

    def _judged_later(self) -> bool:
        """Whether leave-one-out can wait until it is asked for: there is nothing to choose."""
        known = not isinstance(self.alpha, str)
        return known and not isinstance(self._kernel_object(), Precomputed)

    def _choose(self, training: _Training, kernels: list[Kernel], progress: Progress) -> None:
        """Take of the kernels and of the values of α those that leave-one-out likes best."""
        best, scores = None, []
        for i, kernel in enumerate(kernels):
            report = partial(_advance, progress, number=i, of=len(kernels))
            trial = self._tried(training, kernel, report)
            scores.append(trial.scores)
            # of kernels that tie the last, which smooths most
            if best is None or trial.scores.max() >= best.scores.max() - 1e-12:
                best = trial
        assert best is not None  # there is at least one kernel
        self.kernel_ = best.kernel
        # of the best the largest, which smooths most; sums in another order may differ in a bit
        winner = int(np.flatnonzero(best.scores >= best.scores.max() - 1e-12)[-1])
        self._settle(best.classes, winner)
        self._later_ = {"judgement": self._judged(training, best, winner), "scores": scores}

    def _candidates(self, classes: list[ClassPoints]) -> NDArray[np.float64]:
        """Return the values of alpha to choose from, ascending."""
        if not isinstance(self.alpha, str):
            return np.array([float(self.alpha)])
        if self.alphas is not None:
            return np.unique(np.asarray(self.alphas, dtype=np.float64))
        unit = _mean_square(classes) if self.alpha_scale == "absolute" else 1.0
        return np.array(DEFAULT_ALPHAS) * unit

    def _merged(
        self, X: Any, rows: NDArray[np.intp], weights: NDArray[np.float64] | None
    ) -> Canonical:
        """Merge the equal points of a class into weights."""
        given = None if weights is None else weights[rows]
        if isinstance(self._kernel_object(), Precomputed):
            return canonical_gram(X[np.ix_(rows, rows)], given)
        return canonical_rows(X[rows], given)

    def _refuse_large_classes(self, sizes: list[int]) -> None:
        """Raise before any work if the matrices of the classes do not fit."""
        # in float64: each matrix and its eigenvectors, and what the largest needs on the way
        needed = sum(2 * 8 * n * n for n in sizes) + 4 * 8 * max(sizes) ** 2
        budget = parse_bytes(self.memory_budget)
        if needed > max(budget, 2**23):  # a few megabytes are never refused
            raise ValueError(
                f"{type(self).__name__} decomposes the Gram matrix of each class, {max(sizes)} x "
                f"{max(sizes)} for the largest. They take {format_bytes(needed)}, and "
                f"memory_budget is {format_bytes(budget)}. Raise memory_budget, or fit to fewer "
                "points."
            )

    def _spanning(self, n: int) -> NDArray[np.intp]:
        """Return which of the n different points of a class span its subspace: all."""
        return np.arange(n)

    def _weights(
        self, labels: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of all points: those that were given."""
        return weights

    def _trial_kernels(self, X: Any, weights: NDArray[np.float64] | None) -> list[Kernel]:
        """Return the fitted kernels to choose from: the one that there is."""
        return [self.kernel_]

    def _prepare_kernel(self, X: Any, weights: NDArray[np.float64] | None) -> None:
        """Fit one kernel to the points of all classes."""
        if isinstance(self._kernel_object(), Precomputed):
            self.kernel_ = self._fit_kernel(X, weights)
        else:
            rows = canonical_rows(X, weights)
            self.kernel_ = self._fit_kernel(rows.data, rows.weights)

    def _training(
        self, X: Any, members: list[NDArray[np.intp]], weights: NDArray[np.float64] | None
    ) -> _Training:
        """Merge the equal points of each class, and draw those that span it."""
        merged = [self._merged(X, rows, weights) for rows in members]
        chosen = [self._spanning(len(found.weights)) for found in merged]
        self._refuse_large_classes([len(each) for each in chosen])
        with_twin = np.zeros(X.shape[0], dtype=bool)
        for rows, found in zip(members, merged, strict=True):
            with_twin[rows[found.inverse >= 0]] = True
        alone = np.flatnonzero(~with_twin)
        return _Training(members, merged, chosen, X.shape[0], alone, X[alone], X)

    def _prepared(self, training: _Training) -> _Training:
        """Prepare the points of all classes for the kernel, if they share one."""
        if isinstance(self.kernel_, Precomputed) or not self._one_kernel():
            return training
        with self._rows_named(training, self.kernel_):
            return replace(training, prepared=self.kernel_.prepare(training.stacked()))

    def _one_kernel(self) -> bool:
        """Whether all classes have the same kernel."""
        return True

    def _class_points(self, training: _Training, number: int) -> ClassPoints:
        """Return the chosen ones of the different points of a class, and their Gram matrix."""
        rows, found = training.members[number], training.merged[number]
        chosen = training.chosen[number]
        square = isinstance(self._kernel_object(), Precomputed)
        if len(chosen) == len(found.weights):
            data = found.data
        else:
            data = found.data[np.ix_(chosen, chosen)] if square else found.data[chosen]
        weights = found.weights[chosen]
        beside = np.setdiff1d(np.arange(len(found.weights)), chosen)
        kernel = self._class_kernel(data, weights)
        points = None
        if training.prepared is not None:
            points = training.prepared[training.places()[number][chosen]]
        elif not square:
            points = kernel.prepare(data)
        with single_threaded_blas():
            if points is None:
                gram = gram_operator(kernel, data, storage="recompute").toarray()
            else:
                gram = symmetric_block(kernel, points)
        place = np.full(len(found.weights) + 1, -1)  # the last for rows without a twin
        place[np.concatenate([chosen, beside])] = np.arange(len(found.weights))
        return ClassPoints(
            kernel=kernel,
            data=None if square else data,
            points=points,
            index=rows[found.index[chosen]],
            members=rows,
            inverse=place[found.inverse],
            weights=weights,
            gram=gram,
            entry_size=self._entry_size(),
            beside=rows[found.index[beside]],
            beside_weights=found.weights[beside],
        )

    def _absolute(self, alphas: NDArray[np.float64], points: ClassPoints) -> NDArray[Any]:
        return alphas * (points.spectrum.largest if self.alpha_scale == "relative" else 1.0)

    def _decomposed(
        self, training: _Training, kernel: Kernel, report: Callable[[float], None]
    ) -> list[ClassPoints]:
        """Decompose the Gram matrix of each class."""
        self.kernel_ = kernel
        with self._rows_named(training, kernel):
            classes = over_classes(
                lambda number: self._class_points(training, number),
                [len(each) for each in training.chosen],
                serial=not kernel.threadsafe,
                report=lambda fraction: report(_SPECTRA_SHARE * fraction),
            )
        check_lengths(classes)
        return classes

    @staticmethod
    def _rows_named(training: _Training, kernel: Kernel) -> AbstractContextManager[Any]:
        """Let a message that names a row name that of the data as they came."""
        if training.given is None:
            return nullcontext()
        return _checked_again(lambda: kernel.prepare(training.given))

    def _tried(
        self, training: _Training, kernel: Kernel, report: Callable[[float], None]
    ) -> _Trial:
        """Decompose the classes with a kernel, and leave out each point."""
        classes = self._decomposed(training, kernel, report)
        candidates = self._candidates(classes)
        absolute = [self._absolute(candidates, points) for points in classes]
        owners = np.repeat(np.arange(len(classes)), [len(points.every) for points in classes])
        spanning = np.concatenate([points.spanning for points in classes])
        weights = np.concatenate([points.every_weight for points in classes])
        residuals = np.empty((len(owners), len(classes), len(candidates)))
        sizes = np.zeros(len(owners))
        newcomers = _Newcomers.of(training, classes)
        for c, points in enumerate(classes):
            own = (owners == c) & spanning  # the others are new points to the class
            residuals[own, c] = self._left_out(points, absolute[c])
            gains = self._filter(absolute[c]).gains(points.spectrum)
            with self._rows_named(training, points.kernel):
                found, size = newcomers.residuals(points, np.flatnonzero(~own), gains)
            residuals[~own, c], sizes[~own] = found, np.maximum(sizes[~own], size)
            report(_SPECTRA_SHARE + (1 - _SPECTRA_SHARE) * (c + 1) / len(classes))
        residuals = leveled(residuals, sizes)
        scores = _accuracies(residuals, owners, weights)
        return _Trial(kernel, classes, residuals, owners, scores)

    def _settle(self, classes: list[ClassPoints], number: int = 0) -> None:
        """Keep what places new points, with the α of this number."""
        self.alphas_ = self._candidates(classes)
        self.alpha_ = float(self.alphas_[number])
        chosen = np.array([self.alpha_])
        self.class_alphas_ = np.array([self._absolute(chosen, points)[0] for points in classes])
        self.class_kernels_ = [points.kernel for points in classes]
        self.support_ = np.concatenate([points.index for points in classes])
        self._subspaces_ = over_classes(
            lambda number: classes[number].subspace(
                self._filter(float(self.class_alphas_[number]))
            ),
            [len(points.index) for points in classes],
        )
        if isinstance(self.kernel_, Precomputed):  # k(x, x) of new points is not known
            self._mean_diagonal_ = _mean_square(classes)

    # ------------------------------------------------------------------ leave-one-out

    def _judged(self, training: _Training, trial: _Trial, number: int) -> _Judgement:
        """Return what leave-one-out says with the α of this number."""
        residuals = trial.residuals[:, :, number]
        weights = np.concatenate([points.every_weight for points in trial.classes])
        return _Judgement(
            score=float(trial.scores[number]),
            residuals=self._for_all_rows(training, trial.classes, residuals),
            temperature=residual_temperature(residuals, trial.owners, weights),
        )

    def _for_all_rows(
        self, training: _Training, classes: list[ClassPoints], residuals: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Give every training row the residuals of its twin; one without any is a new point."""
        every = np.empty((training.n_rows, len(classes)))
        first = 0
        for points in classes:
            twins = points.inverse >= 0
            every[points.members[twins]] = residuals[first + points.inverse[twins]]
            first += len(points.every)
        if len(training.alone):
            every[training.alone] = self._residuals(training.strays)
        return every

    def _judgement(self) -> _Judgement:
        """Return what leave-one-out says; if nothing was chosen by it, only now computed."""
        check_is_fitted(self)
        if "judgement" not in self._later_:
            training = self._as_fitted()._prepared(self._later_["training"])
            with _blas_for(training):
                trial = self._as_fitted()._tried(training, self.kernel_, lambda fraction: None)
            self._later_ |= {
                "judgement": self._judged(training, trial, 0),
                "scores": [trial.scores],
            }
        return self._later_["judgement"]

    def _as_fitted(self) -> Self:
        """Return the same with the parameters of the fit, whatever they are by now."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__ | self._later_["parameters"])
        return found

    @property
    def loo_score_(self) -> float:
        """The share of training points that are recognised when each is left out."""
        return self._judgement().score

    @property
    def loo_scores_(self) -> NDArray[np.float64]:
        """The same for each kernel and each α that was tried, shape (n_kernels, n_alphas)."""
        self._judgement()
        return np.array(self._later_["scores"])

    @property
    def loo_residuals_(self) -> NDArray[np.float64]:
        """The residuals of the training points, from their own class without them."""
        return self._judgement().residuals

    @property
    def temperature_(self) -> float:
        """Of the probabilities; see :meth:`predict_proba`."""
        return self._judgement().temperature

    # ------------------------------------------------------------------ new data

    def class_residuals(self, X: Data) -> NDArray[np.float64]:
        """Return how far each point is from each class; the nearer, the smaller.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples). There k(x, x), which is not known, is taken to
            be the mean of the training diagonal, or what a class captures if that is more: the
            differences between classes do not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Residuals, not negative, in the order of ``classes_``.
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
        """Return the negated residuals; for two classes how much nearer the second is.

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
        """Return the class from which each point is the least far; the first, where several tie.

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

        with one temperature T for all classes, that of greatest likelihood for the training points
        when each is left out (``temperature_``). They order the classes as the residuals do.

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

    def __sklearn_is_fitted__(self) -> bool:
        # a fit that fails after its input was checked leaves n_features_in_ and nothing else
        return hasattr(self, "kernel_")


def _in_double_precision(kernel: Kernel, X: Any, **options: Any) -> Any:
    """Return validated data as float64; of a precomputed matrix the precision stays what it is.

    Residuals are differences. What float32 leaves of them is decided by rounding, and the more so
    the smaller α is.
    """
    X = kernel.validate(X, **options)
    return X if isinstance(kernel, Precomputed) else X.astype(np.float64, copy=False)


def _blas_for(training: _Training) -> AbstractContextManager[None]:
    """Limit BLAS to one thread for many small matrices: its threads would wait for each other."""
    largest = max(len(each) for each in training.chosen)
    return single_threaded_blas() if largest <= SMALL_CLASS else nullcontext()


def _advance(progress: Progress, fraction: float, number: int = 0, of: int = 1) -> None:
    progress.advance((number + fraction) / of, "classes")


@dataclass(frozen=True)
class _Newcomers:
    """The different points of all classes, as new points to each: those that span it first."""

    training: _Training
    index: NDArray[np.intp]  # rows of the training data
    order: NDArray[np.intp]  # rows of what is stacked

    @staticmethod
    def of(training: _Training, classes: list[ClassPoints]) -> _Newcomers:
        order = [
            np.concatenate([place[chosen], np.setdiff1d(place, place[chosen])])
            for place, chosen in zip(training.places(), training.chosen, strict=True)
        ]
        index = [points.every for points in classes]
        return _Newcomers(training, np.concatenate(index), np.concatenate(order))

    def residuals(
        self, points: ClassPoints, which: NDArray[np.intp], gains: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Return those of some of them from a class, a column for each of the gains; k(x, x)."""
        if points.points is None:
            rows = self.index[which]
            new, own = self.training.given[rows], np.diagonal(self.training.given)[rows]
        else:
            rows = self.order[which]
            if self.training.prepared is None:
                new = points.kernel.prepare(self.training.stacked()[rows])
            else:
                new = self.training.prepared[rows]
            own = points.kernel.diagonal(new)
        check_overflow(own, self.index[which])
        return remainder(own, points.subspace().captured(new, gains)), own


def _accuracies(
    residuals: NDArray[np.float64], owners: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weighted share of points whose own class has the least residual, per column."""
    right = np.argmin(residuals, axis=1) == owners[:, None]
    return weights @ right / weights.sum()


def _mean_square(classes: list[ClassPoints]) -> float:
    """Return the weighted mean of k(x, x) over the points of all classes."""
    traces = sum(float(points.weights @ np.diagonal(points.gram).real) for points in classes)
    return traces / sum(float(points.weights.sum()) for points in classes)
