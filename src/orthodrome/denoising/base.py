"""Base class of the denoisers, and validation of their data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from ..kernels import Precomputed, as_kernel
from .selection import Choice, Trial, choose, component_counts, has_scale_rule

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
