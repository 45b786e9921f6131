"""Kernel principal nested spheres of Nyström features."""

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse

from laws_sphere import rotation, unit
from orthodrome import KernelPNS, load, save
from orthodrome.coordinates import (
    anchor_coordinates,
    choose_anchors,
    isometric_coordinates,
    principal_coordinates,
)
from orthodrome.eigen import Krylov, Nystroem
from orthodrome.gram import DenseGram
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, VeroneseWhitney
from orthodrome.sphere import nested_spheres

pytestmark = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")

KERNEL = Gaussian(sigma=2.0)
WEIGHTS = np.random.default_rng(3).integers(0, 4, size=60)
LOW_RANK = {"linear": Linear(), "polynomial": Normalized(Polynomial(degree=2))}
every_kernel = pytest.mark.parametrize("kernel", LOW_RANK.values(), ids=LOW_RANK)


def on_sphere(n=60, seed=0, dtype=np.float64):
    points = np.random.default_rng(seed).standard_normal((n, 5)) * [0.6, 0.4, 0.3, 0.2, 0.1]
    points[:, 0] += 1
    return (unit(points) @ rotation(5)).astype(dtype)


def fit(X, weights=None, n_components=3, **options):
    given = {"kernel": KERNEL, "solver": "nystroem", "random_state": 0}
    return KernelPNS(n_components, **(given | options)).fit(X, sample_weight=weights)


# ------------------------------------------------------------------ beside the exact method


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("sphere", ["great", "small"])
@every_kernel
def test_with_as_many_anchors_as_the_rank_it_is_the_exact_method(kernel, sphere, weights):
    """The coordinates; what follows, to the tolerance of the search for small spheres."""
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
    np.testing.assert_allclose(ours.radii_, exact.radii_, atol=tol)
    np.testing.assert_allclose(ours.embedding_, exact.embedding_, atol=tol)
    np.testing.assert_allclose(ours.transform(new), exact.transform(new), atol=tol)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, exact.explained_variance_ratio_, atol=tol
    )
    assert exact.n_anchors_ is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_anchors_are_nested_spheres_of_unit_features(dtype):
    X = on_sphere(dtype=dtype)
    ours = fit(X, n_anchors=12, sphere="great")
    k, L = ours.kernel_, ours.X_fit_.astype(np.float64)
    wide = X.astype(np.float64)
    F = k(wide, L) @ np.linalg.inv(np.linalg.cholesky(k(L))).T
    assert np.linalg.norm(F, axis=1).min() < 1 - 1e-4
    expected = unit(F)
    tol = 1e-8 if dtype == np.float64 else 2e-3
    found = ours.sphere_coordinates_
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=tol)
    scores = nested_spheres(expected, sphere="great").scores(expected)
    np.testing.assert_allclose(np.abs(ours.residuals_[:, :3]), np.abs(scores[:, :3]), atol=10 * tol)
    assert ours.embedding_.dtype == ours.transform(X).dtype == dtype
    np.testing.assert_allclose(ours.transform(X), ours.embedding_, atol=tol)


def test_coordinates_fall_and_what_is_not_there_is_left_out():
    Y = unit(np.random.default_rng(0).standard_normal((30, 3)) + np.array([2, 0, 0]))
    kernel = Linear().fit(Y)
    features = anchor_coordinates(kernel, Y, choose_anchors(kernel, Y, 30), unit=True)
    found = principal_coordinates(features)
    moments = np.diagonal(found.points.T @ found.points)
    assert np.all(np.diff(moments) <= 0)
    exact = isometric_coordinates(DenseGram(Y @ Y.T))
    np.testing.assert_allclose(np.abs(found.points), np.abs(exact.points), atol=1e-10)
    flat = np.pad(Y[:, :1] * 0 + 1, [(0, 0), (0, 1)])
    kernel = Linear().fit(flat)
    one = anchor_coordinates(kernel, flat, choose_anchors(kernel, flat, 30), unit=True)
    assert principal_coordinates(one).points.shape == (30, 2)
    small = anchor_coordinates(kernel, Y[:, :2], choose_anchors(kernel, Y[:, :2], 3), unit=True)
    assert principal_coordinates(small).decoder.shape == (2, 2)


# ------------------------------------------------------------------ weights, order, input


def test_weights_are_repetition_and_order_does_not_matter():
    X, new = on_sphere(), on_sphere(25, seed=1)
    rows = np.repeat(np.arange(60), WEIGHTS)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    weighted, repeated = fit(X, WEIGHTS, n_anchors=12), fit(X[rows], n_anchors=12)
    np.testing.assert_array_equal(weighted.X_fit_, repeated.X_fit_)
    np.testing.assert_array_equal(repeated.embedding_, weighted.embedding_[rows])
    np.testing.assert_array_equal(repeated.transform(new), weighted.transform(new))


def test_given_matrices_sparse_rows_shapes_and_points_as_anchors():
    X, new = on_sphere(), on_sphere(25, seed=1)
    options = {"sphere": "great"}
    plain = fit(X, n_anchors=12, **options)
    sparse = fit(scipy.sparse.csr_array(X), n_anchors=12, **options)
    np.testing.assert_allclose(
        sparse.transform(scipy.sparse.csr_array(new)), plain.transform(new), atol=1e-6
    )
    given = fit(KERNEL(X), kernel="precomputed", n_anchors=12, **options)
    assert given.X_fit_ is None
    same = fit(X, solver=Nystroem(anchors=X[given.anchor_indices_]), **options)
    assert same.anchor_indices_ is None
    np.testing.assert_allclose(given.transform(KERNEL(new, X)), same.transform(new), atol=1e-6)
    shapes = np.random.default_rng(0).standard_normal((40, 6, 2))
    model = fit(shapes, kernel=VeroneseWhitney(), n_anchors=15, **options)
    np.testing.assert_allclose(model.transform(shapes), model.embedding_, atol=1e-8)


@pytest.mark.slow
def test_where_it_stands_in_auto_and_what_is_refused(monkeypatch):
    X = on_sphere()
    assert fit(X, solver="auto").n_anchors_ is None
    assert fit(X, solver="auto", n_anchors=10).n_anchors_ == 10
    assert fit(X, solver="dense", n_anchors=10).n_anchors_ is None
    for solver in ("krylov", "exact", Krylov(), None):
        with pytest.raises(ValueError, match="solver of KernelPNS must be"):
            fit(X, solver=solver)
    with pytest.raises(ValueError, match="n_anchors of KernelPNS"):
        fit(X, n_anchors=0)
    with pytest.raises(ValueError, match="random_state of KernelPNS"):
        fit(X, random_state="seed")
    rule = sys.modules["orthodrome.eigen.leading"]
    monkeypatch.setattr(rule, "_DENSE_ROWS", 10)
    monkeypatch.setattr(rule, "_KRYLOV_ROWS", 50)
    assert fit(X, solver="auto").n_anchors_ is not None
    assert fit(np.tile(X[:40], (2, 1)), solver="auto").n_anchors_ is None


def test_the_memory_budget():
    X = np.random.default_rng(0).standard_normal((600, 3))
    with pytest.raises(ValueError, match=r"factors the Gram matrix.*n_anchors"):
        fit(X, solver="dense", memory_budget="1MiB")
    with pytest.raises(ValueError, match=r"makes 512 features.*n_anchors"):
        fit(X, memory_budget="1MiB")
    model = fit(X, n_anchors=10, memory_budget="1MiB", sphere="great")
    assert model.sphere_coordinates_.shape == (600, 10)


def test_files(tmp_path):
    X, new = on_sphere(), on_sphere(25, seed=1)
    model = fit(X, n_anchors=12)
    expected = model.transform(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(new), expected)
    save(model, tmp_path / "model.orthodrome")
    np.testing.assert_array_equal(load(tmp_path / "model.orthodrome").transform(new), expected)
    points = model.inverse_transform(expected)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)


# ------------------------------------------------------------------ where it is hard


@pytest.mark.parametrize(
    "X",
    [
        np.full((1, 2), 3.0),
        np.ones((7, 2)),
        np.repeat([[0.0, 0.0], [1.0, 1.0]], [5, 3], axis=0),
        np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0]], [5, 3, 1], axis=0),
    ],
    ids=["one", "copies", "two", "three"],
)
def test_degenerate_data(X):
    ours, exact = (fit(X, 1 + np.arange(len(X)), solver=s) for s in ("nystroem", "dense"))
    np.testing.assert_allclose(ours.embedding_, exact.embedding_, atol=1e-7)
    assert ours.n_anchors_ == len(np.unique(X, axis=0))


def test_antipodes():
    circle = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    ours, exact = (fit(circle, kernel="linear", solver=s) for s in ("nystroem", "dense"))
    # each of the four directions between them is a mean
    np.testing.assert_allclose(
        np.sort(ours.residuals_**2, axis=0), np.sort(exact.residuals_**2, axis=0), atol=1e-7
    )


def test_a_point_that_no_anchor_shows_is_named_by_the_callers_number():
    X = np.concatenate([[[300.0, 0, 0, 0, 0]], on_sphere()])
    solver = Nystroem(anchors=on_sphere()[::3])
    with pytest.raises(ValueError, match="Row 0 of X is orthogonal to all anchors"):
        fit(X, solver=solver)
    with pytest.raises(ValueError, match="Row 1 of X has no similarity"):
        fit(X[1:], solver=solver).transform(X[[3, 0]])
