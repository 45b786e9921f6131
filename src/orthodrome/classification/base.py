"""Base class of classifiers that compare residuals from the span of each class."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import canonical_rows
from .._core.checks import check_classes, check_sample_weight, check_targets, rows_renumbered
from .._core.parameters import choice, grid, optional, or_word, positive
from .._core.progress import tracked, with_callbacks
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats, Indices
from ..base import KernelEstimator, last_fit_kept, with_parameters
from ..kernels import Embedded, Kernel, Laplacian, Normalized, Precomputed
from ..kernels.wrappers import inner_kernel
from .calibration import residual_temperature, softmax_of_residuals
from .filters import TIE_TOL, Filter, tie_within_rounding
from .subspaces import (
    GROUP_POINTS,
    ClassGroup,
    TrainingPoints,
    _Training,
    check_diagonals,
    check_memory,
    check_overflow,
    class_residuals,
    diagonal_blocks,
    in_groups,
    mean_square,
    over_groups,
    row_blocks,
    training_points,
)

#: Values of α for ``alpha="loo"``: 1e-8, 3e-8, 1e-7, … 3, 10.
DEFAULT_ALPHAS = (*[float(f"{d}e{power}") for power in range(-8, 1) for d in (1, 3)], 10.0)

#: Multiples of the kernel's scale for ``sigmas="auto"``.
SIGMA_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

# Multiples of the rate of the Laplacian kernel for ``kernel="auto"``.
_RATE_FACTORS = (2.0, 1.0)

# Maximum number of leave-one-out residuals to keep: 128 MiB in float64.
_MAX_RESIDUALS = 2**24

# Fraction of the progress bar for the decompositions; leave-one-out follows.
_SPECTRA_FRACTION = 0.6

Report = Callable[[float], None]


@dataclass(frozen=True)
class Rules:
    """Definition of the residuals from a class, and the values of α to try.

    ``alpha``, ``alpha_scale`` and ``alphas`` are parameters of the estimators.
    ``left_out(group, alphas)`` returns the residual of each point of a class from the others; by
    default, the filter computes it. ``class_kernel(kernel, data, weights)`` fits the kernel of a
    class; it is None if all classes share one kernel. ``entry_size`` is passed to `class_spectrum`.
    """

    alpha: Any
    alpha_scale: str
    alphas: Any
    filter: Filter
    left_out: Callable[[ClassGroup, Floats], Floats] | None = None
    class_kernel: Callable[[Kernel, Any, Floats], Kernel] | None = None
    entry_size: float | None = None

    @property
    def chooses(self) -> bool:
        """Whether leave-one-out chooses α."""
        return isinstance(self.alpha, str)

    def candidates(self, groups: list[ClassGroup]) -> Floats:
        """Return the values of α to choose from, ascending."""
        if not self.chooses:
            return np.array([float(self.alpha)])
        if self.alphas is not None:
            return np.unique(np.asarray(self.alphas, dtype=np.float64))
        unit = mean_square(groups) if self.alpha_scale == "absolute" else 1.0
        return np.array(DEFAULT_ALPHAS) * unit

    def absolute(self, alphas: Floats, group: ClassGroup) -> Floats:
        """Return values of α in the units of the kernel, shape (G, n_alphas)."""
        is_relative = self.alpha_scale == "relative"
        units = group.spectrum.values[:, :1] if is_relative else np.ones((len(group.classes), 1))
        return units * alphas

    def left_out_residuals(self, group: ClassGroup, alphas: Floats) -> Floats:
        """Return the residual of each point from the rest of its class, shape (G, n, A)."""
        if self.left_out is not None:
            return self.left_out(group, alphas)
        return self.filter.left_out(group.spectrum, alphas)


# ---------------------------------------------------------------------- fitting


def _prepared(training: TrainingPoints, kernel: Kernel, rules: Rules) -> TrainingPoints:
    """Prepare the points of all classes for the kernel, if all classes share it."""
    if training.gram is not None or rules.class_kernel is not None:
        return training
    with rows_renumbered(training.index):
        return replace(training, prepared=kernel.prepare(training.data))


def _decompose(
    training: TrainingPoints, kernel: Kernel, rules: Rules, report: Report
) -> list[ClassGroup]:
    """Return groups of classes of equal size, with their Gram matrices."""
    spanning, sizes = np.flatnonzero(training.spans), training.sizes
    starts = np.cumsum(sizes) - sizes
    parts: list[Indices] = []
    for size in np.unique(sizes):
        classes = np.flatnonzero(sizes == size)
        step = max(1, GROUP_POINTS // size) if rules.class_kernel is None else 1
        parts += np.split(classes, range(step, len(classes), step))

    def make_group(number: int) -> ClassGroup:
        classes = parts[number]
        members = spanning[starts[classes][:, None] + np.arange(sizes[classes[0]])]
        index, weights = training.index[members], training.weights[members]
        class_kernel, data, points = kernel, None, None
        with single_threaded_blas(), rows_renumbered(index.ravel()):
            if training.gram is not None:
                gram = training.gram[index[:, :, None], index[:, None, :]]
            else:
                if rules.class_kernel is None:
                    points = training.prepared[_as_slice(members.ravel())]
                else:
                    data = training.data[_as_slice(members[0])]
                    class_kernel = rules.class_kernel(kernel, data, weights[0])
                    points = class_kernel.prepare(data)
                gram = diagonal_blocks(class_kernel, points, len(classes))
        return ClassGroup(
            class_kernel, data, points, classes, members, index, weights, gram, rules.entry_size
        )

    groups = over_groups(
        make_group,
        [(len(classes), sizes[classes[0]]) for classes in parts],
        serial=not kernel.threadsafe,
        report=lambda fraction: report(_SPECTRA_FRACTION * fraction),
    )
    check_diagonals(groups)
    return groups


def _as_slice(numbers: Indices) -> Any:
    """Return consecutive numbers as a slice, which copies no data."""
    first, last = int(numbers[0]), int(numbers[-1])
    is_range = last - first + 1 == len(numbers) and np.all(np.diff(numbers) == 1)
    return slice(first, last + 1) if is_range else numbers


def _residuals_from(
    training: TrainingPoints, group: ClassGroup, gains: Floats, which: Indices
) -> tuple[Floats, Floats]:
    """Return residuals of some points from the classes of a group, (G, m, A), and k(x, x)."""
    index = training.index[which]
    with rows_renumbered(index):
        if training.gram is not None:
            new, diagonal = training.gram[index], np.diagonal(training.gram)[index]
        else:
            if training.prepared is None:
                new = group.kernel.prepare(training.data[which])
            else:
                new = training.prepared[_as_slice(which)]
            diagonal = group.kernel.diagonal(new)
        check_overflow(diagonal)
        residuals = group.subspace(group.spectrum.directions()).captured(new, gains)
    np.subtract(diagonal[:, None], residuals, out=residuals)
    return residuals, diagonal


@dataclass(frozen=True)
class _LeaveOneOut:
    """Leave-one-out results of a kernel.

    ``scores`` is the weighted accuracy for each α. ``residuals`` has shape (n_classes, n, A); it is
    None if it is too large to be kept. ``diagonal`` is k(x, x).
    """

    scores: Floats
    residuals: Floats | None
    diagonal: Floats


def _leave_one_out(
    training: TrainingPoints,
    groups: list[ClassGroup],
    rules: Rules,
    alphas: Floats,
    report: Report = lambda fraction: None,
) -> _LeaveOneOut:
    """Return the leave-one-out results of a kernel for each α; a single α always has residuals."""
    n, shapes = len(training.index), [group.index.shape for group in groups]
    shape = (len(training.sizes), n, len(alphas))
    over_groups(lambda i: groups[i].spectrum, shapes)
    left_out, diagonal, gains = np.empty(shape[1:]), np.zeros(n), []
    for group in groups:
        absolute = rules.absolute(alphas, group)
        left_out[group.members] = rules.left_out_residuals(group, absolute)
        diagonal[group.members] = group.diagonals
        gains.append(rules.filter.gains(group.spectrum, absolute))
    keep = len(alphas) == 1 or math.prod(shape) <= _MAX_RESIDUALS
    kept, correct = np.empty(shape) if keep else None, np.empty(shape[1:], dtype=bool)
    for block in row_blocks(n, max(shape[0] * len(alphas), *(G * size for G, size in shapes))):
        points = np.arange(block.start, block.stop)
        residuals = np.empty((shape[0], len(points), len(alphas)))
        for group, factors in zip(groups, gains, strict=True):
            # the points that span a single class are left out of it
            which = points if len(group.classes) > 1 else np.setdiff1d(points, group.members)
            if len(which):
                found, squares = _residuals_from(training, group, factors, which)
                residuals[group.classes[:, None], which - block.start] = found
                diagonal[which] = np.maximum(diagonal[which], squares)
        members = np.flatnonzero(training.spans[block])
        owners = training.owners[block]
        residuals[owners[members], members] = left_out[points[members]]
        ties = residuals <= residuals.min(axis=0) + TIE_TOL * np.abs(diagonal[block])[:, None]
        correct[block] = ties.argmax(axis=0) == owners[:, None]
        if kept is not None:
            kept[:, block] = residuals
        report(_SPECTRA_FRACTION + (1 - _SPECTRA_FRACTION) * block.stop / n)
    scores = training.weights @ correct / training.weights.sum()
    return _LeaveOneOut(scores, kept, diagonal)


@dataclass(frozen=True)
class _Judgement:
    """Leave-one-out results of the fit; the names are part of the format of model files.

    ``points``, ``owners`` and ``weights`` are a training row, the class and the weight of each
    distinct point, for the temperature. Old files have the temperature instead.
    """

    score: float
    residuals: Floats
    temperature: float | None = None
    points: Any = None
    owners: Any = None
    weights: Any = None


def _judge(
    training: TrainingPoints,
    found: _LeaveOneOut,
    number: int,
    residuals_of: Callable[[Any], Floats],
) -> _Judgement:
    """Return leave-one-out results of all training rows for the α with index `number`.

    Rows of weight 0 that equal no other row are treated as new points.
    """
    assert found.residuals is not None  # they are kept for a single α
    residuals = tie_within_rounding(found.residuals[..., number].T, found.diagonal)
    expanded = residuals[training.inverse]
    if training.unmatched.shape[0]:
        expanded[training.inverse < 0] = residuals_of(training.unmatched)
    score = float(found.scores[number])
    return _Judgement(score, expanded, None, training.index, training.owners, training.weights)


def _best_trial(
    training: TrainingPoints, kernels: list[Kernel], rules: Rules, report: Report
) -> tuple[Kernel, TrainingPoints, list[ClassGroup], _LeaveOneOut, list[Floats]]:
    """Return the best kernel, its points, classes and leave-one-out results, and all scores."""
    best: tuple[Kernel, TrainingPoints, _LeaveOneOut] | None = None
    scores: list[Floats] = []
    points = training
    for i, kernel in enumerate(kernels):

        def report_part(fraction: float, done: int = i) -> None:
            report((done + fraction) / len(kernels))

        if type(kernel) is not type(kernels[i - 1]) or i == 0:  # scales share prepared points
            points = _prepared(training, kernel, rules)
        groups = _decompose(points, kernel, rules, report_part)
        alphas = rules.candidates(groups)
        found = _leave_one_out(points, groups, rules, alphas, report_part)
        # among ties, use the last kernel, which smooths most; allow for rounding errors of sums
        if best is None or found.scores.max() >= best[2].scores.max() - 1e-12:
            best = kernel, points, found
        scores.append(found.scores)
    assert best is not None  # there is at least one kernel
    if best[0] is not kernels[-1]:  # decomposed again, since keeping all would need too much memory
        groups = _decompose(best[1], best[0], rules, report)
    return best[0], best[1], groups, best[2], scores


def _fitted_attributes(
    training: TrainingPoints, groups: list[ClassGroup], kernel: Kernel, rules: Rules, number: int
) -> dict[str, Any]:
    """Return the fitted attributes for the α with index `number`."""
    alphas = rules.candidates(groups)
    absolute = [rules.absolute(alphas[[number]], group)[:, 0] for group in groups]
    subspaces = over_groups(
        lambda i: groups[i].filtered(rules.filter, absolute[i]),
        [group.index.shape for group in groups],
    )
    order = np.argsort(np.concatenate([group.classes for group in groups]))
    kernels = [group.kernel for group in groups for _ in group.classes]
    found = {
        "kernel_": kernel,
        "alphas_": alphas,
        "alpha_": float(alphas[number]),
        "class_alphas_": np.concatenate(absolute)[order],
        "class_kernels_": [kernels[position] for position in order],
        "support_": training.index[training.spans],
        "_subspaces_": subspaces,
    }
    if training.gram is not None:  # k(x, x) of new points is not known
        found["_mean_diagonal_"] = mean_square(groups)
    return found


class _Attributes:
    """Fitted attributes of ClassResidualClassifier, which are not parameters."""

    # Results of leave-one-out, or the data to compute them. They are in a dict, so that computing
    # them later sets no attribute.
    _later_: dict[str, Any]


@with_parameters
class ClassResidualClassifier(_Attributes, ClassifierMixin, KernelEstimator):
    """Base class of classifiers that choose the class with the smallest residual.

    A subclass defines the rules; see :mod:`orthodrome.classification.filters`. It has the
    parameters ``alpha``, ``alpha_scale``, ``alphas``, ``sigmas``, ``memory_budget`` and
    ``verbose``.
    """

    kernel: Any = "auto"
    _: KW_ONLY
    alpha: float | str = "loo"
    alpha_scale: str = "absolute"
    alphas: Any = None
    sigmas: Any = "auto"

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "alpha": or_word("loo", positive(or_zero=True)),
        "alpha_scale": choice("relative", "absolute"),
        "alphas": optional(grid(or_zero=True)),
        "sigmas": optional(or_word("auto", grid())),
    }

    _chooses_kernel = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kernel, given = self._kernel_object(), not isinstance(self.sigmas, str | None)
        if given and not hasattr(_innermost(kernel), "sigma"):
            raise ValueError(
                f"sigmas of {type(self).__name__} are scales of the kernel, but "
                f"{type(kernel).__name__} has no scale. Omit sigmas."
            )

    # ------------------------------------------------------------------ for subclasses

    @abstractmethod
    def _rules(self) -> Rules:
        """Return the rules for the parameters."""

    def _draw(self) -> Callable[[int], Indices]:
        """Return a function of n that chooses which of n points span a class; by default all."""
        return np.arange

    def _weights(self, labels: NDArray[Any], weights: Floats | None) -> Floats | None:
        """Return the weights of all points; by default the given ones."""
        return weights

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        """Raise if the fitted kernel cannot be used for the data."""

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
        numbers = _class_numbers(labels, self.classes_)
        training = training_points(X, numbers, weights, precomputed, self._draw())
        check_memory(training.sizes, self.memory_budget, owner)
        with tracked(self, bool(self.verbose)) as progress, training.blas():
            kernel = _fitted_kernel(kernel, X, weights)
            self._check_kernel(kernel, X)
            kernels = self._trial_kernels(kernel, training, exact=rules.left_out is None)
            report = partial(progress.advance, name="classes")
            # fit must raise for a point antipodal to the reference of another class
            chooses = rules.chooses or precomputed or rules.class_kernel is not None
            if not chooses and len(kernels) == 1:
                kernel = kernels[0]
                training = _prepared(training, kernel, rules)
                groups = _decompose(training, kernel, rules, report)
                self.__dict__.update(_fitted_attributes(training, groups, kernel, rules, 0))
                kept, parameters = replace(training, prepared=None), self.get_params(deep=False)
                self._later_ = {"training": kept, "parameters": parameters}
                return
            kernel, training, groups, found, scores = _best_trial(training, kernels, rules, report)
            # among ties, use the largest α, which smooths most
            number = int(np.flatnonzero(found.scores >= found.scores.max() - 1e-12)[-1])
            self.__dict__.update(_fitted_attributes(training, groups, kernel, rules, number))
            if found.residuals is None:
                found, number = _leave_one_out(training, groups, rules, np.array([self.alpha_])), 0
            judgement = _judge(training, found, number, self._residuals)
            self._later_ = {"judgement": judgement, "scores": scores}

    def _trial_kernels(self, kernel: Kernel, training: TrainingPoints, exact: bool) -> list[Kernel]:
        """Return the fitted kernels to choose from, and set ``sigmas_``."""
        given = getattr(_innermost(self._kernel_object()), "sigma", None)
        fitted = getattr(_innermost(kernel), "sigma_", np.nan)
        is_auto = isinstance(self.sigmas, str)
        if self.sigmas is None or (is_auto and not (exact and isinstance(given, str))):
            self.sigmas_ = np.array([fitted], dtype=np.float64)
            return [kernel]
        self.sigmas_ = np.unique(fitted * np.array(SIGMA_FACTORS) if is_auto else self.sigmas)
        kernels = [kernel.rescaled(float(sigma)) for sigma in self.sigmas_]
        X = training.data
        if not (self._automatic and is_auto) or scipy.sparse.issparse(X):
            return kernels
        # the rate is 1/d if d columns have variance 1, and the others are constant
        d = max(1, int(np.count_nonzero(np.ptp(X, axis=0))))
        rates = [math.sqrt(2 / d) / fitted * factor for factor in _RATE_FACTORS]
        self.sigmas_ = np.concatenate([np.full(len(rates), np.nan), self.sigmas_])
        return [Laplacian(rate).fit_validated(X) for rate in rates] + kernels

    def _judgement(self) -> _Judgement:
        """Return leave-one-out results; compute them now if the fit did not need them."""
        check_is_fitted(self)
        if "judgement" not in self._later_:
            # parameters may have changed since the fit
            rules, kernel = type(self)(**self._later_["parameters"])._rules(), self.kernel_
            training = self._later_["training"]
            if isinstance(training, _Training):
                training = training.converted()
            training = _prepared(training, kernel, rules)
            with training.blas():
                groups = _decompose(training, kernel, rules, lambda fraction: None)
                found = _leave_one_out(training, groups, rules, np.array([self.alpha_]))
                judgement = _judge(training, found, 0, self._residuals)
            scores = [np.array([judgement.score])]
            self._later_ |= {"judgement": judgement, "scores": scores}
        return self._later_["judgement"]

    @property
    def loo_score_(self) -> float:
        """Leave-one-out accuracy on the training points."""
        return self._judgement().score

    @property
    def loo_scores_(self) -> Floats:
        """Leave-one-out accuracy of each kernel and α tried, shape (n_kernels, n_alphas)."""
        self._judgement()
        return np.array(self._later_["scores"])

    @property
    def loo_residuals_(self) -> Floats:
        """Residuals of the training points; each point is left out of its class."""
        return self._judgement().residuals

    @property
    def temperature_(self) -> float:
        """Temperature of the probabilities; see :meth:`predict_proba`."""
        found = self._judgement()
        if found.temperature is None:
            residuals = found.residuals[found.points]
            temperature = residual_temperature(residuals, found.owners, found.weights)
            found = self._later_["judgement"] = replace(found, temperature=temperature)
            return temperature
        return found.temperature

    # ------------------------------------------------------------------ new data

    def class_residuals(self, X: Data) -> Floats:
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

    def _residuals(self, X: Any) -> Floats:
        precomputed = isinstance(self.kernel_, Precomputed)
        return class_residuals(
            in_groups(self._subspaces_), X, self._mean_diagonal_ if precomputed else None
        )

    def decision_function(self, X: Data) -> Floats:
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

    def predict_proba(self, X: Data) -> Floats:
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


def _fitted_kernel(kernel: Kernel, X: Any, weights: Floats | None) -> Kernel:
    """Return the kernel fitted to the points of all classes."""
    if isinstance(kernel, Precomputed):
        return clone(kernel).fit_validated(X, weights)
    rows = canonical_rows(X, weights)
    with rows_renumbered(rows.index):
        return clone(kernel).fit_validated(rows.data, rows.weights)


def _innermost(kernel: Kernel) -> Kernel:
    """Return the kernel itself, or the kernel that it wraps."""
    while isinstance(kernel, Normalized | Embedded):
        kernel = inner_kernel(kernel)
    return kernel


def _class_numbers(labels: NDArray[Any], classes: NDArray[Any]) -> Indices:
    """Return the number of each label among the sorted classes, or -1."""
    found, inverse = np.unique(labels, return_inverse=True)
    numbers = np.full(len(found), -1)
    numbers[np.isin(found, classes)] = np.arange(len(classes))
    return numbers[inverse]
