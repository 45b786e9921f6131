"""The demonstration's words, figures and tables; every number in them comes from the studies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..curves import curves
from ..embedding import embedding
from ..images import images
from ..report import Block, Note, Picture, Row, Section, Table, Text
from ..spectrum import spectrum
from .again import parameters_section, solver_section
from .geodesic import Geodesic
from .geodesic_page import directions_section, real_data_section
from .studies import KERNELS, Accuracy, Denoising, Fitted, Settings, Studies, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["make_sections"]

TITLES = {"linear": "Linear kernel (PCA)", "gaussian": "Gaussian kernel"}
IN_TEXT = {"linear": "linear kernel (PCA)", "gaussian": "Gaussian kernel"}


def make_sections(studies: Studies, geodesic: Geodesic, command: Sequence[str]) -> list[Section]:
    """Return the sections of the page."""
    return [
        _denoising_section(studies.denoising, studies.settings),
        _embedding_section(
            "Digits: ten classes in two dimensions",
            f"{len(studies.digits.y)} handwritten digits of 8 × 8 pixels between 0 and 1.",
            studies.digits,
            studies.digits_models,
            studies.digits_accuracy,
            "digit",
            studies.settings,
        ),
        _embedding_section(
            "Wine: two pictures of three cultivars",
            f"{len(studies.wine.y)} wines from three cultivars, {studies.wine.X.shape[1]} chemical "
            "measurements each, standardised.",
            studies.wine,
            studies.wine_models,
            studies.wine_accuracy,
            None,
            studies.settings,
        ),
        directions_section(geodesic.directions, studies.settings),
        real_data_section(studies, geodesic),
        solver_section(studies, geodesic),
        parameters_section(studies, command),
    ]


# ---------------------------------------------------------------------- embeddings


def _embedding_section(
    title: str,
    opening: str,
    study: Study,
    models: dict[str, Fitted],
    accuracy: Accuracy,
    legend: str | None,
    settings: Settings,
) -> Section:
    names = np.array(study.class_names)[study.y]
    scatters, spectra = [], []
    for kernel in KERNELS:
        model = models[kernel].model
        ratios = model.explained_variance_ratio_
        scatters.append(
            Picture.of(
                embedding(
                    model.embedding_,
                    names,
                    ratios=ratios,
                    title=TITLES[kernel],
                    legend_title=legend,
                ),
                f"{study.name}-embedding-{kernel}",
                alt=f"Scatter plot of the first two components of {study.name}, "
                f"{IN_TEXT[kernel]}, one colour and marker for each of "
                f"{len(study.class_names)} classes.",
                caption=f"{study.name.capitalize()}, {IN_TEXT[kernel]}: the first two "
                f"components hold {ratios[:2].sum():.1%} of the variance"
                f"{_bandwidth(models[kernel])}.",
            )
        )
        spectra.append(
            Picture.of(
                spectrum(model, title=TITLES[kernel]),
                f"{study.name}-spectrum-{kernel}",
                alt=f"Bars: variance explained by each of the first {len(ratios)} components of "
                f"{study.name}, {IN_TEXT[kernel]}; a line: their sum, up to "
                f"{ratios.sum():.0%}.",
                caption=f"{study.name.capitalize()}, {IN_TEXT[kernel]}: {len(ratios)} "
                f"components hold {ratios.sum():.1%} of the variance.",
            )
        )
    first, second = (models[kernel].model.explained_variance_ratio_.sum() for kernel in KERNELS)
    blocks: list[Block] = [
        Text(opening),
        Row(scatters),
        _accuracy_table(study, accuracy, settings),
        Note(_accuracy_words(study, accuracy)),
        Row(spectra),
        Text(
            f"The Gaussian kernel spreads the variance over "
            f"{'more' if second < first else 'fewer'} directions than PCA does. That is no "
            "verdict on either: each fraction is of the variance in that kernel's own space."
        ),
    ]
    return Section(title, blocks)


def _bandwidth(fitted: Fitted) -> str:
    sigma = getattr(fitted.model.kernel_, "sigma_", None)
    return "" if sigma is None else f"; σ = {sigma:.3g}, the root mean squared distance"


def _accuracy_table(study: Study, accuracy: Accuracy, settings: Settings) -> Table:
    rows: list[list[object]] = [
        [count, *(_percent(accuracy.embedded[kernel][:, column]) for kernel in KERNELS)]
        for column, count in enumerate(study.counts)
    ]
    raw = _percent(accuracy.raw)
    rows.append([f"none: all {study.X.shape[1]} inputs", raw, raw])
    return Table(
        f"Held-out rows classified by their {settings.neighbours} nearest neighbours in the "
        f"leading components: accuracy in %, mean of {settings.folds} folds.",
        ["components", *(TITLES[kernel] for kernel in KERNELS)],
        rows,
    )


def _percent(values: NDArray[np.float64]) -> str:
    return f"{100 * values.mean():.1f}"


def _accuracy_words(study: Study, accuracy: Accuracy) -> str:
    """Say for which numbers of components one kernel wins in every fold, and for which neither."""
    difference = accuracy.embedded["gaussian"] - accuracy.embedded["linear"]
    better = [q for q, column in zip(study.counts, difference.T, strict=True) if (column > 0).all()]
    worse = [q for q, column in zip(study.counts, difference.T, strict=True) if (column < 0).all()]
    open_ = [q for q in study.counts if q not in better and q not in worse]
    parts = []
    if better:
        parts.append(f"With {_listed(better)} components the Gaussian kernel wins in every fold.")
    if worse:
        parts.append(f"With {_listed(worse)} components plain PCA wins in every fold.")
    if open_:
        parts.append(
            f"With {_listed(open_)} components neither wins in every fold: as a way to see the "
            "classes, the kernel gains nothing that these data can show."
        )
    return " ".join(parts)


def _listed(numbers: Iterable[int]) -> str:
    """Write numbers as people do.

    Examples
    --------
    >>> _listed([2, 5, 10])
    '2, 5 and 10'
    """
    words = [str(number) for number in numbers]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# ---------------------------------------------------------------------- pre-images


def _denoising_section(study: Denoising, settings: Settings) -> Section:
    chosen = [int(np.flatnonzero(study.labels == digit)[0]) for digit in range(10)]
    errors = {kernel: study.error(study.cleaned[kernel]) for kernel in KERNELS}
    rows = {
        "noisy": study.noisy[chosen],
        f"PCA, {study.best['linear']} components": study.cleaned["linear"][chosen],
        f"kernel PCA, {study.best['gaussian']} components, pre-image": study.cleaned["gaussian"][
            chosen
        ],
        "original": study.originals[chosen],
    }
    grid = Picture.of(
        images(rows, shape=(8, 8), limits=(0.0, 1.0)),
        "digits-preimages",
        alt="Four rows of ten digits, 0 to 9: noisy, cleaned by PCA, cleaned by kernel PCA, and "
        "the originals.",
        caption="The first test digit of each class. Values beyond black and white are clipped in "
        "the picture, not in the errors.",
    )
    return Section(
        "Digits: from feature space back to images",
        [
            Text(
                f"Noise of standard deviation {settings.noise:g} is added to test digits. Each is "
                f"projected on the leading components of {settings.training} clean training "
                "digits, and the projection turned back into an image: for PCA by a linear map, "
                "for kernel PCA by its pre-image, the image whose feature vector is nearest. The "
                f"number of components was chosen for each on {settings.validation} other digits."
            ),
            grid,
            _error_table(study, errors),
            *_denoising_words(study, errors),
            Row([_noisy_curves(study, settings), _clean_curves(study, settings)]),
            Text(_curve_words(study, settings)),
        ],
    )


def _error_table(study: Denoising, errors: dict[str, float]) -> Table:
    found: list[tuple[str, float]] = [
        (f"PCA, {study.best['linear']} components", errors["linear"]),
        (f"kernel PCA, {study.best['gaussian']} components", errors["gaussian"]),
        *study.references.items(),
    ]
    return Table(
        f"Mean squared error per pixel against the originals, {len(study.originals)} test digits, "
        "smallest first.",
        ["method", "error"],
        [(name, f"{error:.4f}") for name, error in sorted(found, key=lambda entry: entry[1])],
    )


def _denoising_words(study: Denoising, errors: dict[str, float]) -> list[Block]:
    ratio = errors["gaussian"] / errors["linear"]
    per_digit = {
        kernel: np.mean((study.cleaned[kernel] - study.originals) ** 2, axis=1)
        for kernel in KERNELS
    }
    nearer = int(np.count_nonzero(per_digit["gaussian"] < per_digit["linear"]))
    blocks: list[Block] = [
        Text(
            f"The error of the kernel PCA pre-images is {ratio:.2f} times that of PCA; they are "
            f"nearer the original for {nearer} of {len(study.originals)} digits."
        )
    ]
    ahead = [name for name, error in study.references.items() if error < errors["gaussian"]]
    if ahead:
        blocks.append(
            Note(
                f"Not the best there is: {' and '.join(ahead)} "
                f"{'comes' if len(ahead) == 1 else 'come'} nearer still. Kernel PCA is a "
                "decomposition whose directions can be looked at, not a specialised filter."
            )
        )
    return blocks


def _noisy_curves(study: Denoising, settings: Settings) -> Picture:
    return Picture.of(
        _error_curves(settings.counts, study.validation_error, "Noisy digits"),
        "digits-error-noisy",
        alt="Error of cleaned noisy digits against the number of components, a curve for PCA and "
        "one for kernel PCA: "
        + "; ".join(
            f"{IN_TEXT[kernel]} lowest, {np.nanmin(study.validation_error[kernel]):.4f}, at "
            f"{study.best[kernel]}"
            for kernel in KERNELS
        )
        + ".",
        caption=f"Cleaning: error on the {settings.validation} validation digits. Further "
        "components also let noise through. PCA has no more than one for each pixel.",
    )


def _clean_curves(study: Denoising, settings: Settings) -> Picture:
    return Picture.of(
        _error_curves(settings.counts, study.clean_error, "Clean digits"),
        "digits-error-clean",
        alt="Error of reconstructed clean digits against the number of components, a curve for PCA "
        "and one for kernel PCA, both falling.",
        caption=f"Compressing: error of the same {settings.validation} digits without noise.",
    )


def _error_curves(
    counts: Sequence[int], errors: dict[str, NDArray[np.float64]], title: str
) -> Figure:
    return curves(
        counts,
        {TITLES[kernel]: errors[kernel] for kernel in KERNELS},
        xlabel="Components",
        ylabel="Mean squared error",
        xscale="log2",
        title=title,
    )


def _curve_words(study: Denoising, settings: Settings) -> str:
    noisy, clean = (
        _linear_wins(settings.counts, errors)
        for errors in (study.validation_error, study.clean_error)
    )
    words = (
        f"The error of PCA is as small or smaller {_with_components(noisy)} on noisy digits, and "
        f"{_with_components(clean)} on clean ones."
    )
    if len(clean) > len(noisy):
        words += (
            " Where there is no noise to leave out, PCA's way back is the exact inverse of its "
            "projection, and a pre-image is only the nearest image."
        )
    return words


def _linear_wins(counts: Sequence[int], errors: dict[str, NDArray[np.float64]]) -> list[int]:
    pairs = zip(counts, errors["linear"], errors["gaussian"], strict=True)
    return [count for count, linear, gaussian in pairs if linear <= gaussian]


def _with_components(counts: list[int]) -> str:
    return f"with {_listed(counts)} components" if counts else "with none of these numbers"
