"""Kernel PCA and kernel PGA on Nyström features."""

import pickle
import sys
import threading

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from laws_decomposition import (
    assert_same,
    every_estimator,
    held_out,
    log_coefficients,
    suited,
    training,
    with_zeros,
)
from orthodrome import GeodesicMixture, KernelPCA, KernelPGA, load, save
from orthodrome.denoising.cleaning import clean
from orthodrome.eigen import Krylov, Nystroem, choose_solver, leading
from orthodrome.gram import DenseGram
from orthodrome.kernels import Exponential, Gaussian, Polynomial, VeroneseWhitney
from orthodrome.metrics import clustering_error

K = 4
N = 300
every_sphere = pytest.mark.parametrize("sphere", ["unit", "angles"])
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])
WEIGHTS = np.random.default_rng(33).integers(0, 4, size=120)


def data(n=120, dtype=np.float64):
    """Of one sign, so that the directions of all rows lie in a hemisphere."""
    return np.abs(training(n, dtype=dtype)), np.abs(held_out(dtype=dtype))


def fitted(Estimator, X, kernel="gaussian", weights=None, n_components=K, **arguments):
    arguments = {"solver": "nystroem", "random_state": 0, **arguments}
    kernel = kernel if kernel == "precomputed" else suited(kernel, Estimator)
    model = Estimator(n_components, kernel=kernel, **arguments)
    return model.fit(X, sample_weight=weights)


def check_same(one, other, new, tol=1e-8):
    assert_same(one.eigenvalues_, other.eigenvalues_, tol)
    assert_same(one.explained_variance_ratio_, other.explained_variance_ratio_, tol)
    assert_same(one.embedding_, other.embedding_, tol)
    assert_same(one.eigenvectors_, other.eigenvectors_, tol)
    assert_same(one.transform(new), other.transform(new), tol)
    assert one.score(new) == pytest.approx(other.score(new), rel=10 * tol)
    if isinstance(one, KernelPGA):
        assert_same(one.mean_cosines_, other.mean_cosines_, tol)
        assert one.geodesic_variance_ == pytest.approx(other.geodesic_variance_, rel=tol)


# ------------------------------------------------------------------ beside the exact method


@pytest.mark.parametrize("kernel", ["linear", Polynomial(degree=2)], ids=["linear", "polynomial"])
@pytest.mark.parametrize("anchors", ["rpcholesky", "uniform", "k-means++"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@every_sphere
@every_estimator
def test_with_as_many_anchors_as_the_rank_it_is_the_exact_method(
    Estimator, sphere, weights, anchors, kernel
):
    X, new = data()
    solver = Nystroem(n_anchors=60, anchors=anchors, sphere=sphere)
    ours = fitted(Estimator, X, kernel, weights, solver=solver)
    exact = fitted(Estimator, X, kernel, weights, solver="dense")
    assert ours.solver_ == "nystroem"
    assert ours.n_anchors_ < 25
    check_same(ours, exact, new)
    Z = exact.transform(new)
    assert_same(ours.inverse_transform(Z), exact.inverse_transform(Z))


@pytest.mark.parametrize("kernel", [Gaussian(), Exponential()])
@every_estimator
def test_with_all_rows_as_anchors_the_training_data_are_exact(Estimator, kernel):
    X, new = data()
    ours, exact = (fitted(Estimator, X, kernel, solver=s) for s in ("nystroem", "dense"))
    assert_same(ours.eigenvalues_, exact.eigenvalues_)
    assert_same(ours.embedding_, exact.embedding_)
    assert_same(ours.transform(X), exact.transform(X))
    if Estimator is KernelPCA:
        check_same(ours, exact, new)
    angles = fitted(Estimator, X, kernel, solver=Nystroem(sphere="angles"))
    check_same(angles, exact, new)  # no point is projected on the mean or a component twice


def _projected_logs(G, p):
    """Variances of the projections on the span of Log maps at the best mean within it.

    With steps of length 1 of gradient descent, over coefficients; G is the Gram matrix of the
    projections.
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
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_kernel_pga_by_the_dense_formula(weights, sphere):
    """With few anchors: the law of the Gram matrix that the features have."""
    X, _ = data()
    ours = fitted(
        KernelPGA,
        X,
        weights=weights,
        solver=Nystroem(n_anchors=15, sphere=sphere),
        n_components=3,
    )
    k = ours.kernel_
    S = ours.anchor_indices_
    G = k(X, X[S]) @ np.linalg.inv(k(X[S])) @ k(X[S], X)
    lengths = np.sqrt(G.diagonal())
    p = np.full(120, 1 / 120) if weights is None else weights / weights.sum()
    if sphere == "unit":
        unit = G / np.outer(lengths, lengths)
        _, B = log_coefficients(unit, np.eye(120), p)
        T = B @ unit @ B.T
        root = np.sqrt(p)
        values = np.linalg.eigvalsh(root[:, None] * T * root)[::-1][:3]
        assert_same(ours.eigenvalues_, values, 1e-7)
    else:
        values = _projected_logs(G, p)
        assert_same(ours.eigenvalues_, values[:3], 1e-7)
    theta = np.arccos(ours.mean_cosines_)
    assert ours.geodesic_variance_ == pytest.approx(p @ theta**2, rel=1e-9)
    assert_same(ours.mean_cosines_, k(X, X[S]) @ ours.mean_)  # of the points themselves
    assert ours.mean_ @ k(X[S]) @ ours.mean_ == pytest.approx(1.0, rel=1e-9)


def test_kernel_pca_by_the_dense_formula():
    """With few anchors: the centred Gram matrix of the features; ratios by the true trace."""
    X, new = data()
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
    exact = H @ k(X) @ H
    residuals = np.linalg.norm(exact @ vectors - vectors * values, axis=0)
    assert np.all(residuals <= ours.residuals_)
    left_out = (1 - G.diagonal()).sum()
    assert_same(ours.residuals_, np.full(K, left_out))
    assert ours.history_[0]["trace_error"] == pytest.approx(left_out / 120)


@every_sphere
@every_estimator
def test_more_anchors_come_nearer(Estimator, sphere):
    X = training(N)
    exact = fitted(Estimator, X, solver="dense")
    errors = []
    for count in (10, 40, 160):
        ours = fitted(Estimator, X, solver=Nystroem(n_anchors=count, sphere=sphere))
        errors.append(np.abs(ours.eigenvalues_ / exact.eigenvalues_ - 1).max())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_angles_of_the_points_are_nearer_than_unit_features():
    """Where the anchors hold only a part of the points; that is why there is a choice."""
    X = training(N)
    kernel = Gaussian(sigma=2.0)
    exact = fitted(KernelPGA, X, kernel, solver="dense").eigenvalues_
    unit, angles = (
        fitted(KernelPGA, X, kernel, solver=Nystroem(n_anchors=80, sphere=sphere)).eigenvalues_
        for sphere in ("unit", "angles")
    )
    assert np.abs(angles / exact - 1).max() < 0.5 * np.abs(unit / exact - 1).max()


# ------------------------------------------------------------------ storage, precision, weights


@every_storage
@every_sphere
@every_estimator
def test_storage_does_not_matter(Estimator, sphere, storage):
    X, new = training(N), held_out()
    solver = Nystroem(n_anchors=40, sphere=sphere)
    held = fitted(Estimator, X, solver=solver)
    check_same(fitted(Estimator, X, solver=solver, storage=storage), held, new, 1e-9)
    check_same(fitted(Estimator, X, solver=solver, memory_budget="1KiB"), held, new, 1e-9)


@every_storage
@every_sphere
@every_estimator
def test_float32(Estimator, sphere, storage):
    X, new = training(N), held_out()
    rows = fitted(Estimator, X, solver=Nystroem(n_anchors=40)).anchor_indices_
    solver = Nystroem(anchors=rows, sphere=sphere)
    double = fitted(Estimator, X, Gaussian(sigma=4.0), solver=solver)
    single = fitted(
        Estimator, X.astype(np.float32), Gaussian(sigma=4.0), solver=solver, storage=storage
    )
    assert single.embedding_.dtype == single.eigenvalues_.dtype == np.float32
    assert single.transform(new.astype(np.float32)).dtype == np.float32
    assert_same(single.eigenvalues_, double.eigenvalues_, 1e-3)
    assert_same(single.embedding_, double.embedding_, 1e-2)
    assert_same(single.transform(X.astype(np.float32)), single.embedding_, 1e-3)


@every_sphere
@every_estimator
def test_integer_weights_are_repeated_rows(Estimator, sphere):
    """Also where the anchors are drawn: fifteen of them."""
    X, new = data()
    solver = Nystroem(n_anchors=15, sphere=sphere)
    weighted = fitted(Estimator, X, weights=WEIGHTS, solver=solver)
    repeated = fitted(Estimator, np.repeat(X, WEIGHTS, axis=0), solver=solver)
    assert_same(weighted.X_fit_, repeated.X_fit_)
    assert_same(weighted.eigenvalues_, repeated.eigenvalues_)
    assert_same(weighted.transform(new), repeated.transform(new))
    assert_same(np.repeat(weighted.embedding_, WEIGHTS, axis=0), repeated.embedding_)


@every_estimator
def test_a_fraction_all_and_more_than_the_rank(Estimator):
    X, _ = data()
    fraction = fitted(Estimator, X, n_components=0.8)
    exact = fitted(Estimator, X, n_components=0.8, solver="dense")
    assert fraction.n_components_ == exact.n_components_
    rank = fitted(Estimator, X, "linear", n_components=None).n_components_
    assert rank == fitted(Estimator, X, "linear", n_components=None, solver="dense").n_components_
    wide = fitted(Estimator, X, "linear", n_components=9)
    assert wide.embedding_.shape == (120, 9)
    assert not wide.embedding_[:, rank:].any()
    assert not wide.transform(X)[:, rank:].any()
    few = fitted(Estimator, X, n_components=0.999, n_anchors=3)  # out of reach: all there are
    assert few.n_components_ <= 3


# ------------------------------------------------------------------ what is kept


@every_sphere
@every_estimator
def test_only_anchors_are_kept_of_the_data(Estimator, sphere):
    X = training(N)
    model = fitted(Estimator, X, solver=Nystroem(n_anchors=20, sphere=sphere))
    np.testing.assert_array_equal(model.X_fit_, X[model.anchor_indices_])
    assert model.dual_coef_.shape == (20, K)
    assert model.mean_.shape == (20,)
    X[:] = np.nan  # the estimator has copies
    assert np.all(np.isfinite(model.transform(held_out())))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(held_out()), model.transform(held_out()))
    for name, value in vars(model).items():  # rows belong to the results, not to the map
        if np.shape(value)[:1] == (N,):
            assert name in ("embedding_", "eigenvectors_", "mean_cosines_")


@pytest.mark.parametrize("kernel", [Gaussian(sigma=4.0), Polynomial(degree=2)])
@every_estimator
def test_inverse_transform(Estimator, kernel):
    """By pre-images from anchors, or by the regression of all rows that the fit made."""
    X = np.abs(training(N))
    model = fitted(Estimator, X, kernel, n_components=10, n_anchors=60)
    exact = fitted(Estimator, X, kernel, n_components=10, solver="dense")
    ours, theirs = (m.inverse_transform(m.transform(X[:40])) for m in (model, exact))
    error, best = (np.linalg.norm(back - X[:40]) for back in (ours, theirs))
    assert ours.shape == (40, 5)
    assert error < 1.2 * best + 0.05 * np.linalg.norm(X[:40] - X.mean(axis=0))


@every_estimator
def test_precomputed_sparse_and_shapes(Estimator):
    X, new = with_zeros(training()), with_zeros(held_out())
    kernel = Gaussian(sigma=3.0).fit(X)
    plain = fitted(Estimator, X, kernel, n_anchors=30)
    given = fitted(Estimator, kernel(X), "precomputed", n_anchors=30)
    assert given.X_fit_ is None
    assert_same(given.transform(kernel(new, X)), plain.transform(new), 1e-7)
    Z = given.transform(kernel(new, X))
    assert given.inverse_transform(Z, inputs=X).shape == new.shape
    sparse = fitted(Estimator, scipy.sparse.csr_array(X), kernel, n_anchors=30)
    assert scipy.sparse.issparse(sparse.X_fit_)
    assert_same(sparse.transform(scipy.sparse.csr_array(new)), plain.transform(new), 1e-7)
    assert sparse.inverse_transform(Z).shape == new.shape
    shapes = np.random.default_rng(0).gumbel(size=(80, 6, 2))
    model = fitted(Estimator, shapes, VeroneseWhitney(), n_anchors=30)
    assert model.inverse_transform(model.transform(shapes[:3])).shape == (3, 6, 2)


@every_estimator
def test_refitting_forgets_the_anchors(Estimator):
    X, new = data()
    model = fitted(Estimator, X, n_anchors=20)
    model.set_params(solver="dense").fit(X)
    fresh = fitted(Estimator, X, solver="dense")
    assert model.n_anchors_ is None
    np.testing.assert_array_equal(model.transform(new), fresh.transform(new))
    assert model.score(new) == fresh.score(new)
    model.set_params(solver="nystroem").fit(X)
    np.testing.assert_array_equal(
        model.transform(new), fitted(Estimator, X, n_anchors=20).transform(new)
    )


# ------------------------------------------------------------------ parameters


@every_estimator
def test_names_objects_and_clones(Estimator):
    X = training(N)
    by_name = fitted(Estimator, X, n_anchors=30)
    by_object = fitted(Estimator, X, solver=Nystroem(30, random_state=0), random_state=None)
    np.testing.assert_array_equal(by_name.embedding_, by_object.embedding_)
    filled = fitted(Estimator, X, solver=Nystroem(), n_anchors=30)
    np.testing.assert_array_equal(by_name.embedding_, filled.embedding_)
    copy = clone(by_object)
    np.testing.assert_array_equal(copy.fit(X).embedding_, by_object.embedding_)
    rows = fitted(Estimator, X, solver=Nystroem(anchors=[5, 7, 9]))
    assert sorted(rows.anchor_indices_) == [5, 7, 9]
    points = fitted(Estimator, X, solver=Nystroem(anchors=held_out(9)))
    assert points.anchor_indices_ is None
    assert points.n_anchors_ == 9


@every_estimator
def test_the_tolerance_chooses_the_number_and_says_if_it_cannot(Estimator):
    X = training(N)
    model = fitted(Estimator, X, tol=0.1)
    assert model.converged_
    assert model.history_[0]["trace_error"] <= 0.1
    fewer = model.n_anchors_
    assert fewer < fitted(Estimator, X, tol=0.01).n_anchors_
    with pytest.warns(ConvergenceWarning, match="stopped at n_anchors .*Raise n_anchors") as w:
        model = fitted(Estimator, X, tol=0.01, n_anchors=10)
    assert w[0].filename == __file__
    assert not model.converged_


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_anchors": 0}, "n_anchors of KernelP.A must be an integer >= 1; got 0"),
        ({"n_anchors": 2.5}, "n_anchors of KernelP.A must be an integer >= 1"),
        ({"storage": "memory", "memory_budget": "1KiB"}, "the features take"),
    ],
)
@every_estimator
def test_messages(Estimator, arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted(Estimator, training(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"anchors": "random"}, "anchors of the nystroem solver must be one of 'rpcholesky'"),
        ({"n_anchors": 0}, "n_anchors of the nystroem solver must be an integer >= 1"),
        ({"tol": -1.0}, "tol of the nystroem solver"),
        ({"sphere": "flat"}, "sphere of the nystroem solver must be one of 'unit', 'angles'"),
        ({"random_state": "x"}, "random_state of the nystroem solver"),
    ],
)
def test_messages_of_the_solver(arguments, message):
    with pytest.raises(ValueError, match=message):
        Nystroem(**arguments)


def test_a_new_point_beyond_the_span_has_no_direction():
    model = fitted(KernelPGA, training(), Gaussian(sigma=2.0), n_anchors=20)
    with pytest.raises(ValueError, match="Row 1 of X is orthogonal to all anchors"):
        model.transform(np.vstack([training()[:1], np.full((1, 5), 1e4)]))


def test_auto_takes_features_only_where_krylov_is_not_affordable(monkeypatch):
    assert choose_solver(200_000, 16).solver == "krylov"
    assert choose_solver(200_001, 16).solver == "nystroem"
    assert "anchors" in choose_solver(200_001, 16).reason
    assert choose_solver(10**7, 16, exact=True).solver == "krylov"
    module = sys.modules[choose_solver.__module__]
    monkeypatch.setattr(module, "_DENSE_ROWS", 100)
    monkeypatch.setattr(module, "_KRYLOV_ROWS", 200)
    X = training(N)
    for Estimator in (KernelPCA, KernelPGA):
        assert Estimator(2, random_state=0).fit(X).solver_ == "nystroem"
        assert Estimator(2, random_state=0).fit(X[:150]).solver_ == "krylov"
    assert leading(np.eye(250), 2, random_state=0).solver == "krylov"


# ------------------------------------------------------------------ where it is used


@pytest.mark.parametrize("kernel", [Gaussian(), Polynomial(degree=2)])
@every_sphere
@every_estimator
def test_model_files(Estimator, sphere, kernel, tmp_path):
    X, new = data()
    model = fitted(Estimator, X, kernel, solver=Nystroem(20, sphere=sphere))
    save(model, tmp_path / "model.orthodrome")
    again = load(tmp_path / "model.orthodrome")
    Z = model.transform(new)
    np.testing.assert_array_equal(again.transform(new), Z)
    np.testing.assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))
    assert again.score(new) == model.score(new)


def test_a_mixture_works_on_the_embedding():
    X = np.vstack([training(100) + shift for shift in (-8.0, 0.0, 8.0)])
    exact, ours = (
        GeodesicMixture(3, n_modes=3, solver=solver, random_state=0).fit(X)
        for solver in ("dense", Nystroem(n_anchors=80, random_state=0))
    )
    assert ours.pga_.solver_ == "nystroem"
    assert len(ours.pga_.X_fit_) <= 80
    assert clustering_error(exact.labels_, ours.labels_) == 0
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)


@pytest.mark.parametrize("solver", ["dense", Nystroem(n_anchors=25, random_state=0)])
def test_cleaning_starts_from_the_mean_of_the_model(solver):
    """The mean has other coefficients over anchors than one over their number."""
    X = training(N)
    model = fitted(KernelPCA, X, Gaussian(sigma=6.0), n_components=8, solver=solver)
    means = model.mean_ @ model.kernel_(model.X_fit_, X)
    assert_same(means, model.kernel_(X).mean(axis=0), 1e-2)
    cleaned = clean(model, X[:20], tol=1e-8).points
    assert_same(cleaned, model.inverse_transform(model.transform(X[:20])), 1e-3)


# ------------------------------------------------------------------ as an eigensolver


def test_as_a_solver_of_leading():
    X = training(200)
    K_full = Gaussian(sigma=3.0).fit(X)(X)
    found = leading(K_full, 5, solver=Nystroem(n_anchors=60, random_state=0))
    exact = leading(K_full, 5, solver=Krylov(tol=1e-12, random_state=0))
    measured = np.linalg.norm(K_full @ found.vectors - found.vectors * found.values, axis=0)
    assert np.all(measured <= found.residuals)
    assert np.all(found.values <= exact.values + 1e-10)
    assert_same(found.values, exact.values, 0.02)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(5), atol=1e-12)


def test_leading_beyond_the_rank_and_without_a_positive_diagonal():
    Y = np.random.default_rng(0).standard_normal((30, 2))
    found = leading(Y @ Y.T, 5, solver="nystroem")
    np.testing.assert_allclose(found.values[2:], 0.0)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(5), atol=1e-12)
    assert not leading(np.zeros((4, 4)), 2, solver="nystroem").values.any()
    with pytest.raises(ValueError, match=r"not positive definite .* without anchors"):
        leading(DenseGram(np.ones((4, 4)) - np.eye(4)), 2, solver="nystroem")
    late = np.zeros((40, 40))
    late[38, 39] = late[39, 38] = 1.0  # beyond the rows that are looked at first
    with pytest.raises(ValueError, match=r"not positive definite .* row 38 "):
        leading(DenseGram(late), 2, solver="nystroem")


def test_a_callable_kernel_is_evaluated_by_one_thread_at_a_time():
    X = np.random.default_rng(0).normal(size=(40, 3))
    kernel = Gaussian(sigma=2.0)
    callers = set()

    def called(A, B):
        callers.add(threading.get_ident())
        return kernel(A, B)

    solver = Nystroem(n_anchors=12, random_state=0)
    ours = KernelPGA(2, kernel=called, solver=solver).fit(X)
    callers.clear()
    found = ours.transform(X[:5])
    assert callers == {threading.get_ident()}
    twin = KernelPGA(2, kernel=kernel, solver=solver).fit(X).transform(X[:5])
    np.testing.assert_allclose(found, twin, atol=1e-8)


def test_a_tolerance_that_takes_no_anchor_is_refused():
    with pytest.raises(
        ValueError, match=r"tol of the nystroem solver must be below 1, or no anchor .*; got 1"
    ):
        Nystroem(tol=1.0)


def test_the_callback_is_told_of_the_anchors():
    A = np.random.default_rng(0).normal(size=(20, 5))
    told, solver = [], Nystroem(n_anchors=4, random_state=0)
    leading(DenseGram(A @ A.T), 2, solver=solver, callback=told.append)
    assert [entry["n_anchors"] for entry in told] == [4]
    assert told[0].keys() >= {"trace_error", "max_residual"}
