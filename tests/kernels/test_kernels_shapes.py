"""Laws of the kernels of shapes and of positive definite matrices."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from accuracy_kernels import hermitian, preshape
from laws_shapes import (
    every_form,
    in_form,
    landmarks,
    matrices,
    moved,
    naive_cosines,
    naive_extrinsic,
    naive_log_distance,
    naive_preshape,
    near,
)
from oracles import digits
from orthodrome import KernelPCA, KernelPGA
from orthodrome.gram import cross_operator, gram_operator
from orthodrome.kernels import (
    KERNELS,
    ComplexGaussian,
    Embedded,
    FullProcrustes,
    Geodesic,
    HermitianLinear,
    LogEuclidean,
    Normalized,
    RiemannianShape,
    VeroneseWhitney,
    base,
)
from orthodrome.spaces import extrinsic_mean, procrustes_align

RULES = ["mean", "median"]
SHAPES = [VeroneseWhitney, FullProcrustes, ComplexGaussian, RiemannianShape]
SCALED = [*SHAPES, LogEuclidean]
EVERY = [*SCALED, HermitianLinear]
every_shape = pytest.mark.parametrize("kernel_class", SHAPES)
every_scaled = pytest.mark.parametrize("kernel_class", SCALED)
every_kernel = pytest.mark.parametrize("kernel_class", EVERY)
every_rule = pytest.mark.parametrize("rule", RULES)
every_precision = pytest.mark.parametrize("dtype", [np.complex64, np.complex128])

# This warning has its own test.
pytestmark = pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")


@pytest.fixture(autouse=True, params=[0, 2**60], ids=["compiled", "plain"])
def _both_ways(request, monkeypatch):
    """Run every test with compiled loops, and without."""
    monkeypatch.setattr(base, "COMPILED_PAIRS", request.param)


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def data(kernel_class, n=9, seed=0, spread=0.1):
    """Shapes that are near each other, or matrices."""
    return matrices(n, seed=seed) if kernel_class is LogEuclidean else near(n, 5, seed, spread)


def distances(kernel_class, X, Y=None, weights=None):
    """The ρ of each kernel, fitted to X with weights, a pair at a time."""
    Y = X if Y is None else Y
    if kernel_class is LogEuclidean:
        return naive_log_distance(X, Y)
    if kernel_class is VeroneseWhitney:
        return naive_extrinsic(X, Y)
    if kernel_class is ComplexGaussian:
        mean = extrinsic_mean(X, sample_weight=weights)
        a, b = (procrustes_align(Z, reference=mean) for Z in (X, Y))
        return np.sqrt(np.square(np.abs(a[:, None] - b[None])).sum(axis=2))
    cosines = np.minimum(naive_cosines(X, Y), 1)
    return np.arccos(cosines) if kernel_class is RiemannianShape else np.sqrt(1 - cosines**2)


def smallest_eigenvalue(gram):
    """Relative to the largest."""
    values = np.linalg.eigvalsh(gram)
    return values[0] / values[-1]


@pytest.mark.parametrize("sigma", [0.3, 0.7, 5.0])
@every_scaled
def test_values_equal_the_naive_ones(kernel_class, sigma):
    X, Y = data(kernel_class), data(kernel_class, 6, seed=1, spread=1)
    kernel = kernel_class(sigma).fit(X)
    close(kernel(X, Y), np.exp(-(distances(kernel_class, X, Y) ** 2) / (2 * sigma**2)))
    close(kernel(X), np.exp(-(distances(kernel_class, X) ** 2) / (2 * sigma**2)))
    np.testing.assert_array_equal(kernel.diag(X), 1.0)
    close(np.diagonal(kernel(X)), 1, 1e-14)
    assert kernel.unit_norm


def test_hermitian_linear_is_the_complex_product_of_preshapes():
    X, Y = landmarks(9), landmarks(6, seed=1)
    u, v = ([naive_preshape(z) for z in Z] for Z in (X, Y))
    found, gram = HermitianLinear()(X, Y), HermitianLinear()(X)
    assert found.dtype == np.complex128
    close(found, [[np.vdot(a, b) for b in v] for a in u], 1e-14)
    close(gram, gram.conj().T, 1e-15)
    close(np.diagonal(gram), 1, 1e-14)
    np.testing.assert_array_equal(HermitianLinear().diag(X), 1.0)
    assert smallest_eigenvalue(gram) > -1e-14
    close(np.abs(HermitianLinear()(moved(X), Y)), np.abs(found))


NEAR = {VeroneseWhitney: 2, FullProcrustes: 1, RiemannianShape: 1}
EPS = np.finfo(float).eps
every_near = pytest.mark.parametrize("kernel_class", list(NEAR))


def exact_squares(kernel_class, X, Y):
    """ρ² of each kernel, to the last digits."""
    with digits(60):
        rows, columns = ([preshape(z) for z in Z] for Z in (X, Y))
        cosines = [[abs(hermitian(u, v)) for v in columns] for u in rows]
        sines = np.array([[float(1 - min(c, 1) ** 2) for c in row] for row in cosines])
    if kernel_class is RiemannianShape:
        return np.arcsin(np.sqrt(sines)) ** 2
    return NEAR[kernel_class] * sines


@pytest.mark.parametrize("spread", [0.1, 1e-3, 1e-7])
@every_near
def test_near_shapes_are_accurate(kernel_class, spread):
    """With a scale as small as the distances, their relative errors are those of the values.

    Landmarks are rounded, so that distances have an error of eps, and squares of eps/ρ; where they
    are taken from the products |u*v|² it would be eps/ρ².
    """
    X = near(8, spread=spread)
    squares = exact_squares(kernel_class, X, X)
    kernel = kernel_class(float(np.sqrt(squares.mean() / 2))).fit(X)
    close(kernel(X), np.exp(-squares / (2 * kernel.sigma_**2)), max(8 * EPS / spread, 4e-12))
    np.testing.assert_array_equal(np.diagonal(kernel(X)), 1.0)
    tolerance, roots = max(32 * EPS / spread, 1e-12), np.sqrt(squares[np.triu_indices(8, 1)] / 2)
    assert kernel_class("mean").fit(X).sigma_ == pytest.approx(kernel.sigma_, rel=tolerance)
    assert kernel_class("median").fit(X).sigma_ == pytest.approx(np.median(roots), rel=tolerance)


def test_riemannian_is_not_positive_definite_and_warns():
    X = landmarks(30, 4)
    assert not RiemannianShape().positive_definite
    with pytest.warns(UserWarning, match=r"not positive definite: .*Use VeroneseWhitney") as caught:
        kernel = RiemannianShape(2.0).fit(X)
    assert len(caught) == 1
    assert not kernel.positive_definite
    assert np.linalg.eigvalsh(kernel(X))[0] < -0.1
    assert np.linalg.eigvalsh(VeroneseWhitney(2.0)(X))[0] > -1e-14


@every_rule
@every_scaled
def test_scales_are_means_or_medians_of_distances(kernel_class, rule):
    """Over √2, of all pairs, or of pairs of different rows; weights are repetition."""
    X = data(kernel_class, spread=0.3)
    D = distances(kernel_class, X) / np.sqrt(2)
    expected = np.sqrt(np.mean(D**2)) if rule == "mean" else np.median(D[np.triu_indices(9, 1)])
    assert kernel_class(rule).fit(X).sigma_ == pytest.approx(expected, rel=1e-12)
    w = np.random.default_rng(0).integers(rule == "median", 4, size=9)
    weighted = kernel_class(rule).fit(X, sample_weight=w).sigma_
    repeated = kernel_class(rule).fit(np.repeat(X, w, axis=0)).sigma_
    assert weighted == pytest.approx(repeated, rel=1e-12)
    if rule == "mean":
        squares = distances(kernel_class, X, weights=w) ** 2 / 2
        np.fill_diagonal(squares, 0)
        share = w / w.sum()
        assert weighted == pytest.approx(np.sqrt(share @ squares @ share), rel=1e-12)
    two = kernel_class(rule).fit(X[:2]).sigma_ * (2 if rule == "mean" else np.sqrt(2))
    assert two == pytest.approx(distances(kernel_class, X[:2])[0, 1], rel=1e-12)


@every_precision
@every_rule
@every_shape
def test_the_scale_of_one_shape_is_1(kernel_class, rule, dtype):
    """Rotated or not."""
    for X in (moved(near(1).repeat(5, axis=0)), near(1).repeat(5, axis=0), near(1)):
        kernel = kernel_class(rule).fit(X.astype(dtype))
        assert kernel.sigma_ == 1.0
        close(kernel(X.astype(dtype)), 1.0, 1e-5 if dtype == np.complex64 else 1e-13)


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if "sigma" in k().get_params()])
def test_rescaled_equals_another_fit(name):
    X = matrices(9) if name == "log_euclidean" else in_form(near(9), "flat")
    kernel = KERNELS[name]().fit(X)
    before = kernel(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kernel.rescaled(0.7)
    assert (found.sigma, found.sigma_, kernel.sigma) == (0.7, 0.7, "mean")
    np.testing.assert_array_equal(found(X), KERNELS[name](sigma=0.7).fit(X)(X))
    np.testing.assert_array_equal(kernel(X), before)
    for bad, message in ((-1.0, "must be a finite number > 0"), (1e-200, "underflows")):
        with pytest.raises(ValueError, match=message):
            kernel.rescaled(bad)
    with pytest.raises(NotFittedError, match="is not fitted"):
        KERNELS[name]().rescaled(0.7)


@every_form
@pytest.mark.parametrize("kernel_class", [*SHAPES, HermitianLinear])
def test_kernels_accept_every_form(kernel_class, form):
    X, Y = near(9), near(6, seed=1)
    kernel, other = kernel_class().fit(X), kernel_class().fit(in_form(X, form))
    assert other.n_features_in_ == kernel.n_features_in_ == 10
    for made in (kernel(in_form(X, form), Y), other(X, in_form(Y, form))):
        close(made, kernel(X, Y), 1e-14)
    close(other(in_form(X, form)), kernel(X), 1e-14)
    np.testing.assert_array_equal(kernel.diag(in_form(X, form)), 1.0)
    close(Normalized(kernel_class()).fit(in_form(X, form))(in_form(X, form)), kernel(X), 1e-14)


@every_kernel
def test_samples_of_another_size_raise(kernel_class):
    X = data(kernel_class)
    kernel = kernel_class().fit(X)
    smaller = X[:, :2, :2] if kernel_class is LogEuclidean else X[:, :4]
    words = r"X has samples of shape .*, .* was fitted to samples of \d+ numbers"
    for call in (kernel, kernel.diag, lambda Z: kernel(X, Z)):
        with pytest.raises(ValueError, match=words):
            call(smaller)
        with pytest.raises(TypeError, match="Sparse data was passed"):
            call(scipy.sparse.eye_array(9))


def to_itself(X):
    return X


@pytest.mark.parametrize("wrap", [to_itself, Normalized, lambda inner: Embedded(to_itself, inner)])
def test_wrappers_of_complex_kernels_are_complex(wrap):
    kernel, X = wrap(HermitianLinear()), in_form(near(12), "points")
    fitted = clone(kernel).fit(X)
    assert kernel.hermitian
    assert fitted.hermitian
    for call in (
        lambda: gram_operator(fitted, fitted.validate(X, reset=False)),
        lambda: cross_operator(fitted, X, X),
        lambda: KernelPCA(2, kernel).fit(X),
    ):
        with pytest.raises(ValueError, match=f"{type(kernel).__name__} has complex values"):
            call()
    with pytest.raises(
        ValueError, match=r"Geodesic needs a kernel with real values, and \w+ has complex"
    ):
        Geodesic(kernel, X[0]).fit(X)


def test_flat_rows_are_matrices_in_every_estimator():
    A = matrices(30)
    flat = A.reshape(len(A), -1)
    from_rows, from_matrices = (KernelPGA(2, kernel="log_euclidean").fit(X) for X in (flat, A))
    np.testing.assert_array_equal(from_rows.transform(A), from_matrices.transform(flat))
    with pytest.raises(ValueError, match=r"Matrix 2 of X is not symmetric"):
        KernelPGA(2, kernel="log_euclidean").fit(np.eye(9)[[0, 4, 1]] + np.eye(3).ravel())
    with pytest.raises(ValueError, match=r"square matrices, shape \(n, d, d\); got shape \(4, 5\)"):
        KernelPGA(2, kernel="log_euclidean").fit(np.ones((4, 5)))
