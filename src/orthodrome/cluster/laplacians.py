"""Geometries of spectral clustering: the graph of the points, or their centred Gram matrix.

``wrap`` returns the operator whose leading eigenvectors embed the points; ``embedding`` returns the
embedding of the training points, and its extension to new points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..coordinates import Coordinates
from ..decomposition.view import View
from ..eigen import Eigenpairs
from ..eigen.components import affine_map, make_components, weighted_problem
from ..eigen.pairs import orient
from ..gram import Centered, CrossOperator, Degree, GramOperator
from ..gram.degree import DegreeCross

__all__ = ["LAPLACIANS", "Extension", "Graph", "Principal", "SpectralEmbedding"]


class Extension(Protocol):
    """Embeds new points, from their kernel values with the training points and with themselves."""

    def __call__(self, cross: CrossOperator, own: NDArray[Any]) -> NDArray[Any]:
        """Return one row per new point; `cross` is k(x, X), and `own` is k(x, x)."""
        ...

    def over_features(self, features: Coordinates) -> Extension:
        """Return the same for a `cross` that holds features f(x), and `own` their squares.

        `features` are those of the training points, k(x, X) = f(x) Fᵀ.
        """
        ...


class SpectralEmbedding(NamedTuple):
    """What the training points become, and how new points follow."""

    points: NDArray[Any]  # (m, k)
    eigenvalues: NDArray[Any]  # (k,)
    extension: Extension
    n_isolated: int = 0


@dataclass(frozen=True)
class Graph:
    """Rows of eigenvectors of the normalised graph.

    They are normalised to length 1, or divided by the roots of the degrees.
    """

    unit_rows: bool

    def wrap(self, view: View) -> tuple[Degree, GramOperator]:
        """Return the graph, shifted so that no eigenvalue is below 0, which a Hebbian solver needs.

        Similarities that are not negative have eigenvalues from -1 on. If K has none below 0, those
        of the graph are not below -K_ii/Δ_i, which is often nearer: a smaller shift leaves the
        eigenvalues farther apart, relative to the largest, and is faster.
        """
        graph = Degree(
            view.gram,
            view.weights,
            row_numbers=view.canonical.index,
            uncertainty=view.sum_uncertainty(),
        )
        graph.shift = min(1.0, graph.largest_own_share()) if view.definite else 1.0
        return graph, graph

    def embedding(self, view: View, graph: Degree, pairs: Eigenpairs) -> SpectralEmbedding:
        """Embed the points by the eigenvectors of the graph."""
        weights, dtype = graph.weights, pairs.vectors.dtype
        values = pairs.values.astype(np.float64) - graph.shift
        vectors = _with_small_rows(graph, pairs.vectors, values)
        if view.definite:  # rounding would make clusters of points that are equal in K
            vectors[:, ~graph.held_by_matrix(vectors, values)] = 0
        apart = graph.distinguishes_points()
        if not apart:
            vectors[:, 1:] = 0  # only rounding, which would make clusters of equal points
        # with every point written w times its entry in an eigenvector is v / √w
        points = vectors / np.sqrt(weights)[:, None]
        if self.unit_rows:
            points = _unit_rows(points)
        else:
            roots = np.sqrt(graph.degrees)[:, None]
            points = np.divide(points, roots, out=np.zeros_like(points), where=roots > 0)
        if not apart:
            points = np.tile(points.mean(axis=0), (len(points), 1))
        signs = orient(points, weights)
        vectors = vectors * signs.astype(dtype)
        return SpectralEmbedding(
            points=(points * signs).astype(dtype),
            eigenvalues=values.astype(dtype),
            extension=GraphExtension(vectors, values, weights, graph.inverse_roots, self.unit_rows),
            n_isolated=int(np.count_nonzero(graph.inverse_roots == 0)),
        )


@dataclass(frozen=True)
class Principal:
    """Rows of eigenvectors of the centred Gram matrix, normalised to length 1."""

    def wrap(self, view: View) -> tuple[Centered, GramOperator]:
        """Return the centred Gram matrix, and the same with weights."""
        centered = Centered(view.gram, view.weights)
        if not (np.all(np.isfinite(centered.means)) and np.isfinite(centered.trace())):
            raise ValueError(
                f"Kernel values or their sums overflow in {view.gram.dtype}; rescale the data, or "
                "choose other parameters of the kernel."
            )
        return centered, weighted_problem(centered, view.weights)

    def embedding(self, view: View, centered: Centered, pairs: Eigenpairs) -> SpectralEmbedding:
        """Embed the points by the eigenvectors."""
        components = make_components(pairs, centered, view.weights, drop_null=False)
        # coordinates are eigenvectors times the roots of the eigenvalues; rounding stays 0
        roots = np.sqrt(components.eigenvalues)
        inverse = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
        return SpectralEmbedding(
            points=_unit_rows(components.embedding * inverse),
            eigenvalues=components.eigenvalues,
            extension=AffineExtension(*affine_map(centered, components.coefficients * inverse)),
        )


#: The names that ``laplacian=`` takes.
LAPLACIANS: dict[str, Graph | Principal] = {
    "njw": Graph(unit_rows=True),
    "kernel-pca": Principal(),
    "ncut": Graph(unit_rows=False),
}


@dataclass(frozen=True)
class AffineExtension:
    """Rows of k(x, X) @ matrix + constant, brought to length 1."""

    matrix: NDArray[Any]
    constant: NDArray[Any]

    def __call__(self, cross: CrossOperator, own: NDArray[Any]) -> NDArray[Any]:
        """Embed new points; their kernel values with themselves do not matter."""
        return _unit_rows(np.ascontiguousarray(cross @ self.matrix) + self.constant)

    def over_features(self, features: Coordinates) -> AffineExtension:
        """Return the map from features."""
        return replace(self, matrix=features.combine(self.matrix).T)


@dataclass(frozen=True)
class GraphExtension:
    r"""The Nyström extension of eigenvectors of a graph, exact at the training points.

    With :math:`f_q(x) = \sum_j k(x, x_j) \sqrt{w_j / \Delta_j}\, v_{jq}` and
    :math:`\Delta(x) = \sum_j w_j k(x, x_j)` the extension is

    .. math:: u_q(x) = \frac{f_q(x)}{\sqrt{\Delta(x)}} \cdot
        \frac{\Delta_-(x) + k(x, x)}{\lambda_q \Delta_-(x) + k(x, x)}, \qquad
        \Delta_-(x) = \max(\Delta(x) - k(x, x), 0).

    The graph leaves out the similarity of a point to itself, and the plain extension
    :math:`f_q / (\lambda_q \sqrt{\Delta})` does not: at a training point it is a different
    combination of the eigenvectors, and where λ_q is as small as k(x, x)/Δ it is not even near. The
    second factor is what makes both the same there. It tends to 1/λ_q, the plain extension, as the
    degrees grow, and to 1, the mean of the neighbours, for points with little similarity to any.
    """

    vectors: NDArray[Any]
    eigenvalues: NDArray[Any]
    weights: NDArray[np.float64]
    inverse_roots: NDArray[np.float64]
    unit_rows: bool

    def __call__(self, cross: CrossOperator, own: NDArray[Any]) -> NDArray[Any]:
        """Embed new points."""
        graph = DegreeCross(cross, self.weights, self.inverse_roots)
        product, degrees = graph.product_and_degrees(self.vectors)
        others = np.maximum(degrees - own, 0.0)[:, None]
        denominators = others * self.eigenvalues + own[:, None]
        factors = np.divide(
            others + own[:, None],
            denominators,
            out=np.zeros_like(denominators),
            where=denominators != 0,
        )
        rows = product * factors
        if self.unit_rows:
            return _unit_rows(rows).astype(product.dtype, copy=False)
        roots = np.sqrt(degrees)[:, None]
        np.divide(rows, roots, out=rows, where=roots > 0)
        return rows.astype(product.dtype, copy=False)

    def over_features(self, features: Coordinates) -> GraphExtension:
        """Return the extension from features: their axes stand for the training points."""
        scaled = self.vectors.astype(np.float64) * self.inverse_roots[:, None]
        sums = features.combine(np.column_stack([scaled, self.weights]))
        ones = np.ones(sums.shape[1])
        return replace(self, vectors=sums[:-1].T, weights=sums[-1], inverse_roots=ones)


def _with_small_rows(
    graph: Degree, vectors: NDArray[Any], values: NDArray[np.float64]
) -> NDArray[Any]:
    """Return eigenvectors whose small rows have digits too, and those of isolated points none.

    A solver leaves errors of the size of rounding relative to the largest entries. The row of a
    loosely connected point is far below them, and yet its direction counts: it is taken from its
    neighbours, by the equation of the eigenvector.
    """
    lengths = np.linalg.norm(vectors, axis=1)
    eps = float(np.finfo(vectors.dtype).eps)
    small = np.flatnonzero((lengths < np.sqrt(eps) * lengths.max()) & (graph.inverse_roots > 0))
    found = np.where(graph.inverse_roots[:, None] > 0, vectors, 0)
    clear = values > 0.1 * values[0]  # the others would be divided by hardly anything
    for start in range(0, len(small), 256):
        chosen = small[start : start + 256]
        block = graph.rows(chosen)
        block[np.arange(len(chosen)), chosen] -= graph.shift
        taken = (block @ vectors[:, clear]) / values[clear]
        found[np.ix_(chosen, np.flatnonzero(clear))] = taken
    return found


def _unit_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """Divide each row by its length; a row of zeros stays one."""
    largest = np.abs(rows).max(axis=1, keepdims=True)  # squares neither over- nor underflow
    scaled = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, lengths, out=scaled, where=lengths > 0)
