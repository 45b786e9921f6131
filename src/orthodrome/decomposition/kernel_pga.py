"""Kernel principal geodesic analysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .._core.status import Status
from .._core.threads import VALUE_WORK, run_over_rows
from .._core.unit import (
    angles_from_cosines,
    check_cosines,
    check_no_antipodes,
    squared_angles,
)
from .._core.warn import warn_user
from ..eigen import Components, Hebbian, tangent_frame
from ..gram import (
    FeatureMap,
    GramOperator,
    NystroemFeatures,
    Scaled,
    Tangent,
    squared_radius,
)
from ..gram.dask_blocks import over_rows
from ..gram.factory import prepared_points
from ..gram.nystroem import check_in_span, squared_lengths
from ..sphere import exp_at_pole
from ..sphere.karcher import find_mean, warn_if_wide
from .anchors import FeatureFit, pga_of_features
from .spectral import SpectralDecomposition
from .streams import FeatureStream, StreamFit, pga_of_stream

__all__ = ["KernelPGA"]

# The mean enters every coordinate; a few products with one vector bring it to rounding.
_MEAN_TOL = 1e-12
_MEAN_STEPS = 200

# Rows whose features are computed together.
_BLOCK = 4096


class KernelPGA(SpectralDecomposition):
    r"""Kernel principal geodesic analysis: principal components on the sphere in feature space.

    A kernel with k(x, x) = 1 puts every datum on the unit sphere of its feature space. There,
    distances run along great circles, the mean is the point μ that minimises the squared ones
    (the Karcher mean), and the data are seen from it in its tangent space,

    .. math:: z_n = \operatorname{Log}_\mu \Phi(x_n)
        = \frac{\theta_n}{\sin\theta_n} (\Phi(x_n) - \cos\theta_n\, \mu), \qquad
        \cos\theta_n = \langle \Phi(x_n), \mu \rangle .

    The components v_q are the leading eigenvectors of the covariance
    :math:`\sum_n p_n z_n \otimes z_n`, and the coordinates are
    :math:`e_q(x) = \langle \operatorname{Log}_\mu \Phi(x), v_q \rangle`. Kernel PCA of the same
    data needs an extra component for the curvature of the sphere, and bends distances.

    The cost is little more than that of :class:`KernelPCA`: products with the tangent Gram matrix
    :math:`T = D (K - c c^\top) D` are products with K, and the mean takes a few of them.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None, default=None
        How many components. A fraction means as many as explain that part of the variance.
        None means all with a positive eigenvalue, which takes the whole spectrum of an n x n
        matrix.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. k(x, x) must be the same for all the data; if it
        is not 1 it is divided out. ``Normalized(kernel)`` makes it so for any kernel.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver; :func:`orthodrome.eigen.choose_solver` says what "auto" takes and why.
        "hebbian" gives a usable answer after a pass or two over the Gram matrix, and few digits;
        :class:`orthodrome.eigen.Hebbian` has its options, checkpoints among them. "nystroem" sees
        all points through a few anchors: no pass over the Gram matrix, and no training row but
        those is kept; :class:`orthodrome.eigen.Nystroem` has its options. Features
        are brought to unit length, unless the object says otherwise.
    tol : float, optional
        Stop when every residual ‖Ta - λa‖ is at most tol times the largest eigenvalue. Default:
        1e-8 for krylov; 1e-2 for hebbian, which estimates the residuals. For nystroem: take no
        more anchors once the features leave out at most tol times the trace of the Gram matrix;
        default: take as many as asked for.
        (The mean is always found to a gradient of 1e-12, or to rounding.)
    max_iter : int, optional
        The most products with the Gram matrix (krylov, 200 by default) or passes over its rows
        (hebbian, 50); also the most steps to the mean, except with hebbian (200).
    n_anchors : int, optional
        For nystroem, which "auto" takes where this is given: the most anchors. Default: 512, or
        twice the number of components if that is more.
    warm_start : bool, default=False
        Whether a further `fit`, on the same data, goes on from where the last one ended: `max_iter`
        more passes of hebbian as if it had never stopped, or krylov from the eigenvectors found.
        The Karcher mean is found anew each time, within `max_iter` steps.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. Beyond it tiles are recomputed; results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix live; see :func:`orthodrome.gram.gram_operator`. For
        nystroem: where the features live during the fit.
    inverse_alpha : float, default=1e-6
        Ridge of the inverse map where the kernel is not radial, relative to the largest
        eigenvalue.
    random_state : int, RandomState or None, default=None
        Krylov, hebbian: source of the start, and of the orders of the passes; nystroem: of the
        anchors. With the same value the result is the same; without, it differs within `tol`.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Variances along the components, descending: the eigenvalues of the Karcher covariance,
        which are those of P^½ T P^½, with weights p that sum to 1. (The eigenvalues of
        :class:`KernelPCA` are not divided by n, as in scikit-learn.)
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Orthonormal eigenvectors of P^½ T P^½.
    embedding_ : ndarray of shape (n_samples, n_components)
        The training data transformed. Of rows that come in blocks, it and `eigenvectors_` are there
        where both, and the float64 they are computed in, fit a quarter of `memory_budget`.
    sphere_coordinates_ : ndarray of shape (n_samples, n_components + 1)
        The re-mapped points Exp_μ(Σ e_q v_q) as unit vectors in the frame (μ, v_1, v_2, …).
    geodesic_variance_ : float
        The mean squared distance from the mean, Σ p_n θ_n²: the sum of all eigenvalues.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues over `geodesic_variance_`.
    mean_ : ndarray of shape (n_samples,)
        Coefficients of the Karcher mean μ over the training points (brought to unit length).
    mean_cosines_ : ndarray of shape (n_samples,)
        ⟨Φ(x_n), μ⟩; their arccos are the distances from the mean.
    mean_n_iter_, mean_gradient_norm_ : int, float
        Steps to the mean, and ‖Σ p_n Log_μ Φ(x_n)‖ there.
    dual_coef_ : ndarray of shape (n_samples, n_components)
        Coefficients of the components v_q over the training points (brought to unit length).
    X_fit_ : ndarray, sparse array or None
        The training data, which new points are compared with; None for a precomputed kernel.
        With nystroem, the anchors. A copy, but for a memory map, which stays one: the model
        needs its file as it is.
    n_anchors_ : int or None
        With nystroem, how many anchors there are: so many rows `dual_coef_` has then, and
        entries `mean_`.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        Which training rows they are; None where points were given.
    kernel_ : Kernel
        The fitted kernel.
    sample_weight_ : ndarray of shape (n_samples,) or None
        The weights.
    n_components_ : int
        Number of components.
    solver_ : str
        The eigensolver that ran.
    n_iter_ : int
        Products with the Gram matrix that it made.
    converged_ : bool
        Whether the eigensolver and the mean reached their tolerances.
    residuals_ : ndarray of shape (n_components,)
        ‖P^½ T P^½ a - λa‖ of each component.
        With nystroem, the trace that the features leave out, which bounds the residuals of kernel
        PCA.
    history_ : list of dict
        The eigensolver's iterations.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    KernelPCA : The flat analogue.
    orthodrome.sphere.karcher_mean : The mean alone.
    orthodrome.metrics.neighborhood_preservation : How good an embedding is.

    Notes
    -----
    The paper solves :math:`G\alpha = \lambda K\alpha` (13) or :math:`EK\alpha = \lambda\alpha`
    (14), which have the same spectrum as the symmetric P^½ T P^½ solved here.

    Signs: each component has a positive third moment over the training data, so that they depend
    neither on the solver nor on the order of the rows.

    Coordinates e stand for the point of the sphere
    :math:`\operatorname{Exp}_\mu(\sum_q e_q v_q) = \cos\|e\|\,\mu + \frac{\sin\|e\|}{\|e\|}
    \sum_q e_q v_q`; `inverse_transform` looks for its pre-image.

    Lengths of e beyond π go round the sphere and come back.

    A row of weight 0 gets coordinates too: it must lie on the sphere like the others, and not at
    the antipode of the mean.

    Distances θ from the mean come from cosines, so that θ² has an absolute error of a few units in
    the last place of 1, about 1e-15 in float64: it is felt where a very large σ puts all points
    close together.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", ECML PKDD 2014, §4 and §5.1.

    Examples
    --------
    Points on a circle of the sphere S² need one geodesic component, and two flat ones:

    >>> import numpy as np
    >>> from orthodrome import KernelPCA, KernelPGA
    >>> angle = np.linspace(-1, 1, 50)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    >>> KernelPGA(kernel="linear").fit(X).n_components_
    1
    >>> KernelPCA(kernel="linear").fit(X).n_components_
    2
    """

    _eigenvalues_are_variances = True
    _on_sphere = True
    _decoder_: NDArray[Any] | None = None

    def _geometry(
        self, gram: GramOperator, weights: NDArray[np.float64] | None
    ) -> tuple[Tangent, dict[str, Any]]:
        radius = squared_radius(gram.diagonal())
        unit = gram if radius == 1.0 else Scaled(gram, 1.0 / radius)
        mean = find_mean(unit, weights, tol=_MEAN_TOL, max_iter=self._most_steps())
        found: dict[str, Any] = {
            "mean_": mean.point,
            "mean_cosines_": mean.cosines,
            "mean_n_iter_": mean.n_iter,
            "mean_gradient_norm_": mean.gradient_norm,
            "_mean_converged": mean.converged,
            "_squared_radius": radius,
        }
        tangent = Tangent(unit, mean.point, mean.cosines)
        # its trace rather than Σ p θ², which feels lengths that are 1 only nearly
        found["geodesic_variance_"] = float(np.average(tangent.diagonal(), weights=weights))
        _warn_about(mean)
        return tangent, found | {"_decoder_": None}

    def _squared_radius_of(self, diagonal: NDArray[Any]) -> float:
        return squared_radius(diagonal)

    def _fit_of_features(
        self, features: NystroemFeatures, diagonal: NDArray[np.float64], p: NDArray[np.float64]
    ) -> FeatureFit:
        steps = self._most_steps()
        fit, mean = pga_of_features(features, diagonal, p, self.n_components, max_iter=steps)
        _warn_about(mean)
        return fit

    def _fit_of_stream(self, stream: FeatureStream) -> StreamFit:
        fit = pga_of_stream(stream, self.n_components, max_iter=self._most_steps())
        _warn_about(fit.mean)
        return fit

    def _most_steps(self) -> int:
        """Return the most steps to the mean; with hebbian `max_iter` counts passes instead."""
        hebbian = self.solver == "hebbian" or isinstance(self.solver, Hebbian)
        return _MEAN_STEPS if hebbian or self.max_iter is None else int(self.max_iter)

    def _map_new_points(self, components: Components, geometry: Tangent) -> dict[str, Any]:
        return {"dual_coef_": tangent_frame(geometry, components.coefficients)}

    @property
    def sphere_coordinates_(self) -> NDArray[Any]:
        """The re-mapped training points as unit vectors in the frame (μ, v_1, v_2, …)."""
        return over_rows(exp_at_pole, self.embedding_)

    def _coordinates(self, X: Any) -> NDArray[Any]:
        return self._seen_from_mean(X)[0].astype(self.dual_coef_.dtype, copy=False)

    def _seen_from_mean(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the coordinates of validated data, and their distances from the mean."""
        if self.X_fit_ is not None:
            diagonal = self.kernel_.diagonal(self.kernel_.prepare(X))
            squared_radius(diagonal, self._squared_radius)
        products, lengths = self._on_frame(X)
        cosines, eps = products[:, -1], float(np.finfo(self.dual_coef_.dtype).eps)
        check_cosines(cosines, eps, "X")
        check_no_antipodes(cosines, eps, "rows of X")
        angles, stretches = angles_from_cosines(cosines)
        if self._decoder_ is not None:  # the point itself, not its part in the span of anchors
            angles = np.sqrt(squared_angles(cosines * lengths))
        return products[:, :-1] * stretches[:, None], angles

    def _on_frame(self, X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return inner products with the components and the mean, and lengths in their span."""
        frame = np.column_stack([self.dual_coef_, self.mean_])
        decoder = self._decoder_
        if decoder is None:
            return self._products(X, frame) / self._squared_radius, np.ones(X.shape[0])
        products, lengths = np.empty((X.shape[0], frame.shape[1])), np.empty(X.shape[0])
        values_of = self._values_of(X, decoder)

        def share(part: slice) -> None:
            for first in range(part.start, part.stop, _BLOCK):  # features are wider than products
                rows = slice(first, min(first + _BLOCK, part.stop))
                values = values_of(X[rows])
                features = values @ decoder.astype(values.dtype, copy=False)
                squares = squared_lengths(features)
                check_in_span(squares, first)
                lengths[rows] = np.sqrt(squares)
                wide = values.astype(np.float64, copy=False)
                products[rows] = wide @ frame / lengths[rows, None]

        if self.kernel_.threadsafe:
            run_over_rows(share, X.shape[0], work=VALUE_WORK * X.shape[0] * len(decoder))
        else:
            share(slice(0, X.shape[0]))
        return products, lengths

    def _values_of(self, X: Any, decoder: NDArray[Any]) -> Callable[[Any], NDArray[Any]]:
        """Return what gives kernel values of rows with the anchors, over the squared radius."""
        if self._columns_ is not None:
            return lambda rows: rows[:, self._columns_] / rows.dtype.type(self._squared_radius)
        points = prepared_points(self.kernel_, self.X_fit_)
        dtype, radius = np.result_type(X.dtype, decoder.dtype), self._squared_radius
        features = FeatureMap(self.kernel_, points, decoder, dtype, unit=True, radius=radius)
        return lambda rows: features.look(rows)[0]

    def _expansion(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        frame = np.column_stack([self.mean_, self.dual_coef_])
        return exp_at_pole(coordinates) @ frame.T

    @staticmethod
    def _decoder_features(coordinates: NDArray[Any]) -> NDArray[Any]:
        return exp_at_pole(coordinates)

    def _captured(self, X: Any) -> tuple[NDArray[Any], NDArray[Any], float]:
        coordinates, angles = self._seen_from_mean(X)
        rounding = float(16 * np.finfo(self.dual_coef_.dtype).eps)
        return np.einsum("ij,ij->i", coordinates, coordinates), angles**2, rounding


def _warn_about(mean: Any) -> None:
    """Warn, at the stack level of who called fit, seen from here."""
    if not mean.converged:
        advice = "Raise max_iter." if mean.status is Status.MAX_ITER else mean.status.advice
        warn_user(
            f"KernelPGA: the Karcher mean {mean.status.value} (gradient norm "
            f"{mean.gradient_norm:.1e} after {mean.n_iter} steps). {advice}",
            ConvergenceWarning,
        )
    warn_if_wide(mean)
