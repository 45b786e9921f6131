"""Fitted models, their results for new data, and forged model files."""

import functools
import hashlib
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray
from sklearn.exceptions import InconsistentVersionWarning

from laws_product import CONFIGURATIONS, FIRST
from orthodrome import PatchDenoiser, load
from orthodrome.datasets import make_landmark_shapes
from orthodrome.denoising import SequenceDenoiser
from orthodrome.kernels import Gaussian, Kernel, Normalized, Polynomial

N, M = 36, 9

FIRST_OF_MATRICES = {make: CONFIGURATIONS[name] for make, name in FIRST.items()}
FIRST_OF_MATRICES["HypersphericalKMeans"] = CONFIGURATIONS["HypersphericalKMeans, intrinsic"]
#: Estimators by name; each is made with a kernel. All take matrices, and few starts are enough.
ESTIMATORS: dict[str, Callable[[Any], Any]] = {
    make: functools.partial(each, n_init=1) if "n_init" in each.takes else each
    for make, each in FIRST_OF_MATRICES.items()
}

KERNELS: dict[str, Any] = {
    "gaussian": Gaussian(sigma=2.0),
    "exponential": "exponential",
    "polynomial": Normalized(Polynomial(degree=2)),
    "precomputed": "precomputed",
    "veronese_whitney": "veronese_whitney",
    "complex_gaussian": "complex_gaussian",
    "log_euclidean": "log_euclidean",
}


@functools.cache
def vectors() -> tuple[NDArray, NDArray, NDArray]:
    """Return two groups, as training rows, new rows and labels."""
    rng = np.random.default_rng(7)
    X = rng.gumbel(size=(N + M, 4))
    labels = np.array(["left", "right"])[np.arange(N + M) % 2]
    X[labels == "right"] += 2.5
    return X[:N], X[N:], labels[:N]


@functools.cache
def data_for(kernel: str) -> tuple[Any, Any, NDArray]:
    """Return training data, new data and labels that suit a kernel."""
    X, new, labels = vectors()
    if kernel == "precomputed":
        values = Gaussian(sigma=2.0)
        return values(X), values(new, X), labels
    if kernel in ("veronese_whitney", "complex_gaussian"):
        shapes, kinds = make_landmark_shapes(N + M, variation=0.8, random_state=0)
        return shapes[:N], shapes[N:], np.array(["a", "b", "c"])[kinds[:N]]
    if kernel == "log_euclidean":
        factors = np.random.default_rng(8).normal(size=(N + M, 3, 5))
        factors[::2] *= 2.0
        matrices = factors @ factors.transpose(0, 2, 1) + np.eye(3)
        return matrices[:N], matrices[N:], labels
    if kernel == "sparse":
        keep = scipy.sparse.csr_array(np.where(X > 0, X, 0.0))
        return keep, scipy.sparse.csr_array(np.where(new > 0, new, 0.0)), labels
    return X, new, labels


@functools.cache
def fitted(name: str) -> Any:
    """Return the fitted model of a name such as KernelPCA-gaussian; it must not be changed."""
    estimator, _, kernel = name.partition("-")
    X, _, labels = data_for(kernel)
    with warnings.catch_warnings(action="ignore"):
        return ESTIMATORS[estimator](KERNELS.get(kernel, "gaussian")).fit(X, labels)


def image() -> NDArray:
    rng = np.random.default_rng(3)
    return np.clip(np.add.outer(np.linspace(0, 1, 16), np.zeros(16)), 0, 1) + 0.1 * rng.normal(
        size=(16, 16)
    )


def walk() -> NDArray:
    steps = np.random.default_rng(4).normal(size=(40, 3, 3))
    return np.sin(np.linspace(0, 6, 40))[:, None, None] + 0.1 * steps


METHODS = (
    "transform",
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
    "class_residuals",
    "features_of",
    "embed",
    "sphere_coordinates",
)
FITTED = ("eigenvalues_", "explained_variance_ratio_", "embedding_", "labels_", "loo_residuals_")


def outputs(model: Any, new: Any, invertible: bool) -> dict[str, NDArray]:
    """Return the results of all methods for new rows, and the main fitted attributes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, Kernel):
            return {"kernel": np.asarray(model(new)), "diag": np.asarray(model.diag(new))}
        if isinstance(model, (PatchDenoiser, SequenceDenoiser)):  # fitted at each call
            found = {"blend_": np.asarray(model.blend_)}
            if model.model_ is not None:  # there was something to remove
                found |= outputs(model.model_, model.model_.X_fit_[:4], True)
            return found
        methods = [name for name in METHODS if hasattr(model, name)]
        found = {name: np.asarray(getattr(model, name)(new)) for name in methods}
        if hasattr(model, "inverse_transform") and invertible:
            found["inverse_transform"] = np.asarray(model.inverse_transform(found["transform"][:4]))
        # after a fit to a dask array these are dask arrays, which are not saved
        fitted = {name: getattr(model, name, None) for name in FITTED}
        found |= {name: value for name, value in fitted.items() if isinstance(value, np.ndarray)}
    assert found
    return found


def assert_same_answers(
    actual: dict[str, Any], expected: dict[str, Any], tolerance: float = 1e-12
) -> None:
    """Compare numbers relative to the largest of each array."""
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        if value.dtype.kind in "fc":
            atol = tolerance * np.abs(value).max(initial=0.0)
            np.testing.assert_allclose(actual[key], value, rtol=0, atol=atol, err_msg=key)
        else:
            np.testing.assert_array_equal(actual[key], value, err_msg=key)


# Fixtures of earlier versions -------------------------------------------------------------------

ARCHIVES = sorted((Path(__file__).parent / "persist" / "models").glob("*.zip"))
FIXTURES = [
    pytest.param(file, Path(member).stem, id=f"{file.stem}-{Path(member).stem}")
    for file in ARCHIVES
    for member in ZipFile(file).namelist()
    if member.endswith(".orthodrome")
]


#: Opening an archive takes longer than reading one of its members.
opened_archive = functools.cache(ZipFile)


def model_bytes(file: Path, name: str) -> bytes:
    return opened_archive(file).read(f"{name}.orthodrome")


def loaded(file: Path, name: str, folder: Path):
    path = folder / "model.orthodrome"
    path.write_bytes(model_bytes(file, name))
    with warnings.catch_warnings(action="ignore", category=InconsistentVersionWarning):
        return load(path)


def stored_answers(file: Path, name: str) -> dict:
    return dict(np.load(io.BytesIO(opened_archive(file).read(f"{name}.npz"))))


def new_rows(stored: dict):
    """Remove the input rows from the answers, and return them as they were given."""
    new, columns = stored.pop("new", None), stored.pop("columns", None)
    if stored.pop("csr", False):
        return scipy.sparse.csr_array(new)
    if columns is not None:
        return pytest.importorskip("pandas").DataFrame(new, columns=columns)
    return new


# Files made by hand ------------------------------------------------------------------------------


def members_of(data: bytes) -> dict[str, bytes]:
    with ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def forged(members: dict[str, bytes], compression: int = ZIP_STORED, **manifest: Any) -> bytes:
    """Return an archive of these members with digests that agree."""
    changed = json.loads(members["orthodrome.json"]) | manifest
    changed["sha256"] = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in members.items()
        if name != "orthodrome.json"
    }
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", compression) as opened:
        for name, content in (members | {"orthodrome.json": json.dumps(changed).encode()}).items():
            opened.writestr(name, content)
    return buffer.getvalue()


def attributes(schema: Any) -> dict[str, Any]:
    """Return the description of the attributes of the model."""
    return schema["content"]["content"]
