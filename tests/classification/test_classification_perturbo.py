"""Laws of PerTurbo: its naive twin, leave-one-out by brute force, weights, order, new points."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laws_classification import (
    every_configuration,
    gaussian,
    naive_perturbation,
    naive_truncation,
    three_classes,
)
from laws_shapes import every_form, in_form, moved, three_leaves, two_kinds_of_matrices
from orthodrome.classification import PerTurbo, subspaces
from orthodrome.classification.calibration import residual_temperature, softmax_of_residuals
from orthodrome.kernels import (
    ComplexGaussian,
    Embedded,
    Exponential,
    FullProcrustes,
    Gaussian,
    Geodesic,
    LogEuclidean,
    Normalized,
    Polynomial,
    RiemannianShape,
    VeroneseWhitney,
)
from orthodrome.preimage import geodesic_kernel
from real_data import load_or_skip

SIGMA = 1.5
KERNEL = Gaussian(sigma=SIGMA)
every_reference = pytest.mark.parametrize("reference", ["preimage", "mean"])


def fit(X, y, *, sample_weight=None, kernel=KERNEL, **options):
    return PerTurbo(kernel, **options).fit(X, y, sample_weight=sample_weight)


def own_column(model, y):
    return model.loo_residuals_[np.arange(len(y)), np.searchsorted(model.classes_, y)]


# ------------------------------------------------------------------ against others


@pytest.mark.parametrize("n_components", [1, 5])
def test_truncated_residuals_against_the_naive_twin(n_components):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    model = fit(X, y, n_components=n_components)
    assert model.alpha_ == 0
    for c, label in enumerate(model.classes_):
        K, k = gaussian(X[y == label], sigma=SIGMA), gaussian(new, X[y == label], SIGMA)
        expected = [naive_truncation(K, row, 1.0, n_components) for row in k]
        np.testing.assert_allclose(model.class_residuals(new)[:, c], expected, rtol=1e-9)


@every_reference
@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_geodesic_residuals_against_the_naive_twin(reference, alpha):
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


def test_residuals_are_the_variance_of_a_gaussian_process():
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    model = fit(X, y, alpha=0.05)
    for c, label in enumerate(model.classes_):
        rows = X[y == label]
        process = GaussianProcessRegressor(RBF(SIGMA), alpha=0.05, optimizer=None)
        deviation = process.fit(rows, np.zeros(len(rows))).predict(new, return_std=True)[1]
        np.testing.assert_allclose(model.class_residuals(new)[:, c], deviation**2, rtol=1e-9)


# ------------------------------------------------------------------ leave-one-out


QUICK = {(0.0, 0.7), (0.1, 1.5), (1.0, 5.0)}
ALPHAS_AND_SIGMAS = [
    pytest.param(alpha, sigma, marks=[] if (alpha, sigma) in QUICK else pytest.mark.slow)
    for alpha in (0.0, 1e-3, 0.1, 1.0)
    for sigma in (0.7, 1.5, 5.0)
]


@pytest.mark.parametrize(("alpha", "sigma"), ALPHAS_AND_SIGMAS)
@every_reference
def test_geodesic_leave_one_out_is_near_brute_force(reference, alpha, sigma):
    """The reference is fitted again without each row; of few points and many dimensions."""
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


@every_reference
def test_geodesic_leave_one_out_with_weights(reference):
    X, y = three_classes(36)
    w = np.random.default_rng(0).integers(1, 4, size=36).astype(float)
    options = {"geodesic": True, "reference": reference, "alpha": 0.05}
    model = fit(X, y, sample_weight=w, **options)
    for n in range(0, 36, 3):
        without = np.where(np.arange(36) == n, 0, w)
        expected = fit(X, y, sample_weight=without, **options).class_residuals(X[[n]])[0]
        np.testing.assert_allclose(model.loo_residuals_[n], expected, rtol=0.1)


def test_held_out_residuals_of_the_truncated_form():
    """Every fifth of the sorted points of a class at a time."""
    X, y = three_classes(36)
    model = fit(X, y, n_components=3)
    for label in model.classes_:
        rows = X[y == label][np.lexsort(X[y == label].T[::-1])]
        K = gaussian(rows, sigma=SIGMA)
        expected = []
        for n in range(len(K)):
            rest = np.flatnonzero(np.arange(len(K)) % 5 != n % 5)
            expected.append(naive_truncation(K[np.ix_(rest, rest)], K[rest, n], 1.0, 3))
        found = fit(X, y, n_components=3).loo_residuals_[y == label]
        found = found[np.lexsort(X[y == label].T[::-1]), list(model.classes_).index(label)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_reference_of_a_kernel_that_is_given_stays_where_it_is():
    """Leaving a point out does not move it, as it moves that of geodesic=True."""
    X, y = three_classes(30)
    kernel = Geodesic(Gaussian(sigma=2.0), X.mean(axis=0)).fit(X)
    found = fit(X, y, kernel=kernel, alpha=0.1).loo_residuals_
    for n in range(0, 30, 5):
        rest = np.arange(30) != n
        without = fit(X[rest], y[rest], kernel=kernel, alpha=0.1)
        expected = without.class_residuals(X[n : n + 1])[0]
        np.testing.assert_allclose(found[n], expected, rtol=1e-9)


# ------------------------------------------------------------------ weights and order


def test_the_kernel_is_fitted_once_to_all_classes():
    X, y = three_classes()
    w = np.random.default_rng(2).integers(1, 4, size=60)
    model = fit(X, y, sample_weight=w, kernel="gaussian", geodesic=True)
    sigma = Gaussian().fit(np.repeat(X, w, axis=0)).sigma_
    assert model.kernel_.sigma_ == pytest.approx(sigma, rel=1e-12)
    assert all(kernel.kernel_ is model.kernel_ for kernel in model.class_kernels_)
    plain = fit(X, y, kernel="gaussian")
    assert all(kernel is plain.kernel_ for kernel in plain.class_kernels_)


# ------------------------------------------------------------------ methods


def test_many_new_points_take_little_memory():
    """The matrix of 100 000 points with the training points alone would take 48 MB."""
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


# ------------------------------------------------------------------ probabilities


def test_the_temperature_has_the_greatest_likelihood():
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
    assert np.all(np.abs(sharp.max(axis=1) - (1 - 1 / 6)) < 1e-6)  # the smoothed target itself
    worse = residual_temperature(1 - apart, owners, w)
    assert worse == pytest.approx(1e4)
    assert residual_temperature(np.ones((4, 2)), owners, w) == 1.0
    np.testing.assert_array_equal(softmax_of_residuals(np.ones((1, 2)), 1.0), [[0.5, 0.5]])
    assert np.all(np.isfinite(softmax_of_residuals(np.array([[1e300, 0.0]]), 1e-300)))


@every_configuration
def test_probabilities_are_better_than_guesses_and_calibrated(options):
    X, y = three_classes(150)
    new, truth = three_classes(600, seed=1)
    model = fit(X, y, kernel="gaussian", **options)
    chances = model.predict_proba(new)
    assert log_loss(truth, chances) < 0.8  # of guesses by frequency it is 1.01
    if options.get("alpha") != 0:  # residuals that range over orders of magnitude share no scale
        confidence = chances.max(axis=1).mean()
        assert confidence == pytest.approx(model.score(new, truth), abs=0.15)


# ------------------------------------------------------------------ kernels of every kind


def test_precomputed_without_a_constant_diagonal():
    """What is not known of new points, k(x, x), decides nothing."""
    X, y = three_classes()
    new = 3 * three_classes(30, seed=1)[0]
    K, cross = (X @ X.T + 1) ** 2, (new @ X.T + 1) ** 2
    model = fit(K, y, kernel="precomputed", alpha=0.1)
    plain = fit(X, y, kernel=Polynomial(degree=2, gamma=1.0, coef0=1.0), alpha=0.1)
    np.testing.assert_array_equal(model.predict(cross), plain.predict(new))
    found, expected = model.class_residuals(cross), plain.class_residuals(new)
    assert np.all(found >= 0)
    assert np.ptp((found - expected).std(axis=1)) < 1e-6
    np.testing.assert_allclose(model.loo_residuals_, plain.loo_residuals_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [
        "laplacian",
        "polynomial",
        "cosine",
        Exponential(),
        lambda A, B: np.exp(-np.abs(np.asarray(A)[:, None] - np.asarray(B)).sum(axis=-1)),
    ],
    ids=["laplacian", "polynomial", "cosine", "exponential", "callable"],
)
def test_kernels_of_every_kind(kernel):
    X, y = three_classes()
    model = fit(X + 3, y, kernel=kernel)  # directions from the origin tell classes apart too
    assert model.score(X + 3, y) > 0.6
    assert np.all(np.isfinite(model.loo_residuals_))


def test_geodesic_with_kernels_that_are_not_radial():
    X, y = three_classes()
    model = fit(X + 3, y, kernel=Normalized(Polynomial()), geodesic=True, reference="mean")
    assert model.score(X + 3, y) > 0.6
    scaled = fit(
        X,
        y,
        kernel=lambda A, B: 7 * gaussian(A, B, SIGMA),
        geodesic=True,
        reference="mean",
        alpha=0.1,
    )
    unit = fit(X, y, geodesic=True, reference="mean", alpha=0.1)
    np.testing.assert_allclose(scaled.class_residuals(X), unit.class_residuals(X), rtol=1e-6)
    np.testing.assert_allclose(scaled.loo_residuals_, unit.loo_residuals_, rtol=1e-6)


# ------------------------------------------------------------------ real data


@pytest.mark.parametrize(("name", "bound"), [("iris", 0.08), ("wine", 0.06), ("ionosphere", 0.16)])
@pytest.mark.parametrize("geodesic", [False, True])
def test_sets_of_the_paper(name, bound, geodesic):
    """RKHS-GEO, Table 2: half of the set to learn from; here standardised, without any search."""
    bunch = load_or_skip(name)
    model = make_pipeline(StandardScaler(), PerTurbo(geodesic=geodesic))
    splits = StratifiedShuffleSplit(3, test_size=0.5, random_state=0)
    assert 1 - cross_val_score(model, bunch.data, bunch.target, cv=splits).mean() < bound


# ------------------------------------------------------------------ geodesic, shapes and matrices


def kinds_of(kernel):
    return two_kinds_of_matrices(40) if kernel is LogEuclidean else three_leaves(45, spread=0.25)


@pytest.mark.parametrize("kernel", [VeroneseWhitney, FullProcrustes, ComplexGaussian, LogEuclidean])
def test_geodesic_classes_of_specimens(kernel):
    """Residuals by the formula from each class's reference; left out, about those of a new fit."""
    X, y = kinds_of(kernel)
    model = PerTurbo(kernel(), alpha=0.05, geodesic=True).fit(X, y)
    for column, label in enumerate(model.classes_):
        tangent = geodesic_kernel(model.kernel_, X[y == label])
        K, cross = tangent(X[y == label]), tangent(X, X[y == label])
        expected = np.diagonal(tangent(X)) - np.einsum(
            "ij,ji->i", cross, np.linalg.solve(K + 0.05 * np.eye(len(K)), cross.T)
        )
        np.testing.assert_allclose(model.class_residuals(X)[:, column], expected, atol=1e-9)
    left_out = own_column(model, y)
    for row in range(0, len(y), 8):
        kept = (np.arange(len(y)) != row) & (y == y[row])
        tangent = geodesic_kernel(model.kernel_, X[kept])
        K, cross = tangent(X[kept]), tangent(X[row : row + 1], X[kept])
        naive = tangent(X[row : row + 1])[0, 0] - cross[0] @ np.linalg.solve(
            K + 0.05 * np.eye(len(K)), cross[0]
        )
        assert left_out[row] == pytest.approx(naive, rel=0.02)
    assert model.score(X, y) > 0.9


@every_form
def test_geodesic_classes_whatever_the_form(form):
    X, y = three_leaves(45)
    model = PerTurbo("veronese_whitney", geodesic=True).fit(in_form(X, form), y)
    expected = PerTurbo("veronese_whitney", geodesic=True).fit(X, y)
    assert model.alpha_ == expected.alpha_
    np.testing.assert_allclose(
        model.class_residuals(in_form(moved(X, 4), form)), expected.class_residuals(X), atol=1e-7
    )


@pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")
def test_kernels_of_specimens_without_preimages_name_the_mean():
    shapes, y = three_leaves(45)
    A, z = two_kinds_of_matrices(20)
    embedded = Embedded(lambda X: X.reshape(len(X), -1), Gaussian(10.0))
    for kernel, X, labels in ((RiemannianShape(), shapes, y), (embedded, A, z)):
        message = f"and {type(kernel).__name__} is none; take reference='mean'"
        with pytest.raises(ValueError, match=message):
            PerTurbo(kernel, geodesic=True).fit(X, labels)


def test_the_temperature_does_not_fall_for_ever():
    """Of weights beyond all doubt, the nearly equal residuals would ask for less and less."""
    residuals = np.array([[0.0, 1.0], [0.0, 1e-4]])
    least = residual_temperature(residuals, np.array([0, 0]), np.full(2, 1e15))
    assert least == pytest.approx(0.5 * (1 + 1e-4) / 1e4)


def test_points_that_are_left_out_may_come_in_blocks(monkeypatch):
    X, y = three_classes()
    options = {"n_components": 3, "alpha": "loo"}
    whole = fit(X, y, **options)
    monkeypatch.setattr(subspaces, "BLOCK_ELEMENTS", 40)
    blocks = fit(X, y, **options)
    assert blocks.alpha_ == pytest.approx(whole.alpha_)
    np.testing.assert_allclose(blocks.class_residuals(X), whole.class_residuals(X), atol=1e-12)


# ------------------------------------------------------------------ input of geodesic classes


def estimator(**options):
    return PerTurbo(**{"kernel": KERNEL, **options})


@every_reference
def test_a_class_of_two_points_on_the_sphere(reference):
    """Without one of them the other is the reference, and what is left is the distance."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0], [5.0, 1.0]])
    model = estimator(geodesic=True, reference=reference, alpha=0.01).fit(X, [0, 0, 1, 1])
    expected = [np.arccos(gaussian(X, sigma=1.5)[i, i ^ 1]) ** 2 for i in range(4)]
    found = model.loo_residuals_[np.arange(4), [0, 0, 1, 1]]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_the_mean_of_points_that_are_one_to_rounding():
    """Their tangents are differences of numbers near 1: what is left spans nothing."""
    X, y = three_classes()
    options = {"kernel": Gaussian(sigma=1e8), "geodesic": True, "reference": "mean", "alpha": 0.0}
    model = estimator(**options).fit(X, y)
    own = np.column_stack([kernel.diag(X + 1) for kernel in model.class_kernels_])
    np.testing.assert_allclose(model.class_residuals(X + 1), own, rtol=0.3)


def test_what_a_geodesic_kernel_does_not_take():
    X, y = three_classes()
    with pytest.raises(ValueError, match="not a precomputed matrix"):
        estimator(kernel="precomputed", geodesic=True).fit(gaussian(X), y)
    with pytest.raises(ValueError, match=r"does not take sparse X: .*reference='mean'"):
        estimator(geodesic=True).fit(scipy.sparse.csr_array(X), y)


def test_antipodes_are_named():
    """On a circle under the linear kernel: a point opposite to the mean of a class has no Log."""
    angles = np.array([-0.1, 0.1, 0.9, 1.1])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    model = estimator(kernel="linear", geodesic=True, reference="mean", alpha=0.1)
    model.fit(X, [0, 0, 1, 1])
    new = np.concatenate([X, [[-1.0, 0.0]]])
    with pytest.raises(ValueError, match=r"row 4\) is antipodal"):
        model.predict(new)
    with pytest.raises(ValueError, match=r"row 4 of X"):
        model.predict(np.concatenate([X, [[2.0, 0.0]]]))


def test_rows_are_named_as_the_caller_has_them(monkeypatch):
    angles = np.array([-0.1, 0.1, 0.9, 1.1])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    options = {"kernel": "linear", "geodesic": True, "reference": "mean", "alpha": 0.1}
    model = estimator(**options).fit(X, [0, 0, 1, 1])
    monkeypatch.setattr("orthodrome.classification.subspaces.BLOCK_ELEMENTS", 4)
    with pytest.raises(ValueError, match=r"row 4\) is antipodal"):
        model.predict(np.concatenate([X, [[-1.0, 0.0]]]))
    opposite = np.concatenate([[[0.3, 0.7], [-1.0, 0.0]], X])
    opposite[0] /= np.linalg.norm(opposite[0])
    with pytest.raises(ValueError, match=r"row 1\) is antipodal"):
        estimator(**options).fit(opposite, [1, 2, 0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"cannot normalise row 2:"):
        estimator(kernel=Normalized("linear")).fit(X * [[1], [1], [0], [1]], [0, 0, 1, 1])
    longer = X * [[1], [1], [1], [2]]
    with pytest.raises(ValueError, match=r"at row 3 of X"):
        estimator(**options).fit(longer, [0, 0, 1, 1])
