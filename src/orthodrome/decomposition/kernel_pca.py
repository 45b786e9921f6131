"""Kernel principal component analysis."""

from __future__ import annotations

import numpy as np

from .._core.types import Floats
from .geometry import FLAT
from .spectral import SpectralDecomposition


class KernelPCA(SpectralDecomposition):
    r"""Kernel principal component analysis, for any kernel and any number of rows.

    The principal components of the feature vectors Φ(x) are the leading eigenvectors of the
    centred Gram matrix,

    .. math:: K' a_q = \lambda_q a_q, \qquad
        e_q(x) = \lambda_q^{-1/2} \sum_n a_{qn} \langle \Phi'(x_n), \Phi'(x) \rangle .

    The matrix is stored only if it fits in `memory_budget`; otherwise its tiles are recomputed for
    each product.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None, default=None
        The number of components, or the fraction of the variance to explain. None: all components
        with a positive eigenvalue, which needs the whole spectrum of an n x n matrix.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. Names of scikit-learn kernels are accepted, with
        the same meaning.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver; :func:`orthodrome.eigen.choose_solver` returns what "auto" uses, and why.
        "hebbian" gives an approximate solution after one or two passes over the Gram matrix
        (options: :class:`orthodrome.eigen.Hebbian`). "nystroem" approximates all points with
        features computed from a few anchors; it needs no pass over the Gram matrix and stores only
        the anchors (options: :class:`orthodrome.eigen.Nystroem`).
    tol : float, optional
        Stop when every residual ‖K'a - λa‖ is at most tol times the largest eigenvalue. Default:
        1e-8 for krylov; 1e-2 for hebbian, which estimates the residuals. For nystroem: add anchors
        until the error of the trace of the Gram matrix is at most tol times the trace; by default,
        use `n_anchors`.
    max_iter : int, optional
        Maximum number of products with the Gram matrix (krylov, default 200) or of passes over its
        rows (hebbian, default 50).
    n_anchors : int, optional
        Maximum number of anchors for nystroem, which "auto" uses if this is given. Default: 512, or
        twice the number of components if that is more.
    warm_start : bool, default=False
        Whether `fit` on the same data continues from the last fit: hebbian runs `max_iter` more
        passes, krylov starts from the last eigenvectors.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. If it does not fit, tiles are recomputed; results do not change.
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
        Leading eigenvalues of K', descending, as in scikit-learn (not divided by n). Weights act as
        repeated rows.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Orthonormal eigenvectors of K' (with weights, of W^½ K' W^½).
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training data. For rows that are read in blocks, they and `eigenvectors_`
        are stored only if both, computed in float64, fit in a quarter of `memory_budget`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace, the total variance in feature space. If the kernel is not
        positive definite, negative eigenvalues reduce the trace, and the ratios may add up to more
        than 1; `fit` warns if it finds such eigenvalues.
    dual_coef_, intercept_ : ndarrays of shape (n_samples, n_components), (n_components,)
        ``transform(X) = k(X, X_fit_) @ dual_coef_ + intercept_``.
    mean_ : ndarray of shape (n_samples,)
        Coefficients of the mean over `X_fit_`: the weights, divided by their sum.
    X_fit_ : ndarray, sparse array or None
        The training data; None for a precomputed kernel. With nystroem, the anchors. With a linear
        or cosine kernel and many more rows than columns, the unit vectors of the input space, and
        `dual_coef_` and `mean_` are vectors of the input space. The data are copied, except for a
        memory map, whose file the model needs.
    n_anchors_ : int or None
        With nystroem, the number of anchors; `dual_coef_` and `mean_` have as many rows.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        The training rows that are anchors; None if points were given as anchors.
    kernel_ : Kernel
        The fitted kernel.
    sample_weight_ : ndarray of shape (n_samples,) or None
        The weights.
    n_components_ : int
        Number of components.
    solver_ : str
        The solver that ran.
    n_iter_ : int
        Number of products with the Gram matrix, or of passes over its rows (hebbian).
    converged_ : bool
        Whether the solver reached `tol`.
    residuals_ : ndarray of shape (n_components,)
        ‖K'a - λa‖ of each component. With nystroem, the error of the trace, which bounds the
        residuals.
    history_ : list of dict
        The solver's iterations.
    n_samples_seen_ : int
        After `partial_fit`: the number of rows so far.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.decomposition.KernelPCA : The same decomposition, for matrices that fit in memory.

    Notes
    -----
    Each component has a positive third moment over the training data, so that signs do not depend
    on the solver or on the order of the rows.

    The point of feature space with coordinates e is :math:`\sum_n \beta_n \Phi(x_n)` with
    :math:`\beta = p + A e`, where A is ``dual_coef_`` and p is ``mean_``; `inverse_transform`
    returns its pre-image.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthodrome import KernelPCA
    >>> X = load_iris().data
    >>> pca = KernelPCA(n_components=2).fit(X)
    >>> pca.transform(X[:3]).shape
    (3, 2)
    >>> float(pca.explained_variance_ratio_.sum().round(3))
    0.905
    """

    _geometry = FLAT

    @property
    def mean_(self) -> Floats:
        """Coefficients of the mean over the points in `X_fit_`."""
        self._ready()
        if self._mean_coef_ is not None:
            return self._mean_coef_
        n = len(self.embedding_)
        if self.sample_weight_ is None:
            return np.full(n, 1.0 / n)
        return self.sample_weight_ / self.sample_weight_.sum()
