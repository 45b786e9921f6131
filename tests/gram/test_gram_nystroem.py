"""Partial Cholesky factors, and features from anchors."""

import re

import numpy as np
import pytest
from scipy.stats import chi2

from orthodrome._core.kinds import is_memory_map
from orthodrome.coordinates import anchor_coordinates, choose_anchors, partial_cholesky
from orthodrome.coordinates import anchors as anchors_module
from orthodrome.coordinates.blocks import AnchorMap
from orthodrome.coordinates.pivots import pivot_rows
from orthodrome.gram import DenseGram, gram_operator
from orthodrome.kernels import Gaussian, Linear, Normalized, Polynomial, Power, Sigmoid

every_way = pytest.mark.parametrize("way", ["rpcholesky", "uniform", "k-means++", "auto"])


def clustered(n=600, d=4, seed=0):
    """One large group and a few small ones, far apart: uniform draws miss the small ones."""
    rng = np.random.default_rng(seed)
    sizes = np.array([n - 8 * 10, *[10] * 8])
    centers = 6.0 * rng.standard_normal((len(sizes), d))
    return np.repeat(centers, sizes, axis=0) + 0.3 * rng.standard_normal((n, d))


def spread(n=600, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def gram_of(X, kernel=None):
    return gram_operator((kernel or Gaussian()).fit(X), X)


def factored(gram, way="rpcholesky", max_rank=1000, random_state=0, **options):
    return partial_cholesky(
        gram, max_rank=max_rank, pivots=way, random_state=random_state, **options
    )


def features_of(kernel, X, anchors, **options):
    return anchor_coordinates(kernel, X, anchors, **options).toarray()


with_zeros = spread(200)
with_zeros[[3, 40, 41]] = 0.0


@every_way
@pytest.mark.parametrize(
    ("kernel", "X", "rank"),
    [
        (Gaussian(), spread(200), 30),
        (Linear(), spread(200), 3),
        (Linear(), with_zeros, 2),
        (Polynomial(degree=2), spread(200), 10),
        (Linear(), spread(80, d=20), 20),
    ],
    ids=["gaussian", "linear", "zeros", "polynomial", "wide"],
)
def test_the_factor_equals_the_dense_formula(way, kernel, X, rank):
    """The oracle is K_nm K_mm⁻¹ K_mn, and the diagonal of the residual."""
    gram = gram_of(X, kernel)
    K = gram.toarray()
    found = factored(gram, way, max_rank=2 if X is with_zeros else 30)
    S, size = found.pivots, K.diagonal().max()
    projected = K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)], rcond=1e-13, hermitian=True) @ K[S]
    np.testing.assert_allclose(found.factor @ found.factor.T, projected, atol=1e-9 * size)
    left = np.diagonal(K - found.factor @ found.factor.T)
    np.testing.assert_allclose(found.residual, left, atol=1e-12 * size)
    assert np.all(found.residual[~X.any(axis=1)] == 0)
    assert found.trace_error == pytest.approx(left.sum() / K.trace(), abs=1e-12)
    assert len(set(S)) == len(S) == found.factor.shape[1] == rank
    # the residual is positive semidefinite
    assert np.linalg.eigvalsh(K - found.factor @ found.factor.T)[0] > -1e-12 * K.trace()


@every_way
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_the_tolerance_is_reached_with_the_fewest_pivots(way, tol):
    gram = gram_of(spread(300))
    found = factored(gram, way, tol=tol)
    assert found.trace_error <= tol
    before = factored(gram, found.pivots[:-1])
    assert before.trace_error > tol
    # the first columns are the factor of the first pivots
    np.testing.assert_array_equal(before.pivots, found.pivots[:-1])
    np.testing.assert_allclose(before.factor[:, :40], found.factor[:, :-1][:, :40], atol=1e-10)
    left = np.diagonal(gram.toarray() - found.factor @ found.factor.T)
    np.testing.assert_allclose(found.residual, left, atol=1e-12)


def test_blocks_draw_the_pivots_that_one_by_one_would():
    """Rejection makes the distribution exact: that of the second pivot, by χ², in 2,000 draws.

    Three pairs of nearly equal rows: without rejection a block would take both.
    """
    Y = np.array([[1, 0, 0], [1, 0.1, 0], [0, 2, 0], [0, 2, 0.1], [0, 0, 1.5], [0.1, 0, 1.5]])
    K = DenseGram(Y @ Y.T)
    d = K.diagonal()
    expected = np.zeros(6)
    for first in range(6):
        left = d - K.toarray()[first] ** 2 / d[first]
        left[first] = 0
        expected += d[first] / d.sum() * left / left.sum()
    # a rank of 12 makes blocks of three
    drawn = [factored(K, max_rank=12, random_state=seed).pivots[1] for seed in range(2000)]
    counts = np.bincount(drawn, minlength=6)
    statistic = float(np.sum((counts - 2000 * expected) ** 2 / (2000 * expected)))
    assert statistic < chi2.ppf(0.999, df=5)


@pytest.mark.parametrize("way", ["rpcholesky", "k-means++"])
@pytest.mark.parametrize("max_rank", [5, 60])
def test_weights_are_repeated_rows(way, max_rank):
    X, kernel = spread(80), Gaussian(sigma=1.0)
    weights = np.random.default_rng(1).integers(0, 4, size=80)
    rows = np.repeat(np.arange(80), weights)
    weighted = factored(gram_of(X, kernel), way, max_rank, sample_weight=weights)
    repeated = factored(gram_of(X[rows], kernel), way, max_rank)
    np.testing.assert_array_equal(weighted.pivots, rows[repeated.pivots])
    assert weighted.trace_error == pytest.approx(repeated.trace_error, rel=1e-9)


@pytest.mark.parametrize(
    ("kernel", "X", "rank"),
    [
        (Linear(), spread(60, d=3), 3),
        (Polynomial(degree=2), spread(60, d=2), 6),
        (Gaussian(), np.repeat(spread(7), 9, axis=0), 7),
        (Linear(), np.vstack([np.zeros((5, 3)), spread(20, d=3)]), 3),
        (Linear(), np.zeros((20, 3)), 1),
    ],
    ids=["linear", "polynomial", "copies", "zero rows", "all zero"],
)
@every_way
def test_anchors_are_independent_and_exact_for_kernels_of_low_rank(kernel, X, rank, way):
    kernel = kernel.fit(X)
    for count in (len(X) - 1, len(X), 10 * len(X)):
        anchors = choose_anchors(kernel, X, count, anchors=way, random_state=0)
        assert len(anchors.points) == rank
        F = features_of(kernel, X, anchors)
        np.testing.assert_allclose(F @ F.T, kernel(X), atol=1e-9 * kernel.diag(X).max())


def test_given_rows_and_given_points():
    X = spread(50)
    kernel = Gaussian().fit(X)
    rows = choose_anchors(kernel, X, 5, anchors=[3, 1, 4, 1, -1])
    assert sorted(rows.indices) == [1, 3, 4, 49]
    points = choose_anchors(kernel, X, 5, anchors=X[[3, 1, 4, 49]])
    assert points.indices is None
    one, other = (features_of(kernel, X, given) for given in (rows, points))
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-13)
    assert len(choose_anchors(kernel, X, 5, anchors=spread(9, seed=5)).points) == 9
    for wrong in (spread(9, d=2), [[1.0, 2.0, 3.0], [1.0]]):
        with pytest.raises(ValueError, match=r"^Anchors must be .* points like the rows of X: "):
            choose_anchors(kernel, X, 5, anchors=wrong)


def test_more_rows_than_candidates(monkeypatch):
    """Anchors are chosen among rows drawn by weight, never among rows of weight 0."""
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


def round_group(n=3000, d=16, seed=0):
    return spread(n, d, seed) * np.linspace(2, 0.2, d)


def uneven_by_definition(kernel, X, anchors):
    """E(r²)/E(r)² of the residuals r of all rows that are not anchors, from the whole matrix."""
    K, S = kernel(X), anchors.indices
    residual = np.diagonal(K - K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S]))
    others = np.delete(residual, S)
    return np.mean(others**2) / np.mean(others) ** 2


@pytest.mark.parametrize(
    ("X", "way"),
    [(round_group(), "uniform"), (clustered(3000), "rpcholesky")],
    ids=["one round group", "small groups"],
)
def test_auto_draws_uniformly_where_that_is_as_good(X, way):
    kernel = Gaussian().fit(X)
    for seed in range(3):
        found, repeated, uniform, pivots = (
            choose_anchors(kernel, X, 96, anchors=anchors, random_state=seed)
            for anchors in ("auto", "auto", "uniform", "rpcholesky")
        )
        assert found.choice.startswith(f"{way}: residuals are uneven by a factor of ")
        np.testing.assert_array_equal(found.indices, repeated.indices)
        assert np.array_equal(found.indices, pivots.indices) == (way == "rpcholesky")
        assert (uneven_by_definition(kernel, X, uniform) > 3) == (way == "rpcholesky")


def test_auto_draws_by_residual_among_equal_rows():
    X = np.tile(round_group(100), (10, 1))
    kernel = Gaussian().fit(X)
    found = choose_anchors(kernel, X, 60, anchors="auto", random_state=0)
    assert re.fullmatch(r"rpcholesky: only \d+ of 60 uniform .* are independent", found.choice)
    assert len(np.unique(found.indices % 100)) == 60


@pytest.mark.parametrize("n", [1000, 2500])
def test_auto_keeps_uniform_anchors_if_a_few_are_drawn_twice(n):
    X = round_group(n)
    found = choose_anchors(Gaussian().fit(X), X, 300, anchors="auto", random_state=0)
    assert found.choice.startswith("uniform: ")
    assert len(found.indices) >= 270
    w = np.repeat([1.0, 2.0], n // 2)
    both = [
        choose_anchors(Gaussian().fit(X), Y, 300, anchors="auto", sample_weight=v, random_state=0)
        for Y, v in ((X, w), (np.repeat(X, w.astype(int), axis=0), None))
    ]
    np.testing.assert_array_equal(both[0].points, both[1].points)


def test_auto_does_not_look_at_rows_of_weight_0():
    X = round_group(200)
    weights = np.repeat([1.0, 0.0], [20, 180])
    found = choose_anchors(
        Gaussian().fit(X), X, 60, anchors="auto", sample_weight=weights, random_state=0
    )
    assert sorted(found.indices) == list(range(20))
    X[100:] = 0.0  # cannot be normalised
    weights[:100] = 1.0
    kernel = Normalized("linear").fit(X[:100])
    found = choose_anchors(kernel, X, 8, anchors="auto", sample_weight=weights, random_state=0)
    assert found.indices.max() < 100


@pytest.mark.parametrize("anchors", ["auto", "rpcholesky", "uniform", [5, 17, 250]])
def test_errors_name_the_row_of_the_caller(anchors, monkeypatch):
    monkeypatch.setattr("orthodrome.coordinates.anchors._CANDIDATES", 100)
    X = spread(300)
    kernel = Normalized("linear").fit(X)
    X[17:200] = 0.0
    with pytest.raises(ValueError, match="cannot normalise row") as caught:
        choose_anchors(kernel, X, 80, anchors=anchors, random_state=0)
    assert 17 <= int(re.search(r"row (\d+)", str(caught.value))[1]) < 200


def test_auto_finds_every_small_group():
    X = clustered(6000)  # the small groups are the last 80 rows, ten each
    kernel = Gaussian(sigma=2.0).fit(X)
    for seed in range(5):
        found = choose_anchors(kernel, X, 40, anchors="auto", random_state=seed).indices
        assert set((found[found >= 5920] - 5920) // 10) == set(range(8))


def test_auto_ignores_rows_of_weight_0():
    X = np.vstack([round_group(2000), 50.0 + clustered(1000, d=16)])
    kernel, weights = Gaussian(sigma=5.0).fit(X), np.repeat([1.0, 0.0], [2000, 1000])
    found = choose_anchors(kernel, X, 96, anchors="auto", sample_weight=weights, random_state=0)
    assert found.choice.startswith("uniform: ")
    assert found.indices.max() < 2000


@pytest.mark.parametrize("max_rank", [1, 5, 100, 700])
def test_pivots_without_the_last_columns(max_rank):
    gram = gram_of(clustered())
    found = pivot_rows(gram, "rpcholesky", max_rank, np.ones(600), np.random.default_rng(3))
    expected = factored(gram, max_rank=max_rank, random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(found, expected.pivots)


def test_errors_and_the_choice_of_storage():
    X = spread(300)
    with pytest.raises(ValueError, match=r"not positive definite .* without anchors"):
        choose_anchors(Power(beta=1.0).fit(X), X, 30)
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


@pytest.mark.parametrize("storage", ["memory", "recompute"])
def test_blocks_of_single_precision_are_summed_in_double(storage, monkeypatch):
    monkeypatch.setattr(AnchorMap, "rows_at_once", 1)
    X = np.ones((9, 1), dtype=np.float32)
    X[0] = 2**24  # one more is rounded away in float32
    kernel = Linear().fit(X)
    anchors = choose_anchors(kernel, X, 1, anchors=[1])
    features = anchor_coordinates(kernel, X, anchors, storage=storage)
    assert features.combine(np.ones(9, dtype=np.float32)).tolist() == [2**24 + 8]
    assert features.combine(np.ones((9, 2), dtype=np.float32)).shape == (2, 1)


def test_values_at_given_anchors_are_checked():
    X = np.array([[1.0], [2.0], [3.0]])
    kernel = Sigmoid(gamma=0.1, coef0=-1.0).fit(X)
    with pytest.raises(ValueError, match=r"not positive definite on these data \(at anchor 0\)"):
        choose_anchors(kernel, X, 2, anchors=[0, 1])


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_automatic_anchors_of_any_scale_and_few_weights(scale):
    X = scale * np.random.default_rng(0).standard_normal((3000, 100))
    kernel = Linear().fit(X)
    found = choose_anchors(kernel, X, 50, anchors="auto", random_state=0)
    assert found.choice.startswith("uniform: residuals")
    assert len(found.points) == 50
    w = np.zeros(3000)
    w[:10] = 1.0
    found = choose_anchors(kernel, X, 50, anchors="auto", sample_weight=w, random_state=0)
    assert sorted(found.indices) == list(range(10))
