"""Kernel principal nested spheres: on the whole Gram matrix, and by Nyström anchors."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from laws_sphere import rotation, unit
from orthodrome import KernelPNS
from orthodrome.eigen import Nystroem
from orthodrome.kernels import Exponential, Gaussian, Linear, Normalized, Polynomial
from orthodrome.sphere import nested_spheres

pytestmark = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")

KERNEL = Gaussian(sigma=2.0)
KERNELS = {
    "gaussian": KERNEL,
    "exponential": Exponential(),
    "normalised polynomial": Normalized(Polynomial(degree=3)),
    "callable": lambda X, Y: 4 * np.exp(-((X[:, None] - Y[None]) ** 2).sum(-1)),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=60)
N = 15


def cloud(n=N, seed=0):
    X, _ = make_blobs(n, centers=3, n_features=3, cluster_std=0.8, random_state=seed)
    return X / 4


def on_sphere(n=60, seed=0, dtype=np.float64):
    points = np.random.default_rng(seed).standard_normal((n, 5)) * [0.6, 0.4, 0.3, 0.2, 0.1]
    points[:, 0] += 1
    return (unit(points) @ rotation(5)).astype(dtype)


@cache
def fitted(n_components=2, kernel="gaussian"):
    return KernelPNS(n_components, KERNELS[kernel]).fit(cloud())


# ------------------------------------------------------------------ what it is


def test_with_the_linear_kernel_it_is_ordinary_pns():
    points = on_sphere()
    model = KernelPNS(kernel=Linear()).fit(points)
    chain = nested_spheres(points)
    np.testing.assert_allclose(model.radii_, chain.radii, atol=1e-6)
    scores = chain.scores(points)
    np.testing.assert_allclose(np.abs(model.residuals_), np.abs(scores), atol=1e-5)
    variances = np.mean(scores**2, axis=0)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, variances / variances.sum(), atol=1e-6
    )


@every_kernel
def test_coordinates_are_isometric_and_axes_orthonormal(kernel):
    model = fitted(None, kernel)
    K = model.kernel_(cloud())
    found = model.sphere_coordinates_ @ model.sphere_coordinates_.T
    np.testing.assert_allclose(found, K / K[0, 0], atol=1e-6)
    n_modes = model.sphere_coordinates_.shape[1] - 1
    np.testing.assert_allclose(model.axes_ @ model.axes_.T, np.eye(n_modes - 1), atol=1e-8)
    assert model.residuals_.shape == (N, n_modes)
    np.testing.assert_allclose(model.explained_variance_ratio_.sum(), 1)


def test_outliers_do_not_turn_a_robust_chain():
    rng = np.random.default_rng(0)
    around, away = rng.uniform(-np.pi, np.pi, 150), 0.8 + 0.02 * rng.standard_normal(150)
    X = np.column_stack(
        [np.sin(away) * np.cos(around), np.sin(away) * np.sin(around), np.cos(away)]
    )
    X[:25] = unit(rng.standard_normal((25, 3)))
    radii = [KernelPNS(kernel="linear", sphere="small", p=p).fit(X).radii_[0] for p in (1.0, 2.0)]
    assert abs(radii[0] - 0.8) < 0.03
    assert abs(radii[1] - 0.8) > 0.05


# ------------------------------------------------------------------ maps


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_the_embedding_is_that_of_section_5(n_components):
    """Project on S^D, take Log at the mean, then principal directions of the tangent vectors."""
    model = fitted(n_components)
    chain = model.nested_spheres_
    below = chain.projected(model.sphere_coordinates_, n_components)
    mean = chain.projected(chain.mean[None], n_components)[0]
    angles = np.arccos(np.clip(below @ mean, -1, 1))
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), angles, atol=1e-7)
    covariance = np.cov(model.embedding_.T, bias=True).reshape(n_components, n_components)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9)
    assert np.all(np.diff(np.diag(covariance)) <= 1e-9)


def test_inverse_transform_goes_back_to_the_subsphere():
    model, whole = fitted(3), fitted(None)
    back, chain = model.inverse_transform(model.embedding_), model.nested_spheres_
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1)
    np.testing.assert_allclose(
        chain.projected(back, 3), chain.projected(model.sphere_coordinates_, 3), atol=1e-9
    )
    back = whole.inverse_transform(whole.embedding_)
    np.testing.assert_allclose(back, whole.sphere_coordinates_, atol=1e-8)
    with pytest.raises(ValueError, match="needs 3 coordinates per sample"):
        model.inverse_transform(np.ones((2, 2)))


def test_new_points_have_unit_length():
    X, new, model = cloud(), cloud(10, seed=5) + 0.3, fitted()
    points = model.sphere_coordinates(new)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    # the direction of the projection on the span, written plainly
    K, k = KERNEL(X), KERNEL(new, X)
    coefficients = k @ np.linalg.pinv(K, rcond=1e-12)
    cosines = coefficients @ K / np.sqrt(np.einsum("ij,ij->i", coefficients, k))[:, None]
    np.testing.assert_allclose(points @ model.sphere_coordinates_.T, cosines, atol=1e-5)
    with pytest.raises(ValueError, match="Row 1 of X has no similarity to any training point"):
        model.transform([X[0], [1e4, 0, 0]])


# ------------------------------------------------------------------ degenerate and wrong


def test_what_does_not_fit_is_refused_before_any_work():
    X = np.random.default_rng(0).standard_normal((600, 3))
    message = r"factors the Gram matrix of 600 points.* 1 MiB.*"
    with pytest.raises(ValueError, match=message + "n_anchors"):
        KernelPNS(memory_budget="1MiB").fit(X)
    with pytest.raises(ValueError, match=message + "fewer points"):
        KernelPNS(solver="dense", memory_budget="1MiB").fit(X)
    with pytest.raises(ValueError, match=r"makes 512 features.*n_anchors"):
        KernelPNS(solver="nystroem", memory_budget="1MiB").fit(X)


def test_a_row_of_weight_zero_needs_some_similarity():
    """It must have a place on the sphere of the others."""
    X, weights = np.vstack([cloud(10), [[1e4, 0, 0]]]), np.r_[np.ones(10), 0]
    with pytest.raises(ValueError, match="Row 10 of X has no similarity"):
        KernelPNS(2, KERNEL).fit(X, sample_weight=weights)


def test_searches_are_counted():
    X = cloud(12)
    model = KernelPNS(2, KERNEL, p=1.0).fit(X)
    assert model.converged_
    assert model.n_iter_ == model.nested_spheres_.n_iter > 0
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        hasty = KernelPNS(2, KERNEL, p=1.0, max_iter=1).fit(X)
    assert not hasty.converged_
    assert [found.filename for found in caught if "converge" in str(found.message)] == [__file__]


# ------------------------------------------------------------------ Nyström anchors


def fit(X, weights=None, n_components=3, **options):
    given = {"kernel": KERNEL, "solver": "nystroem", "random_state": 0}
    return KernelPNS(n_components, **(given | options)).fit(X, sample_weight=weights)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("sphere", ["great", "small"])
@pytest.mark.parametrize("kernel", [Linear(), Normalized(Polynomial(degree=2))], ids=repr)
def test_as_many_anchors_as_the_rank_give_the_exact_method(kernel, sphere, weights):
    """Coordinates agree; the rest does to the tolerance of the search for small spheres."""
    X, new = on_sphere(), on_sphere(25, seed=1)
    options = {"kernel": kernel, "sphere": sphere}
    ours = fit(X, weights, n_anchors=30, **options)
    exact = fit(X, weights, solver="dense", **options)
    assert ours.n_anchors_ == len(ours.X_fit_) == ours.sphere_coordinates_.shape[1] < 25
    np.testing.assert_array_equal(ours.X_fit_, X[ours.anchor_indices_])
    for data in (X, new):
        points, expected = ours.sphere_coordinates(data), exact.sphere_coordinates(data)
        np.testing.assert_allclose(np.abs(points), np.abs(expected), atol=1e-8)
        np.testing.assert_allclose(points @ points.T, expected @ expected.T, atol=1e-8)
    tol = 1e-8 if sphere == "great" else 1e-5
    for name in ("radii_", "embedding_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(exact, name), atol=tol)
    np.testing.assert_allclose(ours.transform(new), exact.transform(new), atol=tol)
    assert exact.n_anchors_ is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_anchors_are_nested_spheres_of_unit_features(dtype):
    X = on_sphere(dtype=dtype)
    ours = fit(X, n_anchors=12, sphere="great")
    k, L = ours.kernel_, ours.X_fit_.astype(np.float64)
    F = k(X.astype(np.float64), L) @ np.linalg.inv(np.linalg.cholesky(k(L))).T
    assert np.linalg.norm(F, axis=1).min() < 1 - 1e-4
    found, expected = ours.sphere_coordinates_, unit(F)
    tol = 1e-8 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=tol)
    scores = nested_spheres(expected, sphere="great").scores(expected)
    np.testing.assert_allclose(np.abs(ours.residuals_[:, :3]), np.abs(scores[:, :3]), atol=10 * tol)
    assert ours.embedding_.dtype == ours.transform(X).dtype == dtype
    np.testing.assert_allclose(ours.transform(X), ours.embedding_, atol=tol)


def test_a_point_orthogonal_to_all_anchors_is_named_by_its_row():
    X = np.concatenate([[[300.0, 0, 0, 0, 0]], on_sphere()])
    options = {"solver": Nystroem(anchors=on_sphere()[::3]), "sphere": "great"}
    with pytest.raises(ValueError, match="Row 0 of X is orthogonal to all anchors"):
        fit(X, **options)
    with pytest.raises(ValueError, match="Row 1 of X has no similarity"):
        fit(X[1:], **options).transform(X[[3, 0]])
