"""The data of the demonstration and of the README's pictures. None of them needs a download."""

from __future__ import annotations

import inspect

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.discovery import all_estimators, all_functions

from .._core.types import Array, Floats
from ..plots._extras import require

# The right half of each kind of leaf, from the petiole to the tip: distance from the midrib, height
_HALVES = {
    "beech": [(0.22, 0.10), (0.33, 0.28), (0.32, 0.48), (0.22, 0.70), (0.10, 0.87)],
    "maple": [(0.42, 0.04), (0.22, 0.24), (0.56, 0.52), (0.20, 0.58), (0.13, 0.80)],
    "willow": [(0.06, 0.10), (0.10, 0.28), (0.11, 0.50), (0.08, 0.72), (0.04, 0.88)],
}
MODULES = ("cluster", "datasets", "linear_model", "metrics")
TEXTURES = ("grass", "gravel")
_SIDE = 64  # pixels of a patch


def leaves(n: int = 90, seed: int = 0) -> tuple[Floats, Array]:
    """Return landmarks of simulated leaves, (n, 12, 2), and their kinds.

    The leaves differ in width, depth of the lobes and bend, and lie anywhere on the table.
    """
    rng = np.random.default_rng(seed)
    kinds = np.sort(np.resize(list(_HALVES), n))
    found = np.empty((n, 12, 2))
    for number, (leaf, kind) in enumerate(zip(found, kinds, strict=True)):
        right = np.array(_HALVES[kind]) * [np.exp(0.15 * rng.standard_normal()), 1.0]
        right[:, 0] *= 1 + 0.1 * rng.standard_normal() * np.array([1, -1, 1, -1, 0])
        left = right[::-1] * [-1, 1]
        leaf[:] = np.concatenate([[[0, 0]], right, [[0, 1]], left])
        leaf += 0.012 * rng.standard_normal(leaf.shape)
        leaf[:, 0] += 0.15 * rng.standard_normal() * leaf[:, 1] ** 2  # the bend
        angle = rng.uniform(-0.6, 0.6) * (number > 0)  # pictures follow the first leaf
        turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        leaf[:] = rng.uniform(60, 120) * leaf @ np.transpose(turn) + rng.uniform(100, 200, 2)
    return found, kinds


def textures() -> tuple[Floats, Array, Array]:
    """Return covariance matrices of patches of photographs, their textures and the patches.

    The photographs of grass and gravel ship with scikit-image. The covariance is that of
    the brightness and its first and second derivatives, divided by the variance of the brightness.
    """
    data = require("skimage.data", "Textures", "image")
    patches, matrices = [], []
    for name in TEXTURES:
        image = getattr(data, name)().astype(np.float64)
        orders = [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2)]
        channels = np.stack([gaussian_filter(image, 1, order=order) for order in orders])
        m = len(image) // _SIDE
        blocks = channels.reshape(5, m, _SIDE, m, _SIDE).transpose(1, 3, 0, 2, 4)
        blocks = blocks.reshape(m * m, 5, -1)
        covariances = np.stack([np.cov(block) for block in blocks])
        matrices.append(covariances / covariances[:, :1, :1])
        cut = image.reshape(m, _SIDE, m, _SIDE).transpose(0, 2, 1, 3)
        patches.append(cut.reshape(m * m, _SIDE, _SIDE))
    return np.concatenate(matrices), np.repeat(TEXTURES, m * m), np.concatenate(patches)


def texts() -> tuple[Floats, Array, Array]:
    """Return unit vectors of docstrings of scikit-learn, their modules and their names.

    The vectors are term frequencies (tf-idf), reduced to 50 dimensions and to unit length.
    """
    things = dict([*all_estimators(), *all_functions()])
    modules = {name: thing.__module__.split(".")[1] for name, thing in things.items()}
    names = sorted(name for name, module in modules.items() if module in MODULES)
    words = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=2)
    counts = words.fit_transform([inspect.getdoc(things[name]) or "" for name in names])
    X = normalize(TruncatedSVD(50, random_state=0).fit_transform(counts))
    return X, np.array([modules[name] for name in names]), np.array(names)
