"""Data of every kind and scale give the right answer or a clear error, never NaN."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from laws_decomposition import (
    SOLVERS,
    assert_same,
    every_estimator,
    every_solver,
    held_out,
    positive,
    suited,
    training,
    with_zeros,
)
from optional import optional
from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import (
    KERNELS,
    Exponential,
    Gaussian,
    Log,
    Matern,
    Polynomial,
    Power,
    as_kernel,
)
from orthodrome.kernels.extrinsic import DistanceGaussian
from orthodrome.kernels.shapes import ShapeKernel

pd = optional("pandas")

K = 3


# ------------------------------------------------------------------ containers


def read_only(X, folder):
    X = X.copy()
    X.flags.writeable = False
    return X


def memory_map(X, folder):
    X.tofile(folder / "X.bin")
    return np.memmap(folder / "X.bin", dtype=X.dtype, mode="r", shape=X.shape)


CONTAINERS = {
    "list": lambda X, _: X.tolist(),
    "frame": lambda X, _: pd.DataFrame(X),
    "fortran": lambda X, _: np.asfortranarray(X),
    "strided": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X, _: X[::-1].copy()[::-1],
    "read-only": read_only,
    "memory-mapped": memory_map,
    "big-endian": lambda X, _: X.astype(">f8"),
}


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial", "laplacian"])
@every_estimator
def test_containers(Estimator, kernel, tmp_path):
    X, new, before = training(60), held_out(), training(60)
    model = Estimator(K, kernel=suited(kernel, Estimator)).fit(X)
    embedding, coordinates = model.embedding_, model.transform(new)
    for container in CONTAINERS.values():
        given = container(X, tmp_path)
        model.fit(given)
        assert_same(model.transform(given), embedding, 1e-10)
        assert_same(model.transform(new), coordinates, 1e-10)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "cosine", "polynomial", "exponential"])
@every_estimator
def test_sparse_is_dense(Estimator, kernel):
    X, new = with_zeros(training()), with_zeros(held_out())
    kernel = suited(kernel, Estimator)
    dense = Estimator(K, kernel=kernel).fit(X)
    converters = (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array)
    for convert, storage in product(converters, ("memory", "recompute")):
        sparse = Estimator(K, kernel=kernel, storage=storage).fit(convert(X))
        assert_same(sparse.embedding_, dense.embedding_)
        assert_same(sparse.transform(convert(new)), dense.transform(new))
        assert_same(sparse.transform(new), dense.transform(new))
        assert sparse.score(convert(new)) == pytest.approx(dense.score(new), rel=1e-8)


@every_estimator
def test_kernels_without_sparse_data(Estimator):
    for kernel in ("chi2", "precomputed", "additive_chi2"):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            Estimator(K, kernel=kernel).fit(scipy.sparse.csr_array(np.eye(5)))


@every_estimator
def test_other_numbers_become_float64(Estimator):
    X = (training() > 0).astype(np.float64)
    expected = Estimator(K).fit_transform(X)
    for dtype in (np.int64, np.int8, np.uint8, bool, np.float16):
        Z = Estimator(K).fit_transform(X.astype(dtype))
        assert Z.dtype == np.float64
        np.testing.assert_array_equal(Z, expected)


#: Without a positive diagonal, or indefinite in five dimensions.
OFF_THE_SPHERE = {"power", "log", "additive_chi2", "sigmoid", "spherical", "circular", "wave"}
OF_VECTORS = [
    name
    for name, kernel in KERNELS.items()
    if not issubclass(kernel, (ShapeKernel, DistanceGaussian)) and name != "precomputed"
]


@pytest.mark.parametrize("kernel", OF_VECTORS)
@every_estimator
@pytest.mark.filterwarnings("ignore:.*negative eigenvalues")
def test_every_kernel_in_both_precisions(Estimator, kernel):
    if Estimator is KernelPGA and kernel in OFF_THE_SPHERE:
        return
    for solver, weights in product(SOLVERS.values(), (None, np.arange(60) % 4)):
        check_both_precisions(Estimator, solver, weights, kernel)


def check_both_precisions(Estimator, solver, weights, kernel):
    X, p = positive(60)[0], np.ones(60) if weights is None else weights
    p = p / p.sum() if Estimator is KernelPGA else p
    kernel = suited(kernel, Estimator)
    model = Estimator(K, kernel=kernel, **solver).fit(X, sample_weight=weights)
    assert_same(model.transform(X), model.embedding_, 1e-9)
    covariance = (model.embedding_.T * p) @ model.embedding_
    assert_same(covariance, np.diag(model.eigenvalues_), 1e-10)
    assert np.all(p @ model.embedding_**3 > -1e-12)  # the signs
    single = Estimator(K, kernel=kernel, solver=solver["solver"], random_state=0)
    single.fit(X.astype(np.float32), sample_weight=weights)
    own = "sphere_coordinates_" if Estimator is KernelPGA else "intercept_"
    for name in ("eigenvalues_", "eigenvectors_", "embedding_", "dual_coef_", own):
        assert getattr(single, name).dtype == np.float32, name
    assert single.explained_variance_ratio_.dtype == np.float32
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.transform(X).shape == (len(X), K)


# ------------------------------------------------------------------ kernels


@every_estimator
def test_a_kernel_by_name_object_callable_and_matrix(Estimator):
    X, new = training(), held_out()
    kernel, unfitted = Gaussian().fit(X), Gaussian()
    expected = Estimator(K, kernel="gaussian").fit(X).transform(new)
    sigma = kernel.sigma_
    for given_kernel in (unfitted, Gaussian(sigma=sigma), lambda A, B: Gaussian(sigma=sigma)(A, B)):
        model = Estimator(K, kernel=given_kernel).fit(X)
        assert model.kernel is given_kernel
        assert_same(model.transform(new), expected, 1e-10)
    assert not hasattr(unfitted, "sigma_")
    matrix = Estimator(K, kernel="precomputed").fit(kernel(X))
    assert_same(matrix.transform(kernel(new, X)), expected, 1e-10)


@pytest.mark.parametrize("kernel", [Power(1.0), Power(2.0), Log(1.0), Log(2.0)])
@every_solver
def test_conditionally_definite_kernels(solver, kernel):
    """They are positive semidefinite once centred."""
    X = training()
    model = KernelPCA(K, kernel=kernel, **solver).fit(X)
    assert np.all(model.eigenvalues_ > 0)
    assert_same(model.transform(X), model.embedding_)
    assert KernelPCA(kernel=kernel).fit(X).explained_variance_ratio_.sum() == pytest.approx(1.0)
    if kernel.beta == 2.0 and isinstance(kernel, Power):  # -‖x - y‖² centres to 2<x, y>
        linear = KernelPCA(K, kernel="linear", **solver).fit(X)
        assert_same(model.embedding_, np.sqrt(2) * linear.embedding_)


@pytest.mark.filterwarnings("ignore:.*negative eigenvalues")
@every_solver
def test_indefinite_kernels(solver):
    """Components of negative eigenvalues are zero."""
    X = training(n=100)
    sigmoid = KernelPCA(K, kernel="sigmoid", **solver).fit(X)
    assert np.all(np.isfinite(sigmoid.transform(X)))
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((100, 100)))[0]
    matrix = (vectors * np.r_[3.0, 2.0, -np.linspace(1, 50, 98)]) @ vectors.T
    matrix = (matrix + matrix.T) / 2
    model = KernelPCA(5, kernel="precomputed", **solver).fit(matrix)
    assert np.all(np.isfinite(model.embedding_))
    assert model.eigenvalues_[0] > 0
    for zero in (model.eigenvalues_, model.embedding_.T, model.transform(matrix).T):
        np.testing.assert_array_equal(zero[2:], 0)
    negative = KernelPCA(kernel="precomputed", **solver).fit(-np.eye(6))
    np.testing.assert_array_equal(negative.embedding_, np.zeros((6, 1)))
    np.testing.assert_array_equal(negative.explained_variance_ratio_, [0])


# ------------------------------------------------------------------ degenerate data

EVERYWHERE = ["linear", "polynomial", "cosine", "sigmoid"]
EVERYWHERE += ["gaussian", "laplacian", "exponential", "power"]


@pytest.mark.parametrize("kernel", EVERYWHERE)
@every_estimator
def test_constant_data_have_no_components(Estimator, kernel):
    cases = product(SOLVERS.values(), (np.float64, np.float32), (0.0, 0.1, 1.0, 7e5))
    for solver, dtype, value in cases:
        if Estimator is KernelPGA and as_kernel(kernel).fit([[value]]).diag([[value]]) <= 0:
            continue  # on no sphere
        X = np.full((12, 3), value, dtype=dtype)
        model = Estimator(K, kernel=kernel, **solver).fit(X)
        for zero in (model.embedding_, model.transform(X), model.eigenvalues_):
            np.testing.assert_array_equal(zero, 0)
        np.testing.assert_array_equal(model.explained_variance_ratio_, 0)
        assert Estimator(kernel=kernel, **solver).fit(X).n_components_ == 1
        back = model.inverse_transform(model.transform(X[:2]))
        np.testing.assert_allclose(back, X[:2], rtol=10 * np.finfo(dtype).eps)
        if Estimator is KernelPGA:
            np.testing.assert_allclose(model.mean_cosines_, 1.0, rtol=10 * np.finfo(dtype).eps)
            assert model.geodesic_variance_ <= 10 * np.finfo(dtype).eps


FEW = [(KernelPCA, kernel) for kernel in ("gaussian", "linear", "laplacian", "power")]
FEW += [(KernelPGA, kernel) for kernel in ("gaussian", "cosine", "laplacian")]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_points(n):
    for Estimator, kernel in FEW:
        check_few_points(n, Estimator, kernel)


def check_few_points(n, Estimator, kernel):
    X = np.abs(training(n=n))
    model = Estimator(kernel=kernel).fit(X)
    assert model.n_components_ == max(n - 1, 1)
    Z = model.transform(X)
    np.testing.assert_allclose(Z.sum(axis=0), 0, atol=1e-12)
    if n == 2:  # the two ends of a segment, or of an arc, of the feature-space length
        values = model.kernel_(X)
        segment = np.sqrt(values[0, 0] + values[1, 1] - 2 * values[0, 1])
        length = np.arccos(values[0, 1]) if Estimator is KernelPGA else segment
        assert abs(Z[0, 0] - Z[1, 0]) == pytest.approx(length)
    assert np.all(np.isfinite(model.inverse_transform(Z)))
    more = Estimator(4, kernel=kernel).fit(X)
    assert more.n_components_ == n
    np.testing.assert_array_equal(more.transform(X)[:, max(n - 1, 1) :], 0)


@every_solver
@every_estimator
def test_duplicates_and_a_constant_column(Estimator, solver):
    X, new = training(), held_out()
    expected = Estimator(K, **solver).fit(X)

    def widen(A):
        return np.column_stack([A, np.full(len(A), 3.25)])

    wide = Estimator(K, **solver).fit(widen(X))
    assert_same(wide.transform(widen(new)), expected.transform(new))
    twice = Estimator(K, **solver).fit(np.concatenate([X, X]))
    assert_same(twice.transform(new), expected.transform(new))
    assert_same(twice.eigenvalues_, (1 if Estimator is KernelPGA else 2) * expected.eigenvalues_)


@pytest.mark.parametrize("kernel", [Gaussian, Exponential, Matern])
@every_solver
@every_estimator
def test_tiny_sigma(Estimator, solver, kernel):
    """All feature vectors are orthogonal: every eigenvalue is 1, or that times θ²/sin²θ."""
    X = training()
    model = Estimator(K, kernel=kernel(sigma=1e-12), **solver).fit(X)
    cosine = len(X) ** -0.5  # with the mean
    square = np.arccos(cosine) ** 2 / (1 - cosine**2) if Estimator is KernelPGA else 1.0
    unit = len(X) if Estimator is KernelPGA else 1
    np.testing.assert_allclose(model.eigenvalues_, square / unit)
    moments = model.embedding_.T @ model.embedding_
    np.testing.assert_allclose(moments, square * np.eye(K), atol=1e-10)
    assert_same(model.transform(X), model.embedding_)
    assert np.all(np.isfinite(model.transform(held_out())))
    assert np.all(np.isfinite(model.inverse_transform(model.embedding_[:5])))


@every_solver
@every_estimator
def test_huge_sigma(Estimator, solver):
    """Feature vectors that coincide to rounding give zeros and a warning."""
    X = training()
    for sigma, by in ((1e9, solver), (1e12, solver), (1e9, {"solver": "nystroem"})):
        with pytest.warns(UserWarning, match="All components are zero.*smaller scale"):
            model = Estimator(K, kernel=Gaussian(sigma=sigma), **by).fit(X)
        for zero in (model.embedding_, model.eigenvalues_, model.transform(X)):
            np.testing.assert_array_equal(zero, 0)
    # below that it tends to linear PCA
    wide = Estimator(K, kernel=Gaussian(sigma=1e4), **solver).fit(X)
    linear = KernelPCA(K, kernel="linear", **solver).fit(X)
    assert_same(wide.embedding_ * 1e4, linear.embedding_, 1e-3)


SCALE_FREE = ["gaussian", "exponential", "matern", "rational_quadratic", "cosine", "linear"]


@pytest.mark.parametrize("kernel", SCALE_FREE)
@every_solver
@every_estimator
def test_extreme_scales(Estimator, solver, kernel):
    X, new = positive()
    flat = kernel == "linear" and Estimator is KernelPCA
    kernel = suited(kernel, Estimator)
    expected = Estimator(K, kernel=kernel, **solver).fit(X)
    for scale in (1e-150, 1e-100, 1e100, 1e150):
        model = Estimator(K, kernel=kernel, **solver).fit(X * scale)
        found = model.transform(new * scale) / (scale if flat else 1.0)
        assert_same(found, expected.transform(new))
        assert_same(model.explained_variance_ratio_, expected.explained_variance_ratio_)


OVERFLOWS = [
    ("polynomial", 1e120, np.float64),
    (Polynomial(degree=10), 1e6, np.float32),
    ("linear", 1e160, np.float64),
    ("gaussian", 1e160, np.float64),
    ("power", 1e160, np.float64),
]


@pytest.mark.parametrize("n", [60, 1100])  # one tile; several, in threads
@pytest.mark.parametrize(("kernel", "scale", "dtype"), OVERFLOWS)
@every_estimator
def test_overflow_is_a_clear_error(Estimator, kernel, scale, dtype, n):
    X = np.abs(training(n=n)) * scale
    with pytest.raises(ValueError, match=f"(overflows? in {dtype.__name__}|overflows: ).*rescale"):
        Estimator(K, kernel=kernel).fit(X.astype(dtype))


@every_estimator
def test_underflow_is_a_clear_error(Estimator):
    X = training(n=20)
    with pytest.raises(ValueError, match=r"so small, .*squares underflow in float64; rescale"):
        Estimator(K, kernel="linear").fit(X * 1e-155)
    with pytest.raises(ValueError, match=r"so small, .*underflow in float64; rescale"):
        Estimator(K, kernel="precomputed").fit(X @ X.T * 1e-310)


def test_sums_that_overflow_are_a_clear_error():
    message = r"Kernel values or their sums overflow in float64; rescale"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        KernelPCA(2, kernel="precomputed").fit(1e307 * np.eye(50))


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "laplacian"])
@every_estimator
def test_far_from_the_origin(Estimator, kernel):
    X, new = training(), held_out()
    near = Estimator(K, kernel=kernel).fit(X)
    for offset in (1e3, 1e6):
        far = Estimator(K, kernel=kernel).fit(X + offset)
        assert_same(far.transform(new + offset), near.transform(new), 1e-7)


@pytest.mark.filterwarnings("ignore:All components are zero:UserWarning")
@pytest.mark.filterwarnings("ignore:.*outside its open hemisphere:UserWarning")
@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        # scales whose squares underflow are refused, which is another law
        elements=st.floats(-100, 100).map(lambda value: round(value, 9)),
    ),
    kernel=st.sampled_from(["gaussian", "exponential", "linear", "polynomial", "laplacian"]),
    k=st.one_of(st.none(), st.integers(1, 15), st.floats(0.01, 0.99)),
)
@every_estimator
def test_anything_finite_gives_something_finite(Estimator, X, kernel, k):
    if Estimator is KernelPGA and kernel == "linear":
        X = X + 200.0  # no row of zeros, which has no direction
    model = Estimator(k, kernel=suited(kernel, Estimator)).fit(X)
    own = "mean_" if Estimator is KernelPGA else "intercept_"
    for name in ("embedding_", "eigenvalues_", "dual_coef_", own):
        assert np.all(np.isfinite(getattr(model, name)))
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert np.all(model.eigenvalues_ >= 0)
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-6
    size = np.sqrt(np.abs(model.kernel_.diag(X)).max())
    np.testing.assert_allclose(
        model.transform(X), model.embedding_, rtol=0, atol=1e-5 * size + 1e-12
    )


# ------------------------------------------------------------------ errors


@every_estimator
def test_bad_matrices(Estimator):
    for matrix, message in (
        (np.ones((3, 4)), "square"),
        (np.triu(np.ones((4, 4))), r"symmetric; entries \(\d, \d\)"),
        (np.full((4, 4), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            Estimator(2, kernel="precomputed").fit(matrix)
    model = Estimator(2, kernel="precomputed").fit(np.eye(6))
    with pytest.raises(ValueError, match=r"5 features.*6 features"):
        model.transform(np.ones((2, 5)))


BAD_PARAMETERS = [  # OWNER stands for the name of the class
    ({"n_components": 0}, "n_components of OWNER must be an integer >= 1.*got 0"),
    ({"n_components": 1.0}, "n_components of OWNER.*fraction between 0 and 1.*got 1.0"),
    ({"n_components": np.nan}, "n_components of OWNER.*got nan"),
    ({"n_components": "all"}, "n_components of OWNER.*or None; got 'all'"),
    ({"n_components": True}, "n_components of OWNER.*got True"),
    ({"kernel": "nonsense"}, "Unknown kernel 'nonsense' of Kernel.*. Known names: .*gaussian"),
    ({"kernel": 3}, "kernel of Kernel.* must be a Kernel object, a name"),
    ({"kernel": Gaussian}, r"kernel=Gaussian of Kernel.* is a class; write Gaussian\(\)"),
    ({"kernel": Gaussian(sigma=0)}, "sigma of Gaussian must be a finite number > 0; got 0"),
    ({"kernel": Gaussian(sigma="wide")}, "sigma of Gaussian.*'mean' or 'median'; got 'wide'"),
    ({"kernel": lambda A, B: np.ones(3)}, "callable kernel must return the whole block"),
    ({"kernel": lambda A, B: A @ B.T * np.nan}, "not finite real numbers"),
    ({"solver": "arpack"}, "solver of OWNER must be one of 'auto', 'dense', 'krylov'"),
    ({"solver": None}, "solver of Kernel.* must be one of .* or a solver object; got None"),
    ({"tol": -1e-3}, "tol of OWNER must be a finite number >= 0"),
    ({"max_iter": 0}, "max_iter of OWNER must be an integer >= 1"),
    ({"memory_budget": "lots"}, "memory_budget of Kernel.* must be a number of bytes or a string"),
    ({"memory_budget": "2 parsecs"}, "unknown unit 'parsecs'"),
    ({"memory_budget": -1}, "memory_budget of Kernel.* must be finite and at least one byte"),
    ({"storage": "ram"}, "storage of OWNER must be one of 'auto', 'memory'"),
    ({"inverse_alpha": 0.0}, "inverse_alpha of OWNER must be a finite number > 0"),
    ({"n_anchors": 0}, "n_anchors of OWNER must be an integer >= 1; got 0"),
    ({"random_state": "seed"}, "random_state .* got 'seed'"),
    ({"verbose": -1}, "verbose of OWNER must be an integer >= 0"),
]


@every_estimator
def test_bad_parameters(Estimator):
    """Refused by fit, not by the constructor; no fitted attribute is left."""
    for parameters, message in BAD_PARAMETERS:
        check_bad_parameters(Estimator, parameters, message)


def check_bad_parameters(Estimator, parameters, message):
    message = message.replace("OWNER", Estimator.__name__)
    model = Estimator(**{"n_components": 2, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(training())
    left = {name for name in vars(model) if name.endswith("_")}
    assert left <= {"n_features_in_", "feature_names_in_"}  # set by scikit-learn's check of X
    for method in (model.transform, model.inverse_transform, model.score):
        with pytest.raises(NotFittedError):
            method(training())
    if "kernel" not in parameters:
        with pytest.raises(ValueError, match=message):
            model.set_params(kernel="precomputed").fit(np.eye(4))
