"""Neighbourhoods in the experiments of the rkPNS paper."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiment_scripts import experiment_scripts
from orthodrome.metrics import neighborhood_area, neighborhood_preservation
from real_data import load_or_skip


@pytest.fixture(scope="module")
def scripts():
    with experiment_scripts("rkpns", "variance", "neighborhoods") as found:
        yield found


@pytest.fixture(scope="module")
def n(scripts):
    return scripts.neighborhoods


@pytest.fixture
def flowers(scripts, monkeypatch):
    """Every set is 40 flowers, so that a run is quick."""
    part = SimpleNamespace(data=load_or_skip("iris").data[5::3][:40])
    for script in (scripts.variance, scripts.neighborhoods):
        monkeypatch.setattr(script, "load", lambda name: part)
    return part.data


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
