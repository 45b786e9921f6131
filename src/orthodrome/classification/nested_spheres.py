"""Linear support vector machines on the modes of nested spheres."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core.checks import check_classes, check_positive, check_targets
from .._core.parameters import choice, grid, integer, optional, or_word, positive, seed
from .._core.progress import Progress, reporting, tracked, with_callbacks
from .._core.types import Data, Floats
from ..base import KernelEstimator, last_fit_kept, with_parameters
from ..decomposition import KernelPNS
from ..sphere import NestedSpheres, nested_spheres
from ..sphere.nested import CHOICES
from .calibration import residual_temperature, softmax_of_residuals

FEATURES = ("scores", "paper")

# Number of folds for the temperature of the probabilities.
_N_FOLDS = 5

# Shorter projections of unit vectors onto the span of other points are rounding errors.
_NO_LENGTH = 1e-10

# Outside this range, liblinear over- or underflows, does not end, and ignores Ctrl-C.
_MIN_C, _MAX_C = 1e-50, 1e50


def _check_penalty(value: Any, name: str, owner: str) -> None:
    if not _MIN_C <= positive()(value, name, owner) <= _MAX_C:
        raise ValueError(
            f"{name} of {owner} must be between {_MIN_C:g} and {_MAX_C:g}; got {value!r}."
        )


def _check_powers(value: Any, name: str, owner: str) -> None:
    grid()(value, name, owner)
    for power in value:
        check_positive(float(power), name, owner, maximum=2)


def _check_folds(value: Any, name: str, owner: str) -> None:
    if isinstance(value, numbers.Integral):  # scikit-learn checks the rest
        integer(2)(value, name, owner)


def _is_calibrated(model: Any) -> bool:
    if hasattr(model, "svm_") and not hasattr(model, "temperature_"):
        raise AttributeError(
            "This NestedSpheresClassifier has no predict_proba: it was saved by a version without "
            "probabilities. Fit it again."
        )
    return True


@with_parameters
class NestedSpheresClassifier(ClassifierMixin, KernelEstimator):
    r"""Linear support vector machines on the modes of kernel principal nested spheres.

    Nested spheres are fitted to the points of all classes
    (:class:`~orthodrome.decomposition.KernelPNS`). The features of a point are its angle on the
    circle at the end of the chain, and its signed residuals from the innermost subspheres, which
    explain most of the variation. The paper uses only the residuals,

    .. math:: u_d = \bigl(\arccos\langle v_d, y_d\rangle - r_d\bigr) \prod_{i=d+1}^{D} \sin r_i,
        \qquad d = 1, \dots, D,

    with the innermost subsphere :math:`v_1, r_1`, the projection :math:`y_d` of the point on the
    sphere that contains the d-th subsphere, and angles in the units of the outermost sphere. One
    linear support vector machine per class separates the class from the others.

    Parameters
    ----------
    n_components : int, default=16
        Maximum number of features, D.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. k(x, x) must be the same for all data, which
        ``Normalized(kernel)`` ensures for any kernel.
    p : float in (0, 2] or "cv", default=2.0
        Power of the residuals that the subspheres minimise; a smaller power is more robust to
        outliers. ``"cv"`` chooses the value of `ps` with the best accuracy in cross-validation;
        ties go to the largest.
    features : {"scores", "paper"}, default="scores"
        ``"scores"``: the signed angle on the circle at the end of the chain, which is the first
        mode, and D - 1 residuals. ``"paper"``: the residuals from D subspheres, without the angle,
        which is less accurate on most data.
    sphere : {"great", "small", "bic", "test"}, default="great"
        Kind of the subspheres; see :func:`orthodrome.sphere.nested_spheres`. "small" is the
        paper's.
    C : float, default=1.0
        Inverse regularisation of the support vector machines. All features are first divided by
        their root mean square, so that C does not depend on the scale of the kernel.
    ps : sequence of float, default=(0.5, 1.0, 1.5, 2.0)
        Values of p for ``p="cv"``.
    cv : int, splitter or iterable, default=5
        Folds of ``p="cv"``, as in scikit-learn; an integer is a number of stratified folds, which
        is limited to the size of the smallest class, but not below 2.
    negligible : float, default=0.01
        Principal directions with at most this fraction of the variance are not searched. 0 fits all
        levels, as in the paper.
    n_anchors : int, optional
        Use approximate coordinates from this many anchors (Nyström) instead of the whole Gram
        matrix. Default: the whole matrix for up to 200,000 distinct rows, else 512 anchors.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix and its factors, or the coordinates; `fit` raises an error if
        they do not fit.
    random_state : int, RandomState, Generator or None, default=None
        Random numbers for the choice of anchors.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    p_ : float
        The given or chosen power.
    cv_scores_ : ndarray of shape (n_ps,)
        Mean accuracy over the folds for each of `ps`; only with ``p="cv"``.
    features_ : ndarray of shape (n_samples, n_components)
        Features of the training points; see :meth:`features_of`.
    n_components_ : int
        Number of features.
    decomposition_ : KernelPNS
        The fitted nested spheres.
    svm_ : sklearn.svm.LinearSVC
        The fitted support vector machines.
    temperature_ : float
        Temperature of the probabilities; see :meth:`predict_proba`.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    orthodrome.decomposition.KernelPNS : The nested spheres.
    orthodrome.sphere.NestedSpheres.features : The features.

    Notes
    -----
    There is no `sample_weight`, because a weight of 2 would not equal repeating the row exactly:
    the solver of the support vector machines stops at a tolerance that depends on the number of
    rows, and copies of a row may be in different folds of ``p="cv"``. The order of rows does not
    matter, except for these folds.

    New points are first projected on the span of the training points and normalised. With some
    kernels, such as polynomials of high degree, new points are nearly orthogonal to all others and
    could not be classified without the projection.

    A given p needs one chain of nested spheres; ``p="cv"`` needs one for each power and fold, and a
    final one. The kernel and the coordinates are computed once, from all training data; the folds
    share them.

    References
    ----------
    Awate, Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016, §VI.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthodrome.classification import NestedSpheresClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NestedSpheresClassifier(4, sphere="great").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    n_components: int = 16
    kernel: Any = "gaussian"
    _: KW_ONLY
    p: float | str = 2.0
    features: str = "scores"
    sphere: str = "great"
    C: float = 1.0
    ps: Sequence[float] = (0.5, 1.0, 1.5, 2.0)
    cv: Any = 5
    negligible: float = 0.01
    n_anchors: int | None = None
    random_state: Any = None

    _PARAMETERS = KernelEstimator._PARAMETERS | {
        "n_components": integer(),
        "p": or_word("cv", positive(maximum=2)),
        "ps": _check_powers,
        "features": choice(*FEATURES),
        "sphere": choice(*CHOICES),
        "C": _check_penalty,
        "negligible": positive(or_zero=True),
        "cv": _check_folds,
        "n_anchors": optional(integer()),
        "random_state": seed,
    }

    # ------------------------------------------------------------------ fitting

    @with_callbacks
    def fit(self, X: Data, y: ArrayLike) -> Self:
        """Fit nested spheres to all points, and support vector machines to their features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; the (n_samples, n_samples) Gram matrix if the kernel is precomputed.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.

        Returns
        -------
        self
            The fitted estimator.
        """
        with last_fit_kept(self):
            self._fit(X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        """Fit. Not exception-safe; the caller restores the state."""
        owner = type(self).__name__
        self._check_parameters()
        X = self._kernel_object().validate(X, estimator=self)
        labels = check_targets(y, X.shape[0], owner)
        self.classes_ = check_classes(labels, owner)
        with tracked(self, bool(self.verbose)) as progress:
            self.__dict__.pop("cv_scores_", None)  # from an earlier fit
            use_cv = isinstance(self.p, str)
            self.p_ = self._chosen_power(X, labels, progress) if use_cv else float(self.p)
            self._circle_ = self.features == "scores"
            fitting = self._decomposition(self.p_)
            warnings_off = nullcontext() if self._circle_ else _ignore_circle_warning()
            with warnings_off, reporting(fitting, progress.advance):
                self.decomposition_ = fitting.fit(X)
            self.kernel_ = self.decomposition_.kernel_
            self.features_ = self._features(fitting.nested_spheres_, fitting.sphere_coordinates_)
            self.svm_ = _fit_machines(self.features_, labels, self.C)
            self.temperature_ = _temperature(self.features_, labels, self.C)
        self.n_components_ = self.features_.shape[1]

    def _chosen_power(self, X: Any, labels: NDArray[Any], progress: Progress) -> float:
        """Return the power with the best accuracy in cross-validation.

        All folds use the coordinates of a fit to all training data, so the Gram matrix is computed
        and factored once.
        """
        powers = np.unique(np.asarray(self.ps, dtype=np.float64))
        folds = self._folds(labels)
        accuracies = np.zeros((len(folds), len(powers)))
        options: dict[str, Any] = {"sphere": self.sphere, "negligible": self.negligible}
        with _ignore_circle_warning():
            points = self._decomposition(float(powers[-1])).fit(X).sphere_coordinates_
            for (f, i), _ in np.ndenumerate(accuracies):
                train, test = folds[f]
                chain = nested_spheres(points[train], p=float(powers[i]), **options)
                features = self._features(chain, points[train])
                machine = _fit_machines(features, labels[train], self.C)
                # points that cannot be mapped to the sphere of the others count as errors
                is_mapped = np.linalg.norm(points[test] @ chain.basis, axis=1) > _NO_LENGTH
                if is_mapped.any():
                    found = machine.predict(self._features(chain, points[test][is_mapped]))
                    accuracies[f, i] = np.sum(found == labels[test][is_mapped]) / len(test)
                done = (f * len(powers) + i + 1) / (accuracies.size + 1)
                progress.advance(done, "cross-validation")
        scores = accuracies.mean(axis=0)
        self.cv_scores_ = scores[np.searchsorted(powers, np.asarray(self.ps, dtype=np.float64))]
        # allow for rounding errors of means
        return float(powers[np.flatnonzero(scores >= scores.max() - 1e-12)[-1]])

    def _folds(self, labels: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return training and test rows of each fold; every training part has two classes."""
        sizes = np.sort(np.unique(labels, return_counts=True)[1])
        if sizes[-2] < 2:
            raise ValueError(
                f"p='cv' of {type(self).__name__} needs two classes of two points or more. Set "
                "p to a number instead."
            )
        n_folds = self.cv
        if isinstance(n_folds, numbers.Integral):
            n_folds = max(2, min(int(n_folds), int(sizes[0])))
        with warnings.catch_warnings():  # about classes with fewer points than folds
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            try:
                splitter = check_cv(n_folds, labels, classifier=True)
                folds = list(splitter.split(np.zeros(len(labels)), labels))
                if not folds:
                    raise ValueError("it has no folds.")
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"cv of {type(self).__name__} must be an integer >= 2, or a splitter or folds "
                    f"as in scikit-learn; got {self.cv!r}: {error}"
                ) from None
        return folds

    def _decomposition(self, p: float) -> KernelPNS:
        return KernelPNS(
            1,
            self.kernel,
            p=p,
            sphere=self.sphere,
            negligible=self.negligible,
            n_anchors=self.n_anchors,
            memory_budget=self.memory_budget,
            random_state=self.random_state,
        )

    def _features(self, chain: NestedSpheres, points: Floats) -> Floats:
        """Return the features of points on the sphere."""
        circle = self.features == "scores"
        max_features = chain.n_modes if circle else chain.n_modes - 1
        if max_features < 1:
            raise ValueError(
                f"The data of {type(self).__name__} span a circle in feature space, which has no "
                "subspheres. Use features='scores', or add data."
            )
        return chain.features(points, min(self.n_components, max_features), circle=circle)

    # ------------------------------------------------------------------ new data

    def features_of(self, X: Data) -> Floats:
        """Return the features for the support vector machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Signed angles; those of the circle or of the innermost subsphere come first.
        """
        check_is_fitted(self)
        X = self.kernel_.validate(X, estimator=self, reset=False)
        points = self.decomposition_.sphere_coordinates(X)
        chain = self.decomposition_.nested_spheres_
        return chain.features(points, self.n_components_, circle=self._circle_)

    def decision_function(self, X: Data) -> Floats:
        """Return the signed distances from the hyperplane of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`features_of`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Larger values mean a better fit; for two classes, positive means ``classes_[1]``.
        """
        features = self.features_of(X)  # raises if this is not fitted
        return self.svm_.decision_function(features)

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the class of each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`features_of`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        features = self.features_of(X)
        return self.svm_.predict(features)

    @available_if(_is_calibrated)
    def predict_proba(self, X: Data) -> Floats:
        r"""Return the class probabilities: a softmax of the decision values.

        .. math:: p_c(x) \propto \exp(f_c(x) / T)

        For two classes, the decision values are f and -f. The temperature T (``temperature_``) is
        the same for all classes. It maximises the likelihood of training points that were left out
        of the support vector machines, in five folds. The features are not fitted again: they do
        not depend on the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`features_of`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1, in the order of ``classes_``. The largest is that of the predicted class.
        """
        features = self.features_of(X)
        return softmax_of_residuals(-_decisions(self.svm_, features), self.temperature_)


def _fit_machines(features: Floats, labels: NDArray[Any], C: float) -> LinearSVC:
    """Fit one linear support vector machine per class, as if features had unit mean square."""
    scale = float(np.sqrt(np.mean(features**2))) or 1.0
    # equivalent to features / scale, but with coefficients for the unscaled features
    return LinearSVC(C=C / scale**2, intercept_scaling=scale, dual=False).fit(features, labels)


def _decisions(machines: LinearSVC, features: Floats) -> Floats:
    """Return the decision values with a column for each class."""
    found = machines.decision_function(features)
    return found if found.ndim == 2 else np.column_stack([-found, found])


def _temperature(features: Floats, labels: NDArray[Any], C: float) -> float:
    """Return the temperature of the probabilities, from decision values of left-out points.

    If a class has a single point, that point is never left out.
    """
    owners, counts = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    order = np.lexsort(features.T)  # the folds do not depend on the order of rows
    order = order[counts[owners[order]] > 1]
    if len(order) == 0:
        return 1.0
    values = np.empty((len(labels), len(counts)))
    folds = StratifiedKFold(min(_N_FOLDS, int(counts.max())), shuffle=True, random_state=0)
    with warnings.catch_warnings():  # about classes with fewer points than folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for _, test in folds.split(order, owners[order]):
            left_out = order[test]
            kept = np.setdiff1d(np.arange(len(labels)), left_out)
            machines = _fit_machines(features[kept], labels[kept], C)
            values[left_out] = _decisions(machines, features[left_out])
    return residual_temperature(-values[order], owners[order], np.ones(len(order)))


@contextmanager
def _ignore_circle_warning() -> Iterator[None]:
    """Ignore the warning that the points cover much of the last circle."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The points take up", UserWarning)
        yield
