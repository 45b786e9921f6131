"""Landmarks and matrices in every estimator, in pipelines, searches and pre-images."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier

from laws_persist import ESTIMATORS, assert_same_answers, outputs
from orthodrome import KernelPGA
from orthodrome.kernels import ComplexGaussian, Embedded, Gaussian, LogEuclidean, VeroneseWhitney
from orthodrome.spaces import (
    spd_log,
    symmetric_vectors,
)

pytestmark = pytest.mark.filterwarnings("ignore:The points take up:UserWarning")

CLASSES = np.repeat([0, 1, 2], 10)


def kites(seed=0):
    """Return three classes of five landmarks, at any place, size and rotation."""
    rng = np.random.default_rng(seed)
    base = np.array([0, 2, 2.5 + 1j, 1 + 2j, -0.5 + 1j])
    kinds = np.stack([base, base.real + 1.6j * base.imag, base + np.array([0, 0, 1, 0, 0])])
    noise = 0.08 * (rng.standard_normal((30, 5)) + 1j * rng.standard_normal((30, 5)))
    z = (kinds[CLASSES] + noise) * np.exp(1j * rng.uniform(0, 6, (30, 1)))
    z = z * rng.uniform(0.5, 2, (30, 1)) + rng.standard_normal((30, 1))
    return np.stack([z.real, z.imag], axis=-1)


def covariances(seed=0):
    """Return three classes of 3 x 3 matrices."""
    rng = np.random.default_rng(seed)
    samples = rng.standard_normal((30, 3, 40)) * (1 + 0.8 * CLASSES)[:, None, None]
    samples[:, 0] += 0.7 * CLASSES[:, None] * samples[:, 1]
    return samples @ samples.transpose(0, 2, 1) / 40


def log_vectors(X):
    return symmetric_vectors(spd_log(X))


DATA = {
    "shapes": (VeroneseWhitney(), kites),
    "shapes, complex": (ComplexGaussian(), kites),
    "matrices": (LogEuclidean(), covariances),
    "embedded": (Embedded(log_vectors, Gaussian()), covariances),
}
every_space = pytest.mark.parametrize(("kernel", "make"), DATA.values(), ids=list(DATA))


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, CLASSES)


@every_space
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name, kernel, make):
    X, new = make(), make(seed=1)
    model = fit(ESTIMATORS[name](kernel), X)
    assert model.n_features_in_ == np.prod(X.shape[1:]) or isinstance(kernel, Embedded)
    found = outputs(model, new, False)
    assert_same_answers(outputs(pickle.loads(pickle.dumps(model)), new, False), found, 0.0)
    if hasattr(model, "embedding_") and hasattr(model, "transform"):
        np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-4)
        assert np.all(np.isfinite(found["transform"]))
    elif hasattr(model, "labels_"):
        np.testing.assert_array_equal(np.unique(model.labels_), [0, 1, 2])
        assert set(found["predict"]) <= {0, 1, 2}
    elif is_classifier(model):
        assert model.score(X, CLASSES) > 0.8
        assert model.score(new, CLASSES) > 0.7


def test_flat_rows_are_matrices_in_every_estimator():
    A = covariances()
    flat = A.reshape(len(A), -1)
    from_rows, from_matrices = (KernelPGA(2, kernel="log_euclidean").fit(X) for X in (flat, A))
    np.testing.assert_array_equal(from_rows.transform(A), from_matrices.transform(flat))
    with pytest.raises(ValueError, match=r"Matrix 2 of X is not symmetric"):
        KernelPGA(2, kernel="log_euclidean").fit(np.eye(9)[[0, 4, 1]] + np.eye(3).ravel())
    with pytest.raises(ValueError, match=r"square matrices, shape \(n, d, d\); got shape \(4, 5\)"):
        KernelPGA(2, kernel="log_euclidean").fit(np.ones((4, 5)))
