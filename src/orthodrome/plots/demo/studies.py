"""What the demonstration computes: embeddings, nearest neighbours, pre-images, storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ...decomposition import KernelPCA, KernelPGA
from ...gram import choose_storage
from ...kernels import Gaussian, Kernel, Linear

__all__ = [
    "TASKS",
    "Accuracy",
    "Denoising",
    "Fitted",
    "Settings",
    "Storage",
    "Studies",
    "Study",
    "run_studies",
    "timed_fit",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """The numbers that somebody chose.

    ``noise`` is a standard deviation, of pixels between 0 and 1: visible, and the digits still
    legible. ``counts`` are numbers of components; PCA of 8 x 8 images ends at 64. With a
    ``concentration`` of 1.5 the simulated directions spread over all of their sphere; much less,
    and their mean is hardly determined.
    """

    seed: int = 0
    folds: int = 5
    neighbours: int = 5
    noise: float = 0.25
    counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    training: int = 1000
    validation: int = 300
    budget: str = "2GiB"
    small_budget: str = "1MiB"
    directions: int = 200
    dimensions: int = 100
    concentration: float = 1.5
    neighbourhood_counts: tuple[int, ...] = (2, 10)


def _kernels() -> dict[str, Kernel]:
    return {"linear": Linear(), "gaussian": Gaussian(sigma="mean")}


KERNELS = tuple(_kernels())


@dataclass(frozen=True)
class Study:
    """A data set and how many components of it to look at."""

    name: str
    X: Array
    y: NDArray[Any]
    class_names: tuple[str, ...]
    standardise: bool
    n_components: int
    counts: tuple[int, ...]

    @property
    def inputs(self) -> Array:
        """The data as the kernels see them."""
        return self.scaler().fit_transform(self.X)

    def scaler(self) -> Any:
        """Return a new transformer from the raw data to what the kernels see."""
        return StandardScaler() if self.standardise else FunctionTransformer()


@dataclass(frozen=True)
class Fitted:
    """A model and how long its fit took."""

    model: KernelPCA | KernelPGA
    seconds: float


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of nearest neighbours, fold by fold, after each decomposition and without one.

    ``embedded[kernel]`` has shape (n_folds, n_counts), ``raw`` shape (n_folds,).
    """

    embedded: dict[str, Array]
    raw: Array


@dataclass(frozen=True)
class Storage:
    """The same fit with the Gram matrix kept and with a budget that is too small for it."""

    kept: Fitted
    recomputed: Fitted
    kept_reason: tuple[str, str]
    recomputed_reason: tuple[str, str]
    largest_difference: float


@dataclass(frozen=True)
class Denoising:
    """Noisy digits cleaned by projection on the components, and how far each is from the truth."""

    originals: Array
    noisy: Array
    cleaned: dict[str, Array]
    best: dict[str, int]
    validation_error: dict[str, Array]
    clean_error: dict[str, Array]
    references: dict[str, float]
    labels: NDArray[Any]

    def error(self, images: Array) -> float:
        """Return the mean squared error against the originals."""
        return _mean_squared_error(images, self.originals)


@dataclass(frozen=True)
class Studies:
    """Everything that the page shows."""

    settings: Settings
    wine: Study
    wine_models: dict[str, Fitted]
    wine_accuracy: Accuracy
    digits: Study
    digits_models: dict[str, Fitted]
    digits_accuracy: Accuracy
    storage: Storage
    denoising: Denoising


TASKS = (
    "wine: two embeddings",
    "wine: nearest neighbours, fold by fold",
    "digits: two embeddings",
    "digits: nearest neighbours, fold by fold",
    "digits: the Gram matrix stored and recomputed",
    "digits: pre-images of noisy digits",
    "digits: pre-images of clean digits",
)


def run_studies(settings: Settings, begin: Callable[[], None]) -> Studies:
    """Compute everything; `begin` is called before each of the tasks."""
    begin()
    wine = load_wine_study()
    wine_models = embed(wine, settings)
    begin()
    wine_accuracy = neighbour_accuracy(wine, settings)
    begin()
    digits = load_digits_study()
    digits_models = embed(digits, settings)
    begin()
    digits_accuracy = neighbour_accuracy(digits, settings)
    begin()
    storage = compare_storage(digits, settings)
    denoising = denoise_digits(settings, begin)
    return Studies(
        settings=settings,
        wine=wine,
        wine_models=wine_models,
        wine_accuracy=wine_accuracy,
        digits=digits,
        digits_models=digits_models,
        digits_accuracy=digits_accuracy,
        storage=storage,
        denoising=denoising,
    )


def load_wine_study() -> Study:
    """Return the wine data: 13 measurements in different units, so they are standardised."""
    data = load_wine()
    names = tuple(f"cultivar {index + 1}" for index in range(len(data.target_names)))
    return Study("wine", data.data, data.target, names, True, 10, (2, 3, 5))


def load_digits_study() -> Study:
    """Return the digits with pixels between 0 and 1."""
    X, y = load_digits(return_X_y=True)
    return Study("digits", X / 16.0, y, tuple("0123456789"), False, 20, (2, 5, 10, 20))


def embed(study: Study, settings: Settings) -> dict[str, Fitted]:
    """Fit both decompositions to all of the data."""
    return {
        name: timed_fit(
            KernelPCA(study.n_components, kernel, random_state=settings.seed), study.inputs
        )
        for name, kernel in _kernels().items()
    }


def neighbour_accuracy(study: Study, settings: Settings) -> Accuracy:
    """Classify held-out rows by their nearest neighbours in the leading components.

    Scaling, bandwidth and components come from the training folds only.
    """
    folds = StratifiedKFold(settings.folds, shuffle=True, random_state=settings.seed)
    embedded = {name: np.empty((settings.folds, len(study.counts))) for name in KERNELS}
    raw = np.empty(settings.folds)
    for fold, (train, test) in enumerate(folds.split(study.X, study.y)):
        scaler = study.scaler()
        X_train, X_test = scaler.fit_transform(study.X[train]), scaler.transform(study.X[test])
        y_train, y_test = study.y[train], study.y[test]
        raw[fold] = _neighbours(settings, X_train, y_train, X_test, y_test)
        for name, kernel in _kernels().items():
            model = KernelPCA(max(study.counts), kernel, random_state=settings.seed)
            Z_train, Z_test = model.fit_transform(X_train), model.transform(X_test)
            for column, count in enumerate(study.counts):
                embedded[name][fold, column] = _neighbours(
                    settings, Z_train[:, :count], y_train, Z_test[:, :count], y_test
                )
    return Accuracy(embedded, raw)


def compare_storage(study: Study, settings: Settings) -> Storage:
    """Fit with a budget that holds the Gram matrix, and with one that does not."""
    kernel = _kernels()["gaussian"]
    fits = {
        budget: timed_fit(
            KernelPCA(study.n_components, kernel, memory_budget=budget, random_state=settings.seed),
            study.inputs,
        )
        for budget in (settings.budget, settings.small_budget)
    }
    reasons = {
        budget: choose_storage(fit.model.kernel_, study.inputs, budget, "auto")
        for budget, fit in fits.items()
    }
    kept, recomputed = fits[settings.budget], fits[settings.small_budget]
    values, others = kept.model.eigenvalues_, recomputed.model.eigenvalues_
    return Storage(
        kept,
        recomputed,
        reasons[settings.budget],
        reasons[settings.small_budget],
        float(np.max(np.abs(values - others)) / values[0]),
    )


def denoise_digits(settings: Settings, begin: Callable[[], None]) -> Denoising:
    """Clean noisy digits by projecting them on the leading components and coming back.

    The number of components is chosen for each decomposition on validation digits; errors are
    those of test digits.
    """
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    train, rest, _, y_rest = train_test_split(
        X, y, train_size=settings.training, stratify=y, random_state=settings.seed
    )
    validation, test, _, y_test = train_test_split(
        rest, y_rest, train_size=settings.validation, stratify=y_rest, random_state=settings.seed
    )
    rng = np.random.default_rng(settings.seed)
    noisy_validation = validation + settings.noise * rng.standard_normal(validation.shape)
    noisy_test = test + settings.noise * rng.standard_normal(test.shape)
    models = {
        name: KernelPCA(max(settings.counts), kernel, random_state=settings.seed).fit(train)
        for name, kernel in _kernels().items()
    }
    begin()
    validation_error, cleaned, best = {}, {}, {}
    for name, model in models.items():
        validation_error[name] = _errors(model, noisy_validation, validation, settings.counts)
        best[name] = settings.counts[int(np.nanargmin(validation_error[name]))]
        cleaned[name] = _reconstruct(model, noisy_test, best[name])
    begin()
    clean_error = {
        name: _errors(model, validation, validation, settings.counts)
        for name, model in models.items()
    }
    references = {
        "the noisy digits themselves": noisy_test,
        "the optimal linear filter, which knows the noise": _linear_filter(
            train, noisy_test, settings.noise
        ),
        f"the mean of the {settings.neighbours} nearest training digits": _nearest_mean(
            train, noisy_test, settings.neighbours
        ),
    }
    return Denoising(
        originals=test,
        noisy=noisy_test,
        cleaned=cleaned,
        best=best,
        validation_error=validation_error,
        clean_error=clean_error,
        references={key: _mean_squared_error(value, test) for key, value in references.items()},
        labels=y_test,
    )


def timed_fit(model: KernelPCA | KernelPGA, X: Array) -> Fitted:
    """Fit a model and say how long it took."""
    started = time.perf_counter()
    model.fit(X)
    return Fitted(model, time.perf_counter() - started)


def _neighbours(
    settings: Settings, X: Array, y: NDArray[Any], X_test: Array, y_test: NDArray[Any]
) -> float:
    return float(KNeighborsClassifier(settings.neighbours).fit(X, y).score(X_test, y_test))


def _reconstruct(model: KernelPCA, X: Array, count: int) -> Array:
    """Project on the first `count` components, which are those of a smaller model, and return."""
    coordinates = model.transform(X)
    coordinates[:, count:] = 0.0
    return model.inverse_transform(coordinates)


def _errors(model: KernelPCA, X: Array, truth: Array, counts: tuple[int, ...]) -> Array:
    """Return the error with each number of components, NaN where there are not as many."""
    available = int(np.count_nonzero(model.eigenvalues_))
    return np.array(
        [
            np.nan
            if count // 2 >= available
            else _mean_squared_error(_reconstruct(model, X, count), truth)
            for count in counts
        ]
    )


def _mean_squared_error(images: Array, truth: Array) -> float:
    return float(np.mean((images - truth) ** 2))


def _linear_filter(train: Array, noisy: Array, noise: float) -> Array:
    """Apply the Wiener filter, the best affine guess of an image from its noisy version."""
    mean, covariance = train.mean(axis=0), np.cov(train.T)
    total = covariance + noise**2 * np.eye(train.shape[1])
    return mean + (noisy - mean) @ np.linalg.solve(total, covariance)


def _nearest_mean(train: Array, noisy: Array, neighbours: int) -> Array:
    model = NearestNeighbors(n_neighbors=neighbours).fit(train)
    return train[model.kneighbors(noisy, return_distance=False)].mean(axis=1)
