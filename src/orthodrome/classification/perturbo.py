"""PerTurbo: the class whose manifold a point perturbs the least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .._core.checks import check_flag
from .._core.parameters import choice, integer, optional
from ..gram import gram_operator
from ..gram.unit import squared_radius
from ..kernels import Geodesic, Kernel, Precomputed
from ..kernels._profiles import has_profile
from ..kernels.base import rectangular_block
from ..preimage import geodesic_kernel
from ..preimage.karcher import left_out_preimages
from .base import ClassResidualClassifier, Rules
from .filters import (
    Filter,
    LeftOutTangents,
    Perturbation,
    Truncation,
    folded_residuals,
    left_out_mean_cosines,
)
from .subspaces import ClassPoints

__all__ = ["PerTurbo"]

# Of a class of one point nothing is left without it: as far as perpendicular points are.
_QUARTER_CIRCLE = (np.pi / 2) ** 2


@dataclass(frozen=True)
class PerturbationRules(Rules):
    """Distance from the span of each class, or of its leading components, flat or on the sphere."""

    n_components: int | None
    geodesic: bool
    reference: str

    @property
    def shared_kernel(self) -> bool:
        """Whether all classes have the same kernel."""
        return not self.geodesic

    @property
    def entry_size(self) -> float | None:
        """How large the terms are whose difference an entry of a Gram matrix is."""
        # k - c c', of which only a function of distances at a pre-image avoids the difference
        return 1.0 if self.geodesic and self.reference == "mean" else None

    def class_kernel(self, kernel: Kernel, data: Any, weights: NDArray[np.float64]) -> Kernel:
        """Return the fitted kernel of a class."""
        if not self.geodesic:
            return kernel
        return geodesic_kernel(kernel, data, weights, reference=self.reference)

    def candidates(self, classes: list[ClassPoints]) -> NDArray[np.float64]:
        """Return the values of α to choose from, ascending."""
        truncates = self.n_components is not None and self.chooses
        return np.zeros(1) if truncates else super().candidates(classes)

    def filter(self, alpha: float | NDArray[np.float64]) -> Filter:
        """Return the filter for an absolute α, or for several."""
        if self.n_components is not None:
            return Truncation(self.n_components, alpha)
        return Perturbation(alpha)

    def left_out(self, points: ClassPoints, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the residual of each point from the others, a column for each absolute α."""
        if self.geodesic and len(points.index) == 1:
            return np.full((1, len(alphas)), _QUARTER_CIRCLE)
        if self.n_components is not None:
            filters = [self.filter(float(alpha)) for alpha in alphas]
            gram, weights = points.gram, points.weights
            return np.column_stack([folded_residuals(gram, weights, one) for one in filters])
        # the reference of a kernel that was given stays where it is
        if self.geodesic and isinstance(points.kernel, Geodesic):
            tangents = _left_out_tangents(points, points.kernel)
            return np.column_stack([tangents.perturbation(float(alpha)) for alpha in alphas])
        return Perturbation(alphas).left_out(points.spectrum)


class PerTurbo(ClassResidualClassifier):
    r"""Classification by the distance from the span of each class in feature space.

    With the Gram matrix K of a class, the perturbation of the class by a point x is

    .. math:: r(x) = k(x, x) - k_x^\top (K + \alpha I)^{-1} k_x, \qquad k_x = (k(x, x_n))_n,

    the squared distance from the feature vector of x to the span of the class, up to
    regularisation (it is also the variance of a Gaussian process, given the class). The point gets
    the class that it perturbs the least. Nothing but the kernel and α is to be chosen, and α is by
    default, by leave-one-out.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. It is fitted once, to the points of all classes.
        For grid search over its parameters write an object: ``PerTurbo(Gaussian())`` has
        ``kernel__sigma``.
    alpha : float or "loo", default="loo"
        The regularisation, not negative; 0 is the pseudo-inverse. ``"loo"`` takes of `alphas` the
        one with which the most training points are recognised when each is left out, the largest
        of those that tie.
    alpha_scale : {"absolute", "relative"}, default="absolute"
        What alpha is measured in. ``"absolute"``: in units of the kernel, the same for all classes,
        as the variance of noise is for Gaussian processes; where classes overlap, the larger one is
        then preferred. ``"relative"``: in units of the largest eigenvalue of each class's Gram
        matrix. It does not depend on the scale of the kernel, and grows with the class. They differ
        most for ``geodesic=True``: seen from the middle of the class, the constant mode that makes
        up the largest eigenvalue of a plain kernel is gone, and all values shrink with the class,
        until an absolute α leaves nothing but the distance from the reference.
    alphas : array-like of shape (n_alphas,), optional
        What ``alpha="loo"`` chooses from, in the units of `alpha_scale`. Default: two values for
        each power of ten from 1e-8 to 10, for ``"absolute"`` times the mean of k(x, x).
    n_components : int, optional
        Truncate: the span is that of so many leading components of each class. This takes the place
        of α, and ``alpha="loo"`` is then 0; a number regularises those components as well.
    geodesic : bool, default=False
        Measure along the sphere: for each class the kernel
        :class:`orthodrome.kernels.Geodesic`, with a reference that is fitted to the class. The
        kernel must have constant k(x, x).
    reference : {"preimage", "mean"}, default="preimage"
        The reference for ``geodesic=True``: the pre-image of the class's Karcher mean, as in the
        paper (dense data, and radial kernels or Gaussian ones of shapes and matrices), or the mean
        itself (every kernel).
    memory_budget : str or number, default="2GiB"
        What the Gram matrices of the classes and their eigenvectors may take; more is an error.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    alpha_ : float
        The α that was given or chosen, in the units of `alpha_scale`.
    class_alphas_ : ndarray of shape (n_classes,)
        What it is for each class, in units of the kernel.
    loo_score_ : float
        The share of training points that are recognised when each is left out.
    loo_residuals_ : ndarray of shape (n_samples, n_classes)
        The residuals of the training points, from their own class without them.
    temperature_ : float
        Of the probabilities; see :meth:`predict_proba`.
    kernel_ : Kernel
        The fitted kernel.
    class_kernels_ : list of Kernel
        The kernel of each class: ``kernel_``, or the geodesic one.
    alphas_ : ndarray of shape (n_alphas,)
        The values of α that were tried, ascending.
    support_ : ndarray of shape (n_support,)
        Rows of the training data, one for each different point in the span of a class, one class
        after the other.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : Its predictive variance is the residual.
    orthodrome.classification.filters.Perturbation : The formulas for one class.

    Notes
    -----
    Where `alpha` is a number and nothing is chosen, leave-one-out and the temperature of the
    probabilities are computed when they are first asked for.

    Equal rows of a class are merged into weights before anything else, so that a weight of 2 is the
    row written twice, and the order of rows does not matter. Leave-one-out leaves out different
    rows, all copies together; α and the kernel stay as they are for all rows. It is exact for plain
    kernels, and takes no more than one eigendecomposition for each class. With ``geodesic=True``
    the reference moves with the point left out, which is followed to first order (see
    ``LeftOutTangents`` in ``filters.py``). With `n_components` there is no closed form:
    every fifth point of a class is left out at a time, and `loo_score_`, `loo_residuals_` and
    `temperature_` are of that (with the reference of the whole class, for ``geodesic=True``).

    A class without its only point is as far as can be: k(x, x), or for ``geodesic=True`` a quarter
    of a great circle, (π/2)².

    References
    ----------
    Courty, Burger and Laurent, "PerTurbo: a new classification algorithm based on the spectrum
    perturbations of the Laplace-Beltrami operator", ECML PKDD 2011; Courty, Burger and Marteau,
    "Geodesic Analysis on the Gaussian RKHS Hypersphere", ECML PKDD 2012, §5.2.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from orthodrome.classification import PerTurbo
    >>> from orthodrome.kernels import Gaussian
    >>> X, y = make_moons(100, noise=0.1, random_state=0)
    >>> model = PerTurbo(Gaussian(sigma=0.5)).fit(X, y)
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """

    _PARAMETERS = ClassResidualClassifier._PARAMETERS | {
        "geodesic": check_flag,
        "reference": choice("preimage", "mean"),
        "n_components": optional(integer()),
    }

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        alpha: float | str = "loo",
        alpha_scale: str = "absolute",
        alphas: Any = None,
        n_components: int | None = None,
        geodesic: bool = False,
        reference: str = "preimage",
        memory_budget: str | float = "2GiB",
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.alpha_scale = alpha_scale
        self.alphas = alphas
        self.n_components = n_components
        self.geodesic = geodesic
        self.reference = reference
        self.memory_budget = memory_budget
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.geodesic and isinstance(self._kernel_object(), Precomputed):
            raise ValueError(
                f"geodesic=True of {type(self).__name__} needs the inputs and a kernel, not a "
                "precomputed matrix."
            )

    def _rules(self) -> PerturbationRules:
        alphas = (self.alpha, self.alpha_scale, self.alphas)
        return PerturbationRules(*alphas, self.n_components, self.geodesic, self.reference)

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        if not self.geodesic:
            return
        owner = f"{type(self).__name__}(geodesic=True, reference='preimage')"
        if self.reference == "preimage":
            if not (has_profile(kernel) and kernel.unit_norm):
                raise ValueError(
                    f"{owner} needs a radial kernel with k(x, x) = 1, such as Gaussian, or a "
                    "positive definite Gaussian one of shapes or matrices, and "
                    f"{type(kernel).__name__} is none; take reference='mean'."
                )
            if scipy.sparse.issparse(X):
                raise ValueError(
                    f"{owner} does not take sparse X: call X.toarray(), or take reference='mean'."
                )
        squared_radius(kernel.diagonal(kernel.prepare(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.geodesic and self.reference == "preimage":
            tags.input_tags.sparse = False
        return tags


def _left_out_tangents(points: ClassPoints, kernel: Geodesic) -> LeftOutTangents:
    """Find where the reference of a class goes without each of its points."""
    base = kernel.kernel_
    gram = gram_operator(base, points.data, storage="recompute").toarray().astype(np.float64)
    gram /= float(np.mean(np.diagonal(gram)))
    angles = np.sqrt(kernel.diagonal(kernel.prepare(points.data)).astype(np.float64))
    if kernel.coefficients is None:
        reference = np.asarray(kernel.reference)
        moved = left_out_preimages(base, points.data, points.weights, gram, reference)
        block = rectangular_block(base, base.prepare(points.data), base.prepare(moved))
        left_out = block.astype(np.float64)
    else:
        coefficients = np.asarray(kernel.coefficients, dtype=np.float64)
        left_out = left_out_mean_cosines(gram, coefficients)
    return LeftOutTangents.of(gram, points.weights, np.cos(angles), left_out)
