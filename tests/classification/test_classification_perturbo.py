"""Laws of PerTurbo: oracles, geodesic classes, leave-one-out, probabilities, errors."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import log_loss

from laws_classification import (
    PERTURBO,
    SIGMA,
    gaussian,
    naive_perturbation,
    naive_truncation,
    own_column,
    three_classes,
)
from laws_classification import fit as fit_any
from laws_shapes import in_form, moved, three_leaves, two_kinds_of_matrices
from orthodrome.classification import PerTurbo, subspaces
from orthodrome.classification.calibration import residual_temperature, softmax_of_residuals
from orthodrome.kernels import (
    ComplexGaussian,
    Embedded,
    FullProcrustes,
    Gaussian,
    Geodesic,
    LogEuclidean,
    RiemannianShape,
    VeroneseWhitney,
)
from orthodrome.preimage import geodesic_kernel

fit = partial(fit_any, PerTurbo)
every_reference = pytest.mark.parametrize("reference", ["preimage", "mean"])


@every_reference
@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_geodesic_residuals_against_the_oracle(reference, alpha):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    model = fit(X, y, geodesic=True, reference=reference, alpha=alpha)
    for c, label in enumerate(model.classes_):
        rows = X[y == label]
        kernel = geodesic_kernel(Gaussian(sigma=SIGMA).fit(X), rows, reference=reference)
        expected = [
            naive_perturbation(kernel(rows), row, own, alpha)
            for row, own in zip(kernel(new, rows), kernel.diag(new), strict=True)
        ]
        np.testing.assert_allclose(model.class_residuals(new)[:, c], expected, rtol=1e-7)


@pytest.mark.parametrize("n_components", [1, 3])
def test_truncated_residuals(n_components):
    """Of new points, and of every fifth of the sorted points of a class at a time."""
    X, y = three_classes(36)
    new, _ = three_classes(30, seed=1)
    model = fit(X, y, n_components=n_components)
    assert model.alpha_ == 0
    for c, label in enumerate(model.classes_):
        order = np.flatnonzero(y == label)[np.lexsort(X[y == label].T[::-1])]
        K, k = gaussian(X[order], sigma=SIGMA), gaussian(new, X[order], SIGMA)
        expected = [naive_truncation(K, row, 1.0, n_components) for row in k]
        np.testing.assert_allclose(model.class_residuals(new)[:, c], expected, rtol=1e-9)
        expected = []
        for n in range(len(K)):
            rest = np.flatnonzero(np.arange(len(K)) % 5 != n % 5)
            part = K[np.ix_(rest, rest)]
            expected.append(naive_truncation(part, K[rest, n], 1.0, n_components))
        np.testing.assert_allclose(model.loo_residuals_[order, c], expected, rtol=1e-9)


QUICK = {(0.0, 0.7), (0.1, 1.5), (1.0, 5.0)}
ALPHAS_AND_SIGMAS = [
    pytest.param(alpha, sigma, marks=[] if (alpha, sigma) in QUICK else pytest.mark.slow)
    for alpha in (0.0, 1e-3, 0.1, 1.0)
    for sigma in (0.7, 1.5, 5.0)
]


@pytest.mark.parametrize(("alpha", "sigma"), ALPHAS_AND_SIGMAS)
@every_reference
def test_geodesic_leave_one_out_is_near_brute_force(reference, alpha, sigma):
    """The reference is fitted again without each row; few points in many dimensions."""
    X = np.random.default_rng(0).standard_normal((40, 8)) + np.repeat([[0.0], [0.7]], 20, axis=0)
    y = np.repeat([0, 1], 20)
    options = {"kernel": Gaussian(sigma=sigma), "geodesic": True, "reference": reference}
    model = fit(X, y, alpha=alpha, **options)
    expected = []
    for n in range(0, 40, 4):
        rest = np.arange(40) != n
        again = fit(X[rest], y[rest], alpha=alpha, **options)
        expected.append(again.class_residuals(X[[n]])[0])
    np.testing.assert_allclose(model.loo_residuals_[::4], expected, rtol=0.05)
    errors = np.abs(model.loo_residuals_[::4] / expected - 1)
    assert np.median(errors) < 0.01


def test_the_reference_of_a_given_geodesic_kernel_does_not_move():
    X, y = three_classes(30)
    kernel = Geodesic(Gaussian(sigma=2.0), X.mean(axis=0)).fit(X)
    found = fit(X, y, kernel=kernel, alpha=0.1).loo_residuals_
    for n in range(0, 30, 5):
        rest = np.arange(30) != n
        without = fit(X[rest], y[rest], kernel=kernel, alpha=0.1)
        expected = without.class_residuals(X[n : n + 1])[0]
        np.testing.assert_allclose(found[n], expected, rtol=1e-9)


def test_many_new_points_take_little_memory():
    """The matrix of 100 000 points and the training points would take 48 MB."""
    X, y = three_classes()
    model = fit(X, y)
    new = np.tile(X, (1667, 1))
    model.predict(new[:100])
    tracemalloc.start()
    try:
        model.predict(new)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * subspaces.BLOCK_ELEMENTS * 8


def test_the_temperature_maximises_the_likelihood():
    rng = np.random.default_rng(0)
    owners = rng.integers(0, 3, size=200)
    residuals = rng.random((200, 3))
    residuals[np.arange(200), owners] *= 0.6
    w = rng.integers(1, 4, size=200).astype(float)
    found = residual_temperature(residuals, owners, w)
    share = 2 / (w.sum() + 2)
    targets = (1 - share) * np.eye(3)[owners] + share / 3

    def likelihood(temperature):
        return w @ np.sum(targets * np.log(softmax_of_residuals(residuals, temperature)), axis=1)

    for factor in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert likelihood(found) > likelihood(factor * found)
    copies = np.repeat(np.arange(200), w.astype(int))
    again = residual_temperature(residuals[copies], owners[copies], np.ones(len(copies)))
    assert again == pytest.approx(found, rel=1e-8)
    assert residual_temperature(1e6 * residuals, owners, w) == pytest.approx(1e6 * found, rel=1e-8)


def test_temperatures_of_extremes():
    owners, w = np.array([0, 1, 0, 1]), np.ones(4)
    apart = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    sharp = softmax_of_residuals(apart, residual_temperature(apart, owners, w))
    assert np.all(np.abs(sharp.max(axis=1) - (1 - 1 / 6)) < 1e-6)  # the smoothed target
    assert residual_temperature(1 - apart, owners, w) == pytest.approx(1e4)
    assert residual_temperature(np.ones((4, 2)), owners, w) == 1.0
    heavy = residual_temperature(np.array([[0, 1], [0, 1e-4]]), np.zeros(2, int), np.full(2, 1e15))
    assert heavy == pytest.approx(0.5 * (1 + 1e-4) / 1e4)  # the lower bound
    np.testing.assert_array_equal(softmax_of_residuals(np.ones((1, 2)), 1.0), [[0.5, 0.5]])
    assert np.all(np.isfinite(softmax_of_residuals(np.array([[1e300, 0.0]]), 1e-300)))


@pytest.mark.parametrize("options", PERTURBO.values(), ids=list(PERTURBO))
def test_probabilities_are_calibrated(options):
    X, y = three_classes(150)
    new, truth = three_classes(600, seed=1)
    model = fit(X, y, kernel="gaussian", **options)
    chances = model.predict_proba(new)
    assert log_loss(truth, chances) < 0.8  # class frequencies alone give 1.01
    if options.get("alpha") != 0:  # interpolating residuals differ by orders of magnitude
        confidence = chances.max(axis=1).mean()
        assert confidence == pytest.approx(model.score(new, truth), abs=0.15)


@pytest.mark.parametrize("kernel", [VeroneseWhitney, FullProcrustes, ComplexGaussian, LogEuclidean])
def test_geodesic_classes_of_shapes_and_matrices(kernel):
    """Residuals by the formula; left out, about those of a new fit."""
    of_matrices = kernel is LogEuclidean
    X, y = two_kinds_of_matrices(40) if of_matrices else three_leaves(45, spread=0.25)
    model = fit(X, y, kernel=kernel(), alpha=0.05, geodesic=True)

    def expected(rows, new):
        tangent = geodesic_kernel(model.kernel_, rows)
        K, cross, own = tangent(rows), tangent(new, rows), tangent.diag(new)
        pairs = zip(cross, own, strict=True)
        return [naive_perturbation(K, k, own_square, 0.05) for k, own_square in pairs]

    for column, label in enumerate(model.classes_):
        found = model.class_residuals(X)[:, column]
        np.testing.assert_allclose(found, expected(X[y == label], X), atol=1e-9)
    left_out = own_column(model.loo_residuals_, model, y)
    for row in range(0, len(y), 8):
        kept = (np.arange(len(y)) != row) & (y == y[row])
        assert left_out[row] == pytest.approx(expected(X[kept], X[[row]])[0], rel=0.02)
    assert model.score(X, y) > 0.9
    if kernel is VeroneseWhitney:
        flat = fit(in_form(X, "flat"), y, kernel=kernel(), alpha=0.05, geodesic=True)
        found = flat.class_residuals(in_form(moved(X, 4), "flat"))
        np.testing.assert_allclose(found, model.class_residuals(X), atol=1e-7)


@pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")
def test_kernels_without_preimages_are_refused():
    embedded = Embedded(lambda X: X.reshape(len(X), -1), Gaussian(10.0))
    cases = (
        (RiemannianShape(), *three_leaves(45)),
        (embedded, *two_kinds_of_matrices(20)),
    )
    for kernel, X, y in cases:
        with pytest.raises(ValueError, match=f"{type(kernel).__name__}.*reference='mean'"):
            fit(X, y, kernel=kernel, geodesic=True)
    X, y = three_classes()
    with pytest.raises(ValueError, match=r"geodesic=True .* precomputed"):
        fit(gaussian(X), y, kernel="precomputed", geodesic=True)
    with pytest.raises(ValueError, match=r"sparse X.*reference='mean'"):
        fit(scipy.sparse.csr_array(X), y, geodesic=True)


def test_errors_name_the_row_of_the_caller(monkeypatch):
    """On a circle under the linear kernel, a point opposite to the mean of a class has no Log."""
    angles, y = np.array([-0.1, 0.1, 0.9, 1.1]), [0, 0, 1, 1]
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    options = {"kernel": "linear", "geodesic": True, "reference": "mean", "alpha": 0.1}
    model = fit(X, y, **options)
    for elements in (subspaces.BLOCK_ELEMENTS, 4):
        monkeypatch.setattr(subspaces, "BLOCK_ELEMENTS", elements)
        with pytest.raises(ValueError, match=r"row 4\) is antipodal"):
            model.predict(np.concatenate([X, [[-1.0, 0.0]]]))
        with pytest.raises(ValueError, match=r"row 4 of X"):
            model.predict(np.concatenate([X, [[2.0, 0.0]]]))
