"""Arrays of other libraries on the CPU are accepted, and give what NumPy arrays give."""

import numpy as np
import pytest

from optional import optional
from orthodrome import KernelKMeans, KernelPCA, KernelPGA, PerTurbo, kernels, sphere
from orthodrome.spaces import preshape, spd_log

strict = optional("array_api_strict")
torch = optional("torch")
LIBRARIES = {"strict": lambda a: strict.asarray(a), "torch": lambda a: torch.from_numpy(a)}
ELSEWHERE = {
    "another device": lambda a: strict.asarray(a, device=strict.Device("device1")),
    "gradients": lambda a: torch.tensor(a, requires_grad=True),
    "bfloat16": lambda a: torch.tensor(a).to(torch.bfloat16),
    "without data": lambda a: torch.tensor(a, device="meta"),
}
rng = np.random.default_rng(0)
X = np.abs(rng.normal(size=(30, 4)))
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
SHAPES = rng.normal(size=(20, 6, 2))
MATRICES = SHAPES @ SHAPES.transpose(0, 2, 1) + np.eye(6)
LABELS = (X[:, 0] > X[:, 1]).astype(int)

#: Functions of a conversion: what they compute must not depend on it.
USES = {
    **{
        name: lambda c, kind=kind: kind()(c(X), c(X[:5]))
        for name, kind in {
            "Gaussian": lambda: kernels.Gaussian(1.0),
            "Matern": lambda: kernels.Matern(sigma=1.0),
            "Linear": kernels.Linear,
            "Cosine": kernels.Cosine,
            "Chi2": kernels.Chi2,
        }.items()
    },
    "Gaussian.fit": lambda c: kernels.Gaussian().fit(c(X)).sigma_,
    "profile": lambda c: kernels.Gaussian(1.0).profile(c(X)),
    "shape kernel": lambda c: kernels.VeroneseWhitney(1.0)(c(SHAPES)),
    "matrix kernel": lambda c: kernels.LogEuclidean(1.0)(c(MATRICES)),
    "preshape": lambda c: preshape(c(SHAPES)),
    "spd_log": lambda c: spd_log(c(MATRICES)),
    "log": lambda c: sphere.log(c(UNIT), base_point=c(UNIT[0])),
    "exp": lambda c: sphere.exp(c(UNIT - UNIT @ UNIT[0][:, None] * UNIT[0]), base_point=c(UNIT[0])),
    "distance": lambda c: sphere.distance(c(UNIT), c(UNIT[0])),
    "geodesic_distances": lambda c: sphere.geodesic_distances(c(UNIT)),
    "karcher_mean": lambda c: sphere.karcher_mean(c(UNIT)).point,
    "nested_spheres": lambda c: sphere.nested_spheres(c(UNIT)).scores(c(UNIT)),
    "KernelPGA": lambda c: KernelPGA(2).fit(c(X)).transform(c(X)),
    "weights": lambda c: KernelPCA(2).fit(X, sample_weight=c(X[:, 0])).eigenvalues_,
    "by anchors": lambda c: KernelPCA(2, n_anchors=9, random_state=0).fit_transform(c(X)),
    "PerTurbo": lambda c: PerTurbo().fit(c(X), c(LABELS)).predict(c(X)),
    "KernelKMeans": lambda c: KernelKMeans(2, random_state=0).fit_predict(c(X)),
    "precomputed": lambda c: KernelPCA(2, "precomputed").fit(c(X @ X.T)).eigenvalues_,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("use", USES)
def test_arrays_of_other_libraries(use, library, dtype):
    def typed(a):
        return a.astype(dtype) if a.dtype == np.float64 else a

    found = USES[use](lambda a: LIBRARIES[library](typed(a)))
    expected = USES[use](typed)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected, strict=isinstance(found, np.ndarray))


@pytest.mark.parametrize("kind", ELSEWHERE)
@pytest.mark.parametrize("use", sorted(USES.keys() - {"profile"}))
def test_other_arrays_are_refused(use, kind):
    if use == "PerTurbo" and kind == "gradients":
        pytest.skip("whole numbers have no gradients")
    with pytest.raises(ValueError, match=r"cannot be converted to a NumPy array: .* CPU"):
        USES[use](ELSEWHERE[kind])
