"""Kernel PGA: the paper's eigenproblem, a twin in explicit coordinates, and the geometry."""

import re

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from laws_decomposition import (
    SOLVERS,
    assert_same,
    every_solver,
    held_out,
    log_coefficients,
    training,
)
from orthodrome import KernelPGA
from orthodrome.eigen import Krylov, leading
from orthodrome.gram import DenseGram, Tangent, Weighted
from orthodrome.kernels import Exponential, Gaussian, Laplacian
from orthodrome.sphere import karcher_mean

WEIGHTS = np.random.default_rng(51).integers(0, 4, size=120)
weighted_or_not = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])


def probabilities(weights, n=120):
    return np.full(n, 1 / n) if weights is None else weights / weights.sum()


def paper_spectra(K, W, p):
    """Return the eigenvalues of (13) and of (14), descending."""
    _, B = log_coefficients(K, W, p)
    E = sum(weight * np.outer(beta, beta) for weight, beta in zip(p, B, strict=True))  # (7)
    G = K @ E @ K  # (12)
    yield scipy.linalg.eigh(G, K, eigvals_only=True)[::-1]  # (13)
    yield np.sort(np.linalg.eigvals(E @ K).real)[::-1]  # (14)


@pytest.mark.parametrize("kernel", [Gaussian(sigma=1.0), Exponential(), Laplacian()])
@weighted_or_not
def test_eigenvalues_are_those_of_the_paper(weights, kernel):
    X = training()
    K = kernel.fit(X, sample_weight=weights)(X)
    expected = list(paper_spectra(K, np.eye(len(X)), probabilities(weights)))
    for solver in SOLVERS.values():
        pga = KernelPGA(30, kernel=kernel, **solver).fit(X, sample_weight=weights)
        for values in expected:
            assert_same(pga.eigenvalues_, values[:30], 1e-10)


@pytest.mark.parametrize(("m", "n"), [(9, 20), (40, 15)])
@every_solver
def test_eigenvalues_of_combinations_are_those_of_the_paper(solver, m, n):
    """M points that are combinations of N others, with weights."""
    rng = np.random.default_rng(52)
    X = training(n=n)
    K = Exponential().fit(X)(X)
    W = rng.random((m, n)) ** 4
    W /= np.sqrt(np.diag(W @ K @ W.T))[:, None]
    p = rng.dirichlet(np.ones(m))
    points = DenseGram(W @ K @ W.T)
    mean = karcher_mean(points, p, tol=1e-13)
    xi, _ = log_coefficients(K, W, p)
    assert_same(mean.cosines, W @ K @ xi, 1e-12)
    k = min(m, n) - 1
    found = leading(Weighted(Tangent(points, mean.point), np.sqrt(p)), k, **solver)
    for expected in paper_spectra(K, W, p):
        assert_same(found.values, expected[:k], 1e-10)


@weighted_or_not
@every_solver
def test_sphere_coordinates_and_variances(solver, weights):
    """Unit vectors; with all components they are the points, and the variances add up."""
    X, options = training(), {"kernel": Gaussian(sigma=1.5), **solver}
    few = KernelPGA(3, **options).fit(X, sample_weight=weights)
    lengths = np.linalg.norm(few.embedding_, axis=1, keepdims=True)
    expected = np.hstack([np.cos(lengths), few.embedding_ * np.sin(lengths) / lengths])
    assert_same(few.sphere_coordinates_, expected, 1e-14)
    np.testing.assert_allclose(np.linalg.norm(few.sphere_coordinates_, axis=1), 1.0)
    explained = few.eigenvalues_ / few.geodesic_variance_
    assert_same(few.explained_variance_ratio_, explained, 1e-10)
    assert few.score(X, sample_weight=weights) == pytest.approx(explained.sum(), rel=1e-10)
    whole = KernelPGA(**options).fit(X, sample_weight=weights)
    counted = slice(None) if weights is None else weights > 0  # others may lie outside the span
    Y = whole.sphere_coordinates_[counted]
    np.testing.assert_allclose(Y @ Y.T, whole.kernel_(X[counted]), atol=1e-8)
    np.testing.assert_allclose(Y[:, 0], whole.mean_cosines_[counted], atol=1e-8)
    assert whole.eigenvalues_.sum() == pytest.approx(whole.geodesic_variance_, rel=1e-10)
    assert whole.explained_variance_ratio_.sum() == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize(
    ("options", "sources"),
    [
        ({"solver": "krylov", "tol": 0.0, "max_iter": 1}, ["KernelPGA", "KernelPGA (krylov)"]),
        ({"solver": "dense", "max_iter": 1}, ["KernelPGA"]),
        ({"solver": Krylov(1e-15, max_iter=1, block_size=3)}, ["KernelPGA (krylov)"]),
    ],
    ids=["both", "mean", "solver"],
)
def test_not_converged_if_the_mean_or_the_solver_is_not(options, sources):
    pga = KernelPGA(3, random_state=0, **options)
    with pytest.warns(ConvergenceWarning) as caught:
        pga.fit(training(n=700))
    assert not pga.converged_
    messages = [str(warning.message) for warning in caught]
    assert [message.split(":")[0] for message in messages] == sources
    assert {warning.filename for warning in caught} == {__file__}
    assert np.all(np.isfinite(pga.transform(held_out())))
    for message in messages:
        assert re.search(r"\((largest relative residual|gradient norm) \d\.\de[+-]\d+", message)
    if sources[0] == "KernelPGA":
        assert pga.mean_n_iter_ == 1
        # tol belongs to the eigensolver, and does not help the mean
        assert messages[0].endswith("after 1 steps). Raise max_iter.")


@pytest.mark.parametrize("weights", [None, np.arange(700) % 4], ids=["equal", "weighted"])
def test_residuals_are_those_of_the_variances(weights):
    X, solver = training(n=700), Krylov(1e-2, block_size=3)
    pga = KernelPGA(3, solver=solver, random_state=0).fit(X, sample_weight=weights)
    tangents = Tangent(DenseGram(pga.kernel_(X, X)), pga.mean_, pga.mean_cosines_).toarray()
    roots = np.sqrt(probabilities(weights, 700))
    covariance = roots[:, None] * tangents * roots
    left = covariance @ pga.eigenvectors_ - pga.eigenvectors_ * pga.eigenvalues_
    assert pga.residuals_.max() > 1e-8
    np.testing.assert_allclose(np.linalg.norm(left, axis=0), pga.residuals_, rtol=1e-4)
