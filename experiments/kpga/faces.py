"""ORL faces, polynomial kernels: neighbourhoods kept by kernel PCA and by kernel PGA.

The kPGA paper's Figures 3 and 4 (§6.1): 400 images, each centred and normalised, the
kernel <x, y>^d of degree d = 4, 5, 6, and Q = 2 … 256 components. Feature-space distances before
the embedding; after it, Euclidean ones between coordinates, and for kernel PGA also those along the
sphere between the re-mapped points.

    python experiments/kpga/faces.py [--quick]

writes faces.csv, faces.md and faces.png next to this file. Needs the faces (ORTHODROME_DATA).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import HERE, publish
from pages import Row, command_line, load, new_figure, published
from verdicts import Compared

from orthodrome import KernelPCA, KernelPGA
from orthodrome.kernels import Polynomial
from orthodrome.metrics import neighborhood_area, neighborhood_preservation
from orthodrome.plots.palette import COLORS, MARKERS

DEGREES = (4, 5, 6)
COMPONENTS = (2, 4, 8, 16, 32, 64, 128, 256)
METHODS = {
    "kPCA": (KernelPCA, "euclidean"),
    "kPGA": (KernelPGA, "euclidean"),
    "kPGA, geodesic": (KernelPGA, "geodesic"),
}


def unit_images() -> np.ndarray:
    images = load("orl_faces").data.astype(np.float64)
    X = images.reshape(len(images), -1)
    X -= X.mean(axis=1, keepdims=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def curves(gram: np.ndarray) -> dict[tuple[str, int], np.ndarray]:
    """Preservation at every κ, by method and number of components."""
    result = {}
    for name, (estimator, metric) in METHODS.items():
        embedding = estimator(max(COMPONENTS), kernel="precomputed").fit_transform(gram)
        for q in COMPONENTS:
            result[name, q] = neighborhood_preservation(
                gram, embedding[:, :q], kernel="precomputed", metric=metric
            )
    return result


def measure(quick: bool) -> list[Row]:
    X = unit_images()
    rows: list[Row] = []
    for degree in DEGREES[:1] if quick else DEGREES:
        kept = curves(Polynomial(degree=degree, gamma=1.0, coef0=0.0)(X))
        rows += [
            {
                "degree": degree,
                "components": q,
                "method": name,
                "mean": float(curve.mean()),
                "area": float(neighborhood_area(curve)),
                "sizes_at_least_kpca": float(np.mean(curve >= kept["kPCA", q])),
            }
            for (name, q), curve in kept.items()
        ]
    return rows


def page(rows: list[Row]) -> str:
    found = {(row["degree"], row["components"], row["method"]): row for row in rows}
    text = [
        "# ORL faces: neighbourhood preservation of kernel PCA and kernel PGA",
        "",
        "Written by `experiments/kpga/faces.py` (`make experiments`); do not edit. The mean over "
        "κ = 1 … 399 of the fraction of κ-neighbourhoods preserved (kPGA paper, Figures 3 and 4, "
        "which are curves without numbers). In brackets: the fraction of κ at which kernel PGA is "
        "at least as good as kernel PCA. The paper's claim is that kernel PGA is better for all "
        "degrees and numbers of components.",
        "",
        *(summary(name, rows) for name in METHODS if name != "kPCA"),
        "",
        "![Neighbourhood preservation over the number of components](faces.png)",
    ]
    for degree in dict.fromkeys(row["degree"] for row in rows):
        text += [
            "",
            f"## Degree {degree}",
            "",
            "| components | " + " | ".join(METHODS) + " |",
            "|---|" + "---|" * len(METHODS),
        ]
        for q in COMPONENTS:
            cells = [f"{found[degree, q, 'kPCA']['mean']:.4f}"]
            others = [found[degree, q, name] for name in METHODS if name != "kPCA"]
            cells += [f"{r['mean']:.4f} ({r['sizes_at_least_kpca']:.0%})" for r in others]
            text.append(f"| {q} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def summary(name: str, rows: list[Row]) -> str:
    """Say in how many settings the claim holds."""
    flat = {(r["degree"], r["components"]): r["mean"] for r in rows if r["method"] == "kPCA"}
    ours = [r for r in rows if r["method"] == name]
    on_average = [r for r in ours if r["mean"] > flat[r["degree"], r["components"]]]
    always = [r for r in ours if r["sizes_at_least_kpca"] == 1]
    worse = [r for r in ours if r not in on_average]
    named = [f"degree {r['degree']} with {r['components']} components" for r in worse]
    return (
        f"- {name}: better on average over κ in {len(on_average)} of {len(ours)} settings, at all "
        f"κ in {len(always)}; worse on average for {', '.join(named) or 'none'}."
    )


def compared(rows: list[Row]) -> list[Compared]:
    """Figures 3 and 4, with distances along the sphere, which fit best."""
    found = {(row["degree"], row["components"], row["method"]): row["mean"] for row in rows}
    return [
        Compared.order(
            said["where"],
            f"degree {degree}, {q} components: kPGA (geodesic distances) better than "
            f"{said['than']}, mean over κ (all faces, no repeats)",
            value - found[degree, q, said["than"]],
            0.0,
        )
        for said in published(HERE, "faces")["orders"]
        for (degree, q, method), value in found.items()
        if method == f"{said['better']}, geodesic" and degree in said["degrees"]
    ]


def figure(rows: list[Row]) -> Any:
    degrees = list(dict.fromkeys(row["degree"] for row in rows))
    fig, axes = new_figure(4.2 * len(degrees), 3.6, 1, len(degrees), sharey=True)
    for ax, degree in zip(axes.flat, degrees, strict=True):
        for number, method in enumerate(METHODS):
            own = [row for row in rows if (row["degree"], row["method"]) == (degree, method)]
            ax.plot(
                [row["components"] for row in own],
                [row["mean"] for row in own],
                color=COLORS[number],
                marker=MARKERS[number],
                label=method,
            )
        ax.set_xscale("log", base=2)
        ax.set_title(f"degree {degree}")
        ax.set_xlabel("components")
    axes.flat[0].set_ylabel("neighbourhoods kept, mean over κ")
    axes.flat[0].legend(frameon=False)
    return fig


def main(quick: bool = False) -> None:
    publish("faces", measure(quick), page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
