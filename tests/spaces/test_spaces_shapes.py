"""Laws of planar shapes: forms, pre-shapes, distances, means and alignment."""

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from laws_shapes import (
    every_form,
    in_form,
    landmarks,
    moved,
    naive_cosines,
    naive_extrinsic,
    naive_preshape,
    near,
)
from orthodrome.spaces import (
    as_complex,
    as_points,
    centroid_size,
    extrinsic_mean,
    helmertize,
    preshape,
    procrustes_align,
    procrustes_distance,
    riemannian_distance,
)

KINDS = ["full", "partial", "extrinsic", "riemannian"]
every_kind = pytest.mark.parametrize("kind", KINDS)
SAME_FORM = {
    "preshape": preshape,
    "helmertize": helmertize,
    "extrinsic_mean": extrinsic_mean,
    "procrustes_align": procrustes_align,
    "procrustes_align, full": lambda X: procrustes_align(X, size="full"),
    "procrustes_align, own": lambda X: procrustes_align(X, size="own"),
}
every_function = pytest.mark.parametrize("function", SAME_FORM.values(), ids=list(SAME_FORM))


def distance(kind, X, Y=None):
    if kind == "riemannian":
        return riemannian_distance(X, Y)
    return procrustes_distance(X, Y, kind=kind)


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@every_form
@every_function
def test_results_have_the_form_of_the_input(function, form):
    z = landmarks()
    X = in_form(z, form)
    before = X.copy()
    found, expected = function(X), in_form(function(z), form)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(as_complex(X), z)
    np.testing.assert_array_equal(as_points(X), in_form(z, "points"))
    np.testing.assert_array_equal(X, before)  # not changed


SQUARE = np.array([0, 1, 1 + 1j, 1j])


def broken(at, value):
    z = np.tile(SQUARE, (4, 1)) + 0.1 * landmarks(4, 4)
    z[at] = value
    return z


BAD = {
    "NaN": (broken((2, 3), np.nan), "Landmark 3 of specimen 2 of X is NaN or infinite"),
    "two landmarks": (np.ones((5, 4)), r"X has 2 landmarks .* at least 3"),
    "mixed": ([SQUARE, SQUARE, SQUARE[:3]], "lists of unequal length"),
    "in space": (np.ones((5, 4, 3)), "planar landmarks"),
    "odd": (np.ones((5, 7)), r"\(n, 2k\) .*got float64 of shape \(5, 7\)"),
}
FUNCTIONS = [as_complex, as_points, centroid_size, riemannian_distance, procrustes_distance]
FUNCTIONS += list(SAME_FORM.values())


@pytest.mark.parametrize(("X", "message"), BAD.values(), ids=list(BAD))
def test_bad_landmarks_raise(X, message):
    for function in FUNCTIONS:
        with pytest.raises(ValueError, match=message):
            function(X)


@pytest.mark.parametrize("value", [0.0, 3 - 4j, 1e-200, 1e200])
def test_a_specimen_without_size_is_named(value):
    z = np.concatenate([landmarks(4), np.full((1, 5), value), landmarks(2)])
    for function in (preshape, procrustes_align, extrinsic_mean, riemannian_distance):
        with pytest.raises(ValueError, match=r"landmarks of specimen 4 of X all coincide"):
            function(z)
    with pytest.raises(ValueError, match=r"landmarks of specimen 4 of Y all coincide"):
        procrustes_distance(landmarks(3), z)
    assert centroid_size(z)[4] == 0


THREE = landmarks(3)
ERRORS = [
    (lambda: riemannian_distance(THREE, landmarks(3, 4)), "X has 5 landmarks and Y has 4"),
    (lambda: procrustes_distance(THREE, kind="both"), "kind of procrustes_distance"),
    (lambda: procrustes_align(THREE, size="large"), "size of procrustes_align"),
    (lambda: procrustes_align(THREE, SQUARE), "reference has 4 landmarks, and the specimens have"),
    (lambda: procrustes_align(THREE, np.ones(10)), "of reference all coincide"),
    (lambda: procrustes_align(THREE, [[1.0, 2.0], [3.0]]), "reference of procrustes_align"),
    (lambda: procrustes_align(THREE, sample_weight=[0, 0, 0]), "must have a positive entry"),
    (lambda: preshape(scipy.sparse.csr_array(np.ones((3, 8)))), "Sparse data was passed for X"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_other_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_preshapes_and_centroid_sizes_equal_the_naive_ones():
    z = landmarks()
    close(preshape(z), [naive_preshape(specimen) for specimen in z], 1e-15)
    naive = [np.sqrt(sum(abs(v - np.mean(row)) ** 2 for v in row)) for row in z]
    np.testing.assert_allclose(centroid_size(z), naive, rtol=1e-14)


@pytest.mark.parametrize("k", [3, 4, 9])
def test_helmertized_landmarks_are_those_of_the_definition(k):
    z = landmarks(8, k)
    h = helmertize(z)
    assert h.shape == (8, k - 1)
    for j in range(1, k):
        row = np.concatenate([np.full(j, -1), [j], np.zeros(k - 1 - j)]) / np.sqrt(j * (j + 1))
        close(h[:, j - 1], z @ row, 1e-14)


@pytest.mark.parametrize("scale", [1e-307, 1e-30, 1e30, 1e306])
def test_extreme_scales(scale):
    z = landmarks()
    z -= z.mean(axis=1, keepdims=True)
    large = np.concatenate([scale * z[:6], z[6:]])  # very different ones together
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(preshape(large), preshape(z), 1e-14)
        np.testing.assert_allclose(
            centroid_size(large)[:6] / scale, centroid_size(z)[:6], rtol=1e-9
        )
        close(riemannian_distance(large), riemannian_distance(z))
        own = procrustes_align(large, size="own")
        close(own[:6] / scale, procrustes_align(z, size="own")[:6], 1e-9)


def test_overflow_raises():
    z = landmarks(4)
    z[2] = 1.5e308 * np.array([1, -1, 1j, -1j, 1])
    for function in (preshape, centroid_size, riemannian_distance):
        with pytest.raises(ValueError, match=r"specimen 2 of X are too large: .* Rescale"):
            function(z)


DEFINITIONS = {
    "full": lambda X, Y: np.sqrt(1 - naive_cosines(X, Y) ** 2),
    "partial": lambda X, Y: np.sqrt(2 - 2 * naive_cosines(X, Y)),
    "extrinsic": naive_extrinsic,
    "riemannian": lambda X, Y: np.arccos(naive_cosines(X, Y)),
}


@every_kind
def test_distances_equal_the_naive_ones(kind):
    X, Y = landmarks(9), near(6, seed=1)
    expected = distance(kind, X, Y)
    close(expected, DEFINITIONS[kind](X, Y))
    close(distance(kind, moved(X, 2), moved(Y, 3)), expected)
    close(distance(kind, Y, X).T, expected, 1e-14)
    np.testing.assert_array_equal(
        distance(kind, in_form(X, "points"), in_form(Y, "flat")), expected
    )


@pytest.mark.parametrize("gap", [2e-2, 9e-3, 1e-4, 1e-8, 1e-13])
def test_distances_of_near_shapes_are_accurate(gap):
    """u + gap·v with v orthogonal to u is at the angle arctan(gap), whatever the rotation."""
    u, v = preshape(landmarks(2))
    v = v - u * np.vdot(u, v)
    v /= np.linalg.norm(v)
    other = (u + gap * v) * np.exp(0.3j)
    # a few eps of 1 - |u*v|², over twice the gap, above the change of formula at 1e-2
    tolerance = 2e-15 / gap if gap > 1e-2 else 1e-15
    expected = {
        "full": np.sin(np.arctan(gap)),
        "partial": 2 * np.sin(np.arctan(gap) / 2),
        "extrinsic": np.sqrt(2) * np.sin(np.arctan(gap)),
        "riemannian": np.arctan(gap),
    }
    for kind, value in expected.items():
        close(distance(kind, [u], [other])[0, 0], value, tolerance)


def cost(X, mean, weights=None):
    """Σ w ρ_E², by k x k matrices."""
    w = np.ones(len(X)) if weights is None else weights
    return float(w @ naive_extrinsic(X, [mean])[:, 0] ** 2)


def test_the_mean_minimises_the_cost():
    X, w = landmarks(8, 4), np.linspace(0.5, 2, 8)
    found = [
        scipy.optimize.minimize(lambda p: cost(X, p[:4] + 1j * p[4:], w), start, tol=1e-12)
        for start in np.random.default_rng(0).standard_normal((4, 8))
    ]
    best = min(found, key=lambda result: result.fun)
    mean = extrinsic_mean(X, w)
    assert cost(X, mean, w) == pytest.approx(best.fun, rel=1e-10)
    close(riemannian_distance([mean], [best.x[:4] + 1j * best.x[4:]]), 0, 1e-4)


def test_weights_of_the_mean_are_repetition():
    X = near()
    w = np.random.default_rng(0).integers(0, 4, size=12)
    repeated = np.repeat(X, w, axis=0)
    close(extrinsic_mean(X, w), extrinsic_mean(repeated), 1e-14)
    close(extrinsic_mean(X, 7.5 * w), extrinsic_mean(X, w), 1e-14)
    aligned = procrustes_align(X, sample_weight=w)
    close(np.repeat(aligned, w, axis=0), procrustes_align(repeated), 1e-14)


def test_a_mean_that_is_not_defined_warns():
    """Two shapes at right angles."""
    triangle = np.array([0, 2, 1 + 1j * np.sqrt(3)])
    X = np.array([triangle, triangle.conj()])
    for function in (extrinsic_mean, procrustes_align):
        with pytest.warns(UserWarning, match="extrinsic mean is not defined") as caught:
            found = function(X)
        assert np.all(np.isfinite(found))
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(extrinsic_mean(X, [1.0, 0.999]), preshape(X)[0])


def test_aligned_specimens():
    X = landmarks()
    mean = extrinsic_mean(X)
    unit, full, own = (procrustes_align(X, size=size) for size in ("unit", "full", "own"))
    close(centroid_size(unit), 1, 1e-14)
    close(centroid_size(full), np.cos(riemannian_distance(X, [mean]))[:, 0])
    np.testing.assert_allclose(centroid_size(own), centroid_size(X), rtol=1e-13)
    for found in (unit, full, own):
        close(riemannian_distance(found, [mean]), riemannian_distance(X, [mean]))
        close(np.diagonal(riemannian_distance(found, X)), 0)
        products = found.conj() @ mean
        close(products.imag, 0, 1e-13)
        assert np.all(products.real > 0)
        close(procrustes_align(found), unit)
    # the distances from the mean are what rotations, and rotations and sizes, cannot remove
    for found, kind in ((unit, "partial"), (full, "full")):
        left = procrustes_distance(X, [mean], kind=kind)[:, 0]
        close(np.linalg.norm(found - mean, axis=1), left)
    close((full.conj() * (full - mean)).sum(axis=1), 0, 1e-14)  # of a projection


@every_form
def test_a_reference_in_every_form(form):
    X, reference = landmarks(6), landmarks(1, seed=3)[0]
    found = procrustes_align(X, reference=in_form(reference, form))
    close(found, procrustes_align(X, reference=2j * reference + 1) * -1j)
    product = found.conj() @ preshape([reference])[0]
    close(product.imag, 0, 1e-14)
    triangle = np.array([0, 2, 1 + 1j * np.sqrt(3)])  # orthogonal to its mirror image
    close(np.linalg.norm(procrustes_align([triangle.conj()], in_form(triangle, form))), 1, 1e-14)
