"""PerTurbo: assign a point to the class that it perturbs least."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from .._core.checks import check_flag
from .._core.parameters import choice, integer, optional
from .._core.types import Floats
from .._core.unit import squared_radius
from ..base import with_parameters
from ..gram import gram_operator
from ..kernels import Kernel, Precomputed
from ..kernels.base import rectangular_block
from ..kernels.manifolds import has_profile
from ..preimage import geodesic_kernel
from ..preimage.manifold import leave_one_out_preimages
from .base import ClassResidualClassifier, Rules
from .filters import (
    Perturbation,
    Truncation,
    left_out_mean_cosines,
    left_out_tangent_residuals,
)
from .subspaces import ClassGroup

# Leave-one-out residual of the only point of a class: the squared angle of orthogonal vectors.
_QUARTER_CIRCLE = (np.pi / 2) ** 2


@with_parameters
class PerTurbo(ClassResidualClassifier):
    r"""Classification by the distance from the span of each class in feature space.

    With the Gram matrix K of a class, the perturbation of the class by a point x is

    .. math:: r(x) = k(x, x) - k_x^\top (K + \alpha I)^{-1} k_x, \qquad k_x = (k(x, x_n))_n,

    the squared distance from the feature vector of x to the span of the class, up to
    regularisation. (It is also the predictive variance of a Gaussian process, given the class.) The
    point is assigned to the class that it perturbs least. By default, leave-one-out chooses α and
    the scale of the kernel.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="auto"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. ``"auto"`` is ``"gaussian"``; with
        ``sigmas="auto"`` and dense X, leave-one-out may choose ``Laplacian`` instead, see the
        notes. It is fitted once, to the points of all classes.
        For grid search over its parameters use an object: ``PerTurbo(Gaussian())`` has
        ``kernel__sigma``.
    alpha : float or "loo", default="loo"
        Regularisation, not negative; 0 gives the pseudo-inverse. ``"loo"`` chooses the value of
        `alphas` with the best leave-one-out accuracy; ties go to the largest.
    alpha_scale : {"absolute", "relative"}, default="absolute"
        Unit of alpha. ``"absolute"``: units of the kernel, the same for all classes, like the noise
        variance of a Gaussian process; where classes overlap, it favours the larger one.
        ``"relative"``: the largest eigenvalue of each class's Gram matrix, which grows with the
        class. They differ most for ``geodesic=True``, where the eigenvalues are small if the class
        is compact. With a large absolute α the residual is then only the distance from the
        reference.
    alphas : array-like of shape (n_alphas,), optional
        Values for ``alpha="loo"``, in the units of `alpha_scale`. Default: two values for each
        power of ten from 1e-8 to 10. For ``"absolute"``, they are multiplied by the mean of
        k(x, x).
    sigmas : array-like of shape (n_sigmas,), "auto" or None, default="auto"
        Scales of the kernel to choose from, together with alpha, by leave-one-out. ``"auto"``:
        1/4, 1/2, 1, 2, 4 and 8 times the kernel's scale, if it is given by a rule, such as
        ``sigma="mean"``. The scale is not changed if it is a number, if the kernel has no sigma,
        or if there is no exact leave-one-out (`geodesic`, `n_components`). None: the kernel's
        scale, as in the paper. Scales of kernels inside ``Normalized`` and ``Embedded`` can be
        chosen too. Each scale needs one eigendecomposition per class.
    n_components : int, optional
        Number of leading components of each class that span its subspace; default: all. If given,
        ``alpha="loo"`` means 0; a number regularises these components as well.
    geodesic : bool, default=False
        Measure distances along the sphere: each class has the kernel
        :class:`orthodrome.kernels.Geodesic`, with a reference that is fitted to the class. The
        kernel must have constant k(x, x).
    reference : {"preimage", "mean"}, default="preimage"
        The reference for ``geodesic=True``: the pre-image of the class's Karcher mean, as in the
        paper (for dense data, and radial kernels or Gaussian kernels of shapes and matrices), or
        the mean itself (for every kernel).
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
        The given or chosen α, in the units of `alpha_scale`.
    class_alphas_ : ndarray of shape (n_classes,)
        The α of each class, in units of the kernel.
    loo_score_ : float
        Leave-one-out accuracy on the training points.
    loo_scores_ : ndarray of shape (n_kernels, n_alphas)
        Leave-one-out accuracy for each value of `sigmas_` and `alphas_`.
    loo_residuals_ : ndarray of shape (n_samples, n_classes)
        Residuals of the training points; each point is left out of its class.
    temperature_ : float
        Temperature of the probabilities; see :meth:`predict_proba`.
    kernel_ : Kernel
        The chosen kernel, fitted.
    class_kernels_ : list of Kernel
        The kernel of each class: ``kernel_``, or the geodesic one.
    alphas_ : ndarray of shape (n_alphas,)
        Values of α tried, ascending.
    sigmas_ : ndarray of shape (n_kernels,)
        Scales tried, ascending; ties go to the largest. If leave-one-out chose no scale, this is
        the kernel's scale. NaN stands for a kernel without a scale; with ``kernel="auto"``, the
        first two are NaN, for the Laplacian kernels.
    support_ : ndarray of shape (n_support,)
        Indices of training rows, one for each distinct point that spans a class, sorted by class.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : Its predictive variance is the residual.
    orthodrome.classification.filters.Perturbation : The formulas for one class.

    Notes
    -----
    ``kernel="auto"`` compares eight kernels by leave-one-out: two Laplacian ones, whose rates γ are
    2r and r, and Gaussian ones with the six scales of `sigmas`, in this order. The rate r is
    √(2/d)/σ, with the mean scale σ of the Gaussian kernel and the number d of columns that vary; on
    standardised columns it is 1/d. With a Laplacian kernel, an outlying value in one column matters
    less. Laplacian kernels are not tried with `geodesic` or `n_components`.

    If leave-one-out chooses no parameter, its results and the temperature of the probabilities are
    computed when they are first needed.

    Equal rows of a class are first merged into weights, so a weight of 2 is equivalent to repeating
    the row, and the order of rows does not matter. Leave-one-out leaves out distinct rows, with all
    their copies; α and the kernel are not fitted again. It is exact without `geodesic` and
    `n_components`, and needs one eigendecomposition per class. With ``geodesic=True`` the reference
    is corrected for the point left out, to first order (see ``left_out_tangent_residuals`` in
    ``filters.py``). With `n_components` there is no closed form, so every fifth point of a class is
    left out at a time. With both, the reference of the whole class is used.

    If a class has only one point, its leave-one-out residual is k(x, x), or (π/2)² for
    ``geodesic=True``.

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

    _: KW_ONLY
    n_components: int | None = None
    geodesic: bool = False
    reference: str = "preimage"

    _PARAMETERS = ClassResidualClassifier._PARAMETERS | {
        "geodesic": check_flag,
        "reference": choice("preimage", "mean"),
        "n_components": optional(integer()),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.geodesic and isinstance(self._kernel_object(), Precomputed):
            raise ValueError(
                f"geodesic=True of {type(self).__name__} needs data, which a precomputed kernel "
                "does not have. Use geodesic=False, or pass the data and a kernel."
            )

    def _rules(self) -> Rules:
        rules = Rules(self.alpha, self.alpha_scale, self.alphas, Perturbation())
        if self.n_components is not None:
            alpha = 0.0 if isinstance(self.alpha, str) else self.alpha
            kept = Truncation(self.n_components)
            rules = replace(rules, alpha=alpha, filter=kept, left_out=kept.left_out)
        if not self.geodesic:
            return rules
        return replace(
            rules,
            left_out=partial(_left_out_geodesic, rules.left_out),
            class_kernel=partial(geodesic_kernel, reference=self.reference),
            # k - c c' is a difference of large terms, unless the reference is a pre-image
            entry_size=1.0 if self.reference == "mean" else None,
        )

    def _check_kernel(self, kernel: Kernel, X: Any) -> None:
        if not self.geodesic:
            return
        owner = f"{type(self).__name__}(geodesic=True, reference='preimage')"
        if self.reference == "preimage":
            if not (has_profile(kernel) and kernel.unit_norm):
                raise ValueError(
                    f"{owner} needs a radial kernel with k(x, x) = 1, such as Gaussian, or a "
                    "positive definite Gaussian kernel of shapes or matrices; got "
                    f"{type(kernel).__name__}. Use reference='mean'."
                )
            if scipy.sparse.issparse(X):
                raise ValueError(
                    f"{owner} does not accept sparse X. Call X.toarray(), or use reference='mean'."
                )
        squared_radius(kernel.diagonal(kernel.prepare(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.geodesic and self.reference == "preimage":
            tags.input_tags.sparse = False
        return tags


def _left_out_geodesic(by_folds: Any, group: ClassGroup, alphas: Floats) -> Floats:
    """Return leave-one-out residuals; without folds, correct the reference for each point."""
    if group.index.size == 1:
        return np.full((1, 1, alphas.shape[1]), _QUARTER_CIRCLE)
    if by_folds is not None:
        return by_folds(group, alphas)
    kernel: Any = group.kernel
    base, data, weights = kernel.kernel_, group.data, group.weights[0]
    gram = gram_operator(base, data, storage="recompute").toarray().astype(np.float64)
    gram /= float(np.mean(np.diagonal(gram)))
    angles = np.sqrt(kernel.diagonal(kernel.prepare(data)).astype(np.float64))
    if kernel.coefficients is None:
        references = leave_one_out_preimages(
            base, data, weights, gram, np.asarray(kernel.reference)
        )
        block = rectangular_block(base, base.prepare(data), base.prepare(references))
        left_out = block.astype(np.float64)
    else:
        left_out = left_out_mean_cosines(gram, np.asarray(kernel.coefficients, dtype=np.float64))
    return left_out_tangent_residuals(gram, weights, np.cos(angles), left_out, alphas[0])[None]
