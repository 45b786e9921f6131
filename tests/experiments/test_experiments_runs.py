"""Scripts of experiments on small data, compared with plain computations."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import confusion_matrix

from experiment_scripts import experiment_scripts
from orthodrome import KernelPCA, NestedSpheresClassifier
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.eigen import hebbian
from orthodrome.kernels import Linear, Normalized
from orthodrome.metrics import neighborhood_area, neighborhood_preservation
from orthodrome.sphere import nested_spheres
from real_data import load_or_skip


@pytest.fixture
def scripts(request):
    """The scripts that a test's mark names: the folder, then the modules."""
    with experiment_scripts(*request.param) as found:
        yield found


def uses(folder, *names):
    return pytest.mark.parametrize("scripts", [(folder, *names)], indirect=True, ids=[folder])


def check_published(scripts, name, rows, folder, compare=True):
    """Write the table, page and figure of a run; return the text of the page."""
    script = getattr(scripts, name)
    compared = {"compared": script.compared} if compare else {}
    scripts.pages.publish(folder, name, rows, script.page, script.figure, quick=True, **compared)
    made = folder / "scratch"
    assert (made / f"{name}.png").stat().st_size > 1000
    assert len(scripts.pages.read_rows(made / f"{name}.csv")) == len(rows)
    return (made / f"{name}.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------- KHA


def hebbian_problem(common):
    """A problem of 90 points and 3 components."""
    X = np.random.default_rng(0).standard_normal((90, 6)) * np.array([5, 3, 2, 1, 1, 1])
    return common.make_problem("small", X @ X.T, 3)


@uses("kha", "usps")
def test_kha_curve_and_tuner(scripts):
    common, usps = scripts.common, scripts.usps
    problem = hebbian_problem(common)
    errors = common.curve(problem, (1, 4, 6), random_state=1)
    options = {"start": "orthonormal", "eigenvalue_updates": "pass", "random_state": 1}
    whole = hebbian(problem.operator, 3, n_passes=6, tol=0.0, polish=False, **options)
    assert errors[-1] == pytest.approx(common.excess_of(problem, whole.coefficients), rel=1e-9)
    assert errors[-1] < errors[0]
    tuner = usps.Tuner("small", problem, usps.Size(seeds=(0, 1), marks=(1, 4), rates=(0.0, 1.0)))
    chosen = {(s.method, s.gains): s for s in tuner.choose()}
    for key in (("constant", "hand"), ("t", "hand"), ("et", "hand")):
        by_eta0 = {}
        for row in tuner.rows:
            if (row["method"], row["gains"]) == (key[0], "search, hand"):
                by_eta0.setdefault(row["eta0"], []).append(row["excess"])
        means = {e: common.geometric_mean(v) for e, v in by_eta0.items() if len(v) == 2}
        assert chosen[key].eta0 == min(means, key=means.get)


@uses("kha", "quarters", "patches")
def test_kha_patches(scripts, monkeypatch):
    quarters, patches = scripts.quarters, scripts.patches
    rows, columns = np.mgrid[:48, :48] / 48
    image = 128 / 255 + 0.4 * np.sin(9 * rows) * (columns > 0.4)
    windows = quarters.windows_of(image[:24, :24])
    np.testing.assert_allclose(quarters.image_of(windows, 24), image[:24, :24], rtol=1e-12)
    size = patches.Size(48, (0.03, 0.2), (0, 1), (1, 4), (8,), quarters.QUARTERS, (4, 8))
    monkeypatch.setattr(quarters, "picture", lambda side: image)
    rows, images = patches.measure(size, True)
    clean, exact = (images[name] / 255 for name in ("clean", "exact kernel PCA"))
    expected = 10 * math.log10(clean.var() / np.mean((exact - clean) ** 2))
    found = patches.Findings(rows).level_snr("exact kernel PCA")
    assert found == pytest.approx(expected, abs=0.1)  # of greys


def walk(n_frames=60):
    """A walk of four joints."""
    t = np.linspace(0, 6, n_frames)
    swing = np.stack([np.cos(2 * t), np.sin(2 * t), 0.3 * t], axis=1)
    frames = np.array([0, 1, 1.5, 0.7])[:, None] * swing[:, None] + np.arange(4)[:, None]
    parents = np.array([-1, 0, 1, 0])
    trial = np.zeros(n_frames, dtype=int)
    return SimpleNamespace(frames=frames, trial=trial, parents=parents, frames_per_second=120)


@pytest.mark.slow
@uses("kha", "usps", "motion")
def test_kha_motion(scripts, monkeypatch, tmp_path):
    motion = scripts.motion
    monkeypatch.setattr(motion, "load", lambda name: walk())
    monkeypatch.setattr(motion, "N_COMPONENTS", 3)
    curves = scripts.usps.Size((0,), (1, 4), (0.0, 1.0))
    rows = motion.measure(motion.Size(("cmu_walk_35",), (0.03,), curves), True)
    assert "## Walk 35, noise 30 mm" in check_published(scripts, "motion", rows, tmp_path)
    automatic = [row for row in rows if row["gains"] == "automatic" and row["method"] == "et"]
    assert automatic[-1]["excess"] < automatic[0]["excess"]


def digits(n=60):
    """Images of ten classes."""
    y = np.arange(n) % 10
    X = 4 * np.eye(10)[y] + np.random.default_rng(0).normal(size=(n, 10))
    return SimpleNamespace(X_train=X, y_train=y)


@uses("kha", "clustering")
def test_kha_clustering(scripts, monkeypatch, tmp_path):
    clustering = scripts.clustering
    monkeypatch.setattr(clustering, "load", lambda name: digits())
    rows = clustering.measure(clustering.Size(None, (1, 10), (0,), 2), True)
    check_published(scripts, "clustering", rows, tmp_path)
    distances = {row["method"]: row["variation_of_information"] for row in rows}
    assert distances[clustering.EXACT] < distances[clustering.RANDOM] / 2
    errors = [row["excess"] for row in rows if row["method"] == "KHA/et"]
    assert errors[-1] < errors[0]


@pytest.mark.slow
@uses("kha", "denoising")
def test_kha_denoising(scripts, monkeypatch, tmp_path):
    for name in ("skimage", "pywt"):
        pytest.importorskip(name)
    denoising = scripts.denoising
    image = np.kron(np.random.default_rng(0).integers(2, size=(6, 6)), np.ones((8, 8)))
    monkeypatch.setattr(denoising, "picture", lambda name, side: image)
    monkeypatch.setattr(denoising, "load", lambda name: walk(90))
    monkeypatch.setattr(denoising, "HERE", tmp_path)
    size = denoising.Size(("camera_256",), (40,), 48, ("cmu_walk_35",), (0.05,), n_draws=2)
    monkeypatch.setattr(denoising.Size, "of", lambda quick: size)
    denoising.main(quick=True)
    made = {file.name for file in (tmp_path / "scratch").iterdir()}
    assert {"denoising.md", "denoising_images.png", "denoising_walk.gif"} <= made
    rows = denoising.Findings(scripts.pages.read_rows(tmp_path / "scratch/denoising.csv"))
    shown, moved = rows.settings
    assert rows.value(shown, denoising.KERNEL) > rows.value(shown, denoising.NOISY)
    assert rows.value(moved, denoising.KERNEL) > 0.5


# ---------------------------------------------------------------------------- KPGA


@uses("kpga", "faces")
def test_kpga_faces(scripts, monkeypatch, tmp_path):
    faces = scripts.faces
    images = np.random.default_rng(0).normal(size=(30, 5, 4))
    monkeypatch.setattr(faces, "load", lambda name: SimpleNamespace(data=images))
    monkeypatch.setattr(faces, "COMPONENTS", (2, 4))
    rows = faces.measure(quick=False)
    assert "## Degree 6" in check_published(scripts, "faces", rows, tmp_path)
    X = images.reshape(30, -1) - images.reshape(30, -1).mean(axis=1, keepdims=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    gram = (X @ X.T) ** 4
    embedding = KernelPCA(2, kernel="precomputed").fit_transform(gram)
    kept = neighborhood_preservation(gram, embedding, kernel="precomputed")
    assert rows[0]["mean"] == pytest.approx(kept.mean())


@uses("kpga", "clustering")
def test_kpga_flat_mixture_keeps_the_likeliest_start(scripts):
    clustering = scripts.clustering
    X = np.concatenate([np.random.default_rng(c).normal(6 * c, 1, (30, 2)) for c in range(3)])
    flat = clustering.Flat(X, 3, 0, 4)
    flat.starts = [np.arange(90) % 3, *flat.starts]
    model = flat.fit(2, clustering.DEFAULT)
    Z = flat.coordinates[:, :2]
    alone = [flat._fit(Z, labels, clustering.DEFAULT, 1e-9) for labels in flat.starts]
    assert model.lower_bound_ == pytest.approx(max(each.lower_bound_ for each in alone), abs=1e-4)
    assert clustering.clustering_error(np.repeat([0, 1, 2], 30), model.predict(Z)) < 0.05


@uses("kpga", "sphere")
def test_kpga_eigenvalues_on_the_sphere(scripts):
    script = scripts.sphere
    draw = {tuple(cell[:4]): cell[4] for cell in script.one_draw(8.8, 3)}
    X = script.points_of(8.8, 3)
    mean = X.mean(axis=0) / np.linalg.norm(X.mean(axis=0))
    for _ in range(60):  # the Karcher mean by plain steps
        cosines = X @ mean
        angles = np.arccos(cosines)
        logs = (angles / np.sin(angles))[:, None] * (X - cosines[:, None] * mean)
        step = logs.mean(axis=0)
        mean = mean * np.cos(np.linalg.norm(step)) + np.sinc(np.linalg.norm(step) / np.pi) * step
    flat = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    sphere = np.linalg.eigvalsh(logs.T @ logs / len(X))[::-1]
    for method, values, rank in ((script.PCA, flat, 3), (script.PGA, sphere, 2)):
        own = [draw[method, n, script.EIGENVALUE, 0] for n in (1, 2, 3)]
        np.testing.assert_allclose(own, values[:3], atol=1e-12)
        assert draw[method, 0, script.RANK, 0] == rank


# ---------------------------------------------------------------------------- KRRC


@uses("krrc", "passiflora")
def test_krrc_measures(scripts):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=60)
    predicted = np.where(rng.random(60) < 0.7, y, rng.integers(4, size=60))
    counts = confusion_matrix(y, predicted)
    true = np.diag(counts)
    false_positive, false_negative = counts.sum(axis=0) - true, counts.sum(axis=1) - true
    precision, recall = true / (true + false_positive), true / (true + false_negative)
    p, r = precision.mean(), recall.mean()
    expected = {
        "precision": p,
        "recall": r,
        "f1": 2 * p * r / (p + r),
        "f1_classes": np.mean(2 * precision * recall / (precision + recall)),
        "accuracy": np.mean((60 - false_positive - false_negative) / 60),
    }
    assert scripts.passiflora.measured(y, predicted) == pytest.approx(expected)


# ---------------------------------------------------------------------------- RKHS-GEO


def naive_objective(z, X, sigma):
    """The mean of arccos² k."""
    k = np.exp(-np.sum((z - X) ** 2, axis=1) / (2 * sigma**2))
    return float(np.mean(np.arccos(k) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["square", "spiral"])
@uses("rkhs_geo", "preimages")
def test_geo_preimages(scripts, name):
    script = scripts.preimages
    row = script.one_case(name, 0, -2, 40)
    X = script.SETS[name](0)
    least = min(
        minimize(naive_objective, start, (X, row["sigma"]), method="Nelder-Mead").fun
        for start in X[:: len(X) // 8]
    )
    assert row["best"] == pytest.approx(least, abs=1e-4)
    for way in ("few", "all", "paper_once"):
        assert abs(row[f"excess_{way}"]) < script.SAME_VALUE
    assert script.ball_radius(np.eye(5)) == pytest.approx(math.acos(1 / math.sqrt(5)))


@uses("rkhs_geo", "clustering")
def test_geo_clustering(scripts):
    load_or_skip("iris")
    clustering = scripts.clustering
    row = clustering.accuracies("iris", clustering.BOX, -2, 3)
    X, y = scripts.pages.labelled("iris")
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert row["sigma"] == pytest.approx(math.sqrt(squares.mean()) / 4)
    accuracies = []
    for seed in range(3):
        kernel = clustering.Gaussian(sigma=row["sigma"])
        model = clustering.HypersphericalKMeans(
            3, kernel, init="bounding-box", n_init=1, random_state=seed
        ).fit(X)
        accuracies.append(100 * (1 - clustering.clustering_error(y, model.labels_)))
    assert row["accuracy"] == pytest.approx(np.mean(accuracies))
    assert row["deviation"] == pytest.approx(np.std(accuracies, ddof=1))
    assert row["majority"] == pytest.approx(100 / 3)


@uses("rkhs_geo", "classification")
def test_geo_classification(scripts):
    load_or_skip("wine")
    c = scripts.classification
    split = c.one_split("wine", c.DEFAULT, 0, (-1, 0))
    found = {(method, power): accuracy for method, power, accuracy in split}
    assert set(found) == {(m, p) for m in c.METHODS for p in (-1, 0, c.CHOSEN)}
    assert all(found[key] > 80 for key in found if key[1] == 0)


# ---------------------------------------------------------------------------- RKPNS


@uses("rkpns", "variance")
def test_rkpns_variance(scripts):
    v = scripts.variance
    points = make_von_mises_fisher(60, concentration=8.0, random_state=0)
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
    curve, wrap, _ = v.fitted(v.FLAT, "linear", points)
    np.testing.assert_allclose(curve[:3], 100 * np.cumsum(values) / values.sum())
    assert math.isnan(wrap)
    curve, wrap, _ = v.fitted(v.GREAT, "linear", points)
    chain = nested_spheres(points, sphere="great", negligible=0.0)
    squares = np.mean(chain.scores(points) ** 2, axis=0)
    np.testing.assert_allclose(curve[:2], 100 * np.cumsum(squares) / squares.sum(), rtol=1e-6)
    assert wrap == pytest.approx(chain.wrap, rel=1e-6)


@uses("rkpns", "neighborhoods")
def test_rkpns_neighborhoods(scripts, monkeypatch):
    n = scripts.neighborhoods
    X = load_or_skip("iris").data[5::3][:40]
    monkeypatch.setattr(n, "load", lambda name: SimpleNamespace(data=X))
    low = {n.FLAT: X[:, :1], n.MDS: X[:, 1:2]}
    for high in (n.changed(n.POLYNOMIAL, 1.0, X), None):
        rows = n.quality_rows({}, X, low, high, False)
        for row in rows:
            quality = neighborhood_preservation(X, low[row["method"]], kernel=high)
            assert row["value"] == pytest.approx(100 * neighborhood_area(quality))
        assert rows[1]["gain"] == pytest.approx(rows[1]["value"] - rows[0]["value"])


@pytest.mark.slow
@uses("rkpns", "classification")
def test_rkpns_classification(scripts, monkeypatch):
    load_or_skip("iris")
    c = scripts.classification
    monkeypatch.setattr(c, "kernel_of", lambda name: Normalized(Linear()))
    monkeypatch.setattr(c, "DIMENSIONS", (1, 2))
    monkeypatch.setattr(c, "POWERS", (1.0, 2.0))
    points, labels = c.drawn("iris", True, 0, c.Size(("iris",), 60, 90))
    with scripts.common.wraps_recorded():
        trained = c.Trained(points, labels, "any")
        trained.choose()
        for sphere in c.SPHERES:
            options = {"features": "paper", "sphere": sphere, "negligible": 0.0}
            model = NestedSpheresClassifier(
                2, Normalized(Linear()), p="cv", ps=c.POWERS, **options
            ).fit(points[c.TRAIN], labels[c.TRAIN])
            method = c.pns(sphere, "paper", "p chosen")
            assert trained.chosen[method, 2] == model.p_
            for test in (c.CLEAN, c.ZEROED):
                error = 100 * (1 - model.score(points[test], labels[test]))
                assert trained.errors[test][method, c.C, 2] == pytest.approx(error)
