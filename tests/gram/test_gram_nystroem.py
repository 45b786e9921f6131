"""Partial Cholesky factors by chosen pivots, and the features that anchors give."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.stats import chi2

from orthodrome._core.kinds import is_memory_map
from orthodrome.coordinates import (
    AnchorMap,
    CoordinateGram,
    CoordinateRows,
    Coordinates,
    anchor_coordinates,
    choose_anchors,
    partial_cholesky,
    pivots,
)
from orthodrome.coordinates import anchors as anchors_module
from orthodrome.eigen import CenteredSums
from orthodrome.gram import DenseGram, TiledGram, gram_operator
from orthodrome.kernels import Gaussian, Linear, Polynomial, Power, Precomputed, VeroneseWhitney
from orthodrome.rows import ArrayRows

WAYS = ("rpcholesky", "uniform", "k-means++")
every_way = pytest.mark.parametrize("way", WAYS)
every_storage = pytest.mark.parametrize("storage", ["memory", "disk", "recompute"])


def clustered(n=600, d=4, seed=0):
    """One large group and a few small ones, far apart: uniform draws miss the small ones."""
    rng = np.random.default_rng(seed)
    sizes = np.array([n - 8 * 10, *[10] * 8])
    centers = 6.0 * rng.standard_normal((len(sizes), d))
    return np.repeat(centers, sizes, axis=0) + 0.3 * rng.standard_normal((n, d))


def spread(n=600, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def heavy_tailed(n=600, d=3, seed=0):
    return np.random.default_rng(seed).standard_t(2.0, size=(n, d))


DATA = {"clustered": clustered, "spread": spread, "heavy tailed": heavy_tailed}


def gram_of(X, kernel=None):
    return gram_operator((kernel or Gaussian()).fit(X), X)


# ------------------------------------------------------------------ the factor


@every_way
@pytest.mark.parametrize("kernel", [Gaussian(), Linear(), Polynomial(degree=2)])
def test_the_factor_is_that_of_the_pivots(way, kernel):
    """The oracle is dense: K_nm K_mm⁻¹ K_mn, and the diagonal of what is left."""
    gram = gram_of(spread(200), kernel)
    K = gram.toarray()
    found = partial_cholesky(gram, max_rank=30, pivots=way, random_state=0)
    S = found.pivots
    projected = K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)], rcond=1e-13, hermitian=True) @ K[S]
    size = K.diagonal().max()
    np.testing.assert_allclose(found.factor @ found.factor.T, projected, atol=1e-9 * size)
    left = np.diagonal(K - found.factor @ found.factor.T)
    np.testing.assert_allclose(found.residual, left, atol=1e-12 * size)
    assert found.trace_error == pytest.approx(left.sum() / K.trace(), abs=1e-12)
    assert len(set(S)) == len(S) == found.factor.shape[1]
    # what is left is positive semidefinite
    assert np.linalg.eigvalsh(K - found.factor @ found.factor.T)[0] > -1e-12 * K.trace()


@every_way
def test_the_first_columns_are_the_factor_of_the_first_pivots(way):
    gram = gram_of(spread(300))
    found = partial_cholesky(gram, max_rank=90, pivots=way, random_state=1)
    fewer = partial_cholesky(gram, max_rank=90, pivots=found.pivots[:40])
    np.testing.assert_array_equal(fewer.pivots, found.pivots[:40])
    np.testing.assert_allclose(fewer.factor, found.factor[:, :40], atol=1e-10)


@every_way
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_the_tolerance_is_reached_with_no_pivot_to_spare(way, tol):
    gram = gram_of(spread(300))
    found = partial_cholesky(gram, max_rank=300, tol=tol, pivots=way, random_state=0)
    assert found.trace_error <= tol
    before = partial_cholesky(gram, max_rank=300, pivots=found.pivots[:-1])
    assert before.trace_error > tol
    left = np.diagonal(gram.toarray() - found.factor @ found.factor.T)
    np.testing.assert_allclose(found.residual, left, atol=1e-12)


def mean_count(gram, tol, way, n_seeds):
    return np.mean(
        [
            len(partial_cholesky(gram, max_rank=600, tol=tol, pivots=way, random_state=s).pivots)
            for s in range(n_seeds)
        ]
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("tol", [0.01, 0.001])
def test_random_pivots_take_no_more_rows_than_uniform_ones(data, tol, seed):
    gram = gram_of(data(seed=seed))
    random, uniform = (mean_count(gram, tol, way, 5) for way in ("rpcholesky", "uniform"))
    assert random <= uniform


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("tol", [0.1, 0.05])
def test_at_loose_tolerances_heavy_tails_are_the_exception(tol, seed):
    """Outliers draw the first pivots, and each of them holds little but itself.

    Uniform rows, from the bulk, then need fewer: about one in five to nine.
    """
    gram = gram_of(heavy_tailed(seed=seed))
    random, uniform = (mean_count(gram, tol, way, 40) for way in ("rpcholesky", "uniform"))
    assert uniform < random < uniform + 1.5


def test_far_fewer_on_clustered_data():
    X = clustered(n=1500)
    gram = gram_of(X, Gaussian(sigma=2.0))
    random, uniform = (
        len(partial_cholesky(gram, max_rank=1500, tol=0.03, pivots=way, random_state=0).pivots)
        for way in ("rpcholesky", "uniform")
    )
    assert 4 * random < uniform


def test_blocks_draw_the_pivots_that_one_by_one_would():
    """Rejection makes the distribution exact: that of the second pivot, by χ², in 2,000 draws.

    Three groups of two rows that coincide nearly: without rejection a block would take both.
    """
    Y = np.array([[1, 0, 0], [1, 0.1, 0], [0, 2, 0], [0, 2, 0.1], [0, 0, 1.5], [0.1, 0, 1.5]])
    K = DenseGram(Y @ Y.T)
    d = K.diagonal()
    expected = np.zeros(6)
    for first in range(6):
        left = d - K.toarray()[first] ** 2 / d[first]
        left[first] = 0
        expected += d[first] / d.sum() * left / left.sum()
    seen = np.zeros(6)
    for seed in range(2000):
        # a rank of 12 makes blocks of three, of which the first two that pass are looked at
        found = partial_cholesky(K, max_rank=12, random_state=seed)
        seen[found.pivots[1]] += 1
    statistic = float(np.sum((seen - 2000 * expected) ** 2 / (2000 * expected)))
    assert statistic < chi2.ppf(0.999, df=5)


def test_proposals_have_thresholds_below_what_is_left_of_them():
    """So the first of a block is always taken, and no row is proposed for ever."""
    left = np.array([0.0, 1.0, 0.5])
    rows, thresholds = pivots._by_what_is_left(np.ones(3), 200, np.random.default_rng(0))(left)
    assert set(rows) == {1, 2}
    parts = thresholds / left[rows]
    assert np.all((parts >= 0) & (parts < 1))
    assert 0.4 < parts.mean() < 0.6


def test_k_means_plus_plus_draws_by_the_squared_distance():
    """Two of a hundred points lie far off: nearly every second draw takes one of them."""
    X = np.random.default_rng(0).standard_normal((100, 2))
    X[:2] += 100.0
    gram = gram_of(X, Polynomial(degree=1, gamma=1.0, coef0=1.0))
    both = 0
    for seed in range(50):
        rows = partial_cholesky(gram, max_rank=2, pivots="k-means++", random_state=seed).pivots
        both += np.count_nonzero(rows < 2) == 1
    assert both >= 47


@pytest.mark.parametrize("rank", [1, 3, 20])
@every_way
def test_low_rank_is_found_and_no_more(way, rank):
    Y = np.random.default_rng(0).standard_normal((80, rank))
    found = partial_cholesky(DenseGram(Y @ Y.T), max_rank=80, pivots=way, random_state=0)
    assert found.factor.shape == (80, rank)
    assert found.trace_error < 1e-12


@every_way
def test_copies_are_never_taken(way):
    X = np.repeat(spread(20), 10, axis=0)
    found = partial_cholesky(gram_of(X), max_rank=200, pivots=way, random_state=0)
    assert len(np.unique(X[found.pivots], axis=0)) == len(found.pivots)
    if way != "uniform" or len(found.pivots) == 20:
        assert found.trace_error < 1e-11


@pytest.mark.parametrize("way", ["rpcholesky", "k-means++"])
@pytest.mark.parametrize("max_rank", [5, 60])
def test_weights_are_repeated_rows(way, max_rank):
    X = spread(80)
    weights = np.random.default_rng(1).integers(0, 4, size=80)
    rows = np.repeat(np.arange(80), weights)
    kernel = Gaussian(sigma=1.0)
    options = {"max_rank": max_rank, "pivots": way, "random_state": 3}
    weighted = partial_cholesky(gram_of(X, kernel), sample_weight=weights, **options)
    repeated = partial_cholesky(gram_of(X[rows], kernel), **options)
    np.testing.assert_array_equal(weighted.pivots, rows[repeated.pivots])
    assert weighted.trace_error == pytest.approx(repeated.trace_error, rel=1e-9)


@every_way
def test_rows_of_weight_zero_are_not_taken(way):
    weights = (np.arange(100) % 3 > 0).astype(float)
    found = partial_cholesky(
        gram_of(spread(100)), max_rank=100, pivots=way, sample_weight=weights, random_state=0
    )
    assert np.all(weights[found.pivots] > 0)


def test_float32_is_factored_in_float64_and_stops_at_its_rounding():
    X = spread(200).astype(np.float32)
    found = partial_cholesky(gram_of(X), max_rank=200, random_state=0)
    K = gram_of(X.astype(np.float64)).toarray()
    assert found.factor.dtype == np.float64
    np.testing.assert_allclose(found.factor @ found.factor.T, K, atol=2e-5)


def test_the_same_seed_gives_the_same_pivots():
    gram = gram_of(spread(100))
    for seed in (3, np.random.RandomState(3), np.random.default_rng(3)):
        one = partial_cholesky(gram, max_rank=10, random_state=seed)
        assert len(one.pivots) == 10
    again = [partial_cholesky(gram, max_rank=10, random_state=3).pivots for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_only_the_rows_proposed_are_looked_at():
    class Watched(TiledGram):
        seen = 0

        def rows(self, indices):
            self.seen += len(indices)
            return super().rows(indices)

        def toarray(self):
            raise AssertionError("the whole matrix was made")

        def _matmat(self, V):
            raise AssertionError("a product with the whole matrix was made")

    X = spread(2000)
    gram = Watched(Gaussian().fit(X), X, "recompute")
    found = partial_cholesky(gram, max_rank=40, random_state=0)
    assert len(found.pivots) == 40
    assert gram.seen < 4 * 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_rank": 0}, "max_rank of partial_cholesky must be an integer >= 1"),
        ({"max_rank": 2, "tol": -1}, "tol of partial_cholesky must be a finite number >= 0"),
        ({"max_rank": 2, "pivots": "farthest"}, "Anchors must be 'rpcholesky', 'uniform'"),
        ({"max_rank": 2, "pivots": [0, 100]}, "rows of 100 points, 0 to 99; got 100"),
        ({"max_rank": 2, "pivots": [0, -101, 100]}, "rows of 100 points, 0 to 99; got -101"),
        ({"max_rank": 2, "pivots": [0.5]}, "must be integers in one dimension"),
        ({"max_rank": 2, "pivots": []}, "at least one"),
        ({"max_rank": 2, "random_state": "x"}, "random_state of partial_cholesky"),
        ({"max_rank": 2, "sample_weight": -np.ones(100)}, "must not be negative"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        partial_cholesky(gram_of(spread(100)), **arguments)


# ------------------------------------------------------------------ anchors and features


@every_way
@every_storage
@pytest.mark.parametrize("unit", [False, True])
def test_features_and_products_by_the_dense_formula(way, storage, unit):
    X = spread(700)
    kernel = Gaussian(sigma=2.0).fit(X)
    anchors = choose_anchors(kernel, X, 40, anchors=way, random_state=0)
    found = anchor_coordinates(kernel, X, anchors, unit=unit, storage=storage)
    S = anchors.indices
    K = kernel(X)
    root = scipy.linalg.sqrtm(np.linalg.inv(K[np.ix_(S, S)]))
    F = K[:, S] @ root  # K_nm K_mm^(-1/2): the same inner products
    np.testing.assert_allclose(found.captured, (F**2).sum(axis=1), atol=1e-8)
    F = F / np.linalg.norm(F, axis=1)[:, None] if unit else F
    ours = found.toarray()
    np.testing.assert_allclose(ours @ ours.T, F @ F.T, atol=1e-8)
    V = np.random.default_rng(0).standard_normal((found.shape[1], 3))
    w = np.random.default_rng(1).random(700)
    np.testing.assert_allclose(found.apply(V), ours @ V, atol=1e-9)
    np.testing.assert_allclose(found.combine(w), w @ ours, atol=1e-8)
    shift = ours.mean(axis=0)
    weighted = Coordinates(found.rows.zip(weights=w), found.by)
    moment = weighted.reduce(CenteredSums(shift))[2]
    np.testing.assert_allclose(moment, (ours - shift).T @ (w[:, None] * (ours - shift)), atol=1e-9)
    if unit:
        np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0, rtol=1e-13)


def test_lengths_are_measured_in_passing():
    """Without unit length and without storage, the first second moment is the only pass."""
    looked = []

    class Watched(AnchorMap):
        def look(self, rows, *known):
            looked.append(rows.shape[0])
            return super().look(rows, *known)

    X, w = spread(300), np.random.default_rng(1).random(300)
    kernel = Gaussian().fit(X)
    anchors = choose_anchors(kernel, X, 20, random_state=0)
    by = Watched.by(kernel, anchors, X.dtype, unit=False, radius=None)
    points = Coordinates(ArrayRows.of(X).zip(weights=w), by).kept("recompute", "2GiB")
    measured = points.reduce(CenteredSums(np.zeros(points.shape[1])))[-1]
    assert sum(looked) == 300
    np.testing.assert_allclose(measured, w @ points.captured, rtol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "X", "rank"),
    [
        (Linear(), spread(60, d=3), 3),
        (Polynomial(degree=2), spread(60, d=2), 6),
        (Gaussian(), np.repeat(spread(7), 9, axis=0), 7),
        (Linear(), np.vstack([np.zeros((5, 3)), spread(20, d=3)]), 3),
    ],
    ids=["linear", "polynomial", "copies", "zero rows"],
)
@every_way
def test_anchors_are_independent_and_hold_a_kernel_of_low_rank(kernel, X, rank, way):
    kernel = kernel.fit(X)
    for count in (len(X) - 1, len(X), 10 * len(X)):
        anchors = choose_anchors(kernel, X, count, anchors=way, random_state=0)
        assert len(anchors.points) == rank
        F = anchor_coordinates(kernel, X, anchors).toarray()
        np.testing.assert_allclose(F @ F.T, kernel(X), atol=1e-9 * kernel.diag(X).max())


def test_given_rows_and_given_points():
    X = spread(50)
    kernel = Gaussian().fit(X)
    rows = choose_anchors(kernel, X, 5, anchors=[3, 1, 4, 1, -1])
    assert sorted(rows.indices) == [1, 3, 4, 49]
    points = choose_anchors(kernel, X, 5, anchors=X[[3, 1, 4, 49]])
    assert points.indices is None
    one, other = (anchor_coordinates(kernel, X, given).toarray() for given in (rows, points))
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-13)
    foreign = choose_anchors(kernel, X, 5, anchors=spread(9, seed=5))
    assert len(foreign.points) == 9
    with pytest.raises(ValueError, match=r"3 features|features"):
        choose_anchors(kernel, X, 5, anchors=spread(9, d=2))


def test_precomputed_sparse_and_shapes():
    X = spread(90)
    kernel = Gaussian(sigma=1.5).fit(X)
    K = kernel(X)
    given = Precomputed().fit(K)
    options = {"anchors": "rpcholesky", "random_state": 2}
    ours, theirs = (
        choose_anchors(kernel, X, 20, **options),
        choose_anchors(given, K, 20, **options),
    )
    np.testing.assert_array_equal(np.sort(ours.indices), np.sort(theirs.indices))
    one, other = anchor_coordinates(kernel, X, ours), anchor_coordinates(given, K, theirs)
    np.testing.assert_allclose(
        one.toarray() @ one.toarray().T, other.toarray() @ other.toarray().T, atol=1e-10
    )
    with pytest.raises(ValueError, match="must be numbers of rows"):
        choose_anchors(given, K, 5, anchors=X[:3])
    sparse = scipy.sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    from_sparse, from_dense = (
        anchor_coordinates(kernel, data, choose_anchors(kernel, data, 20, **options)).toarray()
        for data in (sparse, sparse.toarray())
    )
    np.testing.assert_allclose(from_sparse, from_dense, atol=1e-9)
    shapes = np.random.default_rng(0).standard_normal((40, 6, 2))
    shape_kernel = VeroneseWhitney()
    shapes = shape_kernel.validate(shapes)
    shape_kernel.fit_validated(shapes)
    F = anchor_coordinates(shape_kernel, shapes, choose_anchors(shape_kernel, shapes, 40)).toarray()
    np.testing.assert_allclose(F @ F.T, shape_kernel(shapes), atol=1e-9)


def test_float32_features_are_float32():
    X = spread(400).astype(np.float32)
    kernel = Gaussian(sigma=2.0).fit(X)
    anchors = choose_anchors(kernel, X, 300, random_state=0)
    features = anchor_coordinates(kernel, X, anchors)
    assert features.dtype == features.toarray().dtype == np.float32
    F = features.toarray().astype(float)
    np.testing.assert_allclose(F @ F.T, kernel(X.astype(float)), atol=1e-3)


def test_blocks_of_single_precision_are_summed_in_double(monkeypatch):
    monkeypatch.setattr(AnchorMap, "rows_at_once", 1)
    X = np.ones((9, 1), dtype=np.float32)
    X[0] = 2**24  # one more is rounded away in float32
    kernel = Linear().fit(X)
    for storage in ("memory", "recompute"):
        features = anchor_coordinates(
            kernel, X, choose_anchors(kernel, X, 1, anchors=[1]), storage=storage
        )
        assert features.by.rows_at_once == 1
        assert features.combine(np.ones(9, dtype=np.float32)).tolist() == [2**24 + 8]
        assert features.combine(np.ones((9, 2), dtype=np.float32)).shape == (2, 1)


def test_more_rows_than_candidates(monkeypatch):
    """Anchors come from a part of the rows, drawn with the weights; those of weight 0 never."""
    monkeypatch.setattr(anchors_module, "_CANDIDATES", 64)
    monkeypatch.setattr(anchors_module, "_CANDIDATES_PER_ANCHOR", 4)
    X = clustered()
    kernel = Gaussian(sigma=2.0).fit(X)
    weights = np.where(np.arange(600) < 300, 0.0, 1.0 + np.arange(600) % 2)
    anchors = choose_anchors(kernel, X, 30, sample_weight=weights, random_state=0)
    assert len(anchors.points) <= 30
    assert anchors.indices.min() >= 300
    np.testing.assert_array_equal(X[anchors.indices], anchors.points)
    rows = np.repeat(np.arange(600), weights.astype(int))
    repeated = choose_anchors(kernel, X[rows], 30, random_state=0)
    np.testing.assert_array_equal(rows[repeated.indices], anchors.indices)


def test_what_is_not_positive_definite_is_refused():
    X = spread(30)
    kernel = Power(beta=1.0).fit(X)
    with pytest.raises(ValueError, match=r"not positive definite .* without anchors"):
        choose_anchors(kernel, X, 30)
    with pytest.raises(ValueError, match="not positive definite"):
        pivots.independent_part(np.array([[1.0, 2.0], [2.0, 1.0]]), 1e-12)
    with pytest.raises(ValueError, match="overflow"):
        pivots.independent_part(np.array([[np.inf]]), 1e-12)


def test_storage_and_span_messages():
    X = spread(300)
    kernel = Gaussian(sigma=1e-3).fit(X)
    anchors = choose_anchors(kernel, X, 5, random_state=0)
    with pytest.raises(ValueError, match=r"Row \d+ of X is orthogonal to all anchors"):
        anchor_coordinates(kernel, X, anchors, unit=True)
    with pytest.raises(ValueError, match="storage='memory' does not fit: the features take"):
        anchor_coordinates(kernel, X, anchors, storage="memory", memory_budget="1KiB")
    assert anchor_coordinates(kernel, X, anchors, memory_budget="1KiB").recomputes
    kept = anchor_coordinates(kernel, X, anchors)
    assert not kept.recomputes
    assert not is_memory_map(kept.rows.array)
    assert is_memory_map(anchor_coordinates(kernel, X, anchors, storage="disk").rows.array)


def test_all_zero_data_have_zero_features():
    X = np.zeros((20, 3))
    kernel = Linear().fit(X)
    for count in (5, 50):
        features = anchor_coordinates(kernel, X, choose_anchors(kernel, X, count, random_state=0))
        assert not features.toarray().any()


@every_way
def test_rows_of_zero_are_left_as_they_are(way):
    X = spread(60)
    X[[3, 40, 41]] = 0.0
    gram = gram_of(X, Linear())
    found = partial_cholesky(gram, max_rank=2, pivots=way, random_state=0)
    K = gram.toarray()
    left = np.diagonal(K - found.factor @ found.factor.T)
    np.testing.assert_allclose(found.residual, left, atol=1e-12 * K.max())
    assert np.all(found.residual[[3, 40, 41]] == 0)
    assert found.trace_error == pytest.approx(left.sum() / K.trace(), rel=1e-10)


@every_storage
def test_the_matrix_of_features_says_whether_they_are_recomputed(storage):
    X = spread(40)
    kernel = Gaussian().fit(X)
    anchors = choose_anchors(kernel, X, 5, random_state=0)
    gram = CoordinateGram(anchor_coordinates(kernel, X, anchors, storage=storage))
    assert gram.recomputes == (storage == "recompute")


def test_anchors_of_unlike_lengths_are_refused():
    X = np.eye(3)
    with pytest.raises(ValueError, match=r"^Anchors must be .* or points of the data: X of Gaus"):
        choose_anchors(Gaussian(sigma=1.0).fit(X), X, 2, anchors=[[1.0, 2.0, 3.0], [1.0]])


def test_new_points_of_a_precomputed_kernel_have_features():
    X = np.random.default_rng(0).normal(size=(12, 3))
    K = Gaussian(sigma=2.0)(X, X)
    found = [
        anchor_coordinates(kernel, data, choose_anchors(kernel, data, 5, anchors=np.arange(5)))
        for kernel, data in ((Gaussian(sigma=2.0).fit(X), X), (Precomputed(), K))
    ]
    ours, given = (each.of(new).toarray() for each, new in zip(found, (X[:4], K[:4]), strict=True))
    np.testing.assert_allclose(ours, given, atol=1e-12)
    rows = CoordinateRows(found[0])
    np.testing.assert_array_equal(rows.rows([3, 1]), found[0].toarray()[[3, 1]])
