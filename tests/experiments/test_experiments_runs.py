"""Experiments on small data, compared with plain computations."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from experiment_scripts import experiment_modules
from orthodrome import HypersphericalKMeans, KernelPCA, NestedSpheresClassifier
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.denoising import SequenceDenoiser
from orthodrome.eigen import hebbian
from orthodrome.kernels import Gaussian, Linear, Normalized
from orthodrome.metrics import clustering_error, neighborhood_preservation
from orthodrome.sphere import nested_spheres
from real_data import load_or_skip


@pytest.fixture
def modules(request):
    """The modules that a test's mark names."""
    with experiment_modules(*request.param) as found:
        yield found


def uses(*names):
    return pytest.mark.parametrize("modules", [names], indirect=True, ids=[names[0]])


# ---------------------------------------------------------------------------- KHA


def small_problem(common):
    """A problem of 90 points and 3 components."""
    X = np.random.default_rng(0).standard_normal((90, 6)) * np.array([5, 3, 2, 1, 1, 1])
    return common.Problem.of(Linear(), X, 3)


@uses("kha.common", "kha.usps")
def test_kha_errors_and_gains(modules):
    common = modules.common
    problem = small_problem(common)
    values = np.linalg.eigvalsh(problem.operator.matrix)[::-1]
    assert problem.minimal == pytest.approx(np.linalg.norm(values[3:]), rel=1e-9)
    assert problem.excess(problem.exact) == pytest.approx(0, abs=1e-9)
    options = {"gain": "et", "eta0": 1e-3}
    *_, last = common.followed(problem, (1, 4, 6), 1, options)
    more = {"start": "paper", "eigenvalue_updates": "pass", "random_state": 1, **options}
    whole = hebbian(problem.operator, 3, n_passes=6, tol=0.0, polish=False, **more)
    np.testing.assert_allclose(last, whole.coefficients, rtol=1e-9)
    tuned = common.tuned(problem, "KHA/et", 4, (0, 1))["eta0"]
    place = common.grid_index(tuned)
    near = {
        index: common.geometric_mean(
            common.errors(problem, 4, (0, 1), gain="et", eta0=common.grid_value(index))
        )
        for index in (place - 1, place, place + 1)
    }
    assert min(near, key=near.get) == place
    ends = modules.usps.tuned_ends(problem, "case", "λ once per pass", 4, (0, 1))
    assert ends["case", "KHA/et", "λ once per pass"] == pytest.approx(
        np.log10(common.errors(problem, 4, (0, 1), gain="et", eta0=tuned))
    )
    assert len(ends) == 4


@uses("kha.patches")
def test_kha_windows_make_the_image(modules):
    patches = modules.patches
    image = np.random.default_rng(0).random((24, 24))
    windows = patches.windows_of(image)
    np.testing.assert_allclose(patches.image_of(windows, 24), image, rtol=1e-12)


def walk(n_frames=60):
    """A walk of four joints."""
    t = np.linspace(0, 6, n_frames)
    swing = np.stack([np.cos(2 * t), np.sin(2 * t), 0.3 * t], axis=1)
    frames = np.array([0, 1, 1.5, 0.7])[:, None] * swing[:, None] + np.arange(4)[:, None]
    parents = np.array([-1, 0, 1, 0])
    trial = np.zeros(n_frames, dtype=int)
    return SimpleNamespace(frames=frames, trial=trial, parents=parents, frames_per_second=120)


@uses("kha.motion", "kha.denoising")
def test_kha_denoising(modules, monkeypatch):
    pytest.importorskip("matplotlib")
    motion, denoising = modules.motion, modules.denoising
    for module in (motion, denoising):
        monkeypatch.setattr(module, "load", lambda name: walk())
    monkeypatch.setattr(motion, "N_COMPONENTS", 12)
    found = denoising.measure("cmu_walk_35", 100, 4, 0)
    noisy, frames = motion.noisy_walk("cmu_walk_35", 100, 0), walk().frames
    cleaned = SequenceDenoiser(12, Gaussian(motion.SIGMA), blend=1.0).denoise(noisy)
    removed = 100 * (1 - np.mean((cleaned - frames) ** 2) / np.mean((noisy - frames) ** 2))
    ours = found["walk 35, noise 100 mm", denoising.EXACT]
    assert ours == pytest.approx(removed, abs=0.5)
    assert denoising.pictures(True)["walk.gif"].startswith(b"GIF8")


@uses("kha.clustering")
def test_kha_clustering(modules, monkeypatch):
    clustering = modules.clustering
    y = np.arange(60) % 10
    X = 4 * np.eye(10)[y] + np.random.default_rng(0).normal(size=(60, 10))
    monkeypatch.setattr(clustering, "load", lambda _: SimpleNamespace(X_train=X, y_train=y))
    chance = clustering.measure(None, (1, 10), clustering.EXACT, "", 0)
    assert chance[clustering.AS_DIGITS] == pytest.approx(2 * math.log(10))
    assert chance["all", clustering.EXACT, "distance"] < chance[clustering.AS_DIGITS] / 2
    found = clustering.measure(None, (1, 10), "KHA/et", clustering.TUNED, 0)
    excess = [found["all", "KHA/et", clustering.TUNED, mark, "excess"] for mark in (1, 10)]
    assert excess[1] < excess[0]


# ---------------------------------------------------------------------------- KPGA


@uses("kpga.faces")
def test_kpga_faces(modules, monkeypatch):
    faces = modules.faces
    images = np.random.default_rng(0).normal(size=(30, 5, 4))
    monkeypatch.setattr(faces, "load", lambda name: SimpleNamespace(data=images))
    monkeypatch.setattr(faces, "COMPONENTS", (2, 4))
    X = images.reshape(30, -1) - images.reshape(30, -1).mean(axis=1, keepdims=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    gram = (X @ X.T) ** 4
    embedding = KernelPCA(2, kernel="precomputed").fit_transform(gram)
    kept = neighborhood_preservation(gram, embedding, kernel="precomputed")
    assert faces.measure(4)[4, 2, "kPCA"] == pytest.approx(100 * kept.mean())


@uses("kpga.clustering")
def test_kpga_flat_mixture_keeps_the_likeliest_start(modules):
    clustering = modules.clustering
    X = np.concatenate([np.random.default_rng(c).normal(6 * c, 1, (30, 2)) for c in range(3)])
    flat = clustering.Flat(X, 3, 0, 4)
    flat.starts = [np.arange(90) % 3, *flat.starts]
    model, Z = flat.fit(2), flat.coordinates[:, :2]
    alone = [flat.fit_from(Z, labels).lower_bound_ for labels in flat.starts]
    assert model.lower_bound_ == max(alone)
    assert clustering_error(np.repeat([0, 1, 2], 30), model.predict(Z)) < 0.05


# ---------------------------------------------------------------------------- RKHS-GEO


def naive_objective(z, X, sigma):
    """The mean of arccos² k."""
    k = np.exp(-np.sum((z - X) ** 2, axis=1) / (2 * sigma**2))
    return float(np.mean(np.arccos(k) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "spiral"])
@uses("rkhs_geo.preimages")
def test_geo_preimages(modules, name):
    script = modules.preimages
    X = script.SETS[name](0)
    sigma = float(Gaussian().fit(X).sigma_) / 4
    least = min(
        minimize(naive_objective, start, (X, sigma), method="Nelder-Mead").fun
        for start in X[:: len(X) // 8]
    )
    assert script.papers_iteration(X, sigma).objective == pytest.approx(least, abs=1e-4)
    assert abs(script.measure(name, -2, 0)[name, -2, "library"]) < script.SAME_VALUE


@uses("rkhs_geo.clustering")
def test_geo_clustering(modules):
    iris = load_or_skip("iris")
    clustering = modules.clustering
    start = next(iter(clustering.STARTS))
    found = clustering.measure("iris", start, 1)
    X, y = iris.data, iris.target
    sigma = math.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2).mean()) / 4
    model = HypersphericalKMeans(
        3, Gaussian(sigma=sigma), init="bounding-box", n_init=1, random_state=1
    ).fit(X)
    accuracy = 100 * (1 - clustering_error(y, model.labels_))
    assert found["iris", start, -2] == pytest.approx(accuracy)


@uses("rkhs_geo.classification")
def test_geo_classification(modules):
    load_or_skip("wine")
    c = modules.classification
    for alpha in (c.SVM, 0.0, "loo"):
        found = c.measure("wine", c.STANDARD, alpha, 0)
        assert all(value > 80 for key, value in found.items() if key[-1] == 0)


# ---------------------------------------------------------------------------- RKPNS


@uses("rkpns.variance")
def test_rkpns_variance(modules):
    v = modules.variance
    points = make_von_mises_fisher(60, concentration=8.0, random_state=0)
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
    curve = v.captured_by(v.fitted(v.FLAT, "linear", points))
    np.testing.assert_allclose(curve[:3], 100 * np.cumsum(values) / values.sum())
    curve = v.captured_by(v.fitted(v.GREAT, "linear", points))
    chain = nested_spheres(points, sphere="great", negligible=0.0)
    squares = np.mean(chain.scores(points) ** 2, axis=0)
    np.testing.assert_allclose(curve[:2], 100 * np.cumsum(squares) / squares.sum(), rtol=1e-6)


@pytest.mark.slow
@uses("rkpns.classification")
def test_rkpns_classification(modules, monkeypatch):
    load_or_skip("iris")
    c = modules.classification
    monkeypatch.setattr(c, "changed", lambda name, factor, X: Normalized(Linear()).fit(X))
    monkeypatch.setattr(c, "DIMENSIONS", (1, 2))
    monkeypatch.setattr(c, "INNER", 3)
    points, labels = c.drawn("iris", True, 0, 60, 90)
    powers = (1.0, 2.0)
    with c.without_wraps():
        chosen = c.chosen_powers(points[c.TRAIN], labels[c.TRAIN], "any", 5, powers)
        models = c.Models(points, "any")
        options = {"features": "paper", "sphere": "small", "negligible": 0.0}
        model = NestedSpheresClassifier(2, Normalized(Linear()), p="cv", ps=powers, **options)
        model.fit(points[c.TRAIN], labels[c.TRAIN])
        assert chosen[c.OURS, 2] == model.p_
        errors = c.errors_of(models.of(c.OURS, model.p_), labels, 2)
        for test in (c.CLEAN, c.ZEROED):
            error = 100 * (1 - model.score(points[test], labels[test]))
            assert errors[test] == pytest.approx(error)
