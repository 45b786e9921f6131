"""Kernel principal component analysis."""

from __future__ import annotations

import numpy as np

from .._core.types import Floats
from .geometry import FLAT
from .spectral import SpectralDecomposition


class KernelPCA(SpectralDecomposition):
    r"""Kernel principal component analysis, for any kernel and any number of rows.

    Each point x has a feature vector Φ(x). Let :math:`\Phi'(x)` be this vector minus the mean of
    the feature vectors of the training points x_n, and let K' be the centred Gram matrix, with
    entries :math:`\langle \Phi'(x_m), \Phi'(x_n) \rangle`. The principal components follow from
    the leading eigenvectors a_q of K', and e_q(x) is the coordinate of x on component q:

    .. math:: K' a_q = \lambda_q a_q, \qquad
        e_q(x) = \lambda_q^{-1/2} \sum_n a_{qn} \langle \Phi'(x_n), \Phi'(x) \rangle .

    K' is stored only if it fits in `memory_budget`. Otherwise its tiles are recomputed for each
    product.

    Parameters
    ----------
    n_components : int, float in (0, 1) or None, default=None
        The number of components, or the fraction of the variance to explain. None: all components
        with a positive eigenvalue; this computes all eigenvalues of an n x n matrix.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. The names of scikit-learn's kernels are also
        accepted, and mean the same kernels as there.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver. :func:`orthodrome.eigen.choose_solver` returns the solver that "auto" uses
        and the reason. "hebbian" gives an approximate solution after one or two passes over the
        Gram matrix (options: :class:`orthodrome.eigen.Hebbian`). "nystroem" approximates all points
        with features computed from a few anchors. It needs no pass over the Gram matrix and stores
        only the anchors (options: :class:`orthodrome.eigen.Nystroem`).
    tol : float, optional
        Stop when the residual ‖K'a - λa‖ of every eigenvector a is at most tol times the largest
        eigenvalue. (With sample weights, K' is replaced by W^½ K' W^½; see `eigenvalues_`.)
        Default: 1e-8 for krylov; 1e-2 for hebbian, which estimates the residuals. For nystroem: add
        anchors until the error of the trace of the Gram matrix is at most tol times the trace. If
        tol is not given, nystroem uses `n_anchors` anchors.
    max_iter : int, optional
        Maximum number of products with the Gram matrix (krylov, default 200) or of passes over its
        rows (hebbian, default 50).
    n_anchors : int, optional
        Maximum number of anchors for nystroem. If it is given, solver "auto" means nystroem.
        Default: 512, or twice the number of components if that is more.
    warm_start : bool, default=False
        Whether `fit` on the same data continues from the last fit: hebbian runs `max_iter` more
        passes, krylov starts from the last eigenvectors.
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
        Leading eigenvalues of K', descending. As in scikit-learn, they are not divided by n. With
        sample weights, those of W^½ K' W^½, where W is the diagonal matrix of the weights. A row of
        weight 2 then counts like two equal rows.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Orthonormal eigenvectors of K' or, with sample weights, of W^½ K' W^½.
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training data. If the rows are read in blocks, `embedding_` and
        `eigenvectors_` are stored only if both together, in float64, fit in a quarter of
        `memory_budget`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace of the matrix, that is, by the total variance in feature
        space. If the kernel is not positive definite, negative eigenvalues reduce the trace, and
        the ratios may add up to more than 1. `fit` warns if it finds negative eigenvalues.
    dual_coef_, intercept_ : ndarrays of shape (n_samples, n_components), (n_components,)
        ``transform(X) = k(X, X_fit_) @ dual_coef_ + intercept_``.
    mean_ : ndarray of shape (n_samples,)
        Coefficients of the mean over `X_fit_`. If `X_fit_` holds the training data, these are the
        sample weights divided by their sum.
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
        The solver that ran.
    n_iter_ : int
        Number of products with the Gram matrix, or of passes over its rows (hebbian).
    converged_ : bool
        Whether the solver reached `tol`.
    residuals_ : ndarray of shape (n_components,)
        ‖K'a - λa‖ for the eigenvector a and eigenvalue λ of each component. With nystroem, each
        entry is instead the error of the trace of the Gram matrix, an upper bound of the residuals.
    history_ : list of dict
        One entry per iteration of the solver.
    n_samples_seen_ : int
        After `partial_fit`: the number of rows so far.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.decomposition.KernelPCA : The same decomposition, for matrices that fit in memory.

    Notes
    -----
    The sign of each component is chosen so that the third moment of its coordinates over the
    training data is positive. So signs do not depend on the solver or on the order of the rows.

    The point of feature space with coordinates e is :math:`\sum_n \beta_n \Phi(x_n)` with
    :math:`\beta = p + A e`, where A is ``dual_coef_`` and p is ``mean_``. `inverse_transform`
    returns the pre-image of this point.

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
        weights = self.sample_weight_
        weights = np.ones(len(self.embedding_)) if weights is None else weights
        return weights / weights.sum()
