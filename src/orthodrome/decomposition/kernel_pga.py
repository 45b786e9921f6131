"""Kernel principal geodesic analysis."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..rows.dask import over_rows
from ..sphere import exp_at_pole
from .geometry import SPHERE
from .spectral import SpectralDecomposition


class KernelPGA(SpectralDecomposition):
    r"""Kernel principal geodesic analysis: principal components on the sphere in feature space.

    A kernel with k(x, x) = 1 maps all data to the unit sphere of its feature space: each point x
    has a unit feature vector Φ(x). Distances are measured along great circles. The Karcher mean μ
    minimises the sum of the squared distances to the data. The data are mapped to the tangent space
    at μ,

    .. math:: z_n = \operatorname{Log}_\mu \Phi(x_n)
        = \frac{\theta_n}{\sin\theta_n} (\Phi(x_n) - \cos\theta_n\, \mu), \qquad
        \cos\theta_n = \langle \Phi(x_n), \mu \rangle ,

    where θ_n is the distance of point n from the mean. The components v_q are the leading
    eigenvectors of the covariance :math:`\sum_n p_n z_n \otimes z_n`, where the sample weights p_n
    sum to 1. The coordinates are
    :math:`e_q(x) = \langle \operatorname{Log}_\mu \Phi(x), v_q \rangle`. Kernel PCA of the same
    data needs an extra component for the curvature of the sphere, and distorts distances.

    Kernel PGA costs little more than :class:`KernelPCA`. It works with the Gram matrix T of the
    vectors z_n, :math:`T = D (K - c c^\top) D`. Here K is the Gram matrix of the data, c is the
    vector of the :math:`\cos\theta_n`, and D is the diagonal matrix of the
    :math:`\theta_n / \sin\theta_n`. A product with T therefore needs one product with K. The
    search for the mean needs only a few products with K.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None, default=None
        The number of components, or the fraction of the variance to explain. None: all components
        with a positive eigenvalue; this computes all eigenvalues of an n x n matrix.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. k(x, x) must be the same for all data, and kernel
        values are divided by it. Use ``Normalized(kernel)`` for a kernel with varying k(x, x).
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver. :func:`orthodrome.eigen.choose_solver` returns the solver that "auto" uses
        and the reason. "hebbian" gives an approximate solution after one or two passes over the
        Gram matrix (options: :class:`orthodrome.eigen.Hebbian`). "nystroem" approximates all points
        with features computed from a few anchors. It needs no pass over the Gram matrix and stores
        only the anchors (options: :class:`orthodrome.eigen.Nystroem`). The option ``sphere`` of
        Nystroem decides whether features are normalised.
    tol : float, optional
        Stop when the residual ‖Ta - λa‖ of every eigenvector a is at most tol times the largest
        eigenvalue. (With sample weights, T is replaced by P^½ T P^½; see `eigenvalues_`.) Default:
        1e-8 for krylov; 1e-2 for hebbian, which estimates the residuals. For nystroem: add anchors
        until the error of the trace of the Gram matrix is at most tol times the trace. If tol
        is not given, nystroem uses `n_anchors` anchors. (The search for the mean does not use tol.
        It stops when the norm of the gradient is at most 1e-12, or when only rounding errors
        remain.)
    max_iter : int, optional
        Maximum number of products with the Gram matrix (krylov, default 200) or of passes over its
        rows (hebbian, default 50). Also the maximum number of steps in the search for the mean
        (default 200), except with hebbian.
    n_anchors : int, optional
        Maximum number of anchors for nystroem. If it is given, solver "auto" means nystroem.
        Default: 512, or twice the number of components if that is more.
    warm_start : bool, default=False
        Whether `fit` on the same data continues from the last fit: hebbian runs `max_iter` more
        passes, krylov starts from the last eigenvectors. The Karcher mean is computed again.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. If the matrix does not fit, its tiles are recomputed for each
        product. The results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix, or the features of nystroem, are stored; see
        :func:`orthodrome.gram.gram_operator`.
    inverse_alpha : float, default=1e-6
        Ridge penalty of the inverse map for kernels that are not radial, relative to the largest
        eigenvalue.
    random_state : int, RandomState or None, default=None
        Random numbers for the start and the order of the passes (krylov, hebbian) or for the choice
        of anchors (nystroem). An integer makes results reproducible.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Variances along the components, descending. They are the eigenvalues of the covariance and
        of the matrix P^½ T P^½, where P is the diagonal matrix of the weights p_n. Without sample
        weights, p_n = 1/n. (The eigenvalues of :class:`KernelPCA` are not divided by n, as in
        scikit-learn.)
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Orthonormal eigenvectors of P^½ T P^½.
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training data. If the rows are read in blocks, `embedding_` and
        `eigenvectors_` are stored only if both together, in float64, fit in a quarter of
        `memory_budget`.
    sphere_coordinates_ : ndarray of shape (n_samples, n_components + 1)
        The points Exp_μ(Σ e_q v_q) as unit vectors in the frame (μ, v_1, v_2, …).
    geodesic_variance_ : float
        The mean squared distance from the mean, Σ p_n θ_n². It equals the sum of all eigenvalues.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by `geodesic_variance_`.
    mean_ : ndarray of shape (n_samples,)
        Coefficients of the Karcher mean μ over the training points, scaled so that μ has length 1.
    mean_cosines_ : ndarray of shape (n_samples,)
        Inner products ⟨Φ(x_n), μ⟩. Their arccosines are the distances from the mean.
    mean_drift_ : float
        After `partial_fit`: the angle between the mean of the first rows and the mean of all rows.
    mean_n_iter_, mean_gradient_norm_ : int, float
        Number of steps in the search for the mean, and ‖Σ p_n Log_μ Φ(x_n)‖ at the mean.
    dual_coef_ : ndarray of shape (n_samples, n_components)
        Coefficients of the components v_q over the training points, scaled so that each v_q has
        length 1.
    X_fit_ : ndarray, sparse array or None
        The training data; None for a precomputed kernel. With nystroem, the anchors. With a linear
        or cosine kernel and many more rows than columns, the standard basis of the input space;
        `dual_coef_` and `mean_` are then vectors of the input space. The data are copied. A memory
        map is not copied: keep its file as long as the model is used.
    n_anchors_ : int or None
        The number of anchors, with nystroem. `dual_coef_` and `mean_` then have one row per anchor.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        The training rows that are anchors; None if points were given as anchors.
    kernel_ : Kernel
        The fitted kernel.
    sample_weight_ : ndarray of shape (n_samples,) or None
        The sample weights.
    n_components_ : int
        Number of components.
    solver_ : str
        The eigensolver that ran.
    n_iter_ : int
        Number of products with the Gram matrix, or of passes over its rows (hebbian).
    converged_ : bool
        Whether the eigensolver and the mean reached their tolerances.
    residuals_ : ndarray of shape (n_components,)
        ‖P^½ T P^½ a - λa‖ for the eigenvector a and eigenvalue λ of each component. With nystroem,
        each entry is instead the error of the trace of the Gram matrix. Unlike in kernel PCA, this
        error is not an upper bound of the residuals.
    history_ : list of dict
        One entry per iteration of the eigensolver.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    KernelPCA : The same analysis with straight lines instead of great circles.
    orthodrome.sphere.karcher_mean : Compute only the mean.
    orthodrome.metrics.neighborhood_preservation : Quality of an embedding.

    Notes
    -----
    The paper solves the eigenproblems :math:`G\alpha = \lambda K\alpha` (13) or
    :math:`EK\alpha = \lambda\alpha` (14); the matrices G and E are defined there. Both problems
    have the same eigenvalues as the symmetric matrix P^½ T P^½, which is used here.

    The sign of each component is chosen so that the third moment of its coordinates over the
    training data is positive. So signs do not depend on the solver or on the order of the rows.

    The point of the sphere with coordinates e is
    :math:`\operatorname{Exp}_\mu(\sum_q e_q v_q) = \cos\|e\|\,\mu + \frac{\sin\|e\|}{\|e\|}
    \sum_q e_q v_q`. `inverse_transform` returns the pre-image of this point.
    If ‖e‖ exceeds π, the path from the mean to this point goes more than halfway around the sphere.

    Rows of weight 0 also get coordinates. So they too must lie on the sphere, and must not be
    antipodal to the mean.

    Distances θ from the mean are computed from cosines, so the absolute error of θ² is about 1e-15
    in float64. This matters if σ is so large that all points are very close together.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", ECML PKDD 2014, §4 and §5.1.

    Examples
    --------
    For points on a great circle of the sphere S², kernel PGA needs one component and kernel PCA
    needs two:

    >>> import numpy as np
    >>> from orthodrome import KernelPCA, KernelPGA
    >>> angle = np.linspace(-1, 1, 50)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    >>> KernelPGA(kernel="linear").fit(X).n_components_
    1
    >>> KernelPCA(kernel="linear").fit(X).n_components_
    2
    """

    _geometry = SPHERE

    @property
    def sphere_coordinates_(self) -> NDArray[Any]:
        """The points Exp_μ(Σ e_q v_q) as unit vectors in the frame (μ, v_1, v_2, …)."""
        return over_rows(exp_at_pole, self.embedding_)
