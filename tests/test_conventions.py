"""Metadata routing and data frames of every estimator."""

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import laws_persist as laws
from orthodrome.kernels import Gaussian
from orthodrome.preprocessing import TableCleaner

X, NEW, LABELS = laws.data_for("gaussian")
WEIGHTS = np.linspace(0.5, 2.0, len(X))


def made(name):
    return laws.ESTIMATORS[name](Gaussian(2.0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", laws.ESTIMATORS)
def test_a_pipeline_routes_weights(name):
    """Weights arrive where they are requested, and nowhere else."""
    takes_weights = "sample_weight" in inspect.signature(made(name).fit).parameters
    scaler = StandardScaler()
    with sklearn.config_context(enable_metadata_routing=True):
        scaler.set_fit_request(sample_weight=False)
        if not takes_weights:
            assert not hasattr(made(name), "set_fit_request")
            with pytest.raises(TypeError, match="sample_weight"):
                make_pipeline(scaler, made(name)).fit(X, LABELS, sample_weight=WEIGHTS)
            return
        with pytest.raises(ValueError, match="sample_weight"):
            make_pipeline(scaler, made(name)).fit(X, LABELS, sample_weight=WEIGHTS)
        for requested, weights in ((True, WEIGHTS), (False, None)):
            model = made(name).set_fit_request(sample_weight=requested)
            given = {"sample_weight": WEIGHTS} if requested else {}
            routed = make_pipeline(scaler, model).fit(X, LABELS, **given)[-1]
            direct = made(name).fit(scaler.fit_transform(X), LABELS, sample_weight=weights)
            found, expected = (laws.outputs(one, NEW, False) for one in (routed, direct))
            laws.assert_same_answers(found, expected, 1e-12)


TRANSFORMERS = [name for name in laws.ESTIMATORS if hasattr(made(name), "transform")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", [*TRANSFORMERS, "TableCleaner"])
def test_set_output_gives_data_frames(name, library):
    frames = pytest.importorskip(library)
    rows = frames.DataFrame({f"x{i}": column for i, column in enumerate(X.T)})
    model = TableCleaner() if name == "TableCleaner" else made(name)
    model.set_output(transform=library).fit(rows)
    found = model.transform(rows)
    assert isinstance(found, frames.DataFrame)
    assert list(found.columns) == list(model.get_feature_names_out())
    plain = np.asarray(model.set_output(transform="default").transform(rows))
    np.testing.assert_array_equal(found.to_numpy(), plain)
