"""Laws of PerTurbo: its naive twin, leave-one-out by brute force, weights, order, new points."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laws_classification import (
    CONFIGURATIONS,
    every_configuration,
    gaussian,
    left_out_naively,
    naive_perturbation,
    naive_truncation,
    three_classes,
)
from laws_shapes import every_form, in_form, moved, three_leaves, two_kinds_of_matrices
from orthodrome.classification import PerTurbo, base, subspaces
from orthodrome.classification.calibration import residual_temperature, softmax_of_residuals
from orthodrome.kernels import (
    ComplexGaussian,
    Embedded,
    Exponential,
    FullProcrustes,
    Gaussian,
    Geodesic,
    Linear,
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
PLAIN = {name: options for name, options in CONFIGURATIONS.items() if "geodesic" not in options}
every_plain = pytest.mark.parametrize("options", PLAIN.values(), ids=list(PLAIN))
every_reference = pytest.mark.parametrize("reference", ["preimage", "mean"])


def fit(X, y, *, sample_weight=None, kernel=KERNEL, **options):
    return PerTurbo(kernel, **options).fit(X, y, sample_weight=sample_weight)


def own_column(model, y):
    return model.loo_residuals_[np.arange(len(y)), np.searchsorted(model.classes_, y)]


# ------------------------------------------------------------------ against others


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.01, 1.0])
@pytest.mark.parametrize("scale", ["absolute", "relative"])
def test_residuals_against_the_naive_twin(alpha, scale):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    model = fit(X, y, alpha=alpha, alpha_scale=scale)
    found = model.class_residuals(new)
    for c, label in enumerate(model.classes_):
        K, k = gaussian(X[y == label], sigma=SIGMA), gaussian(new, X[y == label], SIGMA)
        absolute = alpha * (np.linalg.eigvalsh(K)[-1] if scale == "relative" else 1.0)
        assert model.class_alphas_[c] == pytest.approx(absolute, rel=1e-12)
        expected = [naive_perturbation(K, row, 1.0, absolute) for row in k]
        np.testing.assert_allclose(found[:, c], expected, rtol=1e-8, atol=1e-10)


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


def test_training_points_are_interpolated():
    X, y = three_classes()
    model = fit(X, y, alpha=0.0, kernel=Exponential(sigma=1.0))
    residuals = model.class_residuals(X)
    own = residuals[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    np.testing.assert_allclose(own, 0, atol=1e-12)
    assert model.score(X, y) == 1
    assert model.loo_score_ < 1


# ------------------------------------------------------------------ leave-one-out


@pytest.mark.parametrize("alpha", [1e-5, 0.01, 1.0])
@pytest.mark.parametrize("scale", ["absolute", "relative"])
def test_leave_one_out_is_brute_force(alpha, scale):
    """Each row is left out of a fit of its own; α is that of all rows."""
    X, y = three_classes(36)
    model = fit(X, y, alpha=alpha, alpha_scale=scale)
    for n in range(0, 36, 2):
        rest = np.arange(36) != n
        for c in range(3) if scale == "relative" else [slice(None)]:
            again = fit(X[rest], y[rest], alpha=np.max(model.class_alphas_[c]))
            expected = again.class_residuals(X[[n]])[0, c]
            np.testing.assert_allclose(model.loo_residuals_[n, c], expected, rtol=1e-10, atol=1e-10)


def test_leave_one_out_leaves_out_all_copies():
    X, y = three_classes(36)
    w = np.random.default_rng(0).integers(1, 4, size=36)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(36), w))
    model = fit(X[copies], y[copies], alpha=0.02)
    weighted = fit(X, y, alpha=0.02, sample_weight=w)
    np.testing.assert_allclose(model.loo_residuals_, weighted.loo_residuals_[copies], rtol=1e-12)
    for label in model.classes_:
        mine = y == label
        expected = left_out_naively(
            naive_perturbation, gaussian(X[mine], sigma=SIGMA), 0.02, w[mine]
        )
        np.testing.assert_allclose(own_column(weighted, y)[mine], expected, rtol=1e-10)
    right = weighted.classes_[np.argmin(weighted.loo_residuals_, axis=1)] == y
    assert weighted.loo_score_ == pytest.approx(np.average(right, weights=w), rel=1e-12)


@pytest.mark.parametrize("sigma", [0.7, 1.5, 5.0])
@pytest.mark.parametrize("alpha", [0.0, pytest.param(1e-3, marks=pytest.mark.slow), 0.1, 1.0])
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


@pytest.mark.parametrize("scale", ["absolute", "relative"])
@pytest.mark.parametrize("geodesic", [False, True])
def test_alpha_is_the_largest_with_the_least_error(scale, geodesic):
    X, y = three_classes()
    options = {"alpha_scale": scale, "geodesic": geodesic}
    grid = np.array([10.0, 1e-4, 1e-2, 1.0, 1e-3, 0.1])
    model = fit(X, y, alphas=grid, **options)
    scores = {alpha: fit(X, y, alpha=alpha, **options).loo_score_ for alpha in grid}
    best = max(alpha for alpha in grid if scores[alpha] == max(scores.values()))
    assert (model.alpha_, model.loo_score_) == (best, scores[best])
    assert min(scores.values()) < scores[best]
    chosen = fit(X, y, alpha=best, **options)
    np.testing.assert_allclose(model.class_residuals(X), chosen.class_residuals(X), atol=1e-12)
    assert model.temperature_ == pytest.approx(chosen.temperature_, rel=1e-12)


def test_the_default_grid_follows_the_scale_of_the_kernel():
    X, y = three_classes()
    small = fit(X, y, kernel=Linear())
    large = fit(1e4 * X, y, kernel=Linear())
    assert large.alpha_ == pytest.approx(1e8 * small.alpha_, rel=1e-10)
    np.testing.assert_array_equal(large.predict(1e4 * X), small.predict(X))
    unit = fit(X, y)
    assert np.min(np.abs(np.array(base.DEFAULT_ALPHAS) / unit.alpha_ - 1)) < 1e-12
    relative = fit(X, y, kernel=Linear(), alpha_scale="relative")
    assert relative.alpha_ in base.DEFAULT_ALPHAS


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


@every_configuration
def test_weights_are_repetition(options):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    w = np.random.default_rng(2).integers(0, 4, size=60)
    copies = np.random.default_rng(3).permutation(np.repeat(np.arange(60), w))
    weighted = fit(X, y, sample_weight=w, kernel="gaussian", **options)
    repeated = fit(X[copies], y[copies], kernel="gaussian", **options)
    np.testing.assert_allclose(
        weighted.class_residuals(new), repeated.class_residuals(new), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(
        weighted.loo_residuals_[copies], repeated.loo_residuals_, rtol=1e-10, atol=1e-12
    )
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-12)
    assert weighted.loo_score_ == pytest.approx(repeated.loo_score_, rel=1e-12)
    assert weighted.temperature_ == pytest.approx(repeated.temperature_, rel=1e-6)
    # a row of weight 0 is as new
    np.testing.assert_array_equal(
        weighted.loo_residuals_[w == 0], weighted.class_residuals(X[w == 0])
    )


@every_configuration
def test_the_order_of_rows_does_not_matter(options):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    w = np.random.default_rng(2).random(60) + 0.5
    order = np.random.default_rng(4).permutation(60)
    plain = fit(X, y, sample_weight=w, **options)
    permuted = fit(X[order], y[order], sample_weight=w[order], **options)
    np.testing.assert_array_equal(permuted.class_residuals(new), plain.class_residuals(new))
    np.testing.assert_array_equal(permuted.predict_proba(new), plain.predict_proba(new))
    np.testing.assert_array_equal(permuted.loo_residuals_, plain.loo_residuals_[order])


def test_a_class_without_weight_is_no_class():
    X, y = three_classes()
    w = np.where(y == "oak", 0.0, 1.0)
    model = fit(X, y, sample_weight=w)
    plain = fit(X[y != "oak"], y[y != "oak"])
    np.testing.assert_array_equal(model.classes_, ["ash", "beech"])
    np.testing.assert_array_equal(model.class_residuals(X), plain.class_residuals(X))
    assert model.loo_residuals_.shape == (60, 2)
    assert np.all(np.isfinite(model.loo_residuals_))


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


@every_configuration
def test_methods_agree(options):
    X, y = three_classes()
    new, _ = three_classes(90, seed=1)
    model = fit(X, y, **options)
    residuals = model.class_residuals(new)
    assert residuals.shape == (90, 3)
    assert np.all(residuals >= 0)
    np.testing.assert_array_equal(model.decision_function(new), -residuals)
    np.testing.assert_array_equal(model.predict(new), model.classes_[residuals.argmin(axis=1)])
    chances = model.predict_proba(new)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(chances.argmax(axis=1), residuals.argmin(axis=1))
    two = np.isin(y, ["ash", "oak"])
    binary = fit(X[two], y[two], **options)
    decision = binary.decision_function(new)
    assert decision.shape == (90,)
    np.testing.assert_array_equal(binary.predict(new), np.where(decision > 0, "oak", "ash"))
    assert np.all((binary.predict_proba(new)[:, 1] > 0.5) == (decision > 0))


@every_configuration
def test_classes_are_recognised(options):
    """And what is left out tells about new points, on the average over samples."""
    scores = []
    for seed in range(4):
        X, y = three_classes(150, seed=2 * seed)
        new, truth = three_classes(300, seed=2 * seed + 1)
        model = fit(X, y, kernel="gaussian", **options)
        scores.append((model.score(new, truth), model.loo_score_))
    score, left_out = np.mean(scores, axis=0)
    assert score > 0.8
    assert left_out == pytest.approx(score, abs=0.04)


def test_blocks_of_rows_do_not_change_the_result(monkeypatch):
    X, y = three_classes()
    new, _ = three_classes(100, seed=1)
    models = [fit(X, y, **options) for options in CONFIGURATIONS.values()]
    models.append(fit(gaussian(X), y, kernel="precomputed"))
    cross = gaussian(new, X)
    whole = [model.class_residuals(new) for model in models[:-1]]
    whole.append(models[-1].class_residuals(cross))
    monkeypatch.setattr(subspaces, "BLOCK_ELEMENTS", 100)
    for model, expected in zip(models, whole, strict=True):
        found = model.class_residuals(cross if model is models[-1] else new)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


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


@every_plain
def test_precomputed_is_the_kernel(options):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    kernel = Gaussian(sigma=SIGMA).fit(X)
    plain = fit(X, y, **options)
    model = fit(kernel(X), y, kernel="precomputed", **options)
    np.testing.assert_allclose(
        model.class_residuals(kernel(new, X)), plain.class_residuals(new), atol=1e-9
    )
    if "n_components" not in options:  # folds depend on the order, which is that of the rows
        np.testing.assert_allclose(model.loo_residuals_, plain.loo_residuals_, atol=1e-9)
    w = np.random.default_rng(0).integers(0, 3, size=60)
    copies = np.repeat(np.arange(60), w)
    weighted = fit(kernel(X), y, kernel="precomputed", sample_weight=w, **options)
    repeated = fit(kernel(X)[np.ix_(copies, copies)], y[copies], kernel="precomputed", **options)
    np.testing.assert_allclose(
        weighted.class_residuals(kernel(new, X)),
        repeated.class_residuals(kernel(new, X)[:, copies]),
        atol=1e-9,
    )


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


@pytest.mark.parametrize("options", [{}, {"geodesic": True, "reference": "mean"}], ids=str)
def test_sparse_is_dense(options):
    X, y = three_classes()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = fit(X, y, **options)
    for made in (scipy.sparse.csr_array(X), scipy.sparse.coo_matrix(X)):
        model = fit(made, y, **options)
        np.testing.assert_allclose(model.class_residuals(X), dense.class_residuals(X), atol=1e-9)
        np.testing.assert_allclose(model.class_residuals(made), dense.class_residuals(X), atol=1e-9)
        np.testing.assert_allclose(model.loo_residuals_, dense.loo_residuals_, atol=1e-7)


# ------------------------------------------------------------------ scikit-learn


def test_grid_search_over_the_kernel():
    X, y = three_classes(120)
    search = GridSearchCV(PerTurbo(Gaussian()), {"kernel__sigma": [0.01, 1.5, 1000.0]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"kernel__sigma": 1.5}
    assert search.best_estimator_.kernel_.sigma_ == 1.5
    with pytest.raises(ValueError, match=r"kernel__sigma cannot be set.*Write kernel=Gaussian\(\)"):
        PerTurbo().set_params(kernel__sigma=2.0)
    both = {"geodesic": [False, True], "alpha": [0.01, "loo"], "alpha_scale": ["relative"]}
    GridSearchCV(PerTurbo(), both, cv=3, scoring="neg_log_loss").fit(X, y)
    folded = GridSearchCV(PerTurbo("precomputed"), {"alpha": [0.1, 1.0]}, cv=3)
    folded.fit(gaussian(X, sigma=SIGMA), y)
    assert folded.best_score_ > 0.8


def test_pipelines():
    X, y = three_classes(120)
    scaled = make_pipeline(StandardScaler(), PerTurbo())
    assert cross_val_score(scaled, X * [1, 100, 1], y, cv=3).mean() > 0.8


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
