"""Classification by kernel ridge regression on each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from .._core.checks import check_positive
from .._core.parameters import integer, optional, seed
from .._core.random import as_random_state
from .._core.types import Floats, Indices
from ..base import with_parameters
from .base import ClassResidualClassifier, Rules
from .filters import RidgeResidual


def _check_class_weight(value: Any, name: str, owner: str) -> None:
    if value is None or (isinstance(value, str) and value == "balanced"):
        return
    if not isinstance(value, dict):
        raise ValueError(f"{name} of {owner} must be a dict, 'balanced' or None; got {value!r}.")
    for label, weight in value.items():
        check_positive(weight, f"{name}[{label!r}]", owner, or_zero=True)


@with_parameters
class KernelRidgeRegressionClassifier(ClassResidualClassifier):
    r"""Classification by ridge regression of a point on each class, in feature space.

    A point is approximated by a linear combination of the training points of a class,
    :math:`\Phi(x) \approx \sum_n \beta_n \Phi(x_n)`, with coefficients of ridge regression. With
    the Gram matrix K of the class and :math:`k_x = (k(x, x_n))_n`, the residual is

    .. math:: r(x) = k(x, x) - k_x^\top (K + \lambda I)^{-1} (K + 2\lambda I)
        (K + \lambda I)^{-1} k_x,

    and the point is assigned to the class with the smallest residual. Kernels on shapes and
    matrices can be used as well.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="auto"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. ``"auto"`` is ``"gaussian"``; with
        ``sigmas="auto"`` and dense X, leave-one-out may choose ``Laplacian`` instead, see the
        notes. ``"veronese_whitney"``, the paper's kernel, is for planar shapes,
        ``"log_euclidean"`` for covariance matrices. ``"linear"`` gives the ridge regression
        classifier of vectors, ``"hermitian_linear"`` that of complex pre-shapes.
    alpha : float or "loo", default="loo"
        The paper's λ, not negative; 0 gives the pseudo-inverse. ``"loo"`` chooses the value of
        `alphas` with the best leave-one-out accuracy; ties go to the largest.
    alpha_scale : {"absolute", "relative"}, default="absolute"
        Unit of alpha: the unit of the kernel, as in the paper, or the largest eigenvalue of each
        class's Gram matrix.
    alphas : array-like of shape (n_alphas,), optional
        Values for ``alpha="loo"``, in the units of `alpha_scale`. Default: two values for each
        power of ten from 1e-8 to 10; for ``"absolute"``, multiplied by the mean of k(x, x).
    sigmas : array-like of shape (n_sigmas,), "auto" or None, default="auto"
        Scales of the kernel to choose from, together with alpha, by leave-one-out. ``"auto"``: if
        the kernel's scale is given by a rule, such as ``sigma="mean"``, try 1/4, 1/2, 1, 2, 4 and 8
        times this scale; if it is a number, keep it. None: use the kernel's scale, as in the paper.
        Scales of kernels inside ``Normalized`` and ``Embedded`` can be chosen too. Each scale needs
        one eigendecomposition per class.
    subspace_size : int, optional
        Maximum number of training points of each class, drawn at random, as in the paper's
        subspaces of equal size. Default: all.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the weights of their points, as in scikit-learn. With
        an absolute alpha, a weight of c divides the λ of the class by c. In the leave-one-out
        accuracy, the points of the class count c times.
    random_state : int, RandomState or None, default=None
        Seed of the random draw of `subspace_size`.
    memory_budget : str or number, default="2GiB"
        Memory limit for the Gram matrices of the classes and their eigenvectors; `fit` raises an
        error beyond it.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    alpha_ : float
        The given or chosen λ, in the units of `alpha_scale`.
    class_alphas_ : ndarray of shape (n_classes,)
        The λ of each class, in units of the kernel.
    loo_score_ : float
        Leave-one-out accuracy on the training points.
    loo_scores_ : ndarray of shape (n_kernels, n_alphas)
        Leave-one-out accuracy for each value of `sigmas_` and `alphas_`.
    sigmas_ : ndarray of shape (n_kernels,)
        Scales tried, ascending; ties go to the largest. If only one scale was possible, this is the
        kernel's scale. NaN stands for a kernel without a scale; with ``kernel="auto"``, the first
        two are NaN, for the Laplacian kernels.
    alphas_ : ndarray of shape (n_alphas,)
        Values of α tried, ascending.
    loo_residuals_ : ndarray of shape (n_samples, n_classes)
        Residuals of the training points; each point is left out of its class.
    temperature_ : float
        Temperature of the probabilities; see :meth:`predict_proba`.
    kernel_ : Kernel
        The chosen kernel, fitted.
    class_kernels_ : list of Kernel
        ``kernel_`` for each class.
    support_ : ndarray of shape (n_support,)
        Indices of training rows, one for each distinct point that spans a class, sorted by class.
    n_features_in_, feature_names_in_ :
        As in scikit-learn; for landmarks and matrices, the number of entries of a specimen.

    See Also
    --------
    PerTurbo : Classification by the residual with the penalty.
    orthodrome.classification.filters.RidgeResidual : The formulas for one class.

    Notes
    -----
    ``kernel="auto"`` compares eight kernels by leave-one-out: two Laplacian ones, whose rates γ are
    2r and r, and Gaussian ones with the six scales of `sigmas`, in this order. The rate r is
    √(2/d)/σ, with the mean scale σ of the Gaussian kernel and the number d of columns that vary; on
    standardised columns it is 1/d. With a Laplacian kernel, an outlying value in one column matters
    less.

    If leave-one-out chooses no parameter, its results and the temperature of the probabilities are
    computed when they are first needed.

    Equal rows of a class are first merged into weights, so a weight of 2 is equivalent to repeating
    the row, and the order of rows does not matter. Leave-one-out leaves out distinct rows, with all
    their copies, and needs one eigendecomposition per class and scale. It is exact, with two
    exceptions. The kernel (a scale, a mean shape) is not fitted again. For an indefinite kernel,
    the positive part of each class's matrix is used, and it is not recomputed either. Residuals
    that differ only by rounding error tie, and the first class wins. With `subspace_size`, training
    points that were not drawn are evaluated as new points, and also count in the leave-one-out
    accuracy.

    References
    ----------
    Lee and Patrangenaru, "Extrinsic Kernel Ridge Regression Classifier for Planar Kendall Shape
    Space", 2019; He, Ding, Jiang and Ma, "Kernel ridge regression classification", IJCNN 2014.

    Examples
    --------
    Triangles of any position, size and rotation:

    >>> import numpy as np
    >>> from orthodrome import KernelRidgeRegressionClassifier
    >>> rng = np.random.default_rng(0)
    >>> flat, tall = np.array([0, 2, 1 + 0.5j]), np.array([0, 2, 1 + 2j])
    >>> y = np.repeat(["flat", "tall"], 20)
    >>> X = np.where((y == "flat")[:, None], flat, tall) + 0.2 * rng.standard_normal((40, 3))
    >>> X = X * np.exp(1j * rng.uniform(0, 6, (40, 1)))
    >>> model = KernelRidgeRegressionClassifier("veronese_whitney").fit(X, y)
    >>> model.predict([[5, 5 + 2j, 4.6 + 1j]])
    array(['flat'], dtype='<U4')
    """

    _: KW_ONLY
    subspace_size: int | None = None
    class_weight: Any = None
    random_state: Any = None

    _PARAMETERS = ClassResidualClassifier._PARAMETERS | {
        "subspace_size": optional(integer()),
        "class_weight": _check_class_weight,
        "random_state": seed,
    }

    def _weights(self, labels: NDArray[Any], weights: Floats | None) -> Floats | None:
        if self.class_weight is None:
            return weights
        found = np.ones(len(labels)) if weights is None else weights.copy()
        counted = found > 0  # rows of weight 0 are omitted
        classes, codes = np.unique(labels[counted], return_inverse=True)
        if self.class_weight == "balanced":
            totals = np.bincount(codes, found[counted])
            factors = totals.sum() / (len(classes) * totals)
        else:
            try:
                factors = compute_class_weight(
                    self.class_weight, classes=classes, y=labels[counted]
                )
            except ValueError as error:  # keys that are not classes
                message = f"Keys of class_weight of {type(self).__name__} must be classes"
                raise ValueError(f"{message}: {error}.") from None
        found[counted] *= factors[codes]
        return found

    def _draw(self) -> Callable[[int], Indices]:
        random = as_random_state(self.random_state, type(self).__name__)
        max_size = self.subspace_size

        def draw(n: int) -> Indices:
            if max_size is None or n <= max_size:
                return np.arange(n)
            return np.sort(random.choice(n, int(max_size), replace=False))

        return draw

    def _rules(self) -> Rules:
        return Rules(self.alpha, self.alpha_scale, self.alphas, RidgeResidual())
