"""Laws of the kernel ridge regression classifier: twins, leave-one-out, weights, shapes, errors."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.class_weight import compute_sample_weight

from laws_classification import gaussian, naive_ridge, three_classes
from laws_shapes import (
    FORMS,
    every_form,
    in_form,
    moved,
    naive_extrinsic,
    naive_hermitian_ridge,
    naive_preshape,
    three_leaves,
    two_kinds_of_matrices,
)
from optional import optional
from orthodrome import KernelRidgeRegressionClassifier, PerTurbo
from orthodrome.classification import base, subspaces
from orthodrome.classification.ridge import RidgeRules
from orthodrome.kernels import (
    Gaussian,
    HermitianLinear,
    LogEuclidean,
    Sigmoid,
    VeroneseWhitney,
)
from real_data import load_or_skip

pd = optional("pandas")

SIGMA = 1.5
KERNEL = Gaussian(sigma=SIGMA)
SHAPE_KERNELS = ["veronese_whitney", "full_procrustes", "complex_gaussian", "hermitian_linear"]
every_shape_kernel = pytest.mark.parametrize("kernel", SHAPE_KERNELS)


def fit(X, y, *, sample_weight=None, kernel=KERNEL, **options):
    model = KernelRidgeRegressionClassifier(kernel, **options)
    return model.fit(X, y, sample_weight=sample_weight)


def own_column(residuals, model, y):
    return residuals[np.arange(len(y)), np.searchsorted(model.classes_, y)]


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


# ------------------------------------------------------------------ against others


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_the_linear_kernel_is_the_ridge_regression_classifier(alpha):
    """Of plain vectors: β = (XᵀX + λ)⁻¹Xᵀx and ‖x - Xβ‖², a class at a time."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), np.arange(30) % 3
    X += np.eye(12)[y] * 2
    new = rng.standard_normal((20, 12)) + 1
    found = fit(X, y, kernel="linear", alpha=alpha).class_residuals(new)
    for label in range(3):
        U = X[y == label].T
        beta = np.linalg.solve(U.T @ U + alpha * np.eye(10), U.T @ new.T)
        close(found[:, label], np.square(new.T - U @ beta).sum(axis=0), 1e-11)


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_the_hermitian_kernel_is_the_naive_classifier_of_preshapes(alpha):
    X, y = three_leaves()
    new, _ = three_leaves(20, seed=3)
    model = fit(X, y, kernel="hermitian_linear", alpha=alpha)
    found = model.class_residuals(new)
    for c, label in enumerate(model.classes_):
        expected = [naive_hermitian_ridge(X[y == label], z, alpha) for z in new]
        close(found[:, c], expected, 1e-11)
    close(model.class_residuals(moved(new, 7)), found, 1e-11)
    again = fit(moved(X, 8), y, kernel="hermitian_linear", alpha=alpha)
    close(again.class_residuals(new), found, 1e-11)


@pytest.mark.parametrize("alpha", [1e-4, 0.1])
def test_shapes_against_the_naive_twin(alpha):
    X, y = three_leaves()
    new, _ = three_leaves(20, seed=3)
    model = fit(X, y, kernel=VeroneseWhitney(0.7), alpha=alpha)
    for c, label in enumerate(model.classes_):
        mine = X[y == label]
        K = np.exp(-(naive_extrinsic(mine, mine) ** 2) / 0.49)
        k = np.exp(-(naive_extrinsic(new, mine) ** 2) / 0.49)
        expected = [naive_ridge(K, row, 1.0, alpha) for row in k]
        close(model.class_residuals(new)[:, c], expected, 1e-10)


def test_without_alpha_it_is_perturbo():
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    ridge, perturbo = fit(X, y, alpha=0.0), PerTurbo(KERNEL, alpha=0.0).fit(X, y)
    np.testing.assert_array_equal(ridge.class_residuals(new), perturbo.class_residuals(new))
    # with it, what is left is less by the penalty
    ridge, perturbo = fit(X, y, alpha=0.1), PerTurbo(KERNEL, alpha=0.1).fit(X, y)
    assert np.all(ridge.class_residuals(new) < perturbo.class_residuals(new))


# ------------------------------------------------------------------ leave-one-out


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("kernel", [VeroneseWhitney(0.7), HermitianLinear()], ids=repr)
def test_leave_one_out_of_shapes_is_brute_force(kernel, alpha):
    X, y = three_leaves(24)
    w = np.random.default_rng(0).integers(1, 4, size=24).astype(float)
    model = fit(X, y, kernel=kernel, alpha=alpha, sample_weight=w)
    for n in range(24):
        without = np.where(np.arange(24) == n, 0, w)
        again = fit(X, y, kernel=kernel, alpha=alpha, sample_weight=without)
        close(model.loo_residuals_[n], again.class_residuals(X[[n]])[0], 1e-10)


def test_of_alphas_that_tie_the_largest():
    X = np.array([[0.0, 0], [0.1, 0], [0, 0.1], [9.0, 9], [9.1, 9], [9, 9.1]])
    model = fit(X, [0, 0, 0, 1, 1, 1], alphas=[0.3, 0.001, 0.01])
    close(model.loo_scores_, 1.0)
    assert model.alpha_ == 0.3


# ------------------------------------------------------------------ scales


@pytest.mark.parametrize("options", [{}, {"alpha": 0.05}, {"alphas": [1e-3, 1e-2, 1.0]}], ids=str)
def test_the_scale_is_the_best_by_brute_force(options):
    X, y = three_classes()
    grid = [4.0, 0.3, 1.0, 30.0]
    model = fit(X, y, kernel="gaussian", sigmas=grid, **options)
    fixed = [fit(X, y, kernel=Gaussian(sigma), **options) for sigma in sorted(grid)]
    scores = np.array([one.loo_score_ for one in fixed])
    assert np.ptp(scores) > 0
    last = np.flatnonzero(scores == scores.max())[-1]
    assert model.kernel_.sigma_ == sorted(grid)[last]
    assert model.alpha_ == fixed[last].alpha_
    assert model.loo_score_ == fixed[last].loo_score_
    close(model.loo_scores_, np.concatenate([one.loo_scores_ for one in fixed]))
    close(model.class_residuals(X), fixed[last].class_residuals(X))
    np.testing.assert_array_equal(model.loo_residuals_, fixed[last].loo_residuals_)
    assert model.temperature_ == fixed[last].temperature_


@pytest.mark.parametrize("kernel", ["gaussian", Gaussian(0.7), "exponential"], ids=str)
def test_ten_scales_around_its_own(kernel):
    X, y = three_classes()
    model = fit(X, y, kernel=kernel, sigmas="auto")
    own = fit(X, y, kernel=kernel)
    assert model.loo_scores_.shape == (10, len(base.DEFAULT_ALPHAS))
    factor = model.kernel_.sigma_ / own.kernel_.sigma_
    assert 2 * np.log2(factor) == pytest.approx(round(2 * np.log2(factor)), abs=1e-9)
    assert 2**-2.5 * 0.999 < factor < 2**2 * 1.001
    assert model.loo_score_ == model.loo_scores_.max() >= own.loo_score_
    close(model.loo_scores_[5], own.loo_scores_[0])  # its own is one of the ten


def test_of_scales_that_tie_the_last():
    X = np.array([[0.0, 0], [0.1, 0], [0, 0.1], [9.0, 9], [9.1, 9], [9, 9.1]])
    model = fit(X, [0, 0, 0, 1, 1, 1], sigmas=[2.0, 1.0, 3.0, 2.0], alpha=0.01)
    close(model.loo_scores_, np.ones((3, 1)))  # each once, ascending
    assert model.kernel_.sigma_ == 3.0


def test_the_scale_of_shapes_and_of_matrices():
    X, y = three_leaves()
    model = fit(X, y, kernel="veronese_whitney", sigmas=[0.01, 0.6, 50.0], alpha=1e-3)
    fixed = [fit(X, y, kernel=VeroneseWhitney(s), alpha=1e-3) for s in (0.01, 0.6, 50.0)]
    close(model.loo_scores_[:, 0], [one.loo_score_ for one in fixed])
    best = np.flatnonzero(model.loo_scores_[:, 0] == model.loo_scores_.max())[-1]
    assert model.kernel_.sigma_ == [0.01, 0.6, 50.0][best]
    A, labels = two_kinds_of_matrices()
    model = fit(A, labels, kernel="log_euclidean", sigmas="auto")
    assert model.loo_score_ > 0.9


def test_the_kernel_that_was_given_is_left_alone():
    X, y = three_classes()
    kernel = Gaussian()
    fit(X, y, kernel=kernel, sigmas=[1.0, 2.0])
    assert kernel.sigma == "mean"
    assert not kernel.__sklearn_is_fitted__()


@pytest.mark.parametrize("kind", [KernelRidgeRegressionClassifier, PerTurbo])
@pytest.mark.parametrize("sigma", [0.02, 0.3, 1.5, 1e4, 1e8])
def test_the_score_is_that_of_brute_force_for_narrow_and_for_wide_kernels(kind, sigma):
    # where no class captures anything, or every one does, decisions are ties and not rounding
    X, y = three_classes(30)
    model = kind(Gaussian(sigma), alpha=1e-3).fit(X, y)
    hits = []
    for n in range(30):
        rest = np.arange(30) != n
        one = kind(Gaussian(sigma), alpha=1e-3).fit(X[rest], y[rest])
        hits.append(one.predict(X[[n]])[0] == y[n])
    assert model.loo_score_ == pytest.approx(np.mean(hits), abs=1e-12)
    together = kind(Gaussian(sigma), alphas=[1e-6, 1e-3, 1.0]).fit(X, y)
    assert together.loo_scores_[0, 1] == pytest.approx(np.mean(hits), abs=1e-12)


def test_what_was_tried_is_told():
    X, y = three_classes()
    model = fit(X, y, sigmas=[2.0, 0.2, 2.0], alphas=[1.0, 1e-6, 1e-2])
    np.testing.assert_array_equal(model.sigmas_, [0.2, 2.0])
    np.testing.assert_array_equal(model.alphas_, [1e-6, 1e-2, 1.0])
    assert model.loo_scores_.shape == (2, 3)
    i, j = (
        int(np.flatnonzero(grid == own)[0])
        for grid, own in ((model.sigmas_, model.kernel_.sigma_), (model.alphas_, model.alpha_))
    )
    assert model.loo_scores_[i, j] == model.loo_scores_.max() == model.loo_score_
    plain = fit(X, y, alpha=0.1)
    np.testing.assert_array_equal(plain.sigmas_, [SIGMA])
    np.testing.assert_array_equal(plain.alphas_, [0.1])
    assert np.isnan(fit(X, y, kernel="linear", alpha=0.1).sigmas_).all()


def test_points_are_prepared_once_for_all_scales(monkeypatch):
    A, labels = two_kinds_of_matrices()
    counts = []
    embed = LogEuclidean._embed
    monkeypatch.setattr(
        LogEuclidean, "_embed", lambda self, X: counts.append(len(X)) or embed(self, X)
    )
    model = fit(A, labels, kernel="log_euclidean", sigmas="auto")
    # for the scale by its rule, and once for all classes and scales
    assert sum(counts) <= 3 * len(A)
    counts.clear()
    model.predict(A[:5])
    assert counts == [5]


# ------------------------------------------------------------------ when it is computed


@pytest.mark.parametrize("options", [{}, {"subspace_size": 6, "random_state": 0}], ids=str)
@pytest.mark.parametrize("scale", ["absolute", "relative"])
def test_what_nothing_was_chosen_by_is_computed_when_asked_for(options, scale, monkeypatch):
    X, y = three_classes()
    weights = np.random.default_rng(3).integers(0, 3, 60).astype(float)
    options = options | {"alpha_scale": scale, "sample_weight": weights}
    chosen = fit(X, y, alphas=[0.03], **options)
    calls = []
    left_out = RidgeRules.left_out

    def spy(self, points, alphas):
        calls.append(len(alphas))
        return left_out(self, points, alphas)

    monkeypatch.setattr(RidgeRules, "left_out", spy)
    given = X.copy()
    model = fit(given, y, alpha=0.03, **options)
    predicted = model.predict(X)
    assert calls == []
    given[:] = np.nan  # what is asked for later is of the data as they were
    before = dict(vars(model))
    copy = pickle.loads(pickle.dumps(model))
    for one in (model, copy):
        close(one.loo_residuals_, chosen.loo_residuals_, 1e-12)
        assert one.loo_score_ == pytest.approx(chosen.loo_score_, rel=1e-12)
        assert one.temperature_ == pytest.approx(chosen.temperature_, rel=1e-9)
        close(one.loo_scores_, chosen.loo_scores_, 1e-12)
        close(one.predict_proba(X), chosen.predict_proba(X), 1e-9)
        np.testing.assert_array_equal(one.predict(X), predicted)
    assert calls == [1] * 6  # once for each class and model
    assert vars(model) == before
    assert not hasattr(KernelRidgeRegressionClassifier(), "loo_score_")


@pytest.mark.parametrize("kind", [KernelRidgeRegressionClassifier, PerTurbo])
@pytest.mark.parametrize("n", [97, 250, 530])  # more than a panel, than two, than a small class
def test_large_classes_without_the_spectrum(kind, n, monkeypatch):
    X, y = three_classes(2 * n)
    new = X[::7] + 0.1
    by_spectrum = kind(KERNEL, alphas=[0.05]).fit(X, y)
    given = kind(KERNEL, alpha=0.05).fit(X, y)
    assert max(np.bincount(np.searchsorted(given.classes_, y))) >= n
    assert all(subspace.triangular for subspace in given._subspaces_)
    close(given.class_residuals(new), by_spectrum.class_residuals(new), 1e-11)
    monkeypatch.setattr(subspaces, "BLOCK_ELEMENTS", 20 * n)  # some rows at a time
    close(given.class_residuals(new), by_spectrum.class_residuals(new), 1e-11)


# ------------------------------------------------------------------ subspaces of equal size


def in_use(model, X, y):
    """Those that are nearer to their class when they are not left out of it."""
    apart = own_column(model.loo_residuals_ - model.class_residuals(X), model, y)
    return apart > 1e-9


@pytest.mark.parametrize("options", [{"alpha": 0.1}, {}, {"sigmas": [1.0, 2.0]}], ids=str)
def test_few_of_each_class(options):
    X, y = three_classes()
    model = fit(X, y, subspace_size=8, random_state=0, **options)
    used = in_use(model, X, y)
    for label in model.classes_:
        assert np.count_nonzero(used & (y == label)) == 8
    np.testing.assert_array_equal(np.sort(model.support_), np.flatnonzero(used))
    assert list(y[model.support_]) == sorted(y[model.support_])
    # what is used is all that there is
    again = fit(X[used], y[used], kernel=Gaussian(model.kernel_.sigma_), alpha=model.alpha_)
    close(model.class_residuals(X), again.class_residuals(X), 1e-10)
    close(model.loo_residuals_[used], again.loo_residuals_, 1e-10)
    close(model.loo_residuals_[~used], again.class_residuals(X[~used]), 1e-10)


def test_those_beside_the_subspaces_count_in_the_choice():
    X, y = three_classes()
    weights = np.random.default_rng(5).integers(1, 4, 60).astype(float)
    sigmas, alphas = [0.5, 2.0], [1e-3, 0.1, 3.0]
    options = {"subspace_size": 5, "random_state": 0, "sample_weight": weights}
    model = fit(X, y, sigmas=sigmas, alphas=alphas, **options)
    expected = np.empty((2, 3))
    for i, sigma in enumerate(sigmas):
        for j, alpha in enumerate(alphas):
            one = fit(X, y, kernel=Gaussian(sigma), alpha=alpha, **options)
            hits = model.classes_[one.loo_residuals_.argmin(axis=1)] == y
            expected[i, j] = np.average(hits, weights=weights)
    close(model.loo_scores_, expected)
    assert model.loo_score_ == pytest.approx(expected.max(), rel=1e-12)
    used = in_use(model, X, y)
    few = fit(X[used], y[used], sigmas=sigmas, alphas=alphas, sample_weight=weights[used])
    assert not np.allclose(few.loo_scores_, expected)  # the others do tell something


def test_those_beside_the_subspaces_of_a_matrix_and_of_weight_zero():
    X, y = three_classes()
    weights = np.ones(60)
    weights[::7] = 0
    kernel = Gaussian(1.5)
    options = {"subspace_size": 5, "random_state": 0, "sample_weight": weights}
    model = fit(X, y, kernel=kernel, **options)
    small = fit(kernel.fit(X)(X), y, kernel="precomputed", **options)
    for one in (model, small):
        assert np.all(np.isfinite(one.loo_residuals_))
        hits = one.classes_[one.loo_residuals_.argmin(axis=1)] == y
        assert one.loo_score_ == pytest.approx(np.average(hits, weights=weights), rel=1e-12)


def test_the_draw_can_be_repeated():
    X, y = three_classes()
    draws = [fit(X, y, subspace_size=8, random_state=seed, alpha=0.1) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(draws[0].class_residuals(X), draws[1].class_residuals(X))
    assert not np.array_equal(in_use(draws[0], X, y), in_use(draws[2], X, y))
    order = np.random.default_rng(4).permutation(60)
    permuted = fit(X[order], y[order], subspace_size=8, random_state=0, alpha=0.1)
    np.testing.assert_array_equal(permuted.class_residuals(X), draws[0].class_residuals(X))
    # a generator goes on where it is
    generator = np.random.RandomState(0)
    first = fit(X, y, subspace_size=8, random_state=generator, alpha=0.1)
    second = fit(X, y, subspace_size=8, random_state=generator, alpha=0.1)
    np.testing.assert_array_equal(first.class_residuals(X), draws[0].class_residuals(X))
    assert not np.array_equal(first.class_residuals(X), second.class_residuals(X))


def test_every_point_may_be_drawn():
    X, y = three_classes(30)
    counts = sum(
        in_use(fit(X, y, subspace_size=4, random_state=seed, alpha=0.1), X, y).astype(int)
        for seed in range(60)
    )
    shares = counts / 60
    for label in np.unique(y):
        mine = shares[y == label]
        assert np.mean(mine) == pytest.approx(4 / len(mine), rel=1e-12)
        assert np.all(np.abs(mine - 4 / len(mine)) < 0.3)


def test_all_of_a_class_that_is_smaller():
    X, y = three_classes()  # 30, 20, 10
    whole, part = fit(X, y, alpha=0.1), fit(X, y, alpha=0.1, subspace_size=15, random_state=0)
    np.testing.assert_array_equal(part.class_residuals(X)[:, 2], whole.class_residuals(X)[:, 2])
    large = fit(X, y, alpha=0.1, subspace_size=1000)
    np.testing.assert_array_equal(large.class_residuals(X), whole.class_residuals(X))
    np.testing.assert_array_equal(large.loo_residuals_, whole.loo_residuals_)


def test_copies_are_one_point_of_a_subspace():
    X, y = three_classes()
    w = np.random.default_rng(0).integers(0, 4, size=60)
    copies = np.repeat(np.arange(60), w)
    options = {"alpha": 0.1, "subspace_size": 5, "random_state": 3}
    weighted, repeated = fit(X, y, sample_weight=w, **options), fit(X[copies], y[copies], **options)
    close(weighted.class_residuals(X), repeated.class_residuals(X), 1e-12)
    close(weighted.loo_residuals_[copies], repeated.loo_residuals_, 1e-12)


def test_points_of_a_subspace_keep_their_weights():
    X, y = three_classes()
    w = np.random.default_rng(0).integers(1, 5, size=60).astype(float)
    model = fit(X, y, sample_weight=w, alpha=0.1, subspace_size=8, random_state=0)
    used = in_use(model, X, y)
    again = fit(X[used], y[used], sample_weight=w[used], alpha=0.1)
    close(model.class_residuals(X), again.class_residuals(X), 1e-10)
    close(model.loo_residuals_[used], again.loo_residuals_, 1e-10)


@pytest.mark.parametrize("size", [1, 7])
def test_few_of_each_class_of_a_precomputed_kernel(size):
    X, y = three_classes()
    K = gaussian(X, sigma=SIGMA)
    options = {"alpha": 0.1, "subspace_size": size, "random_state": 0}
    model = fit(K, y, kernel="precomputed", **options)
    found = model.class_residuals(K)
    used = own_column(model.loo_residuals_ - found, model, y) > 1e-9
    assert np.count_nonzero(used) == 3 * size
    again = fit(X[used], y[used], alpha=0.1)
    close(found, again.class_residuals(X), 1e-10)


# ------------------------------------------------------------------ weights and order


@pytest.mark.parametrize("scale", ["absolute", "relative"])
@pytest.mark.parametrize("given_weights", [False, True])
@pytest.mark.parametrize("class_weight", ["balanced", {"ash": 3.0, "oak": 0.5}], ids=str)
def test_class_weights_are_weights_of_points(class_weight, given_weights, scale):
    X, y = three_classes()
    w = np.random.default_rng(0).integers(1, 4, size=60).astype(float)
    w = w if given_weights else np.ones(60)
    if class_weight == "balanced":  # every class has the same weight in all
        factors = w.sum() / 3 / np.array([w[y == label].sum() for label in y])
    else:
        factors = compute_sample_weight(class_weight, y)
    by_class = fit(
        X,
        y,
        class_weight=class_weight,
        alpha_scale=scale,
        sample_weight=w if given_weights else None,
    )
    by_point = fit(X, y, sample_weight=w * factors, alpha_scale=scale)
    close(by_class.class_residuals(X), by_point.class_residuals(X), 1e-9)
    close(by_class.loo_scores_, by_point.loo_scores_)
    assert by_class.alpha_ == pytest.approx(by_point.alpha_, rel=1e-12)


def test_a_class_of_more_weight_has_a_smaller_alpha():
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    found = fit(X, y, class_weight={"beech": 4.0}, alpha=0.2).class_residuals(new)
    close(found[:, [0, 2]], fit(X, y, alpha=0.2).class_residuals(new)[:, [0, 2]])
    close(found[:, 1], fit(X, y, alpha=0.05).class_residuals(new)[:, 1])


def test_balanced_counts_the_classes_that_have_weight():
    X, y = three_classes()
    options = {"class_weight": "balanced", "alpha": 0.1}
    some = fit(X, y, sample_weight=np.where(y == "oak", 0.0, 2.0), **options)
    rest = y != "oak"
    close(
        some.class_residuals(X),
        fit(X[rest], y[rest], sample_weight=np.full(50, 2.0), **options).class_residuals(X),
    )


# ------------------------------------------------------------------ methods


def test_a_kernel_that_is_not_definite_is_the_same_as_its_matrix():
    """Residuals are then no distances, and may be below 0: what counts are their differences."""
    X, y = three_classes(30, seed=4)
    new = X + 0.1 * np.random.default_rng(0).standard_normal(X.shape)
    kernel = Sigmoid(gamma=0.3, coef0=-0.5).fit(X)
    ours = fit(X, y, kernel=kernel, alpha=0.1).class_residuals(new)
    theirs = fit(kernel(X), y, kernel="precomputed", alpha=0.1).class_residuals(kernel(new, X))
    assert (kernel.diag(new) - ours.max(axis=1) < 0).any()  # clipped they would be all 0
    assert ours.min() >= 0
    np.testing.assert_allclose(
        ours - ours.min(axis=1, keepdims=True),
        theirs - theirs.min(axis=1, keepdims=True),
        atol=1e-9,
    )


def test_leave_one_out_of_a_kernel_that_is_not_definite_is_not_clipped():
    """To the classes that a point is not of it is new: they differ as they do when it is placed."""
    X, y = three_classes(30, seed=4)
    kernel = Sigmoid(gamma=0.3, coef0=-0.5).fit(X)
    model = fit(X, y, kernel=kernel, alpha=0.1)
    left, placed = model.loo_residuals_, model.class_residuals(X)
    assert left.min() >= 0
    clipped = 0
    for number, label in enumerate(model.classes_):
        own = y == label
        a, b = (c for c in range(len(model.classes_)) if c != number)
        np.testing.assert_allclose(
            left[own, a] - left[own, b], placed[own, a] - placed[own, b], atol=1e-9
        )
        # both below 0 before all were raised: clipped they would be equal
        low = kernel.diag(X[own])[:, None] - placed[own] < 0
        clipped += int(np.sum(low[:, a] & low[:, b]))
    assert clipped


def test_a_precomputed_matrix_of_float32():
    """Without a warning: bounds of float64 are not compared as float32."""
    X, y = three_classes()
    new, _ = three_classes(30, seed=1)
    kernel = Gaussian(sigma=SIGMA).fit(X)
    plain = fit(X, y, alpha=0.1)
    model = fit(kernel(X).astype(np.float32), y, kernel="precomputed", alpha=0.1)
    found = model.class_residuals(kernel(new, X).astype(np.float32))
    close(found, plain.class_residuals(new), 1e-4)


# ------------------------------------------------------------------ shapes and matrices


@every_shape_kernel
@pytest.mark.parametrize(
    "options", [{}, {"subspace_size": 7, "random_state": 0}, {"class_weight": "balanced"}], ids=str
)
def test_shapes_in_every_form(kernel, options):
    X, y = three_leaves(spread=0.2)
    new, truth = three_leaves(60, seed=3, spread=0.2)
    plain = fit(X, y, kernel=kernel, **options)
    residuals, labels = plain.class_residuals(new), plain.predict(new)
    for form in FORMS:
        model = fit(in_form(X, form), y, kernel=kernel, **options)
        close(model.class_residuals(in_form(new, form)), residuals, 1e-12)
        np.testing.assert_array_equal(model.predict(in_form(new, form)), labels)
        np.testing.assert_array_equal(model.predict(new), labels)
        assert model.n_features_in_ == 12
        assert model.score(in_form(new, form), truth) > 0.7


@every_shape_kernel
def test_shapes_whatever_their_place_size_and_rotation(kernel):
    X, y = three_leaves()
    new, _ = three_leaves(20, seed=3)
    plain = fit(X, y, kernel=kernel, alpha=0.01)
    model = fit(moved(X, 5), y, kernel=kernel, alpha=0.01)
    close(model.class_residuals(moved(new, 6)), plain.class_residuals(new), 1e-10)
    close(model.loo_residuals_, plain.loo_residuals_, 1e-10)


@every_shape_kernel
def test_weights_of_shapes_are_repetition(kernel):
    X, y = three_leaves()
    w = np.random.default_rng(2).integers(0, 4, size=len(X))
    copies = np.random.default_rng(3).permutation(np.repeat(np.arange(len(X)), w))
    weighted = fit(X, y, sample_weight=w, kernel=kernel)
    repeated = fit(X[copies], y[copies], kernel=kernel)
    close(weighted.class_residuals(X), repeated.class_residuals(X), 1e-10)
    close(weighted.loo_residuals_[copies], repeated.loo_residuals_, 1e-10)
    close(weighted.loo_scores_, repeated.loo_scores_)


@pytest.mark.parametrize("kernel", ["veronese_whitney", "hermitian_linear"])
def test_the_order_of_shapes_does_not_matter(kernel):
    X, y = three_leaves()
    order = np.random.default_rng(4).permutation(len(X))
    plain, permuted = fit(X, y, kernel=kernel), fit(X[order], y[order], kernel=kernel)
    np.testing.assert_array_equal(permuted.class_residuals(X), plain.class_residuals(X))
    np.testing.assert_array_equal(permuted.loo_residuals_, plain.loo_residuals_[order])


@pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")
def test_a_kernel_that_is_not_positive_definite():
    X, y = three_leaves(spread=0.2)
    new, truth = three_leaves(60, seed=3, spread=0.2)
    model = fit(X, y, kernel="riemannian_shape")
    assert np.all(np.isfinite(model.class_residuals(new)))
    assert model.score(new, truth) > 0.7


def test_the_kernel_that_is_not_positive_definite_is_warned_about():
    with pytest.warns(UserWarning, match="RiemannianShape is not positive definite"):
        fit(*three_leaves(), kernel="riemannian_shape")


def test_matrices():
    A, y = two_kinds_of_matrices()
    new, truth = two_kinds_of_matrices(60, seed=1)
    model = fit(A, y, kernel="log_euclidean")
    assert model.score(new, truth) > 0.9
    assert model.n_features_in_ == 9
    flat = fit(model.kernel_._embed(A), y, kernel=Gaussian(model.kernel_.sigma_ / np.sqrt(2)))
    close(model.class_residuals(new), flat.class_residuals(model.kernel_._embed(new)), 1e-10)
    inverse = fit(np.linalg.inv(A), y, kernel="log_euclidean")
    close(inverse.class_residuals(np.linalg.inv(new)), model.class_residuals(new), 1e-8)


def test_specimens_are_named():
    X, y = three_leaves()
    bad, flat = X.copy(), X.copy()
    bad[7, 2] = np.nan
    flat[9] = 1.0
    model = fit(X, y, kernel="veronese_whitney")
    for call in (model.predict, lambda Z: fit(Z, y, kernel="veronese_whitney")):
        with pytest.raises(ValueError, match="Landmark 2 of specimen 7 of X is NaN"):
            call(bad)
        with pytest.raises(ValueError, match="landmarks of specimen 9 of X all coincide"):
            call(flat)
        with pytest.raises(ValueError, match="Specimen 1 of X has landmarks of shape"):
            call([X[0], X[1, :5], *X[2:]])
    for kernel in SHAPE_KERNELS:
        with pytest.raises(ValueError, match="landmarks of specimen 9 of X all coincide"):
            fit(flat, y, kernel=kernel)
    message = r"X has 5 landmarks, but KernelRidgeRegressionClassifier was fitted to specimens of 6"
    with pytest.raises(ValueError, match=message):
        model.predict(X[:, :5])
    A, labels = two_kinds_of_matrices()
    singular = A.copy()
    singular[11] = np.ones((3, 3))
    spd = fit(A, labels, kernel="log_euclidean")
    for call in (spd.predict, lambda Z: fit(Z, labels, kernel="log_euclidean")):
        with pytest.raises(ValueError, match="Matrix 11 of X is not positive definite"):
            call(singular)
    with pytest.raises(
        ValueError, match=r"matrices of 2 x 2 .*KernelRidgeRegressionClassifier was"
    ):
        spd.predict(A[:, :2, :2])


def test_perturbo_takes_complex_values_too():
    X, y = three_leaves()
    new, _ = three_leaves(20, seed=3)
    model = PerTurbo("hermitian_linear", alpha=0.1).fit(X, y)
    for c, label in enumerate(model.classes_):
        U = np.column_stack([naive_preshape(z) for z in X[y == label]])
        u = np.column_stack([naive_preshape(z) for z in new])
        inverse = np.linalg.inv(U.conj().T @ U + 0.1 * np.eye(U.shape[1]))
        taken = np.einsum("ij,ik,kj->j", (U.conj().T @ u).conj(), inverse, U.conj().T @ u)
        close(model.class_residuals(new)[:, c], 1 - taken.real)
    truncated = PerTurbo("hermitian_linear", n_components=2).fit(X, y)
    for c, label in enumerate(truncated.classes_):
        U = np.column_stack([naive_preshape(z) for z in X[y == label]])
        leading = np.linalg.svd(U)[0][:, :2]
        u = np.column_stack([naive_preshape(z) for z in new])
        rest = u - leading @ (leading.conj().T @ u)
        close(truncated.class_residuals(new)[:, c], np.square(np.abs(rest)).sum(axis=0))
    assert np.all(np.isfinite(truncated.loo_residuals_))


# ------------------------------------------------------------------ containers


def test_frames_of_landmarks():
    X, y = three_leaves()
    names = [f"{c}{i}" for i in range(6) for c in "xy"]
    frame = pd.DataFrame(in_form(X, "flat"), columns=names)
    model = fit(frame, y, kernel="veronese_whitney")
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(
        model.predict(frame), fit(X, y, kernel="veronese_whitney").predict(X)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])


def test_single_precision():
    X, y = three_leaves()
    model = fit(X.astype(np.complex64), y, kernel="veronese_whitney", alpha=0.01)
    expected = fit(X, y, kernel="veronese_whitney", alpha=0.01)
    close(model.class_residuals(X.astype(np.complex64)), expected.class_residuals(X), 1e-4)
    assert model.class_residuals(X.astype(np.complex64)).dtype == np.float64


# ------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("kernel", ["gaussian", *SHAPE_KERNELS])
def test_pickle_and_clone(kernel):
    X, y = three_classes() if kernel == "gaussian" else three_leaves()
    options = {} if kernel == "hermitian_linear" else {"sigmas": "auto"}
    model = fit(X, y, kernel=kernel, subspace_size=9, random_state=0, **options)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.class_residuals(X), model.class_residuals(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    twin = clone(model)
    with pytest.raises(NotFittedError):
        twin.predict(X)
    np.testing.assert_array_equal(twin.fit(X, y).class_residuals(X), model.class_residuals(X))


@every_form
def test_cross_validation_of_shapes(form):
    X, y = three_leaves(60, spread=0.2)
    order = np.random.default_rng(0).permutation(60)
    model = KernelRidgeRegressionClassifier("veronese_whitney")
    assert cross_val_score(model, in_form(X, form)[order], y[order], cv=3).mean() > 0.75


# ------------------------------------------------------------------ real data


def test_leaves():
    """Better than the naive classifier of pre-shapes, as in the paper, on a part of its data."""
    bunch = load_or_skip("passiflora")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(bunch.data))
    train, test = order[:1000], order[1000:2000]
    X, y = bunch.data, bunch.target
    options = {"subspace_size": 60, "random_state": 0}
    scores = {}
    for kernel in ("veronese_whitney", "hermitian_linear"):
        model = fit(X[train], y[train], kernel=kernel, **options)
        scores[kernel] = model.score(X[test], y[test])
    assert scores["veronese_whitney"] > scores["hermitian_linear"]
    assert scores["veronese_whitney"] > 0.7


def test_leave_one_out_of_leaves_is_brute_force():
    bunch = load_or_skip("passiflora")
    X, y = bunch.data[::60], bunch.target[::60]
    X, y = np.concatenate([X, X[:9]]), np.concatenate([y, y[:9]])  # with duplicate rows
    w = np.random.default_rng(0).random(len(X)) + 0.5
    kernel = VeroneseWhitney(VeroneseWhitney().fit(X).sigma_)
    model = fit(X, y, kernel=kernel, alpha=0.01, sample_weight=w)
    for n in range(0, len(X), 7):
        copies = np.all(X[n] == X, axis=(1, 2)) & (y == y[n])
        if np.count_nonzero((y == y[n]) & ~copies):
            again = fit(X[~copies], y[~copies], kernel=kernel, alpha=0.01, sample_weight=w[~copies])
            close(model.loo_residuals_[n], again.class_residuals(X[n : n + 1])[0], 1e-10)


def test_covariances_are_plain_arrays():
    """What other libraries estimate goes straight in: float64, (n, d, d)."""
    A, y = two_kinds_of_matrices()
    model = fit(list(A), y.tolist(), kernel=LogEuclidean())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(A), fit(A, y, kernel=LogEuclidean()).predict(A))
