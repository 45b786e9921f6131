"""Pre-images of expansions, by fixed-point iteration or ridge regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from .._core.checks import (
    check_choice,
    check_integer,
    check_numbers,
    check_positive,
    numbers_expected,
)
from .._core.status import Status
from .._core.types import Array, Data
from ..gram import gram_operator
from .manifold import Preimages, fitted_kernel, fixed_point_preimages, has_fixed_point, in_form_of
from .ridge import ridge


def preimage(
    kernel: Any,
    X: Data,
    coefficients: ArrayLike,
    *,
    method: str = "auto",
    n_starts: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
    alpha: float = 1e-6,
    memory_budget: str | float = "2GiB",
) -> Preimages:
    r"""Find inputs whose feature vectors are near given expansions.

    For each row β of `coefficients`, find z with Φ(z) near :math:`\sum_n \beta_n \Phi(x_n)`. For
    radial kernels ‖Φ(z)‖ is constant and the best z maximises
    :math:`\rho(z) = \sum_n \beta_n k(x_n, z)`; the fixed point of Mika et al., generalised to the
    derivative of any profile, is iterated from several starts and the best result is kept. Gaussian
    kernels on shapes and matrices have similar fixed points (:func:`fixed_point_preimages`). For
    other kernels the inputs are regressed on their feature vectors: shapes as pre-shapes rotated to
    their mean, matrices as logarithms.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel; an unfitted one is fitted to X.
    X : array-like of shape (n, d), or of the shape that the kernel expects
        The points of the expansions; landmarks may be (n, k) complex, (n, k, 2) or (n, 2k),
        matrices (n, d, d).
    coefficients : array-like of shape (m, n) or (n,)
        One expansion per row.
    method : {"auto", "fixed-point", "ridge"}, default="auto"
        "auto" uses the fixed point if the kernel has one, else ridge regression.
    n_starts : int, default=3
        Fixed point: the number of training points to start from, those with the largest ρ. The
        mean of X weighted with the positive part of β is also a start.
    tol : float, default=1e-6
        Fixed point: stop when a step is at most tol times the spread of X; for shapes, both are
        full Procrustes distances.
    max_iter : int, default=500
        Fixed point: the maximum number of iterations.
    alpha : float, default=1e-6
        Ridge: the penalty relative to the mean feature-space variance.
    memory_budget : str or number, default="2GiB"
        Ridge: the memory for the n x n system.

    Returns
    -------
    Preimages
        Points, similarity and status. Shapes are landmarks of centroid size 1, in the form of X.

    References
    ----------
    Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, "Kernel PCA and de-noising in feature
    spaces", NIPS 1998; Bakır, Weston and Schölkopf, "Learning to find pre-images", NIPS 2003.

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian, VeroneseWhitney
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> preimage(Gaussian(sigma=1.0), X, [0.5, 0.5, 0.0]).points.round(3)
    array([[0.5]])

    A shape between two shapes, whose location, size and rotation do not matter:

    >>> kites = [[0, 0, 1, 1, 0, 3, -1, 1], [0, 0, 1, 2, 0, 3, -1, 2]]
    >>> preimage(VeroneseWhitney(sigma=1.0), kites, [0.5, 0.5]).points.round(3) + 0.0
    array([[ 0.   , -0.588,  0.392,  0.   ,  0.   ,  0.588, -0.392,  0.   ]])
    """
    check_choice(method, ("auto", "fixed-point", "ridge"), "method", "preimage")
    check_integer(n_starts, "n_starts", "preimage")
    check_integer(max_iter, "max_iter", "preimage")
    check_positive(tol, "tol", "preimage")
    check_positive(alpha, "alpha", "preimage")
    fitted = fitted_kernel(kernel, X, "preimage")
    data = fitted.validate(X, reset=False)
    beta = _check_coefficients(coefficients, data)
    possible = has_fixed_point(fitted, data)
    if method == "ridge" or (method == "auto" and not possible):
        operator = gram_operator(fitted, data, memory_budget=memory_budget)
        dense = data.toarray() if scipy.sparse.issparse(data) else data
        vectors, inverse = fitted.as_vectors(dense)
        points = inverse(ridge(operator, vectors, beta, alpha=alpha, memory_budget=memory_budget))
        unknown = np.full(len(beta), np.nan)
        return Preimages(in_form_of(points, X), unknown, 1, Status.CONVERGED, "ridge")
    if not possible:
        kind = "sparse X and " if scipy.sparse.issparse(data) else ""
        raise ValueError(
            "The fixed point needs dense X and a radial kernel, or a positive definite Gaussian "
            f"kernel of shapes or matrices; got {kind}{type(fitted).__name__}. Use method='ridge'."
        )
    found = fixed_point_preimages(
        fitted, data, beta.__getitem__, len(beta), n_starts=n_starts, tol=tol, max_iter=max_iter
    )
    return replace(found, points=in_form_of(found.points, X))


def _check_coefficients(coefficients: ArrayLike, X: Any) -> Array:
    with numbers_expected(coefficients, "coefficients", "preimage"):
        rows = np.atleast_2d(coefficients)
    beta = check_numbers(rows, "coefficients", "preimage", dtype=[np.float64, np.float32])
    if beta.shape[1] != X.shape[0]:
        raise ValueError(
            f"coefficients must have one column per row of X, {X.shape[0]}; got {beta.shape[1]}."
        )
    return beta.astype(X.dtype, copy=False)
