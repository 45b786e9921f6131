"""Laws of the kernels of shapes and of positive definite matrices."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import orthodrome
from laws_shapes import (
    containers,
    every_form,
    exact_complements,
    in_form,
    landmarks,
    matrices,
    moved,
    naive_cosines,
    naive_extrinsic,
    naive_log_distance,
    naive_preshape,
    near,
    three_leaves,
    two_kinds_of_matrices,
)
from optional import optional
from orthodrome import KernelPCA, KernelRidgeRegressionClassifier
from orthodrome.gram import cross_operator, gram_operator
from orthodrome.kernels import (
    KERNELS,
    ComplexGaussian,
    Embedded,
    FullProcrustes,
    Gaussian,
    Geodesic,
    HermitianLinear,
    LogEuclidean,
    Normalized,
    RiemannianShape,
    VeroneseWhitney,
    as_kernel,
)
from orthodrome.kernels.base import TILE
from orthodrome.spaces import (
    centroid_size,
    extrinsic_mean,
    log_euclidean_distance,
    procrustes_align,
    procrustes_distance,
    riemannian_distance,
    spd_log,
    symmetric_vectors,
)
from real_data import load_or_skip

pd = optional("pandas")

SIGMA = 0.6
NAMES = {
    "veronese_whitney": VeroneseWhitney,
    "full_procrustes": FullProcrustes,
    "complex_gaussian": ComplexGaussian,
    "riemannian_shape": RiemannianShape,
    "hermitian_linear": HermitianLinear,
    "log_euclidean": LogEuclidean,
}
SCALED = [VeroneseWhitney, FullProcrustes, ComplexGaussian, RiemannianShape]
DEFINITE = [VeroneseWhitney, FullProcrustes, ComplexGaussian]
every_scaled = pytest.mark.parametrize("kernel_class", SCALED)
every_definite = pytest.mark.parametrize("kernel_class", DEFINITE)

# What is said of the one kernel that is not positive definite has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def distances(kernel_class, X):
    """The ρ of each kernel, for all pairs of X, to which it is fitted."""
    if kernel_class is VeroneseWhitney:
        return naive_extrinsic(X, X)
    cosines = np.minimum(naive_cosines(X, X), 1)
    if kernel_class is FullProcrustes:
        return np.sqrt(1 - cosines**2)
    if kernel_class is RiemannianShape:
        return np.arccos(cosines)
    aligned = procrustes_align(X)
    return np.linalg.norm(aligned[:, None] - aligned[None], axis=2)


def smallest_eigenvalue(gram):
    """Relative to the largest."""
    values = np.linalg.eigvalsh(gram)
    return values[0] / values[-1]


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("sigma", [0.3, 0.7, 5.0])
def test_veronese_whitney_against_the_naive_twin(sigma):
    X, Y = landmarks(9), near(6, seed=1)
    expected = np.exp(-(naive_extrinsic(X, Y) ** 2) / sigma**2)
    close(VeroneseWhitney(sigma)(X, Y), expected)
    close(VeroneseWhitney(sigma)(Y), np.exp(-(naive_extrinsic(Y, Y) ** 2) / sigma**2))


def test_full_procrustes_is_veronese_whitney_with_the_square_doubled():
    X, Y = landmarks(9), landmarks(6, seed=1)
    close(FullProcrustes(SIGMA)(X, Y), VeroneseWhitney(np.sqrt(2) * SIGMA)(X, Y), 1e-15)
    close(FullProcrustes(SIGMA)(X, Y), np.exp(-(procrustes_distance(X, Y) ** 2) / SIGMA**2))
    pairs = [(FullProcrustes(rule).fit(X), VeroneseWhitney(rule).fit(X)) for rule in RULES]
    for full, whitney in pairs:
        close(full(X, Y), whitney(X, Y), 1e-14)


def test_riemannian_against_the_naive_twin():
    X, Y = landmarks(9), near(6, seed=1)
    expected = np.exp(-(np.arccos(naive_cosines(X, Y)) ** 2) / SIGMA**2)
    close(RiemannianShape(SIGMA)(X, Y), expected)
    close(RiemannianShape(SIGMA)(X, Y), np.exp(-(riemannian_distance(X, Y) ** 2) / SIGMA**2))


def test_complex_gaussian_by_its_definition():
    X, Y = near(9), near(6, seed=1)
    kernel = ComplexGaussian(SIGMA).fit(X)
    mean = extrinsic_mean(X)
    close(riemannian_distance([mean], kernel.mean_[None]), 0, 1e-14)
    a, b = (procrustes_align(Z, reference=mean) for Z in (X, Y))
    squares = np.square(np.abs(a[:, None] - b[None])).sum(axis=2)
    close(kernel(X, Y), np.exp(-squares / SIGMA**2))


def test_hermitian_linear_is_the_complex_product_of_preshapes():
    X, Y = landmarks(9), landmarks(6, seed=1)
    u, v = ([naive_preshape(z) for z in Z] for Z in (X, Y))
    found = HermitianLinear()(X, Y)
    assert found.dtype == np.complex128
    close(found, [[np.vdot(a, b) for b in v] for a in u], 1e-14)
    gram = HermitianLinear()(X)
    close(gram, gram.conj().T, 1e-15)
    close(np.diagonal(gram), 1, 1e-14)
    np.testing.assert_array_equal(HermitianLinear().diag(X), 1.0)
    assert smallest_eigenvalue(gram) > -1e-14
    close(np.abs(HermitianLinear()(moved(X), Y)), np.abs(found))


def test_tiles_of_complex_kernels_are_put_where_they_belong():
    X = landmarks(TILE + 5)
    rows = [0, 3, TILE - 1, TILE, TILE + 4]
    found = HermitianLinear()(X)
    close(found[np.ix_(rows, rows)], HermitianLinear()(X[rows]), 1e-15)
    close(found, HermitianLinear()(X, X), 1e-15)
    close(found, found.conj().T, 1e-15)


def test_tiles_are_put_where_they_belong():
    X, Y = landmarks(TILE + 5), landmarks(TILE + 9, seed=1)
    rows, columns = [0, 3, TILE - 1, TILE, TILE + 4], [1, TILE - 1, TILE, TILE + 8]
    for kernel_class in SCALED:
        kernel = kernel_class(SIGMA).fit(X)
        found = kernel(X, Y)
        close(found[np.ix_(rows, columns)], kernel(X[rows], Y[columns]), 1e-13)
        gram = kernel(X)
        np.testing.assert_array_equal(gram, gram.T)
        close(gram[np.ix_(rows, rows)], kernel(X[rows]), 1e-13)


def test_log_euclidean_against_the_naive_twin():
    A, B = matrices(7), matrices(5, seed=1)
    expected = np.exp(-(naive_log_distance(A, B) ** 2) / 1.5**2)
    close(LogEuclidean(1.5)(A, B), expected)
    close(LogEuclidean(1.5)(A), np.exp(-(naive_log_distance(A, A) ** 2) / 1.5**2))


def test_log_euclidean_is_an_embedded_gaussian():
    A = matrices(7)
    plain = Embedded(lambda Z: symmetric_vectors(spd_log(Z)), Gaussian(1.5 / np.sqrt(2)))
    close(LogEuclidean(1.5)(A), plain(A))


# ------------------------------------------------------------------ near shapes

NEAR = {VeroneseWhitney: 2, FullProcrustes: 1, RiemannianShape: 1}
every_near = pytest.mark.parametrize("kernel_class", list(NEAR))


def exact_squares(kernel_class, X, Y):
    """ρ² of each kernel, to the last digits."""
    sines, cosines = exact_complements(X, Y)
    if kernel_class is RiemannianShape:
        return np.arctan2(np.sqrt(sines), np.sqrt(cosines)) ** 2
    return NEAR[kernel_class] * sines


@pytest.mark.parametrize("spread", [0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9])
@every_near
def test_near_shapes_keep_their_digits(kernel_class, spread):
    """With a scale as small as the distances, their relative errors are those of the values.

    Landmarks are rounded, so that distances have an error of eps, and squares of eps/ρ; where they
    are taken from the products |u*v|² it would be eps/ρ².
    """
    X = near(8, spread=spread)
    squares = exact_squares(kernel_class, X, X)
    kernel = kernel_class(float(np.sqrt(squares.mean()))).fit(X)
    eps = np.finfo(float).eps
    close(kernel(X), np.exp(-squares / kernel.sigma_**2), max(8 * eps / spread, 4e-12))
    np.testing.assert_array_equal(np.diagonal(kernel(X)), 1.0)
    by_rule = kernel_class("mean").fit(X).sigma_
    assert by_rule == pytest.approx(kernel.sigma_, rel=max(32 * eps / spread, 1e-12))


@every_near
def test_near_shapes_keep_their_digits_in_single_precision(kernel_class):
    X = near(8, spread=0.01).astype(np.complex64)
    squares = exact_squares(kernel_class, X, X)
    kernel = kernel_class(float(np.sqrt(squares.mean()))).fit(X)
    close(kernel(X), np.exp(-squares / kernel.sigma_**2), 16 * np.finfo(np.float32).eps / 0.01)
    wide = kernel(X, X.astype(complex))
    assert wide.dtype == np.float64
    close(wide, kernel(X), 16 * np.finfo(np.float32).eps / 0.01)


@every_near
def test_a_few_near_shapes_among_many(kernel_class):
    """One of twenty in a row, and one of three: both ways to look at the vectors."""
    X = landmarks(20)
    noise = 1e-6 * landmarks(3, seed=1)
    Y = moved(X[[4, 11, 17]] + noise - noise.mean(axis=1, keepdims=True))
    kernel = kernel_class(2e-6).fit(X)
    expected = np.exp(-exact_squares(kernel_class, X, Y) / kernel.sigma_**2)
    assert np.count_nonzero((expected > 0.01) & (expected < 0.99)) == 3
    close(kernel(X, Y), expected, 1e-8)
    close(kernel(Y, X), expected.T, 1e-8)


@every_near
def test_what_is_far_in_a_row_of_near_shapes_is_not_touched(kernel_class):
    X = np.vstack([near(20, spread=1e-4), landmarks(20)])
    close(kernel_class(SIGMA)(X), np.exp(-exact_squares(kernel_class, X, X) / SIGMA**2), 1e-14)


def test_riemannian_keeps_its_digits_at_the_other_end_too():
    triangle = np.array([0, 2, 1 + 1j * np.sqrt(3)])
    moves = np.array([[1e-5, 0, 0], [1e-7, 0, 0], [1e-9j, 0, 0]])
    X, Y = triangle[None], triangle.conj() + moves
    expected = np.exp(-exact_squares(RiemannianShape, X, Y))
    close(RiemannianShape(1.0)(X, Y), expected, 2e-15)


# ------------------------------------------------------------------ invariance


@every_scaled
def test_kernels_are_of_shapes(kernel_class):
    X, Y = near(9), near(6, seed=1)
    kernel = kernel_class(SIGMA).fit(X)
    close(kernel(moved(X, 2), moved(Y, 3)), kernel(X, Y))
    close(kernel_class(SIGMA).fit(moved(X, 4))(X, Y), kernel(X, Y))
    close(np.diagonal(kernel(X, moved(X, 5))), 1)
    close(kernel_class().fit(moved(X, 4)).sigma_, kernel_class().fit(X).sigma_, 1e-13)


@every_scaled
def test_a_common_renumbering_of_landmarks_changes_nothing(kernel_class):
    X, Y = near(9), near(6, seed=1)
    order = [3, 1, 4, 0, 2]
    found = kernel_class(SIGMA).fit(X[:, order])(X[:, order], Y[:, order])
    close(found, kernel_class(SIGMA).fit(X)(X, Y))


def test_log_euclidean_does_not_change_with_rotation_scale_and_inversion():
    A, B = matrices(7), matrices(5, seed=1)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    expected = LogEuclidean(1.5)(A, B)
    close(LogEuclidean(1.5)(Q @ A @ Q.T, Q @ B @ Q.T), expected)
    close(LogEuclidean(1.5)(5 * A, 5 * B), expected)
    close(LogEuclidean(1.5)(np.linalg.inv(A), np.linalg.inv(B)), expected)


# ------------------------------------------------------------------ definiteness


@every_definite
@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
def test_gram_matrices_are_positive_semidefinite(kernel_class, sigma):
    for seed, k in enumerate([3, 4, 8]):
        X = landmarks(60, k, seed)
        X[::7] = moved(X[:1].repeat(9, axis=0), seed)  # the same shape, turned
        kernel = kernel_class(sigma).fit(X)
        assert kernel.positive_definite
        assert smallest_eigenvalue(kernel(X)) > -60 * np.finfo(float).eps


@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(3, 5), st.just(2)),
        elements=st.floats(-10, 10).map(lambda value: round(value, 2)),
    ),
    sigma=st.sampled_from([0.05, 0.5, 5.0]),
    kernel_class=st.sampled_from(DEFINITE),
)
def test_any_gram_matrix_is_positive_semidefinite(X, sigma, kernel_class):
    assume(centroid_size(X).min() > 1e-2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The extrinsic mean is not defined")
        gram = kernel_class(sigma).fit(X)(X)
    # rounding of |u*v|² counts by 2/σ²
    assert smallest_eigenvalue(gram) > -1e-12
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
def test_log_euclidean_is_positive_semidefinite(sigma):
    A = matrices(40, 3)
    A[::7] = A[0]
    kernel = LogEuclidean(sigma).fit(A)
    assert kernel.positive_definite
    assert smallest_eigenvalue(kernel(A)) > -60 * np.finfo(float).eps


def test_riemannian_is_not_positive_definite_and_says_so():
    X = landmarks(30, 4)
    assert not RiemannianShape().positive_definite
    with pytest.warns(UserWarning, match=r"not positive definite: .*VeroneseWhitney is") as caught:
        kernel = RiemannianShape(2.0).fit(X)
    assert len(caught) == 1
    assert not kernel.positive_definite
    assert np.linalg.eigvalsh(kernel(X))[0] < -0.1
    assert np.linalg.eigvalsh(VeroneseWhitney(2.0)(X))[0] > -1e-14


def caught_in(action, call):
    """What is said of RiemannianShape in a call, with a filter."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        call()
    return [found for found in caught if "RiemannianShape is not" in str(found.message)]


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: RiemannianShape().fit(X),
        lambda X, y: RiemannianShape(1.0)(X),
        lambda X, y: Normalized(RiemannianShape()).fit(X),
        lambda X, y: Embedded(np.negative, RiemannianShape()).fit(in_form(X, "points")),
        lambda X, y: KernelPCA(2, "riemannian_shape").fit(X),
        lambda X, y: KernelRidgeRegressionClassifier("riemannian_shape").fit(X, y),
        lambda X, y: KernelRidgeRegressionClassifier("riemannian_shape", sigmas=[1.0]).fit(X, y),
    ],
)
def test_the_warning_names_the_line_of_the_user(fit):
    found = caught_in("always", lambda: fit(*three_leaves()))
    assert {warning.filename for warning in found} == {__file__}


def test_the_search_of_a_scale_warns_once():
    """As Python does unless it is told to repeat: of the same line, one."""
    X, y = three_leaves()
    model = KernelRidgeRegressionClassifier("riemannian_shape", sigmas="auto")
    assert len(caught_in("default", lambda: model.fit(X, y))) == 1


def test_a_tied_mean_names_the_line_of_the_user():
    triangle = np.array([0, 2, 1 + 1j * np.sqrt(3)])
    with pytest.warns(UserWarning, match="extrinsic mean is not defined") as caught:
        ComplexGaussian(1.0).fit([triangle, triangle.conj()])
    with pytest.warns(UserWarning, match="extrinsic mean is not defined") as again:
        Normalized(ComplexGaussian(1.0)).fit([triangle, triangle.conj()])
    assert {warning.filename for warning in [*caught, *again]} == {__file__}


# ------------------------------------------------------------------ scales

RULES = ["mean", "median"]


@every_scaled
def test_mean_is_over_all_pairs(kernel_class):
    X = near(9, spread=0.3)
    D = distances(kernel_class, X)
    assert kernel_class("mean").fit(X).sigma_ == pytest.approx(np.sqrt(np.mean(D**2)), rel=1e-12)


@every_scaled
def test_weighted_mean_is_over_all_pairs(kernel_class):
    X = near(9, spread=0.3)
    w = np.random.default_rng(0).integers(0, 4, size=9)
    copies = np.repeat(X, w, axis=0)
    expected = np.sqrt(np.mean(distances(kernel_class, copies) ** 2))
    assert kernel_class().fit(X, sample_weight=w).sigma_ == pytest.approx(expected, rel=1e-7)
    assert kernel_class().fit(copies).sigma_ == pytest.approx(
        kernel_class().fit(X, sample_weight=w).sigma_, rel=1e-12
    )
    share = w / w.sum()
    aligned = procrustes_align(X, sample_weight=w)
    squares = (
        np.square(np.abs(aligned[:, None] - aligned[None])).sum(axis=2)
        if kernel_class is ComplexGaussian
        else distances(kernel_class, X) ** 2
    )
    np.fill_diagonal(squares, 0)
    assert kernel_class().fit(X, sample_weight=w).sigma_ == pytest.approx(
        np.sqrt(share @ squares @ share), rel=1e-12
    )


@every_scaled
def test_median_is_over_different_pairs(kernel_class):
    X = near(9, spread=0.3)
    D = distances(kernel_class, X)[np.triu_indices(9, k=1)]
    assert kernel_class("median").fit(X).sigma_ == pytest.approx(np.median(D), rel=1e-12)
    w = np.random.default_rng(0).integers(1, 3, size=9)
    repeated = kernel_class("median").fit(np.repeat(X, w, axis=0)).sigma_
    assert kernel_class("median").fit(X, sample_weight=w).sigma_ == pytest.approx(
        repeated, rel=1e-12
    )


@pytest.mark.parametrize("rule", RULES)
def test_scales_of_matrices(rule):
    A = matrices(9)
    D = log_euclidean_distance(A)
    found = LogEuclidean(rule).fit(A).sigma_
    expected = np.sqrt(np.mean(D**2)) if rule == "mean" else np.median(D[np.triu_indices(9, 1)])
    assert found == pytest.approx(expected, rel=1e-12)
    w = np.random.default_rng(0).integers(1, 4, size=9)
    repeated = LogEuclidean(rule).fit(np.repeat(A, w, axis=0)).sigma_
    assert LogEuclidean(rule).fit(A, sample_weight=w).sigma_ == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("spread", [1e-3, 1e-6])
@pytest.mark.parametrize("kernel_class", [VeroneseWhitney, FullProcrustes])
def test_scales_of_near_shapes(kernel_class, spread):
    X = near(9, spread=spread)
    kind = "extrinsic" if kernel_class is VeroneseWhitney else "full"
    D = procrustes_distance(X, kind=kind)
    assert kernel_class().fit(X).sigma_ == pytest.approx(np.sqrt(np.mean(D**2)), rel=1e-6)
    median = np.median(D[np.triu_indices(9, 1)])
    assert kernel_class("median").fit(X).sigma_ == pytest.approx(median, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("rule", RULES)
@every_scaled
def test_one_shape_has_no_scale(kernel_class, rule, dtype):
    """Turned or not: any scale gives the same values, and 1 is taken."""
    for X in (moved(near(1).repeat(5, axis=0)), near(1).repeat(5, axis=0), near(1)):
        kernel = kernel_class(rule).fit(X.astype(dtype))
        assert kernel.sigma_ == 1.0
        close(kernel(X.astype(dtype)), 1.0, 1e-5 if dtype == np.complex64 else 1e-13)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@every_scaled
def test_a_median_of_nothing_is_refused(kernel_class, dtype):
    X = near(10)
    X[1:9] = moved(X[:1].repeat(8, axis=0))
    with pytest.raises(ValueError, match=r"sigma='median' of .* is 0: more than half"):
        kernel_class("median").fit(X.astype(dtype))


@pytest.mark.parametrize("rule", RULES)
@every_scaled
def test_two_shapes_have_one_distance(kernel_class, rule):
    X = near(2)
    expected = distances(kernel_class, X)[0, 1] / (np.sqrt(2) if rule == "mean" else 1)
    assert kernel_class(rule).fit(X).sigma_ == pytest.approx(expected, rel=1e-12)


SCALES = [name for name, made in KERNELS.items() if "sigma" in made().get_params()]


@pytest.mark.parametrize("name", SCALES)
def test_another_scale_is_another_fit(name):
    X = matrices(9) if name == "log_euclidean" else in_form(near(9), "flat")
    kernel = KERNELS[name]().fit(X)
    before = kernel(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kernel.rescaled(0.7)
    assert (found.sigma, found.sigma_) == (0.7, 0.7)
    np.testing.assert_array_equal(found(X), KERNELS[name](sigma=0.7).fit(X)(X))
    np.testing.assert_array_equal(kernel(X), before)
    assert kernel.sigma == "mean"
    for bad, message in ((-1.0, "must be a finite number > 0"), (1e-200, "underflows")):
        with pytest.raises(ValueError, match=message):
            kernel.rescaled(bad)
    with pytest.raises(NotFittedError, match="is not fitted"):
        KERNELS[name]().rescaled(0.7)


@pytest.mark.parametrize("sigma", [0, -1.0, np.nan, np.inf, "mode", None, True])
@pytest.mark.parametrize("kernel_class", [*SCALED, LogEuclidean])
def test_bad_scales(kernel_class, sigma):
    X = matrices() if kernel_class is LogEuclidean else near()
    with pytest.raises(ValueError, match=f"sigma of {kernel_class.__name__} must be"):
        kernel_class(sigma).fit(X)


@pytest.mark.parametrize("kernel_class", [*SCALED, LogEuclidean])
def test_a_rule_needs_data(kernel_class):
    X = matrices() if kernel_class is LogEuclidean else near()
    with pytest.raises(NotFittedError, match=r"sigma='mean'\) takes its value from the data"):
        kernel_class()(X)


# ------------------------------------------------------------------ forms and containers


@every_form
@pytest.mark.parametrize("kernel_class", [*SCALED, HermitianLinear])
def test_kernels_take_every_form(kernel_class, form):
    X, Y = near(9), near(6, seed=1)
    kernel = kernel_class().fit(X)
    other = kernel_class().fit(in_form(X, form))
    assert other.n_features_in_ == kernel.n_features_in_ == 10
    for made in (kernel(in_form(X, form), Y), other(X, in_form(Y, form))):
        close(made, kernel(X, Y), 1e-14)
    close(other(in_form(X, form)), kernel(X), 1e-14)
    np.testing.assert_array_equal(kernel.diag(in_form(X, form)), 1.0)


@pytest.mark.parametrize("name", list(containers(landmarks(3))))
def test_containers(name):
    X = near(9)
    kernel = VeroneseWhitney().fit(containers(X)[name])
    close(kernel(containers(X)[name]), VeroneseWhitney().fit(X)(X), 1e-14)


def test_names_of_columns_are_remembered():
    frame = pd.DataFrame(
        in_form(near(9), "flat"), columns=[f"{c}{i}" for i in range(5) for c in "xy"]
    )
    kernel = VeroneseWhitney().fit(frame)
    assert list(kernel.feature_names_in_[:3]) == ["x0", "y0", "x1"]
    with pytest.raises(ValueError, match="feature names should match"):
        kernel(frame[frame.columns[::-1]])


def test_names_of_entries_are_remembered():
    A = matrices(9)
    frame = pd.DataFrame(A.reshape(9, -1), columns=[f"{i}{j}" for i in "abc" for j in "abc"])
    kernel = LogEuclidean().fit(frame)
    assert list(kernel.feature_names_in_) == list(frame.columns)
    assert kernel.n_features_in_ == 9
    np.testing.assert_array_equal(kernel(frame), LogEuclidean().fit(A)(A))
    model = KernelPCA(2, LogEuclidean()).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    for call in (kernel, model.transform):
        with pytest.raises(ValueError, match="feature names should match"):
            call(frame[frame.columns[::-1]])
    assert not hasattr(LogEuclidean().fit(A), "feature_names_in_")


@pytest.mark.parametrize("kernel_class", [*SCALED, HermitianLinear])
def test_single_precision(kernel_class):
    X, Y = near(9).astype(np.complex64), near(6, seed=1).astype(np.complex64)
    kernel = kernel_class().fit(X)
    wide = kernel_class().fit(X.astype(complex))
    narrow = np.complex64 if kernel_class is HermitianLinear else np.float32
    for found, expected in ((kernel(X, Y), wide(X, Y)), (kernel(X), wide(X))):
        assert found.dtype == narrow
        close(found, expected, 3e-4)
    assert kernel.diag(X).dtype == np.float32
    if kernel_class is not HermitianLinear:
        assert kernel.sigma_ == pytest.approx(wide.sigma_, rel=1e-5)


def test_single_precision_of_matrices():
    A = matrices().astype(np.float32)
    kernel = LogEuclidean().fit(A)
    assert kernel(A).dtype == np.float32
    close(kernel(A), LogEuclidean().fit(matrices())(matrices()), 1e-4)


@every_scaled
def test_diagonals_are_one(kernel_class):
    X = near(9)
    kernel = kernel_class(SIGMA).fit(X)
    assert kernel.unit_norm
    np.testing.assert_array_equal(kernel.diag(X), 1.0)
    close(np.diagonal(kernel(X)), 1, 1e-14)
    assert LogEuclidean().unit_norm
    np.testing.assert_array_equal(LogEuclidean(1.0).diag(matrices()), 1.0)
    np.testing.assert_array_equal(np.diagonal(LogEuclidean(1.0)(matrices())), 1.0)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("kernel_class", [*SCALED, HermitianLinear])
def test_what_is_no_landmarks_is_refused(kernel_class):
    X = near(9)
    kernel = kernel_class().fit(X)
    bad = X.copy()
    bad[4, 2] = np.nan
    flat = X.copy()
    flat[5] = 3.0
    with pytest.raises(
        ValueError, match=r"X has 4 landmarks, but \w+ was fitted to specimens of 5"
    ):
        kernel(X[:, :4])
    with pytest.raises(ValueError, match=r"4 landmarks, but \w+ was fitted to specimens of 5"):
        kernel(X, X[:, :4])
    for call in (kernel, kernel.diag):
        with pytest.raises(ValueError, match="landmarks of specimen 5 of X all coincide"):
            call(flat)
    for call in (kernel, kernel.diag, kernel_class().fit):
        with pytest.raises(ValueError, match="Landmark 2 of specimen 4 of X is NaN"):
            call(bad)
        with pytest.raises(ValueError, match="Specimen 1 of X has landmarks of shape"):
            call([X[0], X[1, :4]])
        with pytest.raises(ValueError, match="three dimensions"):
            call(np.ones((9, 5, 3)))
        with pytest.raises(TypeError, match="Sparse data was passed"):
            call(scipy.sparse.csr_array(in_form(X, "flat")))


def test_what_is_no_matrix_is_refused():
    A = matrices()
    kernel = LogEuclidean().fit(A)
    bad = A.copy()
    bad[3] = -np.eye(3)
    with pytest.raises(ValueError, match=r"matrices of 2 x 2 .* was fitted to matrices of 9"):
        kernel(A[:, :2, :2])
    for call in (kernel, kernel.diag, LogEuclidean().fit):
        with pytest.raises(ValueError, match="Matrix 3 of X is not positive definite"):
            call(bad)
        with pytest.raises(ValueError, match="must be square matrices"):
            call(A[:, :2])
        with pytest.raises(TypeError, match="Sparse data was passed"):
            call(scipy.sparse.csr_array(A[0]))


COMPLEX_VALUES = r"HermitianLinear has complex values, and this method takes real ones only"


@pytest.mark.parametrize(
    "name",
    [
        "GeodesicMixture",
        "KernelKMeans",
        "KernelPCA",
        "KernelPGA",
        "KernelPNS",
        "KernelSpectralClustering",
        "RobustKernelPCA",
    ],
)
def test_methods_that_need_real_values_refuse_complex_ones(name):
    with pytest.raises(ValueError, match=COMPLEX_VALUES):
        getattr(orthodrome, name)(kernel="hermitian_linear").fit(near(12))


def test_other_methods_refuse_complex_values():
    X = near(12)
    y = np.arange(12) % 2
    for estimator in (
        orthodrome.HypersphericalKMeans(2, kernel="hermitian_linear", centers="intrinsic"),
        orthodrome.NestedSpheresClassifier(kernel="hermitian_linear"),
        orthodrome.PerTurbo("hermitian_linear", geodesic=True, reference="mean"),
    ):
        with pytest.raises(ValueError, match=COMPLEX_VALUES):
            estimator.fit(X, y)


def test_operators_refuse_complex_values():
    kernel = HermitianLinear().fit(near(6))
    with pytest.raises(ValueError, match=COMPLEX_VALUES):
        gram_operator(kernel, near(6))
    with pytest.raises(ValueError, match=COMPLEX_VALUES):
        cross_operator(kernel, near(6), near(6))


# ------------------------------------------------------------------ inside other kernels

WRAPPED = [*SCALED, LogEuclidean]


def shapes_or_matrices(kernel_class, seed=0):
    return matrices(9, seed=seed) if kernel_class is LogEuclidean else near(9, seed=seed)


@pytest.mark.parametrize("kernel_class", WRAPPED)
def test_normalized_is_no_more_than_the_kernel_itself(kernel_class):
    X, Y = shapes_or_matrices(kernel_class), shapes_or_matrices(kernel_class, seed=1)
    inner = kernel_class().fit(X)
    kernel = Normalized(kernel_class()).fit(X)
    for _ in range(2):
        close(kernel(X), inner(X), 1e-15)
        close(kernel(X, Y), inner(X, Y), 1e-15)
    assert kernel.n_features_in_ == inner.n_features_in_
    assert kernel.positive_definite == inner.positive_definite
    fewer = X[:, :2, :2] if kernel_class is LogEuclidean else X[:, :4]
    with pytest.raises(ValueError, match="but Normalized was fitted to"):
        kernel(fewer)
    again = Normalized(inner.resolved()) if kernel_class is not ComplexGaussian else kernel
    close(again(X, Y), inner(X, Y), 1e-15)


@every_form
def test_normalized_takes_every_form(form):
    X = near(9)
    kernel = Normalized(VeroneseWhitney()).fit(in_form(X, form))
    close(kernel(in_form(X, form)), VeroneseWhitney().fit(X)(X), 1e-14)


@pytest.mark.parametrize("kernel_class", [VeroneseWhitney, FullProcrustes, LogEuclidean])
def test_geodesic_of_manifolds(kernel_class):
    X = shapes_or_matrices(kernel_class)
    inner = kernel_class().fit(X)
    kernel = Geodesic(kernel_class(), X[3]).fit(X)
    c = inner(X)[:, 3]
    angles = np.arccos(np.minimum(c, 1))
    angles[3] = 0
    g = np.where(angles > 0, angles / np.sin(np.where(angles > 0, angles, 1)), 0)
    close(kernel(X), g[:, None] * (inner(X) - np.outer(c, c)) * g, 1e-9)
    close(kernel.diag(X), angles**2, 1e-9)
    assert kernel.n_features_in_ == inner.n_features_in_


@pytest.mark.parametrize("kernel_class", WRAPPED)
def test_wrappers_have_the_vectors_of_what_is_inside(kernel_class):
    X = shapes_or_matrices(kernel_class)
    inner = kernel_class().fit(X)
    data = inner.validate(X, reset=False)
    expected, back = inner.as_vectors(data)
    for kernel in (Normalized(kernel_class()), Geodesic(kernel_class(), X[0])):
        vectors, again = kernel.fit(X).as_vectors(data)
        np.testing.assert_array_equal(vectors, expected)
        np.testing.assert_array_equal(again(vectors), back(expected))


def test_normalized_products_of_preshapes():
    X, y = three_leaves()
    kernel = Normalized(HermitianLinear()).fit(X)
    assert kernel.hermitian
    close(kernel(X), HermitianLinear()(X), 1e-14)
    assert kernel.diag(X).dtype == np.float64
    np.testing.assert_array_equal(kernel.diag(X), 1.0)
    plain, model = (
        KernelRidgeRegressionClassifier(made, alpha=0.1).fit(X, y)
        for made in (HermitianLinear(), Normalized(HermitianLinear()))
    )
    close(model.class_residuals(X), plain.class_residuals(X), 1e-12)


def to_itself(X):
    return X


@pytest.mark.parametrize(
    "kernel", [Normalized(HermitianLinear()), Embedded(to_itself, HermitianLinear())]
)
def test_complex_values_inside_are_complex_values(kernel):
    X = in_form(near(12), "points")
    assert kernel.hermitian
    fitted = clone(kernel).fit(X)
    assert fitted.hermitian
    message = f"{type(kernel).__name__} has complex values"
    with pytest.raises(ValueError, match=message):
        gram_operator(fitted, fitted.validate(X, reset=False))
    with pytest.raises(ValueError, match=message):
        cross_operator(fitted, X, X)
    with pytest.raises(ValueError, match=message):
        KernelPCA(2, kernel).fit(X)


def test_angles_of_complex_values_are_refused():
    with pytest.raises(ValueError, match=r"Geodesic measures angles, and HermitianLinear has"):
        Geodesic(HermitianLinear(), near(9)[0]).fit(near(9))


# ------------------------------------------------------------------ parameter objects


def test_names():
    for name, kernel_class in NAMES.items():
        assert KERNELS[name] is kernel_class
        assert type(as_kernel(name)) is kernel_class


@pytest.mark.parametrize("kernel_class", NAMES.values())
def test_clone_params_pickle_and_repr(kernel_class):
    X = matrices(9) if kernel_class is LogEuclidean else near(9)
    kernel = kernel_class().fit(X)
    expected = kernel(X)
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(X), expected)
    assert repr(clone(kernel)) == repr(kernel) == f"{kernel_class.__name__}()"
    assert not clone(kernel).__sklearn_is_fitted__()
    np.testing.assert_array_equal(clone(kernel).fit(X)(X), expected)
    if kernel_class is HermitianLinear:
        assert kernel.get_params() == {}
        return
    assert kernel.get_params() == {"sigma": "mean"}
    resolved = kernel.resolved()
    assert resolved.sigma == kernel.sigma_
    if kernel_class is not ComplexGaussian:  # which takes its mean from the data too
        close(clone(resolved)(X), expected, 1e-14)
    kernel.set_params(sigma=2.0)
    assert not kernel.__sklearn_is_fitted__()
    close(kernel.fit(X)(X), expected ** (resolved.sigma / 2) ** 2)


def test_an_unfitted_complex_gaussian_takes_the_mean_of_the_first_argument():
    X, Y = near(9), near(6, seed=1)
    close(ComplexGaussian(SIGMA)(X, Y), ComplexGaussian(SIGMA).fit(X)(X, Y), 1e-15)


def test_a_tied_mean_warns():
    triangle = np.array([0, 2, 1 + 1j * np.sqrt(3)])
    with pytest.warns(UserWarning, match="extrinsic mean is not defined"):
        ComplexGaussian(1.0).fit([triangle, triangle.conj()])


# ------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize("kernel_class", DEFINITE)
def test_support_vector_machines_take_them(kernel_class):
    X, y = three_leaves(60, spread=0.15)
    new, truth = three_leaves(60, seed=2, spread=0.15)
    X, new = in_form(X, "flat"), in_form(new, "flat")
    kernel = kernel_class(0.5).fit(X)
    model = SVC(kernel=kernel).fit(X, y)
    gram = SVC(kernel="precomputed").fit(kernel(X), y)
    np.testing.assert_array_equal(model.predict(new), gram.predict(kernel(new, X)))
    assert model.score(new, truth) > 0.8
    if kernel_class is not ComplexGaussian:  # not fitted: it is called with what it gets
        plain = SVC(kernel=kernel_class(0.5)).fit(X, y)
        np.testing.assert_array_equal(plain.predict(new), model.predict(new))


def test_grid_search_over_the_scale():
    X, y = three_leaves(60, spread=0.15)
    for form in ("complex", "points", "flat"):
        model = KernelRidgeRegressionClassifier(VeroneseWhitney())
        search = GridSearchCV(model, {"kernel__sigma": [0.001, 0.5, 1000.0]}, cv=3)
        search.fit(in_form(X, form), y)
        assert search.best_params_ == {"kernel__sigma": 0.5}
        assert search.best_estimator_.kernel_.sigma_ == 0.5
    A, labels = two_kinds_of_matrices()
    search = GridSearchCV(
        KernelRidgeRegressionClassifier(LogEuclidean()), {"kernel__sigma": [0.001, 1.0]}, cv=3
    )
    assert search.fit(A, labels).best_params_ == {"kernel__sigma": 1.0}
    flat = GridSearchCV(SVC(kernel=VeroneseWhitney(0.5)), {"kernel__sigma": [0.001, 0.5]}, cv=3)
    assert flat.fit(in_form(X, "flat"), y).best_params_ == {"kernel__sigma": 0.5}


# ------------------------------------------------------------------ real data


def test_leaves():
    X = load_or_skip("passiflora").data[::25]
    kernel = VeroneseWhitney().fit(X)
    gram = kernel(X)
    assert smallest_eigenvalue(gram) > -1e-14
    close(kernel(moved(X[..., 0] + 1j * X[..., 1])), gram)
    assert kernel.sigma_ == pytest.approx(
        np.sqrt(np.mean(procrustes_distance(X, kind="extrinsic") ** 2)), rel=1e-12
    )
