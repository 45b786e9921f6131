"""Base class of the denoisers, validation of their data, and the choice of parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._core.checks import check_positive, numbers_expected
from .._core.parameters import integer, or_word, seed
from .._core.warn import warn_user
from ..decomposition import KernelPCA
from ..eigen.leading import check_solver
from ..kernels import Kernel, Precomputed, Radial, as_kernel
from ..preimage.fixed_point import Vectors, fixed_point

_MAX_ITER = 500  # as in preimage
_BLOCK_ELEMENTS = 2**23  # coefficients of expansions in memory: 64 MiB


def clean(
    model: KernelPCA,
    points: NDArray[Any],
    *,
    n_components: int | None = None,
    tol: float = 1e-4,
) -> tuple[NDArray[Any], int]:
    r"""Return pre-images of projections on the leading components, and how many did not converge.

    With coordinates e of a point x, the projection is :math:`\sum_n \beta_n \Phi(x_n)`,
    :math:`\beta = p + A e`, A the model's ``dual_coef_`` and p its ``mean_``. For radial kernels
    the fixed-point iteration of Mika et al. starts at x itself. (``inverse_transform`` has only
    the coordinates and tries several starts; if x is near its pre-image, both results agree.)

    Parameters
    ----------
    model : KernelPCA
        A model fitted without weights.
    points : ndarray of shape (m, d)
        Points to denoise.
    n_components : int, optional
        Number of components to use; default: all.
    tol : float
        The iteration stops when a step is at most tol times the spread of the training points.
    """
    coordinates = model.transform(points)
    r = model.n_components_ if n_components is None else n_components
    if not isinstance(model.kernel_, Radial):
        coordinates[:, r:] = 0.0
        return model.inverse_transform(coordinates), 0
    training = np.asarray(model.X_fit_)  # never None: the kernel is not precomputed
    directions = model.dual_coef_[:, :r].T
    mean = model.mean_.astype(directions.dtype)
    domain, found = Vectors(model.kernel_, training), np.empty_like(points)
    n_unconverged = 0
    step = max(1, _BLOCK_ELEMENTS // len(training))
    for first in range(0, len(points), step):
        rows = slice(first, first + step)
        expansion = coordinates[rows, :r] @ directions + mean
        ends = fixed_point(domain, expansion, points[rows], tol=tol, max_iter=_MAX_ITER)
        found[rows] = ends.points
        n_unconverged += int(np.count_nonzero(~ends.converged))
    return found, n_unconverged


# A kernel's scale rule computes its scale from the data, for example sigma="median". The candidate
# scales are 2**p times the scale from this rule, for these p. With the largest scale the kernel is
# practically linear, which suits data without nonlinear structure.
_POWERS = range(-4, 4)
_MIN_TOL = 1e-6


@dataclass(frozen=True)
class Risk:
    r"""Estimated mean squared error of a denoiser f at data y = x + noise.

    Let n be the number of values in y and s the standard deviation of the noise. Then

    .. math:: R = \tfrac1n \|f(y) - y\|^2 - s^2 + 2 s^2 d, \qquad
        d = \tfrac1n \operatorname{div} f(y)

    has the same expectation as the mean squared error :math:`\|f(y) - x\|^2 / n`. A blend t makes
    only the fraction t of the change, so the result is :math:`y + t (f(y) - y)`. The risk of this
    result is a parabola in t with its minimum at
    :math:`t = n s^2 (1 - d) / \|f(y) - y\|^2`. If f changes the data more than the noise explains,
    this best t is less than 1. With the best t, the mean squared change of the data is at most
    :math:`s^2 (1 - d)`, and the risk is at most :math:`s^2`, the risk of the unchanged data.

    Attributes
    ----------
    change : float
        The mean squared change, ‖f(y) - y‖²/n.
    divergence : float
        The divergence d. It is the fraction of the noise that f keeps.
    noise : float
        The standard deviation s of the noise.

    References
    ----------
    Stein, "Estimation of the mean of a multivariate normal distribution", Ann. Statist. 9 (1981).

    Examples
    --------
    >>> risk = Risk(change=1.25, divergence=0.1, noise=1.0)
    >>> round(risk.blend, 2), round(risk.at(1.0), 2), round(risk.at(risk.blend), 2)
    (0.72, 0.45, 0.35)
    """

    change: float
    divergence: float
    noise: float

    @property
    def blend(self) -> float:
        """The fraction t of the change, between 0 and 1, with the smallest estimated risk."""
        explained = max(self.noise**2 * (1.0 - self.divergence), 0.0)
        return 1.0 if explained >= self.change else explained / self.change

    def at(self, blend: float) -> float:
        """Return the estimated risk if the fraction `blend` of the change is made."""
        variance = self.noise**2
        return variance + blend**2 * self.change - 2.0 * blend * variance * (1.0 - self.divergence)


@dataclass(frozen=True)
class Sample:
    """Training points of a model and points to denoise, each of shape (n, d)."""

    training: NDArray[Any]
    queries: NDArray[Any]


@dataclass(frozen=True)
class Trial:
    """Noisy data, and the same data perturbed by εb with random signs b.

    The training points are perturbed too. A kernel of small scale copies the noise of the training
    points. If they were not perturbed, such a kernel would seem to remove noise.

    Attributes
    ----------
    original, perturbed : Sample
        The points without and with the perturbation.
    gather : callable
        Linear map from (denoised) queries to values; for image patches, the values are pixels.
    values, signs : ndarray of shape (k,)
        The noisy values, ``gather(original.queries)``, and the sign in b for each of them.
    epsilon : float
        The size ε of the perturbation.
    """

    original: Sample
    perturbed: Sample
    gather: Callable[[NDArray[Any]], NDArray[Any]]
    values: NDArray[Any]
    signs: NDArray[Any]
    epsilon: float


def estimate_risk(
    trial: Trial, original: NDArray[Any], perturbed: NDArray[Any], noise: float
) -> Risk:
    r"""Estimate the risk with Monte Carlo SURE (Stein's unbiased risk estimate).

    `original` and `perturbed` are the denoised queries of the two samples of `trial`. Only the
    divergence d is approximated:

    .. math:: d \approx \tfrac{1}{n\epsilon}\, b^\top (f(y + \epsilon b) - f(y)) .

    References
    ----------
    Ramani, Blu and Unser, "Monte-Carlo SURE: a black-box optimization of regularization
    parameters for general denoising algorithms", IEEE Trans. Image Processing 17 (2008).
    """
    f, g = trial.gather(original), trial.gather(perturbed)
    return Risk(
        change=float(np.mean((f - trial.values) ** 2)),
        divergence=float(np.mean(trial.signs * (g - f))) / trial.epsilon,
        noise=noise,
    )


@dataclass(frozen=True)
class Choice:
    """The chosen kernel, number of components and blend, and their estimated risk."""

    kernel: Kernel
    n_components: int
    blend: float
    risk: float


def choose(
    trial: Trial,
    kernel: Kernel,
    noise: float,
    counts: Sequence[int],
    *,
    blend: float | None = None,
    random_state: Any = None,
) -> Choice:
    """Choose the kernel scale, number of components and blend with the smallest risk.

    The candidate scales are the scale from the kernel's scale rule times powers of 2 from 1/16 to
    8. The search starts with the scale from the rule and moves to neighbouring scales as long as
    the risk decreases. For each scale, it searches the numbers of components in the same way.

    Parameters
    ----------
    trial : Trial
        The data.
    kernel : Kernel
        An unfitted kernel. If its ``sigma`` is the name of a rule, the scale is chosen. If it is a
        number, it is kept.
    noise : float
        Standard deviation of the noise.
    counts : sequence of int
        Numbers of components, ascending.
    blend : float, optional
        The fraction of the change to make. Default: choose the best fraction for each candidate.
    random_state : int, RandomState or None
        Seed or generator for the eigensolver.
    """
    training = trial.original.training
    kernels = _scaled_kernels(kernel, training)
    spread = math.sqrt(float(training.var(axis=0).sum()))
    if spread == 0.0:
        raise ValueError("The squares of the values underflow; rescale the data.")
    # The error of the pre-images must be much smaller than the effect of the perturbation.
    tol = max(1e-2 * trial.epsilon * math.sqrt(training.shape[1]) / spread, _MIN_TOL)
    best: dict[int, tuple[float, int, Risk]] = {}

    def cost_of_scale(index: int) -> float:
        risk_of = _risks(trial, kernels[index][1], noise, counts, tol, random_state)

        def cost(i: int) -> float:
            risk = risk_of(i)
            return risk.at(risk.blend if blend is None else blend)

        # start with the best number of components of the nearest scale
        nearest = min(best, key=lambda other: abs(other - index), default=None)
        start = len(counts) // 2 if nearest is None else best[nearest][1]
        i = _descend(cost, start, len(counts))
        best[index] = cost(i), i, risk_of(i)
        return best[index][0]

    first = next(index for index, (multiple, _) in enumerate(kernels) if multiple == 1.0)
    index = _descend(cost_of_scale, first, len(kernels))
    estimate, i, risk = best[index]
    return Choice(kernels[index][1], counts[i], risk.blend if blend is None else blend, estimate)


def _scaled_kernels(kernel: Kernel, training: NDArray[Any]) -> list[tuple[float, Kernel]]:
    """Return pairs (multiple, kernel); the scale is that multiple of the scale from the rule."""
    if not has_scale_rule(kernel):
        return [(1.0, kernel)]
    rule = float(clone(kernel).fit(training).sigma_)
    return [(2.0**p, clone(kernel).set_params(sigma=2.0**p * rule)) for p in _POWERS]


def _risks(
    trial: Trial,
    kernel: Kernel,
    noise: float,
    counts: Sequence[int],
    tol: float,
    random_state: Any,
) -> Callable[[int], Risk]:
    """Fit kernel PCA to both samples; return the risk as a function of the index in `counts`."""
    with warnings.catch_warnings():
        # the risk of candidates that do not converge is estimated too
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [
            KernelPCA(counts[-1], kernel, random_state=random_state).fit(sample.training)
            for sample in (trial.original, trial.perturbed)
        ]

    @cache
    def risk(i: int) -> Risk:
        original, perturbed = (
            clean(model, sample.queries, n_components=counts[i], tol=tol)[0]
            for model, sample in zip(models, (trial.original, trial.perturbed), strict=True)
        )
        return estimate_risk(trial, original, perturbed, noise)

    return risk


def _descend(cost: Callable[[int], float], start: int, n: int) -> int:
    """Return a local minimiser of `cost` among 0 … n - 1, descending from `start`."""

    @cache
    def value(i: int) -> float:
        return cost(i) if 0 <= i < n else math.inf

    i = start
    step = 1 if value(i + 1) < value(i - 1) else -1
    while value(i + step) < value(i):
        i += step
    return i


def component_counts(maximum: int) -> list[int]:
    """Return numbers of components, about a factor √2 apart, up to `maximum`.

    Examples
    --------
    >>> component_counts(40)
    [1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 40]
    """
    powers = range(2 * math.ceil(math.log2(maximum + 1)))
    counts = {round(2 ** (power / 2)) for power in powers}
    return sorted({count for count in counts if count < maximum} | {maximum})


def has_scale_rule(kernel: Kernel) -> bool:
    """Return whether the kernel's scale is computed from data by a rule, such as "median"."""
    return isinstance(getattr(kernel, "sigma", None), str)


# Size of the perturbation for estimating the divergence, in units of the noise level.
_EPSILON = 0.1

# Attributes after a call that returns the data unchanged.
_UNCHANGED = {
    "model_": None,
    "sigma_": math.nan,
    "n_components_": 0,
    "blend_": 0.0,
    "risk_": 0.0,
    "solver_": "none",
    "n_iter_": 0,
    "converged_": True,
}


def _check_noise(value: Any, name: str, owner: str) -> None:
    noise = check_positive(value, name, owner, or_zero=True)
    if noise and not 0.0 < noise * noise < math.inf:
        raise ValueError(
            f"The square of {name} of {owner} overflows or underflows; got {value!r}. Rescale the "
            "data."
        )


_PARAMETERS = {
    "n_components": or_word("auto", integer()),
    "noise": or_word("auto", _check_noise),
    "blend": or_word("auto", partial(check_positive, or_zero=True, maximum=1.0)),
    "max_train": integer(2),
    "solver": check_solver,
    "random_state": seed,
}


class _Attributes:
    """Types of attributes that are not fields of the base class: results, and positional fields."""

    n_components: int | str
    kernel: Any
    noise_: float
    model_: KernelPCA | None
    n_components_: int
    blend_: float


@dataclass(eq=False, kw_only=True)
class KernelDenoiser(_Attributes):
    """Denoise points with kernel PCA of training points and pre-images.

    Subclasses are dataclasses with the parameters as fields. They convert data to points and back.
    """

    solver: Any = "auto"
    noise: float | str = "auto"
    blend: float | str = "auto"
    max_train: int = 1000
    random_state: Any = None

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        for name, check in _PARAMETERS.items():
            check(getattr(self, name), name, owner)
        if isinstance(as_kernel(self.kernel, owner), Precomputed):
            raise ValueError(
                f"kernel of {owner} must be a Kernel, a name or a callable that can be evaluated "
                "at new points; got 'precomputed'."
            )

    @property
    def _needs_risk(self) -> bool:
        """Whether a parameter is chosen to minimise the estimated risk."""
        auto = _is_auto(self.n_components) or _is_auto(self.blend)
        return auto or has_scale_rule(as_kernel(self.kernel))

    def _noise_level(self, estimate: Callable[[], float]) -> float:
        """Return the given noise level, or estimate it if it is needed to choose parameters."""
        if not _is_auto(self.noise):
            return float(self.noise)
        return estimate() if self._needs_risk else math.nan

    def _epsilon(self, values: NDArray[Any]) -> float:
        """Return the size of the perturbation, small compared with the noise and the data."""
        spread = float(np.abs(values - values.mean(axis=0)).mean())  # squares might overflow
        return _EPSILON * min(self.noise_, spread)

    # ------------------------------------------------------------------ fitting

    def _fit(
        self,
        training: NDArray[Any],
        make_trial: Callable[[], Trial],
        rng: np.random.RandomState,
    ) -> KernelPCA | None:
        """Choose the "auto" parameters and fit the model; return None if there is no noise."""
        if self.noise_ == 0.0 or np.all(training == training[0]):
            self.__dict__.update(_UNCHANGED, explained_variance_ratio_=np.empty(0))
            return None
        seed = int(rng.randint(2**31 - 1))
        kernel = clone(as_kernel(self.kernel))
        blend = None if _is_auto(self.blend) else float(self.blend)
        n, d = training.shape
        if _is_auto(self.n_components):
            # for a smooth kernel, components beyond twice the dimension are noise
            counts = component_counts(max(1, min(n // 2, 2 * d)))
        else:
            counts = [min(int(self.n_components), n)]
        if self._needs_risk:
            found = choose(
                make_trial(), kernel, self.noise_, counts, blend=blend, random_state=seed
            )
        else:
            found = Choice(kernel, counts[0], float(self.blend), math.nan)
        # candidates are fitted with solver="auto"; this solver finds the same components
        options = {"solver": self.solver, "random_state": seed}
        model = KernelPCA(found.n_components, found.kernel, **options).fit(training)
        for name in ("n_components_", "explained_variance_ratio_", "solver_", "n_iter_"):
            setattr(self, name, getattr(model, name))
        self.model_, self.converged_ = model, bool(model.converged_)
        self.sigma_ = float(getattr(model.kernel_, "sigma_", math.nan))
        self.blend_, self.risk_ = found.blend, found.risk
        return model

    def _warn_unless_converged(self, n_unconverged: int, n_points: int) -> None:
        if n_unconverged:
            self.converged_ = False
            warn_user(
                f"{type(self).__name__}: {n_unconverged} of {n_points} pre-images did not "
                "converge. Use a kernel with a larger scale sigma.",
                ConvergenceWarning,
            )


def check_values(data: Any, name: str, owner: str, n_dims: tuple[int, ...]) -> NDArray[Any]:
    """Return data as an array of real, finite numbers with an allowed number of axes."""
    mask = np.ma.getmaskarray(data) if np.ma.is_masked(data) else False
    values = data if mask is False else data.data
    with numbers_expected(values, name, owner):
        array = np.asarray(values)
    if array.dtype.kind not in "uif":
        raise ValueError(
            f"{name} of {owner} must be real numbers, integer or floating; got dtype "
            f"{array.dtype}. Convert it, for example with .astype(float)."
        )
    if array.ndim not in n_dims or array.size == 0:
        expected = " or ".join(str(n) for n in n_dims)
        raise ValueError(
            f"{name} of {owner} must have {expected} axes and not be empty; got {array.shape}."
        )
    missing = np.argwhere(~np.isfinite(array) | mask)
    if len(missing):
        raise ValueError(
            f"{name} of {owner} must be finite and complete; {len(missing)} values are NaN, "
            f"infinite or masked, the first at {tuple(missing[0].tolist())}. Impute them before "
            "denoising."
        )
    limits = np.finfo(np.float32 if array.dtype == np.float32 else np.float64)
    largest = max(abs(float(array.max())), abs(float(array.min())))
    overflows = largest > 0.1 * math.sqrt(float(limits.max) / array.size)
    if overflows or 0 < largest < 10 * math.sqrt(float(limits.tiny)):
        raise ValueError(
            f"Sums of squares of {name} of {owner} {'over' if overflows else 'under'}flow in "
            f"{limits.dtype}: the largest absolute value is {largest:g}. Rescale the data."
        )
    return array


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
