"""k-means in feature space and on its sphere: oracles, starts, shapes and matrices."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from laws_cluster import blobs, same_partition
from laws_kmeans import algorithm_2, cloud, estimator, every_kind
from laws_shapes import matrices, near, three_leaves
from laws_shapes import two_kinds_of_matrices as two_kinds
from laws_sphere import DTYPES
from orthodrome import HypersphericalKMeans, KernelKMeans
from orthodrome.kernels import (
    ComplexGaussian,
    Embedded,
    FullProcrustes,
    Gaussian,
    Linear,
    LogEuclidean,
    RiemannianShape,
    VeroneseWhitney,
)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(3))
def test_linear_kernel_is_ordinary_k_means(seed, dtype, weighted):
    X, new = cloud(150, seed=seed, dtype=dtype), cloud(30, seed=9, dtype=dtype)
    w = np.random.default_rng(seed).uniform(0.5, 2, 150) if weighted else None
    init = X[np.random.default_rng(seed).choice(150, 5, replace=False)]
    plain = KMeans(5, init=init, n_init=1, tol=0, algorithm="lloyd").fit(
        X.astype(np.float64), sample_weight=w
    )
    model = KernelKMeans(5, kernel=Linear(), init=init).fit(X, sample_weight=w)
    assert same_partition(model.labels_, plain.labels_)
    tol = 1e-10 if dtype is np.float64 else 1e-5
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=tol)
    both = [np.concatenate([m.labels_, m.predict(new.astype(m_type))]) for m, m_type in
            ((model, dtype), (plain, np.float64))]  # fmt: skip
    assert same_partition(*both)
    found = np.sort(model.transform(new), axis=1)
    expected = np.sort(plain.transform(new.astype(np.float64)), axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 if dtype is np.float64 else 2e-3)
    assert model.transform(new).dtype == dtype


@every_kind
def test_given_centers(kind):
    X = cloud(100)
    init = X[[3, 20, 50, 77]]
    model = estimator(kind, 4, init=init, random_state=0).fit(X)
    for seed in (1, None):
        other = estimator(kind, 4, init=init.tolist(), random_state=seed, n_init=9).fit(X)
        np.testing.assert_array_equal(other.labels_, model.labels_)
    far = estimator(kind, 4, init=X[[3, 3, 3, 3]] + 50 * np.eye(4, 3)).fit(X)
    assert set(far.labels_) == {0, 1, 2, 3}


def test_starts_in_the_bounding_box():
    X = blobs(150) + np.array([10, 0, -5])
    options = {"init": "bounding-box", "n_init": 10}
    found, expected = (estimator("preimage", **more).fit(X) for more in (options, {}))
    assert same_partition(found.labels_, expected.labels_)
    alone = [estimator("preimage", init="bounding-box", random_state=i).fit(X) for i in range(3)]
    assert len({model.history_[0]["inertia"] for model in alone}) == 3


def test_algorithm_2_without_reseeding():
    """A cluster that loses its points keeps its centre, and ends empty."""
    X = np.array([[-1.8], [-1.7], [-1.0], [1.0], [1.7], [1.8]])
    init = np.array([[-3.2], [0.0], [3.2]])
    labels, _, inertia = algorithm_2(X, 3.0, init)
    options = {"kernel": Gaussian(sigma=3.0), "init": init}
    with pytest.warns(ConvergenceWarning, match="found 2 of n_clusters=3"):
        model = HypersphericalKMeans(3, reseed_empty=False, **options).fit(X)
    assert same_partition(model.labels_, labels)
    assert model.inertia_ == pytest.approx(inertia)
    assert len(HypersphericalKMeans(3, **options).fit(X).cluster_centers_) == 3


def test_kept_center_regains_points():
    """After the first step, the first cluster loses its three points; later it gets others."""
    X = np.array([[-30, 19], [-58, -4], [-68, -43], [36, -2], [-17, 36], [-27, 5], [-2, 20]]) / 10
    X = np.vstack([X, [[-7.6, -1.6], [1.2, 2.1]]])
    init = np.array([[-0.6, -1.7], [-3.8, 3.8], [0.6, 3.5]])
    labels, centers, inertia = algorithm_2(X, 3.0, init)
    model = HypersphericalKMeans(3, Gaussian(sigma=3.0), init=init, reseed_empty=False).fit(X)
    assert same_partition(model.labels_, labels)
    assert model.inertia_ == pytest.approx(inertia)
    found = model.cluster_centers_[np.lexsort(model.cluster_centers_.T)]
    np.testing.assert_allclose(found, centers[np.lexsort(centers.T)], atol=1e-6)


MANIFOLD = [VeroneseWhitney, FullProcrustes, ComplexGaussian, LogEuclidean]
every_manifold = pytest.mark.parametrize("kernel", MANIFOLD)


def kinds_of(kernel):
    """Specimens of a few kinds, their names, and how many there are."""
    if kernel is LogEuclidean:
        return *two_kinds(24), 2
    return *three_leaves(45, spread=0.1), 3


@every_manifold
def test_centers_are_better_than_any_specimen(kernel):
    X, y, k = kinds_of(kernel)
    model = HypersphericalKMeans(k, kernel=kernel(), n_init=3, random_state=0).fit(X)
    assert same_partition(model.labels_, y)
    assert model.converged_
    assert model.cluster_centers_.shape == (k, *X.shape[1:])
    assert model.cluster_centers_.dtype == X.dtype
    angles = np.arccos(model.kernel_(X, model.cluster_centers_))
    np.testing.assert_allclose(model.transform(X), angles, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(angles.argmin(axis=1), model.labels_)
    assert model.inertia_ == pytest.approx(np.sum(angles.min(axis=1) ** 2), rel=1e-9)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9)
    for cluster in range(k):
        members = X[model.labels_ == cluster]
        between = np.arccos(np.clip(model.kernel_(members), -1, 1))
        own = np.sum(angles[model.labels_ == cluster, cluster] ** 2)
        assert own <= np.sum(between**2, axis=1).min()


@pytest.mark.filterwarnings("ignore:RiemannianShape is not positive definite")
def test_kernels_of_specimens_without_preimages():
    shapes, A = near(12, spread=0.3), matrices(12)
    embedded = Embedded(lambda X: X.reshape(len(X), -1), Gaussian(10.0))
    for kernel, X in ((RiemannianShape(), shapes), (embedded, A)):
        message = f"got {type(kernel).__name__}.*intrinsic"
        with pytest.raises(ValueError, match=message):
            HypersphericalKMeans(2, kernel=kernel).fit(X)
        model = HypersphericalKMeans(2, kernel=kernel, centers="intrinsic", random_state=0).fit(X)
        assert model.cluster_centers_.shape == (2, 12)
    with pytest.raises(ValueError, match=r"init='bounding-box' .* needs vectors"):
        HypersphericalKMeans(2, kernel="veronese_whitney", init="bounding-box").fit(shapes)
