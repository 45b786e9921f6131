"""What the denoisers of images and of sequences share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._core.checks import (
    check_integer,
    check_positive,
    check_random_state,
    numbers_expected,
)
from .._core.warn import warn_user
from ..decomposition import KernelPCA
from ..eigen.leading import check_solver
from ..kernels import Precomputed, as_kernel
from .risk import Trial
from .selection import Choice, choose, component_counts, has_scale_rule

__all__ = ["KernelDenoiser", "check_values"]

# By how much the data are moved to estimate a divergence, in units of the noise.
_EPSILON = 0.1

# Fitted attributes if the data are left as they are.
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


class KernelDenoiser:
    """Kernel PCA of training points, and pre-images of all points on its components.

    A subclass turns its data into points, and cleaned points into its data. It is a dataclass whose
    fields are its parameters.
    """

    n_components: int | str
    kernel: Any
    solver: Any
    noise: float | str
    blend: float | str
    max_train: int
    random_state: Any

    noise_: float
    model_: KernelPCA | None
    n_components_: int
    blend_: float

    # ------------------------------------------------------------------ parameters

    def __repr__(self) -> str:
        """Name the parameters that are not the defaults."""
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
            if repr(getattr(self, field.name)) != repr(field.default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if not _is_auto(self.n_components):
            check_integer(self.n_components, "n_components", owner)
        if not _is_auto(self.noise):
            noise = check_positive(self.noise, "noise", owner, or_zero=True)
            if noise and not 0.0 < noise * noise < math.inf:
                raise ValueError(
                    f"noise of {owner} must have a square that is a number; got {self.noise!r}: "
                    "rescale the data."
                )
        if not _is_auto(self.blend):
            check_positive(self.blend, "blend", owner, or_zero=True, maximum=1.0)
        check_integer(self.max_train, "max_train", owner, minimum=2)
        check_solver(self.solver, "solver", owner)
        check_random_state(self.random_state, owner)
        if isinstance(as_kernel(self.kernel, owner), Precomputed):
            raise ValueError(
                f"kernel of {owner} is evaluated at points that are not known beforehand; "
                "'precomputed' cannot be. Pass a Kernel, a name or a callable."
            )

    @property
    def _is_open(self) -> bool:
        """Whether anything is left to be chosen by the estimated risk."""
        auto = _is_auto(self.n_components) or _is_auto(self.blend)
        return auto or has_scale_rule(as_kernel(self.kernel))

    def _noise_level(self, estimate: Callable[[], float]) -> float:
        """Return the noise as given or, only where something depends on it, as estimated."""
        if not _is_auto(self.noise):
            return float(self.noise)
        return estimate() if self._is_open else math.nan

    def _epsilon(self, values: NDArray[Any]) -> float:
        """Return by how much to move the data: little beside the noise, and beside themselves."""
        spread = float(np.abs(values - values.mean(axis=0)).mean())  # its square might overflow
        return _EPSILON * min(self.noise_, spread)

    # ------------------------------------------------------------------ fitting

    def _fit(
        self,
        training: NDArray[Any],
        make_trial: Callable[[], Trial],
        rng: np.random.RandomState,
    ) -> KernelPCA | None:
        """Choose what is not given and fit the model; return None where nothing is to be done."""
        if self.noise_ == 0.0 or np.all(training == training[0]):
            self.__dict__.update(_UNCHANGED, explained_variance_ratio_=np.empty(0))
            return None
        seed = int(rng.randint(2**31 - 1))
        kernel = clone(as_kernel(self.kernel))
        blend = None if _is_auto(self.blend) else float(self.blend)
        n, d = training.shape
        if _is_auto(self.n_components):
            # beyond twice the dimension the components of a smooth kernel are those of the noise
            counts = component_counts(max(1, min(n // 2, 2 * d)))
        else:
            counts = [min(int(self.n_components), n)]
        if self._is_open:
            choice = choose(
                make_trial(), kernel, self.noise_, counts, blend=blend, random_state=seed
            )
        else:
            choice = Choice(kernel, counts[0], float(self.blend), math.nan)
        # the candidates were fitted by the solver "auto": which one finds the components does
        # not change what they are, and this fit is the one that is used
        model = KernelPCA(
            choice.n_components, choice.kernel, solver=self.solver, random_state=seed
        ).fit(training)
        for name in ("n_components_", "explained_variance_ratio_", "solver_", "n_iter_"):
            setattr(self, name, getattr(model, name))
        self.model_, self.converged_ = model, bool(model.converged_)
        self.sigma_ = float(getattr(model.kernel_, "sigma_", math.nan))
        self.blend_, self.risk_ = choice.blend, choice.risk
        return model

    def _warn_unless_converged(self, n_unfinished: int, n_points: int) -> None:
        if n_unfinished:
            self.converged_ = False
            warn_user(
                f"{type(self).__name__}: {n_unfinished} of {n_points} pre-images did not meet "
                "their tolerance, and stand where they stopped. Choose a larger scale (sigma) of "
                "the kernel.",
                ConvergenceWarning,
            )


def check_values(data: Any, name: str, owner: str, n_dims: tuple[int, ...]) -> NDArray[Any]:
    """Return data as an array of real, finite numbers with an allowed number of axes."""
    with numbers_expected(np.ma.getdata(data) if np.ma.is_masked(data) else data, name, owner):
        array = np.asarray(data)
    if array.dtype.kind not in "uif":
        raise ValueError(
            f"{name} of {owner} must be real numbers, integer or floating; got dtype "
            f"{array.dtype}. Convert it, for instance by .astype(float)."
        )
    if array.ndim not in n_dims:
        expected = " or ".join(str(n) for n in n_dims)
        raise ValueError(f"{name} of {owner} must have {expected} axes; got shape {array.shape}.")
    if array.size == 0:
        raise ValueError(f"{name} of {owner} is empty: shape {array.shape}.")
    finite = np.isfinite(array)
    if np.ma.is_masked(data):
        finite &= ~np.ma.getmaskarray(data)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(
            f"{name} of {owner} must be finite and complete; {np.count_nonzero(~finite)} values "
            f"are NaN, infinite or masked, the first at {first}. Fill the gaps before denoising."
        )
    _check_squares(array, name, owner)
    return array


def _check_squares(array: NDArray[Any], name: str, owner: str) -> None:
    """Raise where sums of squares would be infinite, or 0 for what is not."""
    limits = np.finfo(np.float32 if array.dtype == np.float32 else np.float64)  # computed in
    largest = max(abs(float(array.max())), abs(float(array.min())))
    how = ""
    if largest > 0.1 * math.sqrt(float(limits.max) / array.size):
        how = "large that sums of their squares overflow"
    elif 0 < largest < 10 * math.sqrt(float(limits.tiny)):
        how = "small that their squares underflow"
    if how:
        raise ValueError(
            f"The values of {name} of {owner} are so {how} in {limits.dtype}; rescale them."
        )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
