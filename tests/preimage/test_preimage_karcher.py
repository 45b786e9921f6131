"""The pre-image of the Karcher mean, and the geodesic kernel at it."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from laws_kmeans import algorithm_1
from laws_preimage import CUSPS, SMOOTH, cloud
from orthodrome.gram import gram_operator
from orthodrome.kernels import Exponential, Gaussian, Linear, Matern, Normalized, Polynomial
from orthodrome.preimage import geodesic_kernel, karcher_mean_preimage
from orthodrome.sphere import geodesic_distances, karcher_mean

SMOOTH = {name: make for name, make in SMOOTH.items() if name not in ("power 2", "log 2")}
CUSPS = {name: make for name, make in CUSPS.items() if name not in ("power 1", "log 1")}
smooth_kernel = pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
every_kernel = pytest.mark.parametrize("kernel", (SMOOTH | CUSPS).values(), ids=[*SMOOTH, *CUSPS])


def spread_points(kind, n=60):
    """The paper's Figure 2: points of a square, and of a spiral."""
    rng = np.random.default_rng(3)
    if kind == "square":
        return rng.uniform(-1, 1, (n, 2))
    t = np.sqrt(rng.uniform(0.05, 1, n)) * 4 * np.pi
    return np.column_stack([t * np.cos(t), t * np.sin(t)]) / 10


def variance(kernel, X, z, weights=None):
    angles = geodesic_distances(X, np.atleast_2d(z), kernel=kernel.fit(X))
    return np.average(angles**2, axis=0, weights=weights)


@pytest.mark.parametrize("kind", ["square", "spiral"])
@pytest.mark.parametrize("sigma", [pytest.param(0.2, marks=pytest.mark.slow), 0.5, 2.0])
@pytest.mark.parametrize("starts", ["few", pytest.param("all", marks=pytest.mark.slow)])
def test_optimum_equals_algorithm_1(kind, sigma, starts):
    X = spread_points(kind, 30)
    expected = algorithm_1(X, sigma)
    found = karcher_mean_preimage(Gaussian(sigma=sigma), X, starts=starts)
    objective = float(variance(Gaussian(sigma=sigma), X, expected)[0])
    assert found.objective == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(found.point, expected, atol=1e-6)
    assert found.converged
    assert found.n_starts == (31 if starts == "all" else 6)


@smooth_kernel
def test_gradient_vanishes(kernel):
    X, fitted = cloud(), kernel().fit(cloud())
    found = karcher_mean_preimage(kernel(), X)
    assert found.step <= 1e-9
    middle = variance(fitted, X, found.point)[0]
    for step in 1e-3 * np.sqrt(X.var(axis=0).sum()) * np.eye(3):
        after, before = (variance(fitted, X, found.point + s)[0] for s in (step, -step))
        bend = after + before - 2 * middle
        assert bend > 0
        assert abs(after - before) < 1e-3 * bend + 1e-12  # the cubic term is that small


@every_kernel
def test_no_data_point_is_better(kernel):
    X = cloud(20)
    found = karcher_mean_preimage(kernel(), X, starts="all", max_iter=5000)
    candidates = np.vstack([X, X.mean(axis=0)])
    assert found.objective <= variance(kernel(), X, candidates).min() + 1e-12
    assert found.objective == pytest.approx(float(variance(kernel(), X, found.point)[0]))


def test_small_and_large_sigma():
    """A large σ gives the mean of the inputs; a small one depends on neighbours only."""
    X = np.concatenate([np.linspace(-1, 1, 21), [30.0]])[:, None]
    flat = karcher_mean_preimage(Gaussian(sigma=1e6), X)
    np.testing.assert_allclose(flat.point, X.mean(axis=0), rtol=1e-6)
    local = karcher_mean_preimage(Gaussian(sigma=1.0), X)
    np.testing.assert_allclose(local.point, [0.0], atol=1e-6)
    for sigma in (1e-12, 1e-3, 1e6, 1e12):
        found = karcher_mean_preimage(Gaussian(sigma=sigma), cloud())
        assert np.all(np.isfinite(found.point)), sigma
        assert found.converged
        assert 0 <= found.objective <= (np.pi / 2) ** 2 * (1 + 1e-12)


def test_given_starts():
    X = np.array([[0.0], [0.1], [0.2], [10.0], [10.1]])
    kernel = Gaussian(sigma=0.5)
    far = karcher_mean_preimage(kernel, X, starts=[[9.0]])
    assert far.point[0] == pytest.approx(10.05, abs=1e-3)
    assert far.n_starts == 1
    best = karcher_mean_preimage(kernel, X)
    assert best.point[0] == pytest.approx(0.1, abs=1e-3)
    assert best.objective < far.objective


def test_few_points_and_float32():
    for n in (1, 5):
        same = karcher_mean_preimage("gaussian", [[3.0, 4.0]] * n)
        assert same.point.tolist() == [3.0, 4.0]
        assert same.objective == 0
    two = karcher_mean_preimage(Gaussian(sigma=1.0), [[0.0], [1.0]])
    np.testing.assert_allclose(two.point, [0.5], atol=1e-8)
    X = cloud(dtype=np.float32)
    found = karcher_mean_preimage(Gaussian(sigma=1.0), X, tol=1e-5)
    assert found.point.dtype == np.float32
    exact = karcher_mean_preimage(Gaussian(sigma=1.0), X.astype(np.float64))
    np.testing.assert_allclose(found.point, exact.point, atol=1e-3)


def test_max_iter_is_reported():
    with pytest.warns(ConvergenceWarning, match=r"karcher_mean_preimage: .*tol=1e-09"):
        found = karcher_mean_preimage(Gaussian(sigma=0.5), cloud(), max_iter=1)
    assert not found.converged
    assert found.n_iter == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "linear"}, "radial kernel .* Linear.*sphere.karcher_mean"),
        ({"kernel": "power"}, r"k\(x, x\) = 1"),
        ({"kernel": "precomputed"}, "needs the inputs and a kernel"),
        ({"starts": "some"}, "starts of karcher_mean_preimage must be one of 'few', 'all'"),
        ({"starts": [[1.0]]}, "expecting 3 features"),
        ({"X": scipy.sparse.eye_array(5).tocsr()}, "needs dense X"),
    ],
)
def test_invalid_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        karcher_mean_preimage(**{"kernel": Gaussian(sigma=1.0), "X": cloud(), **arguments})


# ------------------------------------------------------------------ the kernel


@pytest.mark.parametrize(
    "base", [Exponential(), Matern(nu=1.5), Normalized(Polynomial(degree=2, gamma=0.2))]
)
def test_geodesic_kernel_at_the_mean(base):
    """The tangents sum to zero there, and lengths are distances."""
    X = cloud()
    kernel = geodesic_kernel(base, X, reference="mean")
    np.testing.assert_allclose(kernel(X).sum(axis=0), 0.0, atol=1e-5)
    mean = karcher_mean(gram_operator(kernel.kernel_, X))
    assert kernel.diag(X).mean() == pytest.approx(mean.variance)


@pytest.mark.parametrize("reference", ["preimage", "mean"])
def test_geodesic_kernel_with_weights_and_fitted_kernels(reference):
    X = cloud()
    weights = np.arange(len(X)) % 3
    one = geodesic_kernel(Gaussian(), X, weights, reference=reference)
    other = geodesic_kernel(Gaussian(), np.repeat(X, weights, axis=0), reference=reference)
    np.testing.assert_allclose(one(X), other(X), atol=1e-7)
    fitted = Gaussian().fit(10 * X)
    assert geodesic_kernel(fitted, X, reference=reference).kernel_.sigma_ == fitted.sigma_
    if reference == "preimage":
        found = karcher_mean_preimage("gaussian", X)
        kernel = geodesic_kernel("gaussian", X)
        np.testing.assert_allclose(kernel.reference, found.point, atol=1e-12)
        assert kernel.diag(X).mean() == pytest.approx(found.objective)


def test_a_constant_length_is_divided_out():
    X = cloud()
    X = 3 * np.abs(X) / np.linalg.norm(X, axis=1, keepdims=True)
    kernel = geodesic_kernel(Linear(), X, reference="mean")
    same = geodesic_kernel(Linear(), X / 3, reference="mean")
    np.testing.assert_allclose(kernel(X), same(X / 3), atol=1e-10)


@pytest.mark.parametrize("reference", ["preimage", "mean"])
@pytest.mark.parametrize("base", ["gaussian", Gaussian(), Matern()], ids=str)
def test_clones_keep_the_scale(base, reference):
    X = spread_points("spiral")
    y = np.arange(len(X)) % 2
    kernel = geodesic_kernel(base, X, reference=reference)
    copy = clone(kernel)
    assert not copy.__sklearn_is_fitted__()
    np.testing.assert_allclose(copy(X), kernel(X), atol=1e-12)
    assert np.all(np.isfinite(cross_val_score(SVC(kernel=kernel), X, y, cv=3, error_score="raise")))
