"""Ten timings whose history asv keeps: `nox -s timings`, then `asv publish` and `asv preview`."""

import numpy as np
from sklearn.datasets import load_digits

import orthodrome
from orthodrome import kernels, sphere

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2_000, 32))
LARGE = RNG.standard_normal((50_000, 32)).astype(np.float32)
UNIT = np.abs(X) / np.linalg.norm(X, axis=1, keepdims=True)
FEW = UNIT[:500, :16] / np.linalg.norm(UNIT[:500, :16], axis=1, keepdims=True)
DIGITS, LABELS = load_digits(return_X_y=True)
SEED = {"random_state": 0}

CASES = {
    "Log map": lambda: sphere.log(UNIT, base_point=UNIT[0]),
    "Gaussian block": lambda: kernels.Gaussian(8.0)(X),
    "KernelPCA": lambda: orthodrome.KernelPCA(16, **SEED).fit(X),
    "KernelPGA": lambda: orthodrome.KernelPGA(16, **SEED).fit(X),
    "KernelPGA, anchors": lambda: orthodrome.KernelPGA(16, n_anchors=256, **SEED).fit(LARGE),
    "Karcher mean": lambda: sphere.karcher_mean(UNIT),
    "nested spheres": lambda: sphere.nested_spheres(FEW),
    "KernelKMeans": lambda: orthodrome.KernelKMeans(10, n_init=1, **SEED).fit(DIGITS),
    "PerTurbo": lambda: orthodrome.PerTurbo().fit(DIGITS, LABELS),
    "GeodesicMixture": lambda: orthodrome.GeodesicMixture(10, 5, **SEED).fit(DIGITS),
}


class Timings:
    """Data are made, and loops compiled, before the clock starts."""

    params = tuple(CASES)
    param_names = ("case",)
    timeout = 300

    def setup(self, case):
        CASES[case]()

    def time_case(self, case):
        CASES[case]()
