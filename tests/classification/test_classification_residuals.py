"""Laws of both classifiers by class residuals: oracles, leave-one-out, weights, input, errors."""

import numpy as np
import pytest

from laws_classification import (
    SIGMA,
    close,
    every_case,
    fit,
    gaussian,
    naive_perturbation,
    naive_ridge,
    some_cases,
    three_classes,
)
from orthodrome import KernelRidgeRegressionClassifier, PerTurbo
from orthodrome.classification import base, subspaces
from orthodrome.kernels import Gaussian, Linear, Normalized

NAIVE = {PerTurbo: naive_perturbation, KernelRidgeRegressionClassifier: naive_ridge}
every_classifier = pytest.mark.parametrize("Classifier", list(NAIVE))
every_scale = pytest.mark.parametrize("scale", ["absolute", "relative"])


def assert_finite(model, X):
    for found in (model.class_residuals(X), model.predict_proba(X), model.loo_residuals_):
        assert np.all(np.isfinite(found))
        assert np.all(found >= 0)
    assert np.isfinite(model.temperature_)
    assert 0 <= model.loo_score_ <= 1
    assert set(model.predict(X)) <= set(model.classes_)


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.01, 1.0])
@every_scale
@every_classifier
def test_residuals_against_the_oracle(Classifier, alpha, scale):
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    model = fit(Classifier, X, y, alpha=alpha, alpha_scale=scale)
    assert model.alpha_ == alpha
    found = model.class_residuals(new)
    for c, label in enumerate(model.classes_):
        K, k = gaussian(X[y == label], sigma=SIGMA), gaussian(new, X[y == label], SIGMA)
        absolute = alpha * (np.linalg.eigvalsh(K)[-1] if scale == "relative" else 1.0)
        assert model.class_alphas_[c] == pytest.approx(absolute, rel=1e-12)
        expected = [NAIVE[Classifier](K, row, 1.0, absolute) for row in k]
        np.testing.assert_allclose(found[:, c], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("alpha", [1e-5, 0.01, 1.0])
@every_scale
@every_classifier
def test_leave_one_out_is_brute_force(Classifier, alpha, scale):
    """Each row is left out of its own fit; α is that of all rows."""
    X, y = three_classes(36)
    w = np.random.default_rng(0).integers(1, 4, size=36)
    model = fit(Classifier, X, y, alpha=alpha, alpha_scale=scale, sample_weight=w)
    for n in range(0, 36, 4):
        rest = np.arange(36) != n
        for c in range(3) if scale == "relative" else [slice(None)]:
            alpha = np.max(model.class_alphas_[c])
            again = fit(Classifier, X[rest], y[rest], alpha=alpha, sample_weight=w[rest])
            expected = again.class_residuals(X[[n]])[0, c]
            np.testing.assert_allclose(model.loo_residuals_[n, c], expected, rtol=1e-10, atol=1e-10)
    right = model.classes_[np.argmin(model.loo_residuals_, axis=1)] == y
    assert model.loo_score_ == pytest.approx(np.average(right, weights=w), rel=1e-12)


@every_classifier
@pytest.mark.parametrize("sigma", [0.02, 0.3, 1.5, 1e4, 1e8])
def test_the_score_is_that_of_brute_force_for_narrow_and_wide_kernels(Classifier, sigma):
    """If no class captures anything, or every class all, residuals tie."""
    X, y = three_classes(30)
    model = Classifier(Gaussian(sigma), alpha=1e-3).fit(X, y)
    hits = []
    for n in range(30):
        rest = np.arange(30) != n
        one = Classifier(Gaussian(sigma), alpha=1e-3).fit(X[rest], y[rest])
        hits.append(one.predict(X[[n]])[0] == y[n])
    assert model.loo_score_ == pytest.approx(np.mean(hits), abs=1e-12)
    together = Classifier(Gaussian(sigma), alphas=[1e-6, 1e-3, 1.0]).fit(X, y)
    assert together.loo_scores_[0, 1] == pytest.approx(np.mean(hits), abs=1e-12)


@pytest.mark.parametrize("precomputed", [False, True])
@every_scale
@every_classifier
def test_many_small_classes(Classifier, scale, precomputed, monkeypatch):
    """Classes of equal size are computed together; the oracle takes one class at a time."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 5, 30)))
    X = rng.standard_normal((30, 3))[y] + 0.7 * rng.standard_normal((len(y), 3))
    X[y == 7] = X[y == 7][0]  # copies, and the same point in two classes
    X[np.flatnonzero(y == 9)[0]] = X[y == 7][0]
    weights = rng.integers(1, 4, len(y)).astype(float)
    K, new = gaussian(X, sigma=SIGMA), rng.standard_normal((20, 3))
    options = {"alphas": [1e-3, 0.1, 1.0], "alpha_scale": scale, "sample_weight": weights}
    data, k = X, gaussian(new, X, sigma=SIGMA)
    if precomputed:
        options["kernel"], data, new = "precomputed", K, k
    model = fit(Classifier, data, y, **options)
    copies = [np.repeat(np.flatnonzero(y == c), weights[y == c].astype(int)) for c in range(30)]
    alphas = np.array([[1e-3, 0.1, 1.0]] * 30)
    if scale == "relative":
        alphas *= [[np.linalg.eigvalsh(K[np.ix_(rows, rows)])[-1]] for rows in copies]

    def naive(rows, values, alpha):
        if not len(rows):
            return 1.0
        return NAIVE[Classifier](K[np.ix_(rows, rows)], values[rows], 1.0, alpha)

    left_out = np.empty((len(y), 30, 3))
    for n, c, a in np.ndindex(left_out.shape):
        equal = (y[copies[c]] == y[n]) & (X[copies[c]] == X[n]).all(axis=1)
        left_out[n, c, a] = naive(copies[c][~equal], K[n], alphas[c, a])
    first = np.argmax(left_out <= left_out.min(axis=1, keepdims=True) + 1e-12, axis=1)
    close(model.loo_scores_[0], weights @ (first == y[:, None]) / weights.sum())
    chosen = np.flatnonzero(model.alphas_ == model.alpha_)[0]
    close(model.class_alphas_, alphas[:, chosen], 1e-10)
    close(model.loo_residuals_, left_out[..., chosen], 1e-9)
    expected = [[naive(copies[c], row, alphas[c, chosen]) for c in range(30)] for row in k]
    close(model.class_residuals(new), expected, 1e-9)
    monkeypatch.setattr(subspaces, "BLOCK_ELEMENTS", 300)
    again = fit(Classifier, data, y, **options)
    close(again.loo_scores_, model.loo_scores_)
    close(again.class_residuals(new), model.class_residuals(new))


@every_scale
@pytest.mark.parametrize(
    ("Classifier", "more"),
    [(PerTurbo, {}), (PerTurbo, {"geodesic": True}), (KernelRidgeRegressionClassifier, {})],
)
def test_alpha_is_the_largest_with_the_least_error(Classifier, more, scale):
    X, y = three_classes()
    more = more | {"alpha_scale": scale}
    grid = np.array([10.0, 1e-4, 1e-2, 1.0, 1e-3, 0.1])
    model = fit(Classifier, X, y, alphas=grid, **more)
    scores = {alpha: fit(Classifier, X, y, alpha=alpha, **more).loo_score_ for alpha in grid}
    best = max(alpha for alpha in grid if scores[alpha] == max(scores.values()))
    assert (model.alpha_, model.loo_score_) == (best, scores[best])
    assert min(scores.values()) < scores[best]
    np.testing.assert_array_equal(model.alphas_, np.sort(grid))
    close(model.loo_scores_, [[scores[alpha] for alpha in np.sort(grid)]])
    chosen = fit(Classifier, X, y, alpha=best, **more)
    close(model.class_residuals(X), chosen.class_residuals(X))
    assert model.temperature_ == pytest.approx(chosen.temperature_, rel=1e-12)


@every_classifier
def test_the_default_grid_follows_the_scale_of_the_kernel(Classifier):
    X, y = three_classes()
    small, large = (fit(Classifier, scale * X, y, kernel=Linear()) for scale in (1.0, 1e4))
    assert large.alpha_ == pytest.approx(1e8 * small.alpha_, rel=1e-10)
    np.testing.assert_array_equal(large.predict(1e4 * X), small.predict(X))
    unit = fit(Classifier, X, y)
    assert unit.loo_scores_.shape == (1, len(base.DEFAULT_ALPHAS))
    assert np.min(np.abs(np.array(base.DEFAULT_ALPHAS) / unit.alpha_ - 1)) < 1e-12
    relative = fit(Classifier, X, y, kernel=Linear(), alpha_scale="relative")
    assert relative.alpha_ in base.DEFAULT_ALPHAS


@every_classifier
def test_a_class_without_weight_is_ignored(Classifier):
    X, y = three_classes()
    plain = fit(Classifier, X[y != "oak"], y[y != "oak"], alpha=0.1)
    models = [fit(Classifier, X, y, sample_weight=np.where(y == "oak", 0.0, 1.0), alpha=0.1)]
    if Classifier is KernelRidgeRegressionClassifier:
        models.append(fit(Classifier, X, y, class_weight={"oak": 0.0}, alpha=0.1))
    for model in models:
        np.testing.assert_array_equal(model.classes_, ["ash", "beech"])
        np.testing.assert_array_equal(model.class_residuals(X), plain.class_residuals(X))
        assert model.loo_residuals_.shape == (60, 2)
        oak = y == "oak"  # rows without weight are new points
        close(model.loo_residuals_[oak], plain.class_residuals(X[oak]))
        close(model.loo_residuals_[~oak], plain.loo_residuals_)


@every_case
def test_methods_agree(Classifier, options):
    X, y = three_classes()
    new, _ = three_classes(90, seed=1)
    model = fit(Classifier, X, y, **options)
    residuals = model.class_residuals(new)
    assert residuals.shape == (90, 3)
    assert np.all(residuals >= 0)
    np.testing.assert_array_equal(model.decision_function(new), -residuals)
    np.testing.assert_array_equal(model.predict(new), model.classes_[residuals.argmin(axis=1)])
    chances = model.predict_proba(new)
    naive = np.exp(-(residuals - residuals.min(axis=1, keepdims=True)) / model.temperature_)
    close(chances, naive / naive.sum(axis=1, keepdims=True))
    two = np.isin(y, ["ash", "oak"])
    binary = fit(Classifier, X[two], y[two], **options)
    decision = binary.decision_function(new)
    np.testing.assert_array_equal(decision, binary.class_residuals(new) @ [1, -1])
    np.testing.assert_array_equal(binary.predict(new), np.where(decision > 0, "oak", "ash"))
    assert np.all((binary.predict_proba(new)[:, 1] > 0.5) == (decision > 0))


@every_case
def test_the_same_points_in_both_classes_tie(Classifier, options):
    if {"class_weight", "subspace_size"} & options.keys():
        options = {}
    X = three_classes(20)[0]
    model = fit(Classifier, np.concatenate([X, X]), np.repeat([0, 1], 20), **options)
    residuals = model.class_residuals(X)
    np.testing.assert_array_equal(residuals[:, 0], residuals[:, 1])
    np.testing.assert_array_equal(model.predict(X), 0)
    np.testing.assert_array_equal(model.predict_proba(X), 0.5)
    assert_finite(model, X)


@some_cases
def test_float32_data_are_computed_in_double_precision(Classifier, options):
    """Residuals are differences, and rounding would choose α."""
    X, y = three_classes()
    X = X.astype(np.float32)
    coarse, exact = (fit(Classifier, data, y, **options) for data in (X, X.astype(np.float64)))
    assert coarse.alpha_ == exact.alpha_
    np.testing.assert_array_equal(coarse.loo_residuals_, exact.loo_residuals_)
    np.testing.assert_array_equal(coarse.class_residuals(X), exact.class_residuals(X))


#: Parameters that the battery of absurd values in tests/hardening does not try.
FOR_BOTH = [({"alphas": [0.1, -1]}, "alphas of OWNER"), ({"alphas": [np.inf]}, "alphas of OWNER")]
BAD_PARAMETERS = {
    PerTurbo: [
        *FOR_BOTH,
        ({"kernel": "linear", "geodesic": True}, "Linear.*reference='mean'"),
        ({"kernel": "linear", "geodesic": True, "reference": "mean"}, "must be the same for all"),
    ],
    KernelRidgeRegressionClassifier: [
        *FOR_BOTH,
        ({"sigmas": [1.0, 0.0]}, "sigmas of OWNER .*> 0"),
        ({"sigmas": [[1.0, 2.0]]}, "sigmas of OWNER .* one dim"),
        ({"sigmas": [1.0], "kernel": "precomputed"}, "Precomputed has no scale"),
        ({"sigmas": [1.0], "kernel": Normalized(Linear())}, "Normalized has no scale"),
        ({"class_weight": "auto"}, "class_weight of OWNER .* got 'auto'"),
        ({"class_weight": {"ash": -1.0}}, r"class_weight\['ash'\] of OWNER .*>= 0"),
        ({"class_weight": {"ash": np.nan}}, r"class_weight\['ash'\] of OWNER .*finite"),
        ({"class_weight": {"elm": 2.0}}, "class_weight of OWNER .*are not in"),
        ({"class_weight": {"ash": 0.0, "oak": 0.0}}, "at least two classes; got one class"),
    ],
}


@every_classifier
def test_bad_parameters_are_refused_by_fit(Classifier):
    for parameters, message in BAD_PARAMETERS[Classifier]:
        model = Classifier(**parameters)
        with pytest.raises(ValueError, match=message.replace("OWNER", Classifier.__name__)):
            model.fit(*three_classes())
        assert {name for name in vars(model) if name.endswith("_")} <= {"n_features_in_"}


@every_classifier
def test_classes_that_do_not_fit_in_memory(Classifier):
    """Copies and small subspaces need little."""
    X = np.random.default_rng(0).standard_normal((1500, 2))
    y = np.arange(1500) == 0
    with pytest.raises(ValueError, match=r"memory_budget is 16 MiB"):  # with the workspace of eigh
        fit(Classifier, X[:1200], np.arange(1200) % 2, memory_budget="16MiB")
    few = np.repeat(X[:10], 150, axis=0)
    assert_finite(fit(Classifier, few, np.arange(1500) < 750, memory_budget="1MiB"), X[:50])
    if Classifier is KernelRidgeRegressionClassifier:
        options = {"memory_budget": "1MiB", "subspace_size": 50, "random_state": 0}
        assert_finite(fit(Classifier, X, y, **options), X[:50])
