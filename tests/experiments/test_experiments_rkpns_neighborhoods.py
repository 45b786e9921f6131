"""Neighbourhoods in the experiments of the rkPNS paper: what is run, counted and committed."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA
from sklearn.manifold import LocallyLinearEmbedding, SpectralEmbedding

from experiment_scripts import experiment_scripts
from orthodrome import KernelPGA, KernelPNS
from orthodrome.metrics import neighborhood_area, neighborhood_preservation
from real_data import REPOSITORY, load_or_skip

FOLDER = REPOSITORY / "experiments/rkpns"


@pytest.fixture(scope="module")
def scripts():
    with experiment_scripts("rkpns", "variance", "neighborhoods") as found:
        yield found


@pytest.fixture(scope="module")
def n(scripts):
    return scripts.neighborhoods


@pytest.fixture(scope="module")
def committed(scripts):
    return scripts.pages.read_rows(FOLDER / "neighborhoods.csv")


@pytest.fixture
def flowers(scripts, monkeypatch):
    """Every set is 40 flowers, so that a run is quick."""
    part = SimpleNamespace(data=load_or_skip("iris").data[5::3][:40])
    for script in (scripts.variance, scripts.neighborhoods):
        monkeypatch.setattr(script, "load", lambda name: part)
    return part.data


def changed(rows, which, **values):
    """The rows, those that `which` says with other values."""
    return [{**row, **values} if which(row) else row for row in rows]


def claim(n, rows, start):
    return next(line for line in n.page(rows).split("\n") if line.startswith(f"- {start}"))


# ---------------------------------------------------------------------------- runs


def test_parameters_change_by_their_factor(scripts, n):
    X = np.random.default_rng(0).normal(size=(12, 3)) + 1.0
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    products = X @ X.T
    cosines = products / np.sqrt(np.outer(np.diag(products), np.diag(products)))
    for factor, degree in ((0.7, 7), (1.0, 10), (1.3, 13)):
        kernel = n.changed(n.GAUSSIAN, factor, X)
        expected = np.exp(-squares / (2 * factor**2 * squares.mean()))
        np.testing.assert_allclose(kernel(X), expected)
        np.testing.assert_allclose(
            n.changed(n.POLYNOMIAL, factor, X)(X), cosines**degree, atol=1e-12
        )
        assert str(degree) in n.parameter(n.POLYNOMIAL, factor)
    assert n.FACTORS == (0.7, 1.0, 1.3)


def test_parts_are_four_fifths_and_differ(n):
    X = np.arange(50.0)[:, None]
    parts = [n.part_of(X, part)[:, 0] for part in (1, 2, 1)]
    assert [len(part) for part in parts] == [40, 40, 40]
    assert all(np.all(np.diff(part) > 0) for part in parts)
    np.testing.assert_array_equal(parts[0], parts[2])
    assert set(parts[0]) != set(parts[1])


def test_nested_spheres_and_kernel_pca_are_measured_as_in_variance(scripts, n, flowers):
    v = scripts.variance
    run = v.one_run("iris", v.SCALED, n.POLYNOMIAL, 3)
    rows = n.one_run("iris", v.SCALED, n.POLYNOMIAL, 1.0, 3)
    own = {(row["part"], row["method"]): row for row in rows if row["reference"] != n.INPUT_SPACE}
    for rule in n.RULES:
        for method in v.METHODS:
            row = own[rule, method]
            assert row["n_modes"] == run.dimensions[rule]
            assert row["value"] == pytest.approx(run.quality[rule, method], abs=1e-9)
            gain = run.quality[rule, method] - run.quality[rule, v.FLAT]
            assert row["gain"] == pytest.approx(gain, abs=1e-9)
            assert row["below"] == (gain < -n.ROUNDING)
    for method in v.METHODS:
        gains = run.captured[method] - run.captured[v.FLAT]
        row = own[n.COMPACT, method]
        assert row["value"] == pytest.approx(run.captured[method].mean())
        assert row["gain"] == pytest.approx(gains.mean())
        assert row["below"] == (gains.min() < -n.ROUNDING)


def test_embeddings_are_those_of_the_methods(n, flowers):
    X = np.array(flowers)
    kernel = n.changed(n.GAUSSIAN, 1.0, X)
    models = {method: n.fitted(method, kernel, X) for method in n.KERNEL_METHODS}
    low, split = n.embeddings(X, models, 2, 20)
    assert not split
    assert set(low) == {*n.KERNEL_METHODS, *n.CONTEXT}
    assert {np.linalg.matrix_rank(Y, tol=1e-6) for Y in low.values()} == {2}
    expected = {
        n.GREAT: KernelPNS(2, kernel=kernel, sphere="great").fit(X).embedding_,
        n.PGA: KernelPGA(2, kernel=kernel).fit(X).embedding_,
        n.MDS: PCA(2).fit_transform(X),
        n.LLE: LocallyLinearEmbedding(
            n_neighbors=20, n_components=2, eigen_solver="dense"
        ).fit_transform(X),
        n.EIGENMAPS: SpectralEmbedding(2, n_neighbors=20, random_state=0).fit_transform(X),
    }
    for method, Y in expected.items():
        np.testing.assert_allclose(pdist(low[method]), pdist(Y), atol=1e-6, err_msg=method)
    # more dimensions than features
    low, _ = n.embeddings(X, models, 6, 20)
    assert low[n.LLE].shape == (40, 4)
    np.testing.assert_allclose(pdist(low[n.MDS]), pdist(X))
    assert np.linalg.matrix_rank(low[n.SMALL], tol=1e-6) == 6


def test_graph_in_pieces_is_counted(n):
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[20:] += 1e3
    low, split = n.embeddings(X, {}, 1, 5)
    assert split
    rows = n.quality_rows({"part": "x"}, X, {n.FLAT: X, **low}, None, split)
    assert [row["split"] for row in rows] == [1, 1, 1, 1]


def test_neighbours_are_sought_in_the_named_space(n, flowers):
    X = np.array(flowers)
    low = {n.FLAT: X[:, :1], n.MDS: X[:, 1:2]}
    kernel = n.changed(n.POLYNOMIAL, 1.0, X)
    for high in (kernel, None):
        rows = n.quality_rows({}, X, low, high, False)
        for row in rows:
            quality = neighborhood_preservation(X, low[row["method"]], kernel=high)
            assert row["value"] == pytest.approx(100 * neighborhood_area(quality))
            kept = [100 * quality[kappa - 1] for kappa in n.KAPPAS[:8]]
            assert row["curve"][:8] == pytest.approx(kept)
        assert rows[1]["gain"] == pytest.approx(rows[1]["value"] - rows[0]["value"])


# ---------------------------------------------------------------------------- counts


def fake_run(name, features, kernel, factor, part):
    """Values that tell where they come from."""
    rows = []
    for place, (method, gain) in enumerate((("kPNS, small", 2.0), ("kPCA", 0.0))):
        size = {"fertility": 0.0, "concrete_slump": 10.0}[name]
        rows.append(
            {
                "part": "rule",
                "reference": "",
                "method": method,
                "n_modes": part + place,
                "value": size + 4.0 * part + gain,
                "gain": gain - part * (name == "fertility"),
                "below": int(gain - part < 0),
                "split": part % 2,
                "curve": [float(part)] * 11,
            }
        )
    return rows


def test_parts_are_averaged_with_their_standard_errors(n, monkeypatch):
    monkeypatch.setattr(n, "one_run", fake_run)
    rows = n.measure(n.Size(("fertility", "concrete_slump"), 3, 1, 1), quick=True)

    def cell(name, features=n.RAW, factor=1.0):
        return next(
            row
            for row in rows
            if (row["data"], row["method"], row["features"], row["factor"], row["kernel"])
            == (name, n.SMALL, features, factor, n.POLYNOMIAL)
        )

    own = cell("fertility")
    assert (own["n_parts"], own["mean"], own["n_modes"]) == (3, 10.0, 2.0)
    assert own["error"] == pytest.approx(4 / np.sqrt(3))  # of 6, 10, 14
    assert own["gain"] == pytest.approx(0.0)  # of 1, 0, -1
    assert own["gain_error"] == pytest.approx(1 / np.sqrt(3))
    assert (own["n_below"], own["n_split"], own["kept_10"]) == (1, 2, 2.0)
    both = cell(n.TOGETHER)
    assert (both["n_parts"], both["mean"], both["gain"]) == (3, 15.0, 1.0)
    assert both["gain_error"] == pytest.approx(0.5 / np.sqrt(3))  # of 1.5, 1, 0.5
    assert cell("fertility", factor=0.7)["n_parts"] == cell("fertility", n.SCALED)["n_parts"] == 1


@pytest.mark.slow
def test_a_small_run_makes_a_page_that_says_its_size(scripts, n, flowers, monkeypatch):
    monkeypatch.setattr(n, "NEIGHBORS", 6)
    rows = n.measure(n.Size(("iris",), 1, 1, 1), quick=True)
    kept = n.page(rows)
    assert "Run: 1 of the paper's 8 sets, 1 of its 25 random parts; 1 part with each" in kept
    assert len([row for row in rows if row["part"] == n.COMPACT]) == 2 * 4 * 2 * 4
    # σ × 0.7 and the fewer neighbours do change what they should
    found = n.Findings(rows)
    for method in (n.SMALL, n.FLAT, n.PGA, n.LLE, n.EIGENMAPS):
        values = {found.quality(n.GAUSSIAN, "iris", method, factor=f)["mean"] for f in n.FACTORS}
        assert len(values) == 3, method
    assert all(each.error == 0 for each in n.compared(rows))


# ---------------------------------------------------------------------------- what is committed


def test_page_and_numbers_belong_together(n, committed):
    text = n.page(committed)
    assert (FOLDER / "neighborhoods.md").read_text(encoding="utf-8") == text
    for name in ("neighborhoods", "neighborhoods_stability"):
        assert (FOLDER / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"]({name}.png)" in text


def test_committed_numbers_are_of_a_full_run(n, committed):
    size, found = n.Size(), n.Findings(committed)
    assert tuple(found.names) == n.NAMES
    assert found.n_parts() == size.n_parts <= n.PAPER_PARTS
    assert {found.n_parts(factor=f) for f in (0.7, 1.3)} == {size.changed_parts}
    assert found.n_parts(n.SCALED) == size.scaled_parts
    for kernel in n.KERNELS:
        for name in (*n.NAMES, n.TOGETHER):
            for rule in n.RULES:
                for variant in n.VARIANTS:
                    for method in (*n.KERNEL_METHODS, *n.CONTEXT):
                        cell = found.quality(kernel, name, method, rule=rule, variant=variant)
                        assert 0 < cell["mean"] <= 100


def test_committed_numbers_are_those_of_variance(scripts, n, committed):
    v, found = scripts.variance, n.Findings(committed)
    other = v.Findings(scripts.pages.read_rows(FOLDER / "variance.csv"))
    for kernel in n.KERNELS:
        for name in n.NAMES:
            for rule in n.RULES:
                for method in v.METHODS:
                    theirs = other.quality(rule, name, method, n.RAW, kernel)
                    ours = found.quality(kernel, name, method, rule=rule)
                    # the first of the same parts: the same means where all of them are taken
                    fewer = 1 / ours["n_parts"] - 1 / theirs["n_repeats"]
                    error = theirs["deviation"] * np.sqrt(fewer)
                    assert ours["mean"] == pytest.approx(theirs["mean"], abs=4 * error + 0.01)


# ---------------------------------------------------------------------------- what is said


def is_kept(n, row, **values):
    own = {"part": n.OVER_ALL, "features": n.RAW, "factor": 1} | values
    return all(row[key] == value for key, value in own.items())


def test_orders_are_those_of_the_paper(n, committed):
    # §VII: "typically captures a larger (never smaller) percentage of the variance", "kPNS performs
    # better (never worse) than kPCA", "quite stable up to 30% perturbation"
    assert [(order["of"], order["better"], order["than"]) for order in n.SAID["orders"]] == [
        (of, n.SMALL, n.FLAT) for of in ("variance", "neighbourhoods", "stability")
    ]
    found = n.compared(committed)
    wheres = [each.where for each in found]
    assert wheres == ["Figure 3"] * 16 + ["Figure 4"] * 16 + ["text"] * 4
    # the mean over the modes is not said alone, nor other features as if they were the same
    assert all("less at one of them in 0 parts" in each.what for each in found[:16])
    assert all("as published, unlike the rows above" in each.what for each in found[32:])
    below = changed(committed, lambda row: row["part"] == n.COMPACT, n_below=3.0)
    assert "less at one of them in 3 parts" in n.compared(below)[0].what


def test_an_order_the_other_way_flips_its_findings(n, committed, monkeypatch):
    before = [each.finding for each in n.compared(committed)]
    turned = [{**each, "better": each["than"], "than": each["better"]} for each in n.SAID["orders"]]
    # with the same features and space
    best = n.Findings(committed).best()
    monkeypatch.setattr(n.Findings, "best", lambda self: best)
    monkeypatch.setitem(n.SAID, "orders", turned)
    flipped = {"holds": "contradicted", "contradicted": "holds", "open": "open"}
    after = n.compared(committed)
    assert [each.finding for each in after] == [flipped[each] for each in before]
    assert ": kPCA above kPNS, small," in after[0].what
    with pytest.raises(ValueError, match="must compare kPCA with another method"):
        n.beside_flat({"better": n.SMALL, "than": n.PGA})


def test_the_variant_with_most_orders_is_taken(n, committed):
    level = changed(committed, lambda row: row["part"] == n.OVER_ALL, gain=0.0, gain_error=1.0)
    assert n.Findings(level).best() == n.VARIANTS[0]
    better = changed(
        level,
        lambda row: is_kept(n, row, reference=n.INPUT_SPACE, data="iris", method=n.SMALL),
        gain=2.5,
    )
    found = n.Findings(better)
    assert found.best() == (n.RAW, n.INPUT_SPACE)
    assert [found.holding(variant) for variant in n.VARIANTS] == [0, 1, 0, 0]
    kept = {each.what: each for each in n.compared(better) if each.where == "Figure 4"}
    parts = found.n_parts()
    held = [what for what, each in kept.items() if each.finding == "holds"]
    assert held == [
        "iris, polynomial: kPNS, small above kPCA, neighbourhoods kept "
        f"(features as published, input space), {parts} parts"
    ]
    assert "neighbours in input space: 1;" in claim(n, better, "The paper tells neither")


def test_page_says_where_neighbourhoods_are_lost(n, committed):
    rows = changed(committed, lambda row: row["part"] == n.OVER_ALL, gain=3.0, gain_error=1.0)

    def one(row, name):
        return is_kept(n, row, data=name, method=n.SMALL, kernel=n.GAUSSIAN)

    rows = changed(rows, lambda row: one(row, "ecoli"), gain=-2.5)
    rows = changed(rows, lambda row: one(row, "glass"), gain=-1.5)
    line = claim(n, rows, "Neighbourhoods, D the least over all methods, kPNS, small")
    assert "Gaussian, better on 6 of 8, undecided on 1, worse on ecoli (-2.5);" in line
    assert "polynomial, better on 8 of 8, undecided on 0, worse on none." in line


def test_page_says_where_less_variance_is_held(n, committed):
    rows = changed(committed, lambda row: row["part"] == n.COMPACT, n_below=0, gain=1.0)
    rows = changed(
        rows,
        lambda row: is_kept(n, row, part=n.COMPACT, data="glass", method=n.GREAT),
        n_below=3,
        gain=-0.25,
    )
    line = claim(n, rows, "Variance")
    total = 16 * n.Size().n_parts
    assert f"kPNS, small, in {total} of {total} parts" in line
    assert f"kPNS, great, in {total - 6} of {total} parts of sets and kernels (-0.2 … +1.0" in line


def test_page_says_what_changed_parameters_reverse(n, committed):
    rows = changed(committed, lambda row: row["part"] == n.OVER_ALL, gain=3.0, gain_error=1.0)

    def one(row, name):
        return is_kept(n, row, data=name, method=n.SMALL, kernel=n.POLYNOMIAL, factor=1.3)

    rows = changed(rows, lambda row: one(row, "iris"), gain=-3.0)
    rows = changed(rows, lambda row: one(row, "seeds"), gain=-1.0)
    line = claim(n, rows, "Stability (paper: quite stable under 30 %), polynomial")
    assert "degree 7: +3.0 over the sets, the same sign on 8 of 8" in line
    assert "the same sign on 6 of 8, reversed beyond two standard errors on iris;" in line


def test_pairs_of_methods_in_the_same_order_are_counted(n, committed):
    order = {method: place for place, method in enumerate((*n.KERNEL_METHODS, *n.CONTEXT))}
    rows = [{**row, "mean": float(order[row["method"]])} for row in committed]
    found = n.Findings(rows)
    assert n.pairs_kept(found, n.GAUSSIAN, 0.7) == (8 * 21, 8 * 21)
    # the first of seven becomes the last on one set: six pairs turn
    rows = changed(
        rows,
        lambda row: is_kept(n, row, data="iris", method=n.SMALL, factor=0.7),
        mean=10.0,
    )
    assert n.pairs_kept(n.Findings(rows), n.GAUSSIAN, 0.7) == (8 * 21 - 6, 8 * 21)
    assert n.pairs_kept(n.Findings(rows), n.GAUSSIAN, 1.3) == (8 * 21, 8 * 21)


def test_figures_draw_what_is_kept(n, committed):
    pytest.importorskip("matplotlib")
    axes = n.figure(committed).axes
    assert len(axes) == 16
    assert axes[2].get_title().startswith("ecoli, Gaussian (D ")
    drawn = {line.get_label(): line.get_ydata() for line in axes[10].lines}
    assert set(drawn) == {*n.KERNEL_METHODS, *n.CONTEXT}
    cell = n.Findings(committed).quality(n.POLYNOMIAL, "ecoli", n.LLE)
    np.testing.assert_array_equal(drawn[n.LLE], [cell[f"kept_{kappa}"] for kappa in n.KAPPAS])
    panels = n.stability_figure(committed).axes
    gains = panels[1].containers[0].lines[0].get_ydata()
    found = n.Findings(committed)
    expected = [
        found.quality(n.POLYNOMIAL, n.TOGETHER, n.SMALL, factor=f)["gain"] for f in n.FACTORS
    ]
    np.testing.assert_array_equal(gains, expected)
