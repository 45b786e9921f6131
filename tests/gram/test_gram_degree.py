"""The graph of a Gram matrix: weights, isolated and nearly isolated points, new points."""

import numpy as np
import pytest

from orthodrome.gram import Degree, DenseGram
from orthodrome.gram.tiled import TiledGram
from orthodrome.kernels import Gaussian

N = 60


def points(n=N, dtype=np.float64):
    return np.random.default_rng(5).standard_normal((n, 3)).astype(dtype)


def gaussian(X, Y=None, sigma=1.0):
    Y = X if Y is None else Y
    return np.exp(-np.square(X[:, None] - Y).sum(axis=-1) / (2 * sigma**2))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_largest_own_share_makes_the_graph_semidefinite(sigma, weighted):
    K = gaussian(points(), sigma=sigma)
    K = np.block([[K, np.zeros((N, 1))], [np.zeros((1, N)), np.ones((1, 1))]])  # one is isolated
    w = 1.0 + np.arange(N + 1) % 3 if weighted else np.ones(N + 1)
    w[-1] = 1.0
    graph = Degree(DenseGram(K), w)
    share = graph.largest_own_share()
    assert share == pytest.approx(np.max(1 / graph.degrees[:-1]))
    graph.shift = share
    assert np.linalg.eigvalsh(graph.toarray())[0] > -1e-12
    if sigma == 5.0:
        assert share < 0.1
    assert Degree(DenseGram(np.eye(3))).largest_own_share() == 0
    assert Degree(DenseGram(np.diag([1e300, 1e300]) + 1e-200)).largest_own_share() == np.inf


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_points_are_distinguished_unless_all_similarities_are_equal(weighted, dtype):
    w = 1.0 + np.arange(N) % 3 if weighted else np.ones(N)

    def distinct(K):
        return Degree(DenseGram(K.astype(dtype)), w).distinguishes_points()

    for value in (1e-3, 0.7, 1e6):
        assert not distinct(np.full((N, N), value))
    assert distinct(gaussian(points()))
    angles = 2 * np.pi * np.arange(N) / N  # rows of one sum, where weights are equal
    assert distinct(gaussian(np.column_stack([np.cos(angles), np.sin(angles)])))
    assert distinct(np.full((N, N), 0.9) + 0.1 * np.eye(N))
    # equal row sums on average, but different similarities
    uneven = 1 + 0.3 * np.outer(angles - angles @ w / w.sum(), np.ones(N))
    assert distinct((uneven + uneven.T) / 2 - np.diag(np.diagonal(uneven) - 1))


def test_null_vectors_of_the_similarities_are_found():
    """Eigenvectors that differ only between copies of a point; the oracle is vᵀ Δ^-½ K Δ^-½ v."""
    K = gaussian(np.repeat(points(20), 3, axis=0))
    graph = Degree(DenseGram(K))
    values, vectors = np.linalg.eigh(graph.toarray())
    scaled = vectors * graph.inverse_roots[:, None]
    held = np.einsum("ij,ij->j", scaled, K @ scaled) > 1e-10
    assert np.count_nonzero(held) == 20
    np.testing.assert_array_equal(graph.held_by_matrix(vectors, values), held)


@pytest.mark.parametrize("weighted", [False, True])
def test_all_points_nearly_isolated(weighted):
    """Also with weights of nearly 1, for which w - 1 is tiny."""
    K = gaussian(300 * points(300)) + 1e-9 * gaussian(points(300))
    np.fill_diagonal(K, 1.0)
    w = np.where(np.arange(300) % 2, 1.0, 1 + 1e-7) if weighted else np.ones(300)
    A = K - np.diag(np.diagonal(K))
    degrees = A @ w + (w - 1)
    expected = (A + np.diag(1 - 1 / w)) * np.sqrt(np.outer(w, w) / np.outer(degrees, degrees))
    graph = Degree(DenseGram(K), w)
    np.testing.assert_allclose(graph.degrees, degrees, rtol=1e-13)
    V = np.random.default_rng(0).standard_normal((300, 3))
    np.testing.assert_allclose(graph @ V, expected @ V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(graph.toarray(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_products_of_degrees_may_underflow_or_overflow(scale):
    K = gaussian(points())
    graph, plain = Degree(DenseGram(scale * K)), Degree(DenseGram(K))
    np.testing.assert_allclose(graph.toarray(), plain.toarray(), rtol=1e-12)
    np.testing.assert_allclose(graph @ np.eye(N), plain.toarray(), atol=1e-13)
    cross = graph.cross(scale * K[:4]).toarray()
    np.testing.assert_allclose(cross, plain.cross(K[:4]).toarray(), rtol=1e-12)


def test_rounding_errors_of_degrees():
    """0.1 + 0.2 - 0.3 is 5.6e-17, by rounding alone; float32 matrices are summed in float64."""
    for sign in (1, -1):
        K = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
        K[0, 1:] = K[1:, 0] = sign * np.array([0.1, 0.2, -0.3])
        assert Degree(DenseGram(K)).degrees[0] == 0
    graph = Degree(DenseGram(np.full((3000, 3000), 0.1, dtype=np.float32)))
    np.testing.assert_allclose(graph.degrees, 2999 * float(np.float32(0.1)), rtol=1e-14)


SIGNED = (points() - points().mean(axis=0)) @ (points() - points().mean(axis=0)).T
SUMS = SIGNED.sum(axis=1) - np.diagonal(SIGNED)
ROW = int(np.argmax(SUMS < 0))
FRACTIONS = np.where(np.arange(N) < 7, 1.0, 1e-3)
FEW = int(np.argmax(gaussian(points()) @ FRACTIONS < 1))
SMALL = np.array([[1.0, -0.1, 0.0], [-0.1, 1.0, 0.5], [0.0, 0.5, 1.0]])


@pytest.mark.parametrize(
    ("K", "options", "message"),
    [
        (SIGNED, {}, rf"degree of row {ROW}, .*is {SUMS[ROW]:.4g} \(one of \d+ below 0\).*Gauss"),
        (SIGNED, {"row_numbers": np.arange(N) + 100}, f"degree of row {ROW + 100},"),
        (gaussian(points()), {"sample_weight": FRACTIONS}, f"row {FEW}, .*weights below 1"),
        (SMALL, {"uncertainty": [0.05, 0.2, 0.2]}, r"row 0, .*, is -0.1 \(one of 1 below 0\)"),
        (np.eye(N), {"sample_weight": np.ones(3)}, r"sample_weight of Degree .* shape \(60,\)"),
        (np.eye(N), {"sample_weight": -np.ones(N)}, "sample_weight of Degree must not be negative"),
        (np.full((5, 5), 1e308), {}, "overflow in float64"),
    ],
    ids=["signs", "numbers", "fractions", "uncertain", "shape", "negative", "overflow"],
)
def test_invalid_input(K, options, message):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        Degree(DenseGram(K, check=False), **options)


def test_negative_degrees_within_their_uncertainty_are_zero():
    graph = Degree(DenseGram(SMALL), uncertainty=np.full(3, 0.2))
    np.testing.assert_allclose(graph.degrees, [0.0, 0.4, 0.5], rtol=1e-15)


@pytest.mark.parametrize("storage", ["memory", "recompute"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 1e-4)])
def test_points_with_hardly_any_neighbours(storage, dtype, tolerance):
    """Similarities down to 1e-30 of k(x, x), which subtracting k(x, x) would destroy."""
    X = np.concatenate([points(), [[9.0, 0, 0], [0, -10.0, 0], [0, 0, 11.0]]]).astype(dtype)
    A = gaussian(X.astype(np.float64)) - np.eye(len(X))
    roots = np.sqrt(A.sum(axis=1))
    expected = A / roots[:, None] / roots
    graph = Degree(TiledGram(Gaussian(sigma=1.0).fit(X), X, storage))
    assert graph.degrees.min() < 1e-8
    assert graph.degrees == pytest.approx(A.sum(axis=1), rel=2e-3, abs=1e-8)
    V = np.random.default_rng(0).standard_normal((len(X), 3)).astype(dtype)
    # exp multiplies the rounding errors of large distances by about ten
    np.testing.assert_allclose(graph.toarray(), expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(graph @ V, graph.toarray() @ V, rtol=0, atol=tolerance)
