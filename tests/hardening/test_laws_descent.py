"""Laws of iterations: objectives never get worse.

For every positive definite kernel. EM with Karcher means does not maximise the likelihood exactly,
which may fall by less than the tolerance. The Hebbian algorithm is stochastic: with small steps the
captured variance grows in every pass.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from laws_product import DTYPES, KERNELS, WITHOUT_PREIMAGES, examples, fitted, on_sphere, sample
from orthodrome import GeodesicMixture, HypersphericalKMeans, KernelKMeans
from orthodrome.coordinates import isometric_coordinates
from orthodrome.eigen.pursuit import projection_pursuit
from orthodrome.gram import DenseGram
from orthodrome.preimage import karcher_mean_preimage
from orthodrome.sphere import karcher_mean
from orthodrome.sphere.nested import fit_subsphere

seeds, dtypes = st.integers(0, 2**16), st.sampled_from(DTYPES)


def definite():
    """Return positive definite kernels with real values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of indefinite kernels
        fits = {name: clone(each).fit(sample(name).X) for name, each in KERNELS.items()}
    return [n for n, each in fits.items() if each.positive_definite and n != "HermitianLinear"]


DEFINITE = definite()
WITH_PREIMAGES = [name for name in DEFINITE if name not in WITHOUT_PREIMAGES]


def assert_falls(values, dtype=np.float64, scale=None):
    """Check that values do not rise, except by rounding of terms of this size."""
    values = np.asarray(values, dtype=np.float64)
    scale = float(np.abs(values).max()) if scale is None else scale
    assert np.all(np.diff(values) <= 64 * np.finfo(dtype).eps * scale)


@examples(40)
@given(
    st.sampled_from([("flat", name) for name in DEFINITE])
    | st.sampled_from([("intrinsic", name) for name in DEFINITE])
    | st.sampled_from([("preimage", name) for name in WITH_PREIMAGES]),
    seeds,
    dtypes,
)
def test_inertia_never_rises(kind_and_kernel, seed, dtype):
    kind, name = kind_and_kernel
    options = {"init": "random", "n_init": 1, "random_state": seed}
    given = sample(name, 40, seed, dtype)
    if kind == "flat":
        model = KernelKMeans(7, clone(KERNELS[name]), **options)
        scale = float(clone(KERNELS[name]).fit(given.X).diag(given.X).sum())
    else:
        model = HypersphericalKMeans(7, on_sphere(name), centers=kind, **options)
        scale = 40.0
    model = fitted(model, given)
    inertias = [entry["inertia"] for entry in model.history_]
    assert_falls(inertias, dtype, scale)
    assert inertias[-1] == model.inertia_


COVARIANCES, UPDATES = ["full", "diag", "tied", "spherical"], ["karcher", "likelihood"]


@examples(40)
@given(
    st.sampled_from(COVARIANCES), st.sampled_from(UPDATES), st.sampled_from(DEFINITE), seeds, dtypes
)
def test_likelihood_never_falls(covariance, update, name, seed, dtype):
    tol = 1e-6
    model = GeodesicMixture(
        3,
        2,
        on_sphere(name),
        covariance_type=covariance,
        mean_update=update,
        init_params="random",
        n_init=1,
        reg_covar=1e-3,
        tol=tol,
        max_iter=60,
        random_state=seed,
    )
    model = fitted(model, sample(name, 40, seed, dtype))
    values = np.array([entry["log_likelihood"] for entry in model.history_])
    again = np.array([bool(entry["reseeded"]) for entry in model.history_])
    gains = np.diff(values)[~again[1:]]  # an empty component is restarted
    least = 1e-10 if update == "likelihood" else tol
    assert np.all(gains >= -least * (1 + np.abs(values).max()))
    assert model.lower_bound_ == values.max()


def gram_of(name, n, seed, dtype):
    X = sample(name, n, seed, dtype).X
    return DenseGram(on_sphere(name).fit(X)(X))


@examples(30)
@given(st.sampled_from(DEFINITE), seeds, dtypes)
def test_karcher_means_only_go_down(name, seed, dtype):
    gram = gram_of(name, 15, seed, dtype)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():  # points may be far apart
        warnings.simplefilter("ignore", UserWarning)
        found = karcher_mean(gram, rng.random(15) + 0.1, initial=np.eye(15)[0], tol=0)
    assert_falls([entry["objective"] for entry in found.history], dtype, np.pi**2)


COUNTS = (1, 2, 3, 5, 10, 100)


def coordinates(name, n, seed):
    return isometric_coordinates(gram_of(name, n, seed, np.float64)).points


def preimages(name, seed, count):
    with warnings.catch_warnings():  # few iterations
        warnings.simplefilter("ignore", UserWarning)
        X = sample(name, 15, seed).X
        return karcher_mean_preimage(on_sphere(name), X, max_iter=count).objective


def directions(name, seed, count):
    Y = coordinates(name, 15, seed)
    Y -= Y.mean(axis=0)
    p = (1.0, 1.4, 2.0)[seed % 3]
    return -projection_pursuit(Y, np.ones(15), 1, p=p, max_iter=count).dispersions[0]


def subspheres(name, seed, count):
    Y = coordinates(name, 9, seed)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    if Y.shape[1] < 3:
        Y = np.pad(Y, [(0, 0), (0, 3 - Y.shape[1])])
    w = np.random.default_rng(seed).random(9) + 0.1
    p, great = (1.0, 1.5, 2.0)[seed % 3], bool(seed % 2)
    return fit_subsphere(Y, w, p=p, great=great, max_iter=count).objective


@pytest.mark.parametrize("objective", [preimages, directions, subspheres])
@examples(15)
@given(st.data(), seeds)
def test_more_iterations_are_never_worse(objective, data, seed):
    name = data.draw(st.sampled_from(WITH_PREIMAGES if objective is preimages else DEFINITE))
    assert_falls([objective(name, seed, count) for count in COUNTS])
