"""Kernel of inner products of Log maps at a reference point."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from .._core.checks import check_finite_vector
from .._core.types import Array, Floats
from .._core.unit import angles_from_complements, check_no_antipodes, squared_radius
from .._core.warn import warn_user
from .base import Kernel, Prepared, rectangular_block
from .manifolds import has_profile, profile_of, squared_distances_of
from .wrappers import Wrapper, fresh_inner


class Geodesic(Wrapper):
    r"""Kernel of inner products of Log maps on the sphere of another kernel.

    Feature vectors of unit length lie on a sphere. The inner products of their Log maps at a
    reference point :math:`\tilde y` on the sphere are a kernel,

    .. math:: k^{\tilde y}(x, y) = g(x)\, \bigl(k(x, y) - c(x)\, c(y)\bigr)\, g(y), \qquad
        c(x) = \langle \Phi(x), \tilde y \rangle = \cos\theta(x), \quad
        g = \theta / \sin\theta .

    Its diagonal is θ², the squared geodesic distance from the reference. The reference itself is
    mapped to 0. (The paper also mentions arccos k as the kernel at the reference; this contradicts
    the g of the paper and would not be positive definite.)

    A good reference is the pre-image of the Karcher mean,
    :func:`orthodrome.preimage.karcher_mean_preimage`, or the mean itself as an expansion,
    :func:`orthodrome.sphere.karcher_mean`.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel with constant k(x, x); its values are divided by this constant. Its parameters are
        set as ``kernel__sigma`` and so on.
    reference : array-like of shape (n_features,) or (m, n_features)
        A point x̃, so that ỹ = Φ(x̃). With `coefficients`: m points.
    coefficients : array-like of shape (m,), optional
        The reference is the direction of :math:`\sum_j \xi_j \Phi(\tilde x_j)`.

    Attributes
    ----------
    kernel_ : Kernel
        The fitted inner kernel.

    See Also
    --------
    orthodrome.gram.Tangent : The same for a Gram matrix, with a reference given by coefficients.

    References
    ----------
    Courty, Burger and Marteau, "Geodesic Analysis on the Gaussian RKHS Hypersphere", ECML PKDD
    2012, §3.2 and §4.

    Examples
    --------
    >>> from orthodrome.kernels import Gaussian, Geodesic
    >>> kernel = Geodesic(Gaussian(sigma=1.0), reference=[0.0])
    >>> kernel([[0.0], [1.0], [2.0]]).round(3)
    array([[0.   , 0.   , 0.   ],
           [0.   , 0.845, 0.878],
           [0.   , 0.878, 2.059]])
    """

    def __init__(
        self, kernel: Any, reference: ArrayLike, coefficients: ArrayLike | None = None
    ) -> None:
        self.kernel = kernel
        self.reference = reference
        self.coefficients = coefficients

    def _resolve(self, X: Any, sample_weight: Floats | None) -> None:
        self._set_inner(fresh_inner(self).fit_validated(X, sample_weight))

    @classmethod
    def of_fitted(
        cls, kernel: Kernel, reference: ArrayLike, coefficients: ArrayLike | None = None
    ) -> Geodesic:
        """Return the geodesic kernel of a fitted kernel.

        ``Geodesic(kernel, reference).fit(X)`` fits a copy of the inner kernel to X instead. In the
        parameter ``kernel``, rules such as ``sigma="mean"`` are replaced by the fitted numbers, so
        that ``clone`` keeps these.
        """
        geodesic = cls(kernel.resolved(), reference, coefficients)
        geodesic.n_features_in_ = kernel.n_features_in_
        geodesic._set_inner(kernel)
        geodesic.fitted_ = True
        return geodesic

    def _set_inner(self, kernel: Kernel) -> None:
        """Set the fitted inner kernel, and prepare the reference for it."""
        if kernel.hermitian:
            raise ValueError(
                f"Geodesic needs a kernel with real values, and {type(kernel).__name__} has "
                "complex values; for shapes use VeroneseWhitney."
            )
        self.kernel_ = kernel
        self.positive_definite = kernel.positive_definite
        self._reference_ = self.kernel_.prepare(self._validated_reference().copy())
        self._radius_ = squared_radius(
            self.kernel_.diagonal(self._reference_), what="reference of Geodesic"
        )
        self._coefficients_ = self._unit_coefficients()

    def _validated_reference(self) -> Any:
        reference: Any = self.reference
        try:
            if self.coefficients is None and not scipy.sparse.issparse(reference):
                reference = np.asarray(reference)[None]
            return self.kernel_.validate(reference, reset=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"reference of Geodesic is not a point of the data: {error}") from None

    def _unit_coefficients(self) -> Floats:
        m = len(self._reference_)
        if self.coefficients is None:
            return np.ones(m)
        xi = check_finite_vector(self.coefficients, m, "coefficients", "Geodesic")
        block = rectangular_block(self.kernel_, self._reference_, self._reference_)
        square = float(xi @ block.astype(np.float64) @ xi) / self._radius_
        if not square > 64 * np.finfo(block.dtype).eps * float(np.abs(xi).sum()) ** 2 / m:
            raise ValueError(
                "The reference of Geodesic has no length: with these coefficients the points "
                "cancel. Change the coefficients."
            )
        return xi / np.sqrt(square)

    def prepare(self, X: Any) -> Prepared:
        """Prepare for the inner kernel and compute angles from the reference."""
        points = self.kernel_.prepare(X)
        squared_radius(self.kernel_.diagonal(points), self._radius_)
        complements = self._complements(points)
        eps = float(np.finfo(points.dtype).eps)
        check_no_antipodes(1 - complements, eps, "points")
        n_far = int(np.count_nonzero(complements >= 1 + 4 * eps))
        if n_far:
            warn_user(
                f"{n_far} of {len(points)} points lie more than a quarter of a great circle from "
                "the reference of Geodesic, where Log maps distort distances most; use a "
                "reference nearer to them, or a kernel without negative values."
            )
        angles, ratios = angles_from_complements(complements)
        ratios[angles == 0] = 0.0  # the reference itself is mapped to exactly 0
        return Prepared(points, np.column_stack([complements, ratios, angles]))

    def _complements(self, points: Prepared) -> Array:
        """Return 1 - c, without cancellation if the kernel has a profile."""
        if has_profile(self.kernel_) and self.coefficients is None:
            d2 = squared_distances_of(self.kernel_, points, self._reference_)[:, 0]
            return profile_of(self.kernel_).one_minus(d2).astype(points.dtype, copy=False)
        block = rectangular_block(self.kernel_, points, self._reference_)
        cosines = block @ self._coefficients_.astype(block.dtype) / self._radius_
        return np.clip(1 - cosines, 0.0, 2.0).astype(points.dtype)

    def evaluate(self, a: Prepared, b: Prepared, out: Array | None = None) -> Array:
        """Compute the block."""
        u, v = a.per_point[:, 0], b.per_point[:, 0]
        if has_profile(self.kernel_):
            # k - c c' = (1 - c) + (1 - c') - (1 - c)(1 - c') - (1 - k), small terms for near points
            block = squared_distances_of(self.kernel_, a.coordinates, b.coordinates, out)
            # u + v - uv, evaluated so that exchanging u and v changes no bit
            sums = np.add.outer(u, v) - np.multiply.outer(u, v)
            block = np.subtract(sums, profile_of(self.kernel_).one_minus(block), out=block)
        else:
            block = self.kernel_.evaluate(a.coordinates, b.coordinates, out)
            block /= block.dtype.type(self._radius_)
            block -= np.multiply.outer(1 - u, 1 - v)
        block *= np.multiply.outer(a.per_point[:, 1], b.per_point[:, 1])
        return block

    def diagonal(self, points: Prepared) -> Array:
        """Return θ² of each point."""
        return points.per_point[:, 2] ** 2
