"""Draw the pictures of the README into docs/images: python docs/make_readme_pictures.py.

The leaves need the data set passiflora, see `orthodrome.datasets.load`: landmarks by D. Chitwood
and W. Otoni (GigaScience 6, 2017, doi:10.1093/gigascience/giw008).
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.model_selection import cross_val_predict

from orthodrome import KernelPGA, KernelRidgeRegressionClassifier, plots
from orthodrome.app.demo import TEXTURES, texts, textures
from orthodrome.datasets import load
from orthodrome.plots._classes import class_style
from orthodrome.plots._matplotlib import house_style
from orthodrome.spaces import procrustes_align

TARGET = Path(__file__).parent / "images"
SIZE = (4.4, 3.9)  # inches
SECONDS = 5  # of the animation, there and back
TIGHT = {"handletextpad": 0.1, "columnspacing": 1.0}  # of a legend
STEPS = 12  # shapes between the two ends


def leaf_modes(n_modes=2, extent=2.0):
    """Return shapes along the first modes of leaves, (n_modes, STEPS + 1, 15, 2), and ratios."""
    leaves = load("passiflora")
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(leaves.target == k), 60, replace=False) for k in range(7)]
    model = KernelPGA(3, "veronese_whitney", random_state=0).fit(leaves.landmarks[np.ravel(rows)])
    spread = model.embedding_.std(axis=0)
    coordinates = np.zeros((n_modes, STEPS + 1, 3))
    for mode in range(n_modes):
        coordinates[mode, :, mode] = np.linspace(-extent, extent, STEPS + 1) * spread[mode]
    found = procrustes_align(model.inverse_transform(coordinates.reshape(-1, 3)))
    ratios = model.explained_variance_ratio_[:n_modes]
    return found.reshape(n_modes, STEPS + 1, 15, 2), ratios


def leaves_svg():
    """Return an SVG file in which two leaves move along the first two modes."""
    modes, ratios = leaf_modes()
    low, high = modes.min(axis=(0, 1, 2)), modes.max(axis=(0, 1, 2))
    scale = 208 / (high - low).max()
    center = (low + high) / 2
    there_and_back = [*range(STEPS // 2, STEPS + 1), *range(STEPS)[::-1], *range(1, STEPS // 2 + 1)]
    slider = [150 * step / STEPS - 75 for step in there_and_back]
    timing = f'dur="{SECONDS}s" repeatCount="indefinite"'
    parts = []
    for mode, (shapes, ratio) in enumerate(zip(modes, ratios, strict=True)):
        points = (shapes - center) * [scale, -scale]  # y points down in SVG
        outlines = [" ".join(f"{x:.1f},{y:.1f}" for x, y in shape) for shape in points]
        frames = ";".join(outlines[step] for step in there_and_back)
        moves = ";".join(f"{x:.1f}" for x in slider)
        middle = outlines[STEPS // 2]
        parts.append(
            f'<g transform="translate({111 + 218 * mode} 175)">'
            f'<polygon class="leaf" points="{middle}">'
            f'<animate attributeName="points" values="{frames}" {timing}/></polygon>'
            f'<polygon class="mean" points="{middle}"/>'
            f'<text y="-135">Mode {mode + 1} ({100 * ratio:.0f} %)</text>'
            '<path class="line" d="M-75 155h150M-75 149v12M0 149v12M75 149v12"/>'
            f'<circle r="7" cy="155"><animate attributeName="cx" values="{moves}" {timing}/>'
            '</circle><text x="-75" y="182">−2 s</text><text y="182">mean</text>'
            '<text x="75" y="182">+2 s</text></g>'
        )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 440 390" role="img" '
        'aria-label="Leaves of passion flowers change shape along two modes of kernel PGA">'
        "<style>.leaf{fill:#009e73;fill-opacity:.75;stroke:#00614a;stroke-width:2;"
        "stroke-linejoin:round}.mean{fill:none;stroke:#888;stroke-dasharray:4 3}"
        ".line{stroke:#888;stroke-width:1.5}circle{fill:#d55e00}"
        "text{font:19px sans-serif;text-anchor:middle;fill:#222}</style>"
        '<rect width="440" height="390" rx="6" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )


def covariances():
    """Draw patches of photographs at the coordinates of their covariance matrices."""
    X, names, patches = textures()
    classifier = KernelRidgeRegressionClassifier("log_euclidean")
    accuracy = np.mean(cross_val_predict(classifier, X, names, cv=5) == names)
    points = KernelPGA(2, "log_euclidean", random_state=0).fit_transform(X)
    figure = Figure(figsize=SIZE, layout="constrained")
    ax = figure.subplots()
    for index, name in enumerate(TEXTURES):
        color, _ = class_style(index)
        ax.scatter([], [], color=color, marker="s", label=name)
        for point, patch in zip(points[names == name], patches[names == name], strict=True):
            image = OffsetImage(patch, zoom=0.24, cmap="gray")
            frame = {"edgecolor": color, "linewidth": 1.6}
            ax.add_artist(AnnotationBbox(image, point, pad=0.05, bboxprops=frame))
    margin = 0.06 * np.ptp(points, axis=0)
    ax.set_xlim(points[:, 0].min() - margin[0], points[:, 0].max() + margin[0])
    ax.set_ylim(points[:, 1].min() - margin[1], points[:, 1].max() + margin[1])
    ax.set(xticks=[], yticks=[], xlabel="Component 1", ylabel="Component 2")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, handletextpad=0.2)
    print(f"covariance matrices: {accuracy:.1%} of {len(X)} patches recognised")
    return figure


def directions():
    """Draw embeddings of texts on a globe."""
    X, modules, _ = texts()
    model = KernelPGA(2, "linear", random_state=0).fit(X)
    figure = Figure(figsize=SIZE, layout="constrained")
    ax = figure.subplots()
    plots.sphere(model.sphere_coordinates_, modules, ax=ax, geodesics=False, tilt=12, size=26)
    for legend in ax.findobj(Legend):
        legend.remove()  # one legend above the globe leaves more room for it
    for index, name in enumerate(np.unique(modules)):
        color, marker = class_style(index)
        ax.scatter([], [], color=color, marker=marker, label=name)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, **TIGHT)
    return figure


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    (TARGET / "leaves.svg").write_text(leaves_svg(), encoding="utf-8")
    with house_style():
        for draw in (covariances, directions):
            file = TARGET / f"{draw.__name__}.png"
            draw().savefig(file, dpi=150, metadata={"Software": None})
