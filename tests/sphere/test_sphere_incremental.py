"""The mean and the moments of Log maps, from batches that are read once."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from orthodrome.coordinates import anchor_coordinates, choose_anchors
from orthodrome.kernels import Gaussian
from orthodrome.sphere import distance, karcher_mean, log
from orthodrome.sphere.incremental import TangentMoments


def cap(n=300, m=6, width=1.0, seed=0):
    """Unit vectors within about `width` of the first axis, and lengths in (0.7, 1]."""
    rng = np.random.default_rng(seed)
    t = width * rng.uniform(-1, 1, size=(n, m - 1)) * np.linspace(1, 0.4, m - 1) / np.sqrt(m)
    angles = np.linalg.norm(t, axis=1, keepdims=True)
    return np.hstack([np.cos(angles), np.sinc(angles / np.pi) * t]), rng.uniform(0.7, 1, n)


def pole(m=6):
    return np.eye(m)[0]


def naive(f, w, lengths):
    """Mean, covariance, total and size of terms, with all rows and one at a time."""
    mean = karcher_mean(f, w, tol=1e-14).point
    covariance, total, size = np.zeros((len(mean), len(mean))), 0.0, 0.0
    for row, weight, length in zip(f, w / w.sum(), lengths, strict=True):
        z = log(row, base_point=mean)
        angle = np.linalg.norm(z)
        covariance += weight * np.outer(z, z)
        total += weight * np.arccos(length * np.cos(angle)) ** 2
        size += weight * (angle / np.sin(angle)) ** 2
    return mean, covariance, total, size


def moments_of(f, w=None, lengths=None, *, base, cuts=(), **options):
    moments = TangentMoments.at(base, **options)
    for rows in np.split(np.arange(len(f)), cuts):
        part = [None if array is None else array[rows] for array in (w, lengths)]
        moments = moments.with_batch(f[rows], *part)
    return moments


@pytest.mark.parametrize("offset", [0.0, 0.3, 1.2])
def test_a_sample_of_all_rows_is_exact(offset):
    f, lengths = cap()
    w = np.random.default_rng(1).uniform(0, 3, len(f))
    base = np.cos(offset) * pole() + np.sin(offset) * np.eye(6)[2]
    found = moments_of(f, w, lengths, base=base, cuts=[100]).origin()
    mean, covariance, total, size = naive(f, w, lengths)
    np.testing.assert_allclose(found.point, mean, atol=1e-10)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-10)
    assert found.total == pytest.approx(total, rel=1e-10)
    assert found.term_size == pytest.approx(size, rel=1e-10)
    assert found.attributes["mean_drift_"] == pytest.approx(distance(base, mean), abs=1e-10)
    assert found.converged is True
    assert found.attributes["mean_gradient_norm_"] <= 1e-12


def test_covariance_of_near_points_and_of_float32():
    f, lengths = cap(n=4000, width=1e-6)
    found = moments_of(f, base=pole(), sample_size=500).origin()
    _, covariance, _, _ = naive(f, np.ones(len(f)), lengths)
    np.testing.assert_allclose(found.covariance, covariance, rtol=0, atol=1e-8 * covariance.max())
    f, _ = cap(n=2000)
    single = moments_of(f.astype(np.float32), base=pole(), sample_size=300)
    assert single.plain.dtype == single.sample.vectors.dtype == np.float64
    double = moments_of(f, base=pole(), sample_size=300).origin()
    np.testing.assert_allclose(single.origin().covariance, double.covariance, atol=1e-7)


@pytest.mark.parametrize("cuts", [[1], [2, 3, 250], [0, 64, 64, 299], list(range(1, 300))])
def test_batches_do_not_matter(cuts):
    f, lengths = cap()
    w = np.random.default_rng(1).integers(0, 3, len(f)).astype(float)
    whole, split = (
        moments_of(f, w, lengths, base=pole(), cuts=c, sample_size=50) for c in ([], cuts)
    )
    assert split.n_seen == 300
    for name in ("vectors", "weights", "lengths", "threshold"):
        np.testing.assert_array_equal(getattr(split.sample, name), getattr(whole.sample, name))
    for name in ("plain", "stretched", "scaled"):
        np.testing.assert_allclose(getattr(split, name), getattr(whole, name), rtol=0, atol=1e-12)
    a, b = split.origin(), whole.origin()
    np.testing.assert_allclose(a.point, b.point, atol=1e-11)
    np.testing.assert_allclose(a.covariance, b.covariance, atol=1e-11)
    assert a.total == pytest.approx(b.total, rel=1e-10)


def test_shares_are_unbiased():
    """The mean over 400 seeds is 0.6926, with a standard error of 0.0015; 0.6897 is right.

    The fraction of the sample is 0.33, that of its weights 0.91.
    """
    f = np.tile(pole(), (200, 1))
    w = np.where(np.arange(200) < 20, 20.0, 1.0)
    marks = np.where(np.arange(200) < 20, 1.0, 0.5)  # lengths, by which rows are known again
    means = []
    for seed in range(400):
        sample = moments_of(f, w, marks, base=pole(), sample_size=60, seed=seed).sample
        means.append(sample.normalized_weights @ (sample.lengths == 1.0))
    assert np.mean(means) == pytest.approx(400 / 580, abs=0.01)
    assert np.mean(sample.lengths == 1.0) < 0.5


def test_invalid_rows():
    for weights in (np.zeros(5), np.zeros(0)):
        moments = TangentMoments.at(pole()).with_batch(cap(n=len(weights))[0], weights)
        assert moments.count == 0
        with pytest.raises(ValueError, match="weight 0"):
            moments.origin()
    f, _ = cap(n=5)
    f[3] = -pole()
    with pytest.raises(ValueError, match=r"row 3.* antipodal to the base point"):
        moments_of(f, base=pole())


def errors(origin, f, lengths):
    """Relative error of eight eigenvalues, the angle of the means, relative error of the total."""
    exact = karcher_mean(f, tol=1e-12)
    z = log(f, base_point=exact.point)
    right, found = (np.linalg.eigvalsh(c)[-8:] for c in (z.T @ z / len(f), origin.covariance))
    total = np.mean(np.arccos(np.clip(exact.cosines * lengths, -1, 1)) ** 2)
    angle = float(distance(origin.point, exact.point))
    return np.abs(found / right - 1).max(), angle, abs(origin.total / total - 1)


@pytest.fixture(scope="module")
def digits():
    """Features of unit length by 64 anchors, their lengths before, and the rows."""
    X = load_digits().data / 16
    kernel = Gaussian(sigma=2.0).fit(X)
    anchors = choose_anchors(kernel, X, 64, random_state=0)
    features = anchor_coordinates(kernel, X, anchors, unit=True)
    return features.toarray(), np.sqrt(features.captured), X


# The largest errors over six seeds, in this order: eigenvalues, angle, total. All 1,797 digits are
# in a sample of 2,048: there the errors are of rounding.
@pytest.mark.parametrize(
    ("order", "size", "measured"),
    [
        ("shuffled", 512, (2.0e-3, 7.9e-5, 7.7e-5)),
        ("shuffled", 2048, (1e-12, 1e-11, 1e-12)),
        ("sorted", 512, (6.3e-3, 7.0e-5, 8.3e-5)),
        ("sorted", 2048, (1e-12, 1e-11, 1e-12)),
    ],
)
def test_accuracy_for_sorted_and_shuffled_rows(digits, order, size, measured):
    f, lengths, X = digits
    first = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X)) if order == "shuffled" else np.argsort(X @ first)
    base = karcher_mean(f[rows][: len(X) // 10]).point
    origin = moments_of(f[rows], None, lengths[rows], base=base, sample_size=size).origin()
    assert origin.converged
    assert (origin.attributes["mean_drift_"] > 0.2) == (order == "sorted")
    assert np.all(np.array(errors(origin, f, lengths)) <= 1.5 * np.array(measured))


@pytest.mark.parametrize(("n", "size"), [(1, 10), (100, 1), (100, 10), (100, 2048)])
def test_equal_rows(n, size):
    row, half = np.array([0.6, 0.8, 0.0]), np.full(n, 0.5)
    for base in (row, np.eye(3)[0]):
        origin = moments_of(np.tile(row, (n, 1)), None, half, base=base, sample_size=size).origin()
        np.testing.assert_allclose(origin.point, row, atol=1e-14)
        np.testing.assert_allclose(origin.covariance, 0, atol=1e-14)
        assert origin.total == pytest.approx(np.arccos(0.5) ** 2)
        assert origin.term_size == pytest.approx(1)
        assert origin.attributes["mean_drift_"] == pytest.approx(distance(base, row), abs=1e-14)
        assert origin.converged
