r"""The Karcher mean and the covariance of Log maps, from batches that are read once.

Log maps depend on the mean, so exact sums of them would need a second pass over all rows. The sums
of f and f fᵀ over all unit vectors f do not depend on it. A Log map at μ,

.. math:: \operatorname{Log}_\mu f = s\,(f - c\,\mu), \qquad
    c = \langle f, \mu \rangle = \cos\theta, \quad s = \theta / \sin\theta,

is a projection of f times the factor s, which varies little between rows. A combination of
functions with known sums is fitted to s over a random sample of the rows. The estimate is the known
sum of that combination plus the residuals of the sample (the regression estimator of survey
sampling). Its error is the sampling error times the unexplained fraction of the standard deviation.

With a Gaussian kernel, and rows sorted or not, a sample of 2,048 rows gave eigenvalues within
0.5 %. Errors grow with the variation of θ/sin θ. If points lie outside the open hemisphere about
the mean, the mean may not be unique. The search, which starts from the mean of the sample, may then
find a different mean than a search over all rows.

The results are exact if the sample contains all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from .._core.types import Array, Floats
from .._core.unit import angles_from_cosines, check_no_antipodes, squared_angles
from ..coordinates.points import Origin
from .karcher import bending_matrix, find_mean, second_derivative
from .maps import distance, geodesic_step

_TOL = 1e-10  # tolerance for the norm of the gradient
_MAX_ITER = 100
_RANK_TOL = 1e-6  # relative; keeps coefficients small if the controls are nearly collinear


@dataclass(frozen=True)
class Reservoir:
    """A weighted random sample without replacement.

    Each row draws a key from the exponential distribution of rate w, its weight; the rows with the
    smallest keys are kept (Efraimidis and Spirakis, 2006). Let t be the smallest key that is not
    kept. Given t, a row is kept with probability 1 - exp(-w t). Its weight is divided by that
    probability (Cohen and Kaplan, 2007).

    Attributes
    ----------
    vectors : ndarray of shape (r, m)
        The rows, in order of increasing key.
    weights, lengths, keys : ndarray of shape (r,)
        Weights, lengths and keys of the rows.
    threshold : float
        The smallest key of a row that was not kept.
    """

    vectors: Floats
    weights: Floats
    lengths: Floats
    keys: Floats
    threshold: float = np.inf

    def with_rows(self, other: Reservoir, size: int) -> Reservoir:
        """Merge two samples into one of at most `size` rows."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")
        kept, dropped = order[:size], order[size:]
        smallest = float(keys[dropped].min(initial=np.inf))
        rows = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])[kept]
            for name in ("vectors", "weights", "lengths", "keys")
        }
        return Reservoir(**rows, threshold=min(self.threshold, other.threshold, smallest))

    @property
    def normalized_weights(self) -> Floats:
        """Weights of the sample, with sum 1.

        Weighted sums over the sample estimate means over all rows.
        """
        weights = self.weights / -np.expm1(-self.weights * self.threshold)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class TangentMoments:
    r"""Moments of the batches so far (immutable).

    The sums are those of :math:`a = (1, f - b)`, with a base point b near the rows; differences are
    accurate for points that are close together. The nearer b is to the mean, the better
    :math:`s_b = \theta_b/\sin\theta_b` approximates θ/sin θ at the mean, and the smaller the error
    of the covariance.

    Attributes
    ----------
    base : ndarray of shape (m,)
        The base point.
    sample_size, seed : int
        The maximum size of the sample, and the seed of its random numbers.
    plain, stretched : ndarray of shape (m + 1, m + 1)
        Σ w a aᵀ and Σ w s_b² a aᵀ.
    scaled : ndarray of shape (m + 1,)
        Σ w ℓ a, with ℓ the lengths of the points before normalisation.
    sample : Reservoir
        The sample. It does not depend on how rows are split into batches.
    n_seen : int
        The number of rows so far.
    captured : float
        Σ w ℓ².

    Examples
    --------
    >>> moments = TangentMoments.at(np.array([1.0, 0.0])).with_batch(
    ...     np.eye(2), np.array([2.0, 1.0])
    ... )
    >>> moments.origin().point.round(4)
    array([0.866, 0.5  ])
    """

    base: Floats
    sample_size: int
    seed: int
    plain: Floats
    stretched: Floats
    scaled: Floats
    sample: Reservoir
    n_seen: int = 0
    captured: float = 0.0

    @classmethod
    def at(cls, base: Floats, *, sample_size: int = 2048, seed: int = 0) -> TangentMoments:
        """Return moments without any rows; the base point must have unit length."""
        m = len(base)
        zeros, empty = np.zeros((m + 1, m + 1)), np.zeros(0)
        sample = Reservoir(np.zeros((0, m)), empty, empty, empty)
        point = base.astype(np.float64)
        return cls(point, sample_size, seed, zeros, zeros, np.zeros(m + 1), sample)

    @property
    def count(self) -> float:
        """The sum of the weights."""
        return float(self.plain[0, 0])

    def with_batch(
        self, vectors: Array, weights: Floats | None = None, lengths: Floats | None = None
    ) -> TangentMoments:
        """Return the moments with another batch.

        Parameters
        ----------
        vectors : ndarray of shape (n, m)
            Unit vectors.
        weights : ndarray of shape (n,), optional
            Weights. Default: 1.
        lengths : ndarray of shape (n,), optional
            Lengths of the vectors before normalisation, if they are projections of unit vectors.
            Default: 1.

        Returns
        -------
        TangentMoments
            The new moments.

        Raises
        ------
        ValueError
            If a row with a weight above 0 is antipodal to the base point.
        """
        n = len(vectors)
        w = np.ones(n) if weights is None else weights
        cosines = np.where(w > 0, vectors @ self.base, 1.0)
        check_no_antipodes(cosines, float(np.finfo(vectors.dtype).eps), "points")
        rows = np.flatnonzero(w > 0)
        batch = Reservoir(
            vectors=vectors[rows].astype(np.float64),
            weights=w[rows],
            lengths=np.ones(len(rows)) if lengths is None else lengths[rows],
            keys=self._exponential(n)[rows] / w[rows],
        )
        _, angle_ratios = angles_from_cosines(batch.vectors @ self.base)
        a = np.column_stack([np.ones(len(rows)), batch.vectors - self.base])
        scaled = self.scaled + (batch.weights * batch.lengths) @ a
        a *= np.sqrt(batch.weights)[:, None]
        plain = self.plain + a.T @ a
        a *= angle_ratios[:, None]
        return replace(
            self,
            plain=plain,
            stretched=self.stretched + a.T @ a,
            scaled=scaled,
            sample=self.sample.with_rows(batch, self.sample_size),
            n_seen=self.n_seen + n,
            captured=self.captured + float(batch.weights @ batch.lengths**2),
        )

    def _exponential(self, n: int) -> Floats:
        """Return exponential random numbers for the next n rows, determined by row number."""
        bits = np.random.Philox(key=self.seed)
        bits.advance(self.n_seen // 4)  # one state of the generator gives four numbers
        skipped = self.n_seen % 4
        uniform = np.random.Generator(bits).random(skipped + n)[skipped:]
        return np.asarray(-np.log1p(-uniform))

    def origin(self) -> Origin:
        """Estimate the mean, and the moments of Log maps at the mean.

        Returns
        -------
        Origin
            The estimates. `covariance` is Σ w z zᵀ / Σ w with z = Log f at the mean; its smallest
            eigenvalues may be negative. `total` is the mean of θ², with the angles of the points
            before projection, and `term_size` that of (θ/sin θ)².

        Raises
        ------
        ValueError
            If all weights are 0, or rows of the sample have no mean or are antipodal to it.
        """
        if not self.count > 0:
            raise ValueError("All rows so far have weight 0. Give rows with positive weights.")
        p, vectors = self.sample.normalized_weights, self.sample.vectors
        point, gradient_norm, n_iter = self._mean(p)
        cosines = vectors @ point
        check_no_antipodes(cosines, float(np.finfo(np.float64).eps), "points")
        _, angle_ratios = angles_from_cosines(cosines)
        _, at_base = angles_from_cosines(vectors @ self.base)
        controls = np.column_stack([np.ones(len(p)), at_base**2])
        coefficients, residuals = _weighted_regression(angle_ratios**2, controls, p)
        known = (coefficients[0] * self.plain + coefficients[1] * self.stretched) / self.count
        normal = self.base - (self.base @ point) * point
        project = np.column_stack([normal, np.eye(len(point)) - np.outer(point, point)])
        tangents = vectors - np.outer(cosines, point)
        covariance = project @ known @ project.T + (tangents * residuals[:, None]).T @ tangents
        total = self._total(point, cosines, p)
        return Origin(
            point=point,
            covariance=(covariance + covariance.T) / 2,
            total=total,
            term_size=float(known[0, 0] + residuals.sum()),
            count=self.count,
            trace=1.0,
            left_out=1.0 - self.captured / self.count,
            attributes={
                "mean_n_iter_": n_iter,
                "mean_gradient_norm_": gradient_norm,
                "mean_drift_": float(distance(self.base, point)),
                "geodesic_variance_": total,
            },
            converged=gradient_norm <= _TOL,
        )

    def _mean(self, p: Floats) -> tuple[Floats, float, int]:
        """Return the mean, the norm of the gradient and the number of steps.

        The search starts from the mean of the sample, with the second derivative there. θ/sin θ is
        regressed on 1 and cos θ once, at the start.
        """
        vectors = self.sample.vectors
        start = find_mean(vectors, p, tol=_TOL, max_iter=_MAX_ITER)
        _, angle_ratios = angles_from_cosines(start.cosines)
        bend = bending_matrix(vectors, start.point, p)
        hessian = second_derivative(bend, float(p @ (start.cosines * angle_ratios)))
        factor = scipy.linalg.cho_factor(hessian)
        controls = np.column_stack([np.ones(len(p)), start.cosines])
        constant, slope = _weighted_regression(angle_ratios, controls, p)[0]

        def gradient(point: Floats) -> Floats:
            cosines = vectors @ point
            residuals = p * (angles_from_cosines(cosines)[1] - constant - slope * cosines)
            known = self.plain @ (slope * self._extended(point)) + constant * self.plain[0]
            pull = (known[1:] + known[0] * self.base) / self.count + residuals @ vectors
            return np.asarray(pull - (pull @ point) * point)

        point, pull = start.point, gradient(start.point)
        n_iter = start.n_iter
        for _ in range(_MAX_ITER):
            step = scipy.linalg.cho_solve(factor, pull)
            new_point = geodesic_step(point, step - (step @ point) * point)
            new_pull = gradient(new_point)
            if not np.linalg.norm(new_pull) < 0.9 * np.linalg.norm(pull):  # only rounding errors
                break
            point, pull, n_iter = new_point, new_pull, n_iter + 1
        return point, float(np.linalg.norm(pull)), n_iter

    def _total(self, point: Floats, cosines: Floats, p: Floats) -> float:
        """Return the mean of θ², from a regression on 1, c, c², ℓ and ℓ c."""
        lengths, h = self.sample.lengths, self._extended(point)
        ones = np.ones(len(p))
        controls = np.column_stack([ones, cosines, cosines**2, lengths, lengths * cosines])
        values = squared_angles(cosines * lengths)
        coefficients, residuals = _weighted_regression(values, controls, p)
        product = self.plain @ h
        sums = [self.count, product[0], h @ product, self.scaled[0], self.scaled @ h]
        return max(float(coefficients @ sums / self.count + residuals.sum()), 0.0)

    def _extended(self, point: Floats) -> Floats:
        """Return h with ⟨f, point⟩ = h · a."""
        return np.concatenate([[self.base @ point], point])


def _weighted_regression(values: Floats, controls: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of weighted least squares, and the weighted residuals."""
    root = np.sqrt(p)
    coefficients = np.linalg.lstsq(controls * root[:, None], values * root, rcond=_RANK_TOL)[0]
    return np.asarray(coefficients, np.float64), p * (values - controls @ coefficients)
