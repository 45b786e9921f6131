"""Kernel principal nested spheres."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core.parameters import choice, integer, optional, positive, seed
from .._core.types import Data, Floats
from ..base import nystroem_or, with_parameters
from ..coordinates.isometry import Isometry
from ..sphere import NestedSpheres, exp, log, nested_spheres
from ..sphere.nested import CHOICES
from .explicit import ExplicitDecomposition, PointFit, oriented
from .inverse import image_of


@with_parameters
class KernelPNS(ExplicitDecomposition):
    r"""Kernel principal nested spheres, optionally robust.

    A kernel with k(x, x) = 1 maps the data to a sphere in feature space. The nearest subsphere
    has the axis v and the radius r that solve

    .. math:: \min_{v, r} \sum_n w_n \bigl((\arccos\langle v, y_n\rangle - r)^2
        + \varepsilon\bigr)^{p/2}.

    It is a great (r = π/2) or a small subsphere; a small one can follow curved data. The data are
    projected onto it. This is repeated down to a circle, and ends with the mean on that circle. The
    residuals, from the last to the first, are the modes of variation.

    Exact coordinates of the points are computed from the eigenvectors of the Gram matrix; for too
    many points, approximate ones are computed from a few anchors. The subspheres are fitted with
    :func:`orthodrome.sphere.nested_spheres`. The paper's method is
    ``KernelPNS(sphere="small", negligible=0.0)``.

    Parameters
    ----------
    n_components : int or None, default=None
        The dimension D of the embedding. None: the largest.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. k(x, x) must be the same for all data;
        ``Normalized(kernel)`` makes any kernel satisfy this. With ``"linear"`` and unit vectors the
        result is that of principal nested spheres without a kernel.
    p : float in (0, 2], default=2.0
        The power of the residuals: 2 is least squares, smaller powers are more robust.
    sphere : {"great", "small", "bic", "test"}, default="great"
        The allowed subspheres; see :func:`orthodrome.sphere.nested_spheres`. "small" is the
        paper's.
    negligible : float, default=0.01
        Principal directions with at most this fraction of the variance become great subspheres
        without a search, which is much faster. 0 fits all levels, as in the paper.
    max_iter : int, default=2000
        Maximum number of iterations of a search. Each level needs one search, or several if p < 2.
    solver : {"auto", "dense", "nystroem"} or Nystroem, default="auto"
        How coordinates are computed: from the eigenvectors of the whole Gram matrix ("dense"), or
        as normalised features from a few anchors ("nystroem"; options:
        :class:`orthodrome.eigen.Nystroem`). "auto" uses nystroem if `n_anchors` is given, or for
        more than 200,000 distinct rows.
    n_anchors : int, optional
        For nystroem: maximum number of anchors, coordinates and levels. Default: 512.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix and its factors, or the features; if they do not fit, `fit`
        raises an error.
    random_state : int, RandomState, Generator or None, default=None
        Random numbers for the choice of anchors (nystroem). An integer makes results reproducible.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training data.
    residuals_ : ndarray of shape (n_samples, n_modes)
        The modes: the signed angle on the circle, then the signed residuals, innermost subsphere
        first. All are in units of the first sphere.
    explained_variance_ratio_ : ndarray of shape (n_modes,)
        Mean squares of `residuals_`, divided by their sum.
    radii_ : ndarray of shape (n_modes - 1,)
        Radii of the subspheres, the outermost first.
    axes_ : ndarray of shape (n_modes - 1, n_coordinates)
        Axes of the subspheres, orthonormal, in the coordinates of `sphere_coordinates_`.
    sphere_coordinates_ : ndarray of shape (n_samples, n_coordinates)
        The training points as unit vectors, whose inner products are the kernel values.
    nested_spheres_ : orthodrome.sphere.NestedSpheres
        The chain of subspheres, with the maps to scores and back.
    n_components_ : int
        The dimension of the embedding.
    n_iter_ : int
        Number of iterations, summed over all levels.
    converged_ : bool
        Whether every search reached its tolerance; `fit` warns otherwise.
    X_fit_ : ndarray, sparse array or None
        The distinct training rows of positive weight, sorted; None for a precomputed kernel. With
        nystroem, the anchors.
    n_anchors_ : int or None
        With nystroem, the number of anchors.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        The training rows that are anchors; None if points were given as anchors.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    KernelPGA : Principal components in the tangent space at the mean.
    orthodrome.sphere.nested_spheres : The same fit, for unit vectors.

    Notes
    -----
    The embedding (§V of the paper) projects the data onto the subsphere of dimension D, maps them
    to the tangent space at the mean with Log, and returns their coordinates along the principal
    directions there. :meth:`inverse_transform` returns points of that subsphere.

    There is a warning if the data cover more than half of the last circle, since wrapping then
    inflates the variance of the first mode. Great subspheres wrap less.

    Before the fit, equal rows are merged, their weights are added, and rows are sorted. A weight of
    2 is therefore equivalent to repeating the row, to the last bit, and the order of rows does not
    matter.

    References
    ----------
    Awate, Dhar and Kulkarni, "Robust Kernel Principal Nested Spheres", ICPR 2016; Jung, Dryden and
    Marron, "Analysis of principal nested spheres", Biometrika 99, 2012.

    Examples
    --------
    A small circle on a sphere is one mode, where kernel PCA needs two components:

    >>> import numpy as np
    >>> from orthodrome import KernelPNS
    >>> angle = np.linspace(-1, 1, 20)
    >>> circle = np.column_stack([0.6 * np.cos(angle), 0.6 * np.sin(angle), np.full(20, 0.8)])
    >>> model = KernelPNS(1, kernel="linear", sphere="small").fit(circle)
    >>> model.explained_variance_ratio_.round(6)
    array([1., 0.])
    """

    n_components: int | None = None
    kernel: Any = "gaussian"
    _: KW_ONLY
    p: float = 2.0
    sphere: str = "great"
    negligible: float = 0.01
    max_iter: int = 2000
    solver: Any = "auto"
    n_anchors: int | None = None
    random_state: Any = None

    _unit_points = True
    _PARAMETERS = ExplicitDecomposition._PARAMETERS | {
        "sphere": choice(*CHOICES),
        "negligible": positive(or_zero=True),
        "max_iter": integer(),
        "solver": nystroem_or("dense"),
        "n_anchors": optional(integer()),
        "random_state": seed,
    }

    def _fit_points(
        self, isometry: Isometry, weights: Floats, radius: float, advance: Callable[[float], None]
    ) -> PointFit:
        points, p = isometry.points, weights / weights.sum()
        chain = nested_spheres(
            points,
            weights,
            p=self.p,
            sphere=self.sphere,
            negligible=self.negligible,
            max_iter=self.max_iter,
            callback=lambda entry: advance(entry["level"] / entry["n_levels"]),
        )
        k = chain.n_modes
        if self.n_components is not None:
            k = min(int(self.n_components), k)
        mean = chain.projected(chain.mean[None], k)[0]
        tangents = _tangents(chain, k, mean, points)
        center = p @ tangents
        covariance = (tangents * p[:, None]).T @ tangents - np.outer(center, center)
        directions = np.linalg.eigh(covariance)[1][:, ::-1][:, :k]
        directions = oriented(directions, tangents @ directions, p)
        squares = p @ chain.scores(points) ** 2
        total = float(squares.sum())
        attributes = {
            "nested_spheres_": chain,
            "n_components_": k,
            "_mean_": mean,
            "_directions_": directions,
            "explained_variance_ratio_": squares / total if total > 0 else np.zeros_like(squares),
            "radii_": chain.radii,
            "axes_": chain.axes,
            "n_iter_": max(1, chain.n_iter),
            "converged_": chain.converged,
        }
        functions: dict[str, Callable[[Floats], Floats]] = {
            "embedding_": self._embedded,
            "sphere_coordinates_": lambda points: points,
            "residuals_": chain.scores,
        }
        return PointFit(attributes, functions, points)

    def _embedded(self, points: Floats) -> Floats:
        tangents = _tangents(self.nested_spheres_, self.n_components_, self._mean_, points)
        return tangents @ self._directions_

    def sphere_coordinates(self, X: Data) -> Floats:
        """Return data as unit vectors in the span of the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_coordinates)
            Unit vectors, in the coordinates of `sphere_coordinates_`;
            ``nested_spheres_.scores`` maps them to all modes.
        """
        check_is_fitted(self)
        return self._coordinates(self.kernel_.validate(X, estimator=self, reset=False))

    def inverse_transform(self, X: Data) -> Floats:
        """Return the points of the subsphere with given coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates, as :meth:`transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_coordinates)
            Unit vectors, in the coordinates of `sphere_coordinates_`.
        """
        coordinates = self._check_coordinates(X, np.float64)
        tangents = image_of(coordinates, lambda Z: Z @ self._directions_.T)
        points = exp(tangents, base_point=self._mean_)
        return self.nested_spheres_.raised(points)


def _tangents(chain: NestedSpheres, k: int, mean: Floats, points: Floats) -> Floats:
    """Return Log maps at the mean, on the subsphere of dimension k."""
    return log(chain.projected(points, k), base_point=mean)
