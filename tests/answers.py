"""Oracles of all estimators for the cases of degenerate.py.

``check_answers(model, case)`` compares a fit of the first configuration with plain.py: embeddings
up to signs, and up to rotations where eigenvalues coincide; results for new rows; ratios of
variance; labels and objectives; residuals of classes and predictions. Results that are not unique,
such as clusters, are checked by the equations that they must satisfy.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

import plain
from degenerate import Case

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """A case as matrices, scaled so that the largest number is about 1.

    Kernel values of the case are these times `unit`, and its weights these times `heavy`.
    """

    K: Array
    cross: Array  # k(x, x_n) of the new rows
    own: Array  # k(x, x) of these
    weights: Array
    unit: float
    heavy: float
    eps: float
    knows_inputs: bool

    @property
    def p(self) -> Array:
        return self.weights / self.weights.sum()

    @property
    def size(self) -> float:
        """The unit of lengths."""
        return float(np.sqrt(self.unit))

    @property
    def rounding(self) -> float:
        """The error of sums of kernel values."""
        return 32 * len(self.K) * self.eps * max(float(np.abs(self.K).max()), 1e-300)

    @property
    def digits(self) -> float:
        """The tolerance relative to the largest number."""
        return 1e-7 if self.eps < 1e-10 else 3e-3

    def on_sphere(self) -> Setting:
        """Return the normalised points."""
        radius = float(np.diagonal(self.K).mean())
        return Setting(
            **vars(self)
            | {"K": self.K / radius, "cross": self.cross / radius, "own": self.own / radius}
        )


def setting_of(case: Case, *, double: bool = False) -> Setting:
    """Evaluate the kernel of a case by its formula; `double` ignores single precision."""
    X, new = (np.asarray(rows) for rows in (case.X, case.new_rows))
    single = X.dtype == np.float32 and not double
    eps = float(np.finfo(np.float32 if single else np.float64).eps)
    X, new = X.astype(np.float64), new.astype(np.float64)
    weights = np.ones(len(X)) if case.weight is None else np.asarray(case.weight, dtype=np.float64)
    heavy = float(weights.max())
    weights = weights / heavy
    name = case.kernel if isinstance(case.kernel, str) else type(case.kernel).__name__.lower()
    unit = scale = _power_of_two(np.abs(X).max())
    if name == "precomputed":
        K, cross = X / scale, new / scale
        own = np.full(len(new), np.average(np.diagonal(K), weights=weights))
    elif name == "linear":
        unit = scale**2
        K, cross = X / scale @ (X / scale).T, new / scale @ (X / scale).T
        own = ((new / scale) ** 2).sum(axis=1)
    else:
        K, cross = _gaussian(name, X, new, weights, case.kernel, eps)
        unit, own = 1.0, np.ones(len(new))
    return Setting(K, cross, own, weights, unit, heavy, eps, name != "precomputed")


def _gaussian(
    name: str, X: Array, new: Array, weights: Array, kernel: Any, eps: float
) -> tuple[Array, Array]:
    """Return Gaussian kernels of vectors, or of shapes and matrices, which have no factor 2."""
    sigma = getattr(kernel, "sigma", "mean")
    sigma = None if isinstance(sigma, str) else float(sigma)
    if name == "gaussian":
        scale = _power_of_two(np.abs(X - X.mean(axis=0)).max())
        center = X[0]
        X, new = (X - center) / scale, (new - center) / scale
        sigma = None if sigma is None else sigma / scale
    else:
        scale = _power_of_two(np.abs(X).max())
        write = plain.shapes if name == "veronesewhitney" else plain.logarithms
        X, new = write(X / scale), write(new / scale)
    vectors = name == "gaussian"
    values = plain.gaussian(
        X,
        weights / weights.sum(),
        sigma,
        factor=2.0 if vectors else 1.0,
        coarse=0.0 if vectors else 64 * eps * np.abs(X).max(),
    )
    return values(X), values(new)


def _power_of_two(value: float) -> float:
    """Return a power of two near a number, with an even exponent; 1 for zero."""
    return float(2.0 ** (2 * (int(np.frexp(value)[1]) // 2))) if value > 0 else 1.0


def close(found: Any, right: Any, by: float, what: str) -> None:
    np.testing.assert_allclose(found, right, rtol=0, atol=by, err_msg=what)


@dataclass(frozen=True)
class Spectrum:
    """Equations of an embedding by the leading eigenvectors of W^½ G W^½.

    For any signs, and any basis of a repeated eigenvalue: Eᵀ W E = Λ and G W E = E Λ, and new
    points have the rows G' W E Λ^-1.
    """

    G: Array
    weights: Array
    digits: float
    rounding: float

    def values(self, k: int) -> Array:
        root = np.sqrt(self.weights)
        found = np.linalg.eigvalsh(self.G * np.outer(root, root))[::-1][:k]
        return np.maximum(np.pad(found, (0, k - len(found))), 0.0)

    def check(self, E: Array, values: Array, cross: Array, new: Array) -> None:
        """Check the embedding, the eigenvalues and the coordinates of new points."""
        right = self.values(E.shape[1])
        by = self.digits * right.max(initial=0.0) + self.rounding * self.weights.sum()
        close(values, right, by, "eigenvalues_")
        weighted = self.weights[:, None] * E
        close(E.T @ weighted, np.diag(right), by, "lengths of embedding_")
        extent = np.abs(E).max(initial=0.0) + np.sqrt(by)
        close(self.G @ weighted, E * right, 4 * by * extent, "directions of embedding_")
        clear = right > 1e3 * by  # the others would be divided by rounding errors
        expected = cross @ weighted[:, clear] / right[clear]
        errors = (4 * by * extent / right[clear]) + self.digits * np.abs(expected).max(initial=0.0)
        assert np.all(np.abs(new[:, clear] - expected) <= errors), "transform"
        close(new[:, right <= by / 100], 0.0, np.sqrt(by), "transform where there is no extent")


def spectrum_of(G: Array, weights: Array, given: Setting) -> Spectrum:
    return Spectrum(G, weights, given.digits, given.rounding)


def check_pca(model: Any, given: Setting, case: Case) -> None:
    G = plain.centered(given.K, given.K, given.p)
    cross = plain.centered(given.cross, given.K, given.p)
    found = spectrum_of(G, given.weights, given)
    values = model.eigenvalues_.astype(np.float64) / given.unit / given.heavy
    transformed = model.transform(case.new_rows) / given.size
    found.check(model.embedding_ / given.size, values, cross, transformed)
    total = float(given.weights @ np.diagonal(G))
    check_ratio(model, values, total, given)
    if case_has_score(given, total):
        shares = (transformed**2).sum() / squared_from_mean(given).sum()
        close(model.score(case.new_rows), shares, 10 * given.digits, "score")


def squared_from_mean(given: Setting) -> Array:
    return given.own - 2 * given.cross @ given.p + given.p @ given.K @ given.p


def case_has_score(given: Setting, total: float) -> bool:
    """Return whether there is enough variance, and k(x, x) of new rows is known."""
    diagonal = np.diagonal(given.K)
    known = given.knows_inputs or np.ptp(diagonal) < 1e-12 * np.abs(diagonal).max()
    return known and total > 1e4 * given.rounding * given.weights.sum()


def check_ratio(model: Any, values: Array, total: float, given: Setting) -> None:
    """Check ratios of variance, if there is any variance."""
    if total > 1e3 * given.rounding * given.weights.sum():
        close(
            model.explained_variance_ratio_,
            values / total,
            given.digits,
            "explained_variance_ratio_",
        )


def check_pga(model: Any, given: Setting, case: Case) -> None:
    tangent, cross, unit = tangents_at_mean(given)
    found = spectrum_of(tangent, unit.p, unit)
    found.check(model.embedding_, model.eigenvalues_, cross, model.transform(case.new_rows))
    total = float(unit.p @ np.diagonal(tangent))
    close(model.geodesic_variance_, total, unit.digits * total + unit.rounding, "variance")
    check_ratio(model, model.eigenvalues_, total, unit)


def tangents_at_mean(given: Setting) -> tuple[Array, Array, Setting]:
    """Return inner products of Log maps at the mean, of all rows and of new rows."""
    unit = given.on_sphere()
    mean = plain.karcher_mean(unit.K, unit.p)
    tangent = plain.tangents(unit.K, unit.K, mean)
    return tangent, plain.tangents(unit.cross, unit.K, mean), unit


def check_same_rows(found: Any, right: Any, given: Setting, what: str, size: float) -> None:
    """Check that training rows have the same results as new rows."""
    rows, old = np.nonzero(np.abs(given.cross[:, None] - given.K[None]).max(axis=2) == 0)
    close(found[rows] / size, right[old] / size, angles_to(given), what)


def angles_to(given: Setting) -> float:
    """Return the error of angles from dropped directions of 1e-12 of the trace."""
    return 2e-5 if given.eps < 1e-10 else 2e-2


def check_robust(model: Any, given: Setting, case: Case) -> None:
    if model.method == "mrcd":
        check_support(model, given)
    else:
        check_pursuit(model, given)
    check_same_rows(
        model.transform(case.new_rows), model.embedding_, given, "transform", given.size
    )


def check_support(model: Any, given: Setting) -> None:
    """Check variances of the points in use, which are the distinct rows with a weight."""
    E, p = model._own_embedding_ / given.size, model._own_weights_ / model._own_weights_.sum()
    close(model.dispersions_ / given.unit, p @ E**2, given.digits, "dispersions_")
    if model.X_fit_ is not None:
        rows = model.transform(model.X_fit_) / given.size
        close(rows, E, angles_to(given), "transform of the points in use")


def check_detector(model: Any, given: Setting, case: Case) -> None:
    """Check that training rows have the same distances as new rows, and labels follow them."""
    scores, size = model.score_samples(case.new_rows), max(model.distances_.max(), 1.0)
    if model._estimate_.ridge > 1e5 * given.rounding * given.unit:
        check_same_rows(-scores, model.distances_, given, "score_samples", size)
    close(model.decision_function(case.new_rows), scores - model.offset_, 1e-12, "decision")
    outliers = model.predict(case.new_rows) == -1
    np.testing.assert_array_equal(outliers, scores < model.offset_)


def check_pursuit(model: Any, given: Setting) -> None:
    E = model.embedding_ / given.size
    total = float(given.p @ np.diagonal(plain.centered(given.K, given.K, given.p)))
    if total < 1e3 * given.rounding:
        close(E, 0.0, np.sqrt(1e4 * given.rounding), "embedding_ of no extent")
    else:
        ratio = given.p @ E**2 / total
        close(model.explained_variance_ratio_, ratio, given.digits, "explained_variance_ratio_")
        close(model.dispersions_ / given.size, given.p @ np.abs(E), given.digits, "dispersions_")


def check_nested(model: Any, given: Setting, case: Case) -> None:
    """Check coordinates of nested spheres, which are the kernel's, and ratios."""
    chain, unit = getattr(model, "decomposition_", model), given.on_sphere()
    Y, axes = chain.sphere_coordinates_, chain.axes_
    counts = np.ix_(unit.weights > 0, unit.weights > 0)
    close((Y @ Y.T)[counts], unit.K[counts], angles_to(unit), "coordinates")
    close(axes @ axes.T, np.eye(len(axes)), 1e-9, "axes_")
    squares = unit.p @ chain.residuals_**2
    if squares.sum() > 1e-10:
        ratio = chain.explained_variance_ratio_
        close(ratio, squares / squares.sum(), 1e-6 + unit.digits, "explained_variance_ratio_")
    if chain is model:
        check_same_rows(model.transform(case.new_rows), model.embedding_, unit, "transform", 1.0)
    else:
        check_same_rows(model.features_of(case.new_rows), model.features_, unit, "features_of", 1.0)


def nearest(squares: Array, labels: Any, by: float | Array, what: str) -> None:
    """Check that no other centre is nearer than that of the label."""
    own = squares[np.arange(len(squares)), labels]
    assert np.all(own <= squares.min(axis=1) + by), what


def check_k_means(model: Any, given: Setting, case: Case) -> None:
    """Check that centres are means of their points, and labels the nearest centres."""
    labels = np.asarray(model.labels_)
    shares = (labels[:, None] == np.arange(labels.max() + 1)) * given.weights[:, None]
    shares = shares / shares.sum(axis=0)
    squares_of_centers = np.einsum("nc,nm,mc->c", shares, given.K, shares)
    by = given.digits * np.abs(given.K).max() + given.rounding
    squares = np.diagonal(given.K)[:, None] - 2 * given.K @ shares + squares_of_centers
    if model.converged_:
        nearest(squares, labels, by, "labels_")
    inertia = given.weights @ squares[np.arange(len(labels)), labels]
    close(model.inertia_ / given.heavy / given.unit, inertia, by * given.weights.sum(), "inertia_")
    to_centers = given.own[:, None] - 2 * given.cross @ shares + squares_of_centers
    distances = np.sqrt(np.maximum(to_centers, 0.0))
    close(model.transform(case.new_rows) / given.size, distances, np.sqrt(by) * 2, "transform")
    close(
        (model.transform(case.new_rows) / given.size) ** 2,
        np.maximum(to_centers, 0.0),
        20 * by,
        "transform",
    )
    if model.converged_:
        nearest(to_centers, model.predict(case.new_rows), by, "predict")
    score = -to_centers.min(axis=1).sum()
    close(model.score(case.new_rows) / given.unit, score, 10 * by * len(to_centers), "score")


def check_preimages(model: Any, given: Setting, case: Case) -> None:
    """Check angles from the centres."""
    kept = Case(case.X, new=model.cluster_centers_, kernel=case.kernel, weight=case.weight)
    squares = plain.angles(setting_of(kept).cross.T) ** 2
    labels, by = np.asarray(model.labels_), 10 * given.digits
    nearest(squares, labels, by, "labels_")
    inertia = given.weights @ squares[np.arange(len(labels)), labels]
    close(model.inertia_ / given.heavy, inertia, by * given.weights.sum(), "inertia_")


def check_spectral(model: Any, given: Setting, case: Case) -> None:
    """Check normalised rows of the embedding, and that labels are the nearest means of them."""
    E, by = model.embedding_.astype(np.float64), 10 * given.digits
    flat = np.ptp(given.K[np.ix_(given.weights > 0, given.weights > 0)]) < 100 * given.rounding
    lengths = np.linalg.norm(E, axis=1)
    assert np.all((lengths < 1e-6) | (np.abs(lengths - 1) < by) | flat), "lengths of embedding_"
    centers = model.cluster_centers_.astype(np.float64)
    nearest(plain.squared_distances(E, centers), model.labels_, by, "labels_")
    for label in set(model.labels_):
        inside = (model.labels_ == label) * given.weights
        close(centers[label], inside @ E / inside.sum(), by, "cluster_centers_")


def check_mixture(model: Any, given: Setting, case: Case) -> None:
    """Check the principal geodesics, memberships and the likelihood of the training rows."""
    tangent, cross, unit = tangents_at_mean(given)
    kept = (slice(None), slice(None)) if given.knows_inputs else (slice(None), model._columns_)
    rows, new = (np.asarray(each)[kept[: np.ndim(each)]] for each in (case.X, case.new_rows))
    E, E_new = model.pga_.transform(rows), model.pga_.transform(new)
    spectrum_of(tangent, unit.p, unit).check(E, model.pga_.eigenvalues_, cross, E_new)
    close(model.weights_.sum(), 1.0, 1e-9, "weights_")
    samples = model.score_samples(case.X)
    by = max(1e-5, 4 * given.digits) * (given.p @ np.maximum(np.abs(samples), 1.0))
    close(model.lower_bound_, given.p @ samples, by, "lower_bound_")
    proba = model.predict_proba(case.X)
    close(proba.sum(axis=1), 1.0, 1e-9, "predict_proba")
    nearest(-proba, model.labels_, 10 * given.digits, "labels_")


def check_residuals(model: Any, given: Setting, case: Case, residual: Any) -> None:
    """Check residuals of new rows, and of each training row from its class without it."""
    labels, by = np.asarray(case.classes), 1e-7 * max(np.abs(given.K).max(), 1e-300)
    with np.errstate(over="ignore"):  # tiny weights
        alphas = np.minimum(model.class_alphas_ / given.unit / given.heavy, 1e300)
    inside = [(labels == label) & (given.weights > 0) for label in model.classes_]
    if np.linalg.eigvalsh(given.K)[0] < -given.rounding:
        return  # an indefinite matrix has no residuals

    def from_class(number: int, rows: Array, cross: Array, own: Array) -> Array:
        K = given.K[np.ix_(rows, rows)]
        return residual(own, cross[:, rows], K, given.weights[rows], alphas[number])

    right = np.column_stack(
        [from_class(c, inside[c], given.cross, given.own) for c in range(len(inside))]
    )
    found = model.class_residuals(case.new_rows) / given.unit
    if not given.knows_inputs:  # k(x, x) is not known; it is the same for all classes
        found, right = (each - each.mean(axis=1, keepdims=True) for each in (found, right))
    close(found, right, by, "class_residuals")
    numbers = {label: number for number, label in enumerate(model.classes_)}
    predicted = [numbers[label] for label in model.predict(case.new_rows)]
    nearest(right, predicted, by, "predict")
    warm = model.temperature_ / given.unit
    if warm > 1e3 * by:
        close(model.predict_proba(case.new_rows), softmax(-right / warm, axis=1), 1e-2, "proba")


def check_answers(model: Any, case: Case) -> None:
    """Compare a fit with its oracle; an AssertionError names the wrong result."""
    name = type(model).__name__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if name in RESIDUALS:
            check_residuals(model, setting_of(case, double=True), case, RESIDUALS[name])
        else:
            CHECKS[name](model, setting_of(case), case)


RESIDUALS = {
    "KernelRidgeRegressionClassifier": plain.ridge_residual,
    "PerTurbo": plain.perturbation,
}
CHECKS = {
    "KernelPCA": check_pca,
    "KernelPGA": check_pga,
    "KernelPNS": check_nested,
    "KernelMRCD": check_detector,
    "RobustKernelPCA": check_robust,
    "KernelKMeans": check_k_means,
    "HypersphericalKMeans": check_preimages,
    "KernelSpectralClustering": check_spectral,
    "GeodesicMixture": check_mixture,
    "NestedSpheresClassifier": check_nested,
}
