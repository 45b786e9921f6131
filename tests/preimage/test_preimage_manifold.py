"""Pre-images of shapes and of matrices: what they are, and that they come back as data came."""

import numpy as np
import pytest

from laws_shapes import FORMS, every_form, in_form, landmarks, matrices, moved, near, three_leaves
from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import (
    ComplexGaussian,
    Embedded,
    FullProcrustes,
    LogEuclidean,
    Normalized,
    RiemannianShape,
    VeroneseWhitney,
)
from orthodrome.preimage import preimage
from orthodrome.spaces import (
    as_complex,
    centroid_size,
    extrinsic_mean,
    log_euclidean_distance,
    log_euclidean_mean,
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


# ------------------------------------------------------------------ what they are


@pytest.mark.parametrize(
    ("kernel", "method"),
    [
        *[(kernel, "fixed-point") for kernel in FIXED_POINT],
        *[(kernel, "ridge") for kernel in RIDGE],
    ],
    ids=repr,
)
def test_auto(kernel, method):
    X = data_of(kernel)
    found = preimage(kernel, X, np.eye(12))
    assert found.method == method
    assert found.converged
    assert np.all(np.isnan(found.similarity)) == (method == "ridge")


@every_kernel
def test_the_preimage_of_a_point_is_the_point(kernel):
    X = data_of(kernel)
    found = preimage(kernel, X, np.eye(12), alpha=1e-12)
    assert apart(kernel, found.points, X).max() < 1e-6
    if found.method == "fixed-point":
        np.testing.assert_allclose(found.similarity, 1.0, atol=1e-12)


@pytest.mark.parametrize("kernel", FIXED_POINT, ids=repr)
def test_ridge_is_there_for_all(kernel):
    X = data_of(kernel)
    found = preimage(kernel, X, np.eye(12), method="ridge", alpha=1e-12)
    assert found.method == "ridge"
    assert apart(kernel, found.points, X).max() < 1e-6


@every_kernel
@pytest.mark.parametrize("method", ["auto", "ridge"])
def test_the_preimage_of_the_mean_under_a_wide_kernel_is_the_mean(kernel, method):
    X = matrices() if of_matrices(kernel) else near(10, spread=0.02)
    name = "kernel__sigma" if isinstance(kernel, Normalized) else "sigma"
    kernel = type(kernel)(**kernel.get_params(deep=False)).set_params(**{name: 100.0})
    found = preimage(kernel, X, np.full(10, 0.1), method=method).points
    mean = log_euclidean_mean(X) if of_matrices(kernel) else extrinsic_mean(X)
    # aligned shapes have a mean in the plane of their tangents, and a pre-image on the sphere
    assert apart(kernel, found, mean[None]).max() < 1e-3


@pytest.mark.parametrize("kernel", FIXED_POINT, ids=repr)
@pytest.mark.parametrize("estimator", [KernelPCA(4), KernelPGA(4)], ids=repr)
def test_decompositions_lead_back_to_the_same(kernel, estimator):
    X = data_of(kernel, 20)
    model = estimator.set_params(kernel=kernel).fit(X)
    coordinates = model.embedding_[:6]
    beta = model._expansion(coordinates)
    found = preimage(model.kernel_, X, beta).points
    back = model.inverse_transform(coordinates)
    assert apart(kernel, found, as_complex(back) if not of_matrices(kernel) else back).max() < 1e-8


def test_the_best_of_several_starts_is_kept():
    """Between two heaps the mean is a poor start under a narrow kernel: ρ has a top at each."""
    X, _ = three_leaves(45, spread=0.1)
    kernel = VeroneseWhitney(0.1).fit(X)
    beta = np.random.default_rng(0).dirichlet(np.full(45, 0.1), size=10)
    found = preimage(kernel, X, beta)
    best = (beta @ kernel(X)).max(axis=1)
    assert np.all(found.similarity >= best - 1e-12)
    np.testing.assert_allclose(
        found.similarity, np.einsum("mn,mn->m", beta, kernel(found.points, X)), rtol=1e-10
    )


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
    monkeypatch.setattr("orthodrome.preimage.manifold._BATCH", 2 * 4 * (12 + 25))
    parts = preimage("veronese_whitney", X, beta, tol=1e-10).points
    assert apart(VeroneseWhitney(), parts, whole).max() < 1e-8


# ------------------------------------------------------------------ forms


@every_form
@pytest.mark.parametrize("method", ["fixed-point", "ridge"])
def test_landmarks_come_back_in_their_form(form, method):
    X = near(12, spread=0.3)
    beta = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    expected = preimage("veronese_whitney", X, beta, method=method).points
    assert expected.shape == (3, 5)
    assert np.iscomplexobj(expected)
    given = in_form(X, form)
    for made in (given, given.tolist()):
        found = preimage("veronese_whitney", made, beta, method=method).points
        np.testing.assert_allclose(found, in_form(expected, form), atol=1e-12)
    np.testing.assert_allclose(centroid_size(found), 1.0, rtol=1e-12)


def test_only_the_form_decides():
    """As many specimens as landmarks, or as rows of a matrix."""
    for form in FORMS:
        X = in_form(near(3, k=3), form)
        assert preimage("full_procrustes", X, [1.0, 0, 0]).points.shape == (1, *X.shape[1:])
    assert preimage("log_euclidean", matrices(2, d=2), [1.0, 0]).points.shape == (1, 2, 2)


@every_kernel
def test_single_precision(kernel):
    X = data_of(kernel)
    narrow = X.astype(np.float32 if of_matrices(kernel) else np.complex64)
    found = preimage(kernel, narrow, np.eye(12)).points
    assert found.dtype == narrow.dtype
    assert apart(kernel, found, X).max() < 1e-2


def test_matrices_of_an_embedding_come_back_as_they_came():
    A = matrices(12)
    kernel = Embedded(lambda X: X.reshape(len(X), -1), "linear")
    found = preimage(kernel, A, np.eye(12), alpha=1e-10).points
    np.testing.assert_allclose(found, A, atol=1e-5)


@every_kernel
def test_data_stay_as_they_are(kernel):
    X = data_of(kernel)
    before = X.copy()
    preimage(kernel, X, np.eye(12))
    np.testing.assert_array_equal(X, before)
    assert not kernel.__sklearn_is_fitted__()


# ------------------------------------------------------------------ messages


def with_nan(X):
    X = X.copy()
    X[3, 1] = np.nan
    return X


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "riemannian_shape", "method": "fixed-point"}, "and RiemannianShape is none"),
        (
            {"kernel": Normalized(VeroneseWhitney()), "method": "fixed-point"},
            "needs a radial kernel, .* and Normalized is none; take method='ridge'",
        ),
        ({"kernel": "hermitian_linear"}, "HermitianLinear has complex values"),
        ({"kernel": Normalized("hermitian_linear")}, "Normalized has complex values"),
        ({"X": with_nan(near(12))}, "Landmark 1 of specimen 3 of X is NaN"),
        ({"X": near(12)[:, :2]}, "2 landmarks for each specimen"),
        ({"X": np.ones((12, 5, 3))}, "three dimensions"),
        ({"kernel": VeroneseWhitney().fit(landmarks(5, k=4))}, "5 landmarks, but VeroneseWhitney"),
        ({"kernel": "log_euclidean"}, "X must hold real numbers; got complex128"),
        ({"kernel": "log_euclidean", "X": -matrices(12)}, "Matrix 0 of X is not positive definite"),
        ({"coefficients": np.ones(11)}, "one column per row of X, 12; got 11"),
        ({"coefficients": 1j * np.ones(12)}, "Complex data not supported"),
    ],
)
def test_messages(arguments, message):
    given = {"kernel": "veronese_whitney", "X": near(12), "coefficients": np.ones(12), **arguments}
    with pytest.raises(ValueError, match=message):
        preimage(given.pop("kernel"), given.pop("X"), given.pop("coefficients"), **given)


@pytest.mark.parametrize("kernel", FIXED_POINT, ids=repr)
def test_too_few_iterations_are_said_to_be_too_few(kernel):
    X = data_of(kernel)
    beta = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    with pytest.warns(UserWarning, match=r"preimage: stopped at max_iter") as caught:
        found = preimage(kernel, X, beta, max_iter=1, tol=1e-12)
    assert [warning.filename for warning in caught] == [__file__]
    assert not found.converged
    assert found.n_iter == 1


def test_specimens_may_lie_anywhere():
    X = near(12, spread=0.3)
    beta = np.random.default_rng(0).dirichlet(np.ones(12), size=3)
    a, b = (preimage(VeroneseWhitney(0.5), Z, beta).points for Z in (X, moved(X, 5)))
    assert apart(VeroneseWhitney(), a, b).max() < 1e-5
