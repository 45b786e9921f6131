"""The demonstration's last sections: what ran where, and how to do it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ...eigen import choose_solver
from ..report import Block, Code, Section, Table, Text, versions
from .geodesic import Geodesic
from .studies import KERNELS, Fitted, Settings, Storage, Studies, Study

__all__ = ["parameters_section", "solver_section"]


def solver_section(studies: Studies, geodesic: Geodesic) -> Section:
    """Return the section on eigensolvers, products and storage."""
    rows = []
    for study, models, curved in (
        (studies.wine, studies.wine_models, geodesic.wine.curved),
        (studies.digits, studies.digits_models, geodesic.digits.curved),
    ):
        rows += [_solver_row(study, f"kernel PCA, {kernel}", models[kernel]) for kernel in KERNELS]
        rows.append(_solver_row(study, "kernel PGA, gaussian", curved))
    steps = [found.curved.model.mean_n_iter_ for found in (geodesic.wine, geodesic.digits)]
    return Section(
        "Which solver, and where the Gram matrix lives",
        [
            Text(
                'Nobody chose a solver here: with solver="auto" the library decides, and '
                "orthodrome.eigen.choose_solver says what it takes and why."
            ),
            Table(
                "The embeddings of this page. The first use of a kernel also loads its compiled "
                "loops.",
                ["fit", "solver", "why", "products with K", "residual / λ₁", "seconds"],
                rows,
            ),
            Text(
                f"Kernel PGA first finds its mean: {steps[0]} steps for wine, {steps[1]} for "
                "digits. They are in the seconds, and not in the solver's products."
            ),
            *_storage_blocks(studies.storage, studies.digits, studies.settings),
        ],
    )


def _solver_row(study: Study, method: str, fitted: Fitted) -> list[object]:
    model = fitted.model
    residual = float(model.residuals_.max() / model.eigenvalues_[0])
    choice = choose_solver(len(study.y), study.n_components)
    return [
        f"{study.name}, {method}",
        model.solver_,
        choice.reason,
        model.n_iter_,
        f"{residual:.0e}" if residual else "0",
        f"{fitted.seconds:.2f}",
    ]


def _storage_blocks(storage: Storage, study: Study, settings: Settings) -> list[Block]:
    rows = [
        [budget, *reason, f"{fitted.seconds:.2f}"]
        for budget, reason, fitted in (
            (settings.budget, storage.kept_reason, storage.kept),
            (settings.small_budget, storage.recomputed_reason, storage.recomputed),
        )
    ]
    return [
        Table(
            f"The digits' Gram matrix, {len(study.y)} × {len(study.y)}, with two memory budgets.",
            ["memory_budget", "storage", "why", "seconds"],
            rows,
        ),
        Text(
            "Where the matrix does not fit, its tiles are computed anew for every product. The "
            f"eigenvalues of the two fits differ by at most {storage.largest_difference:.0e} of "
            "the largest."
        ),
    ]


def parameters_section(studies: Studies, command: Sequence[str]) -> Section:
    """Return the section with the command, Python lines, parameters and versions."""
    settings = studies.settings
    parameters = [
        ("kernels", 'Linear(), Gaussian(sigma="mean")'),
        (
            "directions, their dimensions and concentration",
            f"{settings.directions}, {settings.dimensions}, {settings.concentration:g}",
        ),
        (
            "components",
            f"{studies.wine.n_components} (wine), {studies.digits.n_components} (digits)",
        ),
        ("noise", f"{settings.noise:g}"),
        (
            "digits for training, validation, test",
            f"{settings.training}, {settings.validation}, {len(studies.denoising.originals)}",
        ),
        ("seed", settings.seed),
    ]
    found = versions(
        "orthodrome", "numpy", "scipy", "scikit-learn", "numba", "matplotlib"
    )  # what the numbers and the figures come from
    return Section(
        "How to do this again",
        [
            Code(shlex.join(command), "The command that wrote this page:"),
            Code(_EMBEDDING_LINES, "An embedding of this page in Python:"),
            Code(
                _DENOISING_LINES.format(
                    training=settings.training,
                    seed=settings.seed,
                    noise=settings.noise,
                    n_components=studies.denoising.best["gaussian"],
                ),
                "Cleaning digits by pre-images in Python:",
            ),
            Code(
                _GEODESIC_LINES.format(
                    directions=settings.directions,
                    dimensions=settings.dimensions,
                    concentration=settings.concentration,
                    seed=settings.seed,
                ),
                "Kernel PGA of directions, and the neighbours that it keeps, in Python:",
            ),
            Table("Parameters.", ["parameter", "value"], parameters),
            Table("Versions.", ["package", "version"], found),
        ],
    )


_EMBEDDING_LINES = """
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from orthodrome import KernelPCA, plots
from orthodrome.kernels import Gaussian

X, y = load_wine(return_X_y=True)
model = KernelPCA(2, Gaussian(sigma="mean")).fit(StandardScaler().fit_transform(X))
figure = plots.embedding(model.embedding_, y, ratios=model.explained_variance_ratio_)
figure.savefig("wine.png")
"""

_DENOISING_LINES = """
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from orthodrome import KernelPCA, plots

X, y = load_digits(return_X_y=True)
train, test = train_test_split(X / 16, train_size={training}, stratify=y, random_state={seed})
noisy = test + {noise:g} * np.random.default_rng({seed}).standard_normal(test.shape)

model = KernelPCA({n_components}, "gaussian", random_state={seed}).fit(train)
cleaned = model.inverse_transform(model.transform(noisy))
print(np.mean((noisy - test) ** 2), np.mean((cleaned - test) ** 2))
rows = {{"noisy": noisy[:10], "cleaned": cleaned[:10], "original": test[:10]}}
plots.images(rows, shape=(8, 8), limits=(0, 1)).savefig("digits.png")
"""

_GEODESIC_LINES = """
from orthodrome import KernelPGA, plots
from orthodrome.datasets import make_von_mises_fisher
from orthodrome.metrics import neighborhood_area, neighborhood_preservation

X = make_von_mises_fisher({directions}, {dimensions}, 2, {concentration:g}, random_state={seed})
model = KernelPGA(2, "linear").fit(X)
print(neighborhood_area(neighborhood_preservation(X, model.embedding_, kernel="linear")))
plots.sphere(model.sphere_coordinates_).savefig("sphere.png")
"""
