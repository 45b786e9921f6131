"""Figures of shapes: a panel for each class with its mean, and modes of variation."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from laws_shapes import every_form, in_form, near, three_leaves
from orthodrome import KernelPCA, KernelPGA, KernelPNS, RobustKernelPCA, plots
from orthodrome.plots.landmarks import mode_magnifications
from orthodrome.spaces import as_complex, extrinsic_mean, riemannian_distance

pytest.importorskip("matplotlib")
DARK = "#111111"


@pytest.fixture
def leaves():
    return three_leaves()


@pytest.fixture(scope="module")
def model():
    return KernelPGA(4, "veronese_whitney").fit(in_form(three_leaves()[0], "points"))


def close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def drawn(line):
    """The landmarks of a line as complex numbers, without the point that closes it."""
    z = np.asarray(line.get_xdata()) + 1j * np.asarray(line.get_ydata())
    assert z[0] == z[-1]
    return z[:-1]


def mean_line(ax):
    (line,) = [line for line in ax.lines if line.get_color() == DARK]
    return line


def specimens(ax):
    """The lines other than a mean and the white rim below it."""
    return [line for line in ax.lines if line.get_color() not in (DARK, "white")]


def assert_nothing_is_cut(figure):
    """All lines lie inside the limits, which are those of one square for all panels."""
    limits = [(*ax.get_xlim(), *ax.get_ylim()) for ax in figure.axes if ax.lines]
    assert len(set(limits)) == 1
    x0, x1, y0, y1 = limits[0]
    close(x1 - x0, y1 - y0)
    points = np.concatenate(
        [np.asarray(line.get_xydata()) for ax in figure.axes for line in ax.lines]
    )
    assert np.all((points > [x0, y0]) & (points < [x1, y1]))
    # and the lines fill nine tenths of them in one direction
    assert np.ptp(points, axis=0).max() > 0.9 * (x1 - x0)
    assert all(ax.get_aspect() == 1 for ax in figure.axes if ax.lines)


# ------------------------------------------------------------------ specimens of classes


@every_form
def test_specimens_are_aligned_to_the_overall_mean(leaves, form):
    X, names = leaves
    figure = plots.shapes(in_form(X, form), names)
    mean = extrinsic_mean(X)
    for ax, name in zip(figure.axes, np.unique(names), strict=True):
        found = np.array([drawn(line) for line in specimens(ax)])
        close(np.diagonal(riemannian_distance(found, X[names == name])), 0)
        close(found.sum(axis=1), 0)
        close(np.linalg.norm(found, axis=1), 1)
        products = found.conj() @ mean
        close(products.imag, 0)
        assert np.all(products.real > 0)


def test_bold_lines_are_the_extrinsic_means(leaves):
    X, names = leaves
    figure = plots.shapes(X, names)
    for ax, name in zip(figure.axes, np.unique(names), strict=True):
        line = mean_line(ax)
        close(riemannian_distance([drawn(line)], [extrinsic_mean(X[names == name])]), 0)
        close(np.linalg.norm(drawn(line)), 1)
        # rotated like its specimens: no rotation brings it nearer to their mean
        product = np.vdot(drawn(line), np.mean([drawn(own) for own in specimens(ax)], axis=0))
        assert product.real > 0
        close(product.imag, 0)
        assert line.get_linewidth() > 2 * specimens(ax)[0].get_linewidth()
        assert list(ax.lines)[-1] is line


def test_nothing_is_cut_at_the_edge(leaves):
    assert_nothing_is_cut(plots.shapes(*leaves))
    # not even one outlier in a thousand
    common = near(1200, spread=0.02)
    common[700] = [0, 0.1, 9, 0.1j, -0.1]
    figure = plots.shapes(common, np.arange(1200) == 700)
    assert_nothing_is_cut(figure)
    assert [len(specimens(ax)) for ax in figure.axes] == [300, 1]
    assert [ax.get_title() for ax in figure.axes] == ["False (1199)", "True (1)"]


# ------------------------------------------------------------------ modes


def bold(ax):
    """The line of a panel's own shape, which is drawn last."""
    return list(ax.lines)[-1]


@pytest.mark.parametrize("extent", [0.5, 2.0])
def test_outlines_are_the_preimages_along_each_mode(model, extent):
    figure = plots.shape_modes(model, n_modes=3, extent=extent, n_steps=5)
    spread = model.embedding_.std(axis=0)
    for mode in range(3):
        coordinates = np.zeros((5, 4))
        coordinates[:, mode] = np.linspace(-extent, extent, 5) * spread[mode]
        expected = as_complex(model.inverse_transform(coordinates))
        row = figure.axes[5 * mode : 5 * mode + 5]
        found = [drawn(bold(ax)) for ax in row]
        # each search of pre-images ends within its tolerance
        close(np.diagonal(riemannian_distance(found, expected)), 0, 1e-6)
        for ax in row:
            close(drawn(ax.lines[0]), found[2])  # the middle one is behind each
        colors = [bold(ax).get_color() for ax in row]
        assert colors[0] == colors[1] != colors[2] == DARK != colors[3] == colors[4]
        assert colors[0] != colors[4]


@every_form
@pytest.mark.parametrize("kind", [KernelPGA, KernelPCA, RobustKernelPCA])
def test_every_decomposition_with_preimages_has_modes(leaves, kind, form):
    fitted = kind(2, kernel="veronese_whitney").fit(in_form(leaves[0], form))
    figure = plots.shape_modes(fitted, n_steps=3)
    assert len(figure.axes) == 6
    assert_nothing_is_cut(figure)


def test_shape_modes_names_models_without_preimages(leaves):
    X, _ = leaves

    class Forward:
        embedding_ = np.ones((5, 2))

    spheres = KernelPNS(2, "veronese_whitney", sphere="great").fit(X)
    for other in (Forward(), spheres, X, PCA(2).fit(in_form(X, "flat"))):
        with pytest.raises(ValueError, match=f"model of shape_modes .*{type(other).__name__}"):
            plots.shape_modes(other)
    with pytest.raises(NotFittedError, match="KernelPGA instance is not fitted"):
        plots.shape_modes(KernelPGA(2, "veronese_whitney"))
    odd = KernelPCA(2).fit(np.random.default_rng(0).standard_normal((20, 7)))
    with pytest.raises(ValueError, match="inverse_transform must be planar landmarks"):
        plots.shape_modes(odd)


def segments(line):
    """The stretches between gaps, as complex numbers."""
    z = np.asarray(line.get_xdata()) + 1j * np.asarray(line.get_ydata())
    parts = np.split(z, np.flatnonzero(np.isnan(z)))
    return [part[~np.isnan(part)] for part in parts if not np.isnan(part).all()]


def test_links_join_pairs_and_other_landmarks_are_points(leaves):
    X, _ = leaves
    k = X.shape[1]
    (plain,), (linked,), (points,) = (
        plots.shapes(X, **options).axes for options in ({}, {"links": [[0, 2]]}, {"links": []})
    )
    z = drawn(mean_line(plain))
    pair, *alone = segments(mean_line(linked))
    close(pair, z[[0, 2]])
    close(np.concatenate(alone), np.delete(z, [0, 2]))
    assert [len(part) for part in segments(mean_line(points))] == [1] * k


def test_magnification_multiplies_the_differences_from_the_middle(model):
    factors = [1, 2, 10]
    plain, magnified = (
        plots.shape_modes(model, n_steps=3, magnification=m, links=[]) for m in (1.0, factors)
    )
    for mode, factor in enumerate(factors):
        own, other = (
            [np.concatenate(segments(bold(ax))) for ax in figure.axes[3 * mode : 3 * mode + 3]]
            for figure in (plain, magnified)
        )
        close(other[0] - other[1], factor * (own[0] - own[1]))
        times = f", × {factor}" if factor > 1 else " %)"
        assert magnified.axes[3 * mode].get_ylabel().endswith(times)


def test_small_changes_are_magnified_and_large_ones_are_not():
    kite = np.array([0, 1 + 1j, 3j, -1 + 1j])
    noise = np.random.default_rng(0).standard_normal((40, 4))
    for scale, expected in ((0.005, 10), (0.5, 1)):
        model = KernelPGA(2, "veronese_whitney").fit(kite + scale * noise)
        factors = mode_magnifications(model, 2)
        assert all(factor >= expected for factor in factors) if expected > 1 else factors[0] == 1
