"""Experiments on small data, compared with plain computations."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import confusion_matrix

from experiment_scripts import experiment_modules
from orthodrome import KernelPCA, NestedSpheresClassifier
from orthodrome.datasets import make_von_mises_fisher
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


with experiment_modules("reproduce") as runner:
    EXPERIMENTS = [f"{p}.{n}" for p, names in runner.reproduce.EXPERIMENTS.items() for n in names]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_first_job_of_every_experiment_gives_numbers(name):
    """Errors of runs that diverge are infinite."""
    with experiment_modules(name) as found:
        (script,) = vars(found).values()
        try:
            values = script.measure(*next(iter(script.jobs(True))))
        except FileNotFoundError as error:
            pytest.skip(str(error))
    assert values
    assert not any(np.any(np.isnan(value)) for value in values.values())


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


@uses("kpga.sphere")
def test_kpga_eigenvalues_on_the_sphere(modules):
    draw = modules.sphere.one_draw(8.8, 3)
    X = make_von_mises_fisher(200, 100, 2, 8.8, random_state=3)
    mean = X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
    for _ in range(60):  # the Karcher mean by plain steps
        cosines = X @ mean
        angles = np.arccos(cosines)
        logs = (angles / np.sin(angles))[:, None] * (X - cosines[:, None] * mean)
        step = logs.mean(axis=0)
        mean = mean * np.cos(np.linalg.norm(step)) + np.sinc(np.linalg.norm(step) / np.pi) * step
    flat = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    sphere = np.linalg.eigvalsh(logs.T @ logs / len(X))[::-1]
    for method, values, n in (("kPCA", flat, 3), ("kPGA", sphere, 2)):
        own = [draw[8.8, method, place] for place in range(1, n + 1)]
        np.testing.assert_allclose(own, values[:n], atol=1e-12)


@uses("krrc.passiflora")
def test_krrc_measures(modules):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=60)
    predicted = np.where(rng.random(60) < 0.7, y, rng.integers(4, size=60))
    table = confusion_matrix(y, predicted)
    true = np.diag(table)
    false_positive, false_negative = table.sum(axis=0) - true, table.sum(axis=1) - true
    precision, recall = true / (true + false_positive), true / (true + false_negative)
    p, r = precision.mean(), recall.mean()
    expected = {
        "precision": p,
        "recall": r,
        "F1 of means": 2 * p * r / (p + r),
        "F1": np.mean(2 * precision * recall / (precision + recall)),
        "accuracy": np.mean((60 - false_positive - false_negative) / 60),
    }
    assert modules.passiflora.measured(y, predicted) == pytest.approx(expected)


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
