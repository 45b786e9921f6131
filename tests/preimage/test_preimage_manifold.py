"""Pre-images of shapes and of matrices, in the form of the data."""

import sys

import numpy as np
import pytest

from laws_shapes import every_form, in_form, landmarks, matrices, moved, near
from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import (
    ComplexGaussian,
    Embedded,
    FullProcrustes,
    Gaussian,
    LogEuclidean,
    Normalized,
    RiemannianShape,
    VeroneseWhitney,
)
from orthodrome.preimage import geodesic_kernel, karcher_mean_preimage, preimage
from orthodrome.spaces import (
    as_complex,
    centroid_size,
    extrinsic_mean,
    log_euclidean_distance,
    log_euclidean_mean,
    preshape,
    procrustes_distance,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite"),
    pytest.mark.filterwarnings("ignore:The points take up:UserWarning"),
]

FIXED_POINT = [VeroneseWhitney(), FullProcrustes(), ComplexGaussian(), LogEuclidean()]
RIDGE = [RiemannianShape(), Normalized(VeroneseWhitney()), Normalized(LogEuclidean())]
every_kernel = pytest.mark.parametrize("kernel", [*FIXED_POINT, *RIDGE], ids=repr)


def of_matrices(kernel):
    return isinstance(getattr(kernel, "kernel", kernel), LogEuclidean)


def data_of(kernel, n=12):
    return matrices(n) if of_matrices(kernel) else near(n, spread=0.3)


def apart(kernel, found, expected):
    measure = log_euclidean_distance if of_matrices(kernel) else procrustes_distance
    return np.diagonal(measure(found, expected))


# ------------------------------------------------------------------ values


@every_kernel
@pytest.mark.parametrize("method", ["auto", "ridge"])
def test_preimage_of_a_point(kernel, method):
    X = data_of(kernel)
    before = X.copy()
    found = preimage(kernel, X, np.eye(12), method=method, alpha=1e-12)
    has_ridge = method == "ridge" or kernel in RIDGE
    assert found.method == ("ridge" if has_ridge else "fixed-point")
    assert found.converged
    assert apart(kernel, found.points, X).max() < 1e-6
    np.testing.assert_allclose(found.similarity, np.nan if has_ridge else 1.0, atol=1e-12)
    np.testing.assert_array_equal(X, before)
    assert not kernel.__sklearn_is_fitted__()
    narrow = X.astype(np.float32 if of_matrices(kernel) else np.complex64)
    single = preimage(kernel, narrow, np.eye(12), method=method).points
    assert single.dtype == narrow.dtype
    assert apart(kernel, single, X).max() < 1e-2


@pytest.mark.parametrize("kernel", FIXED_POINT, ids=repr)
@pytest.mark.parametrize("estimator", [KernelPCA(4), KernelPGA(4)], ids=repr)
def test_inverse_transform_equals_preimage(kernel, estimator):
    X = data_of(kernel, 20)
    model = estimator.set_params(kernel=kernel).fit(X)
    coordinates = model.embedding_[:6]
    beta = model._geometry.expansion(coordinates, model.dual_coef_, model.mean_)
    found = preimage(model.kernel_, X, beta).points
    back = model.inverse_transform(coordinates)
    assert apart(kernel, found, as_complex(back) if not of_matrices(kernel) else back).max() < 1e-8


@pytest.mark.parametrize("spread", [1e-4, 1e-7])
def test_preimages_among_near_shapes(spread):
    """Where distances are as small as that, so is the scale, and the same pictures come out."""
    X = near(12, spread=spread)
    found = preimage("veronese_whitney", X, np.eye(12), tol=1e-12)
    assert apart(VeroneseWhitney(), found.points, X).max() < 1e-4 * spread
    np.testing.assert_allclose(found.similarity, 1.0, atol=1e-4)
    assert found.n_iter < 100


def test_blocks_of_expansions_do_not_matter(monkeypatch):
    X = near(12, spread=0.3)
    beta = np.random.default_rng(0).dirichlet(np.ones(12), size=7)
    whole = preimage("veronese_whitney", X, beta, tol=1e-10).points
    for name in ("fixed_point", "manifold"):  # a function of the same name hides a module
        module = sys.modules[f"orthodrome.preimage.{name}"]
        monkeypatch.setattr(module, "BLOCK_ELEMENTS", 12)
    parts = preimage("veronese_whitney", X, beta, tol=1e-10).points
    # about its top the sum is flat, and its rounding hides steps of the root of that
    assert apart(VeroneseWhitney(), parts, whole).max() < 1e-7


# ------------------------------------------------------------------ shapes of many landmarks


def by_eigenvectors(kernel, X, beta, start, n_iter=500):
    """The slow twin: a whole eigendecomposition of Σ β k(u_n, u) u_n u_n* in every iteration."""
    u, point = preshape(X), preshape(start[None])
    for _ in range(n_iter):
        weights = beta * kernel(point, X)[0]
        vectors = np.linalg.eigh(np.einsum("n,ni,nj->ij", weights, u, u.conj()))[1]
        before, point = point, vectors[None, :, -1]
        if procrustes_distance(before, point)[0, 0] < 1e-10:
            break
    return point


@pytest.mark.parametrize("k", [4, 40])
@pytest.mark.parametrize("signs", ["positive", "mixed"])
def test_equals_whole_eigendecompositions(k, signs):
    X = near(25, k=k, spread=0.3)
    kernel = VeroneseWhitney().fit(X)
    if signs == "positive":
        beta = np.random.default_rng(0).dirichlet(np.ones(25), size=6)
    else:
        model = KernelPGA(3, kernel).fit(X)
        few = model.embedding_[:6]
        beta = model._geometry.expansion(few, model.dual_coef_, model.mean_)
        assert np.any(beta < -1e-3)
    found = preimage(kernel, X, beta, tol=1e-10)
    starts = X[np.argmax(beta @ kernel(X), axis=1)]
    for row, point in enumerate(found.points):
        twin = by_eigenvectors(kernel, X, beta[row], starts[row])
        assert procrustes_distance(point[None], twin)[0, 0] < 1e-7
        assert found.similarity[row] == pytest.approx(beta[row] @ kernel(twin, X)[0], abs=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 0.6, 1.0])
def test_no_training_point_is_better_whatever_the_signs(sigma):
    """The step is shortened until the sum rises, which the eigenvector alone would not do."""
    X = near(20, k=4, spread=3.0)
    kernel = VeroneseWhitney(sigma).fit(X)
    beta = np.random.default_rng(0).standard_normal((40, 20)) - 1
    found = preimage(kernel, X, beta, n_starts=1)
    assert np.all(found.similarity >= (beta @ kernel(X)).max(axis=1) - 1e-12)
    assert found.converged


@pytest.mark.parametrize("kernel", FIXED_POINT, ids=repr)
def test_similarity_of_the_returned_points(kernel):
    """Also where vectors leave the manifold in between, as means of turned pre-shapes do."""
    X = data_of(kernel)
    kernel = type(kernel)().fit(X)
    beta = np.random.default_rng(0).dirichlet(np.ones(12), size=5)
    found = preimage(kernel, X, beta)
    expected = np.einsum("mn,mn->m", beta, kernel(found.points, X))
    np.testing.assert_allclose(found.similarity, expected, rtol=1e-12)
    with pytest.warns(UserWarning, match=r"preimage: stopped at max_iter") as caught:
        short = preimage(kernel, X, beta, max_iter=1, tol=1e-12)
    assert [warning.filename for warning in caught] == [__file__]
    assert not short.converged
    assert short.n_iter == 1


# ------------------------------------------------------------------ Karcher means

every_fixed_point = pytest.mark.parametrize("kernel", FIXED_POINT, ids=repr)


def objectives(kernel, X, points, p=None):
    """The weighted mean of arccos² k at each of some points."""
    squares = np.arccos(np.clip(kernel(points, X), -1, 1)) ** 2
    return np.average(squares, axis=1, weights=p)


@every_fixed_point
@pytest.mark.parametrize("sigma", [0.3, "mean", 10.0])
def test_karcher_preimage_is_a_minimum(kernel, sigma):
    X = data_of(kernel, 20)
    kernel = type(kernel)(sigma).fit(X)
    p = np.random.default_rng(0).uniform(0.2, 2, 20)
    found = karcher_mean_preimage(kernel, X, p)
    least = objectives(kernel, X, found.point[None], p)[0]
    assert found.converged
    assert found.objective == pytest.approx(least, rel=1e-9)
    assert least <= objectives(kernel, X, X, p).min() + 1e-12
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2):  # nor a nearby one
        noise = size * rng.standard_normal((20, *X.shape[1:]))
        if of_matrices(kernel):
            aside = found.point + noise @ noise.transpose(0, 2, 1)
        else:
            aside = found.point + noise + 1j * size * rng.standard_normal(noise.shape)
        assert objectives(kernel, X, aside, p).min() >= least - 1e-12


@every_fixed_point
def test_known_means_and_weights(kernel):
    X = data_of(kernel)
    same = np.repeat(X[:1], 5, axis=0)
    found = karcher_mean_preimage(type(kernel)(1.0), same if of_matrices(kernel) else moved(same))
    assert apart(kernel, found.point[None], X[:1]).max() < 1e-7
    assert found.objective < 1e-14
    wide = karcher_mean_preimage(type(kernel)(1e3), X).point
    mean = log_euclidean_mean(X) if of_matrices(kernel) else extrinsic_mean(X)
    tolerance = 0.05 if isinstance(kernel, ComplexGaussian) else 1e-5
    assert apart(kernel, wide[None], mean[None]).max() < tolerance
    w, fitted = np.arange(12) % 3, type(kernel)().fit(X)
    weighted = karcher_mean_preimage(fitted, X, w).point
    repeated = karcher_mean_preimage(fitted, np.repeat(X, w, axis=0)).point
    np.testing.assert_array_equal(weighted, repeated)
    started = karcher_mean_preimage(fitted, X, w, starts=X).point
    assert apart(kernel, started[None], weighted[None]).max() < 1e-6


def test_geodesic_kernel_of_near_shapes_is_accurate():
    """1 - k is 1e-16 here: as a difference it would be rounding."""
    X = near(12, spread=1e-8)
    kernel = VeroneseWhitney(1.0).fit(X)
    found = geodesic_kernel(kernel, X)
    distances = procrustes_distance(X, as_complex(np.asarray(found.reference)[None]))[:, 0]
    np.testing.assert_allclose(np.sqrt(np.diagonal(found(X))), 2**0.5 * distances, rtol=1e-6)
    assert np.linalg.eigvalsh(found(X)).min() > -1e-6 * np.trace(found(X))


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (RiemannianShape(), near(12)),
        (Normalized(VeroneseWhitney()), near(12)),
        (Embedded(lambda X: X.reshape(len(X), -1), Gaussian(1.0)), matrices(12)),
    ],
    ids=["riemannian", "normalized", "embedded"],
)
def test_kernels_without_a_fixed_point_have_the_mean_itself(kernel, X):
    name = type(kernel).__name__
    with pytest.raises(ValueError, match=f"{name}.*sphere.karcher_mean.*='mean'"):
        karcher_mean_preimage(kernel, X)
    with pytest.raises(ValueError, match=f"{name}.*reference='mean'"):
        geodesic_kernel(kernel, X)
    assert geodesic_kernel(kernel, X, reference="mean")(X).shape == (12, 12)


@every_form
@pytest.mark.parametrize("method", ["fixed-point", "ridge"])
def test_form_of_landmarks(form, method):
    X = near(12, spread=0.3)
    beta = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    expected = preimage("veronese_whitney", X, beta, method=method).points
    assert expected.shape == (3, 5)
    assert np.iscomplexobj(expected)
    given = in_form(X, form)
    elsewhere = preimage(VeroneseWhitney(0.5), moved(X, 5), beta, method=method).points
    here = preimage(VeroneseWhitney(0.5), X, beta, method=method).points
    assert apart(VeroneseWhitney(), here, elsewhere).max() < 1e-5
    for made in (given, given.tolist()):
        found = preimage("veronese_whitney", made, beta, method=method).points
        np.testing.assert_allclose(found, in_form(expected, form), atol=1e-12)
    np.testing.assert_allclose(centroid_size(found), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "riemannian_shape", "method": "fixed-point"}, "got RiemannianShape"),
        (
            {"kernel": Normalized(VeroneseWhitney()), "method": "fixed-point"},
            "radial kernel, .* got Normalized. Use method='ridge'",
        ),
        ({"kernel": "hermitian_linear"}, "HermitianLinear has complex values"),
        ({"kernel": VeroneseWhitney().fit(landmarks(5, k=4))}, "VeroneseWhitney was fitted to"),
    ],
)
def test_invalid_input(arguments, message):
    given = {"kernel": "veronese_whitney", "X": near(12), "coefficients": np.ones(12), **arguments}
    with pytest.raises(ValueError, match=message):
        preimage(given.pop("kernel"), given.pop("X"), given.pop("coefficients"), **given)
