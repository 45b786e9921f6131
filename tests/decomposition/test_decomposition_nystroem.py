"""Kernel PCA and kernel PGA on Nyström features."""

import sys
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from laws_decomposition import (
    assert_same,
    every_estimator,
    held_out,
    log_coefficients,
    positive,
    suited,
    training,
)
from orthodrome import KernelPCA, KernelPGA
from orthodrome.eigen import Nystroem, choose_solver, leading
from orthodrome.kernels import Gaussian, Polynomial

K = 4
N = 300
every_sphere = pytest.mark.parametrize("sphere", ["unit", "angles"])
WEIGHTS = {"plain": None, "weighted": np.random.default_rng(33).integers(0, 4, size=120)}
weighted_or_not = pytest.mark.parametrize("weights", WEIGHTS)


def fitted(Estimator, X, kernel="gaussian", weights="plain", n_components=K, **arguments):
    arguments = {"solver": "nystroem", "random_state": 0, **arguments}
    kernel = kernel if kernel == "precomputed" else suited(kernel, Estimator)
    model = Estimator(n_components, kernel=kernel, **arguments)
    return model.fit(X, sample_weight=WEIGHTS[weights])


@cache
def exact(Estimator, kernel="gaussian", weights="plain", n_components=K):
    return fitted(Estimator, positive()[0], kernel, weights, n_components, solver="dense")


def check_same(one, other, new, tol=1e-8):
    for name in ("eigenvalues_", "explained_variance_ratio_", "embedding_", "eigenvectors_"):
        assert_same(getattr(one, name), getattr(other, name), tol)
    assert_same(one.transform(new), other.transform(new), tol)
    assert one.score(new) == pytest.approx(other.score(new), rel=10 * tol)
    if isinstance(one, KernelPGA):
        assert_same(one.mean_cosines_, other.mean_cosines_, tol)
        assert one.geodesic_variance_ == pytest.approx(other.geodesic_variance_, rel=tol)


@pytest.mark.parametrize("kernel", ["linear", Polynomial(degree=2)], ids=["linear", "polynomial"])
@weighted_or_not
@every_sphere
@every_estimator
def test_as_many_anchors_as_the_rank_give_the_exact_method(Estimator, sphere, weights, kernel):
    X, new = positive()
    expected = exact(Estimator, kernel, weights)
    Z = expected.transform(new)
    inputs = expected.inverse_transform(Z)
    for anchors in ("auto", "rpcholesky", "uniform", "k-means++"):
        solver = Nystroem(n_anchors=60, anchors=anchors, sphere=sphere)
        ours = fitted(Estimator, X, kernel, weights, solver=solver)
        assert ours.solver_ == "nystroem"
        assert ours.n_anchors_ < 25
        check_same(ours, expected, new)
        assert_same(ours.inverse_transform(Z), inputs)


def projected_logs(G, p):
    """Variances of Log maps at the best mean within the span, for projections of Gram matrix G.

    By gradient descent with steps of length 1, over coefficients.
    """
    xi = p / np.sqrt(p @ G @ p)
    for _ in range(500):
        cosines = G @ xi
        stretches = np.arccos(cosines) / np.sqrt(1 - cosines**2)
        step = p * stretches - (p * stretches) @ cosines * xi
        length = np.sqrt(max(step @ G @ step, 1e-300))
        if length < 1e-13:
            break
        xi = np.cos(length) * xi + np.sin(length) * step / length
    B = stretches[:, None] * (np.eye(len(p)) - np.outer(cosines, xi))
    root = np.sqrt(p)[:, None]
    return np.linalg.eigvalsh(root * (B @ G @ B.T) * root.T)[::-1]


@every_sphere
@weighted_or_not
def test_kernel_pga_by_the_dense_formula(weights, sphere):
    """Few anchors: the eigenproblem of the Gram matrix of the features."""
    X, _ = positive()
    solver = Nystroem(n_anchors=15, sphere=sphere)
    ours = fitted(KernelPGA, X, weights=weights, solver=solver, n_components=3)
    k, S = ours.kernel_, ours.anchor_indices_
    G = k(X, X[S]) @ np.linalg.inv(k(X[S])) @ k(X[S], X)
    p = np.ones(120) if weights == "plain" else WEIGHTS[weights]
    p = p / p.sum()
    if sphere == "unit":
        unit = G / np.sqrt(np.outer(G.diagonal(), G.diagonal()))
        _, B = log_coefficients(unit, np.eye(120), p)
        root = np.sqrt(p)
        values = np.linalg.eigvalsh(root[:, None] * (B @ unit @ B.T) * root)[::-1]
    else:
        values = projected_logs(G, p)
    assert_same(ours.eigenvalues_, values[:3], 1e-7)
    theta = np.arccos(ours.mean_cosines_)
    assert ours.geodesic_variance_ == pytest.approx(p @ theta**2, rel=1e-9)
    assert_same(ours.mean_cosines_, k(X, X[S]) @ ours.mean_)  # of the points themselves
    assert ours.mean_ @ k(X[S]) @ ours.mean_ == pytest.approx(1.0, rel=1e-9)


def test_kernel_pca_by_the_dense_formula():
    """Few anchors: the centred Gram matrix of the features; ratios use the true trace."""
    X, new = positive()
    ours = fitted(KernelPCA, X, n_anchors=15)
    k, S = ours.kernel_, ours.anchor_indices_
    inverse = np.linalg.inv(k(X[S]))
    G = k(X, X[S]) @ inverse @ k(X[S], X)
    H = np.eye(120) - 1 / 120
    values, vectors = np.linalg.eigh(H @ G @ H)
    values, vectors = values[::-1][:K], vectors[:, ::-1][:, :K]
    assert ours.n_anchors_ == 15
    assert_same(ours.eigenvalues_, values)
    assert_same(np.abs(ours.eigenvectors_), np.abs(vectors))
    assert_same(ours.explained_variance_ratio_, values / (120 - G.mean() * 120))
    assert_same(np.abs(ours.embedding_), np.abs(vectors * np.sqrt(values)))
    cross = k(new, X[S]) @ inverse @ k(X[S], X)
    centered = cross - cross.mean(axis=1, keepdims=True) - G.mean(axis=0) + G.mean()
    assert_same(np.abs(ours.transform(new)), np.abs(centered @ vectors / np.sqrt(values)))
    # what is left out bounds the residuals of the pairs
    residuals = np.linalg.norm(H @ k(X) @ H @ vectors - vectors * values, axis=0)
    assert np.all(residuals <= ours.residuals_)
    left_out = (1 - G.diagonal()).sum()
    assert_same(ours.residuals_, np.full(K, left_out))
    assert ours.history_[0]["trace_error"] == pytest.approx(left_out / 120)


@every_estimator
def test_numbers_of_components(Estimator):
    X, _ = positive()
    fraction = fitted(Estimator, X, n_components=0.8)
    assert fraction.n_components_ == exact(Estimator, n_components=0.8).n_components_
    rank = fitted(Estimator, X, "linear", n_components=None).n_components_
    assert rank == exact(Estimator, "linear", n_components=None).n_components_
    wide = fitted(Estimator, X, "linear", n_components=9)
    assert wide.embedding_.shape == (120, 9)
    assert not wide.embedding_[:, rank:].any()
    assert not wide.transform(X)[:, rank:].any()
    few = fitted(Estimator, X, n_components=0.999, n_anchors=3)  # out of reach: all there are
    assert few.n_components_ <= 3


@pytest.mark.parametrize("kernel", [Gaussian(), Polynomial(degree=2)])
@every_sphere
@every_estimator
def test_only_anchors_are_kept_of_the_data(Estimator, sphere, kernel):
    X, new = positive(N)
    model = fitted(Estimator, X, kernel, solver=Nystroem(n_anchors=20, sphere=sphere))
    count = model.n_anchors_
    np.testing.assert_array_equal(model.X_fit_, X[model.anchor_indices_])
    assert model.dual_coef_.shape == (count, K)
    assert model.mean_.shape == (count,)
    X[:] = np.nan  # the estimator has copies
    Z = model.transform(new)
    assert np.all(np.isfinite(Z))
    of_rows = {name for name, value in vars(model).items() if np.shape(value)[:1] == (N,)}
    assert of_rows <= {"embedding_", "eigenvectors_", "mean_cosines_"}


@every_estimator
def test_names_objects_and_clones(Estimator):
    X = training(N)
    by_name = fitted(Estimator, X, n_anchors=30).embedding_
    by_object = fitted(Estimator, X, solver=Nystroem(30, random_state=0), random_state=None)
    filled = fitted(Estimator, X, solver=Nystroem(), n_anchors=30)
    for other in (by_object, filled, clone(by_object).fit(X)):
        np.testing.assert_array_equal(by_name, other.embedding_)
    rows = fitted(Estimator, X, solver=Nystroem(anchors=[5, 7, 9]))
    assert sorted(rows.anchor_indices_) == [5, 7, 9]
    points = fitted(Estimator, X, solver=Nystroem(anchors=held_out(9)))
    assert points.anchor_indices_ is None
    assert points.n_anchors_ == 9


@every_estimator
def test_the_tolerance_chooses_the_number_of_anchors(Estimator):
    X = training(N)
    loose, tight = (fitted(Estimator, X, tol=tol) for tol in (0.1, 0.01))
    assert loose.converged_
    assert loose.history_[0]["trace_error"] <= 0.1
    assert loose.n_anchors_ < tight.n_anchors_
    with pytest.warns(ConvergenceWarning, match="stopped at n_anchors .*Raise n_anchors") as w:
        model = fitted(Estimator, X, tol=0.01, n_anchors=10)
    assert w[0].filename == __file__
    assert not model.converged_


def test_auto_takes_anchors_only_where_krylov_is_not_affordable(monkeypatch):
    assert choose_solver(200_000, 16).solver == "krylov"
    assert choose_solver(200_001, 16).solver == "nystroem"
    assert choose_solver(10**7, 16, exact=True).solver == "krylov"
    module = sys.modules[choose_solver.__module__]
    monkeypatch.setattr(module, "_DENSE_ROWS", 100)
    monkeypatch.setattr(module, "_KRYLOV_ROWS", 200)
    X = training(N)
    for Estimator in (KernelPCA, KernelPGA):
        assert Estimator(2, random_state=0).fit(X).solver_ == "nystroem"
        assert Estimator(2, random_state=0).fit(X[:150]).solver_ == "krylov"
    assert leading(np.eye(250), 2, random_state=0).solver == "krylov"
