"""Laws of the kernel ridge regression classifier: scales, subspaces, class weights, shapes."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.utils.class_weight import compute_sample_weight

from laws_classification import SIGMA, close, gaussian, own_column, three_classes
from laws_classification import fit as fit_any
from laws_shapes import naive_hermitian_ridge, naive_preshape, three_leaves, two_kinds_of_matrices
from orthodrome import KernelRidgeRegressionClassifier, PerTurbo, load, save
from orthodrome.classification import base, subspaces
from orthodrome.kernels import Embedded, Gaussian, Laplacian, Normalized, Sigmoid

fit = partial(fit_any, KernelRidgeRegressionClassifier)


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_the_linear_kernel_is_the_ridge_regression_classifier(alpha):
    """For vectors: β = (XᵀX + λ)⁻¹Xᵀx and ‖x - Xβ‖² for each class."""
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
def test_the_hermitian_kernel_is_the_classifier_of_preshapes(alpha):
    X, y = three_leaves()
    new, _ = three_leaves(20, seed=3)
    model = fit(X, y, kernel="hermitian_linear", alpha=alpha)
    found = model.class_residuals(new)
    for c, label in enumerate(model.classes_):
        expected = [naive_hermitian_ridge(X[y == label], z, alpha) for z in new]
        close(found[:, c], expected, 1e-11)


def test_perturbo_with_complex_kernel_values():
    X, y = three_leaves()
    new, _ = three_leaves(20, seed=3)
    model = PerTurbo("hermitian_linear", alpha=0.1).fit(X, y)
    truncated = PerTurbo("hermitian_linear", n_components=2).fit(X, y)
    u = np.column_stack([naive_preshape(z) for z in new])
    for c, label in enumerate(model.classes_):
        U = np.column_stack([naive_preshape(z) for z in X[y == label]])
        products = U.conj().T @ u
        inverse = np.linalg.inv(U.conj().T @ U + 0.1 * np.eye(U.shape[1]))
        taken = np.einsum("ij,ik,kj->j", products.conj(), inverse, products)
        close(model.class_residuals(new)[:, c], 1 - taken.real)
        leading = np.linalg.svd(U)[0][:, :2]
        rest = u - leading @ (leading.conj().T @ u)
        close(truncated.class_residuals(new)[:, c], np.square(np.abs(rest)).sum(axis=0))
    assert np.all(np.isfinite(truncated.loo_residuals_))


def as_flat(X):
    return X.reshape(len(X), -1)


SCALED = {
    "gaussian": ("gaussian", three_classes),
    "median": (Gaussian("median"), three_classes),
    "exponential": ("exponential", three_classes),
    "normalized": (Normalized(Gaussian()), three_classes),
    "embedded": (Embedded(as_flat), two_kinds_of_matrices),
    "both": (Normalized(Embedded(as_flat, Gaussian("median"))), two_kinds_of_matrices),
    "shapes": ("veronese_whitney", three_leaves),
    "matrices": ("log_euclidean", two_kinds_of_matrices),
}


@pytest.mark.parametrize("Classifier", [KernelRidgeRegressionClassifier, PerTurbo])
@pytest.mark.parametrize("name", SCALED)
def test_scales_around_that_of_the_kernel(Classifier, name):
    """Against one fit for each scale, also for kernels inside other kernels."""
    kernel, sample = SCALED[name]
    X, y = sample(40)
    weights = np.random.default_rng(0).integers(1, 3, 40).astype(float)
    model = Classifier(kernel).fit(X, y, sample_weight=weights)
    assert model.loo_scores_.shape == (len(base.SIGMA_FACTORS), len(base.DEFAULT_ALPHAS))
    own = Classifier(kernel, sigmas=None).fit(X, y, sample_weight=weights)
    factors = model.sigmas_ / own.sigmas_
    close(factors, base.SIGMA_FACTORS, 1e-9)
    close(model.loo_scores_[factors == 1], own.loo_scores_)  # its own is one of them
    single = [Classifier(kernel, sigmas=[s]).fit(X, y, weights) for s in model.sigmas_]
    close(model.loo_scores_, np.concatenate([one.loo_scores_ for one in single]))
    best = [one for one in single if one.loo_score_ == model.loo_scores_.max()][-1]
    assert (best.alpha_, best.loo_score_) == (model.alpha_, model.loo_score_)
    close(best.class_residuals(X), model.class_residuals(X), 1e-10)
    close(best.loo_residuals_, model.loo_residuals_, 1e-10)
    resolved = Classifier(model.kernel_.resolved(), alpha=model.alpha_)
    resolved.fit(X, y, sample_weight=weights)
    close(resolved.class_residuals(X), model.class_residuals(X), 1e-9)


@pytest.mark.parametrize("Classifier", [KernelRidgeRegressionClassifier, PerTurbo])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_automatic_kernels(Classifier, scale, tmp_path):
    """Against one fit for each kernel; some entries are far from the others."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    far, close_by = 8 * rng.standard_normal((120, 6)), 0.8 * rng.standard_normal((120, 6))
    X = np.where(rng.random((120, 6)) < 0.1, far, 2 * rng.standard_normal((3, 6))[y] + close_by)
    weights = rng.integers(1, 3, len(X)).astype(float)
    model = Classifier().fit(scale * X, y, sample_weight=weights)
    sigma = Gaussian().fit(X, sample_weight=weights).sigma_
    rate = np.sqrt(2 / 6) / sigma
    kernels = [Laplacian(2 * rate), Laplacian(rate)]
    kernels += [Gaussian(sigma * factor) for factor in base.SIGMA_FACTORS]
    single = [Classifier(kernel).fit(X, y, sample_weight=weights) for kernel in kernels]
    close(model.loo_scores_, np.concatenate([one.loo_scores_ for one in single]), 1e-9)
    close(model.sigmas_[2:] / scale, [kernel.sigma for kernel in kernels[2:]], 1e-9)
    assert np.all(np.isnan(model.sigmas_[:2]))
    best = [one for one in single if one.loo_score_ == model.loo_scores_.max()][-1]
    assert isinstance(model.kernel_, Laplacian)
    assert isinstance(best.kernel_, Laplacian)
    close(model.class_residuals(scale * X), best.class_residuals(X), 1e-9)
    repeated = Classifier().fit(
        np.repeat(scale * X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int))
    )
    close(model.class_residuals(scale * X), repeated.class_residuals(scale * X), 1e-9)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    close(loaded.loo_residuals_, model.loo_residuals_)
    close(loaded.class_residuals(scipy.sparse.csr_array(scale * X)), best.class_residuals(X), 1e-9)
    wider = np.hstack([scale * X, np.ones((len(X), 2))])  # constant columns change nothing
    close(Classifier().fit(wider, y, weights).class_residuals(wider), best.class_residuals(X), 1e-9)


def test_where_the_kernel_stays_gaussian():
    X, y = three_classes()
    sparse = scipy.sparse.csr_array(X)
    assert KernelRidgeRegressionClassifier().fit(sparse, y).loo_scores_.shape == (6, 19)
    for sigmas in (None, [1.0, 2.0]):
        model = KernelRidgeRegressionClassifier(sigmas=sigmas).fit(X, y)
        assert isinstance(model.kernel_, Gaussian)
        assert np.all(model.sigmas_ > 0)
    model = KernelRidgeRegressionClassifier().set_params(kernel__sigma=0.5).fit(X, y)
    assert model.kernel_.sigma_ == 0.5
    constant = KernelRidgeRegressionClassifier().fit(np.ones((6, 2)), [0, 1] * 3)
    assert np.all(np.isfinite(constant.class_residuals(np.zeros((1, 2)))))


def test_scales_that_are_kept():
    """Numbers, kernels without a scale, and methods without exact leave-one-out."""
    X, y = three_classes()
    assert fit(X, y, kernel=Gaussian(0.7)).sigmas_ == [0.7]
    assert fit(X, y, kernel=Normalized(Gaussian(0.7))).sigmas_ == [0.7]
    assert np.isnan(fit(X, y, kernel="linear").sigmas_)
    for options in ({"geodesic": True}, {"n_components": 3}):
        assert PerTurbo(**options).fit(X, y).sigmas_ == [Gaussian().fit(X).sigma_]


def test_ties_go_to_the_largest_alpha_and_scale():
    X = np.array([[0.0, 0], [0.1, 0], [0, 0.1], [9.0, 9], [9.1, 9], [9, 9.1]])
    model = fit(X, [0, 0, 0, 1, 1, 1], alphas=[0.3, 0.001, 0.01], sigmas=[2.0, 1.0, 3.0])
    close(model.loo_scores_, np.ones((3, 3)))
    assert (model.alpha_, model.kernel_.sigma_) == (0.3, 3.0)


@pytest.mark.parametrize("options", [{}, {"subspace_size": 6, "random_state": 0}], ids=str)
@pytest.mark.parametrize("scale", ["absolute", "relative"])
def test_leave_one_out_is_computed_when_needed(options, scale):
    X, y = three_classes()
    weights = np.random.default_rng(3).integers(0, 3, 60).astype(float)
    options = options | {"alpha_scale": scale, "sample_weight": weights}
    chosen = fit(X, y, alphas=[0.03], **options)
    given = X.copy()
    model = fit(given, y, alpha=0.03, **options)
    assert "loo_residuals_" not in vars(model)
    given[:] = np.nan  # the model has its own copy
    for one in (model, pickle.loads(pickle.dumps(model))):
        close(one.loo_residuals_, chosen.loo_residuals_, 1e-12)
        assert one.loo_score_ == pytest.approx(chosen.loo_score_, rel=1e-12)
        close(one.loo_scores_, chosen.loo_scores_, 1e-12)
        close(one.predict_proba(X), chosen.predict_proba(X), 1e-9)
    assert not hasattr(KernelRidgeRegressionClassifier(), "loo_score_")


@pytest.mark.parametrize("kind", [KernelRidgeRegressionClassifier, PerTurbo])
@pytest.mark.parametrize("n", [97, 250, 530])  # more than a panel, two panels, a small class
def test_large_classes_without_the_spectrum(kind, n, monkeypatch):
    X, y = three_classes(2 * n)
    new = X[::7] + 0.1
    by_spectrum = fit_any(kind, X, y, alphas=[0.05])
    given = fit_any(kind, X, y, alpha=0.05)
    assert max(np.bincount(np.searchsorted(given.classes_, y))) >= n
    assert all(subspace.triangular for subspace in given._subspaces_)
    close(given.class_residuals(new), by_spectrum.class_residuals(new), 1e-11)
    monkeypatch.setattr(subspaces, "BLOCK_ELEMENTS", 20 * n)  # several blocks
    close(given.class_residuals(new), by_spectrum.class_residuals(new), 1e-11)


def spans(model, X, y):
    """Return which points are nearer to their class when they are not left out of it."""
    return own_column(model.loo_residuals_ - model.class_residuals(X), model, y) > 1e-9


@pytest.mark.parametrize("precomputed", [False, True])
@pytest.mark.parametrize("options", [{"alpha": 0.1}, {}, {"sigmas": [1.0, 2.0]}], ids=str)
def test_few_points_of_each_class(options, precomputed):
    X, y = three_classes()
    w = np.random.default_rng(0).integers(1, 5, size=60).astype(float)
    data, kernel = X, Gaussian(SIGMA)
    if precomputed:
        if "sigmas" in options:
            return
        data, kernel = gaussian(X, sigma=SIGMA), "precomputed"
    options = options | {"subspace_size": 8, "random_state": 0}
    model = fit(data, y, kernel=kernel, sample_weight=w, **options)
    used = spans(model, data, y)
    assert [np.count_nonzero(used & (y == label)) for label in model.classes_] == [8] * 3
    np.testing.assert_array_equal(np.sort(model.support_), np.flatnonzero(used))
    assert list(y[model.support_]) == sorted(y[model.support_])
    # the same as a fit to these points
    sigma = SIGMA if precomputed else model.kernel_.sigma_
    options = {"kernel": Gaussian(sigma), "alpha": model.alpha_, "sample_weight": w[used]}
    again = fit(X[used], y[used], **options)
    close(model.class_residuals(data), again.class_residuals(X), 1e-10)
    close(model.loo_residuals_[used], again.loo_residuals_, 1e-10)
    close(model.loo_residuals_[~used], again.class_residuals(X[~used]), 1e-10)


def test_points_outside_the_subspaces_count_in_the_choice():
    X, y = three_classes()
    weights = np.random.default_rng(5).integers(0, 4, 60).astype(float)
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
    used = spans(model, X, y)
    few = fit(X[used], y[used], sigmas=sigmas, alphas=alphas, sample_weight=weights[used])
    assert not np.allclose(few.loo_scores_, expected)  # the others make a difference


def test_the_random_draw():
    X, y = three_classes()
    options = {"subspace_size": 8, "alpha": 0.1}
    draws = [fit(X, y, random_state=seed, **options) for seed in (0, 1)]
    assert not np.array_equal(draws[0].support_, draws[1].support_)
    # smaller classes are used whole
    whole, part = fit(X, y, alpha=0.1), fit(X, y, alpha=0.1, subspace_size=15, random_state=0)
    np.testing.assert_array_equal(part.class_residuals(X)[:, 2], whole.class_residuals(X)[:, 2])
    large = fit(X, y, alpha=0.1, subspace_size=1000)
    np.testing.assert_array_equal(large.class_residuals(X), whole.class_residuals(X))
    np.testing.assert_array_equal(large.loo_residuals_, whole.loo_residuals_)


@pytest.mark.parametrize("scale", ["absolute", "relative"])
@pytest.mark.parametrize("given_weights", [False, True])
@pytest.mark.parametrize("class_weight", ["balanced", {"ash": 3.0, "oak": 0.5}], ids=str)
def test_class_weights_are_weights_of_points(class_weight, given_weights, scale):
    X, y = three_classes()
    w = np.random.default_rng(0).integers(1, 4, size=60).astype(float)
    w = w if given_weights else np.ones(60)
    if class_weight == "balanced":  # all classes have the same total weight
        factors = w.sum() / 3 / np.array([w[y == label].sum() for label in y])
    else:
        factors = compute_sample_weight(class_weight, y)
    given = w if given_weights else None
    options = {"class_weight": class_weight, "alpha_scale": scale, "sample_weight": given}
    by_class = fit(X, y, **options)
    by_point = fit(X, y, sample_weight=w * factors, alpha_scale=scale)
    close(by_class.class_residuals(X), by_point.class_residuals(X), 1e-9)
    close(by_class.loo_scores_, by_point.loo_scores_)
    assert by_class.alpha_ == pytest.approx(by_point.alpha_, rel=1e-12)


def test_residuals_of_an_indefinite_kernel():
    """They may be negative; only their differences count, also in leave-one-out."""
    X, y = three_classes(30, seed=4)
    new = X + 0.1 * np.random.default_rng(0).standard_normal(X.shape)
    kernel = Sigmoid(gamma=0.3, coef0=-0.5).fit(X)
    model = fit(X, y, kernel=kernel, alpha=0.1)
    ours = model.class_residuals(new)
    theirs = fit(kernel(X), y, kernel="precomputed", alpha=0.1).class_residuals(kernel(new, X))
    assert (kernel.diag(new) - ours.max(axis=1) < 0).any()  # clipped at 0 they would be equal
    assert ours.min() >= 0
    least, other = (each.min(axis=1, keepdims=True) for each in (ours, theirs))
    close(ours - least, theirs - other, 1e-9)

    left, placed = model.loo_residuals_, model.class_residuals(X)
    assert left.min() >= 0
    clipped = 0
    for number, label in enumerate(model.classes_):  # a point is new to the other classes
        own = y == label
        a, b = (c for c in range(3) if c != number)
        close(left[own, a] - left[own, b], placed[own, a] - placed[own, b], 1e-9)
        low = kernel.diag(X[own])[:, None] - placed[own] < 0
        clipped += int(np.sum(low[:, a] & low[:, b]))
    assert clipped
